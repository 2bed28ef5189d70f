"""The sanity bench: a stage that draws pairs and has every metric score them, into a journal that survives a kill.

Work is cut into tasks, one for a pair and a group of columns that share their neighbour searches, each in a process
with one thread. A task's numbers depend on nothing but the task.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earmark._version import __version__
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.generated.metrics import NETWORK
from earmark.generated.sanity import rules
from earmark.generated.sanity._data import CHECKS, DEFAULT_N, Grid
from earmark.generated.sanity._scoring import Task, batches, score_all, travelling
from earmark.generated.sanity._spread import score_on_cluster, share_of, take_shares
from earmark.generated.sanity.columns import Column, choose
from earmark.generated.sanity.rules import Edition, Kind
from earmark.generated.sanity.table import Sanity, judged
from earmark.progress import progress_bar
from earmark.runs.engine import reason_of, work_through
from earmark.runs.folder import make_folder
from earmark.runs.journal import Journal, TrialScore
from earmark.runs.pool import ITEM_SECONDS, Died, make_pool
from earmark.runs.shards import ShardRecord, Share, parse_share, shard_folder, write_shard

REPEATS = 10
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
    scheduler: str = "",
    shard: str | Share | None = None,
    merge: bool = False,
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
        scheduler: A Dask scheduler whose workers score, such as tcp://host:8786; they must see the folder `into`.
        shard: Score a share alone, such as "3/40", into a journal of its own under `into`.
        merge: Take the scores of shares first, and score what is missing.

    Returns:
        A verdict for each metric and check, beside the published ones.

    >>> earmark.sanity(["density", "clipped_density"], repeats=2, n=200)
    """
    grid = grid or ("thin" if edition == "amended" else "full")
    columns = choose(metrics, correct, own_kind=own_kind)
    least = max(SMALLEST_N[column.correction] for column in columns)
    setup = _checked(Setup(_known_checks(checks), edition, grid, repeats, n, seed, device), least, jobs, minutes)
    if jobs > 1 and any(column.function for column in columns):
        raise UsageError("A function given as an object runs with jobs=1: give its import path to use more processes.")
    if into is None and (shard is not None or merge):
        raise UsageError("Shares meet in a folder: give --into, a folder or URL that all of them see.")
    settings = {"n": n, "seed": seed, "version": __version__}
    if into is not None and shard is not None:
        return _share(setup, columns, parse_share(str(shard)), into, settings, jobs, minutes, progress)
    with Journal(into, settings) as journal:
        if into is not None and merge:
            take_shares(journal, into)
        if scheduler:
            score_on_cluster(unfinished(tasks(setup, columns), journal), journal, scheduler, into, progress)
        run(setup, columns, journal, jobs=jobs, minutes=minutes, progress=progress)
        return judged(columns, setup.checks, journal.scores, edition=edition, grid=grid, repeats=repeats)


def _share(
    setup: Setup, columns: Sequence[Column], share: Share, into: str | Path, settings: Mapping[str, Any], jobs: int,
    minutes: float | None, progress: bool,
) -> Sanity:  # fmt: skip
    """The scores of a share; cells that have none yet are judged when shares are merged."""
    folder = make_folder(into)
    record = ShardRecord(share.number, share.of)
    write_shard(folder, record)
    try:
        with Journal(shard_folder(folder, share), settings) as journal:
            run(setup, columns, journal, jobs=jobs, minutes=minutes, progress=progress, share=share)
            record.status = "finished"
            return judged(
                columns, setup.checks, journal.scores, edition=setup.edition, grid=setup.grid, repeats=setup.repeats
            )
    except BaseException as error:
        record.status = reason_of(error)
        raise
    finally:
        write_shard(folder, record)


def run(
    setup: Setup, columns: Sequence[Column], journal: Journal, *, jobs: int = 1, minutes: float | None = None,
    progress: bool = False, share: Share | None = None,
) -> None:  # fmt: skip
    """Score what the journal does not have yet, cheapest and most telling first, until all is done or time is up."""
    everything = tasks(setup, columns)
    waiting = unfinished(everything if share is None else share_of(everything, share), journal)
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
