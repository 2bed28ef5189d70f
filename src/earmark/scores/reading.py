"""Score tables from files: .csv, .jsonl, .json and .parquet, of this version and of older ones."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from earmark.errors import InputError, did_you_mean, quoted, require
from earmark.scores.rows import COLUMNS, DEFAULTS, NUMBERS, Row, checked
from earmark.scores.table import Scores


def read_scores(path: str | os.PathLike[str]) -> Scores:
    """Read a score table.

    Columns that an older version did not write take their defaults. An unknown column, a cell that is not a number
    where one belongs, and NaN or infinity are errors that say where.

    Args:
        path: A file that ends in .csv, .jsonl, .json or .parquet.
    """
    source = Path(path)
    decode = _READERS.get(source.suffix.lower())
    try:
        data = source.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{source} does not exist; check the path.") from error
    except IsADirectoryError as error:
        raise InputError(f"{source} is a folder; give the score file inside it.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{source} cannot be read ({getattr(error, 'strerror', error)}).") from error
    if decode is None:
        raise InputError(f'{source}: a score table is one of {", ".join(_READERS)}, not "{source.suffix}".')
    if not data.strip():
        raise InputError(f"{source} is empty; a score table has at least a header.")
    return Scores(tuple(decode(data, source)))


load_scores = read_scores


def _decode_text(data: bytes, source: Path) -> str:
    try:
        return data.decode("utf-8-sig")  # spreadsheets put a byte-order mark in front
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error


def _decode_csv(data: bytes, source: Path) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(_decode_text(data, source), newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader)]
        _check_columns(header, source)
        line = reader.line_num + 1
        for cells in reader:
            where = f"{source}, line {line}"
            line = reader.line_num + 1
            if not cells:
                continue
            if len(cells) != len(header):
                raise InputError(f"{where} has {len(cells)} cells, the header {len(header)}; check its commas.")
            record = {
                name: _parse_number(cell, f'{where}, column "{name}"') if name in NUMBERS else cell
                for name, cell in zip(header, cells, strict=True)
            }
            yield _row(record, where)
    except csv.Error as error:
        raise InputError(
            f"{source}, line {reader.line_num} is not readable as CSV ({error}); check its quotes."
        ) from error


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


def _check_columns(names: Sequence[str], source: Path) -> None:
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


def _decode_jsonl(data: bytes, source: Path) -> Iterator[Row]:
    for number, line in enumerate(_decode_text(data, source).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{source}, line {number}"
        record = _parse_json(line, where)
        if not isinstance(record, dict):
            raise InputError(f"{where} is not a JSON object; JSON Lines holds one score row to a line.")
        yield _row(record, where)


def _decode_json(data: bytes, source: Path) -> Iterator[Row]:
    table = _parse_json(_decode_text(data, source), str(source))
    if not isinstance(table, list):
        raise InputError(f"{source} is not a JSON array; a score table is an array of rows.")
    for number, record in enumerate(table, start=1):
        if not isinstance(record, dict):
            raise InputError(f"{source}, row {number} is not a JSON object; a score table is an array of rows.")
        yield _row(record, f"{source}, row {number}")


def _decode_parquet(data: bytes, source: Path) -> Iterator[Row]:
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


_READERS: dict[str, Callable[[bytes, Path], Iterator[Row]]] = {
    ".csv": _decode_csv,
    ".jsonl": _decode_jsonl,
    ".json": _decode_json,
    ".parquet": _decode_parquet,
}
