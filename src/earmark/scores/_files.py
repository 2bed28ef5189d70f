"""Score rows in files: .csv, .jsonl, .json and .parquet, of this version and of older ones.

A missing number is an empty cell in CSV and `null` in JSON and Parquet; every other number survives exactly.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from earmark.atomic import write_whole
from earmark.errors import InputError, UsageError, did_you_mean, quoted, require
from earmark.places import locate
from earmark.scores.rows import COLUMNS, COUNTS, DEFAULTS, NUMBERS, Row, checked
from earmark.tables import csv_text, decode_text, parquet_bytes, read_bytes, read_csv

# --- reading ---------------------------------------------------------------------------------------------------------


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    """The rows of a .csv, .jsonl, .json or .parquet score table; errors say where."""
    source = locate(path)
    return decode_rows(read_bytes(source, "score file"), source)


def decode_rows(data: bytes, source: PurePath) -> list[Row]:
    """The rows in the bytes of such a file; `source` is its name, by which errors call it."""
    decode = _READERS.get(source.suffix.lower())
    if decode is None:
        raise InputError(f'{source}: a score table is one of {", ".join(_READERS)}, not "{source.suffix}".')
    if not data.strip():
        raise InputError(f"{source} is empty; a score table has at least a header.")
    return list(decode(data, source))


def _decode_csv(data: bytes, source: PurePath) -> Iterator[Row]:
    lines = read_csv(decode_text(data, source), source)
    header = [name.strip() for name in next(lines).cells]
    _check_columns(header, source)
    for number, cells in lines:
        where = f"{source}, line {number}"
        if len(cells) != len(header):
            raise InputError(f"{where} has {len(cells)} cells, the header {len(header)}; check its commas.")
        record = {
            name: _parse_number(cell, f'{where}, column "{name}"') if name in NUMBERS else cell
            for name, cell in zip(header, cells, strict=True)
        }
        yield _row(record, where)


def _parse_number(cell: str, where: str) -> float | int | None:
    text = cell.strip()
    if not text:
        return None
    try:
        if "_" in text or not text.isascii():  # Python reads 1_000 and Arabic digits; other readers do not
            raise ValueError
        return int(text) if text.removeprefix("-").isdecimal() else float(text)
    except ValueError:
        raise InputError(
            f"{where} holds {quoted(cell)}, which is not a number; leave it empty if it is missing."
        ) from None


def _check_columns(names: Sequence[str], source: PurePath) -> None:
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        raise InputError(f"{source} is not separated by commas; save it as comma-separated values.")
    for name in names:
        if name not in DEFAULTS:
            raise _unknown_column(source, name)
        if names.count(name) > 1:
            raise InputError(f'{source} has the column "{name}" twice; keep one of them.')
    for name in ("metric", "value"):
        if name not in names:
            raise InputError(f'{source} has no column "{name}"; a score table needs at least metric and value.')


def _unknown_column(where: object, name: str) -> InputError:
    hint = did_you_mean(name, COLUMNS)
    return InputError(f"{where} has the unknown column {quoted(name)}; remove or rename it.{hint}")


def _row(record: Mapping[str, object], where: str) -> Row:
    """A row from named cells; None, like an absent cell, stands for the column's default."""
    cells: dict[str, Any] = {}
    for name, cell in record.items():
        if name not in DEFAULTS:
            raise _unknown_column(where, name)
        if cell is not None:
            cells[name] = checked(name, cell, f'{where}, column "{name}"')
    if "metric" not in cells:
        raise InputError(f'{where} has no "metric"; every score row names one.')
    return Row(**cells)


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where} is not valid JSON ({error.msg} at column {error.colno}); write the table again."
        ) from error
    except (ValueError, RecursionError) as error:  # digits without end, brackets without end
        raise InputError(f"{where} is not a score table ({error}); write the table again.") from error


def _decode_jsonl(data: bytes, source: PurePath) -> Iterator[Row]:
    for number, line in enumerate(decode_text(data, source).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{source}, line {number}"
        record = _parse_json(line, where)
        if not isinstance(record, dict):
            raise InputError(f"{where} is not a JSON object; JSON Lines holds one score row to a line.")
        yield _row(record, where)


def _decode_json(data: bytes, source: PurePath) -> Iterator[Row]:
    table = _parse_json(decode_text(data, source), str(source))
    if not isinstance(table, list):
        raise InputError(f"{source} is not a JSON array; a score table is an array of rows.")
    for number, record in enumerate(table, start=1):
        if not isinstance(record, dict):
            raise InputError(f"{source}, row {number} is not a JSON object; a score table is an array of rows.")
        yield _row(record, f"{source}, row {number}")


def _decode_parquet(data: bytes, source: PurePath) -> Iterator[Row]:
    parquet = require("pyarrow.parquet", "Parquet files", "parquet")
    try:
        table = parquet.ParquetFile(io.BytesIO(data)).read()
        names, records = table.column_names, table.to_pylist()
    except Exception as error:
        # Damaged pages surface as Arrow's own errors, OSError, UnicodeDecodeError and others.
        detail = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{source} is not readable as Parquet ({detail}); write the table again.") from error
    _check_columns(names, source)
    for number, record in enumerate(records, start=1):
        yield _row(record, f"{source}, row {number}")


_READERS: dict[str, Callable[[bytes, PurePath], Iterator[Row]]] = {
    ".csv": _decode_csv,
    ".jsonl": _decode_jsonl,
    ".json": _decode_json,
    ".parquet": _decode_parquet,
}


# --- writing ---------------------------------------------------------------------------------------------------------


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
    try:
        write_whole(target, data)
    except FileNotFoundError as error:
        raise InputError(f"{target}: the folder {target.resolve().parent} does not exist; create it first.") from error
    except OSError as error:
        raise InputError(f"{target} cannot be written ({error.strerror}); choose another place.") from error


def json_array(rows: Sequence[Row]) -> str:
    """A JSON array of rows, one to a line."""
    lines = [_json_line(row) for row in rows]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def _json_line(row: Row) -> str:
    return json.dumps(row.as_dict(), ensure_ascii=False, allow_nan=False)


def _encode_parquet(rows: Sequence[Row]) -> bytes:
    types = {name: "float64" if name in NUMBERS else "string" for name in COLUMNS} | dict.fromkeys(COUNTS, "int64")
    return parquet_bytes({name: [getattr(row, name) for row in rows] for name in COLUMNS}, types)


_WRITERS: dict[str, Callable[[Sequence[Row]], bytes]] = {
    ".csv": lambda rows: csv_text(COLUMNS, (row.as_dict() for row in rows)).encode(),
    ".jsonl": lambda rows: "".join(_json_line(row) + "\n" for row in rows).encode(),
    ".json": lambda rows: json_array(rows).encode(),
    ".parquet": _encode_parquet,
}
