"""A space of distances that were computed elsewhere: there are no vectors, and a tile is read instead of multiplied.

`raw` is the matrix of distances in the order of the places, in memory or mapped from a file: raw[a, b] is the distance
of places a and b to the last bit, and its diagonal is never used. Keys are the distances themselves, so nothing but
ties is left to decide. Closed forms, which need vectors, are not taken, since the space is not `halved`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.geometry import kernels, pair_kernels
from earmark.geometry.spaces import Array, Floats, Space, power_of_two
from earmark.workers import Workers

Ints = NDArray[np.int64]

PAGES = 1 << 16  # bytes that a look at one value of a mapped file brings in
MAPPED = 1 << 25  # bytes of a mapped file in memory at once


Arrange = Callable[[Ints], tuple[Array, Floats, Callable[[], None]]]
"""From rows in some order: their distances, the largest of each row, and what lets go of pages of a mapped file."""


@dataclass(frozen=True)
class GivenSpace(Space):
    """Distances of places, as they were given; `order` has the given row of each place, `arrange` other orders."""

    largest: Floats = field(default_factory=lambda: np.zeros(0))
    order: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    arrange: Arrange | None = None
    let_go: Callable[[], None] = lambda: None
    mapped: list[int] = field(default_factory=lambda: [0])  # bytes since the last time, about

    @property
    def form(self) -> int:
        return pair_kernels.GIVEN

    @property
    def doubt(self) -> float:
        return 2.0 * kernels.TIE_SHARE

    @property
    def widest(self) -> float:
        return float(self.largest.max(initial=0.0))

    def reaches(self, rows: Ints) -> Floats:
        return np.asarray(self.largest[rows] * (1.0 + 1e-9))

    def in_order(self, order: Ints) -> Space:
        assert self.arrange is not None
        return prepare_given(self.arrange, self.order[order], self.distance)

    def release(self, mapped: int = 0, *, whole: bool = True) -> None:
        """Let go of what was read: at the end of a block of rows, or where much is `mapped` (bytes)."""
        self.mapped[0] += mapped
        if whole or self.mapped[0] > MAPPED:
            self.mapped[0] = 0
            self.let_go()

    def operands(self, dtype: type[np.floating[Any]], rows: Array | slice) -> Array:
        """The rows themselves."""
        return np.arange(self.n)[rows]

    def columns(
        self, dtype: type[np.floating[Any]], memory: int | None = None, workers: Workers | None = None
    ) -> Array:
        return self.raw

    def tile(self, left: Array, columns: Array, c0: int, c1: int, out: Array) -> Array:
        whole = len(left) > 0 and left[-1] - left[0] == len(left) - 1
        out[:] = self.raw[left[0] : left[-1] + 1, c0:c1] if whole else self.raw[left, c0:c1]
        self.release(len(left) * max(PAGES, out.shape[1] * self.raw.itemsize), whole=c1 == self.n)
        return out

    def error_bound(self, dtype: type[np.floating[Any]]) -> Floats:
        return np.zeros(self.n)


def prepare_given(arrange: Arrange, order: Ints, distance: str) -> GivenSpace:
    """Distances made ready in the order of the places: `order` has the given row of each."""
    values, largest, let_go = arrange(order)
    n = len(order)
    return GivenSpace(
        distance, np.zeros((n, 0)), np.zeros(n), values, np.zeros(n, bool), False, power_of_two(largest),
        largest=largest, order=order, arrange=arrange, let_go=let_go,
    )  # fmt: skip
