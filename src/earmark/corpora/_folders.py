"""Folders of sounds: the folder that holds a file names its label, or a file of metadata says what each is.

    root/robin/a.wav           label robin
    root/field/robin/a.wav     label robin, subset field
    root/a.wav                 no label
    root/train/a.wav           no label, subset train, where all folders with sounds are splits

Hidden files and folders are passed over; files that are not audio by their name are counted and noted.

A Hugging Face AudioFolder has a file of metadata:

    root/metadata.csv           file_name,label,speaker      train/001.wav,robin,s1
    root/test/metadata.csv      or one in each folder, with file names relative to it

The file is `metadata.csv`, `metadata.jsonl` or `metadata.parquet` and has a column `file_name`. Folders are splits or
nothing at all, never labels. Labels are the column `label`, or one that is chosen: `hub:root?label=species`. Columns of
groups, subsets and ids go by the names that they have in datasets of the hub.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from earmark.audio import SUFFIXES
from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.corpora.manifest import NO_COLUMN, ROLES, TextRow, clip_notes, listed_clips, read_card, read_rows
from earmark.corpora.names import hint_of
from earmark.errors import InputError
from earmark.places import is_remote, locate

SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}
"""Folders that divide a corpus, with the name that stands for each: what lies in them is of no class for it."""


def read_folder(path: str | os.PathLike[str]) -> Corpus:
    """Every audio file under a folder, in the order of its path; nothing is opened."""
    root = locate(path)
    if not root.is_dir():
        raise InputError(f"{root} is not a folder: check the path.")
    clips: list[Clip] = []
    skipped: Counter[str] = Counter()
    for file in files_under(root):
        if file.suffix.lower() not in SUFFIXES:
            skipped[file.suffix.lower() or "no suffix"] += 1
            continue
        *folders, name = (_readable(part) for part in file.relative_to(root).parts)
        label, subset = folders[-1] if folders else None, "/".join(folders[:-1])
        clips.append(Clip(id="/".join([*folders, name]), label=label, subset=subset, path=str(file)))
    if not clips:
        held = f"its {skipped.total()} files are of other kinds" if skipped else "it holds no files"
        raise InputError(f"{root} holds no audio: {held}; give a folder of folders with WAV, FLAC, OGG or MP3 files.")
    clips.sort(key=lambda clip: clip.id)
    labels = {clip.label for clip in clips}
    divided = None not in labels and all(str(label).lower() in SPLITS for label in labels)
    if divided:
        clips = [replace(clip, label=None, subset=f"{clip.subset}/{clip.label}".strip("/")) for clip in clips]
    notes = _notes(root, clips, skipped, divided)
    return Corpus(read_card(root, root.absolute().name, str(root)), clips, tuple(notes))


def read_file(path: str | os.PathLike[str]) -> Corpus:
    """A corpus of one unlabelled file."""
    file = locate(path)
    name = _readable(file.name)
    return Corpus(CorpusCard(name=name, source=str(file)), [Clip(id=name, path=str(file))])


def files_under(root: Path) -> Iterator[Path]:
    """Files that are not hidden. Links to folders are followed, each folder once, so that a loop ends."""
    if is_remote(root):
        depth = len(root.parts)
        shown = [file for file in root.tree if not any(part.startswith(".") for part in file.parts[depth:])]
        yield from map(locate, map(str, shown))
        return
    visited: set[tuple[int, int]] = set()

    def refused(error: OSError) -> None:
        raise InputError(f"{error.filename} cannot be listed ({error.strerror}): change its permissions.") from error

    for folder, folders, files in os.walk(root, followlinks=True, onerror=refused):
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in visited:
            folders.clear()
            continue
        visited.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(files) if not name.startswith("."))


def _readable(name: str) -> str:
    """A name whose bytes are not UTF-8 gets replacement signs, so that it can be written into tables."""
    return os.fsencode(name).decode("utf-8", "replace")


def _notes(root: Path, clips: list[Clip], skipped: Counter[str], divided: bool) -> Iterator[str]:
    if skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(skipped.items()))
        yield f"{root.name}: files that are not audio by their name were passed over ({kinds})."
    loose = sum(clip.label is None for clip in clips)
    if divided:
        yield f"{root.name}: its folders are splits, which are subsets and no labels; give the labels in a manifest."
    elif loose:
        hint = hint_of([clip for clip in clips if clip.label is None])
        yield f"{root.name}: {loose} of {len(clips)} clips lie in no folder and have no label{hint and '; '}{hint}."
    nested = sorted({clip.subset for clip in clips if clip.subset})
    if nested and not divided:
        yield f"{root.name}: nested folders are read as subset/label (subsets: {', '.join(nested[:8])})."


# --- with a file of metadata --------------------------------------------------------------------------------

_METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_FILE_NAMES = ("file_name", "audio_file_name")
_OF_FILES = ("audio", "path")


def choose_column(role: str, there: Sequence[str], options: Mapping[str, str], place: str) -> str | None:
    """The column that has a meaning: the one asked for, or the first known name that is there."""
    if role in options:
        if options[role] == NO_COLUMN and NO_COLUMN not in there:
            return None
        if options[role] not in there:
            raise InputError(f"{place} has no column {options[role]!r} (columns: {', '.join(there)}).")
        return options[role]
    return next((name for name in ROLES[role] if name in there), None)


def metadata_files(root: Path, options: Mapping[str, str] | None = None) -> list[Path]:
    """The metadata files under a folder that name sounds; none where the folder is no AudioFolder."""
    files = [file for file in files_under(root) if file.name.lower() in _METADATA]
    names = {(options or {}).get("path", "").lower(), *_FILE_NAMES} - {""}
    return [file for file in files if not names.isdisjoint(read_rows(file)[1])]


def read_audio_folder(root: Path, options: Mapping[str, str] | None = None) -> Corpus:
    """The clips that the metadata of an AudioFolder list; no audio is opened.

    `options` may name a `split` and the columns of `path`, `label`, `group`, `subset` and `id`.
    """
    chosen = dict(options or {})
    split = chosen.pop("split", "")
    chosen = {role: column.lower() for role, column in chosen.items()}
    clips: list[Clip] = []
    notes: list[str] = []
    seen: dict[str, str] = {}
    for source in metadata_files(root, chosen):
        rows, header = read_rows(source)
        roles = {role: choose_column(role, header, chosen, str(source)) for role in ROLES if role not in _OF_FILES}
        if roles["label"] is None:
            others = ", ".join(name for name in header if name not in _FILE_NAMES) or "none beside the file name"
            notes.append(
                f"{source}: no column is called label ({others}); choose one with --label-column COLUMN, or as in "
                f"hub:{root}?label=COLUMN."
            )
        names = (chosen["path"],) if chosen.get("path") in header else _FILE_NAMES
        file_column = next(name for name in names if name in header)
        inside = PurePosixPath(source.parent.relative_to(root).as_posix())
        renamed = (_renamed(row, inside, file_column, roles) for row in rows)
        clips += listed_clips(
            renamed, root, "remove one", has_ids=roles["id"] is not None, seen=seen,
            keep=lambda clip: not split or split.lower() in _folders_of(clip, root),
        )  # fmt: skip
    if not clips:
        raise InputError(f"{root}: its metadata list no clips{f' of the split {split!r}' if split else ''}.")
    notes += clip_notes(clips, root)
    if not split and (count := strays(clips, root)):
        notes.append(f"{root}: {count} sound files that its metadata do not list are not read.")
    return Corpus(read_card(root, root.absolute().name, str(root)), clips, tuple(notes))


def _renamed(row: TextRow, inside: PurePosixPath, file_column: str, roles: Mapping[str, str | None]) -> TextRow:
    """A row with the names of a manifest, and its path from the root of the corpus."""
    file = row.cells.get(file_column)
    cells = {role: row.cells.get(name) for role, name in roles.items() if name is not None}
    return TextRow(row.where, {**cells, "path": None if file is None else str(inside / file)})


def _folders_of(clip: Clip, root: Path) -> set[str]:
    """The folders between the corpus and a clip, in lower case; the names of a split stand for each other."""
    folders = {part.lower() for part in locate(clip.path or "").relative_to(root).parts[:-1]}
    return folders | {SPLITS[name] for name in folders if name in SPLITS}


def strays(clips: Sequence[Clip], root: Path) -> int:
    """How many sound files lie under a folder that no clip is of."""
    listed = {locate(clip.path).resolve() for clip in clips if clip.path}
    return sum(file.suffix.lower() in SUFFIXES and file.resolve() not in listed for file in files_under(root))
