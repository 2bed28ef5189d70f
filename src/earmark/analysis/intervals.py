"""Scores that were not measured, predicted from those that were, with intervals that whole unseen families have tested.

A history is a matrix of models in K families. For a new model with scores on S:

    value      the regressor, trained on the whole history, from S
    low, high  jackknife+ over families: for each family g, the regressor without g predicts the new model, p_g, and
               misses the models i of g by r_i. `high` is the weighted quantile of p_g + r_i at the level asked for,
               `low` that of p_g - r_i at one minus the level. A family weighs 1 / (K + 1), shared by its models; the
               new one weighs as much, at infinity.

The weights make families, and not models, the unit: nine versions of one model are one piece of evidence. If the new
model's family is like a draw from those of the history, an interval at level 0.9 holds its score with a probability of
at least 0.8 for any regressor, and from 0.9 to 0.9 + 1 / (K + 1) for one that no single family moves much. K families
cannot support a level above K / (K + 1): the interval then ends at the farthest value there is, and `supported` says
what it is worth. More than 50 families are left out in 50 groups instead of one by one.

`interval_coverage` repeats all of it for each family of a history in turn, as if it were new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.matrix import Matrix, usable
from earmark.analysis.pounce import Regressor, find_regressor
from earmark.analysis.prowl import greedy
from earmark.analysis.similarities import similarity_matrix
from earmark.errors import InputError, UsageError

Floats = NDArray[np.float64]

LEVEL = 0.9
MOST_FOLDS = 50
SIMILARITY = "manhattan"  # of the nine the one with the smallest subset on VocSim


class Predicted(NamedTuple):
    """[rows, datasets] each: NaN where the score is known already, or where the history cannot say.

    value, low, high  in the units of the history's values
    supported         the level that the number of families can support: at most the one asked for
    """

    value: Floats
    low: Floats
    high: Floats
    supported: Floats
    level: float


class Coverage(NamedTuple):
    """How many held-out cells lay inside their intervals.

    coverage     the share of all cells; mean_family: the mean of the families' shares, which is what a level promises
    width        mean width in normalised units (0 chance, 1 best)
    rmse         of the predictions, in normalised units
    """

    level: float
    size: int
    cells: int
    coverage: float
    mean_family: float
    width: float
    rmse: float
    by_family: dict[str, float]

    def rows(self) -> list[dict[str, Any]]:
        """Plain values: one row for each family."""
        return [{"family": name, "coverage": share} for name, share in self.by_family.items()]


def predict_rows(history: Matrix, rows: Floats, *, regressor: str = "ridge", level: float = LEVEL) -> Predicted:
    """Predict what is NaN in `rows` [r, datasets] from what is not, in the history's units and columns.

    A history may have gaps: for a cell it is what has a score on that dataset and on all that the row knows. Fewer than
    two families leave the cell NaN. No row of the history may be the model that is predicted, or a version of it.
    """
    if not 0 < level < 1:
        raise UsageError(f"A level lies between 0 and 1, not {level:g}.")
    fit = find_regressor(regressor)
    new = np.array(rows, np.float64, ndmin=2)
    if new.shape[1] != len(history.datasets):
        raise UsageError(f"The rows have {new.shape[1]} columns, the history {len(history.datasets)} datasets.")
    scale = history.best - history.chance
    past, given = history.normalised(clip=False), (new - history.chance) / scale
    shape = new.shape
    value, low, high, supported = (np.full(shape, np.nan) for _ in range(4))
    families = np.unique(np.asarray(history.families), return_inverse=True)[1]
    for members, known in _patterns(np.isfinite(given)):
        features = np.flatnonzero(known)
        if not features.size:
            raise InputError("A row without a single score cannot be completed; measure at least one dataset.")
        able = np.isfinite(past[:, features]).all(axis=1)
        missing = np.flatnonzero(~known)
        for places, rated in _patterns(np.isfinite(past[able][:, missing]).T):
            targets = missing[places]
            models = np.flatnonzero(able)[rated]
            count = len(np.unique(families[models]))
            if count < 2 or not targets.size:
                continue
            cells = np.ix_(members, targets)
            x, y = past[np.ix_(models, features)], past[np.ix_(models, targets)]
            new_x = given[np.ix_(members, features)]
            value[cells], low[cells], high[cells] = _jackknife(x, y, families[models], new_x, fit, level)
            supported[cells] = min(level, count / (count + 1))
    value, low, high = (history.chance + part * scale for part in (value, low, high))
    low, high = np.minimum(low, high), np.maximum(low, high)  # they change places where lower is better
    # Cut where no value can lie. What the history happens to reach is no such place: the next model may be a new best.
    value, low, high = (np.clip(part, *history.bounds) for part in (value, low, high))
    return Predicted(value, low, high, supported, level)


def interval_coverage(
    history: Matrix,
    known: Sequence[str] | int = 3,
    *,
    regressor: str = "ridge",
    level: float = LEVEL,
) -> Coverage:
    """Hold out each family in turn, predict its models from a few datasets, and count the cells inside the intervals.

    `known` names the datasets that count as measured, or is their number: then they are chosen, greedily by
    `SIMILARITY`, on the other families alone.
    """
    left = usable(history).complete()
    if len(set(left.families)) < 3:
        raise InputError("Intervals are checked by holding out families; give at least three.")
    size = known if isinstance(known, int) else len(known)
    if not 1 <= size < len(left.datasets):
        raise UsageError(
            f"From 1 to {len(left.datasets) - 1} of {len(left.datasets)} datasets can be known, not {size}."
        )
    chosen: list[int] = []
    for name in () if isinstance(known, int) else known:
        if name not in left.datasets:
            listed = ", ".join(left.datasets[:8])
            raise UsageError(f'"{name}" is not a dataset of the history; there are {listed} …')
        chosen.append(left.datasets.index(name))
    families = np.asarray(left.families)
    truth = left.normalised(clip=False)
    scale = np.abs(left.best - left.chance)
    inside = np.full(truth.shape, np.nan)
    width, error = np.full(truth.shape, np.nan), np.full(truth.shape, np.nan)
    for fold in _folds(np.unique(families, return_inverse=True)[1]):
        past = left.take(np.flatnonzero(~fold))
        if isinstance(known, int):
            chosen = list(greedy(similarity_matrix(past.normalised(), SIMILARITY))[:size])
        rows = left.values[fold].copy()
        hidden = np.setdiff1d(np.arange(len(left.datasets)), chosen)
        rows[:, hidden] = np.nan
        found = predict_rows(past, rows, regressor=regressor, level=level)
        actual = left.values[fold]
        slack = 1e-9 * scale
        held = np.where(
            np.isfinite(found.value), (actual >= found.low - slack) & (actual <= found.high + slack), np.nan
        )
        inside[fold], width[fold] = held, (found.high - found.low) / scale
        error[fold] = (found.value - actual) / scale
    shares = {name: float(np.nanmean(inside[families == name])) for name in dict.fromkeys(left.families)}
    return Coverage(
        level=level,
        size=size,
        cells=int(np.isfinite(inside).sum()),
        coverage=float(np.nanmean(inside)),
        mean_family=float(np.mean(list(shares.values()))),
        width=float(np.nanmean(width)),
        rmse=float(np.sqrt(np.nanmean(error**2))),
        by_family=shares,
    )


def _jackknife(
    x: Floats, y: Floats, families: NDArray[np.int64], new: Floats, fit: Regressor, level: float
) -> tuple[Floats, Floats, Floats]:
    """Value, low and high [rows, targets] for the new rows."""
    value = fit(x, y, new)
    sizes = np.bincount(families)
    count = int((sizes > 0).sum())
    weights = 1 / (sizes[families] * (count + 1))
    missed = np.empty(y.shape)
    without = np.empty(len(x), np.int64)
    others: list[Floats] = []
    for fold in _folds(families):
        predicted = fit(x[~fold], y[~fold], np.vstack([x[fold], new]))
        held = int(fold.sum())
        missed[fold] = np.abs(y[fold] - predicted[:held])
        without[fold] = len(others)
        others.append(predicted[held:])
    low, high = np.empty(value.shape), np.empty(value.shape)
    for row in range(len(new)):  # one at a time: [models, targets] is enough to hold
        centres = np.stack([predicted[row] for predicted in others])[without]
        high[row] = _quantile(centres + missed, weights, level)
        low[row] = -_quantile(missed - centres, weights, level)
    return value, np.minimum(low, value), np.maximum(high, value)


def _quantile(values: Floats, weights: Floats, level: float) -> Floats:
    """Along the first axis, the smallest value with at least `level` of the weight at or under it, else the largest."""
    spare = weights.sum() - level + 1e-12  # what may lie above it
    if spare < 0:
        return np.asarray(values.max(axis=0), np.float64)
    # The answer is among the few largest: those above it fit into the spare weight, however light they are.
    few = min(len(values), int(spare / weights.min()) + 2)
    columns = np.ascontiguousarray(values.T)
    top = np.argpartition(columns, len(values) - few, axis=1)[:, -few:]
    every = np.arange(len(columns))[:, None]
    top = top[every, np.argsort(-columns[every, top], axis=1)]
    above = np.cumsum(weights[top], axis=1) > spare
    place = np.where(above.any(axis=1), above.argmax(axis=1), few - 1)[:, None]
    return np.asarray(columns[every, top[every, place]][:, 0], np.float64)


def _folds(families: NDArray[np.int64]) -> Iterator[NDArray[np.bool_]]:
    """Which rows to hold out: a family at a time, or families dealt into MOST_FOLDS groups where there are more."""
    present = np.unique(families)
    group = np.arange(len(present)) % MOST_FOLDS
    if len(present) > MOST_FOLDS:
        group = np.random.default_rng(0).permutation(group)
    of_row = group[np.searchsorted(present, families)]
    return (of_row == g for g in range(int(group.max()) + 1))


def _patterns(rows: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """Rows with the same pattern, and the pattern."""
    if not len(rows):
        return
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    which = which.ravel()
    for k, pattern in enumerate(distinct):
        yield np.flatnonzero(which == k), pattern
