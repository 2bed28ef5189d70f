"""Distances with the labels of their items."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from earmark.vectors._matching import match_rows
from earmark.vectors._reading import read_labels_and_groups
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
    doubts: tuple[str, ...] = ()
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
    """Read distances and the labels of their items: joined as vectors are; pairs by name alone.

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
    # The quick file first: its faults come at once.
    truth = read_labels_and_groups(labels, column=label_column, groups=groups)
    given = read_distances(distances, ids=ids, key=key, columns=pair_columns, symmetrise=symmetrise, progress=progress)
    match = match_rows(given.ids, given.n, given.source, truth, "item", ordered=given.ordered)
    summary = f"{given.source}: distances of {given.n} items"
    for role in ("label", "group", "id"):
        column = match.column if role == "id" and match.column else truth.roles.get(role)
        if column is not None:
            summary += f"; {role}: {column} of {truth.source}"
    return LabelledDistances(
        given,
        [truth.values[row] for row in match.order],
        None if truth.groups is None else [truth.groups[row] for row in match.order],
        match.ids,
        (*given.notes, *match.notes),
        summary,
        match.doubts,
    )
