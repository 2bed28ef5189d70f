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

from earmark.calibrate.jackknife import interval, standard_error
from earmark.errors import InputError
from earmark.probes import _verification
from earmark.probes._verification import Trials, curve, eer, leave_out_speakers, min_dcf


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


def voices(speakers: int, seed: int, clips: int = 6) -> Trials:
    """All pairs of simulated clips, some speakers steadier than others."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(speakers), clips)
    spread = 0.75 * np.exp(0.3 * rng.normal(size=speakers))
    vectors = rng.normal(size=(speakers, 16))[who] + spread[who, None] * rng.normal(size=(len(who), 16))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    one, two = np.triu_indices(len(who), 1)
    return Trials((vectors @ vectors.T)[one, two], who[one] == who[two], who[one], who[two])


TRUTH = 0.0984  # the EER of 50 sets of 200 such speakers and 12 of 400, to 0.001


@pytest.mark.parametrize("speakers", [6, 12, 24])
def test_intervals_leave_out_speakers_and_cover_the_truth(speakers: int) -> None:
    covered, widths = 0, []
    for seed in range(80):
        trials = voices(speakers, 50_000 + seed)
        found = interval(eer(curve(trials)), leave_out_speakers(trials).eers, (0.0, 1.0), "speaker")
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= TRUTH <= found.high
        widths.append(found.high - found.low)
    assert covered >= 70  # of 80; of 400 sets 96, 94 and 94 % are covered
    assert np.mean(widths) < {6: 0.35, 12: 0.19, 24: 0.12}[speakers]


def test_leaving_out_a_speaker_is_measuring_without_its_trials() -> None:
    trials = voices(7, 3, clips=3)
    assert trials.enrolled is not None
    assert trials.tested is not None
    found = leave_out_speakers(trials, 0.2)
    for speaker in range(7):
        kept = (trials.enrolled != speaker) & (trials.tested != speaker)
        rest = curve(Trials(trials.scores[kept], trials.same[kept]))
        assert found.eers[speaker] == pytest.approx(eer(rest), abs=1e-12)
        assert found.costs[speaker] == pytest.approx(min_dcf(rest, 0.2), abs=1e-12)


def test_two_speakers_or_unknown_ones_leave_nothing_to_measure() -> None:
    scores, who = np.array([0.9, 0.1, 0.4]), (np.array([0, 0, 1]), np.array([0, 1, 1]))
    assert np.isnan(leave_out_speakers(Trials(scores, np.array([True, False, True]), *who)).eers).all()
    assert len(leave_out_speakers(Trials(scores, np.array([True, False, True]))).eers) == 0


def test_many_speakers_are_left_out_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = voices(60, 1, clips=2)
    one_by_one = leave_out_speakers(trials)
    monkeypatch.setattr(_verification, "MOST_UNITS", 20)
    blocks = leave_out_speakers(trials)
    assert (len(one_by_one.eers), len(blocks.eers)) == (60, 20)
    assert (one_by_one.unit, blocks.unit) == ("speaker", "block of speakers")
    assert standard_error(blocks.eers) == pytest.approx(standard_error(one_by_one.eers), rel=0.5)
