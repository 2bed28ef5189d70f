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


def nearer(first: Floats, second: Floats) -> NDArray[np.int64]:
    """1 where the first distance is the smaller one, -1 where it is the larger, 0 where they are equal.

    Distances are compared as a sweep compares them, to 40 bits, so that rounding noise does not break a tie.
    """
    a, b = (np.empty(len(first)), np.empty(len(first)))
    for distances, out in ((first, a), (second, b)):
        _ranks(np.ascontiguousarray(distances, np.float64), out)
    return np.sign(b - a).astype(np.int64)


def gaps(first: Floats, second: Floats) -> Floats:
    """The differences of distances, all on one grid of 2^-40 of the largest distance: equal ones are equal."""
    largest = max(float(first.max(initial=0.0)), float(second.max(initial=0.0)))
    unit = 2.0 ** (np.frexp(largest)[1] - 40.0) if largest > 0.0 else 1.0
    return np.asarray(np.round((first - second) / unit) * unit)


@compiled
def _distances(raw, flat, a, b, halved, scale, out):
    for i in range(len(a)):
        out[i] = 0.0 if a[i] == b[i] else distance(raw, flat, a[i], b[i], halved, scale)


@compiled
def _ranks(values, out):
    for i in range(len(values)):
        out[i] = rank_of(values[i])
