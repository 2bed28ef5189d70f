"""The analysis of the live matrix, made beside the server and never in a request.

A thread looks from time to time whether a board's matrix (systems x subsets under its leading metric) has changed. If
so it hands the matrix to a process of its own, with the lowest priority and one thread, and keeps the result in the
store, from where other workers take it and a restarted server has it at once. Pages show the last result and whether a
newer one is being made.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.snapshots import Snapshots
from earmark.errors import EarmarkError, InputError
from earmark.scores import Row, Scores

if TYPE_CHECKING:
    from earmark.analysis.study import Study
    from earmark.board.storage import Store

Floats = NDArray[np.float64]

FEWEST_SYSTEMS, FEWEST_SUBSETS = 3, 3
MOST_RELATED = 40
"""Subsets up to which their relations are drawn."""
_CONTENT = 3
"""Grows when an analysis holds more than before."""
_CLAIM_SECONDS = 90.0
"""How long a claim holds. Whoever works renews it; a worker that was killed does not."""
_RENEW_SECONDS = 30.0
_CODE = "from earmark.board.boards.analyses import work; work()"
_QUIET = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Analysis:
    """What was found in one state of a board. `found` is empty where `error` says why nothing was.

    found  stalk, prowl, pounce, novelty, ranks and warnings, as `earmark analyze --json` prints them; and `drawn`, what
           figures need beyond these, which results of earlier versions do not have
    digest which matrix it is of
    """

    board: str
    metric: str
    digest: str
    made: str
    seconds: float
    systems: int
    subsets: tuple[str, ...]
    found: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""

    @classmethod
    def of(cls, matrix: Mapping[str, Any], seconds: float, **outcome: Any) -> Analysis:
        """The analysis of a matrix, made now, with what was `found` or an `error`."""
        made = datetime.now(UTC).isoformat(timespec="seconds")
        size, subsets = len(matrix["systems"]), tuple(matrix["subsets"])
        return cls(matrix["board"], matrix["metric"], digest_of(matrix), made, seconds, size, subsets, **outcome)

    @classmethod
    def from_json(cls, text: str) -> Analysis:
        plain = json.loads(text)
        return cls(**{**plain, "subsets": tuple(plain["subsets"])})

    def to_json(self) -> str:
        return json.dumps(asdict(self), allow_nan=False)

    def verdict(self, subset: str) -> Mapping[str, Any] | None:
        """What the analysis says of one subset."""
        return self._verdicts.get(subset)

    @cached_property
    def _verdicts(self) -> dict[str, Mapping[str, Any]]:
        return {each["dataset"]: each for each in self.found.get("novelty", ())}


def matrix_of(snapshot: Snapshot) -> dict[str, Any]:
    """The live matrix of a board's leading metric: every system as it is ranked, the public subsets first."""
    if not snapshot.metrics:
        return {"board": snapshot.board, "metric": "", "systems": [], "families": [], "subsets": [], "values": []}
    metric = snapshot.metrics[0]
    ranked = snapshot.field(metric, snapshot.public_group(metric).key)
    rows = ranked.rows[ranked.means.have > 0]
    panel = ranked.panel
    subsets = list(dict.fromkeys([*ranked.group.subsets, *snapshot.subsets(metric)]))
    values = panel.measured()[np.ix_(rows, panel.columns(subsets))]
    systems = [snapshot.systems[snapshot.lines[number].system] for number in panel.lines[rows].tolist()]
    return {
        "board": snapshot.board, "metric": metric, "systems": [system.card.name for system in systems],
        "families": [system.card.family or system.card.name for system in systems], "subsets": subsets,
        "values": [[None if value != value else value for value in line] for line in values.tolist()],
    }  # fmt: skip


def digest_of(matrix: Mapping[str, Any]) -> str:
    """What a matrix is known by, together with what is made of it: a result that lacks something is made anew."""
    return hashlib.sha256(json.dumps([_CONTENT, matrix], sort_keys=True).encode()).hexdigest()


def analysed(matrix: Mapping[str, Any]) -> Analysis:
    """Stalk, prowl and pounce of a matrix; a matrix that is too small gives an analysis with an error."""
    from earmark.analysis.study import analyze

    started = time.monotonic()
    outcome: dict[str, Any] = {}
    try:
        if not _is_enough(matrix):
            raise InputError(
                f"An analysis needs at least {FEWEST_SYSTEMS} systems and {FEWEST_SUBSETS} subsets with scores."
            )
        rows = tuple(
            Row(suite=matrix["board"], subset=subset, system=system, metric=matrix["metric"], value=value)
            for system, line in zip(matrix["systems"], matrix["values"], strict=True)
            for subset, value in zip(matrix["subsets"], line, strict=True)
            if value is not None
        )
        families = dict(zip(matrix["systems"], matrix["families"], strict=True))
        study = analyze(Scores(rows), metric=matrix["metric"], families=families)
        outcome["found"] = {**study.as_dict(), "drawn": _drawn(study)}
    except EarmarkError as error:
        outcome["error"] = str(error)
    return Analysis.of(matrix, round(time.monotonic() - started, 2), **outcome)


def _drawn(study: Study) -> dict[str, Any]:
    """How much each subset tells of each other, like ones side by side; and how soon few subsets rank as all do."""
    from earmark.analysis.similarities import NINE

    drawn: dict[str, Any] = {}
    related = study.stalk.datasets
    if len(related.names) <= MOST_RELATED:
        order = _likeness_order(related.r2)
        r2 = np.round(related.r2[np.ix_(order, order)], 3)
        drawn["relations"] = {"subsets": [related.names[place] for place in order], "r2": r2.tolist()}
    found = [selection for selection in study.prowl.selections if selection.name in NINE]
    if found and len(study.prowl.datasets) <= MOST_RELATED:
        best = max(found, key=lambda each: (round(each.scauc, 6), -each.size))
        random = study.prowl.random.coverage
        drawn["coverage"] = {
            "similarity": best.name, "order": [study.prowl.datasets[place] for place in best.order],
            "curve": np.round(best.coverage, 4).tolist(), "size": best.size,
            "random": np.round(np.quantile(random, [0.05, 0.5, 0.95], axis=0), 4).tolist() if random.size else [],
        }  # fmt: skip
    return drawn


def _likeness_order(r2: Floats) -> list[int]:
    """An order in which what is related stands side by side: the leaves of a tree of average distances 1 - R²."""
    if len(r2) < 3:
        return list(range(len(r2)))
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    distance = np.clip(1.0 - (r2 + r2.T) / 2, 0.0, 1.0)
    np.fill_diagonal(distance, 0.0)
    leaves: list[int] = leaves_list(
        linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    ).tolist()
    return leaves


def _is_enough(matrix: Mapping[str, Any]) -> bool:
    return len(matrix["systems"]) >= FEWEST_SYSTEMS and len(matrix["subsets"]) >= FEWEST_SUBSETS


def work() -> None:
    """The child process: a matrix on stdin, its analysis on stdout."""
    with contextlib.suppress(OSError, AttributeError):
        os.nice(19)
    sys.stdout.write(analysed(json.load(sys.stdin)).to_json())


class Background:
    """Keeps an analysis of every board that is not much older than its scores."""

    def __init__(self, store: Store, snapshots: Snapshots, *, every: float = 5.0, longest: float = 3600.0) -> None:
        self._store = store
        self._snapshots = snapshots
        self._every = every
        self._longest = longest
        self._results: dict[str, Analysis] = {}
        self._wanted: dict[str, str] = {}  # the digest of each board's matrix now
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._child: subprocess.Popen[str] | None = None
        self.version = 0  # grows with every change of what `latest` or `current` say

    def latest(self, board: str) -> Analysis | None:
        """The newest analysis there is."""
        return self._results.get(board)

    def current(self, board: str) -> bool:
        """Whether the newest analysis is of the scores as they are now; else one is being made."""
        result = self._results.get(board)
        return result is not None and self._wanted.get(board, result.digest) == result.digest

    @property
    def alive(self) -> bool:
        """Whether it goes on looking, or has not begun."""
        return self._thread is None or self._thread.is_alive()

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="analysis", daemon=True)
            self._thread.start()

    def kill(self) -> None:
        """End the process that makes an analysis, and begin no other."""
        self._stopping.set()
        child = self._child
        if child is not None:
            with contextlib.suppress(OSError):
                child.kill()

    def stop(self) -> None:
        self.kill()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        # The first look waits too: a server that has just started has readers to answer.
        while not self._stopping.wait(self._every):
            # Whatever happens here, the pages go on: they show the last result.
            with contextlib.suppress(Exception):
                self.step()

    def step(self) -> None:
        """Look once, and make what is missing."""
        for board in self._snapshots.boards():
            matrix = matrix_of(self._snapshots.current(board))
            digest = digest_of(matrix)
            if self._wanted.get(board) != digest:
                self._wanted[board] = digest
                self.version += 1
            if self.current(board) or self._is_stored(board, digest) or self._stopping.is_set():
                continue
            if not _is_enough(matrix):
                self._keep(analysed(matrix))
            elif self._claim(board, digest):
                result = self._in_process(matrix)
                self._store.set_meta(f"analysis:{board}", result.to_json())
                self._keep(result)

    def _is_stored(self, board: str, digest: str) -> bool:
        """Take over what this or another worker has stored; whether it is of the present matrix."""
        text = self._store.meta(f"analysis:{board}")
        if text is None:
            return False
        result = Analysis.from_json(text)
        self._keep(result)
        return result.digest == digest

    def _claim(self, board: str, digest: str) -> bool:
        """Whether this worker may make the analysis: nobody else is at it. Its claim is noted or renewed."""
        key, claimant = f"analysis-claim:{board}", f"{digest} {os.getpid()}"
        there = self._store.meta(key)
        if there:
            other, _, at = there.rpartition(" ")
            if other.startswith(digest) and other != claimant and time.time() - float(at) < _CLAIM_SECONDS:
                return False
        self._store.set_meta(key, f"{claimant} {time.time():.0f}")
        return True

    def _keep(self, result: Analysis) -> None:
        if self._results.get(result.board) != result:
            self._results[result.board] = result
            self.version += 1

    def _answer(self, child: subprocess.Popen[str], matrix: Mapping[str, Any]) -> str:
        """What the child prints; meanwhile the claim is renewed. TimeoutExpired after the longest time allowed."""
        ends = time.monotonic() + self._longest
        given: str | None = json.dumps(matrix)
        while True:
            try:
                return child.communicate(given, timeout=_RENEW_SECONDS)[0]
            except subprocess.TimeoutExpired:
                if time.monotonic() > ends or self._stopping.is_set():
                    raise
                given = None  # it was passed on by the first call
                self._claim(matrix["board"], digest_of(matrix))

    def _in_process(self, matrix: Mapping[str, Any]) -> Analysis:
        self._child = subprocess.Popen(
            [sys.executable, "-c", _CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            encoding="utf-8", env={**os.environ, **_QUIET, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
        try:
            return Analysis.from_json(self._answer(self._child, matrix))
        except (subprocess.TimeoutExpired, ValueError) as error:
            self._child.kill()
            self._child.wait()
            if self._stopping.is_set():
                raise
            why = "took too long" if isinstance(error, subprocess.TimeoutExpired) else "ended without a result"
            return Analysis.of(matrix, 0.0, error=f"The analysis {why}.")
        finally:
            self._child = None
