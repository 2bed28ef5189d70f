"""A folder of folders is a corpus: the folder that holds a file names its label.

    root/robin/a.wav           label robin
    root/field/robin/a.wav     label robin, subset field
    root/a.wav                 no label
    root/train/a.wav           no label, subset train, where all folders with sounds are splits

Hidden files and folders are passed over; files that are not audio by their name are counted and noted.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from earmark.audio import SUFFIXES
from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.corpora.manifest import read_card
from earmark.errors import InputError

__all__ = ["SPLITS", "files_under", "read_file", "read_folder"]

SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}
"""Folders that divide a corpus, with the name that stands for each: what lies in them is of no class for it."""


def read_folder(path: str | os.PathLike[str]) -> Corpus:
    """Every audio file under a folder, in the order of its path; nothing is opened."""
    root = Path(path)
    if not root.is_dir():
        raise InputError(f"{root} is not a folder: check the path.")
    clips: list[Clip] = []
    skipped: Counter[str] = Counter()
    for file in files_under(root):
        if file.suffix.lower() in SUFFIXES:
            clips.append(_clip(file, root))
        else:
            skipped[file.suffix.lower() or "no suffix"] += 1
    if not clips:
        found = f"its {skipped.total()} files are of other kinds" if skipped else "it holds no files"
        raise InputError(f"{root} holds no audio: {found}; give a folder of folders with WAV, FLAC, OGG or MP3 files.")
    clips.sort(key=lambda clip: clip.id)
    labels = {clip.label for clip in clips}
    divided = None not in labels and all(str(label).lower() in SPLITS for label in labels)
    if divided:
        clips = [replace(clip, label=None, subset=f"{clip.subset}/{clip.label}".strip("/")) for clip in clips]
    notes = _notes(root, clips, skipped, divided)
    return Corpus(read_card(root, root.absolute().name, str(root)), clips, tuple(notes))


def read_file(path: str | os.PathLike[str]) -> Corpus:
    """A corpus of one unlabelled file."""
    file = Path(path)
    name = _readable(file.name)
    return Corpus(CorpusCard(name=name, source=str(file)), [Clip(id=name, path=str(file))])


def files_under(root: Path) -> Iterator[Path]:
    """Files that are not hidden. Links to folders are followed, each folder once, so that a loop ends."""
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


def _clip(file: Path, root: Path) -> Clip:
    inside = file.relative_to(root)
    folders = [_readable(part) for part in inside.parts[:-1]]
    return Clip(
        id="/".join([*folders, _readable(file.name)]),
        label=folders[-1] if folders else None,
        subset="/".join(folders[:-1]),
        path=str(file),
    )


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
        yield f"{root.name}: {loose} of {len(clips)} clips lie in no folder and have no label."
    nested = sorted({clip.subset for clip in clips if clip.subset})
    if nested and not divided:
        yield f"{root.name}: nested folders are read as subset/label (subsets: {', '.join(nested[:8])})."
