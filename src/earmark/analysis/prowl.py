"""Prowl: which few datasets stand for all of them, and how well.

    similarity of datasets --greedy--> an order --mean win rates--> a coverage curve --> SCAUC, |S*|

The order is found from similarities alone (`greedy`); how good it is, is measured by the ranking it gives the models
(`coverage_curve`). The two need not agree, which is why `random_orders` and `exact_coverage` stand beside them.

Conventions: values are normalised, [models, datasets], NaN where missing; ties between datasets go to the lowest index,
and what differs by less than 1e-12 is a tie. A model's win rate on a dataset is the share of the other models with a
score there that it strictly beats; its mean win rate is over the datasets of the subset on which it has a score. A
subset on which no two models can be told apart covers nothing: 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.matrix import Matrix, usable
from earmark.analysis.similarities import NINE, similarity_matrix
from earmark.errors import InputError, UsageError

Floats = NDArray[np.float64]
Order = tuple[int, ...]
Result = TypeVar("Result")

THRESHOLD = 0.95
TIE = 1e-12
MOST_SUBSETS = 50_000_000


class Selection(NamedTuple):
    """An order of the datasets and how the growing subset covers the whole.

    coverage     eta for the first 1, 2, ... d datasets
    size         the first size whose coverage reaches the threshold; stable_size: it never falls below it again
    beats_random the share of random orders with no larger SCAUC; beats_random_early: up to max(2, size) (Max2)
    swapped      the share of pairs of models that the first `size` datasets put the other way round than all do; ties
                 count as neither
    same_best    whether the model that leads on all datasets leads (or shares the lead) on these
    """

    name: str
    order: Order
    coverage: Floats
    scauc: float
    size: int
    stable_size: int
    beats_random: float | None = None
    beats_random_early: float | None = None
    swapped: float = 0.0
    same_best: bool = True


class RandomOrders(NamedTuple):
    """Coverage curves [orders, d] of random orders, with the SCAUC and the sizes of each."""

    coverage: Floats
    scauc: Floats
    size: NDArray[np.int64]
    stable_size: NDArray[np.int64]


class BestSubset(NamedTuple):
    """A subset found by looking at all of its size, the quantity in which none is better, and the pairs it swaps."""

    members: Order
    value: float
    swapped: float = 0.0


def computed(results: Mapping[str, Result], name: str) -> Result:
    """One of the results by name; UsageError where it is none of them."""
    if name not in results:
        raise UsageError(f'"{name}" was not computed; there are {", ".join(results)}.')
    return results[name]


class Prowl(NamedTuple):
    """What `prowl` found: one selection for each similarity, the two greedy baselines, and the random orders."""

    datasets: tuple[str, ...]
    selections: tuple[Selection, ...]
    random: RandomOrders

    def selection(self, name: str) -> Selection:
        return computed({selection.name: selection for selection in self.selections}, name)

    def rows(self) -> list[dict[str, Any]]:
        """Plain values, `random` first: the name of the similarity, its order in names, the fields of `Selection`."""
        drawn = self.random
        means = (float(column.mean()) for column in (drawn.scauc, drawn.size, drawn.stable_size))
        found: list[tuple[Any, ...]] = [("random", *means, [], None, None, None, None)] if drawn.scauc.size else []
        for s in self.selections:
            order = [self.datasets[j] for j in s.order]
            beaten = (s.beats_random, s.beats_random_early)
            found.append((s.name, s.scauc, s.size, s.stable_size, order, *beaten, s.swapped, s.same_best))
        keys = (
            "similarity", "scauc", "size", "stable_size", "order", "beats_random", "beats_random_early", "swapped",
            "same_best",
        )  # fmt: skip
        return [dict(zip(keys, values, strict=True)) for values in found]


# --- orders --------------------------------------------------------------------------------------------------


def greedy(similarity: Floats, beam: int = 1) -> Order:
    """SimBA's Algorithm 1: add the dataset that raises the proxy coverage most, until all are in.

    With `beam` b the b best subsets of each size are kept, each with the order that has the largest area under delta.
    """
    d = len(similarity)
    if beam < 1:
        raise UsageError(f"beam must be at least 1, not {beam}.")
    reach = np.array(similarity, np.float64)
    np.fill_diagonal(reach, 1.0)
    kept: list[tuple[float, Order, Floats]] = [(0.0, (), np.full(d, -np.inf))]
    for _ in range(d):
        grown: list[tuple[float, float, Order, int]] = []
        for place, (area, order, covered) in enumerate(kept):
            delta = np.maximum(covered[:, None], reach).mean(axis=0)
            delta[list(order)] = -np.inf
            for candidate in _best(delta, beam):
                grown.append((float(delta[candidate]), area + float(delta[candidate]), (*order, candidate), place))
        # Stable: of equals the earlier order, and then the lower index.
        grown.sort(key=lambda entry: (-round(entry[0] / TIE), -round(entry[1] / TIE)))
        chosen: dict[frozenset[int], tuple[float, Order, Floats]] = {}
        for _, area, order, place in grown:
            if len(chosen) < beam and frozenset(order) not in chosen:
                chosen[frozenset(order)] = (area, order, np.maximum(kept[place][2], reach[:, order[-1]]))
        kept = list(chosen.values())
    return kept[0][1]


def _best(scores: Floats, count: int) -> list[int]:
    """The places of the largest scores, ties to the lower index, what is -inf left out."""
    if count == 1:
        return [int(np.flatnonzero(scores >= scores.max() - TIE)[0])]
    places = np.flatnonzero(np.isfinite(scores))
    best = places[np.argsort(-np.round(scores[places] / TIE), kind="stable")[:count]]
    return [int(place) for place in best]


def proxy_curve(similarity: Floats, order: Sequence[int]) -> Floats:
    """delta for the first 1, 2, ... datasets of an order, which is what the search raises.

    It is the mean over all datasets of the largest similarity to one that is in; those that are in have 1.
    """
    reach = np.array(similarity, np.float64)
    np.fill_diagonal(reach, 1.0)
    return np.asarray(np.maximum.accumulate(reach[:, list(order)], axis=1).mean(axis=0), np.float64)


# --- coverage ------------------------------------------------------------------------------------------------


def win_rates(values: Floats) -> Floats:
    """[m, d]: the share of the other models that a model strictly beats on a dataset; NaN where it has no score."""
    from scipy.stats import rankdata

    known = np.isfinite(values)
    # The lowest rank of its tie, less one, is the number of models strictly below; missing ones rank above all.
    beaten = rankdata(np.where(known, values, np.inf), method="min", axis=0) - 1
    others = known.sum(axis=0) - 1
    rates = np.divide(beaten, others, out=np.zeros(values.shape), where=others > 0)
    return np.where(known, rates, np.nan)


def mean_win_rate(values: Floats) -> Floats:
    """[m]: the mean of a model's win rates over the datasets on which it has a score; NaN when there is none."""
    rates = win_rates(values)
    known = np.isfinite(rates)
    count = known.sum(axis=1)
    total = np.where(known, rates, 0.0).sum(axis=1)
    return np.asarray(np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0), np.float64)


class _Race:
    """Win rates prepared for many subsets.

    rates, known  [d, m]: win rates, 0 where missing, and whether there is one; where nothing is missing the rates are
                  centred over the models, so that sums of them are too
    full          the mean win rates on the whole benchmark
    """

    def __init__(self, values: Floats) -> None:
        rates = win_rates(values).T
        known = np.isfinite(rates)
        self.complete = bool(known.all())
        self.full = mean_win_rate(values)
        spread = self.full[np.isfinite(self.full)]
        if spread.size < 2 or np.ptp(spread) <= TIE:
            raise InputError("No model beats another on any dataset; a ranking needs scores that differ.")
        if self.complete:
            self.rates = np.ascontiguousarray(rates - rates.mean(axis=1, keepdims=True))
            self.full = self.full - self.full.mean()
        else:
            self.rates = np.where(known, rates, 0.0)
        self.known = known.astype(np.float64)

    def coverage(self, total: Floats, count: Floats) -> Floats:
        """eta for each row of summed win rates [k, m] and numbers of datasets [k, m]."""
        if not self.complete:
            mean = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
            return _correlations(self.full, mean)
        squares = np.einsum("km,km->k", total, total)
        size = np.sqrt(squares * (self.full @ self.full))
        found: Floats = np.divide(total @ self.full, size, out=np.zeros(len(total)), where=squares > TIE**2)
        return np.clip(found, -1.0, 1.0)

    def curve(self, order: Sequence[int] | NDArray[np.int64]) -> Floats:
        chosen = np.asarray(order, np.int64)
        total = np.cumsum(self.rates[chosen], axis=0)
        return self.coverage(total, total if self.complete else np.cumsum(self.known[chosen], axis=0))

    def means(self, members: Sequence[int]) -> Floats:
        """Mean win rates on some datasets, up to a constant; NaN for a model that has no score on any of them."""
        chosen = list(members)
        count = self.known[chosen].sum(axis=0)
        found = np.divide(self.rates[chosen].sum(axis=0), count, out=np.full(len(count), np.nan), where=count > 0)
        return np.asarray(found, np.float64)


def swapped_pairs(x: Floats, y: Floats) -> float:
    """The share of pairs of models that two lists of values put in opposite orders; a tie in one of them is neither.

    What differs by less than 1e-12 is a tie. 0 where there are fewer than two models.
    """
    a, b = (np.round(side / TIE) for side in (x, y))
    against = sum(int(np.count_nonzero((a[:i] - a[i]) * (b[:i] - b[i]) < 0)) for i in range(1, len(a)))
    return against / math.comb(len(a), 2) if len(a) > 1 else 0.0


def coverage_curve(values: Floats, order: Sequence[int]) -> Floats:
    """eta(S) for S the first 1, 2, ... datasets of the order: Pearson's r of the mean win rates on S and on everything.

    Range [-1, 1], higher is better, 1 when S is everything.
    """
    return _Race(np.asarray(values, np.float64)).curve(order)


def _correlations(full: Floats, means: Floats) -> Floats:
    """Pearson's r of `full` [m] with each row of `means` [k, m], over the models that have both; 0 if one is flat."""
    known = np.isfinite(means) & np.isfinite(full)
    n = known.sum(axis=1, keepdims=True)
    x, y = (np.where(known, side, 0.0) for side in (full, means))
    x, y = (np.where(known, side - side.sum(axis=1, keepdims=True) / np.maximum(n, 1), 0.0) for side in (x, y))
    xx, yy, xy = ((a * b).sum(axis=1) for a, b in ((x, x), (y, y), (x, y)))
    varies = (n[:, 0] >= 2) & (xx > TIE**2) & (yy > TIE**2)
    found: Floats = np.divide(xy, np.sqrt(xx * yy), out=np.zeros(len(n)), where=varies)
    return np.clip(found, -1.0, 1.0)


def area(curve: Floats) -> float:
    """SCAUC of a coverage curve, AUC-MSE of an error curve: trapezoids with x rescaled to [0, 1]; signed.

    The value itself when the curve is one point.
    """
    if len(curve) < 2:
        return float(curve[0])
    return float((curve[1:] + curve[:-1]).sum() / 2 / (len(curve) - 1))


def first_size(coverage: Floats, threshold: float = THRESHOLD) -> int:
    """|S*|: the first size whose coverage is at least the threshold."""
    reached = np.flatnonzero(coverage >= threshold - TIE)
    return int(reached[0]) + 1 if reached.size else len(coverage)


def stable_size(coverage: Floats, threshold: float = THRESHOLD) -> int:
    """The first size from which the coverage never falls below the threshold again."""
    below = np.flatnonzero(coverage < threshold - TIE)
    return min(int(below[-1]) + 2, len(coverage)) if below.size else 1


def random_orders(values: Floats, count: int = 1000, seed: int = 0, threshold: float = THRESHOLD) -> RandomOrders:
    """Coverage of `count` random orders of the datasets."""
    d = values.shape[1]
    rng = np.random.default_rng(seed)
    race = _Race(np.asarray(values, np.float64))
    curves = np.empty((count, d))
    for i in range(count):
        curves[i] = race.curve(rng.permutation(d))
    return RandomOrders(
        curves,
        np.array([area(curve) for curve in curves]),
        np.array([first_size(curve, threshold) for curve in curves], np.int64),
        np.array([stable_size(curve, threshold) for curve in curves], np.int64),
    )


def exact_coverage(values: Floats, size: int) -> BestSubset:
    """The subset of a size with the largest coverage eta itself: no choice of that size ranks the models better.

    It has seen the ranking that it is measured by, so it is an upper bound and not a method. Of equals it is the first
    in lexicographic order.
    """
    race = _Race(np.asarray(values, np.float64))
    d = len(race.rates)
    if not 1 <= size <= d:
        raise UsageError(f"A subset of {d} datasets has from 1 to {d} members, not {size}.")
    if math.comb(d, size) > MOST_SUBSETS:
        raise UsageError(
            f"There are {math.comb(d, size):,} subsets of {size} out of {d} datasets; look for at most "
            f"{MOST_SUBSETS:,}, with a smaller size."
        )
    best = BestSubset((), -math.inf)
    for prefix in itertools.combinations(range(d - 1), size - 1) if size > 1 else [()]:
        chosen, last = list(prefix), np.arange(prefix[-1] + 1 if prefix else 0, d)
        total = race.rates[chosen].sum(axis=0) + race.rates[last]
        count = total if race.complete else race.known[chosen].sum(axis=0) + race.known[last]
        coverage = race.coverage(total, count)
        place = _best(coverage, 1)[0]
        if coverage[place] > best.value + TIE:
            best = BestSubset((*prefix, int(last[place])), float(coverage[place]))
    some = race.means(best.members)
    known = np.isfinite(some) & np.isfinite(race.full)
    return best._replace(swapped=swapped_pairs(race.full[known], some[known]))


# --- everything at once --------------------------------------------------------------------------------------


def prowl(
    matrix: Matrix,
    similarities: Iterable[str] = NINE,
    *,
    orders: int = 1000,
    seed: int = 0,
    beam: int = 1,
    threshold: float = THRESHOLD,
) -> Prowl:
    """Orders by every similarity and by the baselines, with their coverage, against `orders` random orders."""
    left = usable(matrix)
    values = left.normalised()
    chance = random_orders(values, orders, seed, threshold)
    race = _Race(values)
    hardness = np.nanmean(values, axis=0)
    found: dict[str, Order] = {
        name: tuple(np.argsort(sign * hardness, kind="stable").tolist())
        for name, sign in (("greedy_min", 1), ("greedy_max", -1))  # hardest first, easiest first
    }
    for name in similarities:
        found[name] = greedy(similarity_matrix(values, name), beam)
    selections = tuple(_selection(name, order, race, chance, threshold) for name, order in found.items())
    return Prowl(left.datasets, selections, chance)


def _selection(name: str, order: Order, race: _Race, chance: RandomOrders, threshold: float) -> Selection:
    curve = race.curve(order)
    size = first_size(curve, threshold)
    whole, early = area(curve), max(2, size)
    shares: tuple[float | None, float | None] = (None, None)
    if len(chance.scauc):
        starts = np.array([area(other[:early]) for other in chance.coverage])
        shares = float(np.mean(whole >= chance.scauc - TIE)), float(np.mean(area(curve[:early]) >= starts - TIE))
    some = race.means(order[:size])
    known = np.isfinite(some) & np.isfinite(race.full)
    full, some = race.full[known], some[known]
    best = bool(some[full.argmax()] >= some.max() - TIE)
    return Selection(
        name, order, curve, whole, size, stable_size(curve, threshold), *shares, swapped_pairs(full, some), best
    )
