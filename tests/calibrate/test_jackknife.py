"""Intervals and p-values from values without each unit: textbook cases, ends of the range, and agreement of the two."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from earmark.calibrate.jackknife import LEAST_UNITS, difference, interval, standard_error

SHARE = (0.0, 1.0)


def without_each(values):
    """The mean without each value."""
    values = np.asarray(values, float)
    return (values.sum() - values) / (len(values) - 1)


def test_the_error_of_a_mean_is_the_textbook_one():
    values = np.random.default_rng(0).normal(size=40)
    assert standard_error(without_each(values)) == pytest.approx(stats.sem(values), rel=1e-12)


def test_without_ends_the_interval_of_a_mean_is_students():
    values = np.random.default_rng(1).normal(3.0, 2.0, size=25)
    found = interval(values.mean(), without_each(values), (-math.inf, math.inf))
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.95, 24, values.mean(), stats.sem(values)))


def test_a_share_has_wilsons_interval():
    values = np.array([1.0] * 17 + [0.0] * 3)
    n = len(values)
    q = stats.t.ppf(0.975, n - 1)
    draws = n - 1  # the jackknife's error of a share is p (1 - p) / (n - 1)
    p = 0.85
    middle = (p + q * q / (2 * draws)) / (1 + q * q / draws)
    half = q / (1 + q * q / draws) * math.sqrt(p * (1 - p) / draws + q * q / (4 * draws**2))
    found = interval(p, without_each(values), SHARE)
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half), rel=1e-12)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_units_that_all_agree_are_not_certainty(value):
    found = interval(value, np.full(12, value), SHARE)
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low == pytest.approx(0.288, abs=0.01)
    assert value in (found.low, found.high)


def test_too_few_units_give_words_and_no_interval():
    found = interval(0.5, np.array([0.4, 0.5, 0.6, 0.5])[: LEAST_UNITS - 1], SHARE, "group")
    assert (found.low, found.high) == (None, None)
    assert found.reason == f"no interval: {LEAST_UNITS - 1} groups are too few, {LEAST_UNITS} are needed"


def test_a_unit_that_nothing_can_be_measured_without_gives_words():
    found = interval(0.5, np.array([0.4, 0.5, 0.6, np.nan, 0.5, 0.5]), SHARE)
    assert found.low is None
    assert found.reason == "no interval: without one of the clips it cannot be measured"


def test_a_value_that_no_unit_changes_gives_words():
    assert "no clip changes the value" in interval(0.5, np.full(9, 0.5), SHARE).reason


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.floats(-1.0, 1.0), min_size=LEAST_UNITS, max_size=30),
    st.sampled_from([(0.0, 1.0), (-1.0, 1.0)]),
)
def test_an_interval_holds_its_value_and_stays_in_the_range(values, ends):
    values = np.clip(values, *ends)
    found = interval(values.mean(), without_each(values), ends)
    if found.low is not None:
        assert ends[0] <= found.low <= values.mean() + 1e-12
        assert values.mean() - 1e-12 <= found.high <= ends[1]


@settings(max_examples=500, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(LEAST_UNITS, 40),
    st.integers(1, 20),
    st.floats(0.0, 0.5),
    st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (0.0, math.inf)]),
)
def test_interval_and_p_value_never_contradict_each_other(seed, units, comparisons, shift, ends):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0.0, 0.5, units) + shift, rng.uniform(0.0, 0.5, units)
    found = difference(a.mean(), b.mean(), without_each(a), without_each(b), ends, comparisons=comparisons)
    assert found.p_value is not None
    assert found.low is not None
    assert found.high is not None
    if abs(found.p_value - 0.05) > 1e-9:
        assert (found.p_value < 0.05) == (found.low > 0.0 or found.high < 0.0)
    back = difference(b.mean(), a.mean(), without_each(b), without_each(a), ends, comparisons=comparisons)
    assert (back.low, back.high, back.p_value) == pytest.approx((-found.high, -found.low, found.p_value))


def test_systems_that_agree_everywhere_are_not_told_apart():
    same = without_each(np.linspace(0, 1, 9))
    found = difference(0.5, 0.5, same, same, SHARE)
    assert (found.value, found.p_value, found.low) == (0.0, 1.0, None)


def test_a_difference_of_few_groups_is_judged_with_students_t():
    a, b = np.array([0.9, 0.8, 0.85, 0.95, 0.9, 0.88]), np.array([0.7, 0.65, 0.7, 0.72, 0.8, 0.69])
    found = difference(a.mean(), b.mean(), without_each(a), without_each(b), SHARE, unit="group")
    assert found.units == 6
    assert found.p_value == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=0.3)
