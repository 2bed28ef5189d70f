"""The lite suite: the cheapest subsets that rank models as the whole benchmark does, and predict the rest of it.

Every combination of the subsets that anybody can run is looked at (VocSim: 2^15 of its public ones), so what is chosen
is chosen and not found on the way. Two things are asked of a combination, each of them with whole models left out:

    coverage  Pearson's r of the mean win rates on the combination and on all subsets, at its worst: over the leading
              metrics, and over leaving out each model in turn. At least 0.95, SimBA's threshold.
    error     the mean squared error of ridge regression from the combination to all other subsets, each model predicted
              from the others, as a share of the error of the training mean. At most two thirds.

Cost is seconds of sound: clips times mean duration. The lite suite is the cheapest that fulfils both, among the
combinations that nothing as cheap ranks better than.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark import published
from earmark.analysis._chance import known_chance
from earmark.analysis.matrix import Matrix, from_scores
from earmark.analysis.pounce import grouped_splits, ridge
from earmark.analysis.prowl import THRESHOLD, win_rates
from earmark.errors import InputError, UsageError
from earmark.scores import LEADING, VOCSIM_SUBSETS
from earmark.wording import counted

Floats = NDArray[np.float64]

LITE: dict[str, tuple[str, ...]] = {"vocsim": ("BS4", "HS1", "HW2")}
"""The lite suite of each benchmark that has one. `choose` finds it again from the printed results with the rows that
repeat others, of which nobody knew when it was chosen; a test compares. Without them it fulfils both demands still."""

ERROR_SHARE = 2 / 3
_FLAT = 1e-24
MOST = 20
"""Subsets of which all combinations are looked at: a million."""


class Combination(NamedTuple):
    """Some subsets, the seconds of sound they hold, how they rank (coverage) and how they predict (error)."""

    members: tuple[str, ...]
    seconds: float
    coverage: float
    error: float


class LiteSuite(NamedTuple):
    """The lite suite, the combinations that nothing as cheap ranks better than, and everything runnable.

    `front` runs from the cheapest combination to the one with the largest coverage.
    """

    chosen: Combination
    front: tuple[Combination, ...]
    whole: Combination


def choose(
    matrices: Sequence[Matrix],
    seconds: Mapping[str, float],
    runnable: Collection[str],
    *,
    threshold: float = THRESHOLD,
    error_share: float = ERROR_SHARE,
) -> LiteSuite:
    """The cheapest combination of runnable datasets that ranks and predicts well enough, on every matrix.

    The matrices are of one benchmark under several metrics: the same datasets, no gaps, families of models.
    """
    datasets = matrices[0].datasets
    if any(matrix.datasets != datasets for matrix in matrices):
        raise UsageError("The matrices have different datasets; give one benchmark under several metrics.")
    places = [place for place, name in enumerate(datasets) if name in runnable]
    if not 1 <= len(places) <= MOST:
        raise UsageError(f"All combinations of 1 to {MOST} datasets can be looked at, not of {len(places)}.")
    members = combinations(len(places))
    cost = members @ np.array([seconds[datasets[place]] for place in places])
    coverage = np.minimum.reduce([worst_coverage(matrix, places, members) for matrix in matrices])

    def combination(row: int) -> Combination:
        columns = [places[j] for j in np.flatnonzero(members[row])]
        error = max(error_of(matrix, columns) for matrix in matrices)
        return Combination(tuple(datasets[j] for j in columns), float(cost[row]), float(coverage[row]), error)

    # By cost, then by size, then in the order of the datasets.
    order = np.lexsort((np.arange(len(members)), members.sum(axis=1), cost))
    reached = np.maximum.accumulate(coverage[order])
    front = tuple(combination(int(row)) for row in order[np.r_[True, reached[1:] > reached[:-1]]])
    chosen = next((entry for entry in front if entry.coverage >= threshold and entry.error <= error_share), None)
    if chosen is None:
        raise InputError(f"No combination of the {counted(len(places), 'runnable dataset')} reaches both thresholds.")
    return LiteSuite(chosen, front, combination(len(members) - 1))


def combinations(count: int) -> NDArray[np.bool_]:
    """[2^count - 1, count]: which members each combination has; row r holds the bits of r + 1."""
    numbers = np.arange(1, 1 << count)
    return np.asarray((numbers[:, None] >> np.arange(count)) & 1 == 1)


def worst_coverage(matrix: Matrix, places: Sequence[int], members: NDArray[np.bool_]) -> Floats:
    """Coverage of each combination at its worst: with every model, and with each family left out in turn."""
    values = matrix.normalised()
    families = np.array(matrix.families)
    left = [np.ones(len(values), bool), *(families != name for name in dict.fromkeys(matrix.families))]
    found = [_coverage(win_rates(values[rows]), places, members) for rows in left if rows.sum() > 2]
    return np.asarray(np.minimum.reduce(found), np.float64)


def _coverage(rates: Floats, places: Sequence[int], members: NDArray[np.bool_]) -> Floats:
    """Pearson's r of the full mean win rate and each combination's, from the covariances of the datasets alone."""
    centred = rates - rates.mean(axis=0)
    full = centred.mean(axis=1)
    parts = centred[:, places]
    chosen = members.astype(np.float64)
    shared = chosen @ (parts.T @ full)
    spread = ((chosen @ (parts.T @ parts)) * chosen).sum(axis=1) * (full @ full)
    found = np.divide(shared, np.sqrt(spread), out=np.zeros(len(members)), where=spread > _FLAT)
    return np.asarray(found, np.float64)


def error_of(matrix: Matrix, columns: Sequence[int]) -> float:
    """The error of predicting all other datasets from these, as a share of the training mean's; families held out."""
    values = matrix.normalised(clip=False)
    rest = [place for place in range(values.shape[1]) if place not in set(columns)]
    if not rest:
        return 0.0
    wrong = blind = 0.0
    for split in grouped_splits(matrix.families):
        train, test = values[split.train], values[split.test]
        predicted = ridge(train[:, columns], train[:, rest], test[:, columns])
        wrong += float(((predicted - test[:, rest]) ** 2).sum())
        blind += float(((train[:, rest].mean(axis=0) - test[:, rest]) ** 2).sum())
    return wrong / blind if blind > 0 else 1.0


# --- VocSim -----------------------------------------------------------------------------------------------------


def vocsim_seconds() -> dict[str, float]:
    """Seconds of sound in each of VocSim's subsets, from the paper's Table 1: clips times mean duration."""
    return {
        row["subset"]: int(row["n_samples"]) * float(row["avg_dur_s"])
        for row in published.read("vocsim_table1_subsets")
    }


def vocsim_matrix(metric: str, *, with_repeats: bool = False) -> Matrix:
    """The printed VocSim matrix of a metric: configurations without gaps, grouped by the model behind them."""
    scores = published.load("vocsim", with_repeats=with_repeats).select(metric=metric)
    systems = dict.fromkeys(row.system for row in scores)
    of = published.families("vocsim", systems, level="model")
    subsets = [subset.name for subset in VOCSIM_SUBSETS]
    return from_scores(scores, metric, chance=known_chance(subsets, metric) or None, families=of).complete("models")


@cache
def choose_vocsim(*, with_repeats: bool = False) -> LiteSuite:
    """The lite suite of VocSim, recomputed: all combinations of its public subsets on P@1, P@5 and GSR."""
    public = [subset.name for subset in VOCSIM_SUBSETS if subset.status == "public"]
    matrices = [vocsim_matrix(metric, with_repeats=with_repeats) for metric in LEADING]
    return choose(matrices, vocsim_seconds(), public)


@cache
def vocsim_combination(members: tuple[str, ...], *, with_repeats: bool = False) -> Combination:
    """What one combination of VocSim's subsets costs, how it ranks and how it predicts, at its worst."""
    matrices = [vocsim_matrix(metric, with_repeats=with_repeats) for metric in LEADING]
    places = [matrices[0].datasets.index(name) for name in members]
    every = np.ones((1, len(places)), bool)
    return Combination(
        members,
        sum(vocsim_seconds()[name] for name in members),
        float(min(worst_coverage(matrix, places, every)[0] for matrix in matrices)),
        max(error_of(matrix, places) for matrix in matrices),
    )
