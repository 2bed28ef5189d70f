"""The folder of a run: what every kind of run leaves there, and how it is written and read.

    config.yaml    the config as resolved; running it does the same again
    scores.csv     the score table
    clips.csv      every clip and what happened to it
    failures.csv   items that could not be used, with the reason
    run.json       what was measured, where it lies, times, versions
    run.log        what was done when
    report.html    the report
    earlier/1      the results of a run with other settings that lay here before

Every file is replaced as a whole: a reader never sees half of one.
"""

from __future__ import annotations

import json
import logging
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import yaml

from earmark.atomic import write_whole
from earmark.errors import InputError
from earmark.places import RemotePath, is_remote, locate, without_keys
from earmark.plain_yaml import load_yaml
from earmark.runs.engine import Failure
from earmark.tables import csv_text, read_csv_records, read_text

FORMAT = 1
EARLIER = "earlier"
WORKING = frozenset(
    "into steps cache executor scheduler cluster workers threads jobs batch memory device report isolation".split()
)
"""Settings that say where and how fast a run works."""
RESULTS = (
    "config.yaml", "scores.csv", "comparisons.csv", "clips.csv", "failures.csv", "run.json", "report.html", "tables",
    "figures", "submission.json", "metric_correlations.csv", "metric_correlations.md",
)  # fmt: skip
"""What runs of every kind write beside run.log; all else in the folder is the user's."""
LOG_SECONDS = 15.0


def make_folder(into: str | Path) -> Path:
    folder = locate(into).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder} is not a folder: give another place with --into.") from None
    except OSError as error:
        raise InputError(f"{folder} cannot be made ({error.strerror}): give another place with --into.") from error
    return folder


def set_aside(folder: Path, config: str) -> Path | None:
    """Move the results of a finished run that measured something else to RUN/earlier/1, 2 …; where they lie now.

    A run with the same settings, but for how fast and where it works, goes on in its folder, and so does one that was
    not finished. On an object store, where nothing can be moved, the results are replaced.
    """
    if is_remote(folder) or not (folder / "run.json").is_file():
        return None
    try:
        before = (folder / "config.yaml").read_text("utf-8")
        if measured_settings(before) == measured_settings(config):
            return None
    except (OSError, ValueError, yaml.YAMLError):
        return None
    earlier = folder / EARLIER
    number = 1 + max((int(kept.name) for kept in earlier.glob("*") if kept.name.isdecimal()), default=0)
    target = earlier / str(number)
    target.mkdir(parents=True)
    for name in RESULTS:
        if (folder / name).exists():
            (folder / name).rename(target / name)
    return target


def measured_settings(config: str) -> dict[str, Any]:
    """What a config says of what is measured."""
    settings: dict[str, Any] = load_yaml(config, "config.yaml")
    return {name: value for name, value in settings.items() if name not in WORKING and value not in (None, [], "")}


def write_text(path: Path, text: str) -> None:
    """Replace a file as a whole; what cannot be written as UTF-8 is escaped."""
    try:
        write_whole(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}): free some space or choose another place."
        ) from error


def write_csv(path: Path, header: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    write_text(path, csv_text(header, lines))


def file_stem(name: str) -> str:
    """A name as part of a file's."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)


def write_failures(folder: Path, failures: Iterable[Failure]) -> None:
    write_csv(folder / "failures.csv", [field.name for field in fields(Failure)], map(astuple, failures))


def read_failures(folder: Path) -> list[Failure]:
    path = folder / "failures.csv"
    return [Failure(**line) for line in read_csv_records(read_text(path), path)] if path.exists() else []


def read_clips(folder: str | Path) -> list[dict[str, str]]:
    """The lines of clips.csv; an empty cell is an empty text."""
    path = locate(folder) / "clips.csv"
    return list(read_csv_records(read_text(path), path))


def clips_of_subset(folder: str | Path, suite: str, subset: str) -> dict[str, dict[str, str]]:
    """The lines of clips.csv that are of one subset, by the ids of the clips."""
    return {line["id"]: line for line in read_clips(folder) if (line["suite"], line["subset"]) == (suite, subset)}


def command_line() -> str:
    """The command line that asked for the work, without keys and passwords; "" where a program did."""
    name, *words = sys.argv or [""]
    ours = Path(name).stem == "earmark" or Path(name).parts[-2:] == ("earmark", "__main__.py")
    return shlex.join(["earmark", *map(without_keys, words)]) if ours else ""


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    write_text(folder / "run.json", json.dumps(record, ensure_ascii=False, indent=1, default=str) + "\n")


def read_record(folder: str | Path) -> dict[str, Any]:
    """What run.json says."""
    path = locate(folder) / "run.json"
    try:
        record: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{folder} is not a run folder: it has no run.json; give the folder of an `earmark run`."
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}).") from error
    return record


@contextmanager
def logging_to(folder: Path) -> Iterator[None]:
    """Send the log of runs to RUN/run.log while a run lasts."""
    log = logging.getLogger("earmark.runs")
    file = folder / "run.log"
    try:
        handler: logging.Handler = (
            _Uploaded(file)
            if is_remote(file)
            else logging.FileHandler(file, encoding="utf-8", errors="backslashreplace")
        )
    except OSError as error:
        raise InputError(f"{file} cannot be written ({error.strerror}): choose another place.") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    before, spread = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
        log.propagate = spread
        handler.close()


class _Uploaded(logging.Handler):
    """A log on an object store, where nothing can be appended: written as a whole every while, and at the end."""

    def __init__(self, file: RemotePath) -> None:
        super().__init__()
        self._file, self._text, self._written = file, "", time.monotonic()
        try:
            self._text = file.read_bytes().decode("utf-8", "replace")
        except FileNotFoundError:
            pass
        except Exception:
            super().close()  # or the end of the program would write what was never begun
            raise

    def emit(self, record: logging.LogRecord) -> None:
        self._text += self.format(record) + "\n"
        if time.monotonic() - self._written > LOG_SECONDS:
            self._write()

    def close(self) -> None:
        self._write()
        super().close()

    def _write(self) -> None:
        self._written = time.monotonic()
        with suppress(OSError, InputError):  # the work counts, not what is told of it
            self._file.write_text(self._text, encoding="utf-8", errors="backslashreplace")
