"""Distances with the labels of their items."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from earmark.vectors._reading import match_rows, read_labels
from earmark.vectors.distances import Distances, read_distances
from earmark.vectors.texts import Texts


@dataclass(frozen=True, slots=True, eq=False)
class LabelledDistances:
    """Distances, and the label and the group of each item; `summary` says what was used as what."""

    distances: Distances
    labels: Texts
    groups: Texts | None
    ids: tuple[str, ...] | None
    notes: tuple[str, ...]
    summary: str
    columns: None = None


def read_labelled_distances(
    distances: str | os.PathLike[str],
    labels: str | os.PathLike[str],
    *,
    ids: str | os.PathLike[str] | Sequence[str] | None = None,
    key: str | None = None,
    pair_columns: str | Sequence[str] | None = None,
    symmetrise: str | None = None,
    label_column: str | None = None,
    groups: str | None = None,
    progress: bool = False,
) -> LabelledDistances:
    """Read distances and the labels of their items: joined by id where both have ids, else by position.

    Args:
        distances: A file of distances, as `read_distances` reads it.
        labels: A file of labels, as `read_labels` reads it.
        ids: The names of the items in the order of the matrix: a list or a file.
        key: The array of an .npz file of distances.
        pair_columns: The columns of a table of pairs: "a,b,distance".
        symmetrise: What counts where the two directions of a pair differ: mean, min or max.
        label_column: The column that holds the labels.
        groups: The column that holds the groups.
        progress: Whether a bar on stderr shows how far the checks are.
    """
    truth = read_labels(labels, column=label_column, groups=groups)  # the quick file first: its faults come at once
    given = read_distances(distances, ids=ids, key=key, columns=pair_columns, symmetrise=symmetrise, progress=progress)
    order, notes = match_rows(given.ids, given.n, given.source, truth, "item")
    summary = f"{given.source}: distances of {given.n} items"
    for role in ("label", "group", "id"):
        if role in truth.roles:
            summary += f"; {role}: {truth.roles[role]} of {truth.source}"
    return LabelledDistances(
        given,
        [truth.values[row] for row in order],
        None if truth.groups is None else [truth.groups[row] for row in order],
        given.ids if given.ids is not None else truth.ids,
        (*given.notes, *notes),
        summary,
    )
