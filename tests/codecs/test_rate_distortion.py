"""Rates and scores together: BD-rate against numeric integration and exact cases, fronts, steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

from earmark.codecs.rate_distortion import Point, bd_rate, curves, monotonicity
from earmark.errors import InputError

RATES = np.array([6.0, 12.0, 24.0, 64.0])
SCORES = np.array([1.9, 3.5, 4.3, 4.5])


def integrated(rates_a, scores_a, rates_b, scores_b, steps=200_000):
    """The definition by a sum over many scores."""
    low, high = max(scores_a.min(), scores_b.min()), min(scores_a.max(), scores_b.max())
    grid = low + (np.arange(steps) + 0.5) * (high - low) / steps
    curve_a, curve_b = (
        PchipInterpolator(s[np.argsort(s)], np.log(r[np.argsort(s)]))(grid)
        for r, s in ((rates_a, scores_a), (rates_b, scores_b))
    )
    return np.exp((curve_b - curve_a).mean()) - 1


@pytest.mark.parametrize("factor", [2.0, 0.5, 1.0, 1.37])
def test_a_curve_moved_by_a_factor_in_rate_costs_that_factor(factor):
    assert bd_rate(RATES, SCORES, factor * RATES, SCORES).value == pytest.approx(factor - 1, abs=1e-12)
    # Distances, of which less is better, fall with the rate.
    assert bd_rate(RATES, -SCORES, factor * RATES, -SCORES).value == pytest.approx(factor - 1, abs=1e-12)


def test_straight_lines_have_a_closed_form():
    # ln rate = s and ln rate = 2 s between scores 0 and 1: exp(1 - 1/2) - 1.
    assert bd_rate(np.exp([0, 1]), [0, 1], np.exp([0, 2]), [0, 1]).value == pytest.approx(np.exp(0.5) - 1)


def test_it_is_what_numeric_integration_gives():
    rng = np.random.default_rng(4)
    for _ in range(20):
        rates_a, rates_b = (np.sort(rng.uniform(1, 100, n)) for n in (4, 6))
        scores_a, scores_b = (np.sort(rng.uniform(1, 4.6, n)) for n in (4, 6))
        shared = min(scores_a[-1], scores_b[-1]) - max(scores_a[0], scores_b[0])
        if shared < 0.1 * min(np.ptp(scores_a), np.ptp(scores_b)):
            continue
        found = bd_rate(rates_a, scores_a, rates_b, scores_b).value
        assert found == pytest.approx(integrated(rates_a, scores_a, rates_b, scores_b), rel=1e-4)
        there_and_back = (1 + found) * (1 + bd_rate(rates_b, scores_b, rates_a, scores_a).value)
        assert there_and_back == pytest.approx(1.0)


def test_the_order_of_the_settings_does_not_matter():
    order = [2, 0, 3, 1]
    wanted = bd_rate(RATES, SCORES, 1.5 * RATES, SCORES - 0.1).value
    assert bd_rate(RATES[order], SCORES[order], 1.5 * RATES, SCORES - 0.1).value == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("rates", "scores", "said"),
    [
        ([6, 12, 24], [1.9, 3.5, 3.4], "the second curve is not monotone: 3.5 at 12 kbps and 3.4 at 24 kbps"),
        ([6, 12, 24], [1.9, 1.9, 3.4], "not monotone"),
        ([6, 12, 24], [4.5, 4.6, 4.7], "share no range"),
        ([6, 12, 24], [4.46, 4.7, 5.2], "share only the scores from 4.46 to 4.5, less than 10% of the narrower one"),
        ([6], [3.0], "fewer than 2 points"),
        ([6, 6, 12], [1.0, 2.0, 3.0], "two points with the same rate"),
    ],
)
def test_what_has_no_bd_rate_says_why(rates, scores, said):
    found = bd_rate(RATES, SCORES, rates, scores)
    assert (found.value, found.status) == (None, "not_applicable")
    assert said in found.reason


def test_bad_rates_are_refused():
    for rates, scores in (([0, 1], [1, 2]), ([1, 2], [1, np.nan]), ([1, 2, 3], [1, 2])):
        with pytest.raises(InputError):
            bd_rate(RATES, SCORES, rates, scores)


def test_every_step_that_does_not_pay_is_listed():
    given = [
        Point("opus@24", "opus", 22.3, 4.31),
        Point("opus@6", "opus", 5.7, 1.94),
        Point("opus@12", "opus", 11.4, 3.49),
        Point("codec2@3.2", "codec2", 3.2, 1.30),
        Point("codec2@1.2", "codec2", 1.2, 1.32),
        Point("g722@64", "g722", 64.0, 4.3),
    ]
    families = curves(given)
    assert [point.system for point in families["opus"].points] == ["opus@6", "opus@12", "opus@24"]
    np.testing.assert_array_equal(families["codec2"].values, [1.32, 1.30])
    found = monotonicity(families, "pesq", higher_is_better=True)
    assert (found.kept, found.total) == (2, 3)
    (step,) = found.exceptions
    assert (step.low.system, step.high.system) == ("codec2@1.2", "codec2@3.2")
    assert str(step) == "codec2@1.2 (1.2 kbps) 1.32, codec2@3.2 (3.2 kbps) 1.3"
    assert monotonicity(families, "pesq", higher_is_better=True, tolerance=0.05).kept == 3
    assert monotonicity(families, "stft_distance", higher_is_better=False).kept == 1
