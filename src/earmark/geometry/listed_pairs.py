"""Distances of listed pairs of rows, digit for digit as a sweep reports them; nothing of the size N x N is made."""
# mypy: disallow-untyped-calls=False, disallow-untyped-defs=False

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from earmark.geometry.pair_kernels import compiled, distance, rank_of
from earmark.geometry.spaces import Space

Floats = NDArray[np.float64]


def listed_distances(space: Space, a: NDArray[np.int64], b: NDArray[np.int64]) -> Floats:
    """The distance of row a[i] to row b[i] of the space, for every i."""
    out = np.empty(len(a))
    _distances(space.raw, space.flat, a, b, space.halved, space.scale, out)
    return out


def comparable(distances: Floats) -> Floats:
    """Distances as a sweep compares them: to 40 bits, so that rounding noise does not break a tie."""
    out = np.empty(len(distances))
    _ranks(np.ascontiguousarray(distances, np.float64), out)
    return out


@compiled
def _distances(raw, flat, a, b, halved, scale, out):
    for i in range(len(a)):
        out[i] = 0.0 if a[i] == b[i] else distance(raw, flat, a[i], b[i], halved, scale)


@compiled
def _ranks(values, out):
    for i in range(len(values)):
        out[i] = rank_of(values[i])
