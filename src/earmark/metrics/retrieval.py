"""P@k: the share of a query's k nearest neighbours that carry its label.

Conventions. The query itself is left out by index. Neighbours are ordered by (distance, row). k is always the
denominator, so a class with fewer than k other members cannot reach 1. Range [0, 1], higher is better.
Queries without any possible match (no same-class partner) are excluded and counted, not scored 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def precision_at_k(neighbour_codes: NDArray[Any], query_codes: NDArray[Any], k: int) -> Floats:
    """P@k of every query: `neighbour_codes` [N, >= k] in order of nearness, `query_codes` [N]."""
    hits = neighbour_codes[:, :k] == query_codes[:, None]
    return np.asarray(hits.sum(axis=1) / k)
