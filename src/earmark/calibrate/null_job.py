"""What the two ways to a permutation null share: the task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate.arrangements import Scheme
from earmark.geometry.factors import Factors
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Swept

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FARTHEST = frozenset({"CSR", "CSR_pointwise"})
BALANCE = frozenset({"GSR"}) | FARTHEST
CLASS_PAIRS = frozenset({"CS", "CSCF", "silhouette"})
CALIBRATED = BALANCE | CLASS_PAIRS  # and every P@k


@dataclass(frozen=True)
class Job:
    """Some metrics of one protocol under a number of shuffles."""

    space: Space
    layout: Layout
    scheme: Scheme
    swept: Swept
    protocol: str
    metrics: frozenset[str]
    ks: tuple[int, ...]
    permutations: int
    seed: int
    factors: Factors | None

    @property
    def draws(self) -> int:
        return self.scheme.draws(self.permutations)

    @property
    def moves_groups(self) -> bool:
        """Whether some units hold several clips; else the clips are the units, and are numbered by place."""
        return len(self.scheme.unit_codes) < self.layout.n

    @cached_property
    def units(self) -> Ints:
        """The unit of every place."""
        return self.scheme.units if self.moves_groups else np.arange(self.layout.n)

    @cached_property
    def unit_sizes(self) -> Floats:
        return np.bincount(self.units).astype(np.float64)

    def labels(self, shuffle: int) -> Ints:
        """The class of every unit under one shuffle."""
        labels = self.scheme.labels(self.seed, shuffle, exact=self.scheme.exact(self.permutations))
        return labels if self.moves_groups else labels[self.scheme.units]


def spans(stop: int, step: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + step, stop)) for start in range(0, stop, step))
