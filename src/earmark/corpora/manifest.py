"""Manifests: one row per clip, as CSV, TSV or Parquet.

Columns `path,label[,subset,group,start,end,id,text,fold]`, in any order and case; `file_name`, `filename` or `file` is
taken for the path and `speaker`, `individual`, `bird` or `recording` for the group, with a note.
Relative paths are relative to the manifest. Spans are seconds. An empty label is an unlabelled clip; `text` is what is
spoken in it; `fold` is the part that probes test together (a fold's name, or train, valid, test). Without `id`, the
path is the id, with the span behind it (`a.wav#1.5-2.25`). A `card.json` beside the manifest says what the corpus is.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from earmark.atomic import write_whole
from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.errors import InputError, did_you_mean
from earmark.places import is_remote, is_signed, is_url, locate, shown, which_exist
from earmark.tables import read_csv, read_text, write_csv
from earmark.vectors.table_files import read_parquet
from earmark.vectors.texts import as_written, settled

COLUMNS = ("path", "label", "subset", "group", "start", "end", "id", "text", "fold")
SUFFIXES = (".csv", ".tsv", ".parquet")
CARD = "card.json"
NO_COLUMN = "none"
"""What is asked for in the place of a column where the groups that a file holds do not count."""

ROLES: dict[str, tuple[str, ...]] = {
    "audio": ("audio",),
    "path": ("path", "file_name", "filename", "file", "audio_file_name", "file_path", "filepath", "audio_path"),
    "label": ("label",),
    "subset": ("subset",),
    "group": ("group", "speaker", "speaker_id", "individual", "bird", "recording"),
    "id": ("id",),
    "text": ("text", "transcription", "transcript", "sentence"),
}
"""Names that a column goes by; the first that is there is taken."""


class TextRow(NamedTuple):
    """A row as text, and where it stands ("clips.csv, line 7")."""

    where: str
    cells: dict[str, str | None]


# --- reading ------------------------------------------------------------------------------------------------


def read_manifest(
    path: str | os.PathLike[str], columns: Mapping[str, str] | None = None, *, needs_labels: bool = True
) -> Corpus:
    """Read a manifest, checking every row; no audio is opened. `columns` are other names: {"label": "species"}.

    Raises InputError, with the line, for a missing column or cell, a span that is none, or an id used twice. A few
    missing files are noted and fail later as clips; when every file is missing, that is an error here.
    """
    source = locate(path)
    rows, header = read_rows(source)
    asked = {role: column.strip().lower() for role, column in (columns or {}).items()}
    if asked.get("group") == NO_COLUMN and NO_COLUMN not in header:
        known = [name for name in ROLES["group"] if name in header]
        asked = {role: column for role, column in asked.items() if role != "group"}
        rows, header = _renamed(rows, header, {f"{name} of the file": name for name in known}, source)
    spelt = spellings_of([name for name in header if name not in asked.values()], asked)
    rows, header = _renamed(rows, header, {**spelt, **asked}, source)
    ignored = _check_header(header, source, ("path", "label") if needs_labels else ("path",))
    remedy = "give each clip its own" if "id" in header else "remove one, or add an id column"
    clips = listed_clips(rows, source.parent, remedy, has_ids="id" in header)
    if not clips:
        raise InputError(f"{source} lists no clips: add a row for each clip.")
    notes = [f"{source.name}: the column {column} is taken for the {role}." for role, column in spelt.items()]
    if "group" in spelt:
        notes[-1] += " --group-column none leaves it out."
    notes += [f"{source.name}: columns ignored: {', '.join(ignored)}."] if ignored else []
    # `birds/manifest.csv` is the corpus "birds", `birds.csv` as well.
    name = source.absolute().parent.name if source.stem.lower() == "manifest" else source.stem
    card = read_card(source.parent, name, str(source))
    return Corpus(card, clips, (*notes, *clip_notes(clips, source)))


def spellings_of(header: Sequence[str], asked: Mapping[str, str]) -> dict[str, str]:
    """Columns with a well-known other name, by role, where the role's own is not there and none was asked for."""
    found = {}
    for role in ("path", "group"):
        names = [name for name in ROLES[role] if name in header]
        if names and names[0] != role and role not in asked:
            found[role] = names[0]
    return found


def _renamed(
    rows: Iterator[TextRow], header: list[str], columns: Mapping[str, str], source: Path
) -> tuple[Iterator[TextRow], list[str]]:
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


def read_rows(source: Path) -> tuple[Iterator[TextRow], list[str]]:
    """The rows of a CSV, TSV, JSON Lines or Parquet table as text, and its column names in lower case."""
    suffix = source.suffix.lower()
    if suffix == ".parquet":
        table = read_parquet(source)
        header = [name.strip().lower() for name in table.column_names]
        # A column of vectors or of sounds is no text, and large.
        columns = {
            name: column.to_pylist()
            for name, column in zip(header, table.columns, strict=True)
            if column.type.num_fields == 0
        }
        return _rows_of_columns(columns, table.num_rows, source), header
    text = read_text(source, "manifest")
    if suffix == ".jsonl":
        return _rows_of_objects(text, source)
    lines = read_csv(text, source, delimiter="\t" if suffix == ".tsv" else ",")
    header = [name.strip().lower() for name in next(lines, (1, []))[1]]
    if len(header) == 1 and ";" in header[0]:
        raise InputError(f"{source} separates its columns by semicolons: save it with commas.")
    return _rows_of_lines(lines, header, source), header


def _rows_of_columns(columns: dict[str, list[Any]], count: int, source: Path) -> Iterator[TextRow]:
    for index in range(count):
        cells = {name: as_written(values[index]) for name, values in columns.items()}
        yield TextRow(f"{source}, row {index + 1}", cells)


def _rows_of_lines(lines: Iterable[tuple[int, list[str]]], header: Sequence[str], source: Path) -> Iterator[TextRow]:
    for number, cells in lines:
        where = f"{source}, line {number}"
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise InputError(
                f"{where} has {len(cells)} cells and the header {len(header)}; quote cells that hold a comma."
            )
        yield TextRow(where, {name: cell.strip() or None for name, cell in zip(header, cells, strict=True)})


def _rows_of_objects(text: str, source: Path) -> tuple[Iterator[TextRow], list[str]]:
    """The rows of JSON Lines, and every key that is in one of them."""
    rows: list[TextRow] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            held = json.loads(line)
        except ValueError as error:
            raise InputError(f"{source}, line {number} is not JSON ({error}): correct it.") from error
        if not isinstance(held, dict):
            raise InputError(f"{source}, line {number} is no object: write one for each clip.")
        cells = {
            str(key).strip().lower(): as_written(value)
            for key, value in held.items()
            if not isinstance(value, list | dict)
        }
        rows.append(TextRow(f"{source}, line {number}", cells))
    return iter(rows), list(dict.fromkeys(name for row in rows for name in row.cells))


def _check_header(header: Sequence[str], source: Path, needed: Sequence[str]) -> list[str]:
    """The columns that mean nothing here, or an InputError for those that are missing or double."""
    for name in needed:
        if name not in header:
            near = did_you_mean(name, [column for column in header if column not in COLUMNS])
            raise InputError(
                f"{source} has no column {name!r} (columns: {', '.join(header) or 'none'}); "
                f"name it in the first line, or give --{name}-column NAME.{near}"
            )
    doubled = sorted({name for name in header if name in COLUMNS and header.count(name) > 1})
    if doubled:
        raise InputError(f"{source} has the column {doubled[0]!r} twice: remove or rename one.")
    return [name or "(unnamed)" for name in header if name not in COLUMNS]


def listed_clips(
    rows: Iterable[TextRow],
    root: Path,
    remedy: str,
    *,
    has_ids: bool,
    seen: dict[str, str] | None = None,
    keep: Callable[[Clip], bool] = lambda _: True,
) -> list[Clip]:
    """The clip of each row; relative paths start at `root`, and no id is used twice.

    A label or a group that another program wrote as NaN or <NA> is missing, as in files of labels.

    Args:
        rows: The rows, with the names of a manifest's columns.
        root: Where relative paths start.
        remedy: What to do about an id that is used twice.
        has_ids: Whether the table has a column of ids.
        seen: Where each id stands that other tables of the corpus use; those of these rows are added.
        keep: Whether a clip is taken; others leave no trace.
    """
    listed = list(rows)
    for name in ("label", "group", "fold"):
        texts = settled([row.cells.get(name) for row in listed])
        for row, text in zip(listed, texts, strict=True):
            row.cells[name] = text
    seen = {} if seen is None else seen
    clips = []
    for row in listed:
        clip = _clip_of(row, root, has_ids)
        if not keep(clip):
            continue
        if clip.id in seen:
            raise InputError(f"{row.where}: the id {clip.id!r} was used before, in {seen[clip.id]}; {remedy}.")
        seen[clip.id] = row.where
        clips.append(clip)
    return clips


def _clip_of(row: TextRow, root: Path, has_ids: bool) -> Clip:
    cells = row.cells
    path = cells.get("path")
    if path is None:
        raise InputError(f"{row.where}: the path is empty; give the audio file.")
    path = shown(path)
    start, end = _seconds(row, "start"), _seconds(row, "end")
    if end is not None and end <= (start or 0.0):
        raise InputError(
            f"{row.where}: the span ends at {end:g} s, not after its start at {start or 0:g} s; correct it."
        )
    identity = cells.get("id")
    if has_ids and identity is None:
        raise InputError(f"{row.where}: the id is empty; give one to every clip or to none.")
    span = "" if start is None and end is None else f"#{start or 0:g}-{'' if end is None else format(end, 'g')}"
    return Clip(
        id=identity or path + span,
        label=cells.get("label"),
        subset=cells.get("subset") or "",
        group=cells.get("group"),
        path=path if is_url(path) else str(root / path),
        start=start,
        end=end,
        text=cells.get("text"),
        fold=cells.get("fold"),
    )


def _seconds(row: TextRow, name: str) -> float | None:
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


def clip_notes(clips: Sequence[Clip], source: Path) -> list[str]:
    """A note when some files are not there, and an error when none is; and how many clips have no label."""
    known = which_exist(clip.path for clip in clips if clip.path is not None)
    missing = [path for path, there in known.items() if not there]
    if missing and len(missing) == len(known):
        raise InputError(
            f"{source}: none of its {len(known)} files is there (first: {missing[0]}); "
            f"relative paths start at {source.parent.absolute()}."
        )
    notes = []
    if missing:
        notes.append(f"{source.name}: {len(missing)} of {len(known)} files are missing (first: {missing[0]}).")
    unlabelled = sum(clip.label is None for clip in clips)
    if unlabelled:
        notes.append(f"{source.name}: {unlabelled} of {len(clips)} clips have no label.")
    return notes


# --- writing ------------------------------------------------------------------------------------------------


def write_manifest(path: str | os.PathLike[str], clips: Iterable[Clip]) -> None:
    """Write clips that are files as a CSV manifest, paths relative to it; the file appears whole or not at all."""
    target = locate(path)
    rows = []
    listed = list(clips)
    written = [name for name in COLUMNS if name not in ("text", "fold") or any(getattr(clip, name) for clip in listed)]
    for clip in listed:
        if clip.path is None:
            raise InputError(f"Clip {clip.id!r} is not a file: `earmark corpus export` writes its sound first.")
        file, folder = locate(clip.path).absolute(), target.absolute().parent
        try:  # relative and with forward slashes, so that a folder with its manifest can be moved
            elsewhere = is_remote(file) or is_remote(folder)
            within = file.relative_to(folder) if elsewhere else Path(os.path.relpath(file, folder))
            place = within.as_posix()
        except (TypeError, ValueError):  # another drive, or another server
            place = str(file)
        rows.append([place, *(getattr(clip, name) for name in written[1:])])
    write_csv(target, written, rows, errors="replace")


def read_card(folder: Path, name: str, source: str) -> CorpusCard:
    """The card beside a manifest; without one, a card that holds the name and the place."""
    if is_signed(source):
        return CorpusCard(name=name, source=source)
    place = folder / CARD
    try:
        stored = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return CorpusCard(name=name, source=source)
    except (OSError, ValueError) as error:
        raise InputError(f"{place} is not a readable card ({error}): correct or remove it.") from error
    known = CorpusCard.field_names()
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
