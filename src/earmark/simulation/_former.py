"""What version 0.1.0 did, kept to be measured beside what replaced it: query by query, with fixed candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def swap_p_value(a: Floats, b: Floats, groups: NDArray[Any] | None, swaps: int, seed: int) -> float:
    """Two-sided p-value of mean(a - b) over queries, swapping the systems query by query or group by group."""
    difference = a - b
    kept = np.isfinite(difference)
    size = int(kept.sum())
    units = np.arange(size) if groups is None else np.unique(groups[kept], return_inverse=True)[1]
    totals = np.bincount(units, difference[kept]) / max(size, 1)
    signs = np.random.default_rng([seed, 1]).integers(0, 2, (swaps, len(totals))) * 2 - 1
    reached = int((np.abs(signs @ totals) >= abs(totals.sum()) - 1e-12).sum())
    return (reached + 1) / (swaps + 1)
