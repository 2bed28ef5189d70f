"""The interval of a mean over subsets: against a slow solution, by properties, and by counting what it covers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import t as student

from earmark.calibrate.jackknife import interval, wilson
from earmark.scores import Row, Scores, aggregate
from earmark.scores._combining import Around, combine

MANY = 10**7  # units: Student's quantile is the normal one


def solved(parts: list[Around], ends: tuple[float, float], sign: int) -> float:
    """The reach of the mean by bisection, from the equation as it is written: no algebra in common with `combine`."""
    arms = np.array([part.value - part.low if sign < 0 else part.high - part.value for part in parts])
    lows, highs = (np.array([getattr(part, name) for part in parts]) for name in ("low", "high"))
    values, units = np.array([part.value for part in parts]), np.array([part.units for part in parts])
    quantiles = student.ppf(0.975, units - 1)
    squares = ((highs - lows) / (2 * quantiles)) ** 2
    freedom = squares.sum() ** 2 / (squares**2 / (units - 1)).sum()
    ends_of_arms = np.where(values - lows >= highs - values, lows, highs)
    bends = (values - ends_of_arms) ** 2 / ((ends_of_arms - ends[0]) * (ends[1] - ends_of_arms))

    def excess(share: float) -> float:
        places = values + sign * share * arms
        errors = bends * (places - ends[0]) * (ends[1] - places) / quantiles**2
        return float((share * arms.sum()) ** 2 - student.ppf(0.975, freedom) ** 2 * errors.sum())

    if arms.sum() < 1e-12:  # values at an end, but for rounding
        return 0.0
    # Where every value is at an end, nothing moved is a solution as well: the other one is meant.
    start = 1e-9
    share = 1.0 if excess(1.0) <= 0 else brentq(excess, start, 1.0, xtol=1e-15) if excess(start) < 0 else 0.0
    return float(share * arms.sum() / len(parts))


@st.composite
def measured(draw: st.DrawFn) -> list[Around]:
    parts = []
    for _ in range(draw(st.integers(2, 8))):
        value = draw(st.one_of(st.sampled_from((0.0, 1.0)), st.floats(1e-6, 1.0 - 1e-6)))
        draws = draw(st.floats(5.0, 500.0))
        units = draw(st.integers(5, 200))
        parts.append(Around(value, *wilson(value, draws, float(student.ppf(0.975, units - 1))), units))
    return parts


@given(measured())
@settings(max_examples=60, deadline=None)
def test_the_reach_solves_its_equation_and_stays_between_its_bounds(parts: list[Around]) -> None:
    down, up = combine(parts, (0.0, 1.0))
    assert down == pytest.approx(solved(parts, (0.0, 1.0), -1), abs=1e-9)
    assert up == pytest.approx(solved(parts, (0.0, 1.0), 1), abs=1e-9)
    mean = sum(part.value for part in parts) / len(parts)
    lowest, highest = (sum(getattr(part, name) for part in parts) / len(parts) for name in ("low", "high"))
    assert lowest - 1e-12 <= mean - down <= mean <= mean + up <= highest + 1e-12
    assert combine(parts[::-1], (0.0, 1.0)) == pytest.approx((down, up), abs=1e-12)


def test_arms_too_short_to_be_squared_are_no_error() -> None:
    tiny = [Around(1e-200, 0.0, 2e-200, 9), Around(0.0, 0.0, 1e-190, 30)]
    down, up = combine(tiny, (0.0, 1.0))
    assert 0.0 <= down <= up <= 1e-190


def test_of_one_subset_it_is_its_own_and_of_equal_ones_wilson_s_of_them_pooled() -> None:
    one = Around(0.9, *wilson(0.9, 50, 1.96), 50)
    assert combine([one], (0.0, 1.0)) == pytest.approx((0.9 - one.low, one.high - 0.9))
    for value in (0.9, 0.98, 1.0):
        part = Around(value, *wilson(value, 50, 1.959964), MANY)
        low, high = wilson(value, 50 * 6, 1.959964)
        assert combine([part] * 6, (0.0, 1.0)) == pytest.approx((value - low, high - value), abs=1e-6)


def test_other_intervals_and_metrics_without_ends_combine_by_the_root_of_squares() -> None:
    plain = [Around(0.5, 0.47, 0.54), Around(0.6, 0.56, 0.63)]
    assert combine(plain, (0.0, 1.0)) == pytest.approx((math.hypot(0.03, 0.04) / 2, math.hypot(0.04, 0.03) / 2))
    units = [part._replace(units=MANY) for part in plain]
    assert combine(units) == pytest.approx(combine(plain), rel=1e-5)
    few = combine([part._replace(units=6) for part in plain])
    assert few[0] == pytest.approx(combine(plain)[0] * student.ppf(0.975, 10) / student.ppf(0.975, 5), rel=1e-3)
    missed = [Around(0.5, 0.51, 0.6), Around(0.5, 0.4, 0.6)]  # a bootstrap interval may miss its value
    assert combine(missed)[0] == pytest.approx(0.05)


def covered(
    values: np.ndarray, deviations: np.ndarray, units: int, truth: float, ends: tuple[float, float]
) -> tuple[float, float]:
    """Of data sets, [sets, subsets] of means of units with deviations: the share whose interval holds the truth, bent
    and by roots of squares."""
    held = [0, 0]
    for row, spread in zip(values, deviations, strict=True):
        parts = []
        for value, deviation in zip(row, spread, strict=True):
            # Leaving out units of these values moves the mean by (value - unit) / (units - 1).
            without = value + deviation * np.resize([1.0, -1.0], units) / math.sqrt(units * (units - 1))
            found = interval(float(value), without, ends)
            assert found.low is not None
            assert found.high is not None
            parts.append(Around(float(value), found.low, found.high, units))
        for place, of in enumerate((parts, [part._replace(units=None) for part in parts])):
            down, up = combine(of, ends)
            held[place] += bool(row.mean() - down <= truth <= row.mean() + up)
    return held[0] / len(values), held[1] / len(values)


def test_ninety_five_percent_of_the_means_are_covered() -> None:
    rng = np.random.default_rng(1)
    sets, subsets, units = 500, 12, 6
    draws = rng.normal(0.3, 1.0, (sets, subsets, units))
    share, plain = covered(draws.mean(-1), draws.std(-1, ddof=1), units, 0.3, (-math.inf, math.inf))
    assert 0.93 <= share <= 0.975 < plain
    errors = rng.random((sets, subsets, 60)) < 0.01
    right = 1.0 - errors.mean(-1)
    spread = np.sqrt(right * (1 - right) * 60 / 59)
    share, plain = covered(right, spread, 60, 0.99, (0.0, 1.0))
    assert plain < 0.93 < 0.95 <= share


def test_aggregate_bends_jackknife_intervals_alone() -> None:
    base = {"system": "s", "metric": "P@1", "value": 0.99}
    low, high = wilson(0.99, 100, float(student.ppf(0.975, 99)))
    rows = [
        Row(subset=name, low=low, high=high, interval="jackknife", unit="clip", units=100, **base) for name in "abcd"
    ]
    (bent,) = aggregate(Scores(tuple(rows)), "mean")
    others = [Row(subset=name, low=low, high=high, interval="bootstrap_queries", **base) for name in "abcd"]
    (plain,) = aggregate(Scores(tuple(others)), "mean")
    assert plain.low == pytest.approx(0.99 - (0.99 - low) / 2)
    assert bent.low > plain.low  # less where there is room
    assert bent.high > plain.high  # further where there is none


def test_harmonic_means_and_subsets_that_are_skipped() -> None:
    rows = [Row(subset=name, system="c", metric="overall", value=value, low=value - 0.01, high=value + 0.02)
            for name, value in zip("abc", (0.5, 0.8, 1.0), strict=True)]  # fmt: skip
    (row,) = aggregate(Scores(tuple(rows)), "mean", harmonic=True)
    assert row.value == pytest.approx(3 / (1 / 0.5 + 1 / 0.8 + 1))
    moved = [3 / (1 / (0.5 + d) + 1 / (0.8 + e) + 1 / (1.0 + f)) for d, e, f in 1e-5 * np.eye(3)]
    slopes = [(value - row.value) / 1e-5 for value in moved]
    assert row.value - row.low == pytest.approx(math.hypot(*slopes) * 0.01, rel=1e-3)  # type: ignore[operator]
    lost = [*rows[:2], Row(subset="c", system="c", metric="overall", status="failed", reason="broken")]
    refused, skipped = (
        aggregate(Scores(tuple(lost)), "mean", missing=way).rows[0]  # type: ignore[arg-type]
        for way in ("refuse", "skip")
    )
    assert (refused.status, refused.value) == ("not_applicable", None)
    assert skipped.value == pytest.approx(0.65)
    assert skipped.reason == "2 of 3 subsets; missing: c (failed)"


def test_intervals_that_reach_an_end_of_the_range_still_have_a_width() -> None:
    touching = Around(0.95, 0.90, 1.0, 100)
    near = touching._replace(high=1.0 - 1e-9, low=0.90 - 1e-8)
    assert combine([touching] * 2, (0.0, 1.0)) == pytest.approx(combine([near] * 2, (0.0, 1.0)), rel=1e-4)
    whole = Around(1.0, 0.0, 1.0, 9)  # neither arm says how the error shrinks
    assert combine([whole, touching], (0.0, 1.0))[0] > 0.4
    assert combine([Around(0.4, 0.4, 0.4, 9)] * 2, (0.0, 1.0)) == (0.0, 0.0)
