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

    With `per_point`, `Scores.per_point` holds each point's k-occurrence under the metric name "hub_ratio". `correct`
    and `device` as in `evaluate`: `correct=("none", "icdm")` gives the measures before and after a correction.
    """
    return study_hubness(
        vectors, distance=distance, k=k, ties=ties, per_point=per_point, ids=ids, correct=correct, device=device,
        memory=memory, threads=threads, system=system, subset=subset, suite=suite, progress=progress,
    ).scores  # fmt: skip
