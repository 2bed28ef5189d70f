"""Do the intervals cover, do the tests keep their level, and what do they find? Answered by simulation.

Every repeat draws a data set of a design with two systems that are equal in distribution, a third one that is worse,
and a set whose labels mean nothing:

    coverage        share of 95 % intervals that hold the metric's expectation over data sets of the design
    equal_rejected  share of repeats in which two equal systems are told apart at 0.05
    found           share of repeats in which the worse system is told from the better one at 0.05 (power)
    null_rejected   share of repeats in which meaningless labels get a permutation p-value of 0.05 or less

The former_ columns are the same for version 0.1.0: a bootstrap of the queries, and swaps query by query.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.calibrate.jackknife import standard_error
from earmark.errors import UsageError
from earmark.evaluation import evaluate
from earmark.evaluation.comparison import differences
from earmark.metrics.catalogue import STANDARD as STANDARD_METRICS
from earmark.progress import progress_bar
from earmark.runs.engine import work_through
from earmark.runs.journal import Journal, Trial, TrialScore
from earmark.runs.pool import make_pool
from earmark.scores import Row, Scores
from earmark.simulation._designs import DESIGNS, Sample, design_named, draw
from earmark.simulation._former import swap_p_value
from earmark.tables import csv_text

Floats = NDArray[np.float64]

METRICS = STANDARD_METRICS
STANDARD = ("clips", "15-groups", "6-groups", "labels-with-groups")
WORSE = 0.8  # the separation of the worse system, as a share of the better one's
FORMER_RESAMPLES = 100
FORMER_SWAPS = 199
ENOUGH_REPEATS = 100
COVERAGE, REJECTED, ENOUGH_UNITS = 0.92, 0.06, 15  # what is promised, from this many units on


class Task(NamedTuple):
    """One repeat of one design, and what is to be drawn of it."""

    design: str
    repeat: int
    metrics: tuple[str, ...]
    permutations: int
    former: bool
    seed: int


@dataclass(frozen=True)
class Line:
    """What the repeats of one design, protocol and metric came to; None where nothing was measured."""

    design: str
    protocol: str
    metric: str
    units: int
    repeats: int
    expectation: float | None
    coverage: float | None
    width: float | None
    error_ratio: float | None
    no_interval: float
    equal_rejected: float | None
    found: float | None
    null_rejected: float | None
    null_uniform: float | None
    former_coverage: float | None
    former_equal_rejected: float | None
    former_found: float | None

    @property
    def holds(self) -> bool | None:
        """Whether coverage and level are as promised, within the error of the simulation.

        None below 15 units, and with fewer than ENOUGH_REPEATS data sets: too few to say.
        """
        if self.coverage is None or self.repeats < ENOUGH_REPEATS:
            return None
        fine = _at_least(self.coverage, COVERAGE, self.repeats)
        for share in (self.equal_rejected, self.null_rejected):
            fine = fine and (share is None or _at_least(1.0 - share, 1.0 - REJECTED, self.repeats))
        return fine if self.units >= ENOUGH_UNITS or not fine else None


def study(
    designs: Sequence[str] = STANDARD,
    *,
    metrics: Sequence[str] = METRICS,
    repeats: int = 200,
    permutations: int = 99,
    former: bool = True,
    seed: int = 0,
    into: str | Path | None = None,
    jobs: int = 1,
    progress: bool = False,
) -> list[Line]:
    """Simulate; with a folder `into`, every repeat is kept there and a killed study continues."""
    if repeats < 2:
        raise UsageError(f"repeats must be at least 2, not {repeats}.")
    chosen = [design_named(name) for name in designs]
    settings = {"study": "calibrate", "seed": seed, "permutations": permutations, "version": __version__}
    with Journal(into, settings) as journal:
        done = {(trial.check, trial.repeat) for trial in journal.scores if trial.value == "finished"}
        tasks = [
            Task(design.name, repeat, tuple(metrics), permutations, former, seed)
            for repeat in range(repeats)
            for design in chosen
            if (design.name, repeat) not in done
        ]

        def keep(task: Task, scores: list[TrialScore] | Exception) -> None:
            if isinstance(scores, Exception):
                raise scores
            journal.add([*scores, TrialScore(Trial("", task.design, "", "finished", task.repeat), 1.0)])

        processes = jobs if jobs > 1 and len(tasks) >= 4 else 0
        pool = make_pool(simulate_all, processes, fatal=(Exception,))
        with progress_bar(progress, len(tasks), "simulate", "set") as tick, pool:
            work_through(([task] for task in tasks), pool.map, keep=keep, tick=tick)
        return list(_lines(journal, [design.name for design in chosen], metrics, repeats))


def to_csv(lines: Iterable[Line]) -> str:
    """The lines as CSV, numbers with every digit."""
    return csv_text([field.name for field in fields(Line)], map(asdict, lines))


def simulate_all(tasks: Sequence[Task]) -> list[list[TrialScore]]:
    return [simulate(task) for task in tasks]


def simulate(task: Task) -> list[TrialScore]:
    """Everything that one repeat of a design says."""
    design = DESIGNS[task.design]
    equal = draw(design, task.seed, task.repeat)
    worse = draw(design, task.seed, task.repeat, separation_b=WORSE * design.separation)
    a, b, c = (_evaluate(equal, vectors, task) for vectors in (equal.a, equal.b, worse.b))
    found: list[TrialScore] = []

    def keep(row: Row, quantity: str, value: float | None) -> None:
        trial = Trial(row.metric.removesuffix(":difference"), task.design, row.protocol, quantity, task.repeat)
        found.append(TrialScore(trial, math.nan if value is None else float(value)))

    for row in a.rows:
        for quantity in ("value", "low", "high", "units"):
            keep(row, quantity, getattr(row, quantity))
        key = (row.distance, row.correction, row.protocol, row.metric)
        keep(row, "error", _error(a.per_unit.get(key)))
        if task.former and key in a.per_point:
            groups = equal.groups
            for quantity, other in (("former_equal", b), ("former_worse", c)):
                p_value = swap_p_value(a.per_point[key], other.per_point[key], groups, FORMER_SWAPS, task.seed)
                keep(row, quantity, p_value)
    for quantity, other in (("equal", b), ("worse", c)):
        for row in differences(a, other):
            keep(row, quantity, row.p_value)
    if task.former:
        for row in _evaluate(equal, equal.a, task, bootstrap=FORMER_RESAMPLES).rows:
            keep(row, "former_low", row.low)
            keep(row, "former_high", row.high)
    if task.permutations:
        meaningless = draw(design, task.seed, task.repeat, null=True)
        for row in _evaluate(meaningless, meaningless.a, task, permutations=task.permutations).rows:
            keep(row, "null", row.p_value)
    return found


def _evaluate(sample: Sample, vectors: Floats, task: Task, *, bootstrap: int = 0, permutations: int = 0) -> Scores:
    plain = not bootstrap and not permutations
    return evaluate(
        vectors, sample.labels, metrics=task.metrics, groups=sample.groups, across_groups=sample.groups is not None,
        intervals="jackknife" if plain else "bootstrap" if bootstrap else "none", bootstrap=bootstrap,
        permutations=permutations, per_unit=plain, per_point=plain and task.former, threads=1, seed=task.repeat,
    )  # fmt: skip


def _error(without: Floats | None) -> float | None:
    return None if without is None or not np.isfinite(without).all() else standard_error(without)


def _lines(journal: Journal, designs: Sequence[str], metrics: Sequence[str], repeats: int) -> Iterator[Line]:
    table: dict[tuple[str, str, str, str], Floats] = {}
    for trial, score in journal.scores.items():
        if trial.repeat < repeats:
            key = (trial.check, trial.subcase, trial.metric, trial.value)
            table.setdefault(key, np.full(repeats, np.nan))[trial.repeat] = score.score
    for design in designs:
        for protocol in ("all", "across_groups"):
            for metric in metrics:
                if (design, protocol, metric, "value") in table:
                    yield _line(design, protocol, metric, repeats, table)


def _line(
    design: str, protocol: str, metric: str, repeats: int, table: dict[tuple[str, str, str, str], Floats]
) -> Line:
    def column(quantity: str) -> Floats:
        return table.get((design, protocol, metric, quantity), np.full(repeats, np.nan))

    values, errors = column("value"), column("error")
    expectation = _mean(values)
    truth = math.nan if expectation is None else expectation
    spread = float(np.nanstd(values)) if np.isfinite(values).any() else 0.0
    null = column("null")
    ratio = float(np.sqrt(np.nanmean(errors**2)) / spread) if spread > 0 and np.isfinite(errors).any() else None
    return Line(
        design=design, protocol=protocol, metric=metric, units=DESIGNS[design].units, repeats=repeats,
        expectation=expectation, coverage=_covered(column("low"), column("high"), truth),
        width=_mean(column("high") - column("low")),
        error_ratio=ratio,
        no_interval=float(np.isnan(column("low")).mean()), equal_rejected=_below(column("equal")),
        found=_below(column("worse")), null_rejected=_below(null, inclusive=True), null_uniform=_uniform(null),
        former_coverage=_covered(column("former_low"), column("former_high"), truth),
        former_equal_rejected=_below(column("former_equal")), former_found=_below(column("former_worse")),
    )  # fmt: skip


def _mean(values: Floats) -> float | None:
    return float(np.nanmean(values)) if np.isfinite(values).any() else None


def _covered(low: Floats, high: Floats, truth: float) -> float | None:
    measured = np.isfinite(low) & np.isfinite(high)
    # The expectation is itself a mean over the repeats: its last digits may not decide.
    inside = (low[measured] <= truth + 1e-9) & (truth - 1e-9 <= high[measured])
    return float(inside.mean()) if measured.any() else None


def _below(p_values: Floats, *, inclusive: bool = False) -> float | None:
    known = p_values[np.isfinite(p_values)]
    if not len(known):
        return None
    return float((known <= 0.05 + 1e-12 if inclusive else known < 0.05).mean())


def _uniform(p_values: Floats) -> float | None:
    """p-value of a Kolmogorov-Smirnov test that permutation p-values are no smaller than uniform ones."""
    from scipy.stats import kstest

    known = p_values[np.isfinite(p_values)]
    return float(kstest(known, "uniform", alternative="greater").pvalue) if len(known) > 10 else None


def _at_least(share: float, promised: float, repeats: int) -> bool:
    """Whether a simulated share is no surer below the promise than two standard errors of the simulation."""
    return share >= promised - 2.0 * math.sqrt(promised * (1.0 - promised) / repeats)
