"""Does a dataset say something that the others do not? A verdict with its numbers, for the dataset's author.

    closest       the one other dataset it is most related to, and the R^2 of that relation (stalk)
    predictable   R^2 of predicting it, whole families of models held out, against the training mean: by one other
                  dataset or by all of them together, as the training models recommend; 1 is known already, 0 is not to
                  be had
    shift         how much the ranking of the models changes when it is left out: 1 - Pearson's r of mean win rates

What cannot be predicted is new, or noisy: a dataset with few clips or wrong labels is unpredictable as well. Intervals
of its own scores tell the two apart.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.matrix import Matrix, usable
from earmark.analysis.pounce import Split, grouped_splits, kfold_splits
from earmark.analysis.prowl import mean_win_rate
from earmark.analysis.stalk import KINDS, relations
from earmark.errors import InputError, UsageError, did_you_mean, quoted

Floats = NDArray[np.float64]

REDUNDANT, COVERED, PARTLY = 0.9, 0.7, 0.3
"""From these shares of its variance that others predict, a dataset is called redundant, mostly covered, partly new."""
FEWEST_MODELS = 6
INNER_FOLDS = 5
_FLAT = 1e-12


class Verdict(NamedTuple):
    """What a dataset adds to the others. `rank` counts from the most predictable dataset of the matrix."""

    dataset: str
    verdict: str
    closest: str
    relation: str
    closest_r2: float
    predictable: float
    rank: int
    shift: float
    sentence: str


class Addition(NamedTuple):
    """What a group of datasets adds to the rest.

    coverage     Pearson's r of the mean win rates on the rest and on everything
    agreement    Kendall's tau-b of the models' mean scores on the rest and on the group
    predictable  for each dataset of the group, R^2 of predicting it from the rest, families held out
    best_rest, best_group, and the place that each has on the other side
    """

    group: tuple[str, ...]
    coverage: float
    agreement: float
    predictable: dict[str, float]
    best_rest: str
    best_rest_place: int
    best_group: str
    best_group_place: int
    models: int


def novelty(matrix: Matrix, datasets: Collection[str] | None = None) -> list[Verdict]:
    """A verdict for each dataset, or for those named; the least predictable first."""
    left = _whole(matrix)
    names = left.datasets
    for name in datasets or ():
        if name not in names:
            raise UsageError(f"There is no dataset {quoted(name)} to judge.{did_you_mean(name, names)}")
    values = left.normalised()
    related = relations(values, names)
    splits = _splits(left)
    explained = explained_shares(values, splits)
    order = np.argsort(-explained, kind="stable")
    places = {int(j): place for place, j in enumerate(order, start=1)}
    full = mean_win_rate(values)
    found = []
    for j in reversed(order):
        if datasets is not None and names[j] not in datasets:
            continue
        r2 = np.where(np.arange(len(names)) == j, -1.0, related.r2[j])
        near = int(r2.argmax())
        shift = 1 - _pearson(full, mean_win_rate(np.delete(values, j, axis=1)))
        found.append(
            _verdict(names[j], names[near], KINDS[related.kind[j, near]], float(r2[near]), float(explained[j]),
                     places[int(j)], len(names), shift, bool(np.ptp(values[:, j]) <= _FLAT))
        )  # fmt: skip
    return found


def addition(matrix: Matrix, group: Sequence[str]) -> Addition:
    """What the datasets of a group tell that the others do not."""
    left = _whole(matrix)
    inside = [place for place, name in enumerate(left.datasets) if name in set(group)]
    outside = [place for place in range(len(left.datasets)) if place not in set(inside)]
    if not inside or len(outside) < 1:
        raise InputError("A group of datasets and some others are needed; the matrix has only one of the two.")
    from scipy.stats import kendalltau, rankdata

    values = left.normalised()
    rest, mine = values[:, outside].mean(axis=1), values[:, inside].mean(axis=1)
    splits = _splits(left)
    explained = [explained_shares(values[:, [*outside, j]], splits)[-1] for j in inside]
    places_rest, places_mine = (np.asarray(rankdata(-scores, method="min"), int) for scores in (rest, mine))
    return Addition(
        tuple(left.datasets[j] for j in inside),
        _pearson(mean_win_rate(values), mean_win_rate(values[:, outside])),
        float(kendalltau(rest, mine).statistic),
        {left.datasets[j]: float(r2) for j, r2 in zip(inside, explained, strict=True)},
        left.models[int(rest.argmax())],
        int(places_mine[rest.argmax()]),
        left.models[int(mine.argmax())],
        int(places_rest[mine.argmax()]),
        len(left.models),
    )


def explained_shares(values: Floats, splits: Sequence[Split]) -> Floats:
    """R^2 of each dataset [d] from the others: 1 - error / error of the training mean, over the held-out models.

    Whether one other dataset or all of them predict it is decided anew in every split, by holding out parts of its
    training models. Had the held-out models a say in it, the luckiest of d predictors would win, and noise would look
    predictable. Where all models are equal there is nothing to know, and R^2 is 1.
    """
    d = values.shape[1]
    wrong, blind = np.zeros(d), np.zeros(d)
    for split in splits:
        inner = sum((np.stack(misses(values, part)) for part in _inner(split, splits)), np.zeros((3, d)))
        together, alone, mean = misses(values, split)
        wrong += np.where(inner[1] < inner[0], alone, together)
        blind += mean
    varies = blind > _FLAT
    return np.where(varies, 1 - np.divide(wrong, blind, out=np.zeros(d), where=varies), 1.0)


def misses(values: Floats, split: Split) -> tuple[Floats, Floats, Floats]:
    """Squared errors of each dataset [d] over the held-out models: from all others, from a single one, from the mean.

    The single one is that with the largest correlation over the training models. Columns are divided by their spread
    over these, because R^2 has no scale. The ridge's penalty is 1 for a single dataset and one for each training model
    for many.

    All d regressions on the d - 1 other columns come from one inverse: with P = (A'A + alpha I)^-1 the weights of
    column j on the others are -P[:, j] / P[j, j].
    """
    train, test = values[split.train], values[split.test]
    d = values.shape[1]
    spread = train.std(axis=0)
    scale = np.where(spread > _FLAT, spread, 1.0)
    centre = train.mean(axis=0)
    past, new = (train - centre) / scale, (test - centre) / scale
    products = past.T @ past
    inverse = np.linalg.inv(products + len(train) * np.eye(d))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    related = np.abs(products)  # of columns with unit spread, so these are correlations
    np.fill_diagonal(related, -1.0)
    chosen = related.argmax(axis=0)
    single = products[chosen, np.arange(d)] / (products[chosen, chosen] + 1.0)
    return (
        ((new @ weights - new) ** 2).sum(axis=0),
        ((new[:, chosen] * single - new) ** 2).sum(axis=0),
        (new**2).sum(axis=0),
    )


def _inner(split: Split, splits: Sequence[Split]) -> list[Split]:
    """The training models of a split in INNER_FOLDS parts or fewer; what is held out together elsewhere stays so."""
    groups = [other.test for other in splits if other is not split]
    if len(groups) < 2:
        groups = [np.array([row]) for row in split.train]
    tests = [np.concatenate(groups[k::INNER_FOLDS]) for k in range(min(INNER_FOLDS, len(groups)))]
    return [Split(f"{split.name}, {k}", np.setdiff1d(split.train, test), test) for k, test in enumerate(tests)]


def _whole(matrix: Matrix) -> Matrix:
    left = usable(matrix, models=FEWEST_MODELS, datasets=3).complete()
    return usable(left, models=FEWEST_MODELS, datasets=3)


def _splits(matrix: Matrix) -> list[Split]:
    if matrix.grouped and len(set(matrix.families)) > 1:
        return grouped_splits(matrix.families)
    return kfold_splits(len(matrix.models), min(10, len(matrix.models)))


def _pearson(one: Floats, other: Floats) -> float:
    if np.ptp(one) <= _FLAT or np.ptp(other) <= _FLAT:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _verdict(
    name: str, near: str, relation: str, r2: float, explained: float, place: int, count: int, shift: float, flat: bool
) -> Verdict:
    levels = (
        (REDUNDANT, "redundant", "The other datasets already tell what it tells"),
        (COVERED, "mostly covered", "The other datasets tell most of what it tells"),
        (PARTLY, "partly new", "It tells something that the other datasets do not"),
        (-np.inf, "new", "The other datasets do not tell what it tells, so it is new (or noisy)"),
    )
    word, start = next((word, start) for least, word, start in levels if explained >= least)
    share = f"{100 * max(0.0, explained):.0f} % of the differences between models"
    sentence = (
        f"{start}: from them, {share} on it can be predicted for a family of models not seen before. "
        f"Closest is {near} ({'no relation' if relation == 'NONE' else relation.lower()}, R² {r2:.2f}); leaving it out "
        f"changes the ranking of the models by {shift:.3f}. It is number {place} of {count} from the most predictable."
    )
    if flat:
        word, sentence = "constant", "Every model has the same score on it: it tells nothing, and no ranking needs it."
    return Verdict(name, word, near, relation, r2, explained, place, shift, sentence)
