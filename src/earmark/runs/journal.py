"""Scores of a study on disk: one line of a CSV file for each metric, check, sub-case, value and repeat.

Lines are appended as they come. What a killed study had finished is read back, a line that was cut is dropped, and the
rest is computed: the outcome is the same as without the kill.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from earmark.atomic import write_whole
from earmark.errors import InputError, UsageError
from earmark.places import is_remote, locate
from earmark.tables import csv_text, read_csv

COLUMNS = ("metric", "check", "subcase", "value", "repeat", "score", "reason")
SCORES, SETTINGS = "scores.csv", "settings.json"
WRITE_SECONDS = 15.0
"""What a killed study on an object store loses at most."""


class Trial(NamedTuple):
    """What a score is of. `value` is the text of the value on a grid, so that it is found again exactly."""

    metric: str
    check: str
    subcase: str
    value: str
    repeat: int


class TrialScore(NamedTuple):
    """A number, or NaN with the reason why there is none."""

    trial: Trial
    score: float
    reason: str = ""


class Journal:
    """Finished scores by trial, in memory and, with a folder, on disk. To be used as a context."""

    def __init__(self, folder: str | Path | None, settings: Mapping[str, Any]) -> None:
        self.scores: dict[Trial, TrialScore] = {}
        self._file = None if folder is None else locate(folder) / SCORES
        if folder is not None:
            _settle(locate(folder), settings)
        self._stream: io.TextIOWrapper | None = None
        self._text, self._written = "", time.monotonic()

    def __enter__(self) -> Self:
        if self._file is not None:
            self.scores = read_journal(self._file)
            data = self._file.read_bytes() if self._file.exists() else b""
            header = ",".join(COLUMNS) + "\n"
            whole = data[: data.rfind(b"\n") + 1]  # without what a killed writer left of its last line
            if whole != data or not whole:
                self._file.write_bytes(whole or header.encode())
            if is_remote(self._file):
                self._text = whole.decode() or header
            else:
                self._stream = self._file.open("a", newline="", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()
        elif is_remote(self._file):
            self._file.write_text(self._text, encoding="utf-8")

    def add(self, scores: Iterable[TrialScore]) -> None:
        added = {score.trial: score for score in scores}
        self.scores |= added
        # Every digit is kept: a resumed study must give the same means.
        lines = [[*trial, None if score != score else score, why] for trial, score, why in added.values()]
        if self._stream is not None:
            self._stream.write(csv_text(None, lines))
            self._stream.flush()
        elif is_remote(self._file):  # where nothing can be appended
            self._text += csv_text(None, lines)
            if time.monotonic() - self._written > WRITE_SECONDS:
                self._file.write_text(self._text, encoding="utf-8")
                self._written = time.monotonic()


def read_journal(path: Path) -> dict[Trial, TrialScore]:
    """The scores of a file; none when there is no file. A last line without an end is not read."""
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    rows = read_csv(text[: text.rfind("\n") + 1], path)
    header = next(rows, None)
    if header is not None and tuple(header.cells) != COLUMNS:
        raise InputError(f"{path} is not a file of sanity scores: give --into another folder.")
    scores = {}
    for _, row in rows:
        try:
            metric, check, subcase, value, repeat, score, reason = row
            trial = Trial(metric, check, subcase, value, int(repeat))
            scores[trial] = TrialScore(trial, float(score) if score else float("nan"), reason)
        except (TypeError, ValueError):
            raise InputError(f"{path}: the line {','.join(row)[:80]!r} is damaged: delete it and run again.") from None
    return scores


def _settle(folder: Path, settings: Mapping[str, Any]) -> None:
    """A folder belongs to one choice of what decides its scores."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SETTINGS
    if not path.exists():
        write_whole(path, (json.dumps(dict(settings), indent=1, sort_keys=True) + "\n").encode())
        return
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise InputError(f"{path} cannot be read as JSON: give --into another folder.") from None
    for name, value in settings.items():
        if earlier.get(name) != value:
            raise UsageError(
                f"{folder} holds scores with {name} {earlier.get(name)}, not {value}: give --into another folder, "
                f"or {name} {earlier.get(name)}."
            )
