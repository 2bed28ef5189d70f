"""Databases of Perch Hoplite, which BirdNET-Analyzer writes too: `hoplite.sqlite` beside `usearch.index`.

    1.x   deployments, recordings, windows (of a recording) and annotations (spans of a recording, with a label)
    0.1   hoplite_sources, hoplite_embeddings (of a source) and hoplite_labels (of an embedding)
    before that, hoplite_embeddings held the vectors themselves, as float16

A window's id is its recording and time (`dawn.wav#0-5`), its group the recording. It has the labels that were given as
positive: of 0.1 its own, of 1.x those of the annotations that it overlaps. Negative and uncertain ones say of a window
what it does not, or may, hold: such a window is unlabelled, not background.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.vectors._values import Vectors
from earmark.vectors.birdnet_files import recording_names
from earmark.vectors.columns import MissingColumn
from earmark.vectors.several_labels import joined_labels
from earmark.vectors.usearch_files import read_index
from earmark.wording import counted, seconds_text

DATABASE, INDEX = "hoplite.sqlite", "usearch.index"
POSITIVE = 1
GROUPS = ("recording", "deployment", "project")
ROUNDING = 0.001
"""Seconds. Times are rounded where they are written: spans that overlap by less lie beside each other."""


class _Window(NamedTuple):
    key: int
    recording: int
    offsets: tuple[float, ...]


class _Held(NamedTuple):
    """What a database says: windows, the names of recordings by their number, labels by the key of a window."""

    windows: list[_Window]
    names: dict[int, tuple[str, str, str]]  # recording, deployment, project
    labels: dict[int, list[str]]
    other_labels: int
    vectors: dict[int, NDArray[Any]]


def hoplite_database(source: Path) -> Path | None:
    """The SQLite file of a database, given by its folder or itself; None where it is none."""
    file = source / DATABASE if source.is_dir() else source
    if file.suffix.lower() not in (".sqlite", ".db", ".sqlite3") or not file.is_file():
        return None
    with file.open("rb") as stream:
        return file if stream.read(15) == b"SQLite format 3" else None


def read_hoplite(source: Path, database: Path, groups: str | None = None) -> Vectors:
    """The windows of a database with their labels, in the order of their numbers; float32.

    `groups` is recording (the default), deployment or project.
    """
    if groups is not None and groups not in GROUPS:
        raise MissingColumn(source, groups, GROUPS)
    with _opened(database) as connection:
        held = _read_windows(connection) if _has(connection, "windows") else _read_embeddings(connection, database)
    kept, values = _vectors_of(held, database)
    if not kept:
        raise InputError(f"{source} holds no windows with vectors: embed recordings first.")
    recordings = _recordings(held)
    which = GROUPS.index(groups or "recording")
    of_window = [
        recordings[window.recording] if which == 0 else held.names[window.recording][which] or None for window in kept
    ]
    ids = [f"{recordings[window.recording]}#{_time(window.offsets)}" for window in kept]
    twice = [name for name, count in Counter(ids).items() if count > 1]
    if twice:
        raise InputError(f"{source} holds the window {twice[0]} twice: remove one of them.")
    labels, separator = joined_labels([held.labels.get(window.key, []) for window in kept])
    given = any(labels)
    return Vectors(
        tuple(ids), values,
        labels=tuple(labels) if given else None, groups=tuple(of_window), source=str(source),
        roles={"group": groups or "recording"} | ({"label": "annotations"} if given else {}),
        notes=tuple(_notes(source, held, kept, labels)), separator=separator,
    )  # fmt: skip


def _notes(source: Path, held: _Held, kept: Sequence[_Window], labels: Sequence[str | None]) -> Iterator[str]:
    recordings = len({window.recording for window in kept})
    labelled = sum(label is not None for label in labels)
    yield (
        f"{source}: {counted(len(kept), 'window')} of {counted(recordings, 'recording')}, {labelled} with a label; a "
        "recording is a group."
    )
    if held.other_labels:
        yield f"{source}: {counted(held.other_labels, 'label')} that are negative or uncertain were passed over."
    if len(kept) < len(held.windows):
        yield f"{source}: {counted(len(held.windows) - len(kept), 'window')} without a vector were left out."


@contextmanager
def _opened(database: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes nothing, also where the folder may not be written to."""
    place = database.absolute().as_uri()
    try:
        try:
            connection = sqlite3.connect(f"{place}?mode=ro", uri=True)
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            connection = sqlite3.connect(f"{place}?immutable=1", uri=True)
        with closing(connection):
            yield connection
    except sqlite3.Error as error:
        raise InputError(
            f"{database} cannot be read as a database of Perch Hoplite ({error}): write it again."
        ) from error


def _has(connection: sqlite3.Connection, table: str, column: str = "") -> bool:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    return column in columns if column else bool(columns)


def _read_windows(connection: sqlite3.Connection) -> _Held:
    """A database of 1.x."""
    windows = [
        _Window(int(key), int(recording), _numbers(offsets, "<f8"))
        for key, recording, offsets in connection.execute("SELECT id, recording_id, offsets FROM windows ORDER BY id")
    ]
    names = {
        int(key): (str(name), str(deployment or ""), str(project or ""))
        for key, name, deployment, project in connection.execute(
            "SELECT recordings.id, filename, deployments.name, project FROM recordings "
            "LEFT JOIN deployments ON deployments.id = deployment_id"
        )
    }
    spans: dict[int, list[tuple[float, float, str]]] = {}
    other = 0
    for recording, offsets, label, kind in connection.execute(
        "SELECT recording_id, offsets, label, label_type FROM annotations ORDER BY id"
    ):
        if kind != POSITIVE:
            other += 1
            continue
        numbers = _numbers(offsets, "<f8")
        spans.setdefault(int(recording), []).append((numbers[0], numbers[-1], str(label)))
    labels: dict[int, list[str]] = {}
    by_recording: dict[int, list[_Window]] = {}
    for window in windows:
        by_recording.setdefault(window.recording, []).append(window)
    for recording, given in spans.items():
        starts = np.array([start for start, _, _ in given])
        ends = np.array([end for _, end, _ in given])
        for window in by_recording.get(recording, []):
            touching = (starts + ROUNDING < window.offsets[-1]) & (ends - ROUNDING > window.offsets[0])
            labels[window.key] = [given[place][2] for place in np.flatnonzero(touching)]
    return _Held(windows, names, labels, other, {})


def _read_embeddings(connection: sqlite3.Connection, database: Path) -> _Held:
    """A database of 0.1, or one from before it that holds the vectors."""
    if not _has(connection, "hoplite_embeddings"):
        raise InputError(f"{database} has no tables of Perch Hoplite: give the folder of such a database.")
    windows, names = [], {}
    if _has(connection, "hoplite_sources"):
        for key, dataset, source in connection.execute("SELECT id, dataset, source FROM hoplite_sources"):
            names[int(key)] = (str(source), str(dataset), str(dataset))
        rows = connection.execute("SELECT id, source_idx, offsets FROM hoplite_embeddings ORDER BY id").fetchall()
        for key, source, offsets in rows:
            windows.append(_Window(int(key), int(source), _numbers(offsets, "<f2" if len(offsets) == 2 else "<f4")))
    else:
        numbers: dict[str, int] = {}
        for key, source in connection.execute("SELECT id, source FROM hoplite_embeddings ORDER BY id"):
            number = numbers.setdefault(str(source), len(numbers))
            names[number] = (str(source), "", "")
            windows.append(_Window(int(key), number, (float(key),)))
    vectors: dict[int, NDArray[Any]] = {}
    if _has(connection, "hoplite_embeddings", "embedding"):
        for key, blob in connection.execute("SELECT id, embedding FROM hoplite_embeddings"):
            vectors[int(key)] = np.frombuffer(blob, "<f2")
    labels: dict[int, list[str]] = {}
    other = 0
    for key, label, kind in connection.execute("SELECT embedding_id, label, type FROM hoplite_labels ORDER BY id"):
        if kind == POSITIVE:
            labels.setdefault(int(key), []).append(str(label))
        else:
            other += 1
    return _Held(windows, names, labels, other, vectors)


def _numbers(blob: bytes, kind: str) -> tuple[float, ...]:
    numbers = tuple(float(number) for number in np.frombuffer(blob, kind)) if isinstance(blob, bytes) else ()
    if not numbers:
        raise InputError("A window of the database has no time: write it again.")
    return numbers


def _vectors_of(held: _Held, database: Path) -> tuple[list[_Window], NDArray[np.float32]]:
    """The windows that have vectors, and these."""
    if held.vectors:
        kept = [window for window in held.windows if window.key in held.vectors]
        widths = {len(held.vectors[window.key]) for window in kept}
        if len(widths) > 1:
            raise InputError(f"{database} holds vectors of {sorted(widths)} numbers: write it again.")
        return kept, np.array([held.vectors[window.key] for window in kept], np.float32)
    file = database.parent / INDEX
    if not file.is_file():
        raise InputError(f"{file} is missing: the vectors of a Hoplite database are there, so copy its whole folder.")
    keys, values = read_index(file)
    place_of = {int(key): place for place, key in enumerate(keys)}
    kept = [window for window in held.windows if window.key in place_of]
    return kept, values[[place_of[window.key] for window in kept]].astype(np.float32)


def _recordings(held: _Held) -> dict[int, str]:
    """A name for each recording: its path from the folder that holds them all; with the deployment, if need be."""
    used = sorted({window.recording for window in held.windows})
    names = {number: held.names.get(number, (f"recording {number}", "", "")) for number in used}
    times = Counter(name for name, _, _ in names.values())
    paths = {
        number: name if times[name] == 1 else "/".join(filter(None, [deployment, name]))
        for number, (name, deployment, _) in names.items()
    }
    short = recording_names(paths.values())
    return {number: short[path] for number, path in paths.items()}


def _time(offsets: tuple[float, ...]) -> str:
    return "-".join(seconds_text(number) for number in offsets[:2])
