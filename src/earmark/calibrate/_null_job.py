"""What the two ways to a permutation null share: the shuffles, and the task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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

TOGETHER = 1 << 17  # labels that a worker draws at once: about half a millisecond


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

    @property
    def starts(self) -> Ints:
        """Where the units of each class begin in `members`: the same for all shuffles."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.scheme.unit_codes))])

    @property
    def member_type(self) -> type[np.unsignedinteger[Any]] | type[np.signedinteger[Any]]:
        return np.uint16 if len(self.unit_sizes) <= 1 << 16 else np.int32

    def members(self, start: int, found: NDArray[Any], workers: Workers) -> None:
        """The units by class under the shuffles from `start` on, into found: [B, U]."""
        scheme, words = self.scheme, _streams.words_of(self.seed)

        def fill(span: tuple[int, int]) -> None:
            members = found[slice(*span)]
            if scheme.name == "clips":  # places are laid out by class, so what a shuffle puts there is
                _streams.permutations(words, start + span[0], members)
                return
            starts = self.starts
            for b in range(len(members)):
                kernels.sort_units(self.labels(start + span[0] + b), starts, members[b])

        for _ in workers.map(fill, spans(len(found), max(1, TOGETHER // len(self.unit_sizes)))):
            pass


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
