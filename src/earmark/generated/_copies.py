"""Samples that are (near) copies of real points, and a test of whether there are more than chance brings.

A sample is a near copy when its nearest real point is at less than NEAR times that point's distance to its nearest
other real point, and a copy at distance 0. A real point that is in the set more than once is nobody's alone: samples on
it are no copies. Chance brings near copies in few dimensions (a tenth of good samples in one), so counting is no proof.

The test deals the names "real" and "generated" anew, SHUFFLES times, over all points together. If the generator draws
afresh from what the real points were drawn from, every deal is as likely as the one there is, in any number of
dimensions and with doubles in the data. The question is one of ratios of distances, which hardly feel how dense the
points lie, so a generator that draws afresh from something else brings no more. It is asked twice, each at half the
level: of samples at distance 0; and of near copies, where both the samples and the real points they belong to must be
too many (else a generator that repeats one sound would be called a copyist for one lucky draw). Where the real points
themselves have doubles, samples at distance 0 must be three times as frequent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.generated.balls import Side
from earmark.geometry.neighbours import nearest
from earmark.geometry.sweep import Neighbours

Ints = NDArray[np.int64]
Marks = NDArray[np.bool_]

NEAR = 0.1
SHUFFLES = 999
LEVEL = 0.05
DOUBLES = 3  # copies at distance 0 count where their share is over so many times the share of real points with doubles
DEPTH = 16  # neighbours of a point in which its nearest real one is looked for, times all points over the real ones


class Copies(NamedTuple):
    """Which samples are (near) copies, how many of them at distance 0, and how likely chance brings as many."""

    near: Marks
    exact: int
    p_value: float

    @property
    def memorised(self) -> bool:
        return self.p_value <= LEVEL


class _Deal(NamedTuple):
    """One way to call some points real: which others are (near) copies, at distance 0 or not, and of whom."""

    near: Marks
    exact: Marks
    whom: Ints

    @property
    def counts(self) -> tuple[int, int, int]:
        beside = self.near & ~self.exact
        return int(self.exact.sum()), int(beside.sum()), len(np.unique(self.whom[beside]))


def near_copies(side: Side, near: Neighbours, *, seed: int = 0) -> Copies | None:
    """The (near) copies among the other points of a side, and the test of their number; None where there are none.

    `near` are the nearest base points of the others.
    """
    base, other = side.base, side.other
    if base.n < 3:
        return None
    to_next = side.neighbours.distances[near.places[:, 0], 0]
    marks = near.distances[:, 0] < NEAR * to_next
    if not marks.any():
        return None
    around = _around_all(side, min(DEPTH * -(-(base.n + other.n) // base.n), base.n + other.n - 1))
    is_real = np.arange(base.n + other.n) < base.n
    there = np.asarray(_deal(around, is_real).counts)
    rng = np.random.default_rng([seed, 0xC0B])
    as_many = np.ones(3)
    for _ in range(SHUFFLES):
        as_many += np.asarray(_deal(around, rng.permutation(is_real)).counts) >= there
    exact, beside, met = as_many / (SHUFFLES + 1)
    on_top = marks & (near.distances[:, 0] == 0.0)
    # Where the real points have doubles, as on a grid, other points fall on them too.
    if on_top.mean() <= DOUBLES * (side.neighbours.distances[:, 0] == 0.0).mean():
        exact = 1.0
    return Copies(marks, int(on_top.sum()), min(1.0, 2.0 * float(min(exact, max(beside, met)))))


def _around_all(side: Side, depth: int) -> Neighbours:
    """The nearest others of every point, base or other: from both sets, put in order."""
    parts = []
    for space, kind in ((side.base, "base"), (side.other, "other")):
        within = min(depth, space.n - 1)
        own = nearest(space, within, **side.work.options())
        opposite = side.other if kind == "base" else side.base
        across = nearest(opposite, min(depth, opposite.n), queries=space, **side.work.options())
        shift = (0, side.base.n) if kind == "base" else (side.base.n, 0)
        distances = np.concatenate([own.distances, across.distances], axis=1)
        places = np.concatenate([own.places + shift[0], across.places + shift[1]], axis=1)
        order = np.argsort(distances, axis=1, kind="stable")[:, :depth]
        parts.append((np.take_along_axis(places, order, axis=1), np.take_along_axis(distances, order, axis=1)))
    return Neighbours(np.concatenate([parts[0][0], parts[1][0]]), np.concatenate([parts[0][1], parts[1][1]]))


def _deal(around: Neighbours, is_real: Marks) -> _Deal:
    """Every point's nearest real other is looked for in its list, the same under every deal.

    Where a list holds none, a point is no copy; the point it would be a copy of has its next at least as far as its
    list goes.
    """
    real = is_real[around.places]
    rows, first = np.arange(len(real)), real.argmax(axis=1)
    listed, whom = real[rows, first], around.places[rows, first]
    distances = around.distances[rows, first]
    others = np.where(listed, distances, around.distances[:, -1])
    near = ~is_real & listed & (distances < NEAR * others[whom])
    return _Deal(near, near & (distances == 0.0), whom)
