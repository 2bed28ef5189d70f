"""Embeddings whose answers are known: vectors whose distances have any wanted order."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from earmark.probes.perception import Judgements

Floats = NDArray[np.float64]


def ordered_pairs(judgements: Judgements, rows: Iterable[int]) -> dict[tuple[int, int], int]:
    """A rank for every judged pair {x, a}, {x, b} such that the chosen sound is nearer; CycleError if there is none."""
    nearer: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for row in rows:
        x = int(judgements.x[row])
        chosen, other = int(judgements.a[row]), int(judgements.b[row])
        if judgements.choices[row] < 0:
            chosen, other = other, chosen
        nearer.setdefault((min(x, other), max(x, other)), set()).add((min(x, chosen), max(x, chosen)))
    ranks = {pair: rank for rank, pair in enumerate(TopologicalSorter(nearer).static_order())}
    for x, *others in zip(judgements.x.tolist(), judgements.a.tolist(), judgements.b.tolist(), strict=True):
        for other in others:  # pairs of judgements that are not among the rows come last
            ranks.setdefault((min(x, other), max(x, other)), len(ranks))
    return ranks


def embedding(ranks: dict[tuple[int, int], int], n: int) -> Floats:
    """Unit vectors of n sounds whose cosine and euclidean distances have the order of the ranks.

    Similarities that are small enough beside 1 make a positive definite matrix, whatever they are; the rows of its
    Cholesky factor are vectors of length 1 with these similarities.
    """
    similarity = np.zeros((n, n))
    for (i, j), rank in ranks.items():
        similarity[i, j] = similarity[j, i] = 1.0 - (rank + 1.0) / len(ranks)
    largest = float(similarity.sum(axis=1).max())  # no eigenvalue is larger
    vectors: Floats = np.linalg.cholesky(np.eye(n) + 0.5 / largest * similarity)
    return vectors
