"""The join: every vector gets its label and its group, by id or by position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from earmark.errors import InputError
from earmark.vectors.tables import Labels, Matrix, Texts, Vectors


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Vectors and labels row by row, in the order of the vectors. `notes` says what a reader should know."""

    values: Matrix
    labels: Texts
    groups: Texts | None
    ids: tuple[str, ...] | None
    notes: tuple[str, ...]


def join(vectors: Vectors, labels: Labels | None = None) -> Joined:
    """Give every vector its label: by id when both sides have ids, else by position.

    By id, every vector needs a label row, and label rows without a vector are left out and noted. Without
    `labels` those inside the vectors file are taken. Groups come from the labels, else from the vectors.
    """
    if labels is None:
        if vectors.labels is None:
            raise InputError(f"{vectors.source} holds no labels; give a file of labels.")
        groups = None if vectors.groups is None else list(vectors.groups)
        return Joined(vectors.values, list(vectors.labels), groups, vectors.ids, ())
    notes = []
    if vectors.labels is not None and labels.source != vectors.source:
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
    return Joined(vectors.values, chosen, None if found is None else list(found), ids, tuple(notes))


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
