"""The Pareto front: the points that no other beats on every axis at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from earmark.errors import InputError


def pareto_front(axes: Sequence[ArrayLike], higher_is_better: Sequence[bool]) -> NDArray[np.bool_]:
    """Which points are on the front: no other is at least as good on every axis and better on one. Ties are all on it.

    Args:
        axes: One list of numbers per axis, all of one length: the coordinates of the points.
        higher_is_better: The direction of each axis.

    Raises:
        InputError: Lists of different lengths, or a number that is not finite: nothing beats a NaN.
    """
    columns = [np.asarray(axis, np.float64) for axis in axes]
    if any(column.shape != columns[0].shape or column.ndim != 1 for column in columns):
        shapes = " and ".join(str(column.shape) for column in columns)
        raise InputError(f"The axes of a Pareto front must be lists of one length, not {shapes}.")
    costs = np.stack([-c if up else c for c, up in zip(columns, higher_is_better, strict=True)], axis=1)
    if not np.isfinite(costs).all():
        raise InputError("The axes of a Pareto front must be finite: leave points without a value out.")
    front = np.zeros(len(costs), bool)
    left = np.lexsort(costs.T[::-1])  # nothing later can beat the first
    while left.size:
        best = costs[left[0]]
        front[left] |= (costs[left] == best).all(axis=1)
        left = left[(costs[left] < best).any(axis=1)]
    return front
