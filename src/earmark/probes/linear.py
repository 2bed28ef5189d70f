"""Linear probes as the HEAR benchmark has them: how much of the labels a linear classifier reads from frozen vectors.

    fold i: test ── fold i + 1: validation ── all others: training         or train, valid and test as they are given
    z-scores (mean and deviation of the training part) ── multinomial logistic regression, L2, C from 1e-4 to 1e4
    C with the most right answers on the validation part (the smallest of equal ones) ── its answers on the test part

The regression is solved to its optimum (`_logistic`), so a result does not depend on where a solver stopped. Clips with
several labels have one regression for each label, C is chosen by mean average precision, and so is the test scored.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.errors import InputError, UsageError
from earmark.evaluation.data import check_ids
from earmark.evaluation.options import whole
from earmark.probes._accuracy import Estimate, estimate, interval
from earmark.probes._fold_probe import Outcome, Probe
from earmark.probes._precision import average_precisions, without_each_clip, without_each_group
from earmark.probes._probed_rows import ProbedRows, are_several, check_rows
from earmark.probes.folds import Fold, default_kind, fold_remarks, make_folds, refuse_leaks, spell_folds
from earmark.progress import Progress, progress_bar
from earmark.scores import Row, Scores
from earmark.scores.spelling import refuse_reserved
from earmark.wording import counted
from earmark.workers import Workers, thread_count

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Codes = NDArray[np.int64]

STRENGTHS: tuple[float, ...] = tuple(10.0**power for power in range(-4, 5))
"""Values of C: the larger, the weaker the penalty."""


class FoldChoice(NamedTuple):
    """What happened in a fold: its C, its score on the validation part and on the test part."""

    fold: str
    C: float
    valid: float
    test: float
    train_clips: int
    valid_clips: int
    test_clips: int
    open: int
    seconds: float


class Study(NamedTuple):
    """Scores, the answer for each row (labels in order of probability where there are several), and each fold's C."""

    scores: Scores
    answers: list[str | None]
    fold_of: list[str | None]
    choices: tuple[FoldChoice, ...]


def linear(vectors: Any, labels: Any, **options: Any) -> Scores:
    """The test accuracy of a linear probe of `vectors` [N, D], or its mean average precision; returns Scores.

    Arguments are those of `study_linear`.

    >>> linear(X, classes, given=folds).value("accuracy")
    """
    return study_linear(vectors, labels, **options).scores


def study_linear(
    vectors: Any, labels: Any, *, given: Any = None, folds: int = 5, kind: str | None = None, groups: Any = None,
    strengths: Iterable[float] = STRENGTHS, tolerance: float | None = None, refit: bool = False,
    allow_leaks: bool = False, seed: int = 0,
    ids: Sequence[str] | None = None, threads: int | None = None, system: str = "", subset: str = "", suite: str = "",
    progress: Progress = False,
) -> Study:  # fmt: skip
    """`linear` with the answers for each row and the choices of each fold.

    Args:
        vectors: One row for each clip.
        labels: One for each row, or for each row a list of labels (an empty list: none of them applies). Rows whose
            label is missing are dropped and counted.
        given: The fold of each row, or train, valid and test.
        folds: How many folds are made where none are given; at least 3, since one is for validation.
        kind: stratified, grouped or group-stratified; None: whole groups where there are groups.
        groups: The speaker or recording of each row: kept whole in folds that are made, and the unit of intervals.
        strengths: Values of C to choose from; with a single one validation clips are not needed and are trained on.
        tolerance: Stop where no entry of the gradient of the mean loss is larger; 1e-4 is scikit-learn's default, with
            which weak penalties are far from solved. None: solve to the optimum.
        refit: Learn again from training and validation clips together once C is chosen.
        allow_leaks: Measure although groups are trained on and tested on; the rows say so.
        seed: Seed of folds that are made.
        ids: Names of the rows.
        threads: Folds at work at a time; None is one for each core.
        system: Name of the model, for the column `system`.
        subset: Name of the data, for the column `subset`.
        suite: Name of the suite, for the column `suite`.
        progress: Whether a bar on stderr shows how far the work is.
    """
    started = time.perf_counter()
    refuse_reserved(subset, "subset")
    grid = check_strengths(strengths)
    if tolerance is not None and not tolerance > 0:
        raise UsageError(f"tolerance must be a positive number such as 1e-4, not {tolerance!r}.")
    kind = kind or default_kind(groups=groups is not None, given=given is not None)
    if kind == "stratified" and are_several(labels):
        raise UsageError("Clips with several labels cannot be stratified: give folds, or groups to keep whole.")
    data = check_rows(vectors, labels, groups, given)
    check_ids(ids, data.rows)
    names = data.targets if data.several else data.names[data.targets]
    parts = make_folds(
        names, kind=kind, count=whole("folds", folds, 2), groups=data.groups, given=data.given,
        seed=whole("seed", seed, 0),
    )  # fmt: skip
    parts = with_validation(parts, len(grid))
    remarks = [refuse_leaks(parts, data.groups, allow_leaks)]
    if not data.several:
        remarks += fold_remarks(parts, names, data.groups)
    _refuse_single_classes(parts, data)
    probe = Probe(data, grid, tolerance, refit=refit)
    outcomes = _run(probe, parts, threads, progress)
    protocol = f"linear{' refit' if refit else ''} {spell_folds(kind, parts)}"
    known = f"{data.digest} {protocol} {grid} {tolerance} {seed} {__version__} {[fold.name for fold in parts]}"
    base = {
        "suite": suite, "subset": subset, "system": system, "protocol": protocol, "version": __version__,
        "seconds": time.perf_counter() - started, "inputs": hashlib.sha256(known.encode()).hexdigest(),
    }  # fmt: skip
    stopped = "" if tolerance is None else f"stopped at a gradient of {tolerance:g}, not at the optimum"
    notes = [*filter(None, [stopped]), *data.notes, *filter(None, remarks)]
    return (_table_of_labels if data.several else _table_of_classes)(data, parts, outcomes, base, notes, ids)


def check_strengths(strengths: Iterable[float]) -> tuple[float, ...]:
    """Values of C, ascending, each once."""
    try:
        values = sorted({float(value) for value in strengths})
    except (TypeError, ValueError):
        raise UsageError(f"C must be numbers such as 0.01 or 1, not {strengths!r}.") from None
    if not values or values[0] <= 0 or not np.isfinite(values).all():
        raise UsageError("C must be one positive number or several: the larger, the weaker the penalty.")
    return tuple(values)


def with_validation(folds: Sequence[Fold], strengths: int) -> tuple[Fold, ...]:
    """Folds in which each has the next one for validation, as HEAR has it; those with a validation part stay.

    Raises InputError where C is to be chosen and no fold can be spared.
    """
    if any(len(fold.valid) for fold in folds) or strengths == 1:
        return tuple(folds)
    if len(folds) == 1:
        raise InputError(
            "Train and test alone leave no clips to choose C on: name some rows valid, or give a single C."
        )
    if len(folds) == 2:
        raise InputError("2 folds leave no clips to learn from beside test and validation: give at least 3, or one C.")
    turned = []
    for place, fold in enumerate(folds):
        valid = folds[(place + 1) % len(folds)].test
        turned.append(Fold(fold.name, np.setdiff1d(fold.train, valid), valid, fold.test))
    return tuple(turned)


# --- the work -------------------------------------------------------------------------------------------------------


def _refuse_single_classes(folds: Sequence[Fold], data: ProbedRows) -> None:
    for fold in folds:
        for part, rows in (("train", fold.train), ("test", fold.test)):
            if not len(rows):
                raise InputError(f'Fold "{fold.name}" has no clips to {part}: give other folds.')
        if not data.several and len(learnt := np.unique(data.targets[fold.train])) < 2:
            raise InputError(
                f'Fold "{fold.name}" leaves one class to learn from ({data.names[learnt[0]]}): give other folds, or '
                "clips of each class in more of them."
            )


def _run(probe: Probe, folds: Sequence[Fold], threads: int | None, progress: Progress) -> list[Outcome]:
    """Every fold, several at a time."""
    cores = thread_count(threads)
    count = min(cores, len(folds))
    outcomes = []
    with (
        progress_bar(progress, len(folds), "linear probe", "fold") as tick,
        Workers(count, blas=max(1, cores // count)) as workers,
    ):
        for outcome in workers.map(probe.test, folds):
            outcomes.append(outcome)
            tick()
    return outcomes


# --- what comes out -------------------------------------------------------------------------------------------------


def _table_of_classes(
    data: ProbedRows, folds: Sequence[Fold], outcomes: Sequence[Outcome], base: dict[str, Any], notes: list[str],
    ids: Sequence[str] | None,
) -> Study:  # fmt: skip
    right = np.zeros(len(data.kept))
    answers: list[str | None] = [None] * data.rows
    for fold, outcome in zip(folds, outcomes, strict=True):
        right[fold.test] = outcome.answers == data.targets[fold.test]
        for row, code in zip(data.kept[fold.test].tolist(), outcome.answers.tolist(), strict=True):
            answers[row] = str(data.names[code])
    found = estimate(right, folds, data.groups)
    tested = np.concatenate([fold.test for fold in folds])
    chance = float(np.bincount(data.targets[tested]).max() / len(tested))
    return _study("accuracy", found, right, chance, answers, data, folds, outcomes, base, notes, ids)


def _table_of_labels(
    data: ProbedRows, folds: Sequence[Fold], outcomes: Sequence[Outcome], base: dict[str, Any], notes: list[str],
    ids: Sequence[str] | None,
) -> Study:  # fmt: skip
    by_clip = np.full(len(data.kept), np.nan)
    answers: list[str | None] = [None] * data.rows
    values, chances, absent = [], [], 0
    for fold, outcome in zip(folds, outcomes, strict=True):
        wanted = data.targets[fold.test]
        precisions = average_precisions(outcome.answers, wanted)
        if np.isnan(precisions).all():
            raise InputError(f'Fold "{fold.name}" tests no clip with a label: give other folds.')
        absent += int(np.isnan(precisions).sum())
        values.append(float(np.nanmean(precisions)))
        chances.append(float(wanted.mean(axis=0)[np.isfinite(precisions)].mean()))
        by_clip[fold.test] = _precisions_of_clips(outcome.answers, wanted)
        for row, logits in zip(data.kept[fold.test].tolist(), outcome.answers, strict=True):
            answers[row] = ";".join(data.names[logits > 0].tolist())
    if absent:
        notes = [
            *notes,
            f"{counted(absent, 'label')} without a clip in the test part left out of the means over labels",
        ]
    if lost := sum(outcome.unlearnt for outcome in outcomes):
        notes = [*notes, f"{counted(lost, 'label')} on all training clips of a fold, or on none, cannot be learnt"]
    found = _precision_interval(values, data, folds, outcomes)
    chance = float(np.mean(chances))
    return _study("mean_average_precision", found, by_clip, chance, answers, data, folds, outcomes, base, notes, ids)


def _precisions_of_clips(logits: Floats, wanted: Bools) -> Floats:
    """How well the labels of each clip stand before the others: their average precision within the clip."""
    return average_precisions(logits.T, wanted.T)


def _precision_interval(
    values: Sequence[float], data: ProbedRows, folds: Sequence[Fold], outcomes: Sequence[Outcome]
) -> Estimate:
    value, tested = float(np.mean(values)), sum(len(fold.test) for fold in folds)
    parts = [(outcome.answers, data.targets[fold.test]) for fold, outcome in zip(folds, outcomes, strict=True)]
    if data.groups is None:
        unit = "clip"
        changes = [without_each_clip(*part) - own for part, own in zip(parts, values, strict=True)]
        without = value + np.concatenate(changes) / len(folds)
    else:
        unit = "group"
        names = data.groups[np.concatenate([fold.test for fold in folds])]
        units, codes = np.unique(names, return_inverse=True)
        ends = np.cumsum([len(fold.test) for fold in folds])[:-1]
        by_fold = [
            without_each_group(*part, own, len(units)) for part, own in zip(parts, np.split(codes, ends), strict=True)
        ]
        without = np.mean(by_fold, axis=0)
    outcome = interval(value, without, folds, unit=unit)
    return Estimate(value, tuple(values), tested, unit, len(without), outcome.low, outcome.high, outcome.reason)


def _study(
    metric: str, found: Estimate, by_clip: Floats, chance: float, answers: list[str | None], data: ProbedRows,
    folds: Sequence[Fold], outcomes: Sequence[Outcome], base: dict[str, Any], notes: Sequence[str],
    ids: Sequence[str] | None,
) -> Study:  # fmt: skip
    choices = tuple(
        FoldChoice(fold.name, outcome.choice.C, outcome.choice.score, value, len(fold.train), len(fold.valid),
                   len(fold.test), outcome.choice.open, outcome.seconds)
        for fold, outcome, value in zip(folds, outcomes, found.by_fold, strict=True)
    )  # fmt: skip
    chosen = "C " + ", ".join(f"{choice.C:g}" for choice in choices)
    unsettled = sum(choice.open for choice in choices)
    border = f"{counted(unsettled, 'answer')} on the border of two classes" if unsettled else ""
    reason = "; ".join(filter(None, [found.remark, chosen, border, *notes]))
    row = Row(metric=metric, baseline=chance, lift=found.value - chance, reason=reason, **found.cells, **base)
    points = np.full(data.rows, np.nan)
    fold_of: list[str | None] = [None] * data.rows
    for fold in folds:
        points[data.kept[fold.test]] = by_clip[fold.test]
        for place in data.kept[fold.test].tolist():
            fold_of[place] = fold.name
    per_point = {("", "none", base["protocol"], metric): points}
    scores = Scores((row,), per_point=per_point, point_ids=None if ids is None else tuple(ids))
    return Study(scores, answers, fold_of, choices)
