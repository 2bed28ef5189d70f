"""Vectors and labels in .parquet files: number columns, or one column of lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from earmark.errors import InputError, did_you_mean, require
from earmark.vectors.tables import (
    Labels,
    Matrix,
    Vectors,
    as_matrix,
    as_text,
    labels_of,
    pick_columns,
    roles_of,
    vectors_of,
)

_PARQUET = ("Parquet files", "parquet")
_LIST_COLUMNS = ("vector", "vectors", "embedding", "embeddings")


def parquet_vectors(source: Path, key: str | None) -> Vectors:
    types = require("pyarrow.types", *_PARQUET)
    table = _parquet_table(source)
    names = _parquet_names(table)
    roles = roles_of(names, source)
    if key is not None and key not in names:
        raise InputError(f'{source} has no column "{key}"; it has {", ".join(names)}.{did_you_mean(key, names)}')
    lists = [key] if key is not None else [name for name in names if name.lower() in _LIST_COLUMNS]
    lists = [name for name in lists if _is_list(table.schema.field(name).type, types)]
    if len(lists) > 1:
        raise InputError(f"{source} has the vector columns {', '.join(lists)}; keep one of them.")
    if lists:
        values = _list_column(table.column(lists[0]), lists[0], source)
    elif key is not None:
        raise InputError(f'{source}: column "{key}" does not hold lists of numbers; name a column of vectors.')
    else:
        values = _number_columns(table, [name for name in names if name not in roles.values()], types, source)
    texts = {role: [as_text(item) for item in table.column(name).to_pylist()] for role, name in roles.items()}
    return vectors_of(values, texts, source)


def parquet_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    types = require("pyarrow.types", *_PARQUET)
    table = _parquet_table(source)
    # A file with vectors may hold the labels too: its list columns are no candidates.
    names = [name for name in _parquet_names(table) if not _is_list(table.schema.field(name).type, types)]
    roles = pick_columns(names, column, groups, source)
    texts = {role: [as_text(item) for item in table.column(name).to_pylist()] for role, name in roles.items()}
    return labels_of(texts, source)


def _parquet_table(source: Path) -> Any:
    parquet = require("pyarrow.parquet", *_PARQUET)
    with source.open("rb") as stream:
        return parquet.ParquetFile(stream).read()


def _parquet_names(table: Any) -> list[str]:
    # pandas keeps a row index of its own as a column with this name.
    return [name for name in table.column_names if not re.fullmatch(r"__index_level_\d+__", name)]


def _is_list(kind: Any, types: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _list_column(column: Any, name: str, source: Path) -> Matrix:
    arrow = require("pyarrow", *_PARQUET)
    whole = column.combine_chunks()
    if whole.null_count:
        row = whole.is_null().to_pylist().index(True) + 1
        raise InputError(f'{source}: row {row} of column "{name}" is empty; remove it or give it a vector.')
    compute = require("pyarrow.compute", *_PARQUET)
    lengths = compute.list_value_length(whole).to_numpy(zero_copy_only=False)
    flat = whole.flatten()
    odd = np.flatnonzero(lengths != lengths[0]) if len(lengths) else lengths
    if len(odd):
        raise InputError(
            f'{source}: column "{name}" has {lengths[0]} numbers in row 1 but {lengths[odd[0]]} in row '
            f"{odd[0] + 1}; give all vectors one length."
        )
    if flat.null_count:
        row = flat.is_null().to_pylist().index(True) // max(int(lengths[0]), 1) + 1
        raise InputError(f'{source}: row {row} of column "{name}" has an empty number; fill it or remove the row.')
    if arrow.types.is_decimal(flat.type):
        flat = flat.cast(arrow.float64())
    width = int(lengths[0]) if len(lengths) else 0
    return as_matrix(flat.to_numpy(zero_copy_only=False).reshape(len(lengths), width), source)


def _number_columns(table: Any, names: Sequence[str], types: Any, source: Path) -> Matrix:
    arrow = require("pyarrow", *_PARQUET)
    kinds = [table.schema.field(name).type for name in names]
    for name, kind in zip(names, kinds, strict=True):
        if not (types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)):
            raise InputError(
                f'{source}: column "{name}" holds {kind}, not numbers; remove it, or name it `id`, `label` or `group`.'
            )
        if table.column(name).null_count:
            row = table.column(name).is_null().to_pylist().index(True) + 1
            raise InputError(f'{source}: row {row} of column "{name}" is empty; fill it or remove the row.')
    if not names:
        raise InputError(f"{source} has no number columns and no column `vector`; add the vectors.")
    single = all(types.is_float16(kind) or types.is_float32(kind) for kind in kinds)
    values = np.empty((table.num_rows, len(names)), dtype=np.float32 if single else np.float64)
    for place, name in enumerate(names):
        column = table.column(name)
        if types.is_decimal(kinds[place]):
            column = column.cast(arrow.float64())
        values[:, place] = column.to_numpy()
    return as_matrix(values, source)
