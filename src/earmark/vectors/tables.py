"""Vectors and labels as tables, and how the names, texts and arrays of any file become them.

Names with a meaning, in any case, singular or plural: `id`, `label`, `group`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, did_you_mean

Matrix: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
Texts: TypeAlias = list[str | None]


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """A matrix with a row for each clip, float32 or float64, and what the file says of each row."""

    ids: tuple[str, ...] | None
    values: Matrix
    labels: tuple[str | None, ...] | None = None
    groups: tuple[str | None, ...] | None = None
    source: str = "The vectors"


@dataclass(frozen=True, slots=True)
class Labels:
    """A label for each clip; None is unlabelled. `header` is the heading they stood under, if not `label`."""

    values: Texts
    ids: tuple[str, ...] | None = None
    groups: Texts | None = None
    source: str = "The labels"
    header: str | None = None


def vectors_of(values: Matrix, texts: Mapping[str, Texts], source: Path) -> Vectors:
    """A matrix with the texts that stand beside it, by their meaning."""
    return Vectors(
        _ids(texts["id"], source) if "id" in texts else None,
        values,
        labels=tuple(texts["label"]) if "label" in texts else None,
        groups=tuple(texts["group"]) if "group" in texts else None,
        source=str(source),
    )


def labels_of(texts: Mapping[str, Texts], source: Path, header: str | None = None) -> Labels:
    """Labels from texts by their meaning; `label` is one of them."""
    return Labels(
        texts["label"],
        ids=_ids(texts["id"], source) if "id" in texts else None,
        groups=texts.get("group"),
        source=str(source),
        header=header,
    )


def _ids(texts: Texts, source: Path) -> tuple[str, ...]:
    for row, text in enumerate(texts, start=1):
        if text is None:
            raise InputError(f"{source}: row {row} has no id; give every row one, or remove the ids.")
    return tuple(text for text in texts if text is not None)


def role_of(name: str) -> str | None:
    """`id`, `label` or `group` when a column or array has that meaning."""
    singular = name.strip().lower().removesuffix("s")
    return singular if singular in ("id", "label", "group") else None


def roles_of(names: Iterable[str], source: Path) -> dict[str, str]:
    """Meaning → name of the column or array that has it."""
    found: dict[str, str] = {}
    for name in names:
        role = role_of(name)
        if role is not None and found.setdefault(role, name) != name:
            raise InputError(f"{source} has both `{found[role]}` and `{name}`; remove one of them.")
    return found


def pick_columns(names: Sequence[str], column: str | None, groups: str | None, source: Path) -> dict[str, str]:
    """Which columns or arrays hold the labels, the groups and the ids."""
    roles = roles_of(names, source)
    for wanted, role in ((column, "label"), (groups, "group")):
        if wanted is None:
            continue
        if wanted not in names:
            hint = did_you_mean(wanted, names)
            raise InputError(f'{source} has no column "{wanted}"; it has {", ".join(names)}.{hint}')
        roles[role] = wanted
    if "label" not in roles:
        others = [name for name in names if name not in roles.values()]
        if len(others) != 1:
            raise InputError(f"{source} has the columns {', '.join(names)}; name the one with the labels `label`.")
        roles["label"] = others[0]
    return roles


def refuse_columns(source: Path, column: str | None, groups: str | None) -> None:
    """For formats that hold one nameless list of labels."""
    if column is not None or groups is not None:
        raise InputError(f"{source} has no named columns; give a .csv, .npz or .parquet file to choose one by name.")


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


def as_text(item: object) -> str | None:
    """A label or group as text; None when it says nothing."""
    if item is None or (isinstance(item, float) and math.isnan(item)):
        return None
    if isinstance(item, bytes):
        item = item.decode()
    if isinstance(item, float) and item.is_integer():
        item = int(item)
    return str(item).strip() or None
