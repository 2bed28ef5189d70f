"""Tables that are written column by column and line by line: the same text as cell by cell, in every order."""

from __future__ import annotations

import csv
import io
from urllib.parse import parse_qsl

import numpy as np
import pytest
from tests.board.scored import cards, scores

from earmark.board.boards import BoardView, table
from earmark.board.boards.cells import HEATS, NO_HEAT, Cell, CellColumn
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.table import TablePage
from earmark.board.pages.cells import score_cell
from earmark.board.pages.files import table_csv, table_records
from earmark.board.pages.score_texts import number_texts, score_parts
from earmark.board.pages.table_html import table_html
from earmark.tables import csv_cell, csv_text, exact_texts

VIEWS = ("", "show=subsets,intervals", "show=card,lift,metrics", "show=none", "setting=each", "sort=name", "metric=CS")


def snapshot() -> Snapshot:
    return Snapshot.of_scores("mine", scores(9), cards(9))


def page(of: Snapshot, query: str) -> TablePage:
    return table(of, BoardView.parse(of, [*parse_qsl(query), ("per", "all")]))


def odd_column(rng: np.random.Generator, size: int = 400) -> CellColumn:
    """Values of every kind: out of range, on the middle between two digits, without an end, of each heat, missing."""
    values = rng.choice([rng.uniform(-0.2, 1.3), 0.0, -0.0, 1.0, 0.0005, 0.6125, 0.61349999999999994, 12.5], size)
    values = np.where(rng.random(size) < 0.7, rng.integers(0, 20_001, size) / 20_000, values)
    low, high = values - rng.uniform(0, 0.1, size), values + rng.uniform(0, 0.1, size)
    low[rng.random(size) < 0.1] = np.nan
    odd = {
        3: Cell(None, status="failed", reason='it "broke" & fell'), 7: Cell(0.25, status="partial", reason="<2 of 3>"),
        11: Cell(0.5, 0.4, 0.6, status="predicted", reason="from others"), 13: Cell(0.5, reason="noted", status="ok"),
    }  # fmt: skip
    return CellColumn.of([values, low, high, np.full(size, np.nan)], rng.integers(NO_HEAT, HEATS + 1, size), odd)


@pytest.mark.parametrize("metric", ["P@1", "kbps"])
@pytest.mark.parametrize("intervals", [True, False])
def test_a_column_of_scores_is_what_its_cells_are(metric: str, intervals: bool) -> None:
    column = odd_column(np.random.default_rng(4))
    joined = ["".join(parts) for parts in zip(*score_parts(column, metric, intervals), strict=True)]
    assert joined == [score_cell(cell, metric, intervals) for cell in column.cells()]
    assert [column.cell(at) for at in range(len(column.value))] == column.cells()


def test_numbers_between_two_digits_are_rounded_as_python_rounds_them() -> None:
    values = np.arange(0, 20_001) / 20_000
    assert number_texts(values, "P@1") == [f"{100 * value:.1f}" for value in values.tolist()]


def test_exact_numbers_are_those_of_repr() -> None:
    rng = np.random.default_rng(5)
    values = np.concatenate([10.0 ** rng.uniform(-8, 20, 2000) * rng.choice([-1, 1], 2000), [0.0, -0.0, 1e16, 1e-5]])
    assert exact_texts(values) == [repr(value) for value in values.tolist()]
    assert exact_texts(np.array([0.5, np.nan, np.inf])) == ["0.5", "", "inf"]
    assert exact_texts(np.array([])) == []
    assert exact_texts(np.array([np.nan])) == [""]


@pytest.mark.parametrize("text", ["plain", "a, b", 'a "b"', "a\nb", "a\rb", ""])
def test_a_cell_of_csv_reads_back(text: str) -> None:
    assert next(csv.reader(io.StringIO(f"{csv_cell(text)},x\n", newline=""))) == [text, "x"]
    assert f"{csv_cell(text)},x\n" == csv_text(None, [[text, "x"]])


@pytest.mark.parametrize("query", VIEWS)
def test_lines_written_before_are_the_lines_written_now(query: str) -> None:
    used = snapshot()
    for sort in ("name", "rank", "parameters"):
        for order in ("", "reversed"):
            state = f"{query}&sort={sort}&order={order}"
            assert table_html(page(used, state)) == table_html(page(snapshot(), state))
            assert table_csv(page(used, state)) == table_csv(page(snapshot(), state))


@pytest.mark.parametrize("query", [*VIEWS, "family=odd"])
def test_the_file_has_every_number_of_the_lines(query: str) -> None:
    shown = page(snapshot(), query)
    records = table_records(shown)
    assert [record["system"] for record in records] == [row.system.card.name for row in shown.rows]
    read = list(csv.DictReader(io.StringIO(table_csv(shown))))
    assert len(read) == len(records)
    for line, record, row in zip(read, records, shown.rows, strict=True):
        for column, cell in zip(shown.columns, row.cells, strict=True):
            assert record[column.key] == cell.value
            assert record[f"{column.key} status"] == (cell.status or "absent")
        assert {name: text for name, text in line.items() if text} == {
            name: str(value) for name, value in record.items() if value not in (None, "")
        }
