"""Score rows into files: .csv, .jsonl, .json and .parquet.

A missing number is an empty cell in CSV and `null` in JSON and Parquet; every other number survives exactly.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from earmark.atomic import write_whole
from earmark.errors import InputError, UsageError, require
from earmark.scores.rows import COLUMNS, COUNTS, NUMBERS, Row


def write_rows(rows: Sequence[Row], target: Path) -> None:
    """Write the rows in the format of the file's suffix, whole or not at all."""
    encode = _WRITERS.get(target.suffix.lower())
    if encode is None:
        raise UsageError(f"{target}: a score table is written as {', '.join(_WRITERS)}; choose one of these suffixes.")
    if not rows and target.suffix.lower() == ".jsonl":
        raise InputError(f"{target}: JSON Lines cannot hold a table without rows; write it as .csv or .json.")
    try:
        data = encode(rows)
    except UnicodeEncodeError as error:
        raise InputError(f"{target}: the text {error.object!r} cannot be written as UTF-8; rename it.") from error
    _replace(target, data)


def json_array(rows: Sequence[Row]) -> str:
    """A JSON array of rows, one to a line."""
    lines = [_json_line(row) for row in rows]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def _json_line(row: Row) -> str:
    return json.dumps(row.as_dict(), ensure_ascii=False, allow_nan=False)


def _csv_cell(cell: object) -> str:
    text = "" if cell is None else repr(cell) if isinstance(cell, int | float) else str(cell)
    # When lines end in "\n", Python 3.11's csv.writer leaves a lone "\r" unquoted, and csv.reader refuses it.
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text


def _encode_csv(rows: Sequence[Row]) -> bytes:
    lines = [",".join(COLUMNS)]
    lines += [",".join(_csv_cell(getattr(row, name)) for name in COLUMNS) for row in rows]
    return ("\n".join(lines) + "\n").encode()


def _encode_jsonl(rows: Sequence[Row]) -> bytes:
    return "".join(_json_line(row) + "\n" for row in rows).encode()


def _encode_json(rows: Sequence[Row]) -> bytes:
    return json_array(rows).encode()


def _encode_parquet(rows: Sequence[Row]) -> bytes:
    arrow = require("pyarrow", "Parquet files", "parquet")
    parquet = require("pyarrow.parquet", "Parquet files", "parquet")
    types = {name: arrow.float64() if name in NUMBERS else arrow.string() for name in COLUMNS} | dict.fromkeys(
        COUNTS, arrow.int64()
    )
    columns = [arrow.array([getattr(row, name) for row in rows], type=types[name]) for name in COLUMNS]
    out = io.BytesIO()
    parquet.write_table(arrow.table(columns, schema=arrow.schema(list(types.items()))), out)
    return out.getvalue()


_WRITERS: dict[str, Callable[[Sequence[Row]], bytes]] = {
    ".csv": _encode_csv,
    ".jsonl": _encode_jsonl,
    ".json": _encode_json,
    ".parquet": _encode_parquet,
}


def _replace(target: Path, data: bytes) -> None:
    try:
        write_whole(target, data)
    except FileNotFoundError as error:
        raise InputError(f"{target}: the folder {target.resolve().parent} does not exist; create it first.") from error
    except OSError as error:
        raise InputError(f"{target} cannot be written ({error.strerror}); choose another place.") from error
