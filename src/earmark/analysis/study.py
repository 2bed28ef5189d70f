"""Everything that a matrix of scores says about its own datasets and models, from one call.

    study = analyze("scores.csv", metric="P@1")
    study.as_dict()     stalk, prowl, pounce, verdicts, ranks and warnings as plain values
    study.tables()      every table by name: a header and rows

What the matrix is too small for is left out, and the notes say so.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from earmark.analysis import agreement, cautions
from earmark.analysis.intervals import Coverage, interval_coverage
from earmark.analysis.matrix import Matrix, usable
from earmark.analysis.novelty import Addition, Verdict, addition, novelty
from earmark.analysis.pounce import DEFAULT_REGRESSORS, Pounce, pounce
from earmark.analysis.prowl import BestSubset, Prowl, exact_coverage, prowl
from earmark.analysis.ranks import Ranks, rank_models
from earmark.analysis.similarities import NINE
from earmark.analysis.sources import Source, open_matrix
from earmark.analysis.stalk import KINDS, Scheme, Stalk, stalk
from earmark.analysis.suite import LEADING, LITE, Choice, choose_vocsim, vocsim_combination
from earmark.errors import InputError, UsageError
from earmark.scores import VOCSIM_SUBSETS, Scores
from earmark.wording import counted, first_of

Split = Literal["grouped", "random"]
Rows = Sequence[Sequence[object]]

ENOUGH = 0.9
"""The share of cells a matrix without gaps must keep to stand for the one with gaps."""
MOST_SUBSETS = 200_000
KNOWN = 3
"""Datasets that count as measured where intervals are checked."""

_BLIND = tuple(subset.name for subset in VOCSIM_SUBSETS if subset.status == "blind")


class Table(NamedTuple):
    header: tuple[str, ...]
    rows: Rows


@dataclass(frozen=True, eq=False)
class Study:
    """What was found. What the matrix is too small for, or what does not apply to it, is None or empty.

    `warnings` change how the results should be read; `remarks` only say what was done.
    """

    source: Source
    matrix: Matrix
    warnings: tuple[str, ...]
    split: Split
    stalk: Stalk
    prowl: Prowl
    exact: tuple[BestSubset, ...]
    pounce: Pounce | None
    coverage: Coverage | None = None
    ranks: Ranks | None = None
    verdicts: tuple[Verdict, ...] = ()
    blind: Addition | None = None
    distances: tuple[agreement.Agreement, ...] = ()
    metrics: tuple[agreement.Agreement, ...] = ()
    printed_metrics: tuple[agreement.Printed, ...] = ()
    lite: Choice | None = None
    remarks: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """stalk (counts), prowl (one entry for each similarity and baseline) and pounce, as plain values.

        Beside them: novelty (a verdict on each dataset), ranks (of the models, with intervals), and warnings.
        """
        keys = ("similarity", "scauc", "size", "stable_size", "order")
        return {
            "stalk": {"datasets": dict(self.stalk.datasets.counts), "models": dict(self.stalk.models.counts)},
            "prowl": [{key: row[key] for key in keys} for row in self.prowl.rows()],
            "pounce": [{key: row[key] for key in ("regressor", "auc_mse")} for row in self.pounce_rows()],
            "novelty": [_finite(verdict._asdict()) for verdict in self.verdicts],
            "ranks": [_finite(row._asdict()) for row in (self.ranks.rows if self.ranks else ())],
            "warnings": list(self.warnings),
        }

    def pounce_rows(self) -> list[dict[str, Any]]:
        return self.pounce.rows() if self.pounce else []

    def tables(self) -> dict[str, Table]:
        """Every table by the name of its file."""
        coverage = [(selection.name, selection.coverage) for selection in self.prowl.selections]
        if self.prowl.random.coverage.size:
            coverage.insert(0, ("random", self.prowl.random.coverage.mean(axis=0)))
        errors = [(forecast.regressor, forecast.curve) for forecast in (self.pounce.forecasts if self.pounce else ())]
        exact = [[len(s.members), s.value, " ".join(self.prowl.datasets[j] for j in s.members)] for s in self.exact]
        tables = {
            "matrix": _matrix_table(self.matrix),
            "relations_of_datasets": _relations(self.stalk.datasets),
            "relations_of_models": _relations(self.stalk.models),
            "representative_subsets": _records(self.prowl.rows()),
            "coverage_curves": _curves(coverage),
            "exact_subsets": Table(("size", "coverage", "datasets"), exact),
            "prediction_errors": _records(self.pounce_rows()),
            "prediction_curves": _curves(errors),
            "interval_coverage": _records(self.coverage.rows() if self.coverage else ()),
            "ranks": _records(self.ranks.rows if self.ranks else ()),
            "novelty": _records(self.verdicts),
            "agreement_of_distances": _records(self.distances),
            "agreement_of_metrics": _records(self.metrics),
            "vocsim_table12": _records(self.printed_metrics),
            "lite_suite": _combinations(self.lite),
        }
        return {name: table for name, table in tables.items() if table.rows}


def analyze(
    source: str | os.PathLike[str] | Scores,
    *,
    metric: str | None = None,
    distance: str | None = None,
    lower_is_better: Iterable[str] = (),
    chance: Mapping[str, float] | None = None,
    best: Mapping[str, float] | None = None,
    families: Mapping[str, str] | str | None = "auto",
    without: Iterable[str] = (),
    with_repeats: bool = False,
    split: Split | None = None,
    scheme: Scheme = "simba",
    similarities: Iterable[str] = NINE,
    regressors: Iterable[str] = DEFAULT_REGRESSORS,
    random_orders: int = 1000,
    beam: int = 1,
    seed: int = 0,
    core: bool = False,
    tick: Callable[[str], object] = lambda _: None,
) -> Study:
    """Stalk, prowl and pounce on a matrix of scores, and what else it tells.

    Args:
        source: A score table, a plain table of models and datasets, `published:NAME`, or Scores.
        metric: Which metric of a score table.
        distance: Only rows of this distance; None makes each a model of its own.
        lower_is_better: Datasets of which less is better.
        chance: By dataset, what a model that knows nothing reaches; looked up by name, else 0.
        best: By dataset, the best possible value: 1 for fractions, 100 for percentages.
        families: By model, those that are versions of each other; "auto" and "models" (stricter) go by their names,
            None takes each model by itself.
        without: Datasets to leave out.
        with_repeats: Whether printed values that repeat another system's count as measurements.
        split: How models are held out where the rest is predicted: "grouped" by families, the default where there are
            families of several models, or "random".
        scheme: Transforms that relations are sought in: "simba" or "loglog".
        similarities: How a subset of the datasets may be likened to all of them.
        regressors: What predicts the rest from a subset.
        random_orders: Against how many random orders of the datasets the representative subsets are compared.
        beam: Orders kept while a subset grows.
        seed: Seed of orders and resamples.
        core: Only stalk, prowl and pounce.
        tick: Called with the name of each stage before it starts.
    """
    if split not in (None, "grouped", "random"):
        raise UsageError(f'split is "grouped" or "random", not {split!r}.')
    if random_orders < 0:
        raise UsageError(f"random_orders cannot be negative ({random_orders}).")
    tick("reading")
    opened = open_matrix(
        source, metric=metric, distance=distance, lower_is_better=lower_is_better, chance=chance, best=best,
        families=families, without=without, with_repeats=with_repeats,
    )  # fmt: skip
    left_out: list[str] = []
    matrix, whole = _parts(opened.matrix, left_out)
    notes = [
        *opened.warnings, *cautions.warnings(opened.matrix, matrix, directions=opened.scores is None), *left_out
    ]  # fmt: skip
    remarks = list(opened.remarks)
    if split == "grouped" and not matrix.grouped:
        remarks.append(
            "There are no families of several models, so a grouped split holds out single models at random; say which "
            "belong together with --families."
        )
    how: Split = split or ("grouped" if matrix.grouped else "random")
    tick("stalk")
    related = stalk(matrix, scheme)
    tick("prowl")
    found = prowl(matrix, similarities, orders=random_orders, seed=seed, beam=beam)
    d, values = len(matrix.datasets), matrix.normalised()
    bounds = [exact_coverage(values, size) for size in (1, 2, 3) if size <= d and math.comb(d, size) <= MOST_SUBSETS]
    tick("pounce")
    predicted = _attempt("predictions", lambda: _pounce(whole, regressors, how), notes)
    study = Study(
        opened, matrix, tuple(dict.fromkeys(notes)), how, related, found, tuple(bounds), predicted,
        remarks=tuple(remarks),
    )  # fmt: skip
    return study if core else _further(study, whole, notes, seed, tick)


def _further(study: Study, whole: Matrix | None, notes: list[str], seed: int, tick: Callable[[str], object]) -> Study:
    """The study with what else the same matrix, and the score table behind it, tell."""
    matrix, source = study.matrix, study.source
    tick("intervals")
    coverage = _attempt("a check of intervals", lambda: _coverage(whole), notes)
    tick("ranks")
    # By the plain mean, as on the leaderboard; where columns measure different things, by a normalised one.
    alike = source.metric is not None and len(set(matrix.higher_is_better)) == 1
    by: Literal["mean", "normalised_mean"] = "mean" if alike else "normalised_mean"
    ranks = _attempt("intervals of ranks", lambda: rank_models(matrix, by=by, seed=seed), notes)
    verdicts = _attempt("verdicts on datasets", lambda: novelty(whole or matrix), notes) or []
    blind = None
    if 0 < len(set(matrix.datasets) & set(_BLIND)) < len(matrix.datasets):
        blind = _attempt("what blind sets add", lambda: addition(whole or matrix, _BLIND), notes)
    tick("agreement")
    lite = None
    vocsim = set(matrix.datasets) & {subset.name for subset in VOCSIM_SUBSETS}
    if len(vocsim) > len(matrix.datasets) / 2 and source.metric in LEADING:
        # The lite suite as it is stored, on the curve of all combinations.
        lite = choose_vocsim()._replace(chosen=vocsim_combination(LITE["vocsim"]))
    return replace(
        study,
        warnings=tuple(dict.fromkeys(notes)),
        coverage=coverage,
        ranks=ranks,
        verdicts=tuple(verdicts),
        blind=blind,
        distances=tuple(agreement.distance_agreement(source.scores)) if source.scores is not None else (),
        metrics=tuple(agreement.metric_agreement(source.scores)) if source.scores is not None else (),
        printed_metrics=tuple(agreement.table12()) if source.name == "published:vocsim" else (),
        lite=lite,
    )


def _parts(matrix: Matrix, notes: list[str]) -> tuple[Matrix, Matrix | None]:
    """The matrix to look at, and its part without gaps; they are the same where few models have gaps."""
    left = usable(matrix)
    if np.isfinite(left.values).all():
        return left, left
    try:
        whole = usable(left.complete())
    except InputError:
        return left, None
    lost = [name for name in left.models if name not in set(whole.models)]
    if whole.values.size >= ENOUGH * left.values.size and whole.datasets == left.datasets:
        notes.append(f"{counted(len(lost), 'model')} with missing values left out: {first_of(lost, 4)}.")
        return whole, whole
    notes.append(
        f"Predictions and verdicts rest on the part without gaps: {counted(len(whole.models), 'model')} and "
        f"{counted(len(whole.datasets), 'dataset')}."
    )
    return left, whole


def _attempt(what: str, make: Callable[[], Any], notes: list[str]) -> Any:
    """What a small matrix allows: the reason why not becomes a note."""
    try:
        return make()
    except InputError as error:
        notes.append(f"No {what}: {error}")
        return None


def _without_gaps(whole: Matrix | None) -> Matrix:
    if whole is None:
        raise InputError("no models and datasets without missing values are left.")
    return whole


def _pounce(whole: Matrix | None, regressors: Iterable[str], split: Split) -> Pounce:
    left = _without_gaps(whole)
    if len(left.models) < 5:
        raise InputError(f"{counted(len(left.models), 'model')} without gaps are too few to hold any out.")
    return pounce(left, regressors, split=split)


def _coverage(whole: Matrix | None) -> Coverage:
    left = _without_gaps(whole)
    if len(left.datasets) <= KNOWN:
        raise InputError(f"{counted(len(left.datasets), 'dataset')} leave none to predict from {KNOWN}.")
    return interval_coverage(left, KNOWN)


# --- tables -----------------------------------------------------------------------------------------------------


def _matrix_table(matrix: Matrix) -> Table:
    rows = [
        [model, family, *("" if np.isnan(value) else float(value) for value in line)]
        for model, family, line in zip(matrix.models, matrix.families, matrix.values, strict=True)
    ]
    return Table(("model", "family", *matrix.datasets), rows)


def _relations(found: Any) -> Table:
    names = found.names
    rows = [
        [names[i], names[j], KINDS[found.kind[i, j]], float(found.r2[i, j])]
        for i in range(len(names))
        for j in range(i + 1, len(names))
    ]
    return Table(("one", "other", "relation", "r2"), rows)


def _curves(curves: Sequence[tuple[str, Any]]) -> Table:
    """A line for each size of subset, a column for each curve."""
    sizes = range(len(curves[0][1]) if curves else 0)
    rows = [[size + 1, *(float(curve[size]) for _, curve in curves)] for size in sizes]
    return Table(("size", *(name for name, _ in curves)), rows)


def _records(records: Sequence[Any]) -> Table:
    """A line for each record: a mapping, or a named tuple."""
    rows = [record if isinstance(record, Mapping) else record._asdict() for record in records]
    header = tuple(rows[0]) if rows else ()
    return Table(header, [[_plain(row[name]) for name in header] for row in rows])


def _combinations(lite: Choice | None) -> Table:
    entries = dict.fromkeys((*lite.front, lite.chosen, lite.whole)) if lite else {}
    chosen = lite.chosen.members if lite else ()
    rows = [[" ".join(e.members), e.seconds, e.coverage, e.error, int(e.members == chosen)] for e in entries]
    return Table(("subsets", "seconds_of_sound", "coverage", "error_share", "chosen"), rows)


def _finite(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record for JSON, which has no NaN."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in record.items()
    }


def _plain(cell: object) -> object:
    if cell is None:
        return ""
    return " ".join(str(item) for item in cell) if isinstance(cell, list | tuple) else cell
