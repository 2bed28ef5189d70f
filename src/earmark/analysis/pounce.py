"""Pounce: from the scores of a new model on a few datasets, its scores on the others.

The models are split into training and held-out ones. An order of the datasets is found on the training models, and for
|S| = 1 ... d - 1 a regressor learns scores on S -> scores on the rest. The mean squared error on the held-out models
makes a curve; AUC-MSE is the area under it, x rescaled to [0, 1], in normalised units (0 chance, 1 best): lower is
better.

`mean`, the training mean, is the bar: it looks at nothing the new model did. A split by families is the honest one
where versions of a model stand in the matrix, because near-duplicates in a random split tell the answer.

Two numbers say how far a result may be trusted, and they are not the same. The `deviation` over splits tells how much
hangs on which models are held out; splits share most of their training models, so it is no error of the mean, and no
interval follows from it. The `error` over draws of noise is a Monte-Carlo standard error: more draws make it smaller.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.matrix import Matrix, usable
from earmark.analysis.prowl import area, computed, greedy
from earmark.analysis.similarities import similarity_matrix
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.workers import Workers

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Splitting = Literal["grouped", "random", "kfold"]
Regressor = Callable[[Floats, Floats, Floats], Floats]
"""(scores on S of the training models, their scores on the rest, scores on S of the new models) -> predictions."""

NEIGHBOURS = 5
MOST_SIZES = 100
SIMILARITY = "minkowski"  # the one the paper's Tables 4 and 5 are made with


class Split(NamedTuple):
    name: str
    train: Places
    test: Places


class Forecast(NamedTuple):
    """How well one regressor predicts.

    auc_mse    the mean over splits, and over draws of noise
    deviation  the standard deviation over splits; None where there is one
    curve      the mean squared error at each size, mean over splits; curves: that of each split, [splits, sizes]
    by_split   the AUC-MSE of each split
    draws      how often noise was drawn; error: the Monte-Carlo standard error of auc_mse, None for one draw
    """

    regressor: str
    auc_mse: float
    deviation: float | None
    curve: Floats
    by_split: dict[str, float]
    curves: Floats
    draws: int = 1
    error: float | None = None


class Pounce(NamedTuple):
    """What was predicted, how models were held out, and the variance of the noise on what was learnt from."""

    datasets: tuple[str, ...]
    split: str
    forecasts: tuple[Forecast, ...]
    noise: float = 0.0

    def forecast(self, regressor: str) -> Forecast:
        return computed({forecast.regressor: forecast for forecast in self.forecasts}, regressor)

    def rows(self) -> list[dict[str, Any]]:
        """Plain values: regressor, auc_mse, deviation (over splits; None when there is one), split, splits."""
        keys = ("regressor", "auc_mse", "deviation", "split", "splits")
        found = ((f.regressor, f.auc_mse, f.deviation, self.split, len(f.by_split)) for f in self.forecasts)
        return [dict(zip(keys, values, strict=True)) for values in found]


# --- regressors ----------------------------------------------------------------------------------------------


def ridge(x: Floats, y: Floats, new: Floats, alpha: float = 1.0) -> Floats:
    """Least squares with penalty alpha |w|^2 and a free intercept, for every column of y at once."""
    centre, level = x.mean(axis=0), y.mean(axis=0)
    a, b = x - centre, y - level
    n, k = a.shape
    if k <= n:
        weights = np.linalg.solve(a.T @ a + alpha * np.eye(k), a.T @ b)
    else:  # the same solution from the smaller system
        weights = a.T @ np.linalg.solve(a @ a.T + alpha * np.eye(n), b)
    return np.asarray(level + (new - centre) @ weights, np.float64)


def knn(x: Floats, y: Floats, new: Floats, neighbours: int = NEIGHBOURS) -> Floats:
    """The mean of the nearest training models by Euclidean distance on S, at most as many as there are; ties by row."""
    squared = ((new * new).sum(axis=1)[:, None] + (x * x).sum(axis=1)) - 2 * new @ x.T
    # Rounded, so that the product's last digits do not order models that are equally near.
    nearest = np.argsort(np.round(squared, 12), axis=1, kind="stable")[:, : min(neighbours, len(x))]
    return np.asarray(y[nearest].mean(axis=1), np.float64)


def mean(x: Floats, y: Floats, new: Floats) -> Floats:
    """The training mean, whatever the new model did."""
    return np.broadcast_to(y.mean(axis=0), (len(new), y.shape[1])).astype(np.float64)


def _perceptron(*layers: int) -> Regressor:
    def fit_and_predict(x: Floats, y: Floats, new: Floats) -> Floats:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        network = MLPRegressor(hidden_layer_sizes=layers, solver="lbfgs", max_iter=2000, random_state=0)
        with Workers(1), warnings.catch_warnings():  # small products: threads of BLAS would wait for each other
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(x, y if y.shape[1] > 1 else y.ravel())
        return np.asarray(network.predict(new), np.float64).reshape(len(new), y.shape[1])

    return fit_and_predict


REGRESSORS: dict[str, Regressor] = {
    "ridge": ridge,
    "knn": knn,
    "mlp12": _perceptron(12),
    "mlp12_12": _perceptron(12, 12),
    "mean": mean,
}
DEFAULT_REGRESSORS = ("ridge", "knn", "mean")
NETWORK_DRAWS = 3
"""A network takes seconds where the others take milliseconds, so noise is drawn for it at most this often."""


def find_regressor(name: str) -> Regressor:
    if name not in REGRESSORS:
        raise UsageError(
            f'There is no regressor "{name}"; there are {", ".join(REGRESSORS)}.{did_you_mean(name, REGRESSORS)}'
        )
    return REGRESSORS[name]


# --- splits --------------------------------------------------------------------------------------------------


_ONE_FAMILY = "All models are of one family, and {} would need at least two families."


def random_split(models: int, share: float = 0.2, seed: int = 42) -> list[Split]:
    """One split; the paper's is share 0.2 and seed 42 of scikit-learn's train_test_split, in leaderboard order."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(models), test_size=share, random_state=seed)
    return [Split("random", train, test)]


def grouped_splits(families: Sequence[str]) -> list[Split]:
    """Each family held out once, the others train."""
    names = np.asarray(families)
    distinct = list(dict.fromkeys(families))
    if len(distinct) < 2:
        raise InputError(_ONE_FAMILY.format("a grouped split"))
    return [Split(name, np.flatnonzero(names != name), np.flatnonzero(names == name)) for name in distinct]


def kfold_splits(models: int, folds: int = 5, seed: int = 0, families: Sequence[str] | None = None) -> list[Split]:
    """Models shuffled, cut into `folds` parts, each held out once; with `families`, no family is cut.

    Families are taken in a random order, the largest first, and each goes to the fold that has the fewest models.
    """
    rng = np.random.default_rng(seed)
    if families is None:
        if not 2 <= folds <= models:
            raise UsageError(f"{models} models can be cut into 2 to {models} folds, not {folds}.")
        parts = np.array_split(rng.permutation(models), folds)
    else:
        names = list(dict.fromkeys(families))
        if len(names) < 2:
            raise InputError(_ONE_FAMILY.format("folds"))
        if not 2 <= folds <= len(names):
            raise UsageError(
                f"{models} models of {len(names)} families can be cut into 2 to {len(names)} folds, not {folds}: "
                "models of one family stay together (--families none takes each model by itself)."
            )
        members = {name: np.flatnonzero(np.asarray(families) == name) for name in names}
        shuffled = sorted((names[j] for j in rng.permutation(len(names))), key=lambda name: -len(members[name]))
        cut: list[list[int]] = [[] for _ in range(folds)]
        for name in shuffled:
            min(cut, key=len).extend(members[name].tolist())
        parts = [np.array(part, np.int64) for part in cut]
    return [
        Split(f"fold {k + 1}", np.sort(np.concatenate(parts[:k] + parts[k + 1 :])), np.sort(part))
        for k, part in enumerate(parts)
    ]


def make_splits(matrix: Matrix, split: Splitting, *, folds: int = 5, seed: int = 42) -> list[Split]:
    """The splits of a matrix; folds cut no family where some family has several models."""
    count = len(matrix.models)
    if split == "grouped":
        return grouped_splits(matrix.families)
    if split == "random":
        return random_split(count, seed=seed)
    if split == "kfold":
        return kfold_splits(count, folds, seed, matrix.families if matrix.grouped else None)
    raise UsageError(f'split is "grouped", "random" or "kfold", not {split!r}.')


# --- curves --------------------------------------------------------------------------------------------------


def error_curve(train: Floats, test: Floats, order: Sequence[int], regressor: Regressor) -> Floats:
    """The mean squared error on the test models, over all predicted cells, for |S| = 1 ... d - 1.

    With more than 100 datasets it is measured at 100 sizes, evenly spread, and straight lines join them.
    """
    every = np.arange(1, len(order))
    measured = every if len(every) <= MOST_SIZES else np.unique(np.linspace(1, len(every), MOST_SIZES).round())
    errors = []
    for size in measured.astype(int).tolist():
        known, rest = list(order[:size]), list(order[size:])
        predicted = regressor(train[:, known], train[:, rest], test[:, known])
        errors.append(float(np.mean((predicted - test[:, rest]) ** 2)))
    return np.interp(every, measured, errors)


def noisy(values: Floats, variance: float, seed: int | Sequence[int] = 0) -> Floats:
    """Values with Gaussian noise added; the argument is the variance, which fits the paper's numbers."""
    if not (math.isfinite(variance) and variance >= 0):
        raise UsageError(f"noise is a variance: a finite number of 0 or more, not {variance:g}.")
    if variance == 0:
        return values
    return values + np.random.default_rng(seed).normal(0.0, math.sqrt(variance), values.shape)


def pounce(
    matrix: Matrix,
    regressors: Iterable[str] = DEFAULT_REGRESSORS,
    *,
    split: Splitting = "grouped",
    folds: int = 5,
    noise: float = 0.0,
    draws: int = 1,
    seed: int = 42,
    noise_seed: int = 0,
    tick: Callable[[float], object] = lambda _: None,
) -> Pounce:
    """AUC-MSE of each regressor, with the order of datasets found anew on the training models of every split.

    The matrix must have no gaps (`Matrix.complete`).

    Args:
        matrix: Scores of models on datasets.
        regressors: What predicts.
        split: Who is held out: each family once, a fifth of the models, or each of `folds` parts once.
        folds: Parts of a k-fold split.
        noise: Variance of Gaussian noise on the training scores; the order of the datasets is found before it is added.
        draws: How often noise is drawn for each split (for a network at most 3 times).
        seed: Seed of the split.
        noise_seed: Seed of the noise.
        tick: Called before each piece of work with its share of all.
    """
    chosen = {name: find_regressor(name) for name in regressors}
    if draws < 1:
        raise UsageError(f"draws must be at least 1, not {draws}.")
    left = usable(matrix)
    values = left.normalised()
    if not np.isfinite(values).all():
        raise InputError("The matrix has missing values; predictions need a complete one: call complete() first.")
    splits = make_splits(left, split, folds=folds, seed=seed)
    times = draws if noise != 0 else 1
    curves: dict[str, list[list[Floats]]] = {name: [[] for _ in splits] for name in chosen}
    with Workers(1):
        for k, part in enumerate(splits):
            train, test = values[part.train], values[part.test]
            order = greedy(similarity_matrix(train, SIMILARITY))
            for draw in range(times):
                known = noisy(train, noise, (noise_seed, k, draw))
                for name, regressor in chosen.items():
                    tick(1 / (len(splits) * times * len(chosen)))
                    if name.startswith("mlp") and draw >= NETWORK_DRAWS:
                        continue
                    curves[name][k].append(error_curve(known, test, order, regressor))
    names = [part.name for part in splits]
    return Pounce(left.datasets, split, tuple(_forecast(name, names, curves[name]) for name in chosen), noise)


def _forecast(regressor: str, names: Sequence[str], curves: Sequence[Sequence[Floats]]) -> Forecast:
    """`curves` for each split and each draw of noise."""
    means = np.array([np.mean(drawn, axis=0) for drawn in curves])
    areas = np.array([[area(curve) for curve in drawn] for drawn in curves])
    found, by_draw = areas.mean(axis=1), areas.mean(axis=0)
    return Forecast(
        regressor,
        float(found.mean()),
        float(found.std(ddof=1)) if len(found) > 1 else None,
        means.mean(axis=0),
        dict(zip(names, found.tolist(), strict=True)),
        means,
        len(by_draw),
        float(by_draw.std(ddof=1) / math.sqrt(len(by_draw))) if len(by_draw) > 1 else None,
    )
