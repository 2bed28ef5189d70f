"""Criteria on curves made by hand, on both sides of every threshold; the rules that put them together."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from earmark.generated.sanity import _criteria as criteria
from earmark.generated.sanity import rules
from earmark.generated.sanity._criteria import Criterion, Curve, merge
from earmark.generated.sanity._data import CHECKS

GRID = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])


def outcome(criterion: Criterion, *values: float, grid: np.ndarray = GRID) -> str:
    verdict = criterion.judge(Curve(grid[: len(values)], np.array(values)))
    assert verdict.outcome == "F" or verdict.slack >= 0
    assert verdict.outcome != "F" or not verdict.slack >= 0
    return verdict.outcome


def expect(criterion: Criterion, wanted: dict[tuple[float, ...], str]) -> None:
    assert {values: outcome(criterion, *values) for values in wanted} == wanted


def test_a_bell_is_high_at_its_centre_and_needs_one_end_at_the_bottom() -> None:
    expect(
        criteria.bell(0.0),
        {
            (0.0, 0.5, 1.0, 0.5, 0.0): "T",
            (0.75, 0.5, 1.0, 0.5, 0.5): "T",  # the left end is well above the minimum, the right one is not
            (0.75, 0.5, 1.0, 0.5, 0.75): "F",
            (0.75, 0.8, 1.0, 0.8, 0.75): "T",  # 0.25 above both ends
            (0.85, 0.85, 1.0, 0.5, 0.25): "F",  # 0.15 above one of them
            (0.0, 1.0, 1.0, 0.5, 0.0): "T",
            (0.0, 1.0625, 1.0, 0.5, 0.0): "T",  # a little higher beside the centre
            (0.0, 1.125, 1.0, 0.5, 0.0): "F",
        },
    )


def test_up_and_down_need_both_ends_near_their_extremes() -> None:
    rising = {
        (0.0, 0.25, 0.5, 0.75, 1.0): "T",
        (0.5, 0.5, 0.5, 0.5, 0.75): "T",
        (0.5, 0.5, 0.5, 0.5, 0.6875): "F",
        (0.25, 0.1875, 0.5, 0.75, 1.0): "T",
        (0.25, 0.125, 0.5, 0.75, 1.0): "F",  # the left end is 0.125 above the minimum
        (0.0, 0.25, 0.5, 1.0625, 1.0): "T",
        (0.0, 0.25, 0.5, 1.125, 1.0): "F",
    }
    expect(criteria.UP, rising)
    expect(criteria.DOWN, {values[::-1]: letter for values, letter in rising.items()})


def test_down_from_a_quantile_must_have_begun_to_fall_there() -> None:
    expect(
        criteria.down_from(0.5),
        {(1.0, 1.0, 0.875, 0.5, 0.0): "T", (1.0, 1.0, 0.9375, 0.5, 0.0): "F", (1.0, 0.5, 0.5, 0.5, 0.875): "F"},
    )


def test_the_quantile_is_the_nearest_grid_value_and_the_smaller_of_two() -> None:
    dropped = np.arange(10.0)
    assert criteria.quantile_value(Curve(dropped, dropped), 0.5) == 4
    fading = np.linspace(0, 1, 50)
    assert criteria.quantile_value(Curve(fading, fading), 0.95) == pytest.approx(47 / 49)


def test_flat_and_settled_curves() -> None:
    expect(criteria.FLAT, {(0.5, 0.5625, 0.5, 0.5, 0.5): "F", (0.5, 0.53125, 0.5, 0.5, 0.5): "T"})
    expect(criteria.SETTLE, {(0.0, 1.0, 0.5, 0.53125, 0.5): "T", (0.5, 0.5, 0.5625, 0.5, 0.5): "F"})
    sizes = CHECKS["torus"].grid(CHECKS["torus"].subcases[0], "full")
    late = np.where(sizes >= 1128, 0.5, 0.0)
    assert outcome(criteria.SETTLE, *late, grid=sizes) == "T"
    assert outcome(criteria.SETTLE, *np.where(sizes > 1128, 0.5, 0.0), grid=sizes) == "F"


def test_values_within_a_twentieth() -> None:
    edge = 0.95
    assert outcome(criteria.ONE_LEFT, edge, 0, 0) == outcome(criteria.ONE_RIGHT, 0, 0, 1.05) == "T"
    assert outcome(criteria.ONE_LEFT, 0.9499, 0, 0) == outcome(criteria.ONE_RIGHT, 0, 0, 1.0501) == "F"
    assert outcome(criteria.ZERO_LEFT, -0.05, 1, 1) == outcome(criteria.ZERO_RIGHT, 1, 1, 0.05) == "T"
    assert outcome(criteria.ZERO_LEFT, -0.0501, 1, 1) == outcome(criteria.ZERO_RIGHT, 1, 1, 0.0501) == "F"
    assert outcome(criteria.near_at_end(0.2), 1, 1, 0.24) == "T"
    assert outcome(criteria.near_at_end(0.2), 1, 1, 0.14) == "F"
    assert outcome(criteria.one_at(1.0), 0, 0, 0, 1, 0) == "T"


def test_the_reference_is_the_nearest_grid_value() -> None:
    radii = np.linspace(0.1, 1.9, 51)
    assert 1.0 not in radii  # 0.9999999999999999
    values = np.where(np.abs(radii - 1) < 1e-9, 1.0, 0.0)
    assert outcome(criteria.bell(1.0), *values, grid=radii) == "T"


def test_low_and_high_readings_of_coverage() -> None:
    bell_or_up = criteria.bell_or_up(0.0)
    assert outcome(bell_or_up, 0, 0.5, 1, 0.5, 0) == "L"
    assert outcome(bell_or_up, 0, 0.5, 1, 1, 1) == "H"
    assert outcome(bell_or_up, 0, 0.5, 1, 0.9, 0.85) == "F"  # falls by 0.15: neither
    assert outcome(criteria.DOWN_OR_FLAT, 1, 0.8, 0.6, 0.5, 0.5) == "L"
    assert outcome(criteria.DOWN_OR_FLAT, 1, 1, 1, 0.98, 0.96) == "H"
    assert outcome(criteria.DOWN_OR_FLAT, 1, 1, 1, 1, 0.9) == "F"
    assert [outcome(criteria.WIDE_RIGHT, 0, 0, value) for value in (0.04, 0.96, 0.5)] == ["L", "H", "F"]
    assert [outcome(criteria.WIDE_LEFT, value, 1, 1) for value in (0.04, 0.96, 0.5)] == ["L", "H", "F"]


def test_a_missing_score_fails_where_it_is_looked_at_and_only_there() -> None:
    hole = float("nan")
    for criterion in (criteria.bell(0.0), criteria.FLAT, criteria.DOWN, criteria.DOWN_OR_FLAT, criteria.down_from(0.5)):
        assert outcome(criterion, 1, hole, 1, 0.5, 0) == "F"
    assert outcome(criteria.bell_or_up(0.0), 0, hole, 1, 1, 1) == "F"
    assert outcome(criteria.ONE_LEFT, hole, 1, 1) == outcome(criteria.WIDE_LEFT, hole, 1, 1) == "F"
    assert outcome(criteria.SETTLE, hole, 0.5, 0.5, 0.5, 0.5) == "T"
    assert outcome(criteria.ONE_LEFT, 1, hole, hole) == "T"


def test_slack_is_the_distance_to_the_threshold() -> None:
    curve = Curve(GRID, np.array([0.0, 0.5, 1.0, 0.5, 0.7]))
    assert criteria.bell(0.0).judge(curve).slack == pytest.approx(0.1)  # 0.3 above the right end, 0.2 needed
    assert criteria.ONE_LEFT.judge(curve).slack == pytest.approx(-0.95)


@pytest.mark.parametrize(
    ("outcomes", "cell"),
    [
        ("TTT", "T"),
        ("TLT", "L"),
        ("HTH", "H"),
        ("LTH", "F"),
        ("TFL", "F"),
        ("LLL", "L"),
        ("FFF", "F"),
    ],
)
def test_outcomes_merge_into_one_cell(outcomes: str, cell: str) -> None:
    assert merge(outcomes) == cell  # type: ignore[arg-type]


def test_no_outcome_is_no_cell() -> None:
    with pytest.raises(ValueError, match="at least one"):
        merge([])


@pytest.mark.parametrize("kind", ["fidelity", "coverage"])
@pytest.mark.parametrize("edition", ["amended", "original"])
def test_there_are_thirty_cells(kind: rules.Kind, edition: rules.Edition) -> None:
    cells = rules.cells(kind, edition)
    assert Counter(name.desideratum for name in cells) == {
        "Purpose": 14,
        "Bounds": 13,
        "Hyperparam.": 1,
        "Data": 1,
        "Invariance": 1,
    }


def test_what_the_amendments_change_and_nothing_else() -> None:
    changed = set()
    for kind in ("fidelity", "coverage"):
        amended, original = rules.cells(kind), rules.cells(kind, "original")
        for name in amended:
            said = [[(line.subcase, line.test.name) for line in cells[name]] for cells in (amended, original)]
            if said[0] != said[1]:
                changed.add((kind, name.desideratum, name.check))
    assert changed == {
        ("fidelity", "Purpose", "std"),
        ("fidelity", "Bounds", "std"),
        ("coverage", "Purpose", "std"),
        ("coverage", "Bounds", "std"),
        ("coverage", "Purpose", "invention"),
        ("coverage", "Bounds", "invention"),
    }
    assert rules.subcases("std") == ["d=1", "d=64"]
    assert rules.subcases("std", "original") == ["d=1", "d=8", "d=64"]
