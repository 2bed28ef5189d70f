"""The join: every vector gets its label and its group, by id or by position."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from earmark.errors import InputError
from earmark.vectors.reading import read_labels, read_vectors
from earmark.vectors.roles import MissingColumn, NamelessColumns
from earmark.vectors.tables import Labels, Matrix, Vectors
from earmark.vectors.texts import Texts


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Vectors and labels row by row, in the order of the vectors. `notes` says what a reader should know.

    `columns` names the dimensions, where the file names them, and `summary` says what every column was used as.
    """

    values: Matrix
    labels: Texts
    groups: Texts | None
    ids: tuple[str, ...] | None
    notes: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    summary: str = ""


def read_labelled(
    vectors: str | os.PathLike[str],
    labels: str | os.PathLike[str] | None = None,
    *,
    key: str | None = None,
    label_column: str | None = None,
    groups: str | None = None,
    dimensions: str | Sequence[str] = (),
) -> Joined:
    """Read vectors with their labels, from one file or from two, and join them.

    Columns used as labels, groups or ids are never dimensions, in whichever file they are named.

    Args:
        vectors: A file of vectors, as `read_vectors` reads it.
        labels: A file of labels; joined by id where both files have ids. None takes those in the file of the vectors.
        key: The array, list column or dictionary entry to take.
        label_column: The column or array that holds the labels.
        groups: The column or array that holds the groups, looked for in the file of the labels and then in the other
            one.
        dimensions: Columns of a table that are the vectors, by name or pattern (`f*`).
    """
    if labels is None:
        return join(read_vectors(vectors, key=key, label_column=label_column, groups=groups, dimensions=dimensions))
    elsewhere = None
    try:
        found = read_labels(labels, column=label_column, groups=groups)
    except (MissingColumn, NamelessColumns) as error:
        if groups is None or getattr(error, "wanted", groups) != groups:
            raise
        found = replace(read_labels(labels, column=label_column), groups=None)
        elsewhere = error
    in_vectors = None if elsewhere is None else groups
    try:
        loaded = read_vectors(
            vectors, key=key, groups=in_vectors, dimensions=dimensions, apart=tuple(found.roles.values())
        )
    except (MissingColumn, NamelessColumns) as error:
        if in_vectors is None or getattr(error, "wanted", groups) != groups:
            raise
        raise (elsewhere if isinstance(elsewhere, MissingColumn) else error) from None
    return join(loaded, found)


def join(vectors: Vectors, labels: Labels | None = None) -> Joined:
    """Give every vector its label: by id when both sides have ids, else by position.

    By id, every vector needs a label row, and label rows without a vector are left out and noted. Without
    `labels` those inside the vectors file are taken. Groups come from the labels, else from the vectors.
    """
    if labels is None:
        if vectors.labels is None:
            there = f", or name one of its columns ({', '.join(vectors.left_out)})" if vectors.left_out else ""
            raise InputError(f"{vectors.source} holds no labels; give a file of labels{there}.")
        groups = None if vectors.groups is None else list(vectors.groups)
        _refuse_leaks(vectors, vectors.labels, groups)
        return Joined(
            vectors.values, list(vectors.labels), groups, vectors.ids, vectors.notes, vectors.columns, vectors.summary
        )
    notes = list(vectors.notes)
    if vectors.labels is not None and not _same_file(labels.source, vectors.source):
        notes.append(f"Labels come from {labels.source}; those in {vectors.source} are not used.")
    if vectors.ids is not None and labels.ids is not None:
        order = _by_id(vectors.ids, labels.ids, vectors.source, labels.source)
        spare = len(labels.values) - len(order)
        if spare:
            rows = "1 row has" if spare == 1 else f"{spare} rows have"
            notes.append(f"{labels.source}: {rows} no vector and {'was' if spare == 1 else 'were'} left out.")
    else:
        if len(vectors.values) != len(labels.values):
            raise InputError(_length_mismatch(vectors, labels))
        if (vectors.ids is None) != (labels.ids is None):
            without = vectors.source if vectors.ids is None else labels.source
            notes.append(f"{without} has no ids; vectors and labels were joined by position.")
        order = list(range(len(labels.values)))
    chosen = [labels.values[row] for row in order]
    found: Sequence[str | None] | None = vectors.groups
    if labels.groups is not None:
        found = [labels.groups[row] for row in order]
    ids = labels.ids if vectors.ids is None else vectors.ids
    groups = None if found is None else list(found)
    _refuse_leaks(vectors, chosen, groups)
    where = "" if _same_file(labels.source, vectors.source) else labels.source
    summary = vectors.summary_with(labels.roles, where)
    return Joined(vectors.values, chosen, groups, ids, tuple(notes), vectors.columns, summary)


def _refuse_leaks(vectors: Vectors, labels: Sequence[str | None], groups: Sequence[str | None] | None) -> None:
    """Refuse vectors of which one dimension is the label or the group under other names."""
    for place in vectors.doubtful:
        name = vectors.columns[place] if vectors.columns else str(place + 1)
        for texts, what in ((labels, "labels"), (groups or (), "groups")):
            pairs = {(number, text) for number, text in zip(vectors.values[:, place], texts, strict=False) if text}
            apart = len({number for number, _ in pairs}), len({text for _, text in pairs})
            if apart == (len(pairs), len(pairs)) and len(pairs) > 1:
                raise InputError(
                    f'{vectors.source}: column "{name}" numbers the {what}, and so is no dimension; take it out.'
                )


def _same_file(one: str, other: str) -> bool:
    return one == other or Path(one).absolute() == Path(other).absolute()


def _by_id(ids: Sequence[str], label_ids: Sequence[str], source: str, label_source: str) -> list[int]:
    for names, where in ((ids, source), (label_ids, label_source)):
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise InputError(f"{where} has {_some(repeated, 'id')} more than once; ids must be unique.")
    row_of = {name: row for row, name in enumerate(label_ids)}
    missing = [name for name in ids if name not in row_of]
    if missing:
        raise InputError(
            f"{label_source} lacks {_some(missing, 'id')} of {len(ids)} in {source}; add the rows, "
            "with an empty label where there is none."
        )
    return [row_of[name] for name in ids]


def _length_mismatch(vectors: Vectors, labels: Labels) -> str:
    short = f"{vectors.source} has {len(vectors.values)} rows but {labels.source} has {len(labels.values)} labels"
    if labels.header is not None and len(labels.values) + 1 == len(vectors.values):
        return f'{short}; its first line "{labels.header}" was read as the heading: put `label` above it.'
    return f"{short}; give one label for each vector, or an `id` column on both sides."


def _some(names: Sequence[str], noun: str, most: int = 3) -> str:
    """'id "a"', '2 ids ("a", "b")', '9 ids ("a", "b", "c", …)'"""
    shown = ", ".join(f'"{name}"' for name in names[:most])
    if len(names) == 1:
        return f"{noun} {shown}"
    return f"{len(names)} {noun}s ({shown}{', …' if len(names) > most else ''})"
