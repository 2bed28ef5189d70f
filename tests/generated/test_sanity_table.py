"""The table: published letters, counts, agreement, and how scores become cells."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from earmark.generated.sanity import CHECKS, Sanity
from earmark.generated.sanity.columns import COVERAGE, FIDELITY, Column, choose
from earmark.generated.sanity.rules import subcases
from earmark.generated.sanity.table import judged
from earmark.runs.journal import Trial as Place
from earmark.runs.journal import TrialScore as Score

Scores = dict[Place, Score]


def empty(columns: list[Column] | None = None) -> Sanity:
    return judged(columns or choose(None), list(CHECKS), {}, grid="thin")


def filled(column: Column, check: str, value: float, repeats: int = 1) -> Scores:
    """The same score at every place of a check."""
    places = [
        Place(column.key, check, subcase, format(at, ".12g"), repeat)
        for subcase in subcases(check)
        for at in CHECKS[check].grid(CHECKS[check].subcase(subcase), "thin")
        for repeat in range(repeats)
    ]
    return {place: Score(place, value) for place in places}


def test_the_six_printed_counts_follow_from_the_published_cells() -> None:
    """Table 1 of the GICDM paper, from Tables 6 and 7."""
    result = empty()
    printed = {
        "precision": (6, 3, 2),
        "clipped_density": (8, 8, 2),
        "clipped_density+gicdm": (10, 11, 2),
        "recall": (5, 2, 0),
        "clipped_coverage": (8, 9, 1),
        "clipped_coverage+gicdm": (10, 11, 1),
    }
    for name, counts in printed.items():
        tallies = [result.passed(name, group, published=True) for group in ("Purpose", "Bounds", "Other")]
        assert [tally.of for tally in tallies] == [14, 13, 3]
        assert tuple(tally.passed for tally in tallies) == counts


def test_every_published_cell_is_found_once() -> None:
    result = empty()
    assert len(result.columns) == 24
    assert len(result.cells) == 24 * 30
    assert all(cell.published in ("T", "F", "L", "H") for cell in result.cells)
    assert all(cell.outcome is None and cell.agrees is None for cell in result.cells)
    assert {cell.published for cell in result.cells if cell.column.kind == "fidelity"} == {"T", "F"}


def test_columns_are_those_of_the_paper() -> None:
    names = [column.name for column in choose(None)]
    without = {"alpha_precision", "precision_cover", "beta_recall", "recall_cover"}
    assert names == [
        name
        for metric in (*FIDELITY, *COVERAGE)
        for name in ([metric] if metric in without else [metric, f"{metric}+gicdm"])
    ]
    literal = choose(["clipped_density_literal"])
    assert [(column.name, column.printed) for column in literal] == [
        ("clipped_density_literal+gicdm", ("Clipped Density", "1"))
    ]


def test_a_cell_says_what_decided_and_by_how_much() -> None:
    (column,) = choose(["density"], ["none"])
    scores = filled(column, "mean", 0.5, repeats=3)
    for place in list(scores):
        if place.value == "0":
            scores[place] = Score(place, 0.97 if place.subcase != "d=8" else 0.94)
    result = judged([column], ["mean"], scores, grid="thin", repeats=3)
    purpose, bounds = result.cells
    assert (purpose.outcome, purpose.published, purpose.agrees, purpose.repeats) == ("T", "T", True, 3)
    assert purpose.slack == pytest.approx(0.1)  # one end may be 0.1 above the minimum, and is at it
    assert (bounds.outcome, bounds.agrees) == ("F", False)
    assert bounds.decided_by.startswith("d=1: 0 at the left end")
    assert bounds.slack == pytest.approx(-0.45)
    assert result.agreement("density") == (1, 2)
    assert result.differences() == [bounds]
    rows = list(csv.DictReader(io.StringIO(result.to_csv())))
    assert [row["outcome"] for row in rows] == ["T", "F"]
    assert float(rows[1]["slack"]) == pytest.approx(-0.45)


def test_the_mean_is_judged_and_not_the_repeats() -> None:
    """Two repeats that both fail at 1 have a mean that passes, and repeats beyond those asked for are left out."""
    (column,) = choose(["density"], ["none"])
    scores = filled(column, "mode_collapse", 0.0, repeats=3)
    for place in list(scores):
        if place.value == "0":
            scores[place] = Score(place, (0.9, 1.1, 9.0)[place.repeat])
    assert judged([column], ["mode_collapse"], scores, grid="thin", repeats=2).outcome(
        "density", "Bounds", "mode_collapse"
    ) == "T"  # fmt: skip
    assert judged([column], ["mode_collapse"], scores, grid="thin", repeats=3).outcome(
        "density", "Bounds", "mode_collapse"
    ) == "F"  # fmt: skip


def test_low_in_one_dimension_and_high_in_another_is_a_failure() -> None:
    (column,) = choose(["coverage"], ["none"])
    scores = filled(column, "mode_collapse", 1.0)
    assert judged([column], ["mode_collapse"], scores, grid="thin", repeats=1).cells[0].outcome == "H"
    for place in list(scores):
        if place.subcase == "d=8":
            scores[place] = Score(place, 1.0 - float(place.value) / 5)
    cell = judged([column], ["mode_collapse"], scores, grid="thin", repeats=1).cells[0]
    assert (cell.outcome, cell.slack, cell.decided_by) == ("F", None, "L (d=8) beside H (d=64)")


def test_one_missing_place_leaves_the_cell_open() -> None:
    (column,) = choose(["density"], ["none"])
    scores = filled(column, "scaling", 0.0)
    for wanted in ("T", None):
        result = judged([column], ["scaling"], scores, grid="thin", repeats=1)
        assert [cell.outcome for cell in result.cells] == [wanted, wanted]
        scores.pop(next(iter(scores)))


def test_curves_are_kept_with_their_repeats() -> None:
    (column,) = choose(["density"], ["none"])
    result = judged([column], ["scaling"], filled(column, "scaling", 0.25, 2), grid="thin", repeats=5)
    found = result.curves["density", "scaling", ""]
    assert (found.curve.values == 0.25).all()
    assert (found.repeats == 2).all()
    assert found.curve.grid == pytest.approx(10.0 ** np.linspace(-3, 3, 10))
