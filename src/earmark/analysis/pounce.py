"""Pounce: from the scores of a new model on a few datasets, its scores on the others.

The models are split into training and held-out ones. An order of the datasets is found on the training models, and for
|S| = 1 ... d - 1 a regressor learns scores on S -> scores on the rest. The mean squared error on the held-out models
makes a curve; AUC-MSE is the area under it, x rescaled to [0, 1], in normalised units (0 chance, 1 best): lower is
better.

`mean`, the training mean, is the bar: it looks at nothing the new model did. A split by families is the honest one
where versions of a model stand in the matrix, because near-duplicates in a random split tell the answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.matrix import Matrix, usable
from earmark.analysis.prowl import area, computed, greedy
from earmark.analysis.similarities import similarity_matrix
from earmark.errors import InputError, UsageError, did_you_mean

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
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
    """How well one regressor predicts: the AUC-MSE of each split, their mean and standard deviation, the mean curve."""

    regressor: str
    auc_mse: float
    deviation: float | None
    curve: Floats
    by_split: dict[str, float]


class Pounce(NamedTuple):
    datasets: tuple[str, ...]
    split: str
    forecasts: tuple[Forecast, ...]

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
        with warnings.catch_warnings():
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


def find_regressor(name: str) -> Regressor:
    if name not in REGRESSORS:
        raise UsageError(
            f'There is no regressor "{name}"; there are {", ".join(REGRESSORS)}.{did_you_mean(name, REGRESSORS)}'
        )
    return REGRESSORS[name]


# --- splits --------------------------------------------------------------------------------------------------


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
        raise InputError("All models are of one family; a grouped split needs at least two families.")
    return [Split(name, np.flatnonzero(names != name), np.flatnonzero(names == name)) for name in distinct]


def kfold_splits(models: int, folds: int = 5, seed: int = 0) -> list[Split]:
    """Models shuffled, cut into `folds` parts, each held out once."""
    if not 2 <= folds <= models:
        raise UsageError(f"{models} models can be cut into 2 to {models} folds, not {folds}.")
    parts = np.array_split(np.random.default_rng(seed).permutation(models), folds)
    return [
        Split(f"fold {k + 1}", np.sort(np.concatenate(parts[:k] + parts[k + 1 :])), np.sort(part))
        for k, part in enumerate(parts)
    ]


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


def noisy(values: Floats, variance: float, seed: int = 0) -> Floats:
    """Values with Gaussian noise added; the argument is the variance, which fits the paper's numbers."""
    if variance <= 0:
        return values
    return values + np.random.default_rng(seed).normal(0.0, np.sqrt(variance), values.shape)


def pounce(
    matrix: Matrix,
    regressors: Iterable[str] = DEFAULT_REGRESSORS,
    *,
    split: Literal["grouped", "random", "kfold"] = "grouped",
    noise: float = 0.0,
    draws: int = 1,
    seed: int = 42,
) -> Pounce:
    """AUC-MSE of each regressor, with the order of datasets found anew on the training models of every split.

    The matrix must have no gaps (`Matrix.complete`). `noise` is the variance of Gaussian noise on the training scores,
    drawn `draws` times for each split; the order of the datasets is found before it is added.
    """
    chosen = {name: find_regressor(name) for name in regressors}
    left = usable(matrix)
    values = left.normalised()
    if not np.isfinite(values).all():
        raise InputError("The matrix has missing values; predictions need a complete one: call complete() first.")
    curves: dict[str, dict[str, Floats]] = {name: {} for name in chosen}
    make_splits: dict[str, Callable[[], list[Split]]] = {
        "grouped": lambda: grouped_splits(left.families),
        "random": lambda: random_split(len(left.models), seed=seed),
        "kfold": lambda: kfold_splits(len(left.models), seed=seed),
    }
    if split not in make_splits:
        raise UsageError(f'split is "grouped", "random" or "kfold", not {split!r}.')
    splits = make_splits[split]()
    for k, part in enumerate(splits):
        train, test = values[part.train], values[part.test]
        order = greedy(similarity_matrix(train, SIMILARITY))
        for draw in range(draws if noise > 0 else 1):
            known = noisy(train, noise, seed + k + len(splits) * draw)
            label = f"{part.name}, draw {draw + 1}" if draws > 1 and noise > 0 else part.name
            for name, regressor in chosen.items():
                curves[name][label] = error_curve(known, test, order, regressor)
    return Pounce(left.datasets, split, tuple(_forecast(name, curves[name]) for name in chosen))


def _forecast(regressor: str, curves: dict[str, Floats]) -> Forecast:
    areas = {name: area(curve) for name, curve in curves.items()}
    found = np.array(list(areas.values()))
    deviation = float(found.std(ddof=1)) if len(found) > 1 else None
    return Forecast(regressor, float(found.mean()), deviation, np.mean(list(curves.values()), axis=0), areas)
