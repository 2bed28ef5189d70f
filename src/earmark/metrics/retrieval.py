"""P@k: the share of a query's k nearest neighbours that carry its label.

Conventions. The query itself is left out by index. Neighbours are ordered by (distance, row). k is always the
denominator, so a class with fewer than k other members cannot reach 1. Range [0, 1], higher is better.
Queries without any possible match (no same-class partner) are excluded and counted, not scored 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.scores.metrics import FRACTION, METRICS, metric, register

Floats = NDArray[np.float64]


@metric(
    "P@1", range=FRACTION, percent=True, standard=True, lead=1, needs=("neighbours",),
    words="share of clips whose nearest neighbour is of their class",
)  # fmt: skip
def precision_at_k(neighbour_codes: NDArray[Any], query_codes: NDArray[Any], k: int) -> Floats:
    """P@k of every query: `neighbour_codes` [N, >= k] in order of nearness, `query_codes` [N]."""
    hits = neighbour_codes[:, :k] == query_codes[:, None]
    return np.asarray(hits.sum(axis=1) / k)


_WORDS = "share of the 5 nearest neighbours that are of the query's class, averaged over clips"
register(replace(METRICS["P@1"], name="P@5", words=_WORDS, lead=3))
