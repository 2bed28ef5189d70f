"""Candidate lists that stay on the device: settled under one set of weights after another, and added to.

    list of row r    (place, lower bound or distance d) x length, a floor, as in `neighbour_kernels`
         |  settle   value = d * weight[place];  k-th smallest;  bounds that could matter become distances;  again
         v
    k nearest        ordered by (value to 40 bits, place), and whether the floor proves them

All rows take a step together, where the compiled kernel takes them one by one. Every number is made by the same
operations on float64, one at a time, so places and values are those of the CPU to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from earmark.geometry._candidates import Floats, Ints
from earmark.geometry.neighbour_kernels import AHEAD
from earmark.geometry.pair_kernels import SPLIT, TIE_SHARE

Tensor = Any
Exact = Callable[[Tensor, Tensor], Tensor]
"""Distances of some rows of a part, by their numbers in it, and some columns."""

SETTLED = 1 << 22  # entries settled at once: what is made of them stays in the cache of a large GPU


class Part(NamedTuple):
    """The lists of some rows; see `_candidates.Lists`."""

    places: Tensor  # int32 [R, L]
    distances: Tensor  # float64 [R, L]
    known: Tensor  # bool [R, L]
    counts: Tensor  # int64 [R]
    floors: Tensor  # float64 [R]


class Settled(NamedTuple):
    """The k nearest of some rows, -1 and NaN where a list has fewer, and which rows are certain."""

    places: Tensor
    values: Tensor
    certified: Tensor


class TorchLists:
    """The lists of every row, on the device (`_candidates.Kept`)."""

    def __init__(self, rows: int, length: int, device: Any) -> None:
        shape = (rows, length)
        self.all = Part(
            torch.zeros(shape, dtype=torch.int32, device=device),
            torch.zeros(shape, dtype=torch.float64, device=device),
            torch.zeros(shape, dtype=torch.bool, device=device),
            torch.zeros(rows, dtype=torch.int64, device=device),
            torch.full((rows,), torch.inf, dtype=torch.float64, device=device),
        )

    @property
    def length(self) -> int:
        return int(self.all.places.shape[1])

    def part(self, rows: Tensor | slice) -> Part:
        return Part(*(values[rows] for values in self.all))

    def store(self, rows: Tensor, part: Part) -> None:
        """Take over the lists of `rows`, which may be shorter than these."""
        length = part.places.shape[1]
        self.all.places[rows, :length] = part.places
        self.all.distances[rows, :length] = part.distances
        self.all.known[rows, :length] = part.known
        self.all.counts[rows] = part.counts
        self.all.floors[rows] = part.floors

    def forget(self, rows: Ints) -> None:
        at = torch.from_numpy(np.ascontiguousarray(rows)).to(self.all.counts.device)
        self.all.counts[at] = 0
        self.all.floors[at] = 0.0

    def proofs(self) -> tuple[Ints, Floats]:
        return self.all.counts.cpu().numpy(), self.all.floors.cpu().numpy()

    def add(self, rows: Tensor, at: Tensor, columns: Tensor) -> NDArray[np.int8]:
        """Add columns to the lists of `rows`: pairs (number in `rows`, column) in the order of the rows, unless listed.

        Per row 0 where nothing was new, 1 where something was, 2 where it did not fit.
        """
        places, distances, known, counts, _ = self.all
        changed = torch.zeros(len(rows), dtype=torch.int8, device=places.device)
        filled = torch.arange(self.length, device=places.device)
        new = torch.ones(len(at), dtype=torch.bool, device=places.device)
        step = max(1, SETTLED // max(1, self.length))
        for start in range(0, len(at), step):
            cut = slice(start, start + step)
            own = rows[at[cut]]
            listed = (places[own] == columns[cut, None]) & (filled < counts[own, None])
            new[cut] = ~listed.any(1)
        at, columns = at[new], columns[new]
        before = torch.arange(len(at), device=places.device) - torch.searchsorted(at, at)
        room = counts[rows[at]] + before
        fits = room < self.length
        changed[at] = 1
        changed[at[~fits]] = 2
        at, columns, room = at[fits], columns[fits], room[fits]
        own = rows[at]
        places[own, room] = columns.int()
        distances[own, room] = 0.0
        known[own, room] = False
        counts.index_add_(0, own, torch.ones_like(own))
        return np.asarray(changed.cpu().numpy())


def settle(part: Part, weights: Tensor, k: int, exact: Exact, *, ordered: bool = True) -> Settled:
    """The k smallest values d * weight of each list, whose distances it fills in: `neighbour_kernels.settle`."""
    longest = int(part.counts.max()) if len(part.counts) else 0
    places, distances, known = (values[:, :longest] for values in part[:3])
    counts, floors = part.counts, part.floors
    device = counts.device
    out = Settled(
        torch.full((len(counts), k), -1, dtype=torch.int64, device=device),
        torch.full((len(counts), k), torch.nan, dtype=torch.float64, device=device),
        floors == torch.inf,
    )
    if not longest:
        return out
    factors = weights[places.long()]
    values = distances * factors
    full = bool((counts == longest).all())
    if not full:
        values.masked_fill_(torch.arange(longest, device=device) >= counts[:, None], torch.inf)
    deepest = min(k, longest)
    last = counts.clamp(max=k).sub(1).clamp(min=0)[:, None]
    kth = values.topk(deepest, dim=1, largest=False).values.gather(1, last)
    doubtful = ~known if full else ~known & (values < torch.inf)  # what is known stays known, so this only shrinks
    rows = (doubtful & (values <= kth * (1.0 + TIE_SHARE))).any(1).nonzero()[:, 0]
    while len(rows):
        near = ~known[rows] & (values[rows] <= kth[rows] * (1.0 + AHEAD)) & (values[rows] < torch.inf)
        found, column = near.nonzero(as_tuple=True)
        row = rows[found]
        apart = exact(row, places[row, column].long())
        distances[row, column] = apart
        known[row, column] = True
        values[row, column] = apart * factors[row, column]
        some = values[rows]
        kth[rows] = some.topk(deepest, dim=1, largest=False).values.gather(1, last[rows])
        opened = ~known[rows] & (some <= kth[rows] * (1.0 + TIE_SHARE)) & (some < torch.inf)
        rows = rows[opened.any(1)]
    reach = kth * (1.0 + TIE_SHARE)
    floor = floors[:, None] * (1.0 - TIE_SHARE)
    proven = reach < floor
    if not ordered:
        proven |= kth <= floor
    out.certified.logical_or_((proven & (counts >= k)[:, None])[:, 0])
    width = min(longest, max(deepest, int((values <= reach).sum(1).max())))
    nearest = values.topk(width, dim=1, largest=False)
    chosen, order = nearest.values, nearest.indices
    chosen, listed = _by_rank_and_place(chosen, places.gather(1, order).long())
    beyond = torch.arange(deepest, device=device) >= counts[:, None]
    out.places[:, :deepest] = listed[:, :deepest].masked_fill(beyond, -1)
    out.values[:, :deepest] = chosen[:, :deepest].masked_fill(beyond, torch.nan)
    return out


def _by_rank_and_place(values: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Values in ascending order, and their places, where those that agree to 40 bits are ordered by place."""
    spread = values * SPLIT
    ranks = spread - (spread - values)
    ranks = torch.where(values < torch.inf, ranks, torch.inf)
    tied = (ranks[:, 1:] == ranks[:, :-1]).any(1).nonzero()[:, 0]
    if len(tied):
        by_place = places[tied].argsort(dim=1)
        order = by_place.gather(1, ranks[tied].gather(1, by_place).argsort(dim=1, stable=True))
        values[tied] = values[tied].gather(1, order)
        places[tied] = places[tied].gather(1, order)
    return values, places
