"""Every clip's own values, as a table a person can sort: which clips fail, and what they were taken for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from earmark.errors import InputError
from earmark.places import locate
from earmark.scores import Scores
from earmark.tables import write_columns

NEAREST = "nearest_row"


def write_points(
    scores: Scores,
    labels: Sequence[str | None],
    groups: Sequence[str | None] | None,
    path: str | os.PathLike[str],
) -> None:
    """Write per-point values as .csv or .parquet: row, id, label, group, one column per distance and metric.

    A value is empty where the point was excluded. Nearest neighbours are given by row, id and label.
    """
    write_columns(locate(path), point_columns(scores, labels, groups), "per-point values")


def point_columns(
    scores: Scores, labels: Sequence[str | None], groups: Sequence[str | None] | None
) -> dict[str, list[Any]]:
    """The same table as lists by column name."""
    if not scores.per_point:
        raise InputError("These scores hold no per-point values: evaluate with per_point=True.")
    columns: dict[str, list[Any]] = {"row": list(range(len(labels)))}
    if scores.point_ids is not None:
        columns["id"] = list(scores.point_ids)
    columns["label"] = list(labels)
    if groups is not None:
        columns["group"] = list(groups)
    for (distance, correction, protocol, metric), values in scores.per_point.items():
        parts = [distance, *(name for name in (correction, protocol) if name not in ("none", "all")), metric]
        title = " ".join(parts)
        if metric == NEAREST:
            rows = [None if np.isnan(value) else int(value) for value in values]
            columns[title] = rows
            if scores.point_ids is not None:
                columns[title.replace(NEAREST, "nearest_id")] = [
                    None if row is None else scores.point_ids[row] for row in rows
                ]
            columns[title.replace(NEAREST, "nearest_label")] = [None if row is None else labels[row] for row in rows]
        else:
            columns[title] = [None if np.isnan(value) else float(value) for value in values]
    return columns
