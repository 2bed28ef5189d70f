"""What is downloaded says what the table says, exactly, in every format; names cannot break any of them."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime

import pytest
from tests.board.scored import NASTY, snapshot

from earmark.board.boards.costs import pareto
from earmark.board.boards.pairs import compare
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.subsets import summarise
from earmark.board.boards.table import table
from earmark.board.boards.view import BoardView
from earmark.board.pages.files import (
    bibtex,
    comparison_records,
    pareto_records,
    records_latex,
    subset_records,
    table_latex,
    table_records,
    to_csv,
    to_json,
)
from earmark.board.records import System
from earmark.scores import Row, Scores
from earmark.submissions import SystemCard

WHOLE = snapshot()


def _page(query: str = ""):  # type: ignore[no-untyped-def]
    from urllib.parse import parse_qsl

    return table(WHOLE, BoardView.parse(WHOLE, parse_qsl(query)))


def test_csv_and_json_hold_the_exact_values() -> None:
    page = _page("show=subsets&setting=each&per=all")
    records = table_records(page)
    read = list(csv.DictReader(io.StringIO(to_csv(records))))
    loaded = json.loads(to_json({"board": "mine"}, records))
    assert loaded["board"] == "mine"
    assert len(read) == len(loaded["rows"]) == len(page.rows) == 12
    for line, entry, row in zip(read, loaded["rows"], page.rows, strict=True):
        assert line["system"] == entry["system"] == row.system.card.name
        for cell, column in zip(row.cells, page.columns, strict=True):
            assert (float(line[column.key]) if line[column.key] else None) == entry[column.key] == cell.value
            assert entry[f"{column.key} status"] == (cell.status or "absent")
            assert entry[f"{column.key} low"] == cell.low


def test_every_other_table_has_records_of_one_shape() -> None:
    for records in (
        comparison_records(compare(WHOLE, ["model-0", "model-5:cosine"])),
        pareto_records(pareto(WHOLE, "parameters")),
        subset_records(summarise(WHOLE, "cats")),
    ):
        assert records
        assert len({tuple(record) for record in records}) == 1
        json.loads(to_json({}, records))
        assert len(list(csv.reader(io.StringIO(to_csv(records))))) == len(records) + 1
        latex = records_latex(records, "A caption", "P@1")
        assert latex.count(r" \\") == len(records) + 1


def test_a_spreadsheet_takes_no_name_for_a_formula() -> None:
    text = to_csv([{"system": '=HYPERLINK("http://example.org")', "value": -0.5}, {"system": "-1+1", "value": 0.25}])
    lines = list(csv.reader(io.StringIO(text)))
    assert lines[1] == ['\'=HYPERLINK("http://example.org")', "-0.5"]
    assert lines[2] == ["'-1+1", "0.25"]


def test_latex_is_balanced_whatever_a_system_is_called() -> None:
    names = [NASTY, r"50 % of $x_1$ & \input{passwd} ~^#|*[a]"]
    rows = tuple(Row(system=name, subset=s, metric="P@1", value=0.5) for name in names for s in "abc")
    whole = Snapshot.of_scores("mine", Scores(rows))
    text = table_latex(table(whole, BoardView.parse(whole, [])))
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    bare = re.sub(r"\\(?:[A-Za-z]+|.)", "", text)  # without commands and escaped marks
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"[%#^_]|\$(?!-\$|\\?sim)", bare.replace("$$", "").replace("$-$", ""))
    assert r"\input" not in text
    assert text.count("&") - text.count(r"\&") == 3 * (len(table(whole, BoardView.parse(whole, [])).columns) + 2)


def test_partial_means_are_marked_and_ranks_have_their_columns() -> None:
    latex = table_latex(_page())
    assert latex.count(r"\textdagger{}") == 2  # in the one line that lacks a subset, and in the caption
    assert "dagger" not in table_latex(_page("q=model+1"))
    rows = (Row(system="a", subset="x", metric="P@1", value=0.5), Row(system="b", subset="y", metric="P@1", value=0.5))
    whole = Snapshot.of_scores("mine", Scores(rows))
    page = table(whole, BoardView.parse(whole, []))
    assert page.field.ranked == 0
    (header, *lines) = csv.reader(io.StringIO(to_csv(table_records(page))))
    assert header[:3] == ["rank", "rank_low", "rank_high"]
    assert [line[:3] for line in lines] == [["", "", ""]] * 2


def test_bibtex_of_a_title_with_marks_that_latex_reads() -> None:
    card = SystemCard("s", title="50% of a_b & #1 for $2")
    text = bibtex(System(1, "mine", "s", card, "ada", "", datetime(2026, 1, 2, tzinfo=UTC)), "https://x.org/a_b")
    assert r"title = {50\% of a\_b \& \#1 for \$2}" in text
    assert "url = {https://x.org/a_b}" in text


@pytest.mark.parametrize("citation", ["", "Ada and others, 2026", "@article{a,\n  title = {X}\n}"])
def test_bibtex_has_balanced_braces_and_the_address(citation: str) -> None:
    card = SystemCard("a{b}c\\d", authors=("Ada L.", "Bob"), year=2026, citation=citation)
    text = bibtex(
        System(1, "mine", "a-b.c", card, "ada", "", datetime(2026, 1, 2, tzinfo=UTC)), "https://x.org/b/mine/s/a"
    )
    assert text.count("{") == text.count("}")
    assert "@misc{a_b_c," in text
    assert "author = {Ada L. and Bob}" in text
    assert "url = {https://x.org/b/mine/s/a}" in text
    assert "\\" not in text
    assert text.startswith(citation) if citation.startswith("@") else (citation in text)
