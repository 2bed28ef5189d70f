"""Vectors and labels in tables: .csv and .txt, and .parquet with number columns or one column of lists."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from earmark.errors import EarmarkError, InputError, UsageError, absent, quoted, require
from earmark.tables import CsvLine, read_csv
from earmark.vectors._values import Labels, Matrix, Vectors, as_matrix, labels_of, vectors_of
from earmark.vectors.columns import (
    Asked,
    NamelessColumns,
    choose_columns,
    has_heading,
    is_index_name,
    pick_columns,
    refuse_columns,
    refuse_other_separators,
    role_of,
    roles_of,
    shortened,
)
from earmark.vectors.several_labels import BACKGROUND, label_columns, of_columns
from earmark.vectors.texts import Texts, as_text, is_number

_OPENING = 65  # rows that are looked at before the first is taken for a heading or a vector
_PARQUET = ("Parquet files", "parquet")
_LIST_COLUMNS = ("vector", "vectors", "embedding", "embeddings")


def csv_vectors(source: Path, _key: str | None, asked: Asked) -> Vectors:
    rows = _csv_lines(source)
    opening = list(itertools.islice(rows, _OPENING))
    if not opening:
        raise InputError(f"{source} is empty; write it again.")
    first = [cell.strip() for cell in opening[0][1]]
    header = has_heading([cells for _, cells in opening], source, asked)
    if not header and (asked.label or asked.groups or asked.dimensions):
        raise NamelessColumns(f"{source} has no names above its columns to choose from; add a first line with names.")
    names = first if header else [f"{place}" for place in range(1, len(first) + 1)]
    columns = choose_columns(names if header else [f"column {name}" for name in names], asked, source)
    places, numbers, left_out = dict(columns.roles), columns.dimensions, columns.left_out
    if header and len(opening) > 1 and "id" not in places and _names_rows(names, opening[1][1], left_out):
        places["id"] = 0
        left_out = left_out[1:]
    body = itertools.chain(opening[header:], rows)
    texts: dict[str, list[str]] = {role: [] for role in places}
    held: dict[int, Texts] = {} if "id" in places or not header else {place: [] for place in left_out}
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        for line, cells in body:
            if len(cells) != len(names):
                raise InputError(f"{source}, line {line} has {len(cells)} cells, not {len(names)}; check its commas.")
            for role, place in places.items():
                texts[role].append(cells[place])
            for place, column in held.items():
                column.append(as_text(cells[place]))
            count += 1
            yield ",".join([cells[place] for place in numbers] if len(numbers) < len(cells) else cells)

    if not numbers:
        raise InputError(f"{source} has no number columns ({', '.join(names)}); add the vectors.")
    if header and len(opening) == 1:
        raise InputError(f"{source} has a heading but no rows; write it again.")
    # csv splits the rows, which keeps quoted text safe; NumPy's C parser reads the numbers, which is fast.
    try:
        values = np.loadtxt(lines(), delimiter=",", comments=None, dtype=np.float64, ndmin=2)
    except ValueError as error:
        raise _bad_cell(source, names, numbers, header) or error from None
    if values.shape != (count, len(numbers)):
        raise _bad_cell(source, names, numbers, header) or InputError(f"{source} has rows of unequal length.")
    return vectors_of(
        values,
        {role: [as_text(cell) for cell in cells] for role, cells in texts.items()},
        source,
        names=[names[place] for place in numbers] if header else None,
        roles={role: names[place].strip() or "(unnamed)" for role, place in places.items()},
        left_out=[names[place] for place in left_out],
        chosen=bool(asked.dimensions),
        beside={names[place]: column for place, column in held.items()},
    )


def _names_rows(names: list[str], row: list[str], left_out: list[int]) -> bool:
    """Whether the first column is an index of pandas that holds names, not numbers: as good as an `id`."""
    return left_out[:1] == [0] and is_index_name(names[0]) and bool(row[0].strip()) and not is_number(row[0])


def _bad_cell(source: Path, names: list[str], numbers: list[int], header: bool) -> InputError | None:
    """Look for the first cell that is not a number. Slow, and only called when there is one."""
    for line, cells in itertools.islice(_csv_lines(source), int(header), None):
        for place in numbers:
            if not is_number(cells[place]):
                cell = cells[place]
                held = f"holds {quoted(cell)}, which is not a number" if cell.strip() else "is empty"
                column = quoted(names[place]) if header else names[place]
                remedy = ", or choose the others with --dimensions" if header else ""
                return InputError(
                    f"{source}, line {line}, column {column} {held}; only `id`, `label` and `group` "
                    f"columns may hold text{remedy}."
                )
    return None


def csv_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    rows = list(_csv_lines(source))
    if not rows:
        raise InputError(f"{source} is empty; write it again.")
    refuse_other_separators(rows[0][1], source)
    first = [cell.strip() for cell in rows[0][1]]
    # One column under a number is a list of class numbers without a heading.
    header = len(first) > 1 or not is_number(first[0]) or column == first[0]
    names = first if header else ["label"]
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InputError(f'{source} has the column "{repeated[0]}" more than once; rename one.')
    wide = label_columns(names, column)
    roles = _roles_beside(names, wide, groups, source) if wide else pick_columns(names, column, groups, source)
    body = rows[header:]
    for line, cells in body:
        if len(cells) != len(names):
            raise InputError(f"{source}, line {line} has {len(cells)} cells, not {len(names)}; check its commas.")
    if header and body and "id" not in roles and _names_rows(names, body[0][1], [0] if len(names) > 1 else []):
        roles["id"] = names[0]
    texts = {role: [as_text(cells[names.index(name)]) for _, cells in body] for role, name in roles.items()}
    if wide:
        held = {name: [as_text(cells[names.index(name)]) for _, cells in body] for name in wide}
        return _wide_labels(held, texts, roles, source)
    heading = roles["label"] if header and role_of(roles["label"]) != "label" else None
    others = [] if "id" in roles else [place for place, name in enumerate(names) if name != roles["label"]]
    beside = {names[place]: [as_text(cells[place]) for _, cells in body] for place in others}
    return labels_of(texts, source, heading, roles if header else None, beside)


def _roles_beside(names: Sequence[str], wide: Sequence[str], groups: str | None, source: Path) -> dict[str, str]:
    """Which columns hold groups and ids, where several hold labels."""
    roles = roles_of([name for name in names if name not in wide], None, groups, source)
    return {role: name for role, name in roles.items() if role != "label"}


def _wide_labels(
    columns: Mapping[str, Texts], texts: Mapping[str, Texts], roles: Mapping[str, str], source: Path
) -> Labels:  # fmt: skip
    """Labels from columns of 0 and 1, with what stands beside them."""
    values, separator = of_columns(columns, source)
    shown = {"label": shortened([*columns])}
    labels = labels_of({**texts, "label": values}, source, None, {**roles, **shown})
    background = BACKGROUND if BACKGROUND in values else ""
    return replace(labels, separator=separator, background=background)


def txt_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    refuse_columns(source, column, groups)
    with source.open(encoding="utf-8-sig") as stream:  # universal newlines: Windows files count the same
        lines = stream.read().split("\n")
    if lines[-1] == "":
        lines.pop()  # the end of the last line, not a label
    return labels_of({"label": [as_text(line) for line in lines]}, source)


def column_names(source: Path) -> list[str]:
    """The names above the columns of a .csv or .parquet file."""
    if source.suffix.lower() == ".parquet":
        return list(_arrow_table(source).column_names)
    first = next(_csv_lines(source), None)
    return [] if first is None else [cell.strip() for cell in first[1]]


def _csv_lines(source: Path) -> Iterator[CsvLine]:
    """The lines of a CSV file, read as they are asked for: a file of vectors may be large."""
    with source.open(encoding="utf-8-sig", newline="") as stream:
        yield from read_csv(stream, source)


# --- Parquet ------------------------------------------------------------------------------------------------


def parquet_vectors(source: Path, key: str | None, asked: Asked) -> Vectors:
    return arrow_vectors(_arrow_table(source), source, key, asked)


def arrow_vectors(table: Any, source: Path, key: str | None, asked: Asked) -> Vectors:
    """The vectors of an Arrow table, and the texts beside them; `source` is what messages call it."""
    types = require("pyarrow.types", *_PARQUET)
    names = list(table.column_names)
    index = _index_names(table)
    if key is not None and key not in names:
        raise InputError(absent(key, names, "column", source))
    lists = [key] if key is not None else [name for name in names if name.lower() in _LIST_COLUMNS]
    lists = [name for name in lists if _is_list(table.schema.field(name).type, types)]
    if len(lists) > 1:
        raise InputError(f"{source} has the vector columns {', '.join(lists)}; keep one of them.")
    if lists:
        if asked.dimensions:
            raise UsageError(f'{source} has its vectors in the column "{lists[0]}"; dimensions choose among columns.')
        values = _list_column(table.column(lists[0]), lists[0], source)
        others = [name for name in names if name != lists[0]]
        roles = {**_named_rows(table, index, types), **roles_of(others, asked.label, asked.groups, source)}
        beside = {} if "id" in roles else _texts(table, _text_columns(table, others, types))
        return vectors_of(values, _texts(table, roles), source, roles=roles, beside=beside)
    if key is not None:
        raise InputError(f'{source}: column "{key}" does not hold lists of numbers; name a column of vectors.')
    columns = choose_columns(names, asked, source, index)
    roles = {**_named_rows(table, index, types), **{role: names[place] for role, place in columns.roles.items()}}
    dimensions = [names[place] for place in columns.dimensions]
    left_out = [names[place] for place in columns.left_out if names[place] not in roles.values()]
    return vectors_of(
        _number_columns(table, dimensions, types, source),
        _texts(table, roles),
        source,
        names=dimensions,
        roles=roles,
        left_out=left_out,
        chosen=bool(asked.dimensions),
        beside={} if "id" in roles else _texts(table, {name: name for name in left_out}),
    )


def parquet_labels(source: Path, column: str | None, groups: str | None) -> Labels:
    types = require("pyarrow.types", *_PARQUET)
    table = _arrow_table(source)
    # A file with vectors may hold the labels too: its list columns are no candidates, and neither is its index.
    index = {name for name in _index_names(table) if name not in (column, groups)}
    names = [name for name in table.column_names if not _is_list(table.schema.field(name).type, types)]
    if wide := label_columns(names, column):
        beside_labels = _roles_beside([name for name in names if name not in index], wide, groups, source)
        beside_labels = {**_named_rows(table, index, types), **beside_labels}
        columns = _texts(table, {name: name for name in wide})
        return _wide_labels(columns, _texts(table, beside_labels), beside_labels, source)
    roles = pick_columns([name for name in names if name not in index], column, groups, source)
    roles = {**_named_rows(table, index, types), **roles}
    others = [] if "id" in roles else [name for name in names if name != roles["label"]]
    beside = _texts(table, {name: name for name in others})
    return labels_of(_texts(table, roles), source, roles=roles, beside=beside)


def _texts(table: Any, roles: Mapping[str, str]) -> dict[str, Texts]:
    return {role: [as_text(item) for item in table.column(name).to_pylist()] for role, name in roles.items()}


def _text_columns(table: Any, names: Sequence[str], types: Any) -> dict[str, str]:
    kinds = {name: table.schema.field(name).type for name in names}
    return {name: name for name, kind in kinds.items() if types.is_string(kind) or types.is_large_string(kind)}


def read_parquet(source: Path) -> Any:
    """The Arrow table of a Parquet file; InputError, naming the file, where it is none."""
    try:
        return _arrow_table(source)
    except FileNotFoundError as error:
        raise InputError(f"{source} does not exist; check the path.") from error
    except EarmarkError:
        raise
    except Exception as error:  # Arrow has many types of its own for a damaged file
        detail = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{source} is not a readable Parquet file ({detail}); write it again.") from error


def _arrow_table(source: Path) -> Any:
    parquet = require("pyarrow.parquet", *_PARQUET)
    with source.open("rb") as stream:
        table = parquet.ParquetFile(stream).read()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if str(column.type) in ("string", "large_string"):
            try:
                column.validate(full=True)
            except ValueError as error:  # Arrow's own is one
                raise InputError(
                    f"{source}: the column {name!r} holds text that is not UTF-8 ({error}); write it again as UTF-8."
                ) from error
    return table


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
