"""A sample of queries: which clips ask when not all can, while every clip stays a candidate.

      rank of each clip: a random order of all clips
      base     the first m of it: a simple random sample without replacement, blind to labels
      top-up   the first LEAST of each class, where the base has fewer: inside a class the sample is a simple random one

Means over clips and hubness rest on the base alone, metrics of class means on all of it. The draw depends on the order
in which clips were given and on the seed; neither labels nor threads have a say in the base.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from earmark.geometry.layout import Layout

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST = 2  # queries of each class that a metric of class means takes
STREAM = 0x9E3779B9  # keeps this draw apart from shuffles and resamples of the same seed


@dataclass(frozen=True)
class Sample:
    """`base` marks the places of the base; `rows` are the places that ask, those of the top-up among them, in order."""

    layout: Layout
    base: NDArray[np.bool_]
    rows: Ints

    @cached_property
    def size(self) -> int:
        """The number of queries in the base."""
        return int(self.base.sum())

    @cached_property
    def asked(self) -> Floats:
        """How many places of each class ask."""
        return np.bincount(self.layout.codes[self.rows], minlength=self.layout.classes).astype(np.float64)

    @property
    def covers_classes(self) -> bool:
        """Whether every class has the queries that metrics of class means take."""
        return bool((self.asked >= np.minimum(LEAST, self.layout.sizes)).all())

    def slots(self, places: Ints) -> Ints:
        """Where places that ask stand in `rows`."""
        return np.searchsorted(self.rows, places)


def draw(layout: Layout, queries: int, seed: int, *, by_class: bool = True) -> Sample | None:
    """Draw `queries` places; None where that is all of them. `by_class` says whether classes are topped up.

    Classes are topped up only while LEAST queries of each are no more than were asked for: with more classes than that
    the top-up would be the larger part of the work.
    """
    if not 0 < queries < layout.n:
        return None
    rank = np.random.default_rng([seed, STREAM]).permutation(layout.n)[layout.order]
    base = rank < queries
    asking = base.copy()
    if by_class and LEAST * layout.classes <= queries:
        order = np.lexsort((rank, layout.codes))  # class by class, first drawn first
        asking[order[np.arange(layout.n) - layout.starts[layout.codes] < LEAST]] = True
    return Sample(layout, base, np.flatnonzero(asking))
