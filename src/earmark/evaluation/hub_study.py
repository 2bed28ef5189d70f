"""Hubness of vectors without labels: the four measures, and the neighbour lists they were counted from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
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
from earmark.scores import Row, Scores
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
    k = whole("k", k, 1)  # before Options, which has another name for it
    _refuse_zero(correct)
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
        rows=tuple(_explained(row, k, data.rows) for part in parts for row in part.rows),
        per_point={key: found for part in parts for key, found in part.per_point.items()},
        point_ids=data.ids if per_point else None,
    )
    return HubStudy(scores, lists)


def _refuse_zero(correct: Any) -> None:
    """`icdm:k=0` names a parameter that exists, with a value that does not."""
    for text in [correct] if isinstance(correct, str) else correct if isinstance(correct, Iterable) else ():
        for name, number in re.findall(r"\b(k|iterations)\s*=\s*(-?\d+)", str(text)):
            whole(name, int(number), 1)


def _explained(row: Row, k: int, points: int) -> Row:
    """Lists of k do not fit: how many points they need, and how many there are."""
    if row.status != "not_applicable" or not row.reason.startswith(f"k = {k} needs"):
        return row
    return replace(row, reason=f"k = {k} needs at least {k + 1} points, there are {points}")
