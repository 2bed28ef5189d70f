"""Scores of a sanity run on disk: one line of a CSV file for each metric, check, sub-case, grid value and repeat.

Lines are appended as they come. What a killed run had finished is read back, a line that was cut is dropped, and the
rest is computed: the table is the same as without the kill.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from earmark.atomic import write_whole
from earmark.errors import InputError, UsageError

COLUMNS = ("metric", "check", "subcase", "value", "repeat", "score", "reason")
SCORES, SETTINGS = "scores.csv", "settings.json"


class Place(NamedTuple):
    """Where a score belongs. `value` is the text of the grid value, so that it is found again exactly."""

    metric: str
    check: str
    subcase: str
    value: str
    repeat: int


class Score(NamedTuple):
    """A number, or NaN with the reason why there is none."""

    place: Place
    score: float
    reason: str = ""


class Store:
    """Finished scores by place, in memory and, with a folder, on disk."""

    def __init__(self, folder: str | Path | None, settings: Mapping[str, Any]) -> None:
        self.found: dict[Place, Score] = {}
        self._file = None if folder is None else Path(folder) / SCORES
        if folder is not None:
            _settle(Path(folder), settings)
        self._stream: io.TextIOWrapper | None = None

    def __enter__(self) -> Self:
        if self._file is not None:
            self.found = read(self._file)
            _end_with_a_whole_line(self._file)
            self._stream = self._file.open("a", newline="", encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()

    def add(self, scores: Iterable[Score]) -> None:
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        for score in scores:
            self.found[score.place] = score
            # repr keeps every digit: a resumed run must give the same means.
            writer.writerow([*score.place, "" if score.score != score.score else repr(score.score), score.reason])
        if self._stream is not None:
            self._stream.write(lines.getvalue())
            self._stream.flush()


def read(path: Path) -> dict[Place, Score]:
    """The scores of a file; none when there is no file. A last line without an end is not read."""
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    rows = csv.reader(io.StringIO(whole))
    header = next(rows, None)
    if header is not None and tuple(header) != COLUMNS:
        raise InputError(f"{path} is not a file of sanity scores: give --into another folder.")
    found = {}
    for row in rows:
        try:
            metric, check, subcase, value, repeat, score, reason = row
            place = Place(metric, check, subcase, value, int(repeat))
            found[place] = Score(place, float(score) if score else float("nan"), reason)
        except (TypeError, ValueError):
            raise InputError(f"{path}: the line {','.join(row)[:80]!r} is damaged: delete it and run again.") from None
    return found


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


def _end_with_a_whole_line(path: Path) -> None:
    """Cut what a killed writer left of its last line; a new file gets its header."""
    if not path.exists() or path.stat().st_size == 0:
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
        return
    data = path.read_bytes()
    keep = data.rfind(b"\n") + 1
    if keep == 0:
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    elif keep < len(data):
        with path.open("rb+") as stream:
            stream.truncate(keep)
