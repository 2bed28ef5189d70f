"""Vectors and labels in .parquet files: number columns, or one column of lists."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from earmark.errors import InputError, UsageError, did_you_mean, require
from earmark.vectors.dimensions import Asked, choose_columns
from earmark.vectors.roles import named, pick_columns, role_of
from earmark.vectors.tables import Labels, Matrix, Vectors, as_matrix, labels_of, vectors_of
from earmark.vectors.texts import Texts, as_text

_PARQUET = ("Parquet files", "parquet")
_LIST_COLUMNS = ("vector", "vectors", "embedding", "embeddings")


def parquet_vectors(source: Path, key: str | None, asked: Asked) -> Vectors:
    types = require("pyarrow.types", *_PARQUET)
    table = read_parquet(source)
    names = list(table.column_names)
    index = _index_names(table)
    if key is not None and key not in names:
        raise InputError(f'{source} has no column "{key}"; it has {", ".join(names)}.{did_you_mean(key, names)}')
    lists = [key] if key is not None else [name for name in names if name.lower() in _LIST_COLUMNS]
    lists = [name for name in lists if _is_list(table.schema.field(name).type, types)]
    if len(lists) > 1:
        raise InputError(f"{source} has the vector columns {', '.join(lists)}; keep one of them.")
    if lists:
        if asked.dimensions:
            raise UsageError(f'{source} has its vectors in the column "{lists[0]}"; dimensions choose among columns.')
        values = _list_column(table.column(lists[0]), lists[0], source)
        others = [name for name in names if name != lists[0]]
        roles = {**_named_rows(table, index, types), **named(others, asked.label, asked.groups, source)}
        return vectors_of(values, _texts(table, roles), source, roles=roles)
    if key is not None:
        raise InputError(f'{source}: column "{key}" does not hold lists of numbers; name a column of vectors.')
    columns = choose_columns(names, asked, source, index)
    roles = {**_named_rows(table, index, types), **{role: names[place] for role, place in columns.roles.items()}}
    dimensions = [names[place] for place in columns.dimensions]
    return vectors_of(
        _number_columns(table, dimensions, types, source),
        _texts(table, roles),
        source,
        names=dimensions,
        roles=roles,
        left_out=[names[place] for place in columns.left_out if names[place] not in roles.values()],
        chosen=bool(asked.dimensions),
    )


def parquet_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    types = require("pyarrow.types", *_PARQUET)
    table = read_parquet(source)
    # A file with vectors may hold the labels too: its list columns are no candidates, and neither is its index.
    index = {name for name in _index_names(table) if name not in (column, groups)}
    names = [name for name in table.column_names if not _is_list(table.schema.field(name).type, types)]
    roles = pick_columns([name for name in names if name not in index], column, groups, source)
    roles = {**_named_rows(table, index, types), **roles}
    return labels_of(_texts(table, roles), source, roles=roles)


def _texts(table: Any, roles: Mapping[str, str]) -> dict[str, Texts]:
    return {role: [as_text(item) for item in table.column(name).to_pylist()] for role, name in roles.items()}


def read_parquet(source: Path) -> Any:
    """The Arrow table of a Parquet file; InputError, naming the file, where it is none."""
    parquet = require("pyarrow.parquet", *_PARQUET)
    try:
        with source.open("rb") as stream:
            return parquet.ParquetFile(stream).read()
    except FileNotFoundError as error:
        raise InputError(f"{source} does not exist; check the path.") from error
    except PermissionError:
        raise
    except Exception as error:  # Arrow has many types of its own for a damaged file
        detail = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{source} is not a readable Parquet file ({detail}); write it again.") from error


def _index_names(table: Any) -> set[str]:
    """Columns in which pandas keeps the row index of a frame; those with a name of a meaning are used as that."""
    stored = (table.schema.pandas_metadata or {}).get("index_columns", ())
    names = {name for name in stored if isinstance(name, str)}  # a plain range is stored as a description
    names |= {name for name in table.column_names if re.fullmatch(r"__index_level_\d+__", name)}
    return {name for name in names if role_of(name) is None}


def _named_rows(table: Any, index: Collection[str], types: Any) -> dict[str, str]:
    """The index of a frame as ids, where it holds names."""
    texts = [name for name in index if types.is_string(table.schema.field(name).type)]
    texts += [name for name in index if types.is_large_string(table.schema.field(name).type)]
    return {"id": texts[0]} if len(texts) == 1 else {}


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
