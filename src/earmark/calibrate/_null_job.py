"""What the two ways to a permutation null share: the shuffles, and the task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import _streams, kernels
from earmark.calibrate._arrangements import Scheme
from earmark.geometry.factors import Factors
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Swept
from earmark.workers import Workers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TOGETHER = 16  # shuffles that a worker draws at once


class Draws:
    """The shuffles of one null: drawn when first asked for, and kept where a quarter of the memory holds them all.

    Columns are units; where the clips are the units they are numbered by place.
    """

    def __init__(self, scheme: Scheme, layout: Layout, permutations: int, seed: int, memory: int) -> None:
        self.scheme, self.seed = scheme, seed
        self.count, self.exact = scheme.draws(permutations), scheme.exact(permutations)
        self.moves_groups = len(scheme.unit_codes) < layout.n  # whether some units hold several clips
        self.units = scheme.units if self.moves_groups else np.arange(layout.n)  # of every place
        self.unit_sizes: Floats = np.bincount(self.units).astype(np.float64)
        classes = layout.classes
        self.dtype = np.uint8 if classes <= 1 << 8 else np.int16 if classes < 1 << 15 else np.int32
        size = self.count * len(self.unit_sizes) * np.dtype(self.dtype).itemsize
        self._kept = np.empty((self.count if 4 * size <= memory else 0, len(self.unit_sizes)), self.dtype)
        self._known = np.zeros(len(self._kept), bool)

    def labels(self, shuffle: int) -> NDArray[Any]:
        """The class of every unit under one shuffle."""
        if shuffle < len(self._kept) and self._known[shuffle]:
            return np.asarray(self._kept[shuffle])
        labels = self.scheme.labels(self.seed, shuffle, exact=self.exact)
        labels = (labels if self.moves_groups else labels[self.scheme.units]).astype(self.dtype)
        if shuffle < len(self._kept):
            self._kept[shuffle], self._known[shuffle] = labels, True
        return labels

    def arranged(self, start: int, stop: int, workers: Workers) -> Arranged:
        """Shuffles start..stop at once, labels and units by class."""
        scheme, count, units = self.scheme, stop - start, len(self.unit_sizes)
        found = Arranged(
            np.empty((count, units), self.dtype),
            np.empty((count, units), np.uint16 if units <= 1 << 16 else np.int32),
            np.concatenate([[0], np.cumsum(np.bincount(scheme.unit_codes))]),
        )
        words = _streams.words_of(self.seed)

        def fill(span: tuple[int, int]) -> None:
            part = slice(span[0] - start, span[1] - start)
            labels, members = found.labels[part], found.members[part]
            if scheme.name == "clips" and not self.exact:
                _streams.labellings(words, span[0], scheme.unit_codes, labels, members)
                return
            starts = np.empty_like(found.starts)
            for b in range(len(labels)):
                labels[b] = self.labels(span[0] + b)
                kernels.sort_units(labels[b], starts, members[b])

        parts = [(start + a, start + b) for a, b in spans(count, TOGETHER)]
        for _ in workers.map(fill, parts):
            pass
        return found


class Arranged(NamedTuple):
    """A batch of shuffles: labels [B, U] of the units, and the units by class [B, U], class c from starts[c] on."""

    labels: NDArray[Any]
    members: NDArray[Any]
    starts: Ints


@dataclass(frozen=True)
class Job:
    """Some metrics of one protocol under a number of shuffles."""

    space: Space
    layout: Layout
    draws: Draws
    swept: Swept
    protocol: str
    metrics: frozenset[str]
    ks: tuple[int, ...]
    factors: Factors | None
    rows: Ints  # the places that ask


def spans(stop: int, step: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + step, stop)) for start in range(0, stop, step))
