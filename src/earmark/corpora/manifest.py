"""Manifests: one row per clip, as CSV, TSV or Parquet.

Columns `path,label[,subset,group,start,end,id]`, in any order and any case. Relative paths are relative to the
manifest. Spans are seconds. An empty label is an unlabelled clip. Without `id`, the path is the id, with the span
behind it (`a.wav#1.5-2.25`). A `card.json` beside the manifest says what the corpus is.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from earmark.atomic import write_whole
from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.errors import InputError, did_you_mean, require
from earmark.vectors.texts import as_text, settled

__all__ = [
    "COLUMNS",
    "SUFFIXES",
    "Row",
    "clip_of",
    "missing_files",
    "read_card",
    "read_manifest",
    "read_rows",
    "unlabelled_note",
    "with_missing",
    "write_card",
    "write_manifest",
]

COLUMNS = ("path", "label", "subset", "group", "start", "end", "id")
SUFFIXES = (".csv", ".tsv", ".parquet")
CARD = "card.json"


class Row(NamedTuple):
    """A row as text, and where it stands ("clips.csv, line 7")."""

    where: str
    cells: dict[str, str | None]


# --- reading ------------------------------------------------------------------------------------------------


def read_manifest(path: str | os.PathLike[str], columns: Mapping[str, str] | None = None) -> Corpus:
    """Read a manifest, checking every row; no audio is opened. `columns` are other names: {"label": "species"}.

    Raises InputError, with the line, for a missing column or cell, a span that is none, or an id used twice. A few
    missing files are noted and fail later as clips; when every file is missing, that is an error here.
    """
    source = Path(path)
    rows, header = _renamed(*read_rows(source), columns or {}, source)
    ignored = _check_header(header, source)
    clips: list[Clip] = []
    seen: dict[str, str] = {}
    for row in with_missing(rows):
        clip = clip_of(row, source.parent, "id" in header)
        if clip.id in seen:
            remedy = "give each clip its own" if "id" in header else "remove one, or add an id column"
            raise InputError(f"{row.where}: the id {clip.id!r} was used before, in {seen[clip.id]}; {remedy}.")
        seen[clip.id] = row.where
        clips.append(clip)
    if not clips:
        raise InputError(f"{source} lists no clips: add a row for each clip.")
    notes = [f"{source.name}: columns ignored: {', '.join(ignored)}."] if ignored else []
    notes += missing_files(clips, source) + unlabelled_note(clips, source)
    return Corpus(read_card(source.parent, _name(source), str(source)), clips, tuple(notes))


def _renamed(
    rows: Iterator[Row], header: list[str], columns: Mapping[str, str], source: Path
) -> tuple[Iterator[Row], list[str]]:
    """The rows with those columns under the names of their roles; what had such a name before is ignored."""
    names = {name: name for name in header}
    for role, column in columns.items():
        key = column.strip().lower()
        if key not in header:
            hint = did_you_mean(key, header)
            raise InputError(f"{source} has no column {column!r} (columns: {', '.join(header) or 'none'}).{hint}")
        names[role] = f"{role} of the file" if key != role else role
        names[key] = role
    renamed = (row._replace(cells={names[name]: cell for name, cell in row.cells.items()}) for row in rows)
    return renamed, [names[name] for name in header]


def read_rows(source: Path) -> tuple[Iterator[Row], list[str]]:
    """The rows of a CSV, TSV or Parquet table as text, and its column names in lower case."""
    return _read_parquet(source) if source.suffix.lower() == ".parquet" else _read_text(source)


def with_missing(rows: Iterable[Row]) -> list[Row]:
    """Rows in which a label or a group that another program wrote as NaN or <NA> is missing, as in files of labels."""
    listed = list(rows)
    for name in ("label", "group"):
        texts = settled([row.cells.get(name) for row in listed])
        for row, text in zip(listed, texts, strict=True):
            if name in row.cells:
                row.cells[name] = text
    return listed


def _read_text(source: Path) -> tuple[Iterator[Row], list[str]]:
    try:
        text = source.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"{source} does not exist: check the path.") from error
    except IsADirectoryError as error:
        raise InputError(f"{source} is a folder: give the manifest in it.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8 text (byte {error.start}): save it as UTF-8.") from error
    delimiter = "\t" if source.suffix.lower() == ".tsv" else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
    except csv.Error as error:
        raise InputError(f"{source}, line 1: {error}; correct the header.") from error
    if len(header) == 1 and ";" in header[0]:
        raise InputError(f"{source} separates its columns by semicolons: save it with commas.")
    return _text_rows(reader, header, source), header


def _text_rows(reader: Any, header: Sequence[str], source: Path) -> Iterator[Row]:
    while True:
        # A quoted cell may hold line breaks: the row starts one line after the row before it ended.
        where = f"{source}, line {reader.line_num + 1}"
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise InputError(f"{where}: {error}; correct the quotes.") from error
        if cells is None:
            return
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise InputError(
                f"{where} has {len(cells)} cells and the header {len(header)}; quote cells that hold a comma."
            )
        yield Row(where, {name: cell.strip() or None for name, cell in zip(header, cells, strict=True)})


def _read_parquet(source: Path) -> tuple[Iterator[Row], list[str]]:
    parquet = require("pyarrow.parquet", "Parquet files", "parquet")
    if not source.is_file():
        raise InputError(f"{source} does not exist: check the path.")
    try:
        table = parquet.ParquetFile(source).read()
    except Exception as error:  # pyarrow raises many types for a damaged file
        raise InputError(f"{source} is not a readable Parquet file: {str(error).splitlines()[0]}.") from error
    header = [name.strip().lower() for name in table.column_names]
    # A column of vectors or of sounds is no text, and large.
    wanted = {name: column for name, column in zip(header, table.columns, strict=True) if column.type.num_fields == 0}
    columns = {name: column.to_pylist() for name, column in wanted.items()}
    return _parquet_rows(columns, table.num_rows, source), header


def _parquet_rows(columns: dict[str, list[Any]], count: int, source: Path) -> Iterator[Row]:
    for index in range(count):
        cells = {name: as_text(values[index]) for name, values in columns.items()}
        yield Row(f"{source}, row {index + 1}", cells)


def _check_header(header: Sequence[str], source: Path) -> list[str]:
    """The columns that mean nothing here, or an InputError for those that are missing or double."""
    for name in ("path", "label"):
        if name not in header:
            near = did_you_mean(name, [column for column in header if column not in COLUMNS])
            raise InputError(
                f"{source} has no column {name!r} (columns: {', '.join(header) or 'none'}); "
                f"name it in the first line.{near}"
            )
    doubled = sorted({name for name in header if name in COLUMNS and header.count(name) > 1})
    if doubled:
        raise InputError(f"{source} has the column {doubled[0]!r} twice: remove or rename one.")
    return [name or "(unnamed)" for name in header if name not in COLUMNS]


def clip_of(row: Row, root: Path, has_ids: bool) -> Clip:
    """The clip of a row; relative paths start at `root`."""
    cells = row.cells
    path = cells.get("path")
    if path is None:
        raise InputError(f"{row.where}: the path is empty; give the audio file.")
    start, end = _seconds(row, "start"), _seconds(row, "end")
    if end is not None and end <= (start or 0.0):
        raise InputError(
            f"{row.where}: the span ends at {end:g} s, not after its start at {start or 0:g} s; correct it."
        )
    identity = cells.get("id")
    if has_ids and identity is None:
        raise InputError(f"{row.where}: the id is empty; give one to every clip or to none.")
    return Clip(
        id=identity or path + span_text(start, end),
        label=cells.get("label"),
        subset=cells.get("subset") or "",
        group=cells.get("group"),
        path=str(root / path),
        start=start,
        end=end,
    )


def span_text(start: float | None, end: float | None) -> str:
    """How a span is written behind a path: `#1.5-2.25`, or nothing for a whole file."""
    if start is None and end is None:
        return ""
    return f"#{start or 0:g}-{'' if end is None else format(end, 'g')}"


def _seconds(row: Row, name: str) -> float | None:
    cell = row.cells.get(name)
    if cell is None:
        return None
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise InputError(f"{row.where}: {name} is {cell!r}; give seconds, from 0 up.")
    return value


def missing_files(clips: Sequence[Clip], source: Path) -> list[str]:
    """A note when some files are not there, and an error when none is."""
    known: dict[str, bool] = {}
    for clip in clips:
        if clip.path is not None and clip.path not in known:
            known[clip.path] = Path(clip.path).is_file()
    missing = [path for path, there in known.items() if not there]
    if not missing:
        return []
    if len(missing) == len(known):
        raise InputError(
            f"{source}: none of its {len(known)} files is there (first: {missing[0]}); "
            f"relative paths start at {source.parent.absolute()}."
        )
    return [f"{source.name}: {len(missing)} of {len(known)} files are missing (first: {missing[0]})."]


def unlabelled_note(clips: Sequence[Clip], source: Path) -> list[str]:
    count = sum(clip.label is None for clip in clips)
    return [f"{source.name}: {count} of {len(clips)} clips have no label."] if count else []


def _name(source: Path) -> str:
    """`birds/manifest.csv` is the corpus "birds", `birds.csv` as well."""
    return source.absolute().parent.name if source.stem.lower() == "manifest" else source.stem


# --- writing ------------------------------------------------------------------------------------------------


def write_manifest(path: str | os.PathLike[str], clips: Iterable[Clip]) -> None:
    """Write clips that are files as a CSV manifest, paths relative to it; the file appears whole or not at all."""
    target = Path(path)
    root = target.absolute().parent
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for clip in clips:
        if clip.path is None:
            raise InputError(f"Clip {clip.id!r} is not a file: `earmark corpus export` writes its sound first.")
        place = _relative(Path(clip.path).absolute(), root)
        spans = ("" if bound is None else repr(bound) for bound in (clip.start, clip.end))
        writer.writerow([place, clip.label or "", clip.subset, clip.group or "", *spans, clip.id])
    write_whole(target, text.getvalue().encode("utf-8", "replace"))


def _relative(path: Path, root: Path) -> str:
    """Relative and with forward slashes, so that a folder with its manifest can be moved; absolute where it must."""
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive
        return str(path)


def read_card(folder: Path, name: str, source: str) -> CorpusCard:
    """The card beside a manifest; without one, a card that holds the name and the place."""
    place = folder / CARD
    try:
        stored = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return CorpusCard(name=name, source=source)
    except (OSError, ValueError) as error:
        raise InputError(f"{place} is not a readable card ({error}): correct or remove it.") from error
    known = [field.name for field in dataclasses.fields(CorpusCard)]
    if not isinstance(stored, dict) or not all(isinstance(value, str) for value in stored.values()):
        raise InputError(f"{place} is not a card: it must be an object of texts ({', '.join(known)}).")
    for key in stored:
        if key not in known:
            raise InputError(f"{place} has an unknown field {key!r}.{did_you_mean(key, known)}")
    if stored.get("status", "local") not in ("public", "blind", "synthetic", "local"):
        raise InputError(f"{place}: the status is {stored['status']!r}; give public, blind, synthetic or local.")
    return CorpusCard(**{"name": name, "source": source, **stored})


def write_card(folder: Path, card: CorpusCard) -> None:
    """Write a card where `read_card` finds it."""
    text = json.dumps(dataclasses.asdict(card), ensure_ascii=False, indent=2)
    write_whole(folder / CARD, (text + "\n").encode())
