"""Ranks with the interval that they deserve.

    mean over subsets      [lines], with the interval of the mean where every subset has one
    rank                   1 is best, equals share the better place; none for a line that lacks a subset
    interval of the rank   the middle 95 % of the ranks when the subsets are drawn again with replacement, the same draw
                           for every line, and each mean is shaken by its own measurement error where that is known

The first source of doubt is the choice of subsets, which every line shares and for which printed tables suffice. The
second is the sample of clips behind each score, which only rows with an interval tell. Errors of two lines are taken
as independent; lines measured on the same clips err alike, so their intervals are rather too wide than too narrow.
`docs/decisions/0009-rank-intervals.md` says why.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["DRAWS", "FEWEST_SUBSETS", "Means", "Ranks", "means", "rank_intervals"]

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

DRAWS = 400
FEWEST_SUBSETS = 3
"""Below this number, drawing subsets again says nothing; only measurement errors count."""
_TAILS = (0.025, 0.975)
_DEVIATIONS = 1.959963984540054  # half-width of a 95 % interval in standard deviations
_TIE = 1e-9
_SHORT = 32_000


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

    def take(self, rows: Whole) -> Means:
        """The means of some lines; for a row of -1, none."""
        gone = rows < 0
        value, low, high, lift = (
            np.where(gone, np.nan, part[rows]) for part in (self.value, self.low, self.high, self.lift)
        )
        return Means(value, low, high, lift, np.where(gone, 0, self.have[rows]), self.wanted)


class Ranks(NamedTuple):
    """Ranks [lines]; 0 is no rank, and a `low` and `high` of 0 no interval.

    `resampled` says whether the choice of subsets is part of the intervals, `shaken` for which lines their
    measurement error is.
    """

    rank: Whole
    low: Whole
    high: Whole
    resampled: bool
    shaken: NDArray[np.bool_]


def means(value: Floats, low: Floats, high: Floats, lift: Floats) -> Means:
    """Means over the subsets that a line has, from arrays [lines, subsets] with NaN where it has none.

    The interval of a mean combines those of the subsets as `earmark.scores.aggregate` does: half-widths h on one side
    give sqrt(sum of h^2) / count. It needs all of them, and so does the lift.
    """
    here = np.isfinite(value)
    have = here.sum(axis=1)
    count = np.maximum(have, 1)
    middle = np.where(have > 0, np.where(here, value, 0.0).sum(axis=1) / count, np.nan)
    with np.errstate(invalid="ignore"):
        down = np.where(here, np.maximum(0.0, value - low), 0.0)
        up = np.where(here, np.maximum(0.0, high - value), 0.0)
    down, up = (np.sqrt((side**2).sum(axis=1)) / count for side in (down, up))
    lifted = np.where(here, lift, 0.0).sum(axis=1) / count
    lifted = np.where(have > 0, lifted, np.nan)
    return Means(middle, middle - down, middle + up, lifted, have, value.shape[1])


def rank_intervals(value: Floats, of: Means, *, higher_is_better: bool, draws: int = DRAWS, seed: int = 0) -> Ranks:
    """Ranks by the mean of `value` [lines, subsets], of the lines that have every subset."""
    count, subsets = value.shape
    complete = np.flatnonzero(of.complete())
    rank, low, high = (np.zeros(count, np.int64) for _ in range(3))
    error = (of.high - of.low) / (2 * _DEVIATIONS)
    shaken = np.isfinite(error) & (error > 0) & of.complete()
    resampled = subsets >= FEWEST_SUBSETS
    if not complete.size:
        return Ranks(rank, low, high, resampled, shaken)
    turned = value[complete] if higher_is_better else -value[complete]
    rank[complete] = _places(turned.mean(axis=1)[None])[0]
    known = shaken[complete]
    if resampled or known.any():
        rng = np.random.default_rng(seed)
        drawn = (
            rng.multinomial(subsets, np.full(subsets, 1 / subsets), size=draws) / subsets
            if resampled
            else np.full((draws, subsets), 1 / subsets)
        )
        scores = drawn @ turned.T
        scores += rng.standard_normal(scores.shape) * np.where(known, error[complete], 0.0)
        ordered = np.sort(np.ascontiguousarray(_places(scores).T), axis=1)
        ends = [ordered[:, math.ceil(tail * draws) - 1] for tail in _TAILS]
        # A draw may leave a line's own rank outside, as a bootstrap interval may miss its value; a reader must not.
        low[complete] = np.minimum(ends[0], rank[complete])
        high[complete] = np.maximum(ends[1], rank[complete])
        if not resampled:  # nothing is known of the doubt in such a line
            low[complete[~known]] = high[complete[~known]] = 0
    return Ranks(rank, low, high, resampled, shaken)


def _places(scores: Floats) -> NDArray[np.signedinteger[Any]]:
    """[draws, lines]: 1 for the largest score of a draw; equals share the better place."""
    rounded = np.round(scores / _TIE)
    ordered = np.sort(rounded, axis=1)
    width = scores.shape[1]
    places = [width + 1 - np.searchsorted(row, line, side="right") for row, line in zip(ordered, rounded, strict=True)]
    return np.stack(places).astype(np.int16 if width < _SHORT else np.int64)  # short numbers are sorted much faster
