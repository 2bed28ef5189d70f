"""Means over subsets with the interval of the mean, where every subset has one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.ranks import DEVIATIONS
from earmark.scores import harmonic_mean

__all__ = ["Means", "means"]

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class Means(NamedTuple):
    """Means over some subsets, [lines] each. NaN where a line has none of the subsets; `have` counts what it has."""

    value: Floats
    low: Floats
    high: Floats
    lift: Floats
    have: Whole
    wanted: int

    def complete(self) -> NDArray[np.bool_]:
        return np.equal(self.have, self.wanted)

    def error(self) -> Floats:
        """The standard error of each mean, from the intervals of its scores; NaN where a subset has none."""
        return (self.high - self.low) / (2 * DEVIATIONS)

    def take(self, rows: Whole) -> Means:
        """The means of some lines; for a row of -1, none."""
        gone = rows < 0
        value, low, high, lift = (
            np.where(gone, np.nan, part[rows]) for part in (self.value, self.low, self.high, self.lift)
        )
        return Means(value, low, high, lift, np.where(gone, 0, self.have[rows]), self.wanted)


def means(value: Floats, low: Floats, high: Floats, lift: Floats, *, harmonic: bool = False) -> Means:
    """Means over the subsets that a line has, from arrays [lines, subsets] with NaN where it has none.

    The interval of a mean combines those of the subsets as `earmark.scores.aggregate` does: half-widths h on one side
    give sqrt(sum of h^2) / count. It needs all of them, and so does the lift. In a harmonic mean m each half-width
    counts with the weight (m / value)^2, its first derivative, and there is no lift.
    """
    here = np.isfinite(value)
    have = here.sum(axis=1)
    count = np.maximum(have, 1)
    middle = np.where(have > 0, np.where(here, value, 0.0).sum(axis=1) / count, np.nan)
    weight: Floats | float = 1.0
    if harmonic:
        made = [harmonic_mean(line[there].tolist()) for line, there in zip(value, here, strict=True)]
        middle = np.array([np.nan if mean is None else mean for mean in made])
        have = np.where(np.isfinite(middle), have, 0)
        lift = np.full(value.shape, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = np.where(here & (value > 0), (middle[:, None] / value) ** 2, 0.0)
    with np.errstate(invalid="ignore"):
        down = np.where(here, np.maximum(0.0, value - low), 0.0)
        up = np.where(here, np.maximum(0.0, high - value), 0.0)
    down, up = (np.sqrt(((weight * side) ** 2).sum(axis=1)) / count for side in (down, up))
    lifted = np.where(here, lift, 0.0).sum(axis=1) / count
    lifted = np.where(have > 0, lifted, np.nan)
    return Means(middle, middle - down, middle + up, lifted, have, value.shape[1])
