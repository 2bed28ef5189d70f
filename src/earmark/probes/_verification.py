"""Two kinds of trials, same speaker and different speakers, and how far their scores keep apart.

At a threshold t a trial is accepted when its score is at least t:

    miss(t)   share of same-speaker trials under t            false(t)  share of different-speaker trials at t or above

    EER       where the curve through the points (false, miss) of all distinct scores crosses the diagonal, with
              straight lines between the points.                            [0, 1], lower is better; chance is 1/2
    minDCF    min over t of (p miss + (1 - p) false) / min(p, 1 - p), p the prior of a same-speaker trial (0.05), both
              errors at cost 1.                                             [0, 1], lower is better; 1: no better than
              accepting all or none

Equal scores are one threshold: a tie between a same-speaker and a different-speaker trial is a slanted step, so the
order of trials never matters. Both kinds must be there; else there is no rate.

Intervals. Trials are not independent, speakers are: each speaker in turn is left out with all of its trials, and the
spread of what is left gives the interval (`earmark.calibrate.jackknife`). Of more than 200 speakers, 200 blocks of them
are left out. Counted on 400 simulated sets of voices (tests/probes/test_verification.py), 95 % intervals hold the truth
in 96, 94 and 94 of 100 sets of 6, 12 and 24 speakers; those of version 0.1.0, which drew speakers with replacement, in
84, 89 and 95.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError

P_TARGET = 0.05
MOST_UNITS = 200

Floats = NDArray[np.float64]


class Trials(NamedTuple):
    """Scores, whether each is of one speaker, and the codes of the two speakers (None where they are not known)."""

    scores: Floats
    same: NDArray[np.bool_]
    enrolled: NDArray[np.int64] | None = None
    tested: NDArray[np.int64] | None = None


class Errors(NamedTuple):
    """The curve from (miss, false) = (0, 1) to (1, 0), a point for each distinct score and one beyond them."""

    miss: Floats
    false: Floats


def curve(trials: Trials) -> Errors:
    """All pairs of error rates that a threshold can give."""
    ordered = _Ordered.of(trials)
    return ordered.errors(np.ones(len(trials.scores)))


def eer(errors: Errors) -> float:
    """Where both errors are equal, by straight lines between the points of the curve."""
    gap = errors.miss - errors.false  # rises from -1 to 1
    right = int(np.searchsorted(gap, 0.0))
    if gap[right] == 0.0:
        return float(errors.miss[right])
    left = right - 1
    share = -gap[left] / (gap[right] - gap[left])
    return float(errors.miss[left] + share * (errors.miss[right] - errors.miss[left]))


def min_dcf(errors: Errors, p_target: float = P_TARGET) -> float:
    """The least cost of detection over all thresholds, normalised by that of accepting all or none."""
    if not 0.0 < p_target < 1.0:
        raise InputError(f"The prior of a same-speaker trial lies between 0 and 1, not at {p_target}.")
    cost = p_target * errors.miss + (1.0 - p_target) * errors.false
    return float(cost.min() / min(p_target, 1.0 - p_target))


class Deletions(NamedTuple):
    """EER and minDCF without each unit, a speaker or a block of them; NaN where a kind of trials is missing then."""

    eers: Floats
    costs: Floats
    unit: str = "speaker"


def leave_out_speakers(trials: Trials, p_target: float = P_TARGET) -> Deletions:
    """Error rates without each speaker; none where the speakers of trials are not known."""
    if trials.enrolled is None or trials.tested is None:
        return Deletions(np.zeros(0), np.zeros(0))
    ordered = _Ordered.of(trials)
    speakers = int(max(trials.enrolled.max(), trials.tested.max())) + 1
    units = min(speakers, MOST_UNITS)
    enrolled, tested = trials.enrolled % units, trials.tested % units
    rates, costs = np.full(units, np.nan), np.full(units, np.nan)
    for unit in range(units):
        weights = ((enrolled != unit) & (tested != unit)).astype(np.float64)
        if weights[trials.same].any() and weights[~trials.same].any():
            errors = ordered.errors(weights)
            rates[unit], costs[unit] = eer(errors), min_dcf(errors, p_target)
    return Deletions(rates, costs, "speaker" if units == speakers else "block of speakers")


class _Ordered(NamedTuple):
    """Trials from the lowest score to the highest, with the ends of runs of equal scores."""

    order: NDArray[Any]
    same: Floats
    ends: NDArray[Any]

    @classmethod
    def of(cls, trials: Trials) -> _Ordered:
        if not (trials.same.any() and (~trials.same).any()):
            raise InputError("Verification needs trials of one speaker and of two: give clips of both.")
        if not np.isfinite(trials.scores).all():
            raise InputError("A trial has a score that is not a number: leave its clips out.")
        order = np.argsort(trials.scores, kind="stable")
        scores = trials.scores[order]
        return cls(order, trials.same[order].astype(np.float64), np.flatnonzero(np.r_[scores[1:] > scores[:-1], True]))

    def errors(self, weights: Floats) -> Errors:
        ordered = weights[self.order]
        same = np.cumsum(ordered * self.same)
        other = np.cumsum(ordered * (1.0 - self.same))
        miss, rejected = same[self.ends] / same[-1], other[self.ends] / other[-1]
        return Errors(np.r_[0.0, miss], np.r_[1.0, 1.0 - rejected])
