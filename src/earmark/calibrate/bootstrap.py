"""Bootstrap intervals: queries, or whole groups of queries, drawn with replacement; neighbours stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.uint16]

LEVEL = (2.5, 97.5)


def resample(order: NDArray[Any], groups: NDArray[Any] | None, resamples: int, seed: int) -> Counts:
    """How often each place is drawn, [resamples, N].

    Draws are made over original rows (place i is row order[i]), so they do not depend on the layout. With
    `groups` (per place) whole groups are drawn, because clips of one speaker or recording are not
    independent evidence.
    """
    n = len(order)
    counts = np.empty((resamples, n), np.uint16)
    for b in range(resamples):
        rng = np.random.default_rng([seed, b])
        if groups is None:
            counts[b] = np.bincount(rng.integers(0, n, n), minlength=n)[order]
        else:
            size = int(groups.max()) + 1
            counts[b] = np.bincount(rng.integers(0, size, size), minlength=size)[groups]
    return counts


def interval(values: Floats) -> tuple[float, float] | tuple[None, None]:
    """The 95 % percentile interval of resampled values; resamples without a value are left out."""
    values = values[np.isfinite(values)]
    if not len(values):
        return None, None
    low, high = np.percentile(values, LEVEL)
    return float(low), float(high)


def resampled_means(points: Floats, counts: Counts) -> Floats:
    """Mean over the points of each resample, leaving out NaN."""
    valid = np.isfinite(points)
    weights = counts[:, valid].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((weights @ points[valid]) / weights.sum(axis=1))
