"""Do vectors tell classes apart? Classifiers of the VocSim papers, on folds that keep groups whole.

    rows ── folds (groups whole) ──┬── every setting: learn, answer ────────────────┬── accuracy, top-5, intervals
                                   └── `best`: settings tried inside the training ──┘
                                       part of each fold, on folds of its own

Every setting has rows of its own, as papers print them. The best of them is chosen by its test clips, though, and too
good; the rows `knn:best` hold what a setting reaches that was chosen without them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.errors import InputError, UsageError
from earmark.evaluation.options import GIVEN, whole
from earmark.probes._accuracy import estimate
from earmark.probes._classifiers import (
    TOP,
    Elsewhere,
    Fit,
    Setting,
    fit,
    fit_quietly,
    parse_classifiers,
    quiet,
    seconds_of,
)
from earmark.probes._probed_rows import ProbedRows, are_several, check_names, check_rows
from earmark.probes.folds import (
    WHOLE_GROUPS,
    Fold,
    copy_remark,
    default_kind,
    fold_remarks,
    make_folds,
    refuse_leaks,
    spell_folds,
)
from earmark.progress import progress_bar
from earmark.scores import Row, Scores
from earmark.scores.spelling import refuse_reserved
from earmark.vectors import Distances
from earmark.wording import counted, first_of
from earmark.workers import Workers, thread_count

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

PROCESSES_FROM = 5.0
"""Seconds of work from which processes, which take a second to start, are faster than threads."""


def classify(vectors: Any, labels: Any, **options: Any) -> Scores:
    """Accuracies of classifiers that learn `labels` from `vectors` [N, D], on folds; returns Scores.

    Arguments are those of `study_classes`.

    >>> classify(X, strains, groups=mice, classifiers="knn,forest").value("accuracy", protocol="knn:best grouped:5")
    """
    return study_classes(vectors, labels, **options).scores


class Study(NamedTuple):
    """Scores, and by protocol the class that each row was taken for: None where it was not tested."""

    scores: Scores
    answers: dict[str, list[str | None]]
    fold_of: list[str | None]

    def confusions(self, labels: Sequence[str | None]) -> Iterator[tuple[str, str, str, int]]:
        """(protocol, label, answer, clips), most frequent first within a protocol."""
        for protocol, answers in self.answers.items():
            pairs = Counter(pair for pair in zip(labels, answers, strict=True) if None not in pair)
            for (label, answer), count in sorted(pairs.items(), key=lambda item: (-item[1], str(item[0]))):
                yield protocol, str(label), str(answer), count


def study_classes(
    vectors: Any, labels: Any, *, classifiers: str | Iterable[str] = (), preset: str | None = None, groups: Any = None,
    kind: str | None = None, folds: int = 5, given: Any = None, select: bool = True, allow_leaks: bool = False,
    min_class_size: int = 2, seed: int = 0, ids: Sequence[str] | None = None, threads: int | None = None,
    distance_name: str = GIVEN, system: str = "", subset: str = "", suite: str = "", progress: bool = False,
) -> Study:  # fmt: skip
    """`classify` with the answers for each row.

    Args:
        vectors: One row for each clip; or `Distances` that were computed elsewhere, from which knn alone can learn.
        labels: One for each row; rows without one are dropped and counted.
        classifiers: knn, forest, mlp, each with its grid; or settings: `knn:k=5`, `mlp:hidden=400,alpha=0.01`.
        preset: `strain` or `identity`: the grids, and the classifiers where none are named, of that task of the papers.
        groups: The mouse, speaker or recording of each row: kept whole, and the unit of intervals.
        kind: stratified, grouped, group-stratified or given; None: given folds, whole groups or neither, as there are.
        folds: How many folds.
        given: The fold of each row, or train, valid and test.
        select: Whether a family of several settings also has rows whose setting is chosen without the test clips.
        allow_leaks: Measure although groups are trained on and tested on; the rows say so.
        min_class_size: Classes with fewer clips (groups, where these are kept whole) are dropped and counted.
        seed: Seed of folds and classifiers.
        ids: Names of the rows.
        threads: Processes or threads at work; None is one for each core. No result depends on it.
        distance_name: What distances that were computed elsewhere are called, for the column `distance`.
        system: Name of the model, for the column `system`.
        subset: Name of the data, for the column `subset`.
        suite: Name of the suite, for the column `suite`.
        progress: Whether a bar on stderr shows how far the work is.
    """
    refuse_reserved(subset, "subset")
    elsewhere = vectors if isinstance(vectors, Distances) else None
    families = parse_classifiers(classifiers or ("knn" if elsewhere is not None else ()), preset)
    if elsewhere is not None and set(families) != {"knn"}:
        other = next(family for family in families if family != "knn")
        raise UsageError(f"{other} needs vectors: from distances alone only knn can learn.")
    kind = kind or default_kind(groups=groups is not None, given=given is not None)
    seed, least = whole("seed", seed, 0), whole("min_class_size", min_class_size, 1)
    data = _checked(vectors, labels, groups, given, kind, least)
    names = check_names(ids if elsewhere is None else ids or elsewhere.ids, data)
    labelled = data.names[data.targets]
    outer = make_folds(
        labelled, kind=kind, count=whole("folds", folds, 1), groups=data.groups, given=data.given, seed=seed
    )
    points = Elsewhere(elsewhere, data.kept) if elsewhere is not None else data.points
    remarks = [refuse_leaks(outer, data.groups, allow_leaks), *fold_remarks(outer, labelled, data.groups)]
    if elsewhere is None:
        remarks.append(copy_remark(outer, data.points))
    _refuse_single_classes(outer, data)
    settings = [setting for chosen in families.values() for setting in chosen]
    jobs = [_Job(setting, fold.train, fold.test) for setting in settings for fold in outer]
    trials: dict[str, list[_Trials | str]] = {}
    for family, chosen in families.items():
        if select and len(chosen) > 1:
            trials[family] = [_trials(fold, chosen, data, kind, folds, seed) for fold in outer]
            jobs += [job for trial in trials[family] if not isinstance(trial, str) for job in trial.jobs]
    done = iter(_run(jobs, points, data, seed, thread_count(threads), progress))
    base = {"suite": suite, "subset": subset, "system": system, "version": __version__}
    base["distance"] = "" if elsewhere is None else distance_name
    table = _Table(data, outer, spell_folds(kind, outer), (*data.notes, *filter(None, remarks)), base, seed)
    fits = {setting: [next(done) for _ in outer] for setting in settings}
    for family, chosen in families.items():
        for setting in chosen:
            table.add(str(setting), fits[setting])
        if family in trials:
            table.add_best(family, chosen, fits, [_chosen(trial, done) for trial in trials[family]])
    return table.study(names)


# --- what goes in ---------------------------------------------------------------------------------------------------


def _checked(vectors: Any, labels: Any, groups: Any, given: Any, kind: str, least: int) -> ProbedRows:
    """Rows that can be shared out; what cannot is dropped and counted."""
    if are_several(labels):
        raise InputError(
            "Rows have lists of labels, and a classifier gives one: take `probe linear`, or one label each."
        )
    if isinstance(vectors, Distances):
        data = check_rows(np.zeros((vectors.n, 1)), labels, groups, given)
        data = replace(data, digest=f"{vectors.digest()} {data.digest}")
    else:
        data = check_rows(vectors, labels, groups, given)
    unit, units = "clip", data.kept
    if data.groups is not None and kind in WHOLE_GROUPS:
        unit, units = "group", data.groups
    sizes = np.array([len(np.unique(units[data.targets == code])) for code in range(len(data.names))])
    least = max(least, 2)
    small = sizes < least
    if not small.any() or small.all():  # where no class is large enough, making folds says what is wrong
        return data
    if (~small).sum() < 2:
        only = data.names[~small][0]
        raise InputError(f'Only the class "{only}" has {least} {unit}s or more: a classifier needs two classes.')
    stay = np.flatnonzero(~small[data.targets])
    few = f"{counted(int(small.sum()), 'class')} of fewer than {least} {unit}s"
    lost = counted(len(data.kept) - len(stay), "row")
    note = f"{lost} in {few} dropped ({first_of(data.names[small].tolist(), 3)})"
    groups, given = (None if column is None else column[stay] for column in (data.groups, data.given))
    codes = np.unique(data.targets[stay], return_inverse=True)[1].astype(np.int64)
    notes = (*data.notes, note)
    return replace(
        data, targets=codes, names=data.names[~small], groups=groups, given=given, kept=data.kept[stay], notes=notes
    )


def _refuse_single_classes(folds: Sequence[Fold], data: ProbedRows) -> None:
    for fold in folds:
        learnt = np.unique(data.targets[fold.train])
        if len(learnt) < 2:
            raise InputError(
                f'Fold "{fold.name}" leaves one class to learn from ({data.names[learnt[0]]}): ask for fewer folds, '
                "or give clips of each class by more groups."
            )


# --- the choice of a setting inside the training part ----------------------------------------------------------------


class _Job(NamedTuple):
    setting: Setting
    train: Indices
    test: Indices


class _Trials(NamedTuple):
    """Every setting on every inner fold of one outer fold, in this order."""

    settings: tuple[Setting, ...]
    folds: int
    jobs: list[_Job]


class _Choice(NamedTuple):
    setting: Setting | None
    seconds: float
    reason: str = ""


def _trials(
    fold: Fold, settings: tuple[Setting, ...], data: ProbedRows, kind: str, count: int, seed: int
) -> _Trials | str:
    """What must be tried to choose a setting without the test clips of a fold; or why that cannot be done."""
    if len(fold.valid):
        return _Trials(settings, 1, [_Job(setting, fold.train, fold.valid) for setting in settings])
    groups = None if data.groups is None else data.groups[fold.train]
    if kind == "given":
        kind = "stratified" if groups is None else "group-stratified"
    codes = data.targets[fold.train]
    units = np.arange(len(codes)) if groups is None or kind not in WHOLE_GROUPS else groups
    of_class = {code: len(np.unique(units[codes == code])) for code in np.unique(codes)}
    usable = np.flatnonzero(np.isin(codes, [code for code, size in of_class.items() if size > 1]))
    if len(np.unique(codes[usable])) < 2:
        return f'the training part of fold "{fold.name}" is too small for folds of its own'
    fewest = min(size for size in of_class.values() if size > 1)
    names = data.names[codes[usable]]
    try:
        inner = make_folds(
            names, kind=kind, count=max(2, min(count, fewest)), groups=None if groups is None else groups[usable],
            seed=seed,
        )  # fmt: skip
    except InputError as error:
        return f'the training part of fold "{fold.name}" cannot be shared out again: {error}'
    if any(len(np.unique(names[part.train])) < 2 for part in inner):
        return f'the training part of fold "{fold.name}" has too few groups for folds of its own'
    rows = fold.train[usable]
    jobs = [_Job(setting, rows[part.train], rows[part.test]) for setting in settings for part in inner]
    return _Trials(settings, len(inner), jobs)


def _chosen(trial: _Trials | str, done: Iterator[_Outcome]) -> _Choice:
    """The setting with the highest mean over inner folds, the first of equal ones."""
    if isinstance(trial, str):
        return _Choice(None, 0.0, trial)
    best, highest, seconds = None, -1.0, 0.0
    for setting in trial.settings:
        outcomes = [next(done) for _ in range(trial.folds)]
        seconds += sum(outcome.fit.seconds for outcome in outcomes)
        if any(outcome.fit.error for outcome in outcomes):
            continue
        mean = float(np.mean([outcome.right.mean() for outcome in outcomes]))
        if mean > highest:
            best, highest = setting, mean
    return _Choice(best, seconds, "" if best is not None else "no setting could be tried")


# --- the work -------------------------------------------------------------------------------------------------------


class _Outcome(NamedTuple):
    fit: Fit
    right: NDArray[np.bool_]


def _run(
    jobs: Sequence[_Job], points: NDArray[Any] | Elsewhere, data: ProbedRows, seed: int, threads: int, progress: bool
) -> list[_Outcome]:
    """Every job, over processes where that pays, else over threads; in order."""
    shape = data.vectors.shape[1], len(data.names)
    work = sum(seconds_of(job.setting, len(job.train), len(job.test), *shape) for job in jobs)
    with progress_bar(progress, len(jobs), "classify", "fit") as tick:
        fits = []
        apart = work > PROCESSES_FROM and not isinstance(points, Elsewhere)
        for done in _fits(jobs, points, data.targets, seed, min(threads, len(jobs)), apart=apart):
            fits.append(done)
            tick()
    pairs = zip(fits, jobs, strict=True)
    return [
        _Outcome(done, np.zeros(0, bool) if done.error else done.answers == data.targets[job.test])
        for done, job in pairs
    ]


def _fits(
    jobs: Sequence[_Job], points: NDArray[Any] | Elsewhere, codes: Indices, seed: int, threads: int, *, apart: bool
) -> Iterator[Fit]:
    if threads > 1 and apart:
        from joblib import Parallel, delayed

        work = delayed(fit_quietly)
        tasks = (work(job.setting, points, codes, job.train, job.test, seed) for job in jobs)
        yield from Parallel(n_jobs=threads, return_as="generator")(tasks)
        return
    with quiet(), Workers(threads) as workers:
        yield from workers.map(lambda job: fit(job.setting, points, codes, job.train, job.test, seed), jobs)


# --- what comes out -------------------------------------------------------------------------------------------------


class _Table:
    """Rows and answers, protocol by protocol."""

    def __init__(
        self,
        data: ProbedRows,
        folds: Sequence[Fold],
        spelling: str,
        notes: tuple[str, ...],
        base: dict[str, Any],
        seed: int,
    ) -> None:
        import sklearn

        self.data, self.folds, self.spelling, self.notes, self.base = data, folds, spelling, notes, base
        self.known = f"{data.digest} {len(data.kept)} {spelling} {seed} {__version__} {sklearn.__version__}"
        self.rows: list[Row] = []
        self.points: dict[tuple[str, str, str, str], Floats] = {}
        self.answers: dict[str, list[str | None]] = {}
        tested = np.concatenate([fold.test for fold in folds])
        self.sizes = np.sort(np.bincount(data.targets[tested], minlength=len(data.names)))[::-1] / len(tested)

    def add(
        self, name: str, outcomes: Sequence[_Outcome], seconds: float = 0.0, remark: str = "", among: str = "",
        refusal: str = "",
    ) -> None:  # fmt: skip
        """The rows of a setting from its fits on the folds; `among` says what else they depend on."""
        protocol = f"{name} {self.spelling}"
        inputs = hashlib.sha256(f"{self.known} {name} {among}".encode()).hexdigest()
        seconds += sum(outcome.fit.seconds for outcome in outcomes)
        base = self.base | {"protocol": protocol, "inputs": inputs, "seconds": seconds}
        refusal = refusal or next((outcome.fit.error for outcome in outcomes if outcome.fit.error), "")
        if refusal:
            why = refusal if len(self.data.names) > TOP else self._few_classes
            for metric, reason in (("accuracy", refusal), ("top5_accuracy", why)):
                self.rows.append(Row(metric=metric, status="not_applicable", reason=reason, **base))
            return
        stopped = sum(outcome.fit.unfinished for outcome in outcomes)
        if stopped:
            remark += f"{'; ' if remark else ''}{stopped} of {len(outcomes)} fits stopped at their last iteration"
        right, first = np.zeros(len(self.data.targets)), np.zeros(len(self.data.targets))
        answers: list[str | None] = [None] * self.data.rows
        for fold, outcome in zip(self.folds, outcomes, strict=True):
            right[fold.test], first[fold.test] = outcome.right, outcome.fit.among_first
            for row, code in zip(self.data.kept[fold.test].tolist(), outcome.fit.answers.tolist(), strict=True):
                answers[row] = str(self.data.names[code])
        self.answers[protocol] = answers
        self._measure("accuracy", right, 1, base, remark)
        if len(self.data.names) > TOP:
            self._measure("top5_accuracy", first, TOP, base, remark)
        else:
            self.rows.append(Row(metric="top5_accuracy", status="not_applicable", reason=self._few_classes, **base))

    def add_best(
        self, family: str, settings: Sequence[Setting], fits: dict[Setting, list[_Outcome]], choices: Sequence[_Choice]
    ) -> None:
        """The rows of the settings that were chosen fold by fold."""
        chosen = [choice.setting for choice in choices if choice.setting is not None]
        refusal = next((choice.reason for choice in choices if choice.setting is None), "")
        words = [f"{fold.name} {_parameters(setting)}" for fold, setting in zip(self.folds, chosen, strict=False)]
        self.add(
            f"{family}:best", [fits[setting][place] for place, setting in enumerate(chosen) if not refusal],
            sum(choice.seconds for choice in choices), f"chosen by fold: {', '.join(words)}",
            among=",".join(map(str, settings)), refusal=refusal,
        )  # fmt: skip

    def _measure(self, metric: str, values: Floats, top: int, base: dict[str, Any], remark: str) -> None:
        found = estimate(values, self.folds, self.data.groups)
        baseline = float(self.sizes[:top].sum())
        reason = "; ".join(filter(None, [found.remark, remark, *self.notes]))
        self.rows.append(
            Row(metric=metric, baseline=baseline, lift=found.value - baseline, reason=reason, **found.cells, **base)
        )
        points = np.full(self.data.rows, np.nan)
        for fold in self.folds:
            points[self.data.kept[fold.test]] = values[fold.test]
        self.points[base["distance"], "none", base["protocol"], metric] = points

    @property
    def _few_classes(self) -> str:
        return f"{len(self.data.names)} classes: each is always among the first {TOP}"

    def study(self, ids: tuple[str, ...] | None) -> Study:
        fold_of: list[str | None] = [None] * self.data.rows
        for fold in self.folds:
            for row in self.data.kept[fold.test].tolist():
                fold_of[row] = fold.name
        return Study(Scores(tuple(self.rows), self.points, ids), self.answers, fold_of)


def _parameters(setting: Setting) -> str:
    return str(setting).partition(":")[2]
