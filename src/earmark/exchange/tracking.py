"""Runs in experiment trackers: parameters, every measured score with its interval, the table and the report.

A tracked run is begun before the work and ended after it. Where the work has a folder, RUN/tracked.json remembers which
tracked run it is: the same work given again, after a crash or with a cache, continues that one. No failure of a tracker
harms the work: it is told in one sentence, and the scores are where they would have been without it.
"""

from __future__ import annotations

import json
import math
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout, suppress
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from earmark._version import __version__
from earmark.errors import Ended, UsageError, did_you_mean, no_exit
from earmark.exchange._trackers import TRACKERS, Tracker
from earmark.places import locate
from earmark.runs import folder as folders
from earmark.runs.identity import versions
from earmark.scores import Row, Scores

PROJECT = "earmark"
STATE = "tracked.json"
FILES = ("scores.csv", "comparisons.csv", "report.html", "config.yaml", "run.json")
"""What of a run folder goes along."""
_SAYS_NOTHING = {"", "none", "all"}
_NAME_LENGTH = 240


class Target(NamedTuple):
    """Where a run is tracked: `mlflow`, or `wandb:my-project`."""

    tracker: str
    project: str

    @classmethod
    def parse(cls, text: str) -> Target:
        tracker, colon, project = text.partition(":")
        if tracker not in TRACKERS:
            hint = did_you_mean(tracker, TRACKERS) or f" There are {', '.join(TRACKERS)}."
            raise UsageError(f"There is no tracker {tracker!r}.{hint}")
        if colon and not project.strip():
            raise UsageError(f"--track {text}: a project belongs behind the colon, as in {tracker}:my-project.")
        return cls(tracker, project.strip() or PROJECT)


class Tracking:
    """A tracked run, as a context: begun on entry, ended on exit, as failed where an error leaves it.

    Args:
        target: `mlflow`, `wandb` or `trackio`, and a project behind a colon.
        name: what the run is called there.
        parameters: settings of the work; what is nested gets names with dots.
        folder: the run folder that remembers the tracked run.
        measured: settings that tell this work from another one in the same folder (default: the parameters).
        warn: what is called with a sentence when the tracker fails.

    >>> with Tracking("mlflow:birds", name="wren", parameters={"pool": "mean"}) as tracking:
    ...     tracking.log(earmark.evaluate(vectors, labels))
    """

    def __init__(
        self, target: str, *, name: str = "", parameters: Mapping[str, Any] | None = None,
        folder: str | Path | None = None, measured: Any = None, warn: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self.target = Target.parse(target)
        self._name = name or (locate(folder).name if folder is not None else "") or "scores"
        self._parameters = dict(_flat(parameters or {}))
        self._folder = None if folder is None else locate(folder)
        self._measured = _digest(self._parameters if measured is None else measured)
        self._warn = warn or _to_stderr
        with no_exit():
            self._tracker: Tracker | None = TRACKERS[self.target.tracker]()  # a missing extra stops here, before work
        self.identity, self._step = "", 0

    def __enter__(self) -> Self:
        self._guarded(self._start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._guarded(lambda tracker: tracker.end(kind is None))

    @property
    def working(self) -> bool:
        """Whether the tracker has taken all that it was given."""
        return self._tracker is not None

    def log(self, scores: Scores) -> None:
        """Give the tracker every measured score, the table, and what lies in the run folder."""
        rows = [row for row in scores if row.status == "ok" and row.value is not None]
        self._guarded(lambda tracker: self._log(tracker, scores, numbers_of(rows)))

    def _start(self, tracker: Tracker) -> None:
        known = self._known()
        self.identity = str(known.get("run", ""))
        self._step = int(known.get("times", 0))
        self.identity = tracker.start(
            self.target.project, self._name, self.identity, self._parameters, tags_of(self._folder)
        )
        self._remember()

    def _log(self, tracker: Tracker, scores: Scores, numbers: Mapping[str, float]) -> None:
        with tempfile.TemporaryDirectory() as copies:
            files = list(self._files(Path(copies), scores))
            tracker.log(numbers, [row.as_dict() for row in scores], files, self._step)
        self._step += 1
        self._remember()

    def _files(self, copies: Path, scores: Scores) -> Iterable[Path]:
        """Copies of what goes along, also of a folder on an object store."""
        for name in FILES:
            if self._folder is not None and (self._folder / name).is_file():
                (copies / name).write_bytes((self._folder / name).read_bytes())
                yield copies / name
            elif name == "scores.csv":
                scores.write(copies / name)
                yield copies / name

    def _states(self) -> list[dict[str, Any]]:
        with suppress(OSError, ValueError):
            states = json.loads((self._folder / STATE).read_text("utf-8")) if self._folder is not None else []
            return [state for state in states if isinstance(state, dict)]
        return []

    def _key(self) -> dict[str, str]:
        return {**self.target._asdict(), "measured": self._measured}

    def _known(self) -> dict[str, Any]:
        return next((state for state in self._states() if self._key().items() <= state.items()), {})

    def _remember(self) -> None:
        if self._folder is None:
            return
        others = [state for state in self._states() if not self._key().items() <= state.items()]
        self._folder.mkdir(parents=True, exist_ok=True)
        states = [*others, {**self._key(), "run": self.identity, "times": self._step}]
        folders.write_text(self._folder / STATE, json.dumps(states, indent=1) + "\n")

    def _guarded(self, act: Callable[[Tracker], None]) -> None:
        """Do something with the tracker; after its first failure nothing is asked of it any more."""
        if self._tracker is None:
            return
        try:
            with no_exit(), redirect_stdout(sys.stderr):  # what a tracker prints is no result
                act(self._tracker)
        except (Exception, Ended) as error:
            self._tracker = None
            why = " ".join(str(error).split())[:300] or type(error).__name__
            name = self.target.tracker
            safe = "the scores are safe; `earmark export SCORES --track` sends them later"
            self._warn(f"{name} does not track this ({why.removesuffix('.')}): {safe}.")


def track(scores: Scores, target: str, **options: Any) -> str:
    """Send scores to a tracker, and return which run they are there; "" where that failed. Options as of `Tracking`."""
    with Tracking(target, **options) as tracking:
        tracking.log(scores)
    return tracking.identity


# --- names and numbers ---------------------------------------------------------------------------------------


def numbers_of(rows: Iterable[Row]) -> dict[str, float]:
    """Every value by a name that all trackers take, and the ends of its interval as NAME/low and NAME/high."""
    numbers: dict[str, float] = {}
    for row in rows:
        stem = name = metric_name(row)
        count = 1
        while name in numbers:
            count += 1
            name = f"{stem}_{count}"
        for ending, value in (("", row.value), ("/low", row.low), ("/high", row.high)):
            if value is not None and math.isfinite(value):
                numbers[name + ending] = value
    return numbers


def metric_name(row: Row) -> str:
    """METRIC/SUITE/SUBSET/SYSTEM/DISTANCE, then correction and protocol where they say something.

    Trackers draw metrics of one name over each other, and group names by what stands before the first `/`.
    """
    parts = (row.metric, row.suite, row.subset, row.system, row.distance, row.correction, row.protocol)
    return "/".join(plain_name(part) for part in parts if part not in _SAYS_NOTHING)[:_NAME_LENGTH]


def plain_name(text: str) -> str:
    """Letters, digits, `_`, `-` and `.`: MLflow takes few more, and W&B sorts by no others."""
    text = text.replace("@", "_at_").replace("%", "_percent").replace("Δ", "difference")
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text).strip("_") or "x" + _digest(text)[:6]


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Settings by dotted names, as texts; what is empty is left out."""
    for name, value in settings.items():
        key = f"{prefix}{plain_name(str(name))}"
        if value in (None, "", [], {}, ()):
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{key}.")
        elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
            yield from _flat({str(number): item for number, item in enumerate(value)}, f"{key}.")
        else:
            yield key, ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def tags_of(folder: Path | None) -> dict[str, str]:
    """Versions, command and commit: what a reader needs to do it again."""
    tags = {
        "earmark": __version__, "python": platform.python_version(), "platform": platform.platform(),
        "numpy": versions("numpy")["numpy"], "command": folders.command_line(), "commit": _commit(),
        "folder": "" if folder is None else str(folder),
    }  # fmt: skip
    return {f"earmark.{name}" if name != "earmark" else name: text for name, text in tags.items() if text}


def _commit() -> str:
    """The commit of the current folder, marked where files differ from it; "" where there is none."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], capture_output=True, timeout=10, check=False, encoding="utf-8")
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        commit = git("rev-parse", "HEAD")
        changed = commit and git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return f"{commit}, changed" if changed else commit


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _to_stderr(sentence: str) -> None:
    print(f"warning: {sentence}", file=sys.stderr)
