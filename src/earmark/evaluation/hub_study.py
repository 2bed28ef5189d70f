"""Hubness of vectors without labels: the four measures, and the neighbour lists they were counted from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.evaluation.data import unlabelled
from earmark.evaluation.measure import measure
from earmark.evaluation.options import HUB_K, Options, as_names, byte_count, whole
from earmark.geometry import spaces
from earmark.geometry.corrections import Correction, parse_all
from earmark.metrics import catalogue
from earmark.scores import Scores
from earmark.scores.spelling import refuse_reserved
from earmark.workers import thread_count


class HubStudy(NamedTuple):
    """`lists` maps (distance, correction) to the k nearest rows of every row, nearest first."""

    scores: Scores
    lists: dict[tuple[str, str], NDArray[np.int64]]


def study_hubness(
    vectors: Any,
    *,
    distance: str | Sequence[str] = "cosine",
    k: int = HUB_K,
    ties: spaces.Ties = "average",
    per_point: bool = False,
    ids: Sequence[str] | None = None,
    correct: str | Iterable[str | Correction] = "none",
    device: str = "auto",
    memory: str | int = "2GB",
    threads: int | None = None,
    system: str = "",
    subset: str = "",
    suite: str = "",
    progress: bool = False,
) -> HubStudy:
    """`earmark.hubness` with its neighbour lists: who lists whom, before and after a correction."""
    refuse_reserved(subset, "subset")
    k = whole("k", k, 1)  # before Options, which has another name for it
    options = Options(
        distance=as_names(distance, "distance"), correct=parse_all(correct), metrics=catalogue.HUBNESS, hub_k=k,
        ties=ties, per_point=per_point, memory=byte_count(memory), threads=thread_count(threads), device=device,
        progress=progress,
    )  # fmt: skip
    data = unlabelled(vectors, ids)
    if data.rows < 3:
        raise InputError(f"Hubness needs at least 3 vectors; there are {data.rows}.")
    where = {"suite": suite, "subset": subset, "system": system}
    lists: dict[tuple[str, str], NDArray[np.int64]] = {}

    def keep(distance: str, correction: str, rows: NDArray[np.int64]) -> None:
        if rows.shape[1] >= k:  # a set of k points or fewer has no lists of k
            lists[distance, correction] = rows[:, :k].copy()

    parts = [part for name in options.distance for part in measure(data, name, options, where, keep)]
    scores = Scores(
        rows=tuple(row for part in parts for row in part.rows),
        per_point={key: found for part in parts for key, found in part.per_point.items()},
        point_ids=data.ids if per_point else None,
    )
    return HubStudy(scores, lists)
