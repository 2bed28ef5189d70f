"""Every state of a table is a URL and back; lines, order and cells against plain Python over the rows."""

from __future__ import annotations

import itertools
from urllib.parse import parse_qsl

import numpy as np
import pytest
from tests.board.scored import SUBSETS, scores, snapshot

from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.table import TablePage, facets, table
from earmark.board.boards.view import PER_PAGE, BoardView
from earmark.errors import UsageError
from earmark.scores import Row, Scores

WHOLE = snapshot()


def _view(**given: str) -> BoardView:
    return BoardView.parse(WHOLE, list(given.items()))


def _shown(whole: Snapshot, query: str) -> TablePage:
    return table(whole, BoardView.parse(whole, parse_qsl(query)))


def _names(page: TablePage) -> list[str]:
    return [row.system.card.name for row in page.rows]


def test_the_plain_view_needs_no_query() -> None:
    view = BoardView.parse(WHOLE, [])
    assert view.query() == ""
    assert (view.metric, view.over, view.setting, view.protocol) == ("P@1", "mean", "best", "all")
    assert view.address() == "/b/mine"


def test_every_view_survives_its_address() -> None:
    choices = {
        "metric": ["", "CS"], "setting": ["", "each", "cosine"], "q": ["", "model é&=? 3"], "family": ["", "odd"],
        "training": ["", "unknown"], "size": ["", "small"], "provenance": ["", "self-reported"],
        "show": ["", "none", "subsets,card"], "sort": ["", "subset:rain"], "order": ["", "reversed"],
        "page": ["", "3"], "per": ["", "all"],
    }  # fmt: skip
    rng = np.random.default_rng(0)
    for _ in range(300):
        given = {name: str(rng.choice(texts)) for name, texts in choices.items()}
        view = BoardView.parse(WHOLE, list(given.items()))
        again = BoardView.parse(WHOLE, parse_qsl(view.query(), keep_blank_values=True))
        assert again == view
        assert again.query() == view.query()


def test_changes_of_a_view_start_at_its_first_page() -> None:
    view = _view(page="3", q="model")
    assert view.query(sort="name") == "q=model&sort=name"
    assert view.query(page=4) == "q=model&page=4"


@pytest.mark.parametrize(
    "query",
    "metric=P@2 over=nothing setting=manhattan training=maybe size=giant page=-1 per=7 show=all order=random".split(),
)
def test_a_wrong_value_is_refused_with_a_sentence(query: str) -> None:
    name, text = query.split("=")
    with pytest.raises(UsageError, match=name):
        _view(**{name: text})


def test_a_value_that_is_too_long_is_refused() -> None:
    with pytest.raises(UsageError, match="page"):
        _view(page="9" * 30)
    with pytest.raises(UsageError, match="longer"):
        _view(q="x" * 201)


def test_unknown_names_are_ignored_and_what_a_metric_lacks_becomes_the_usual() -> None:
    assert _view(utm_source="x", format="csv").query() == ""
    rows = (
        *scores().rows,
        Row(suite="mine", subset="words", system="model 1", metric="wer", value=0.2, protocol="reference"),
    )
    whole = Snapshot.of_scores("mine", Scores(rows))
    view = BoardView.parse(whole, [("metric", "wer"), ("setting", "cosine"), ("protocol", "all")])
    assert (view.setting, view.protocol) == ("", "reference")


@pytest.mark.parametrize("order", ["", "reversed"])
@pytest.mark.parametrize("subset", SUBSETS)
def test_sorting_by_a_subset_is_sorting_the_rows(subset: str, order: str) -> None:
    for metric, distance in itertools.product(("P@1", "CS"), ("cosine", "euclidean")):
        page = _shown(WHOLE, f"metric={metric}&setting={distance}&sort=subset:{subset}&order={order}")
        rows = scores().select(metric=metric, distance=distance, subset=subset, status="ok").rows
        best_first = sorted(rows, key=lambda row: row.value or 0, reverse=(metric == "P@1") != (order == "reversed"))
        assert _names(page)[: len(rows)] == [row.system for row in best_first]
        assert set(_names(page)[len(rows) :]) == {f"model {n}" for n in range(6)} - {row.system for row in rows}


def test_sorting_by_what_the_card_says_puts_the_unknown_last() -> None:
    for order, expected in (("", "012453"), ("reversed", "542103")):
        page = _shown(WHOLE, f"sort=parameters&order={order}")
        assert "".join(name[-1] for name in _names(page)) == expected
    assert _names(_shown(WHOLE, "sort=name&order=reversed")) == [f"model {n}" for n in range(5, -1, -1)]
    with pytest.raises(UsageError, match="no column"):
        _shown(WHOLE, "sort=subset:nowhere")
    with pytest.raises(UsageError, match="no column"):
        _shown(WHOLE, "sort=nothing")


def test_ranks_come_first_in_order_and_the_unranked_after_them() -> None:
    page = _shown(WHOLE, "")
    ranks = [row.rank for row in page.rows]
    assert ranks == [*range(1, 6), 0]
    assert page.rows[-1].system.card.name == "model 5"
    assert page.rows[-1].unranked == "no rank: 4 of 5 subsets; without rain"
    assert page.rows[-1].cells[0].status == "partial"


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("family=odd", "135"),
        ("training=yes", "03"),
        ("training=unknown", "25"),
        ("licence=MIT", "01"),
        ("size=small", "01245"),
        ("size=unknown", "3"),
        ("q=model+4", "4"),
        ("q=ADA", "4"),
        ("q=odd", "135"),
        ("q=nothing+like+it", ""),
        ("provenance=printed", ""),
        ("provenance=self-reported", "012345"),
        ("family=odd&q=3", "3"),
    ],
)
def test_filters_leave_lines_out_and_change_no_rank(query: str, left: str) -> None:
    page = _shown(WHOLE, query)
    everyone = {row.system.slug: row.rank for row in _shown(WHOLE, "").rows}
    assert sorted(name[-1] for name in _names(page)) == sorted(left)
    assert page.total == len(left)
    assert all(row.rank == everyone[row.system.slug] for row in page.rows)


def test_cells_say_what_the_rows_say() -> None:
    page = _shown(WHOLE, "setting=euclidean&show=subsets")
    columns = {column.key: place for place, column in enumerate(page.columns)}
    by_name = {row.system.card.name: row for row in page.rows}
    for row in scores().select(metric="P@1", distance="euclidean"):
        cell = by_name[row.system].cells[columns[f"subset:{row.subset}"]]
        assert (cell.value, cell.low, cell.high, cell.lift) == (row.value, row.low, row.high, row.lift)
        assert (cell.status, cell.reason) == (row.status, row.reason)
    gone = by_name["model 5"].cells[columns["subset:rain"]]
    assert (gone.value, gone.status, gone.reason) == (None, "", "not measured")


def test_other_metrics_and_lift_stand_beside() -> None:
    page = _shown(WHOLE, "show=metrics")
    assert [column.key for column in page.columns] == ["mean:mean", "metric:CS"]
    assert page.lifted
    line = page.rows[0]
    other = _shown(WHOLE, "metric=CS")
    mean = next(row.cells[0].value for row in other.rows if row.system.slug == line.system.slug)
    assert line.cells[1].value == mean


def test_pages_are_parts_of_the_whole() -> None:
    rows = tuple(
        Row(suite="big", subset=subset, system=f"s{n:03d}", metric="P@1", value=(n * 7919 % 251) / 251)
        for n in range(250)
        for subset in ("a", "b", "c")
    )
    whole = Snapshot.of_scores("big", Scores(rows))
    everything = _shown(whole, "per=all")
    assert (everything.pages, len(everything.rows)) == (1, 250)
    parts = [_shown(whole, f"page={number}") for number in (1, 2, 3)]
    assert [len(part.rows) for part in parts] == [PER_PAGE, PER_PAGE, 50]
    assert [row for part in parts for row in part.rows] == list(everything.rows)
    assert _shown(whole, "page=99").view.page == 3


def _gardens(**values: tuple[float, ...]) -> Snapshot:
    """Systems by name, each with its values on subsets; a subset's name says who has it."""
    rows = tuple(
        Row(suite="mine", subset=subset, system=system, metric="P@1", value=value)
        for subset, given in values.items()
        for system, value in zip("abcd", given, strict=False)
        if value
    )
    return Snapshot.of_scores("mine", Scores(rows))


def test_a_system_with_other_subsets_only_stays_in_the_table_and_takes_nobodys_rank() -> None:
    whole = _gardens(garden=(0.5, 0.6), forest=(0, 0, 0.9))
    page = _shown(whole, "show=subsets")
    assert [(row.system.slug, row.rank) for row in page.rows] == [("b", 1), ("a", 2), ("c", 0)]
    last = page.rows[-1]
    assert last.cells[0].value is None
    assert last.unranked == "no rank: 0 of 1 subsets; without garden"
    assert [cell.value for cell in last.cells[1:]] == [None, 0.9]
    single = _shown(whole, "over=subset:forest&show=subsets")
    assert [(row.system.slug, row.rank) for row in single.rows] == [("c", 1), ("b", 0), ("a", 0)]  # by the mean
    assert [column.key for column in single.columns] == ["mean:subset:forest", "subset:garden"]


def test_systems_without_the_metric_are_counted() -> None:
    rows = (*scores().rows, Row(suite="mine", subset="birds", system="late", metric="CS", value=0.2))
    whole = Snapshot.of_scores("mine", Scores(rows))
    assert (_shown(whole, "").elsewhere, _shown(whole, "metric=CS").elsewhere) == (1, 0)
    assert _shown(whole, "q=model+1").elsewhere == 1


def test_facets_offer_what_there_is() -> None:
    assert facets(WHOLE) == (("even", "odd"), ("MIT",), ("self-reported",))
