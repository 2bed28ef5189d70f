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


@metric(
    "label_P@1", range=FRACTION, percent=True, needs=("neighbours",),
    words="share of a label's clips whose nearest neighbour has that label, averaged over labels",
)  # fmt: skip
def label_precision(held: Floats, labels: NDArray[Any]) -> float:
    """The mean over labels of the mean over their clips; `held` is 1 where the nearest neighbour has the label too.

    One entry for each label of each query (`labels`, by number). Range [0, 1], higher is better. A label that no clip
    with a partner has does not count; NaN where there is none. Of clips with one label each, P@1 averaged over classes.
    """
    counts = np.bincount(labels)
    if not counts.any():
        return float("nan")
    sums = np.bincount(labels, held)
    return float((sums[counts > 0] / counts[counts > 0]).mean())


@metric(
    "label_jaccard", range=FRACTION, percent=True, needs=("neighbours",),
    words="labels that a clip and its nearest neighbour share over all labels of the two, averaged over clips",
)  # fmt: skip
def label_jaccard(shared: NDArray[Any], own: NDArray[Any], theirs: NDArray[Any]) -> Floats:
    """Jaccard's index of two label sets from how many labels they share and have; 0 where both are empty.

    Range [0, 1], higher is better. Of clips with one label each, 1 or 0: the mean is then P@1.
    """
    union = own + theirs - shared
    return np.asarray(shared / np.maximum(union, 1), np.float64)
