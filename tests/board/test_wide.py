"""Boards of many subsets: work grows with their number and not with its square, and pages show the first of them."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from tests.board.test_blind import One

from earmark.board.boards import BoardView, Snapshot, compare, table
from earmark.board.boards.analyses import matrix_of
from earmark.board.boards.subsets import summarise
from earmark.board.pages.assets import page_templates
from earmark.board.pages.boards import Reader, Source
from earmark.board.pages.comparisons import compare_page
from earmark.board.pages.subsets import subsets_page
from earmark.board.pages.systems import system_page
from earmark.errors import UsageError
from earmark.scores import Row, Scores

FEW, MANY = 250, 2000


def _scores(subsets: int) -> Scores:
    return Scores(
        tuple(
            Row(suite="wide", subset=f"subset {place:05d}", system=f"m{number}", distance=distance, metric=metric,
                value=((place * 7919 + number * 31) % 997) / 997)
            for number in range(4) for metric in ("P@1", "GSR") for distance in ("cosine", "spearman")
            for place in range(subsets)
        )
    )  # fmt: skip


def _refused(snapshot: Snapshot) -> None:
    with pytest.raises(UsageError) as refusal:
        BoardView.parse(snapshot, [("over", "subset:nowhere")])
    assert len(str(refusal.value)) < 1500


def _reader(snapshot: Snapshot) -> Reader:
    return Reader(Source(One(snapshot)), page_templates("Board"))


WORK: dict[str, Callable[[Snapshot, Scores], object]] = {
    "snapshot": lambda snapshot, scores: Snapshot.of_scores("wide", scores),
    "view": lambda snapshot, scores: BoardView.parse(snapshot, [("over", "subset:subset 00007"), ("metric", "GSR")]),
    "refusal": lambda snapshot, scores: _refused(snapshot),
    "ranks": lambda snapshot, scores: table(snapshot, BoardView.parse(snapshot, [("setting", "each")])),
    "whole table": lambda snapshot, scores: _reader(snapshot).board_file("wide", [("show", "subsets")], "csv"),
    "page": lambda snapshot, scores: _reader(snapshot).board("wide", [("show", "subsets")]),
    "subsets": lambda snapshot, scores: subsets_page(_reader(snapshot), "wide"),
    "subset": lambda snapshot, scores: summarise(snapshot, "subset 00003"),
    "system": lambda snapshot, scores: system_page(_reader(snapshot), "wide", "m1", []),
    "comparison": lambda snapshot, scores: compare(snapshot, ["m1", "m2", "m3"]),
    "comparison page": lambda snapshot, scores: compare_page(_reader(snapshot), "wide", [("s", "m1"), ("s", "m2")]),
    "matrix": lambda snapshot, scores: matrix_of(snapshot),
}


def _seconds(work: Callable[[Snapshot, Scores], object], scores: Scores) -> float:
    best = float("inf")
    for _ in range(3):
        snapshot = Snapshot.of_scores("wide", scores)
        started = time.process_time()
        work(snapshot, scores)
        best = min(best, time.process_time() - started)
    return best


@pytest.fixture(scope="module")
def two() -> tuple[Scores, Scores]:
    return _scores(FEW), _scores(MANY)


@pytest.mark.parametrize("name", WORK)
def test_work_grows_with_the_number_of_subsets(name: str, two: tuple[Scores, Scores]) -> None:
    """Eight times the subsets: eight times the work if it is linear, 64 times if it is quadratic."""
    few, many = (_seconds(WORK[name], scores) for scores in two)
    assert many < 24 * max(few, 0.002)


def test_pages_show_the_first_subsets_and_files_all() -> None:
    snapshot = Snapshot.of_scores("wide", _scores(300))
    page = table(snapshot, BoardView.parse(snapshot, [("show", "subsets")]))
    assert (sum(column.kind == "subset" for column in page.columns), page.cut) == (100, 100)
    assert "The first 100 subsets have columns" in _reader(snapshot).board("wide", [("show", "subsets")]).body.decode()
    whole = table(snapshot, BoardView.parse(snapshot, [("show", "subsets")]), whole=True)
    assert (sum(column.kind == "subset" for column in whole.columns), whole.cut) == (300, 0)
