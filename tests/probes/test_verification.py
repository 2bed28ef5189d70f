"""EER and minDCF against every threshold tried by hand, scikit-learn's curve, and known distributions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.metrics import roc_curve

from earmark.errors import InputError
from earmark.probes._verification import Trials, curve, eer, error_intervals, min_dcf


def slow_points(scores: np.ndarray, same: np.ndarray) -> list[tuple[float, float]]:
    """(miss, false) at every score and beyond the last, counted trial by trial."""
    points = []
    for threshold in [*sorted(set(scores)), np.inf]:
        points.append((float(np.mean(scores[same] < threshold)), float(np.mean(scores[~same] >= threshold))))
    return points


def slow_eer(scores: np.ndarray, same: np.ndarray) -> float:
    points = slow_points(scores, same)
    for (miss, false), (next_miss, next_false) in pairwise(points):
        if next_miss >= next_false:
            gap, change = false - miss, (next_miss - miss) + (false - next_false)
            return miss + (next_miss - miss) * gap / change
    raise AssertionError("the curve always crosses")


def slow_cost(scores: np.ndarray, same: np.ndarray, prior: float) -> float:
    return min(prior * miss + (1 - prior) * false for miss, false in slow_points(scores, same)) / min(prior, 1 - prior)


cases = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=25).filter(
    lambda trials: len({same for _, same in trials}) == 2
)


@settings(max_examples=150, deadline=None)
@given(cases, st.randoms())
def test_rates_are_those_of_all_thresholds_with_ties_in_any_order(
    cases: list[tuple[int, bool]], random: object
) -> None:
    scores, same = (np.array(column) for column in zip(*cases, strict=True))
    found = curve(Trials(scores.astype(float), same))
    assert eer(found) == pytest.approx(slow_eer(scores, same), abs=1e-12)
    assert min_dcf(found) == pytest.approx(slow_cost(scores, same, 0.05), abs=1e-12)
    assert min_dcf(found, 0.5) == pytest.approx(slow_cost(scores, same, 0.5), abs=1e-12)
    order = np.random.default_rng(len(cases)).permutation(len(cases))
    assert eer(curve(Trials(scores[order].astype(float), same[order]))) == pytest.approx(eer(found), abs=1e-12)
    other = eer(curve(Trials(-scores.astype(float), same)))
    assert 0.0 <= eer(found) <= 1.0
    assert other == pytest.approx(1.0 - eer(found), abs=1e-12)


def test_the_curve_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    same = rng.random(400) < 0.2
    scores = rng.normal(size=400) + 1.2 * same
    false, found, _ = roc_curve(same, scores, drop_intermediate=False)
    expected = brentq(lambda x: 1 - x - np.interp(x, false, found), 0, 1)
    assert eer(curve(Trials(scores, same))) == pytest.approx(expected, abs=1e-9)


def test_two_normals_two_deviations_apart_meet_at_sixteen_percent() -> None:
    rng = np.random.default_rng(1)
    scores = np.r_[rng.normal(2, 1, 40_000), rng.normal(0, 1, 40_000)]
    assert eer(curve(Trials(scores, np.arange(80_000) < 40_000))) == pytest.approx(norm.cdf(-1), abs=0.004)


@pytest.mark.parametrize(("scores", "expected"), [([3, 2, 1, 0], 0.0), ([0, 1, 2, 3], 1.0), ([1, 1, 1, 1], 0.5)])
def test_perfect_reversed_and_blind(scores: list[float], expected: float) -> None:
    found = curve(Trials(np.array(scores, float), np.array([True, True, False, False])))
    assert eer(found) == expected
    assert min_dcf(found) == (0.0 if expected == 0.0 else 1.0)


def test_one_kind_of_trials_or_nan_is_no_rate() -> None:
    with pytest.raises(InputError, match="one speaker and of two"):
        curve(Trials(np.ones(3), np.ones(3, bool)))
    with pytest.raises(InputError, match="not a number"):
        curve(Trials(np.array([np.nan, 1.0]), np.array([True, False])))


def test_intervals_draw_speakers_and_cover_what_more_speakers_show() -> None:
    def voices(speakers: int, seed: int) -> Trials:
        rng = np.random.default_rng(seed)
        who = np.repeat(np.arange(speakers), 4)
        vectors = rng.normal(size=(speakers, 8))[who] + 0.9 * rng.normal(size=(len(who), 8))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        one, two = np.triu_indices(len(who), 1)
        return Trials((vectors @ vectors.T)[one, two], who[one] == who[two], who[one], who[two])

    truth = eer(curve(voices(400, 99)))
    covered, widths = 0, []
    for seed in range(20):
        low, high = error_intervals(voices(12, seed), 60, 0).eer
        assert low is not None
        assert high is not None
        covered += low <= truth <= high
        widths.append(high - low)
    assert covered >= 14
    low, high = error_intervals(voices(60, 0), 60, 0).eer
    assert low is not None
    assert high is not None
    assert high - low < np.mean(widths)
    again = error_intervals(voices(12, 0), 60, 0)
    assert again.eer == error_intervals(voices(12, 0), 60, 0).eer


def test_a_speaker_drawn_twice_counts_as_the_sum_and_the_product_say() -> None:
    scores, who = np.array([0.9, 0.1, 0.4]), (np.array([0, 0, 1]), np.array([0, 1, 1]))
    trials = Trials(scores, np.array([True, False, True]), *who)
    rates = error_intervals(trials, 40, 3).eers
    for draw, rate in enumerate(rates):
        drawn = np.bincount(np.random.default_rng([3, draw]).integers(0, 2, 2), minlength=2)
        assert np.isnan(rate) == (0 in drawn)  # one speaker alone makes no trials of two
