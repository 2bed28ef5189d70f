"""Tables in files: the CSV writer and reader of Earmark, and Parquet.

Lines end in a line feed. A cell is quoted where it holds a comma, a quote, a line feed or a carriage return: Python
3.11 leaves a lone carriage return unquoted when lines end in a line feed, and then refuses to read it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from earmark.atomic import write_whole
from earmark.errors import InputError, UsageError, require

Rows = Iterable[Sequence[Any] | Mapping[str, Any]]


class CsvLine(NamedTuple):
    """A line of a CSV file: the number of the line on which it begins, and its cells."""

    number: int
    cells: list[str]


class _Quoted(list[str]):
    """Lines of a csv.writer that ends them in both marks, so that it quotes both; only the line feed is kept."""

    def write(self, line: str) -> None:
        self.append(line[:-2] + "\n")


def csv_text(header: Sequence[str] | None, rows: Rows) -> str:
    """Rows as CSV: None is an empty cell, a float is written with every digit.

    Args:
        header: The names of the columns; None writes no header, to append to a file.
        rows: Cells in the order of the header, or mappings that have all its names.
    """
    lines = _Quoted()
    writer = csv.writer(lines, lineterminator="\r\n")
    if header is not None:
        writer.writerow(header)
    writer.writerows([row[name] for name in header or ()] if isinstance(row, Mapping) else row for row in rows)
    return "".join(lines)


def csv_cell(text: str) -> str:
    """A text as a cell of such a file."""
    return csv_text(None, [[text]])[:-1] if any(mark in text for mark in ',"\r\n') else text


def no_formula(cell: object) -> object:
    """A cell in words of others: a text that a spreadsheet would take for a formula, as a text."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def write_csv(path: Path, header: Sequence[str], rows: Rows, *, errors: str = "strict") -> None:
    """Write rows as a CSV file in UTF-8, whole or not at all; `errors` as for `str.encode`."""
    write_whole(path, csv_text(header, rows).encode("utf-8", errors))


def parquet_bytes(columns: Mapping[str, Sequence[Any]], types: Mapping[str, str] | None = None) -> bytes:
    """Columns as a Parquet file; `types` names Arrow types ("float64", "int64", "string"), else they are inferred."""
    arrow = require("pyarrow", "Parquet files", "parquet")
    parquet = require("pyarrow.parquet", "Parquet files", "parquet")
    known = {name: arrow.type_for_alias(kind) for name, kind in (types or {}).items()}
    out = io.BytesIO()
    parquet.write_table(arrow.table({name: arrow.array(columns[name], known.get(name)) for name in columns}), out)
    return out.getvalue()


def write_columns(path: Path, columns: Mapping[str, Sequence[Any]], what: str, *, errors: str = "strict") -> None:
    """Write columns as .csv or .parquet; `what` names them in the refusal of another suffix."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        write_csv(path, list(columns), zip(*columns.values(), strict=True), errors=errors)
    elif suffix == ".parquet":
        write_whole(path, parquet_bytes(columns))
    else:
        raise UsageError(f"{path}: {what} are written as .csv or .parquet; choose one of these suffixes.")


def read_bytes(source: Path, kind: str = "file") -> bytes:
    """What a file holds; `kind` says in a message what the file should be."""
    try:
        return source.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{source} does not exist; check the path.") from error
    except IsADirectoryError as error:
        raise InputError(f"{source} is a folder; give the {kind} inside it.") from error
    except (OSError, ValueError) as error:  # a path may hold what no path can
        raise InputError(f"{source} cannot be read ({getattr(error, 'strerror', error)}).") from error


def read_text(source: Path, kind: str = "file") -> str:
    """The text of a UTF-8 file, without a byte-order mark; `kind` says in a message what the file should be."""
    return decode_text(read_bytes(source, kind), source)


def decode_text(data: bytes, source: object) -> str:
    """UTF-8 as text, without the byte-order mark that spreadsheets put in front."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error


def read_csv(text: str | Iterable[str], source: object, *, delimiter: str = ",") -> Iterator[CsvLine]:
    """The lines of CSV text, or of an open file, that are not blank.

    Raises InputError, naming `source` and line, where quotes are wrong.
    """
    lines = io.StringIO(text, newline="") if isinstance(text, str) else text
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    number = 1
    try:
        for cells in reader:
            if cells:
                yield CsvLine(number, cells)
            number = reader.line_num + 1  # a quoted cell may hold line breaks
    except csv.Error as error:
        raise InputError(f"{source}, line {number} is not readable as CSV ({error}); check its quotes.") from error


def read_csv_records(text: str, source: object) -> Iterator[dict[str, str]]:
    """The lines of CSV text by the names of the header; every line has as many cells as the header."""
    lines = read_csv(text, source)
    header = next(lines, CsvLine(1, [])).cells
    for number, cells in lines:
        if len(cells) != len(header):
            raise InputError(
                f"{source}, line {number} has {len(cells)} cells, the header {len(header)}; check its commas."
            )
        yield dict(zip(header, cells, strict=True))
