"""Whatever holds scores: a score table, a run folder, a plain models x datasets file, or the papers' printed results.

    open_scores("run")                             the rows of any of them
    open_matrix("scores.csv", metric="P@1")        a matrix: of a score table, in any format that holds one
    open_matrix("run", metric="P@1")               of the folder of a run
    open_matrix("leaderboard.csv")                 first column: models; the others: datasets; empty: missing
    open_matrix("long.csv", metric="accuracy")     columns model, dataset, metric and value
    open_matrix("results")                         a folder or file of mteb's results: their main scores
    open_matrix("published:vocsim", metric="P@1")  printed results that come with Earmark

Chance levels are looked up by the datasets' names, and what was looked up is said in the remarks.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from earmark import published
from earmark.analysis._chance import known_chance
from earmark.analysis._naming import families_of
from earmark.analysis._plain_tables import (
    FAMILY_COLUMN,
    is_plain_table,
    metrics_of,
    named_by_itself,
    numbers,
    read_wide,
)
from earmark.analysis.matrix import Matrix, from_scores, from_table
from earmark.errors import InputError, UsageError, absent, did_you_mean, quoted
from earmark.places import locate
from earmark.published.families import Level
from earmark.scores import METRICS, Row, Scores, load_scores, metric_facts
from earmark.scores.rows import distinct
from earmark.wording import counted, first_of

PREFIX = "published:"
_ROUNDING = 1e-9
_NOTHING_TO_LEAVE_OUT = "There is no dataset {} to leave out."
_NO_DATASET = "names {}, which is not a dataset of the table."


class Source(NamedTuple):
    """A matrix, the score table it was taken from (None for a plain table), and what a reader should know of it.

    `remarks` say what was done with the table, `warnings` what may be wrong with it.
    """

    name: str
    matrix: Matrix
    metric: str | None
    scores: Scores | None = None
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Reading(NamedTuple):
    """How a table is to be read: see `open_matrix`."""

    metric: str | None
    distance: str | None
    lower_is_better: tuple[str, ...]
    chance: Mapping[str, float]
    best: Mapping[str, float]
    families: Mapping[str, str] | str | None
    without: tuple[str, ...]


def open_matrix(
    given: str | os.PathLike[str] | Scores,
    *,
    metric: str | None = None,
    distance: str | None = None,
    lower_is_better: Iterable[str] = (),
    chance: Mapping[str, float] | None = None,
    best: Mapping[str, float] | None = None,
    families: Mapping[str, str] | str | None = "auto",
    without: Iterable[str] = (),
    with_repeats: bool = False,
) -> Source:
    """The matrix of a score table, of a plain table in a file, or of printed results.

    metric           which metric of a score table; for a plain table, what its columns measure, if they are all alike
    lower_is_better  columns of a plain table of which less is better
    chance, best     by dataset, in the units of the table; other chance levels are looked up, or 0
    families         by model or system; "auto": as the papers name their methods, a column `family`, or the model in
                     the name of a run's system; "models": the model behind VocSim's methods, which is stricter, or the
                     first word of a model's name; None: no families
    without          datasets to leave out, such as an average among them
    with_repeats     count printed rows that repeat another system's as measurements
    """
    how = _Reading(
        metric, distance, tuple(lower_is_better), dict(chance or {}), dict(best or {}), families, tuple(without)
    )
    if isinstance(given, Scores):
        return _of_scores("the score table", _counting(given, with_repeats), how)
    text = os.fspath(given)
    if text.startswith(PREFIX):
        name = text.removeprefix(PREFIX)
        return _of_scores(text, published.load(name, with_repeats=with_repeats), how, printed=name)
    path = score_file(text)
    if is_plain_table(path):
        if distance is not None:
            raise UsageError(f"{path} is a plain table of models and datasets: it has no distances to choose from.")
        return _of_table(path, how)
    return _of_scores(text, _counting(load_scores(path), with_repeats), how)


def _counting(scores: Scores, with_repeats: bool) -> Scores:
    return replace(scores, rows=tuple(published.counted_as_measured(scores))) if with_repeats else scores


def score_file(given: str | os.PathLike[str]) -> Path:
    """The file that holds the scores: the one given, or that of a run folder; a folder of mteb's results is one."""
    path = locate(given)
    if not path.is_dir():
        return path
    if (path / "scores.csv").is_file():
        return path / "scores.csv"
    if is_plain_table(path):
        return path
    raise InputError(
        f"{given} is a folder without scores.csv and without results of mteb: give that of a finished run, or a table."
    )


def open_scores(
    given: str | os.PathLike[str] | Scores, metric: str | None = None, *, with_repeats: bool = False
) -> tuple[Scores, dict[str, str]]:
    """The rows of a score table, a run folder or printed results (`published:vocsim`), and families by system.

    A plain table of models and datasets becomes the score table of its one metric. Values outside the range of their
    metric, such as percentages of P@1, are refused.
    """
    if isinstance(given, Scores):
        refuse_impossible("the score table", given)
        return _counting(given, with_repeats), {}
    if os.fspath(given).startswith(PREFIX):
        name = os.fspath(given).removeprefix(PREFIX)
        scores = published.load(name, with_repeats=with_repeats)
        return scores, published.families(name, distinct(scores.rows, "system"))
    path = score_file(given)
    if not is_plain_table(path):
        scores = load_scores(path)
        refuse_impossible(str(path), scores)
        return _counting(scores, with_repeats), {}
    metrics = [metric] if metric is not None else metrics_of(path)
    if not metrics:
        raise UsageError(
            f"{path} is a plain table of models and datasets: say with one --metric what it measures, such as P@1, or "
            "give a score table, with the columns subset, system, metric and value."
        )
    rows: list[Row] = []
    families: dict[str, str] = {}
    for name in metrics:
        metric_facts(name)  # says what is known, if it is not
        of_metric, column = _rows_of_table(path, name)
        rows += of_metric
        families |= column
    scores = Scores(tuple(rows))
    refuse_impossible(str(path), scores)
    return scores, families


def _rows_of_table(path: Path, metric: str) -> tuple[list[Row], dict[str, str]]:
    """The rows of one metric of a plain table, and families by model where it names them."""
    header, lines = read_wide(path, metric)
    models, values, column = numbers(path, header, lines)
    datasets = [name for name in header[1:] if name.lower() != FAMILY_COLUMN]
    from_table(values, models, datasets)  # says what is wrong with names or values
    rows = [
        Row(system=model, subset=dataset, metric=metric, value=value)
        for model, row in zip(models, values, strict=True)
        for dataset, value in zip(datasets, row, strict=True)
        if not np.isnan(value)
    ]
    return rows, dict(zip(models, column or (), strict=False))


def refuse_impossible(name: str, scores: Scores) -> None:
    """InputError for the first measured value that its metric cannot have."""
    known = {name: metric_facts(name) for name in distinct(scores.rows, "metric")}
    for row in scores:
        if row.status != "ok" or row.value is None:
            continue
        facts = known[row.metric]
        low, high = facts.range
        if low - _ROUNDING <= row.value <= high + _ROUNDING:
            continue
        where = " on ".join(quoted(part) for part in (row.system, row.subset) if part) or "a row"
        remedy = (
            "write fractions: divide by 100" if facts.percent and 1 < row.value <= 100 else "correct it, or remove it"
        )
        ends = f"{low:g} or more" if np.isinf(high) else f"from {low:g} to {high:g}"
        raise InputError(f"{name}: {where} has {row.metric} {row.value:g}, and {row.metric} is {ends}; {remedy}.")


# --- score tables -------------------------------------------------------------------------------------------------


def _of_scores(name: str, scores: Scores, how: _Reading, printed: str = "") -> Source:
    if not scores.rows:
        raise InputError(f"{name} has no rows; there is nothing to analyse.")
    remarks: list[str] = []
    metric = how.metric or _only_metric(name, scores, remarks)
    present = distinct(scores.rows, "metric")
    if metric not in present:
        raise UsageError(absent(metric, present, "metric", name))
    if how.lower_is_better:
        raise UsageError(f"{name} is a score table: {metric} says itself which way is better; leave that option out.")
    refuse_impossible(name, scores.select(metric=metric))
    statuses = Counter(row.status for row in scores if row.metric == metric)
    if statuses["predicted"]:
        count = counted(statuses["predicted"], "predicted value")
        remarks.append(f"{count} of {name} left out: only measurements count.")
    if statuses["repeated"]:
        count = counted(statuses["repeated"], "value")
        remarks.append(f"{count} of {name} left out: they repeat other systems' (--with-repeats counts them).")
    of = _families_of_systems(how.families, distinct(scores.rows, "system"), printed)
    plain = from_scores(scores, metric, distance=how.distance, families=of)
    # The published overall score of codecs may pass 1, and 1 is what a codec aims at.
    usual = dict.fromkeys(plain.datasets, 1.0) if metric == "overall" else {}
    matrix = _levelled(plain, metric, how, usual, remarks)
    return Source(name, _left(matrix, how.without), metric, scores, tuple(remarks))


def _only_metric(name: str, scores: Scores, remarks: list[str]) -> str:
    """The metric there is, or the only one that was measured on several datasets."""
    present = distinct(scores.rows, "metric")
    if len(present) == 1:
        return present[0]
    subsets: dict[str, set[tuple[str, str]]] = {}
    for row in scores:
        subsets.setdefault(row.metric, set()).add((row.suite, row.subset))
    several = [metric for metric in present if len(subsets[metric]) > 1]
    if len(several) == 1:
        remarks.append(
            f"Of {len(present)} metrics, {several[0]} is the only one on more than one dataset: it is taken."
        )
        return several[0]
    raise UsageError(
        f"{name} has {len(several or present)} metrics ({', '.join(several or present)}); choose one with --metric."
    )


def _families_of_systems(
    families: Mapping[str, str] | str | None, systems: Sequence[str], printed: str
) -> dict[str, str] | None:
    if isinstance(families, Mapping):
        return dict(families)
    if families is None:
        return None
    if families not in ("auto", "models"):
        raise UsageError(f'families is a mapping, a file, "auto" or "models", not {families!r}.')
    level: Level = "model" if families == "models" else "method"
    return published.families(printed, systems, level) if printed else families_of("vocsim", systems, level)


def _levelled(
    matrix: Matrix, metric: str | None, how: _Reading, usual: Mapping[str, float], remarks: list[str]
) -> Matrix:
    """The matrix with chance and best values as given, else as known by the datasets' names, else as they were."""
    for option, given in (("chance", how.chance), ("best", how.best)):
        _check_names(given, matrix.datasets, f"--{option} {_NO_DATASET}")
    best = dict(zip(matrix.datasets, map(float, matrix.best), strict=True)) | dict(usual) | dict(how.best)
    chance = dict(zip(matrix.datasets, map(float, matrix.chance), strict=True))
    upward = dict(zip(matrix.datasets, matrix.higher_is_better, strict=True))
    known = {  # by the datasets' names, in the units of each column
        name: value * best[name]
        for name, value in known_chance(matrix.datasets, metric).items()
        if name not in how.chance and upward[name] and best[name] in (1.0, 100.0)
    }
    if known:
        shown = first_of([f"{name} {level:.3g}" for name, level in known.items()], 4)
        remarks.append(f"Chance is known for {counted(len(known), 'dataset')} by name: {shown}.")
    chance |= known | dict(how.chance)
    return replace(
        matrix,
        chance=np.array([chance[name] for name in matrix.datasets]),
        best=np.array([best[name] for name in matrix.datasets]),
    )


def _check_names(names: Iterable[str], datasets: Sequence[str], refusal: str) -> None:
    """UsageError, `refusal` with the name in it, for the first name that is not a dataset."""
    for name in names:
        if name not in datasets:
            raise UsageError(refusal.format(quoted(name)) + did_you_mean(name, datasets))


def _left(matrix: Matrix, without: Sequence[str]) -> Matrix:
    _check_names(without, matrix.datasets, _NOTHING_TO_LEAVE_OUT)
    kept = [place for place, name in enumerate(matrix.datasets) if name not in without]
    if not kept:
        raise InputError("Every dataset is left out; keep some.")
    return matrix.take(datasets=np.array(kept)) if without else matrix


# --- plain tables -------------------------------------------------------------------------------------------------


def _of_table(path: Path, how: _Reading) -> Source:
    header, lines = read_wide(path, how.metric)
    _check_names(how.without, header[1:], _NOTHING_TO_LEAVE_OUT)
    models, values, column = numbers(path, header, lines, how.without)
    datasets = [name for name in header[1:] if name not in how.without and name.lower() != FAMILY_COLUMN]
    if not datasets:
        raise InputError(f"{path}: every dataset is left out; keep some.")
    _check_names(how.lower_is_better, datasets, f"--lower-is-better {_NO_DATASET}")
    # A long table or mteb's names its metrics, and may have others than Earmark's.
    metric = None if how.metric not in METRICS and named_by_itself(path) else how.metric
    less = metric is not None and not metric_facts(metric).higher_is_better
    remarks: list[str] = []
    warnings: list[str] = []
    plain = from_table(
        values, models, datasets, lower_is_better=datasets if less else how.lower_is_better,
        families=_families_of_models(how.families, models, column, warnings),
    )  # fmt: skip
    matrix = _levelled(plain, metric, how, {}, remarks)
    return Source(str(path), matrix, how.metric, None, tuple(remarks), tuple(warnings))


def _families_of_models(
    families: Mapping[str, str] | str | None, models: Sequence[str], column: Sequence[str] | None, warnings: list[str]
) -> dict[str, str] | None:
    if families is None:
        return None
    if isinstance(families, Mapping):
        strangers = [name for name in models if name not in families]
        if strangers:
            warnings.append(
                f"{counted(len(strangers), 'model')} of the table have no family in the file, such as "
                f"{quoted(strangers[0])}; each is one of its own."
            )
        return dict(families)
    if column is not None:
        return dict(zip(models, column, strict=True))
    if families == "models":
        return {name: first_word(name) for name in models}
    return None


def first_word(name: str) -> str:
    """The maker's word in a model's name: `Llama 2 (70B)` and `LLaMA (65B)` are both `llama`."""
    found = re.match(r"[^\W\d_]+", name.strip())
    return found[0].lower() if found else name
