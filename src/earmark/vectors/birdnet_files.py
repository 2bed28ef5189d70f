"""Embeddings as BirdNET-Analyzer writes them.

    dawn.birdnet.embeddings.txt          a line for each window:  0.0<TAB>3.0<TAB>0.412,0.0,1.077,…
    dawn_0.0_3.0.birdnet.embeddings.txt  one window, whose time is in the name:  0.412,0.0,1.077,…
    any.csv                              file_path,start,end,embedding: a row for each window, the vector in one cell

A window's id is the recording and its time (`dawn#0-3`), its group the recording. A folder stands for all such text
files under it, whose recordings then go by their path from there (`site/dawn#0-3`). Recordings of a .csv file go by
their path from the folder that holds them all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.tables import read_csv, read_text
from earmark.vectors._values import Vectors
from earmark.wording import counted, seconds_text

ENDING = ".birdnet.embeddings.txt"
HEADING = ["file_path", "start", "end", "embedding"]
_TIMED = re.compile(r"(.+)_(\d+(?:\.\d+)?)_(\d+(?:\.\d+)?)")


class _Window(NamedTuple):
    where: str
    recording: str
    start: float
    end: float
    vector: NDArray[np.float32]


def birdnet_files(source: Path) -> list[Path]:
    """The file itself, or those under a folder: by their names or, of a table, its heading."""
    if source.suffix.lower() == ".csv" and source.is_file():
        return [source] if _heading_of(source) == HEADING else []
    files = sorted(source.rglob("*")) if source.is_dir() else [source]
    return [file for file in files if file.name.lower().endswith(ENDING)]


def _heading_of(file: Path) -> list[str]:
    try:
        with file.open(encoding="utf-8-sig", errors="replace") as stream:
            return [name.strip().lower() for name in stream.readline(200).split(",")]
    except OSError:  # the reader of tables will say what is wrong
        return []


def read_birdnet(source: Path, files: list[Path]) -> Vectors:
    """The windows of all files, one after the other; float32."""
    windows = list(_table_windows(source) if files == [source] and source.suffix.lower() == ".csv" else
                   (window for file in files for window in _text_windows(source, file)))  # fmt: skip
    if not windows:
        raise InputError(f"{source} holds no windows; write it again.")
    width = len(windows[0].vector)
    for window in windows:
        if len(window.vector) != width:
            raise InputError(
                f"{window.where} has {len(window.vector)} numbers, not {width} as before; write it again."
            )  # fmt: skip
        if not (math.isfinite(window.start) and math.isfinite(window.end) and np.isfinite(window.vector).all()):
            raise InputError(f"{window.where} holds a number that is not finite; write it again.")
    ids = [f"{window.recording}#{seconds_text(window.start)}-{seconds_text(window.end)}" for window in windows]
    if len(set(ids)) < len(ids):
        twice = next(name for place, name in enumerate(ids) if name in ids[:place])
        raise InputError(f"{source} holds the window {twice} twice; write it again.")
    groups = tuple(window.recording for window in windows)
    recordings = counted(len(set(groups)), "recording")
    note = f"{source}: {counted(len(ids), 'window')} of {recordings}; a recording is a group."
    vectors = np.stack([window.vector for window in windows])
    return Vectors(tuple(ids), vectors, groups=groups, source=str(source), notes=(note,))


def _text_windows(source: Path, file: Path) -> Iterator[_Window]:
    within = file.relative_to(source) if source.is_dir() else Path(file.name)
    recording = within.as_posix()[: -len(ENDING)]
    timed = _TIMED.fullmatch(recording)
    for number, line in enumerate(read_text(file, "file of embeddings").splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        if timed and "\t" not in line:
            yield _window(where, timed[1], timed[2], timed[3], line)
        else:
            yield _window(where, recording, *(*line.split("\t"), "", "", "")[:3])


def _table_windows(file: Path) -> Iterator[_Window]:
    lines = list(read_csv(read_text(file, "file of embeddings"), file))[1:]
    for number, cells in lines:
        if len(cells) != len(HEADING):
            raise InputError(f"{file}, line {number} has {len(cells)} cells, not {len(HEADING)}; write it again.")
    names = recording_names(cells[0] for _, cells in lines)
    for number, (path, start, end, vector) in lines:
        yield _window(f"{file}, line {number}", names[path], start, end, vector)


def _window(where: str, recording: str, start: str, end: str, vector: str) -> _Window:
    try:
        numbers = np.array([float(cell) for cell in vector.split(",")], dtype=np.float32)
        return _Window(where, recording, float(start), float(end), numbers)
    except ValueError:
        raise InputError(
            f"{where} is no window of BirdNET-Analyzer: it must have a start, an end and numbers with commas, with "
            "tabs between the three."
        ) from None


def recording_names(paths: Iterable[str]) -> dict[str, str]:
    """What recordings are called: by their path from the folder that holds them all, with slashes."""
    unique = list(dict.fromkeys(paths))
    parts = {path: PurePosixPath(path.replace("\\", "/")).parts for path in unique}
    shared = 0
    while len({held[: shared + 1] for held in parts.values()}) == 1 and all(
        len(held) > shared + 1 for held in parts.values()
    ):
        shared += 1
    return {path: "/".join(held[shared:]) for path, held in parts.items()}
