"""What a Fréchet distance has too much for being measured on so few points, and what would be left of it without.

The value of n points is too high by about c / n. Two ways to know c, both from the sets themselves:

    excess      the real set against itself, in two parts as large as the sets that are compared, or scaled to them:
                what the value would be if nothing differed
    fad_inf     the value of all points and of halves of both sets, c / n and 2 c / n too high: a line through the two
                meets 1/n = 0 at 2 F(n) - F(n/2)

Both sets lose units (clips, where points are frames of them): frames of one clip are not independent, and with half of
the frames of every clip nothing would be learned about having half of the clips. Left of the excess, simulated: under
3 % with n >= 2 D, 6 % with 1.5 D, a fifth or more with n <= D, where it is refused, and a quarter for heavy tails. What
is left shows as a bend: quarters of the sets lie below the line. Drawing points with replacement, as some tools do,
finds no excess at all: the line then ends at the value of the set that was drawn from.

Chong and Forsyth, FID-infinity, CVPR 2020; Gui et al., FAD-infinity, ICASSP 2024.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.generated._distributions import frechet_distance
from earmark.generated._jackknife import dealt_parts

Array = NDArray[Any]
Ints = NDArray[np.int64]

DEALS = 8  # into halves
BENT = 0.1  # from this share of the slope on, a line is no good description
SPLITS = 2  # of the real set


class Line(NamedTuple):
    """A Fréchet distance at 1/n = 0, and what it was taken from."""

    value: float
    whole: float  # the distance of all points
    halves: float  # mean over pairs of half sets
    quarters: float  # mean over pairs of quarter sets; NaN where they were not looked at

    @property
    def at_shares(self) -> tuple[tuple[float, float], ...]:
        """The distances by the share of the points that they are of."""
        known = ((1.0, self.whole), (0.5, self.halves), (0.25, self.quarters))
        return tuple(pair for pair in known if not math.isnan(pair[1]))

    @property
    def bend(self) -> float:
        """By how much the quarters miss the line, as a share of how much they should have grown."""
        grown = 3.0 * (self.halves - self.whole)
        return (self.quarters - self.whole - grown) / grown if grown > 0.0 else math.nan


def fad_inf(real: Array, generated: Array, units: tuple[Ints, Ints], *, seed: int = 0, brief: bool = False) -> Line:
    """The Fréchet distance without the excess of few points.

    `units` are the clips of all points by number, a clip of both sets under one; in each part of the sets there must be
    two points. `brief` deals once and looks at no quarters, for those who want many.
    """
    whole = frechet_distance(real, generated)
    halves = _mean_of_parts(real, generated, units, 2, 1 if brief else DEALS, seed)
    quarters = math.nan
    if not brief and min(len(np.unique(codes)) for codes in units) >= 8:
        quarters = _mean_of_parts(real, generated, units, 4, DEALS // 2, seed)
    return Line(2.0 * whole - halves, whole, halves, quarters)


def _mean_of_parts(
    real: Array, generated: Array, units: tuple[Ints, Ints], parts: int, rounds: int, seed: int
) -> float:
    values = [
        frechet_distance(real[of_real == part], generated[of_generated == part])
        for of_real, of_generated in dealt_parts(units, parts, rounds, np.random.default_rng([seed, parts, 0xFAD]))
        for part in range(parts)
    ]
    return float(np.mean(values))


def excess(real: Array, generated: int, units: Ints, *, seed: int = 0) -> float:
    """About how far apart `generated` points and the real ones would be if they were of the same distribution.

    The real set is parted in two, of which one is as large as the generated set if that leaves as much for the other,
    and the value is scaled by 1/n to the sizes at hand. With no more points than dimensions that is too little.
    """
    n = len(real)
    names, numbers = np.unique(units, return_inverse=True)
    taken = max(1, round(len(names) * min(generated, n // 2) / n))
    rng = np.random.default_rng([seed, 0xF100])
    found = []
    for _ in range(SPLITS):
        chosen = np.zeros(len(names), bool)
        chosen[rng.permutation(len(names))[:taken]] = True
        part = chosen[numbers]
        sizes = int(part.sum()), int((~part).sum())
        if min(sizes) < 2:
            return math.nan
        at_hand = (1.0 / n + 1.0 / generated) / (1.0 / sizes[0] + 1.0 / sizes[1])
        found.append(at_hand * frechet_distance(real[part], real[~part]))
    return float(np.mean(found))
