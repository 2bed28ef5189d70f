"""Average precision of labels, and its mean over labels without each unit.

For one label, over the distinct scores s from the highest down: AP = sum_s (recall at s - recall above s) * precision
at s, as scikit-learn's `average_precision_score` has it: clips of equal score count together. Range 0 to 1, higher is
better; a label without a positive clip has none, and is left out of the mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class _Steps(NamedTuple):
    """A label's distinct scores from the highest down: positives and clips at each, and at it or above."""

    of: NDArray[np.int64]  # the step of each clip
    positives: Floats
    positives_above: Floats
    clips_above: Floats

    @property
    def terms(self) -> Floats:
        return self.positives * self.positives_above / self.clips_above


def average_precisions(scores: Floats, present: Bools) -> Floats:
    """The average precision of each label [clips, labels]; NaN for a label without a positive clip."""
    values = np.full(scores.shape[1], np.nan)
    for label in np.flatnonzero(present.any(axis=0)):
        steps = _steps(scores[:, label], present[:, label])
        values[label] = steps.terms.sum() / steps.positives_above[-1]
    return values


def mean_average_precision(scores: Floats, present: Bools) -> float:
    """The mean over labels that have a positive clip; NaN where none has."""
    values = average_precisions(scores, present)
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def without_each_clip(scores: Floats, present: Bools) -> Floats:
    """The mean average precision without each clip; NaN where no label would have a positive clip left.

    A clip that is left out lowers the counts at its own score and below: sums from above and from below give all
    values at once.
    """
    sums, counts = np.zeros(len(scores)), np.zeros(len(scores))
    for label in np.flatnonzero(present.any(axis=0)):
        own = present[:, label]
        steps = _steps(scores[:, label], own)
        total = steps.positives_above[-1]
        above = np.concatenate([[0.0], np.cumsum(steps.terms)])
        for positive in (False, True):
            clips = np.flatnonzero(own == positive)
            if not len(clips) or total == positive:
                continue
            with np.errstate(invalid="ignore", divide="ignore"):
                rates = (steps.positives_above - positive) / (steps.clips_above - 1)
            rates[steps.clips_above == 1] = 0.0
            changed = steps.positives * rates
            below = np.concatenate([np.cumsum(changed[::-1])[::-1], [0.0]])
            at = (steps.positives - positive) * rates
            step = steps.of[clips]
            sums[clips] += (above[step] + at[step] + below[step + 1]) / (total - positive)
            counts[clips] += 1
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def without_each_group(scores: Floats, present: Bools, groups: NDArray[np.int64], count: int) -> Floats:
    """The mean average precision without the clips of each of `count` groups, by their codes."""
    return np.array([mean_average_precision(scores[groups != code], present[groups != code]) for code in range(count)])


def _steps(scores: Floats, present: Bools) -> _Steps:
    values, inverse = np.unique(-scores, return_inverse=True)
    of = inverse.astype(np.int64)
    clips = np.bincount(of, minlength=len(values)).astype(np.float64)
    positives = np.bincount(of, present.astype(np.float64), minlength=len(values))
    return _Steps(of, positives.astype(np.float64), np.cumsum(positives), np.cumsum(clips))
