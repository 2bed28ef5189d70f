"""The sanity bench: a stage that draws pairs and has every metric score them, into a journal that survives a kill.

Work is cut into tasks, one for a pair and a group of columns that share their neighbour searches, each in a process
with one thread. A task's numbers depend on nothing but the task.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from earmark._version import __version__
from earmark.errors import EarmarkError, InputError, UsageError, did_you_mean
from earmark.generated.balls import Reference
from earmark.generated.measure import measure
from earmark.generated.metrics import NETWORK
from earmark.generated.sanity import rules
from earmark.generated.sanity._data import CHECKS, DEFAULT_N, Floats, Grid, Pair, draw_pair, value_text
from earmark.generated.sanity.columns import Column, choose, neighbours_of, own_values
from earmark.generated.sanity.rules import Edition, Kind
from earmark.generated.sanity.table import Sanity, judged
from earmark.progress import progress_bar
from earmark.registry import load_path
from earmark.runs.engine import work_through
from earmark.runs.journal import Journal, Trial, TrialScore
from earmark.runs.pool import ITEM_SECONDS, Died, make_pool

REPEATS = 10
BATCH = 8
SMALLEST_N = {"none": 20, "gicdm": 101}  # GICDM at k = 5 looks at a point and its 100 neighbours


@dataclass(frozen=True)
class Setup:
    """Which pairs are drawn."""

    checks: tuple[str, ...]
    edition: Edition = "amended"
    grid: Grid = "full"
    repeats: int = REPEATS
    n: int = DEFAULT_N
    seed: int = 0
    device: str = "cpu"


class Task(NamedTuple):
    """One pair, and the columns to score on it."""

    check: str
    subcase: str
    value: float
    repeat: int
    columns: tuple[Column, ...]
    n: int
    seed: int
    device: str = "cpu"

    def trial(self, column: Column) -> Trial:
        return Trial(column.key, self.check, self.subcase, value_text(self.value), self.repeat)

    @property
    def size(self) -> float:
        """How many points the check puts beyond n, for the order of work."""
        return self.value if CHECKS[self.check].sized else 0.0


def sanity(
    metrics: Sequence[str | Any] | None = None,
    *,
    checks: Sequence[str] | None = None,
    correct: Sequence[str] = ("none", "gicdm"),
    repeats: int = REPEATS,
    n: int = DEFAULT_N,
    grid: Grid | None = None,
    edition: Edition = "amended",
    own_kind: Kind = "fidelity",
    seed: int = 0,
    into: str | Path | None = None,
    jobs: int = 1,
    device: str = "cpu",
    minutes: float | None = None,
    progress: bool = False,
) -> Sanity:
    """Put fidelity and coverage metrics to the sanity checks; a table of T, F, L and H beside the published one.

    Args:
        metrics: Names, import paths of your own (`mymodule:my_metric`) or functions (real, generated) -> a number or
            (fidelity, coverage); None is every published column.
        checks: Names of checks; None is all.
        correct: "none", "gicdm" or both, for metrics that have both.
        repeats: Draws of everything; the mean over them is what is judged.
        n: Points in each set, where the check does not vary it.
        grid: Values of the varied parameter: "thin" (11 and 10, as the GICDM paper has fewer) or "full" (51 and 20);
            None is the one that belongs to the edition.
        edition: The criteria and grids of the first benchmark ("original"), or as the GICDM paper amended them.
        own_kind: What a metric of your own measures when it returns one number: "fidelity" or "coverage".
        seed: Seed of all draws.
        into: A folder that keeps every score: a run that was killed, or stopped by `minutes`, continues there.
        jobs: Processes at work.
        device: Where large searches run: cpu, cuda or auto.
        minutes: Begin nothing new after so many minutes.
        progress: Whether a bar on stderr shows how far the work is.
    """
    grid = grid or ("thin" if edition == "amended" else "full")
    columns = choose(metrics, correct, own_kind=own_kind)
    least = max(SMALLEST_N[column.correction] for column in columns)
    setup = _checked(Setup(_known_checks(checks), edition, grid, repeats, n, seed, device), least, jobs, minutes)
    if jobs > 1 and any(column.function for column in columns):
        raise UsageError("A function given as an object runs with jobs=1: give its import path to use more processes.")
    with Journal(into, {"n": n, "seed": seed, "version": __version__}) as journal:
        run(setup, columns, journal, jobs=jobs, minutes=minutes, progress=progress)
        return judged(columns, setup.checks, journal.scores, edition=edition, grid=grid, repeats=repeats)


def run(
    setup: Setup, columns: Sequence[Column], journal: Journal, *, jobs: int = 1, minutes: float | None = None,
    progress: bool = False,
) -> None:  # fmt: skip
    """Score what the journal does not have yet, cheapest and most telling first, until all is done or time is up."""
    waiting = unfinished(tasks(setup, columns), journal)
    deadline = None if minutes is None else time.monotonic() + 60.0 * minutes
    cut = batches(waiting)
    processes = min(jobs, len(cut)) if jobs > 1 and len(cut) > 1 else 0

    def begun() -> Iterator[list[Task]]:
        for batch in cut if processes else ([task] for task in waiting):
            if deadline is not None and time.monotonic() > deadline:
                return
            yield [travelling(task) for task in batch] if processes else batch

    def keep(task: Task, scores: list[TrialScore] | Exception) -> None:
        if isinstance(scores, Died):
            raise InputError(
                "A worker process of the sanity run died, most likely for want of memory: give fewer jobs; with a "
                "folder the run continues where it stopped."
            )
        if isinstance(scores, Exception):
            scores = [TrialScore(task.trial(column), float("nan"), str(scores)) for column in task.columns]
        journal.add(scores)

    pool = make_pool(score_all, processes, limit=6 * ITEM_SECONDS, fatal=(Exception,))
    with progress_bar(progress, len(waiting), "sanity", "pair") as tick, pool:
        work_through(begun(), pool.map, keep=keep, tick=tick)


def tasks(setup: Setup, columns: Sequence[Column]) -> list[Task]:
    """All work, in order: without correction, then with it, then what trains a network; repeat by repeat, small first.

    A run that is stopped has whole repeats of everything cheap, which is worth more than all repeats of a few checks.
    """
    groups: dict[tuple[int, str], list[Column]] = {}
    for column in columns:
        groups.setdefault(_group(column), []).append(column)
    found = []
    for _, group in sorted(groups.items()):
        part = [
            Task(name, subcase, float(value), repeat, tuple(group), setup.n, setup.seed, setup.device)
            for repeat in range(setup.repeats)
            for name in setup.checks
            for subcase in rules.subcases(name, setup.edition)
            for value in CHECKS[name].grid(CHECKS[name].subcase(subcase), setup.grid)
        ]
        found += sorted(part, key=lambda task: (task.repeat, task.size))
    return found


def _group(column: Column) -> tuple[int, str]:
    """Columns that are scored together: they share neighbour searches, a network, or a user's function."""
    if column.own:
        return 0, column.key.removesuffix(".fidelity").removesuffix(".coverage")
    if column.metric in NETWORK:
        return 3, ""
    return (1, "") if column.correction == "none" else (2, "")


def unfinished(all_tasks: Sequence[Task], journal: Journal) -> list[Task]:
    left = [
        task._replace(columns=tuple(column for column in task.columns if task.trial(column) not in journal.scores))
        for task in all_tasks
    ]
    return [task for task in left if task.columns]


def batches(waiting: Sequence[Task]) -> list[list[Task]]:
    """Neighbouring tasks that share a real set, a few at a time: its own neighbourhoods are found once for all."""
    found: list[list[Task]] = []
    for task in waiting:
        last = found[-1] if found else []
        if last and len(last) < BATCH and CHECKS[task.check].fixed and not task.size and _shared(task, last[0]):
            last.append(task)
        else:
            found.append([task])
    return found


def _shared(task: Task, other: Task) -> bool:
    return task[:2] == other[:2] and (task.repeat, task.columns) == (other.repeat, other.columns)


# --- one task ---------------------------------------------------------------------------------------------


def score(task: Task) -> list[TrialScore]:
    """The scores of one task; where a metric has none, NaN and the reason."""
    check = CHECKS[task.check]
    subcase = check.subcase(task.subcase)
    pair = draw_pair(check, subcase, task.value, task.repeat, n=task.n, seed=task.seed)
    own = [column for column in task.columns if column.own]
    found = _score_own(own, pair) if own else {}
    built_in = [column for column in task.columns if not column.own]
    if built_in:
        name = (task.check, task.subcase, task.repeat, task.n, task.seed) if check.fixed else None
        found |= _score_built_in(built_in, _reference(pair.real, name), pair.generated, task.device)
    return [TrialScore(task.trial(column), *found[column.key]) for column in task.columns]


def score_all(tasks: Sequence[Task]) -> list[list[TrialScore]]:
    return [score(task) for task in tasks]


def travelling(task: Task) -> Task:
    """The task as it can travel to another process: columns there load their function by its path."""
    return task._replace(columns=tuple(replace(column, function=None) for column in task.columns))


_known: dict[Any, Reference] = {}  # the real set this process saw last, with what is known of its neighbourhoods


def _reference(real: Floats, name: tuple[Any, ...] | None) -> Reference:
    """The real set, the same object as before when it is the same set: no number depends on it, only the time."""
    if name is None or name not in _known:
        _known.clear()
        _known[name] = Reference(real)
    return _known[name]


def _score_own(columns: Sequence[Column], pair: Pair) -> dict[str, tuple[float, str]]:
    """A user's metric gets copies: it may write into them."""
    first = columns[0]
    function: Any = first.function or load_path(first.path, "metric")
    values = own_values(first.path or first.metric, function, pair.real.copy(), pair.generated.copy())
    found = {}
    for column in columns:
        if column.part >= len(values):
            raise InputError(f"The metric {first.path!r} returned a pair at first and one number later: return either.")
        value = values[column.part]
        found[column.key] = (value, "") if abs(value) < float("inf") else (float("nan"), f"the metric returned {value}")
    return found


def _score_built_in(
    columns: Sequence[Column], real: Reference, generated: Floats, device: str
) -> dict[str, tuple[float, str]]:
    """All columns from shared searches; one by one where the pair is beyond one of them."""
    try:
        values = _measured(columns, real, generated, device)
    except EarmarkError as error:
        if len(columns) == 1:
            return {columns[0].key: (float("nan"), str(error))}
        found: dict[str, tuple[float, str]] = {}
        for column in columns:
            found |= _score_built_in([column], real, generated, device)
        return found
    return {
        column.key: (value, "" if value == value else "not defined for this pair")
        for column, value in zip(columns, values, strict=True)
    }


def _measured(columns: Sequence[Column], real: Reference, generated: Floats, device: str = "cpu") -> list[float]:
    names = [column.metric for column in columns]
    balls = [column for column in columns if column.metric not in NETWORK]
    values = measure(
        real,
        generated,
        metrics=names,
        k={column.family: neighbours_of(column.metric, len(real.vectors)) for column in balls},
        gicdm=columns[0].correction == "gicdm",
        # The smallest sets of the size grids have fewer points than the wide scale has neighbours.
        shrink=True,
        device=device,
    )
    return [float(values[name]) for name in names]


# --- what was asked for -----------------------------------------------------------------------------------


def _known_checks(checks: Sequence[str] | None) -> tuple[str, ...]:
    if checks is None:
        return tuple(CHECKS)
    for name in checks:
        if name not in CHECKS:
            raise UsageError(f"There is no check {name!r}.{did_you_mean(name, CHECKS)} Known: {', '.join(CHECKS)}.")
    if not checks:
        raise UsageError("No check is left to run: name at least one.")
    return tuple(name for name in CHECKS if name in checks)


def _checked(setup: Setup, least_n: int, jobs: int, minutes: float | None) -> Setup:
    if setup.grid not in ("full", "thin"):
        raise UsageError(f"grid is full or thin, not {setup.grid!r}.")
    if setup.edition not in ("amended", "original"):
        raise UsageError(f"edition is amended or original, not {setup.edition!r}.")
    for name, value, least in (("repeats", setup.repeats, 1), ("n", setup.n, least_n), ("jobs", jobs, 1)):
        if value < least:
            raise UsageError(f"{name} must be at least {least}, not {value}.")
    if minutes is not None and minutes <= 0:
        raise UsageError(f"minutes must be above 0, not {minutes}.")
    return setup
