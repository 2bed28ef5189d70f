"""From vectors and labels to scores: the three verbs a user calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from earmark.evaluation.comparison import compare
from earmark.evaluation.evaluate import evaluate
from earmark.evaluation.hub_study import study_hubness
from earmark.evaluation.options import HUB_K
from earmark.geometry import spaces
from earmark.scores import Scores

__all__ = ["compare", "evaluate", "hubness"]


def hubness(
    vectors: Any,
    *,
    distance: str | Sequence[str] = "cosine",
    k: int = HUB_K,
    ties: spaces.Ties = "average",
    per_point: bool = False,
    ids: Sequence[str] | None = None,
    correct: str | Sequence[str] = "none",
    device: str = "auto",
    memory: str | int = "2GB",
    threads: int | None = None,
    system: str = "",
    subset: str = "",
    suite: str = "",
    progress: bool = False,
) -> Scores:
    """Measure how unevenly `vectors` [N, D] appear among each other's k nearest neighbours; no labels needed.

    Args:
        vectors: One row for each clip.
        distance: One or several of cosine, euclidean, spearman.
        k: Length of the lists of neighbours.
        ties: Ranks of equal values under spearman: "average", or "ordinal" as in published numbers.
        per_point: Keep how many lists each point is in, in `Scores.per_point` under the metric "hub_ratio".
        ids: Names of the rows.
        correct: One or several hubness corrections; `("none", "icdm")` gives the measures before and after one.
        device: Where the neighbours that a correction rests on are searched: cpu, cuda, or auto (a GPU if there is one
            and it pays).
        memory: Budget for tiles and batches, beside the vectors: "2GB", or a number of bytes.
        threads: Threads at work; None is one for each core. No result depends on it.
        system: Name of the model, for the column `system`.
        subset: Name of the data, for the column `subset`.
        suite: Name of the suite, for the column `suite`.
        progress: Whether a bar on stderr shows how far the work is.
    """
    return study_hubness(
        vectors, distance=distance, k=k, ties=ties, per_point=per_point, ids=ids, correct=correct, device=device,
        memory=memory, threads=threads, system=system, subset=subset, suite=suite, progress=progress,
    ).scores  # fmt: skip
