"""Everything that a matrix of scores says about its own datasets and models, from one call.

    study = analyze("scores.csv", metric="P@1")
    study.as_dict()     stalk, prowl, pounce, verdicts, ranks and warnings as plain values
    study.tables()      every table by name: a header and rows

What the matrix is too small for is left out, and the notes say so.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from earmark.analysis import agreement, cautions
from earmark.analysis._settings import PAPER, Unit, noise_variances
from earmark.analysis._study_tables import Table, finite, study_tables
from earmark.analysis.beams import BeamOrder, beam_orders, checked_widths
from earmark.analysis.intervals import Coverage, interval_coverage
from earmark.analysis.matrix import Matrix, usable
from earmark.analysis.novelty import Addition, Verdict, addition, novelty
from earmark.analysis.pounce import DEFAULT_REGRESSORS, Pounce, pounce, random_split
from earmark.analysis.prowl import BestSubset, Prowl, exact_coverage, prowl
from earmark.analysis.ranks import Ranks, rank_models
from earmark.analysis.similarities import NINE
from earmark.analysis.sources import Source, open_matrix
from earmark.analysis.stalk import Scheme, Stalk, stalk
from earmark.analysis.suite import LITE, LiteSuite, choose_vocsim, vocsim_combination
from earmark.displayed import Displayed
from earmark.errors import InputError, UsageError
from earmark.scores import LEADING, VOCSIM_SUBSETS, Scores
from earmark.wording import counted, first_of

Split = Literal["grouped", "random"]
Part = Callable[[float], object]
Tick = Callable[[str, float], object]

ENOUGH = 0.9
"""The share of cells a matrix without gaps must keep to stand for the one with gaps."""
MOST_SUBSETS = 200_000
KNOWN = 3
"""Datasets that count as measured where intervals are checked."""

WITHOUT_GAPS = "Predictions and verdicts rest on the part without gaps"

_BLIND = tuple(subset.name for subset in VOCSIM_SUBSETS if subset.status == "blind")


@dataclass(frozen=True, eq=False, repr=False)
class Study(Displayed):
    """What was found. What the matrix is too small for, or what does not apply to it, is None or empty.

    `warnings` change how the results should be read; `remarks` only say what was done. `noise` holds predictions from
    noisy scores, one for each level, and `folds` those of a k-fold split. `covered` says which models the
    representative subsets were found on and are judged by: all, or the 80 % that train, as in the paper.
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
    noise: tuple[Pounce, ...] = ()
    folds: Pounce | None = None
    beams: tuple[BeamOrder, ...] = ()
    covered: Literal["all", "train"] = "all"
    ranks: Ranks | None = None
    verdicts: tuple[Verdict, ...] = ()
    blind: Addition | None = None
    distances: tuple[agreement.Agreement, ...] = ()
    metrics: tuple[agreement.Agreement, ...] = ()
    printed_metrics: tuple[agreement.Printed, ...] = ()
    lite: LiteSuite | None = None
    remarks: tuple[str, ...] = ()

    _room = "earmark.report.analysis.display"

    def as_dict(self) -> dict[str, Any]:
        """stalk (counts), prowl (one entry for each similarity and baseline) and pounce, as plain values.

        Beside them: novelty (a verdict on each dataset), ranks (of the models, with intervals), warnings, and what was
        asked for with noise, folds and several beams.
        """
        return {
            "stalk": {"datasets": dict(self.stalk.datasets.counts), "models": dict(self.stalk.models.counts)},
            "prowl": self.prowl.rows(),
            "pounce": self.pounce_rows(),
            "novelty": [finite(verdict._asdict()) for verdict in self.verdicts],
            "ranks": [finite(row._asdict()) for row in (self.ranks.rows if self.ranks else ())],
            "warnings": list(self.warnings),
            "noise": self.noise_rows(),
            "folds": self.fold_rows(),
            "beams": self.beam_rows(),
        }

    def pounce_rows(self) -> list[dict[str, Any]]:
        return self.pounce.rows() if self.pounce else []

    def noise_rows(self) -> list[dict[str, Any]]:
        """The error of each regressor under each noise: variance, sigma, auc_mse, its Monte-Carlo error, draws."""
        return [
            {
                "regressor": f.regressor, "variance": found.noise, "sigma": math.sqrt(found.noise),
                "auc_mse": f.auc_mse, "error": f.error, "draws": f.draws,
            }
            for found in self.noise
            for f in found.forecasts
        ]  # fmt: skip

    def fold_rows(self) -> list[dict[str, Any]]:
        """The error of each regressor over folds: mean, standard deviation, smallest and largest."""
        return [
            {
                "regressor": f.regressor, "folds": len(f.by_split), "auc_mse": f.auc_mse, "deviation": f.deviation,
                "lowest": min(f.by_split.values()), "highest": max(f.by_split.values()),
            }
            for f in (self.folds.forecasts if self.folds else ())
        ]  # fmt: skip

    def beam_rows(self) -> list[dict[str, Any]]:
        """What each width of the search found with each similarity, where several widths were asked for."""
        names = self.prowl.datasets
        return [{**found._asdict(), "order": [names[j] for j in found.order]} for found in self.beams]

    def tables(self) -> dict[str, Table]:
        """Every table by the name of its file."""
        return study_tables(self)


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
    regressors: Iterable[str] | None = None,
    random_orders: int = 1000,
    beam: int | Iterable[int] | None = None,
    noise: float | Iterable[float] | None = None,
    noise_unit: Unit = "variance",
    draws: int = 20,
    folds: int | None = None,
    paper: bool = False,
    seed: int = 0,
    core: bool = False,
    tick: Tick = lambda stage, share: None,
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
        regressors: What predicts the rest from a subset: ridge, knn and mean unless others are named.
        random_orders: Against how many random orders of the datasets the representative subsets are compared.
        beam: Subsets of each size kept while a subset grows (1); of several, the first makes the orders of the study
            and all are compared.
        noise: Predict also from training scores with Gaussian noise of these sizes, on the scale from chance (0) to
            best (1).
        noise_unit: Whether `noise` gives variances or standard deviations ("sigma").
        draws: How often each noise is drawn for each split (for a network at most 3 times).
        folds: Predict also in a k-fold split: of whole families with a grouped split, else of the 80 % of the models
            that train in the random split.
        paper: The settings of SimBA's paper wherever nothing else is said: a random split, representative subsets on
            the 80 % of the models that train, four regressors and the training mean, noise of variance 0.05 and 0.1,
            beams of 1, 5, 10 and 20, and 5 folds (10 from 40 models on).
        seed: Seed of orders, folds, noise and resamples.
        core: Only stalk, prowl and pounce, with what noise, folds and beams ask for.
        tick: Called before each piece of work with the name of its stage and its share of it.

    Returns:
        A `Study`: how datasets relate, representative subsets, predictions and ranks. It shows itself as a
        table in a notebook, and `plot()` draws it.

    >>> earmark.analyze("published:vocsim", metric="P@1").plot()
    """
    if split not in (None, "grouped", "random"):
        raise UsageError(f'split is "grouped" or "random", not {split!r}.')
    if random_orders < 0:
        raise UsageError(f"random_orders cannot be negative ({random_orders}).")
    if seed < 0:
        raise UsageError(f"seed cannot be negative ({seed}).")
    if draws < 1:
        raise UsageError(f"draws must be at least 1, not {draws}.")
    levels = noise_variances(noise if noise is not None else PAPER.noise if paper else (), noise_unit)
    widths = checked_widths(beam if beam is not None else PAPER.beams if paper else 1)
    chosen = tuple(regressors) if regressors is not None else PAPER.regressors if paper else DEFAULT_REGRESSORS
    tick("reading", 1)
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
    how: Split = split or ("grouped" if matrix.grouped and not paper else "random")
    tick("stalk", 1)
    related = stalk(matrix, scheme)
    tick("prowl", 1)
    judged = _training_part(matrix) if paper else matrix
    found = prowl(judged, similarities, orders=random_orders, seed=seed, beam=widths[0])
    d, values = len(judged.datasets), judged.normalised()
    bounds = [exact_coverage(values, size) for size in (1, 2, 3) if size <= d and math.comb(d, size) <= MOST_SUBSETS]
    predicted = _attempt("predictions", lambda: _pounce(whole, chosen, how, partial(tick, "pounce")), notes)
    noisy: tuple[Pounce, ...] = ()
    cut = None
    if predicted is not None:
        left = _without_gaps(whole)
        noisy = tuple(
            pounce(
                left, chosen, split=how, noise=level, draws=draws, noise_seed=seed, tick=partial(tick, "noise")
            )
            for level in levels
        )  # fmt: skip
        if folds is not None or paper:
            cut = _folds(left, chosen, how, folds, seed, partial(tick, "folds"))
    study = Study(
        opened, matrix, tuple(dict.fromkeys(notes)), how, related, found, tuple(bounds), predicted,
        noise=noisy, folds=cut,
        beams=beam_orders(judged, widths, similarities, tick=partial(tick, "beams")) if len(widths) > 1 else (),
        covered="all" if judged is matrix else "train", remarks=tuple(remarks),
    )  # fmt: skip
    return study if core else _further(study, whole, notes, seed, tick)


def _further(study: Study, whole: Matrix | None, notes: list[str], seed: int, tick: Tick) -> Study:
    """The study with what else the same matrix, and the score table behind it, tell."""
    matrix, source = study.matrix, study.source
    tick("intervals", 1)
    coverage = _attempt("check of intervals", lambda: _coverage(whole), notes)
    tick("ranks", 1)
    # By the plain mean, as on the leaderboard; where columns measure different things, by a normalised one.
    alike = source.metric is not None and len(set(matrix.higher_is_better)) == 1
    by: Literal["mean", "normalised_mean"] = "mean" if alike else "normalised_mean"
    ranks = _attempt("intervals of ranks", lambda: rank_models(matrix, by=by, seed=seed), notes)
    verdicts = _attempt("verdicts on datasets", lambda: novelty(whole or matrix), notes) or []
    blind = None
    if 0 < len(set(matrix.datasets) & set(_BLIND)) < len(matrix.datasets):
        blind = _attempt("what blind sets add", lambda: addition(whole or matrix, _BLIND), notes)
    tick("agreement", 1)
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
        f"{WITHOUT_GAPS}: {counted(len(whole.models), 'model')} and {counted(len(whole.datasets), 'dataset')}."
    )
    return left, whole


def _training_part(matrix: Matrix) -> Matrix:
    """The models that train in the random split; all of them where too few would be left."""
    try:
        return usable(matrix.take(random_split(len(matrix.models))[0].train), models=4)
    except InputError:
        return matrix


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


def _pounce(whole: Matrix | None, regressors: Iterable[str], split: Split, tick: Part) -> Pounce:
    left = _without_gaps(whole)
    if len(left.models) < 5:
        raise InputError(f"{counted(len(left.models), 'model')} without gaps are too few to hold any out.")
    return pounce(left, regressors, split=split, tick=tick)


def _folds(left: Matrix, regressors: Iterable[str], split: Split, folds: int | None, seed: int, tick: Part) -> Pounce:
    """A k-fold split: of whole families, or of the models that train in the random split, as in the paper."""
    count = PAPER.folds(len(left.models))
    if split == "random":
        left = left.take(random_split(len(left.models))[0].train)
        left = replace(left, families=left.models)
    most, what = len(set(left.families)), "models that train" if split == "random" else "families"
    if folds is not None and not 2 <= folds <= most:
        raise UsageError(f"There are {most} {what}: choose from 2 to {most} folds, not {folds}.")
    folds = min(count, most) if folds is None else folds
    return pounce(left, regressors, split="kfold", folds=folds, seed=seed, tick=tick)


def _coverage(whole: Matrix | None) -> Coverage:
    left = _without_gaps(whole)
    if len(left.datasets) <= KNOWN:
        raise InputError(f"{counted(len(left.datasets), 'dataset')} leave none to predict from {KNOWN}.")
    return interval_coverage(left, KNOWN)
