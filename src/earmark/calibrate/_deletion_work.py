"""What leaving out each unit is worked out from: one swept set of places, its units, and the changes found so far."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate.closed_forms import CONTRAST, PAIR_SHARES
from earmark.geometry.factors import Factors
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import ROWS, Swept

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Units:
    """What is left out: `of[place]` is the unit of a place; unit u holds `members[starts[u]:starts[u + 1]]`."""

    kind: str
    of: Ints
    starts: Ints
    members: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1


def units_of(layout: Layout) -> Units:
    """Groups where there are some, else clips."""
    if layout.groups is None:
        places = np.arange(layout.n)
        return Units("clip", places, np.arange(layout.n + 1), places)
    return Units("group", layout.groups, layout.group_starts, layout.group_members)


@dataclass
class Sums:
    """Changes of a metric's sum and number of terms, by unit."""

    totals: Floats
    counts: Floats

    @classmethod
    def zeros(cls, units: int) -> Sums:
        return cls(np.zeros(units), np.zeros(units))

    def add(self, other: Sums) -> None:
        self.totals += other.totals
        self.counts += other.counts

    def mean(self, points: Floats) -> Floats:
        """The mean over the finite points after each change."""
        valid = np.isfinite(points)
        total, count = float(points[valid].sum()), float(valid.sum())
        return share(total + self.totals, count + self.counts)


def share(totals: Floats, counts: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counts > 0.5, totals / counts, np.nan)


@dataclass(frozen=True)
class Cells:
    """Points by class and unit: cell of each place, cells of each class; class, unit and size of each cell."""

    of: Ints
    order: Ints  # places, cell by cell
    bounds: Ints  # where each cell begins in `order`
    starts: Ints
    codes: Ints
    units: Ints
    counts: Floats


def put(change: Sums, units: Ints, before: Floats, after: Floats) -> None:
    """Replace the term of each point by another one in the sums of a unit (-1: of none); NaN is no term."""
    chosen = (units >= 0) & np.isfinite(before)
    stays = chosen & np.isfinite(after)
    size = len(change.totals)
    change.totals -= np.bincount(units[chosen], before[chosen], size)
    change.counts -= np.bincount(units[chosen], minlength=size)
    change.totals += np.bincount(units[stays], after[stays], size)
    change.counts += np.bincount(units[stays], minlength=size)


class PairTotals(Protocol):
    """What a device does for class pairs: see `_deletion_values`."""

    def pair_totals(
        self, protocol: str, pair_sums: Floats, pair_counts: Floats, terms: list[Floats]
    ) -> list[Floats]: ...


class Work:
    """One set of places, swept once; what leaving out each unit does to it."""

    def __init__(
        self,
        space: Space,
        layout: Layout,
        swept: dict[str, Swept],
        units: Units,
        metrics: frozenset[str],
        factors: Factors | None,
        threads: int,
        memory: int,
        rows: Ints | None = None,
    ) -> None:
        self.space, self.layout, self.swept, self.units = space, layout, swept, units
        self.rows = np.arange(layout.n) if rows is None else rows  # the places that asked
        self.metrics, self.factors, self.threads, self.memory = metrics, factors, threads, memory
        self.on_device: PairTotals | None = None  # where class pairs are gone over, if not here
        self.clips = units.kind == "clip"
        self.closed_form = space.halved and factors is None
        self.sizes = layout.sizes.astype(np.float64)
        self.changes = {(protocol, name): Sums.zeros(len(units)) for protocol in swept for name in ("GSR", CONTRAST)}
        self.far = {protocol: np.full(layout.n, np.nan) for protocol in swept}
        self.far_unit = {protocol: np.full(layout.n, -1) for protocol in swept}
        self.second_far = {protocol: np.full(layout.n, np.nan) for protocol in swept}
        pairs = bool(metrics & PAIR_SHARES) and not self.clips
        self.shared = np.zeros((layout.n if pairs and "all" in swept else 0, layout.classes))

    @cached_property
    def cells(self) -> Cells:
        layout = self.layout
        keys = layout.codes * len(self.units) + self.units.of
        present, of, counts = np.unique(keys, return_inverse=True, return_counts=True)
        starts = np.searchsorted(present, np.arange(layout.classes + 1) * len(self.units))
        bounds = np.concatenate([[0], np.cumsum(counts)])
        order = np.argsort(of, kind="stable")
        codes, units = np.divmod(present, len(self.units))
        return Cells(of, order, bounds, starts, codes, units, counts.astype(np.float64))

    @cached_property
    def table(self) -> Floats:
        """How many points of each unit are of each class, [U, C]."""
        counts = np.zeros((len(self.units), self.layout.classes))
        counts[self.cells.units, self.cells.codes] = self.cells.counts
        return counts

    def held(self, rows: Ints) -> Floats:
        """How many points of each class the unit of each row holds, [rows, C]."""
        units, line = np.unique(self.units.of[rows], return_inverse=True)
        slot = np.searchsorted(units, self.cells.units)
        here = np.flatnonzero(units[np.minimum(slot, len(units) - 1)] == self.cells.units)
        counts = np.zeros((len(units), self.layout.classes))
        counts[slot[here], self.cells.codes[here]] = self.cells.counts[here]
        return counts[line]

    def class_sums(self, protocol: str, rows: Ints) -> Floats:
        """Summed distances of some places to every class, [rows, C]; none where they were not kept."""
        kept = self.swept[protocol].class_sums
        return kept[rows] if len(kept) else kept

    @cached_property
    def largest(self) -> Floats:
        """The most points of a class that one unit holds."""
        if self.clips:
            return np.ones(self.layout.classes)
        return np.asarray(np.maximum.reduceat(self.cells.counts, self.cells.starts[:-1]))

    @cached_property
    def one_class_left(self) -> NDArray[np.bool_]:
        """The units without which fewer than two classes are left: every neighbour would be right."""
        if self.clips:
            return np.asarray((self.layout.classes < 3) & (self.sizes[self.layout.codes] == 1.0))
        cells = self.cells
        whole = np.bincount(cells.units[cells.counts == self.sizes[cells.codes]], minlength=len(self.units))
        return np.asarray(self.layout.classes - whole < 2)

    def answerable(self, protocol: str) -> NDArray[np.bool_]:
        return np.asarray(self.partners(protocol) > 0)

    def partners(self, protocol: str) -> Floats:
        sizes = self.sizes[self.layout.codes]
        return np.asarray(sizes - (1.0 if protocol == "all" else self.cells.counts[self.cells.of]))

    @cached_property
    def own_sums(self) -> Floats:
        """Summed distance of every place to its own class (clips, all pairs)."""
        return np.asarray(self.swept["all"].own_mean * self.swept["all"].own_count)

    @cached_property
    def runner_up(self) -> tuple[Floats, Ints]:
        """The second lowest mean distance to another class, and the class of the lowest (clips, all pairs)."""
        n = self.layout.n
        second, nearest = np.full(n, np.inf), np.full(n, -1)
        if CONTRAST in self.metrics:
            for start in range(0, len(self.rows), ROWS):
                rows = self.rows[start : start + ROWS]
                means = self.class_sums("all", rows) / self.sizes
                lines = np.arange(len(means))
                means[lines, self.layout.codes[rows]] = np.inf
                nearest[rows] = means.argmin(axis=1)
                means[lines, nearest[rows]] = np.inf
                second[rows] = means.min(axis=1)
        return second, nearest

    def reach(self, rows: Ints) -> Floats:
        """No point is farther than this from a row."""
        factors, reach = self.factors, self.space.reaches(rows)
        if factors is None:
            return reach
        if factors.kind == "scale":
            return np.asarray(reach * factors.first[rows] * factors.first.max())
        return np.ones(len(rows))
