"""Two embeddings of the same clips: the difference of a mean over queries, its interval and its p-value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate.bootstrap import Counts, interval, resampled_means

Floats = NDArray[np.float64]
TIE = 1e-12
SIGNS_AT_ONCE = 64


@dataclass(frozen=True)
class Difference:
    value: float
    low: float | None
    high: float | None
    p_value: float
    n: int


def paired_difference(
    a: Floats, b: Floats, counts: Counts, groups: NDArray[Any] | None, permutations: int, seed: int
) -> Difference | None:
    """Mean of a - b over queries measured in both; None when there is none.

    The interval resamples queries (or groups) and both embeddings together. The p-value is two-sided, from
    swapping the two embeddings at random in each query (or in all queries of a group):
    (count of |swapped mean| >= |observed mean| + 1) / (permutations + 1).
    """
    difference = a - b
    kept = np.isfinite(difference)
    n = int(kept.sum())
    if n == 0:
        return None
    value = float(difference[kept].mean())
    low, high = interval(resampled_means(difference, counts))
    units = np.arange(n) if groups is None else np.unique(groups[kept], return_inverse=True)[1]
    totals = np.bincount(units, difference[kept]) / n
    reached = 0
    for start in range(0, permutations, SIGNS_AT_ONCE):
        rng = np.random.default_rng([seed, 1, start])
        rows = min(SIGNS_AT_ONCE, permutations - start)
        signs = rng.integers(0, 2, (rows, len(totals)), dtype=np.int8) * 2 - 1
        reached += int((np.abs(signs @ totals) >= abs(value) - TIE).sum())
    return Difference(value, low, high, (reached + 1) / (permutations + 1), n)
