"""A Hugging Face AudioFolder: a folder of sounds with a file of metadata that says what they are.

    root/metadata.csv           file_name,label,speaker      train/001.wav,robin,s1
    root/test/metadata.csv      or one in each folder, with file names relative to it

The file is `metadata.csv`, `metadata.jsonl` or `metadata.parquet` and has a column `file_name`. Folders are splits or
nothing at all, never labels. Labels are the column `label`, or one that is chosen: `hub:root?label=species`. Columns of
groups, subsets and ids go by the names that they have in datasets of the hub.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from earmark.audio import SUFFIXES
from earmark.corpora.clips import Clip, Corpus
from earmark.corpora.folder import SPLITS, files_under
from earmark.corpora.manifest import Row, clip_of, missing_files, read_card, read_rows, unlabelled_note, with_missing
from earmark.errors import InputError
from earmark.vectors.texts import as_text

__all__ = ["COLUMNS", "choose_column", "metadata_files", "read_audio_folder"]

COLUMNS: dict[str, tuple[str, ...]] = {
    "audio": ("audio",),
    "label": ("label",),
    "subset": ("subset",),
    "group": ("group", "speaker", "speaker_id", "individual", "bird", "recording"),
    "id": ("id",),
}
"""Names that a column goes by; the first that is there is taken."""

METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_FILE_NAMES = ("file_name", "audio_file_name")


def choose_column(role: str, there: Sequence[str], options: Mapping[str, str], place: str) -> str | None:
    """The column that has a meaning: the one asked for, or the first known name that is there."""
    if role in options:
        if options[role] not in there:
            raise InputError(f"{place} has no column {options[role]!r} (columns: {', '.join(there)}).")
        return options[role]
    return next((name for name in COLUMNS[role] if name in there), None)


def metadata_files(root: Path) -> list[Path]:
    """The metadata files under a folder that name sounds; none where the folder is no AudioFolder."""
    return [file for file in files_under(root) if file.name.lower() in METADATA and _file_column(_table(file)[1])]


def read_audio_folder(root: Path, options: Mapping[str, str] | None = None) -> Corpus:
    """The clips that the metadata of an AudioFolder list; no audio is opened.

    `options` may name a `split` and the columns of `label`, `group`, `subset` and `id`.
    """
    chosen = dict(options or {})
    split = chosen.pop("split", "")
    clips: list[Clip] = []
    notes: list[str] = []
    places: dict[str, str] = {}
    for source in metadata_files(root):
        rows, header = _table(source)
        roles = {role: choose_column(role, header, chosen, str(source)) for role in ("label", "group", "subset", "id")}
        if roles["label"] is None:
            others = ", ".join(name for name in header if name not in _FILE_NAMES) or "none beside the file name"
            notes.append(f"{source}: no column is called label ({others}); choose one as in hub:{root}?label=COLUMN.")
        inside, file_column = source.parent.relative_to(root), _file_column(header)
        for row in with_missing(_renamed(row, inside, file_column, roles) for row in rows):
            clip = clip_of(row, root, roles["id"] is not None)
            if split and split.lower() not in clip_folders(clip, root):
                continue
            if clip.id in places:
                raise InputError(f"{row.where}: the id {clip.id!r} was used before, in {places[clip.id]}; remove one.")
            places[clip.id] = row.where
            clips.append(clip)
    if not clips:
        raise InputError(f"{root}: its metadata list no clips{f' of the split {split!r}' if split else ''}.")
    notes += missing_files(clips, root) + unlabelled_note(clips, root) + ([] if split else _strays(clips, root))
    return Corpus(read_card(root, root.absolute().name, str(root)), clips, tuple(notes))


def clip_folders(clip: Clip, root: Path) -> set[str]:
    """The folders between the corpus and a clip, in lower case; the names of a split stand for each other."""
    folders = {part.lower() for part in Path(clip.path or "").relative_to(root).parts[:-1]}
    return folders | {SPLITS[name] for name in folders if name in SPLITS}


def _table(source: Path) -> tuple[Iterator[Row], list[str]]:
    return _read_lines(source) if source.suffix.lower() == ".jsonl" else read_rows(source)


def _read_lines(source: Path) -> tuple[Iterator[Row], list[str]]:
    """The rows of a JSON Lines file, and every key that is in one of them."""
    rows: list[Row] = []
    header: dict[str, None] = {}
    try:
        lines = source.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8 text (byte {error.start}): save it as UTF-8.") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            held = json.loads(line)
        except ValueError as error:
            raise InputError(f"{source}, line {number} is not JSON ({error}): correct it.") from error
        if not isinstance(held, dict):
            raise InputError(f"{source}, line {number} is no object: write one for each clip.")
        cells = {str(key).strip().lower(): value for key, value in held.items() if not isinstance(value, list | dict)}
        header |= dict.fromkeys(cells)
        rows.append(Row(f"{source}, line {number}", {key: as_text(value) for key, value in cells.items()}))
    return iter(rows), list(header)


def _file_column(header: Sequence[str]) -> str:
    return next((name for name in _FILE_NAMES if name in header), "")


def _renamed(row: Row, folder: Path, file_column: str, roles: Mapping[str, str | None]) -> Row:
    """A row with the names of a manifest, and its path from the root of the corpus."""
    file = row.cells.get(file_column)
    path = None if file is None else str(PurePosixPath(folder.as_posix()) / file)
    cells = {role: row.cells.get(name) for role, name in roles.items() if name is not None}
    return Row(row.where, {**cells, "path": path})


def _strays(clips: Sequence[Clip], root: Path) -> list[str]:
    listed = {Path(clip.path).resolve() for clip in clips if clip.path}
    strays = sum(file.suffix.lower() in SUFFIXES and file.resolve() not in listed for file in files_under(root))
    return [f"{root}: {strays} sound files that its metadata do not list are not read."] if strays else []
