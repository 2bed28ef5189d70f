"""Data frames of pandas and polars as vectors, labels and groups: columns by name, through Arrow.

A frame has a number column for each dimension, or one column of lists called `vector` or `embedding`. What its columns
are follows the rules of `earmark.vectors.columns`; text and dates can be no dimension and are left out.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from earmark.errors import InputError, UsageError, absent, require
from earmark.vectors._values import Vectors
from earmark.vectors.columns import FRAME, Asked, beside_a_family, family
from earmark.vectors.table_files import arrow_vectors

_FEW, _WIDE = 3, 20.0


class Given(NamedTuple):
    """What to measure, after columns of a frame have taken the place of their names."""

    vectors: Any
    labels: Any
    groups: Any = None
    ids: Any = None
    notes: tuple[str, ...] = ()


def is_frame(given: Any) -> bool:
    """Whether something is a data frame of pandas or polars."""
    return hasattr(given, "columns") and (hasattr(given, "__arrow_c_stream__") or hasattr(given, "to_arrow"))


def columns_taken(vectors: Any, labels: Any, groups: Any = None, ids: Any = None) -> Given:
    """Labels, groups and ids that name columns of a frame become those columns, and the frame its dimensions."""
    names = {
        role: name for role, name in (("labels", labels), ("groups", groups), ("ids", ids)) if isinstance(name, str)
    }
    if not is_frame(vectors) or (not names and labels is not None):
        if names:
            role, name = next(iter(names.items()))
            raise UsageError(
                f"{role}={name!r} names a column, and the vectors are no data frame; give one for each row."
            )
        return Given(vectors, labels, groups, ids)
    table = read_frame(vectors, **names)
    if labels is None and table.labels is None:
        raise UsageError("The data frame has no column `label`; name the one with the labels, as in labels='species'.")
    return Given(
        table.values,
        table.labels if labels is None or "labels" in names else labels,
        table.groups if "groups" in names else groups,
        table.ids if ids is None or "ids" in names else ids,
        (table.summary, *table.notes),
    )


def read_frame(frame: Any, *, labels: str | None = None, groups: str | None = None, ids: str | None = None) -> Vectors:
    """The vectors of a frame with its labels, groups and ids, each a column that is named or has that name."""
    table = _arrow(frame)
    if ids is not None:
        table = _with_ids(table, ids)
    types = require("pyarrow.types", "Data frames", "parquet")
    asked = [name for name in (labels, groups, "id") if name is not None]
    texts = [name for name in table.column_names if not _may_be_vectors(table.schema.field(name).type, types)]
    of_numbers = Asked(label=labels, groups=groups, apart=tuple(name for name in texts if name not in asked))
    read = arrow_vectors(table, FRAME, None, of_numbers)
    for sentence in (*read.notes, *_doubts(read)):
        warnings.warn(sentence, stacklevel=4)
    return read


def _doubts(read: Vectors) -> list[str]:
    """Columns that may be no features: a few beside many with running numbers, and one or two that spread far more
    widely than all others and decide every distance."""
    names = read.columns
    if names is None or len(names) < _FEW or family(names) is not None:
        return []
    if others := beside_a_family(names):
        shown = " and ".join(f'"{name}"' for name in others)
        verb, drop = ("is taken as a feature", "it is none, drop it") if len(others) == 1 else (
            "are taken as features", "they are none, drop them")  # fmt: skip
        return [f"The data frame: {shown} {verb}; if {drop} from the frame."]
    spread = read.values.std(axis=0)
    usual = float(np.median(spread))
    wide = [place for place in range(len(names)) if usual > 0 and spread[place] > _WIDE * usual]
    if not 0 < len(wide) <= 2:
        return []
    shown = " and ".join(f'"{names[place]}"' for place in wide)
    verbs = "is" if len(wide) == 1 else "are each"
    times = min(spread[place] for place in wide) / usual
    return [
        f"The data frame: {shown} {verbs} taken as a feature, {times:.0f} times as wide as the others; if it is none, "
        "drop it from the frame."
    ]


def _may_be_vectors(kind: Any, types: Any) -> bool:
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(lists or types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind))


def _arrow(frame: Any) -> Any:
    """The frame as an Arrow table; every column has a text for its name."""
    arrow = require("pyarrow", "Data frames", "parquet")
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1) if hasattr(frame, "set_axis") else frame
    try:
        return arrow.Table.from_pandas(frame) if hasattr(frame, "iloc") else arrow.table(frame.to_arrow())
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, TypeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"The data frame has a column of mixed things ({reason}); give one kind in each.") from error


def _with_ids(table: Any, name: str) -> Any:
    if name not in table.column_names:
        raise InputError(absent(name, table.column_names, "column", "The data frame"))
    kept = [column for column in table.column_names if column == name or column.strip().lower() not in ("id", "ids")]
    return table.select(kept).rename_columns(["id" if column == name else column for column in kept])
