"""Whether a model answers one sound alike twice, in the space in which it is scored.

A small difference of numbers is no small difference of neighbours: beside one large constant feature anything looks
small, and distances that centre or rank do not see the constant. So the second answer to a sound must also lie much
nearer to the first than any other sound does, by the distance that the package declares; and where all sounds are
equally far apart, so that a thousandth decides who is near, its neighbours must be those of the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAST_KEPT", "MOST_MOVED", "TOLERANCE", "difference", "kept_neighbours", "moved_share"]

Floats = NDArray[np.floating]

TOLERANCE = 1e-3
"""How far two answers to one sound may differ, as a share of their largest value."""
MOVED = 0.05
"""How far they may lie apart, as a share of the distance to the nearest other sound."""
MOST_MOVED = 0.1
"""The share of sounds that may lie further apart: recordings that are nearly the same have no room between them."""
NEIGHBOURS, LEAST_KEPT = 5, 0.8
"""So many nearest sounds of an answer, and the share of them that the second answer must have as well, in the mean."""
_ROWS = 256


def difference(one: Floats, other: Floats) -> float:
    """The largest difference of two vectors, as a share of their largest value; infinite for different lengths."""
    if one.shape != other.shape:
        return math.inf
    a, b = one.astype(np.float64), other.astype(np.float64)
    largest = max(float(np.abs(a).max()), float(np.abs(b).max()))
    return float(np.abs(a - b).max()) / largest if largest else 0.0


def moved_share(first: Floats, again: Floats, others: Floats, distance: str, own: Sequence[int]) -> float:
    """The share of sounds whose second answer is not much nearer to the first than the nearest other sound is.

    Args:
        first: first answers [M, D].
        again: second answers to the same sounds.
        others: answers to all sounds [N, D].
        distance: as declared.
        own: for each of the M its row among the others, which is left out; -1 where it is none of them.
    """
    points, seconds = _placed(first, distance), _placed(again, distance)
    apart = _lengths(points - seconds)
    nearest = np.full(len(first), np.inf)
    for start in range(0, len(others), _ROWS):
        block = _placed(others[start : start + _ROWS], distance)
        for row, point in enumerate(points):
            lengths = _lengths(block - point)
            if start <= own[row] < start + len(block):
                lengths[own[row] - start] = np.inf
            nearest[row] = min(nearest[row], lengths.min(initial=np.inf))
    return float(np.mean(apart > MOVED * nearest)) if len(first) else 0.0


def kept_neighbours(first: Floats, again: Floats, others: Floats, distance: str, own: Sequence[int]) -> float:
    """The share of the nearest sounds of first answers that second answers have, too; arguments as of `moved_share`."""
    k = min(NEIGHBOURS, len(others) - 1)
    if not len(first) or k < 1:
        return 1.0
    lists = [_nearest(_placed(answers, distance), others, distance, own, k) for answers in (first, again)]
    kept = [len(set(one) & set(other)) for one, other in zip(*(rows.tolist() for rows in lists), strict=True)]
    return float(np.mean(kept)) / k


def _nearest(
    points: NDArray[np.float64], others: Floats, distance: str, own: Sequence[int], k: int
) -> NDArray[np.intp]:
    lengths = np.empty((len(points), len(others)))
    for start in range(0, len(others), _ROWS):
        block = _placed(others[start : start + _ROWS], distance)
        for row, point in enumerate(points):
            lengths[row, start : start + len(block)] = _lengths(block - point)
    for row, place in enumerate(own):
        if place >= 0:
            lengths[row, place] = np.inf
    return np.argsort(lengths, axis=1, kind="stable")[:, :k]


def _placed(vectors: Floats, distance: str) -> NDArray[np.float64]:
    """Points whose Euclidean distances order as the declared distance does: directions, ranks' directions, or as is."""
    points = np.asarray(vectors, np.float64)
    if distance == "euclidean":
        return points
    if distance == "spearman":
        from scipy.stats import rankdata

        points = rankdata(points, axis=1)
        points = points - points.mean(axis=1, keepdims=True)
    lengths = _lengths(points)[:, None]
    return points / np.where(lengths > 0, lengths, 1.0)


def _lengths(points: NDArray[np.float64]) -> NDArray[np.float64]:
    scale = np.abs(points).max(initial=0.0) or 1.0
    return np.asarray(scale * np.sqrt(np.einsum("ij,ij->i", points / scale, points / scale)))
