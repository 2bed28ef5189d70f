"""Vectors, labels and the two together, and how the texts and arrays of any file become them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.vectors.columns import Numbered, shortened, without_index
from earmark.vectors.texts import Texts, settled
from earmark.wording import counted

Matrix: TypeAlias = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """A matrix with a row for each clip, float32 or float64, and what the file says of each row.

    `columns` names the dimensions, where the file names them; `roles` says which columns or arrays gave the labels, the
    groups and the ids; `left_out` names columns that are neither. `notes` says what a reader should know.
    """

    ids: tuple[str, ...] | None
    values: Matrix
    labels: tuple[str | None, ...] | None = None
    groups: tuple[str | None, ...] | None = None
    source: str = "The vectors"
    columns: tuple[str, ...] | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    doubtful: tuple[int, ...] = ()  # places of dimensions that may be labels by what they hold
    beside: Mapping[str, Texts] = field(default_factory=dict)  # other columns, which may hold names
    separator: str = ""  # between the labels of a row, where rows have several

    @property
    def summary(self) -> str:
        """Which columns were used as what: `f.csv: 128 columns f0 … f127; label: class; left out: index`."""
        return self.summary_with({})

    def summary_with(self, roles: Mapping[str, str], source: str = "") -> str:
        """The summary where labels, groups or ids come from another place: from `source`, or from this same file."""
        width = counted(self.values.shape[1], "column")
        parts = [f"{self.source}: {width}" + (f" {shortened(self.columns)}" if self.columns else "")]
        for role in ("label", "group", "id"):
            if role in roles:
                parts.append(f"{role}: {roles[role]}" + (f" of {source}" if source else ""))
            elif role in self.roles:
                parts.append(f"{role}: {self.roles[role]}")
        rest = [name for name in self.left_out if source or name not in roles.values()]
        return "; ".join([*parts, f"left out: {shortened(rest)}"] if rest else parts)


@dataclass(frozen=True, slots=True)
class Labels:
    """A label for each clip; None is unlabelled. `header` is the heading they stood under, if not `label`.

    `roles` says which columns or arrays were taken as labels, groups and ids; `beside` holds the others, without ids.
    """

    values: Texts
    ids: tuple[str, ...] | None = None
    groups: Texts | None = None
    source: str = "The labels"
    header: str | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, Texts] = field(default_factory=dict)
    separator: str = ""  # between the labels of a row, where rows have several
    background: str = ""  # the label of rows that have none of those asked for
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Vectors and labels row by row, in the order of the vectors. `notes` says what a reader should know.

    `columns` names the dimensions, where the file names them, and `summary` says what every column was used as.
    `doubts` are those notes that belong into every score: labels that were joined by position beside ids. `separator`
    stands between the labels of a row that has several, and `background` is the label of rows that have none.
    """

    values: Matrix
    labels: Texts
    groups: Texts | None
    ids: tuple[str, ...] | None
    notes: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    summary: str = ""
    doubts: tuple[str, ...] = ()
    separator: str = ""
    background: str = ""


def vectors_of(
    values: Matrix,
    texts: Mapping[str, Texts],
    source: Path,
    *,
    names: Sequence[str] | None = None,
    roles: Mapping[str, str] | None = None,
    left_out: Sequence[str] = (),
    chosen: bool = False,
    beside: Mapping[str, Texts] | None = None,
) -> Vectors:
    """A matrix with the texts that stand beside it, by their meaning; a column that counts the rows is taken out.

    `chosen` says that the caller chose the dimensions, so that what they hold is not judged.
    """
    everything = list(range(values.shape[1]))
    judged = Numbered(everything, [], [], ()) if chosen else without_index(values, names, source)
    if judged.counting:
        values = values.take(judged.kept, axis=1)
        left_out = [*left_out, *(names[place] if names else f"column {place + 1}" for place in judged.counting)]
    return Vectors(
        _ids(texts["id"], source) if "id" in texts else None,
        values,
        labels=tuple(settled(texts["label"])) if "label" in texts else None,
        groups=tuple(settled(texts["group"])) if "group" in texts else None,
        source=str(source),
        columns=None if names is None else tuple(names[place] for place in judged.kept),
        roles=roles or {},
        left_out=tuple(name.strip() or "(unnamed)" for name in left_out),
        notes=judged.notes,
        doubtful=tuple(judged.kept.index(place) for place in judged.doubtful),
        beside=beside or {},
    )


def labels_of(
    texts: Mapping[str, Texts], source: Path, header: str | None = None, roles: Mapping[str, str] | None = None,
    beside: Mapping[str, Texts] | None = None,
) -> Labels:  # fmt: skip
    """Labels from texts by their meaning; `label` is one of them."""
    return Labels(
        settled(texts["label"]),
        ids=_ids(texts["id"], source) if "id" in texts else None,
        groups=settled(texts["group"]) if "group" in texts else None,
        source=str(source),
        header=header,
        roles=roles or {},
        beside=beside or {},
    )


def _ids(texts: Texts, source: Path) -> tuple[str, ...]:
    for row, text in enumerate(texts, start=1):
        if text is None:
            raise InputError(f"{source}: row {row} has no id; give every row one, or remove the ids.")
    return tuple(text for text in texts if text is not None)


def as_matrix(array: NDArray[Any], source: Path) -> Matrix:
    """Check that the array is a matrix of numbers, and bring it to native float32 or float64."""
    if array.dtype.kind not in "fiub":
        what = {"O": "Python objects", "c": "complex numbers", "U": "text", "S": "text"}
        held = what.get(array.dtype.kind, f"values of type {array.dtype}")
        raise InputError(f"{source} holds {held}, not real numbers; save the vectors as float32.")
    if array.ndim < 2:
        raise InputError(f"{source} has the shape {array.shape}; save one vector a row, as a matrix.")
    if array.ndim > 2:
        raise InputError(f"{source} has {array.ndim} dimensions {array.shape}; pool to one vector a clip first.")
    if 0 in array.shape:
        raise InputError(
            f"{source} has no {'rows' if array.shape[0] == 0 else 'columns'} {array.shape}; write it again."
        )
    single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    if single:
        return np.ascontiguousarray(array, dtype=np.float32)
    return np.ascontiguousarray(array, dtype=np.float64)
