"""ICDM: factors that give every point the same mean distance to its K nearest neighbours.

    d'_ij = d_ij delta_i delta_j        delta_i = product over t < T of sqrt(mubar(t) / mu_i(t))

with mu_i(t) the mean corrected distance of i to its K nearest, *re-found* under the factors of step t, and mubar their
mean. The matrix is never rewritten: row i ranks by d_ij delta_j, and mu_i is delta_i times the mean of the K smallest.
(Jegou et al. 2010)

Exact, with two full searches instead of T + 1:

    plain search    the K nearest under factors 1 -> first step
    rehearsal       another step with those same neighbours: a guess where the factors are going
    second search   candidate lists under the guess, two to three times K long, with a floor: d_ij guess_j of
                    whatever is not listed is no less
    every step      the K nearest among the candidates of a row; proven where  K-th < floor * delta_j / guess_j
                    for every j

The last line fails for the few columns j whose factors fell most (outliers): rows *visit* those columns in a narrow
product and add what is near to their lists. A row that would have to visit too many is searched alone, and where that
is no longer cheap all lists are made anew. The result is that of T + 1 full searches, to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from earmark.errors import UsageError
from earmark.geometry._candidates import Floats, Ints, Kept, Pairs, search
from earmark.geometry.kernels import TIE_SHARE
from earmark.geometry.neighbours import SPARE, backend_for, check_k
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Neighbours, Progress
from earmark.workers import Workers

LONGER, EXTRA = 2, 64  # a list is made with LONGER * K + EXTRA candidates
ROOM = 32  # and has room for a few more
REHEARSALS = 1
CHOICES = 65  # ways to share the uncertain between visits and searches that are weighed up
ALONE = 2.0  # what searching a row alone costs, in rows of a full search


class Icdm(NamedTuple):
    """Factors of the points, and the space they make."""

    factors: Floats
    mean: Floats  # corrected mean distance of each point to its K nearest
    target: float  # the mean of those
    neighbours: Neighbours  # the K nearest in the corrected space, with corrected distances
    spread: tuple[Floats, Floats]  # lowest and highest mean / target - 1, after each iteration


def icdm(
    space: Space,
    k: int,
    iterations: int = 10,
    *,
    threads: int = 1,
    memory: int = 2 << 30,
    device: str = "cpu",
    progress: Progress | None = None,
    start: Neighbours | None = None,
) -> Icdm:
    """The ICDM factors of a space's points.

    `start` may hold the plain neighbours of the space (at least k of each), which spares the first search. `progress`
    is called with the rows just finished, (iterations + 1) * n in all.

    A point whose K nearest all lie on it has no scale of its own: its mean stays 0, its factor is not changed, and it
    does not count in `target`. Where that holds for every point, all factors are 1 and the target is 0. So factors are
    finite, and the same for vectors of any scale.
    """
    check_k(k, space.n - 1)
    if iterations < 1:
        raise UsageError(f"iterations must be at least 1, not {iterations}.")
    if start is not None and start.places.shape[1] < k:
        raise UsageError(f"start holds {start.places.shape[1]} neighbours of each point: {k} are needed.")
    factors = np.ones(space.n)
    spread = np.zeros((2, iterations))
    with Workers(threads) as workers:
        searches = _Searches(space, k, workers, threads, memory, device)
        found = searches.first() if start is None else Neighbours(start.places[:, :k], start.distances[:, :k])
        mean, target = _means(factors, found.distances)
        for done in range(iterations):
            if progress is not None:
                progress(space.n)
            before, factors = factors, _step(factors, mean, target)
            found = searches.again(factors, before, found, iterations - done - 1)
            mean, target = _means(factors, found.distances)
            share = mean[mean > 0.0] / (target or 1.0) - 1.0
            spread[:, done] = share.min(initial=0.0), share.max(initial=0.0)
    if progress is not None:
        progress(space.n)
    neighbours = Neighbours(found.places, found.distances * factors[:, None])
    return Icdm(factors, mean, target, neighbours, (spread[0], spread[1]))


def _means(factors: Floats, distances: Floats) -> tuple[Floats, float]:
    """mu of each point from its distances times its neighbours' factors, and their mean, without the points at 0."""
    mean = factors * distances.mean(axis=1)
    scaled = mean > 0.0
    return mean, float(mean[scaled].mean()) if scaled.any() else 0.0


def _step(factors: Floats, mean: Floats, target: float) -> Floats:
    return factors * np.sqrt(np.divide(target, mean, out=np.ones(len(mean)), where=mean > 0.0))


class _Plan(NamedTuple):
    """How to be certain of every row: which rows should visit which columns, and which are searched alone."""

    cost: float  # in full searches
    visits: list[tuple[Ints, Ints]]
    alone: Ints


class _Searches:
    """The K nearest of every point under factors that move less and less from call to call."""

    def __init__(self, space: Space, k: int, workers: Workers, threads: int, memory: int, device: str) -> None:
        self.pairs, self.k, self.workers = Pairs.of(space), k, workers
        self.backend = backend_for(device, self.pairs, threads, memory)
        self.rows = np.arange(space.n)
        self.length = min(LONGER * k + EXTRA, space.n)
        self.lists: Kept | None = None
        self.made_under: list[Floats] = []  # the factors that lists were made under
        self.made = np.zeros(space.n, np.int64)  # which of them, for each row
        self.found = Neighbours(np.full((space.n, k), -1), np.full((space.n, k), np.nan))

    def first(self) -> Neighbours:
        """The plain neighbours. No lists yet: the first step moves the factors far."""
        ones = np.ones(len(self.rows))
        search(self.pairs, self.backend, self.workers, ones, self.k, self.k + SPARE, self.found, ordered=False)
        return self.found

    def again(self, factors: Floats, before: Floats, known: Neighbours, to_come: int) -> Neighbours:
        """The neighbours under `factors`, given those `known` under the factors `before`.

        `to_come`: how many more times this will be asked. What was given last is overwritten.
        """
        if self.lists is not None:
            self.backend.settle(self.workers, self.lists, None, factors, self.k, self.found)
            known, before = self.found, factors
        plan = self._plan(factors, ordered=not to_come)
        if plan.cost * (to_come + 1) > 1.0:
            self._list(factors, _rehearsed(factors, before, known))
            plan = self._plan(factors, ordered=not to_come)
        left = np.concatenate([plan.alone, *(self._visit(factors, *visit) for visit in plan.visits)])
        if len(left):
            search(
                self.pairs, self.backend, self.workers, factors, self.k, self.length, self.found,
                rows=left, keep=self.lists, ordered=not to_come,
            )  # fmt: skip
            self.made[left] = len(self.made_under)
            self.made_under.append(factors)
        return self.found

    def _plan(self, factors: Floats, *, ordered: bool) -> _Plan:
        """What it takes to be certain of the neighbours that the lists gave."""
        if self.lists is None:
            return _Plan(np.inf, [], self.rows)
        n = len(self.rows)
        cost, visits, alone = 0.0, [], [self.rows[:0]]
        counts, floors = self.lists.proofs()
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = self.found.distances[:, -1] / floors * (1.0 + 4 * TIE_SHARE)
        needed[counts < self.k] = np.inf
        needed[np.isnan(needed)] = np.inf if ordered else 0.0  # 0 of 0: which points lie at 0, not how far they are
        for number, under in enumerate(self.made_under):
            ratio = factors / under
            rows = self.rows[(self.made == number) & (needed >= ratio.min())]  # the others are certain
            if not len(rows):
                continue
            sorted_needs = np.sort(needed[rows])
            edges = np.append(sorted_needs[np.linspace(0, len(rows) - 1, CHOICES).astype(np.int64)], 0.0)
            edges = edges[np.isfinite(edges)]  # a row whose list proves nothing is searched alone
            visited = np.searchsorted(np.sort(ratio), edges, side="right")
            left = len(rows) - np.searchsorted(sorted_needs, edges, side="right")
            costs = (len(rows) - left) * visited / n**2 + ALONE * left / n
            best = int(costs.argmin())
            cost += float(costs[best])
            fits = needed[rows] <= edges[best]
            alone.append(rows[~fits])
            columns = np.flatnonzero(ratio <= edges[best])
            if len(columns) and fits.any():
                visits.append((rows[fits], columns))
        return _Plan(cost, visits, np.concatenate(alone))

    def _list(self, factors: Floats, guess: Floats) -> None:
        """Make every list under the guess and settle it under the factors."""
        self.lists = self.backend.keep_lists(self.length + ROOM)
        self.made_under, self.made[:] = [guess], 0
        for _ in self.backend.find(
            self.workers, guess, factors, np.float32, self.rows, self.length, self.k, self.found, keep=self.lists
        ):
            pass

    def _visit(self, factors: Floats, rows: Ints, columns: Ints) -> Ints:
        """Add what is near among `columns` to the lists of `rows` and settle them; return the rows it did not fit."""
        reaches = np.zeros(len(self.rows))
        reaches[rows] = self.found.distances[rows, -1]
        grown, full = [self.rows[:0]], [self.rows[:0]]
        for block, changed in self.backend.visit(self.workers, factors, rows, columns, reaches, self.lists):
            grown.append(block[changed == 1])
            full.append(block[changed == 2])
        if len(settled := np.concatenate(grown)):
            self.backend.settle(self.workers, self.lists, settled, factors, self.k, self.found)
        return np.concatenate(full)


def _rehearsed(factors: Floats, before: Floats, known: Neighbours) -> Floats:
    """A guess at the factors to come: a few steps with the neighbours as they were known under the factors `before`."""
    plain = known.distances / before[known.places]
    for _ in range(REHEARSALS):
        factors = _step(factors, *_means(factors, plain * factors[known.places]))
    return factors
