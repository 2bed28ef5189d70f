"""What neighbour lists tell of a model: whether it is nearly another's, and how much hangs on a single clip.

A fingerprint is the lists of nearest neighbours of some clips of a set: which clips, only the host knows. It is made
of the vectors alone and never of labels. It stays on the host's side.

    uint32 k, then for each clip k times uint32: the neighbours by their place in the set; little endian
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from earmark.errors import InputError

__all__ = ["leverage", "pack", "similarity", "unpack"]

_FEW = 10


def pack(lists: ArrayLike) -> bytes:
    """A fingerprint of neighbour lists [clips, k]."""
    rows = np.asarray(lists)
    if rows.ndim != 2 or not rows.size or rows.min() < 0:
        raise InputError("A fingerprint is made of lists of neighbours [clips, k], each the place of a clip.")
    return np.array([rows.shape[1]], "<u4").tobytes() + np.ascontiguousarray(rows, "<u4").tobytes()


def unpack(fingerprint: bytes) -> NDArray[np.uint32]:
    """The neighbour lists of a fingerprint."""
    words = np.frombuffer(fingerprint[: len(fingerprint) // 4 * 4], "<u4")
    if len(fingerprint) % 4 or len(words) < 2 or not words[0] or (len(words) - 1) % int(words[0]):
        raise InputError("A fingerprint is damaged: it holds no whole lists of neighbours.")
    return words[1:].reshape(-1, int(words[0]))


def leverage(fingerprint: bytes) -> float:
    """The largest share of P@1, or of P@k, that hangs on the label of a single clip.

    A clip that is the nearest of every other one decides all of P@1 by its label: the figure is then the size of its
    class. Models of sounds have no such clips; vectors made to ask about one clip do. Up to 10 lists say nothing.
    """
    lists = unpack(fingerprint)
    nearest, among = (np.unique(part, return_counts=True)[1].max() for part in (lists[:, 0], lists))
    share = max(nearest / len(lists), among / lists.size)
    return float(share) if nearest > _FEW else 0.0


def similarity(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> float:
    """The smallest share of common neighbours over the sets of two models; 0 where they were not heard on the same."""
    if not one or one.keys() != other.keys():
        return 0.0
    return min(_shared(one[name], other[name]) for name in one)


def _shared(one: bytes, other: bytes) -> float:
    if one == other:
        return 1.0
    a, b = unpack(one), unpack(other)
    if a.shape != b.shape:
        return 0.0
    # Both lists of a clip in one row, sorted: a neighbour in both stands twice, side by side.
    rows = np.sort(np.concatenate([a, b], axis=1), axis=1)
    return float((rows[:, 1:] == rows[:, :-1]).sum() / a.size)
