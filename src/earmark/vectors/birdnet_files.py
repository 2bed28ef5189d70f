"""Embeddings as BirdNET-Analyzer writes them: `dawn.birdnet.embeddings.txt`, a line for each window of a recording.

    0.0<TAB>3.0<TAB>0.412,0.0,1.077,…      start, end, and the vector

A window's id is the recording and its time (`dawn#0-3`), its group the recording. A folder stands for all such files
under it, whose recordings then go by their path from there (`site/dawn#0-3`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.tables import read_text
from earmark.vectors._values import Vectors
from earmark.wording import counted, seconds_text

ENDING = ".birdnet.embeddings.txt"


def birdnet_files(source: Path) -> list[Path]:
    """The file itself, or those under a folder, by their names; none where there are none."""
    files = sorted(source.rglob("*")) if source.is_dir() else [source]
    return [file for file in files if file.name.lower().endswith(ENDING)]


def read_birdnet(source: Path, files: list[Path]) -> Vectors:
    """The windows of all files, one after the other; float32."""
    ids: list[str] = []
    groups: list[str] = []
    rows: list[NDArray[np.float32]] = []
    for file in files:
        within = file.relative_to(source) if source.is_dir() else Path(file.name)
        recording = within.as_posix()[: -len(ENDING)]
        for where, start, end, vector in _windows(file):
            if rows and len(vector) != len(rows[0]):
                raise InputError(f"{where} has {len(vector)} numbers, not {len(rows[0])} as before; write it again.")
            ids.append(f"{recording}#{seconds_text(start)}-{seconds_text(end)}")
            groups.append(recording)
            rows.append(vector)
    if not rows:
        raise InputError(f"{source} holds no windows; write it again.")
    if len(set(ids)) < len(ids):
        twice = next(name for place, name in enumerate(ids) if name in ids[:place])
        raise InputError(f"{source} holds the window {twice} twice; write it again.")
    note = f"{source}: {counted(len(rows), 'window')} of {counted(len(files), 'recording')}; a recording is a group."
    return Vectors(tuple(ids), np.stack(rows), groups=tuple(groups), source=str(source), notes=(note,))


def _windows(file: Path) -> Iterator[tuple[str, float, float, NDArray[np.float32]]]:
    for number, line in enumerate(read_text(file, "file of embeddings").splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        cells = line.split("\t")
        try:
            start, end = float(cells[0]), float(cells[1])
            vector = np.array([float(cell) for cell in cells[2].split(",")], dtype=np.float32)
        except (IndexError, ValueError):
            raise InputError(
                f"{where} is no window of BirdNET-Analyzer: it must have a start, an end and numbers with commas, with "
                "tabs between the three."
            ) from None
        if not (math.isfinite(start) and math.isfinite(end) and np.isfinite(vector).all()):
            raise InputError(f"{where} holds a number that is not finite; write it again.")
        yield where, start, end, vector
