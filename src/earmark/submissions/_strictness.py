"""What is refused before a document is parsed: its size when unpacked, its depth, and what JSON does not know.

A parser that goes down by recursion, a page that unpacks to gigabytes, a number that is none: each is looked for in
the bytes, in time that grows with their number, before anything is made of them.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from earmark.errors import InputError, quoted, require
from earmark.scores import COLUMNS, KEY
from earmark.tables import decode_text


@dataclass(frozen=True)
class Limits:
    """The most that one document, request or address may have."""

    max_body: int = 8_000_000  # bytes of one document, as it came and in Earmark's own form
    max_rows: int = 100_000
    max_systems: int = 500
    max_subsets: int = 500
    max_settings: int = 100  # distances with their corrections and protocols, of one system
    max_depth: int = 32  # brackets within brackets in JSON
    max_text: int = 2_000  # characters of one cell or one line of a card
    max_address: int = 8_000  # bytes of path and query
    remedy: str = "send it in parts"  # what whoever has more than that may do


# A string that does not end takes all the rest: else every quotation mark in it would be tried as another start.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf": "7z",
}
_MOST_DIGITS = 400
# Snappy makes at most about 20 bytes of one; zstd, gzip and the others make thousands.
_PACKINGS = ("UNCOMPRESSED", "SNAPPY")
_ROWS_AT_ONCE = 512
_MOST_REPEATS = 100
# As Python's values a table takes several times as much as in Arrow's columns.
_UNPACKED = 12  # bytes of columns for each byte that a document may have: 200,000 rows with every column full
_TEXT = 5  # bytes of texts, each counted as often as it stands in a row


def refuse_compressed(data: bytes, name: str) -> None:
    """InputError for an archive or a compressed file, by its first bytes."""
    for magic, packing in _MAGIC.items():
        if data.startswith(magic):
            raise InputError(f"{name} is compressed ({packing}); unpack it and send what is inside.")


def strict_json(data: bytes, name: str, limits: Limits) -> Any:
    """JSON as its standard has it: no NaN or infinity, no key given twice, and nested no deeper than the limit."""
    if _depth(data) > limits.max_depth:
        raise InputError(f"{name} is nested more than {limits.max_depth} deep; a document needs no more than three.")
    text = decode_text(data, name)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise InputError(f"{name} gives the key {quoted(twice)} twice in one object; keep one of them.")
        return found

    def number(digits: str) -> float | int:
        if len(digits) > _MOST_DIGITS:
            raise InputError(f"{name} holds a number of {len(digits):,} digits; nothing here is measured so finely.")
        return int(digits) if digits.lstrip("-").isdecimal() else float(digits)

    def constant(word: str) -> Any:
        raise InputError(
            f"{name} holds {word}, which is no number in JSON; leave a missing number out and give a status and a "
            "reason."
        )

    try:
        return json.loads(text, object_pairs_hook=once, parse_int=number, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{name} is not valid JSON ({error.msg} at line {error.lineno}, column {error.colno}); write it with a "
            "JSON library."
        ) from error


def _depth(data: bytes) -> int:
    """How many brackets are open at once at most, outside of strings."""
    marks = np.frombuffer(_STRING.sub(b"", data).translate(None, _NOT_BRACKETS), dtype=np.uint8)
    if not marks.size:
        return 0
    opens = (marks == ord("[")) | (marks == ord("{"))
    return int(np.cumsum(np.where(opens, 1, -1)).max())


def check_parquet(data: bytes, name: str, limits: Limits) -> None:
    """Refuse a Parquet file whose rows, columns, packing or longest text are more than a score table has.

    The footer is asked first. It may lie, so the texts are then read a few rows at a time and measured, before
    anything makes a table of all of them.
    """
    parquet = require("pyarrow.parquet", "Parquet files", "parquet")
    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        footer = file.metadata
        names = list(file.schema_arrow.names)
        parts = [
            footer.row_group(group).column(column)
            for group in range(min(footer.num_row_groups, limits.max_rows))
            for column in range(footer.num_columns)
        ]
        packings = {part.compression for part in parts}
    except Exception as error:  # damaged files surface as Arrow's own errors, OSError, UnicodeDecodeError and others
        raise _unreadable(name, error) from error
    if footer.num_rows > limits.max_rows:
        raise InputError(
            f"{name} has {footer.num_rows:,} rows; at most {limits.max_rows:,} are taken: {limits.remedy}."
        )
    if footer.num_columns > len(COLUMNS) or footer.num_row_groups > max(1, footer.num_rows):
        raise InputError(f"{name} has {footer.num_columns} columns; a score table has at most {len(COLUMNS)}.")
    for packing in sorted(packings - set(_PACKINGS)):
        raise InputError(f"{name} is packed with {packing}; write it with snappy or without compression.")
    unpacked = sum(part.total_uncompressed_size for part in parts)
    if unpacked > _UNPACKED * limits.max_body:
        raise InputError(f"{name} unpacks to {unpacked:,} bytes; {limits.remedy}.")
    _measure_texts(file, name, names, limits)
    _refuse_repeats(file, name, names)


def _refuse_repeats(file: Any, name: str, names: list[str]) -> None:
    """InputError for a table that says the same again and again, before a row of it is made: a few kilobytes hold
    100,000 equal rows. Of a table with few of them the rules say which."""
    keys = [column for column in KEY if column in names]
    try:
        table = file.read(columns=keys)
        distinct = table.group_by(keys, use_threads=False).aggregate([]).num_rows if keys else 1
    except Exception as error:
        raise _unreadable(name, error) from error
    if table.num_rows - distinct > _MOST_REPEATS:
        raise InputError(
            f"{name} has {table.num_rows:,} rows, and only {distinct:,} different ones by {', '.join(keys)}; keep one "
            "of each."
        )


def _measure_texts(file: Any, name: str, names: list[str], limits: Limits) -> None:
    arrow = require("pyarrow", "Parquet files", "parquet")
    compute = require("pyarrow.compute", "Parquet files", "parquet")
    total = texts = 0
    try:
        for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE):
            total += batch.nbytes
            for column, cells in zip(names, batch.columns, strict=True):
                longest, together = _lengths(arrow, compute, cells)
                texts += together
                if longest is None:
                    raise InputError(
                        f'{name}, column "{column}" holds {cells.type}; a score table holds text and numbers.'
                    )
                if longest > 4 * limits.max_text:
                    raise InputError(f'{name}, column "{column}" holds a text of {longest:,} bytes; shorten it.')
            if total > _UNPACKED * limits.max_body or texts > _TEXT * limits.max_body:
                raise InputError(f"{name} unpacks to more than {_TEXT * limits.max_body:,} bytes; {limits.remedy}.")
    except InputError:
        raise
    except Exception as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: Exception) -> InputError:
    detail = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    return InputError(f"{name} is not readable as Parquet ({detail}); write the table again.")


def _lengths(arrow: Any, compute: Any, cells: Any) -> tuple[int | None, int]:
    """The bytes of the longest text in a column and of all of them; 0 for numbers, no longest for what is neither."""
    kinds = arrow.types
    if kinds.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if kinds.is_string(cells.type) or kinds.is_large_string(cells.type):
        lengths = compute.binary_length(cells)
        return int(compute.max(lengths).as_py() or 0), int(compute.sum(lengths).as_py() or 0)
    plain = kinds.is_floating(cells.type) or kinds.is_integer(cells.type) or kinds.is_null(cells.type)
    return (0 if plain else None), 0
