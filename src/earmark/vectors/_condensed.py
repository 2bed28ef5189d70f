"""Condensed distances: of n items the n (n - 1) / 2 pairs (0,1) (0,2) … (0,n-1) (1,2) …, as in scipy's `pdist`."""

from __future__ import annotations

from typing import Any

import numpy as np


def count_of_condensed(length: int) -> int:
    """The n for which n (n - 1) / 2 is `length`, or else the largest for which it is less."""
    n = int((1 + np.sqrt(1 + 8 * length)) / 2) + 1
    while n * (n - 1) // 2 > length:
        n -= 1
    return n


def condensed_places(low: Any, high: Any, n: int) -> Any:
    """Where the pairs of items `low` < `high` stand."""
    return n * low - low * (low + 1) // 2 + high - low - 1


def pair_at(place: int, n: int) -> tuple[int, int]:
    """The items of the pair at a place."""
    items = np.arange(n - 1, dtype=np.int64)
    starts = condensed_places(items, items + 1, n)
    i = int(np.searchsorted(starts, place, side="right")) - 1
    return i, int(place - starts[i]) + i + 1
