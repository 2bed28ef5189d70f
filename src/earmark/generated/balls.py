"""Balls around the points of one set and the points of the other that lie in them; every search is made once.

    Pair                  two sets in one space
      real, generated     a Side: which set owns the balls ("base") and which set's points are looked for ("other")
        balls(k)          Balls of one k, as they are or corrected by GICDM with this side's base

Under GICDM all distances from base i to another base point j are d delta_i delta_j, to a point g of the other set
d delta_i delta_g, and infinite where g was dropped. A metric of generated balls has the generated set as its base.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.evaluation.data import check_vectors
from earmark.generated import _gicdm as gicdm
from earmark.generated import metrics
from earmark.generated._gicdm import Adjusted, Scale, TooFew, Work
from earmark.geometry import spaces
from earmark.geometry.neighbours import BallCounts, ball_counts, log_closeness, nearest
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Neighbours
from earmark.wording import counted

Floats = NDArray[np.float64]


class Balls:
    """Balls to the k-th other point of the base. Without `scales` distances are as they are."""

    def __init__(
        self, side: Side, k: int, neighbours: Neighbours, scales: tuple[Scale, ...] = (),
        adjusted: Adjusted | None = None,
    ) -> None:  # fmt: skip
        self.k = k
        self.neighbours = neighbours.places[:, :k]
        self.radii: Floats = np.ascontiguousarray(neighbours.distances[:, k - 1])
        self.adjusted = adjusted
        self._side = side
        self._own = scales[0].factors if scales else None
        self._others = None if adjusted is None else np.where(adjusted.kept, adjusted.factors, np.inf)
        self.fitting = gicdm.passing(scales) if scales else np.ones(side.base.n, bool)

    @cached_property
    def inside(self) -> BallCounts:
        """Points of the other set at most a radius away."""
        return self._count(self.radii)

    @cached_property
    def strictly_inside(self) -> BallCounts:
        """Points of the other set less than a radius away."""
        return self._count(self.radii, strict=True)

    @cached_property
    def clipped_inside(self) -> BallCounts:
        """Points of the other set inside balls no wider than the median one."""
        return self._count(metrics.clipped_radii(self.radii))

    @cached_property
    def clipped_among_themselves(self) -> BallCounts:
        """Points of the base inside each other's clipped balls, their own left out."""
        return self._count_own(metrics.clipped_radii(self.radii))

    @cached_property
    def among_themselves(self) -> BallCounts:
        """Points of the base inside each other's balls, their own left out."""
        return self._count_own(self.radii)

    @cached_property
    def logs(self) -> Floats | None:
        """Per point of the other set, the sum of log min(D / R, 1); None when all balls have radius 0."""
        radius = metrics.SPREAD * float(self.radii.mean())
        if radius == 0.0:
            return None
        side = self._side
        return log_closeness(
            side.base, radius, side.other, centre_weights=self._own, point_weights=self._others, **side.work.options()
        )

    @cached_property
    def reach(self) -> Floats:
        """Per point of the other set, its distance to the nearest ball's centre in radii: at most 1 is inside.

        Infinite for a point that GICDM dropped.
        """
        side = self._side
        # A ball of radius 0 holds only copies of its centre: nearly infinite weight, but 0 times it is still 0.
        # Radii in units of about the mean one (a power of two: no digit changes) keep weights near 1 at any scale.
        unit = float(2.0 ** np.clip(np.frexp(self.radii.mean())[1], -1000, 1000)) if self.radii.any() else 1.0
        radii = self.radii / unit
        least = float(radii[radii > 0.0].min()) * 2.0**-20 if radii.any() else 1.0
        weights = (1.0 if self._own is None else self._own) / np.maximum(radii, least)
        found = nearest(side.base, 1, queries=side.other, weights=weights, **side.work.options())
        factors = 1.0 if self._others is None else self._others
        with np.errstate(invalid="ignore"):
            return np.where(found.distances[:, 0] > 0.0, found.distances[:, 0] / unit * factors, 0.0)

    def _count_own(self, radii: Floats) -> BallCounts:
        base = self._side.base
        return ball_counts(
            base, radii, base, centre_weights=self._own, point_weights=self._own, exclude_same_row=True,
            **self._side.work.options(),
        )  # fmt: skip

    def _count(self, radii: Floats, *, strict: bool = False) -> BallCounts:
        side = self._side
        return ball_counts(
            side.base, radii, side.other, centre_weights=self._own, point_weights=self._others, strict=strict,
            **side.work.options(),
        )  # fmt: skip


@dataclass
class Memory:
    """What is known of a set by itself, whatever it is compared with: neighbours, and GICDM's scales by size."""

    neighbours: Neighbours | None = None
    scales: dict[int, Scale] = field(default_factory=dict)


class Reference:
    """A real set that is compared with many generated ones: what it is by itself is found out once.

    >>> reference = Reference(real)
    >>> [measure(reference, generated, gicdm=True) for generated in attempts]
    """

    def __init__(self, vectors: Any) -> None:
        self.vectors = check_vectors(vectors, "The real vectors")
        self.memory: dict[tuple[str, str], Memory] = {}


class Side:
    """One set as the owner of balls, the other as the points that may lie in them. `name` is the base's."""

    def __init__(
        self, name: str, base: Space, other: Space, depth: int, work: Work, memory: Memory, *, shrink: bool = False
    ) -> None:
        self.name = name
        self.base = base
        self.other = other
        self.work = work
        self._depth = min(depth, base.n - 1)
        self._memory = memory
        self._shrink = shrink
        self._plain: dict[int, Balls] = {}
        self._corrected: dict[int, Balls] = {}

    @property
    def neighbours(self) -> Neighbours:
        """The nearest others of every base point, as deep as any question of this side will ask."""
        known = self._memory.neighbours
        if known is None or known.places.shape[1] < self._depth:
            known = self._memory.neighbours = nearest(self.base, self._depth, **self.work.options())
        return known

    def balls(self, k: int) -> Balls:
        """Balls to the k-th other point, distances as they are."""
        if k not in self._plain:
            if lacking := self.lacks(k):
                raise lacking
            self._plain[k] = Balls(self, k, self.neighbours)
        return self._plain[k]

    def corrected(self, k: int) -> Balls:
        """Balls to the k-th other point, distances corrected by GICDM with neighbourhoods of 2k and 20k."""
        if k not in self._corrected:
            if lacking := self.lacks(k, corrected=True):
                raise lacking
            fitted = tuple(self._fitted(size) for size in self._scales(k))
            adjusted = gicdm.adjust(self.base, self.other, fitted, work=self.work)
            self._corrected[k] = Balls(self, k, fitted[0].neighbours, fitted, adjusted)
        return self._corrected[k]

    def lacks(self, k: int, *, corrected: bool = False) -> TooFew | None:
        """Why these balls cannot be had; None when they can."""
        n = self.base.n
        if k >= n:
            problem = f"k = {k} needs more than {counted(k, f'{self.name} point')}, and there are {n}"
            return TooFew(problem, f"use k = {n - 1}", n - 1)
        return gicdm.too_few(n, k, self._scales(k), self.name) if corrected else None

    def _fitted(self, size: int) -> Scale:
        if size not in self._memory.scales:
            start = self.neighbours
            self._memory.scales[size] = gicdm.fit_scale(self.base, size, work=self.work, start=start)
        return self._memory.scales[size]

    def _scales(self, k: int) -> tuple[int, ...]:
        if not self._shrink:
            return gicdm.scales_of(k)
        return tuple(min(scale, self.base.n - 1) for scale in gicdm.scales_of(k))


class Pair:
    """Real and generated points in one space; `depth` is the deepest neighbour that will be asked for."""

    def __init__(
        self, real: Reference | NDArray[Any], generated: NDArray[Any], distance: str, depth: int, work: Work, *,
        ties: spaces.Ties = "average", shrink: bool = False,
    ) -> None:  # fmt: skip
        real = real if isinstance(real, Reference) else Reference(real)
        first, second = spaces.prepare_pair(real.vectors, generated, distance, ties=ties, threads=work.threads)
        known = real.memory.setdefault((distance, ties), Memory())
        self.real = Side("real", first, second, depth, work, known, shrink=shrink)
        self.generated = Side("generated", second, first, depth, work, Memory(), shrink=shrink)
