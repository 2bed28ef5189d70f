"""Pairs inside classes, and those of classes that could become the nearest: what leaving out a unit does to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import deletion_kernels as kernels
from earmark.calibrate.closed_forms import CONTRAST, FARTHEST, PAIR_SHARES
from earmark.geometry.factors import Factors
from earmark.geometry.label_sets import Partners, partners_of
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import ROWS, Swept, pair_distances, summed_operand
from earmark.metrics import separation
from earmark.scores.metrics import METRICS
from earmark.workers import Workers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHUNK = (512, 2048)  # columns of a block: classes are put together up to the first, and cut at the second
SPANS = 64  # parts that the tiles are put together in, whatever the number of threads
CELLS = 1 << 21  # sums of a tile over cells: fewer rows at a time where there are many


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


class Elsewhere(Protocol):
    """A device that does what costs most: see torch_deletions.py."""

    def go_over_classes(self) -> None: ...

    def pair_totals(
        self, protocol: str, pair_sums: Floats, pair_counts: Floats, terms: list[Floats]
    ) -> list[Floats]: ...


class Pairs:
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
        self.elsewhere: Elsewhere | None = None
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

    def _held(self, rows: Ints) -> Floats:
        """How many points of each class the unit of each row holds, [rows, C]."""
        units, line = np.unique(self.units.of[rows], return_inverse=True)
        slot = np.searchsorted(units, self.cells.units)
        here = np.flatnonzero(units[np.minimum(slot, len(units) - 1)] == self.cells.units)
        counts = np.zeros((len(units), self.layout.classes))
        counts[slot[here], self.cells.codes[here]] = self.cells.counts[here]
        return counts[line]

    @cached_property
    def largest(self) -> Floats:
        """The most points of a class that one unit holds."""
        return (
            np.ones(self.layout.classes)
            if self.clips
            else np.maximum.reduceat(self.cells.counts, self.cells.starts[:-1])
        )

    @cached_property
    def one_class_left(self) -> NDArray[np.bool_]:
        """The units without which fewer than two classes are left: every neighbour would be right."""
        if self.clips:
            return np.asarray((self.layout.classes < 3) & (self.sizes[self.layout.codes] == 1.0))
        cells = self.cells
        whole = np.bincount(cells.units[cells.counts == self.sizes[cells.codes]], minlength=len(self.units))
        return np.asarray(self.layout.classes - whole < 2)

    def label_partners(self, protocol: str) -> Partners:
        """Who shares a label with whom, where clips may have several."""
        assert self.layout.sets is not None
        return partners_of(self.layout.sets, self.layout.codes, self.units.of, across=protocol != "all")

    def answerable(self, protocol: str) -> NDArray[np.bool_]:
        if self.layout.sets is not None:
            return self.label_partners(protocol).answerable
        return np.asarray(self._partners(protocol) > 0)

    def _partners(self, protocol: str) -> Floats:
        sizes = self.sizes[self.layout.codes]
        return np.asarray(sizes - (1.0 if protocol == "all" else self.cells.counts[self.cells.of]))

    # --- pairs inside classes, and those of classes that could become the nearest ----------------------------

    def go_over_classes(self) -> None:
        """Fill `changes`, the two farthest of the own class, and the sums inside groups."""
        if self.elsewhere is not None:
            self.elsewhere.go_over_classes()
            return
        if self.clips:
            _ = self._runner_up  # once, not by every worker
        rows_at_once = ROWS if self.clips else int(np.clip(CELLS // len(self.cells.counts), 8, ROWS))
        tiles = [self.rows[start : start + rows_at_once] for start in range(0, len(self.rows), rows_at_once)]
        self.columns = self.space.columns(np.float64, self.memory)
        self.chunks = list(_chunks(self.layout))
        if not self.clips and self.closed_form:
            self.operand = summed_operand(self.space, self.cells.bounds, self.cells.order, self.threads)[0]
        # Changes are as long as there are units: a fixed number of them, or adding them up would grow with the square.
        step = -(-len(tiles) // SPANS)
        spans = [tiles[start : start + step] for start in range(0, len(tiles), max(1, step))]
        with Workers(self.threads) as workers:
            for changes in workers.map(self._span, spans):
                for key, sums in changes.items():
                    self.changes[key].add(sums)

    def _span(self, tiles: list[Ints]) -> dict[tuple[str, str], Sums]:
        changes = {key: Sums.zeros(len(self.units)) for key in self.changes}
        for rows in tiles:
            self._tile(rows, changes)
        return changes

    def _tile(self, rows: Ints, changes: dict[tuple[str, str], Sums]) -> None:
        layout, space = self.layout, self.space
        left = space.operands(np.float64, rows)
        own = range(int(layout.codes[rows[0]]), int(layout.codes[rows[-1]]) + 1)
        nearby = {protocol: self._nearby_classes(protocol, rows) for protocol in self.swept}
        pairs = self.clips or not self.closed_form  # whether distances of pairs are summed here, not classes at once
        class_sums = self._class_sums("all", rows) if self.clips else np.zeros((0, 0))
        cell_sums = np.zeros((len(rows), 0 if self.clips else len(self.cells.counts)))
        if not self.clips and self.closed_form:
            cell_sums = self._closed_form_sums(rows)
        wanted = np.zeros(layout.classes, bool)
        if pairs or self.metrics & FARTHEST:
            wanted[own.start : own.stop] = True
        if pairs:
            for needed in nearby.values():
                wanted |= needed.any(axis=0)
            wanted |= bool(len(self.shared))
        for c0, c1 in self.chunks:
            if not wanted[layout.codes[c0] : layout.codes[c1 - 1] + 1].any():
                continue
            block = pair_distances(space, self.factors, rows, left, self.columns, c0, c1)
            for protocol in self.swept:
                if self.metrics & FARTHEST:
                    kernels.farthest_of_two_units(
                        block, rows, c0, layout.codes, layout.starts, self.units.of, protocol != "all",
                        self.far[protocol], self.far_unit[protocol], self.second_far[protocol],
                    )  # fmt: skip
            if self.clips:
                self._leave_out_clips(block, rows, c0, class_sums, nearby["all"], changes)
            elif pairs:
                kernels.add_cell_sums(block, c0, self.cells.of, cell_sums)
        if self.clips:
            self.leave_out_queries(rows, changes)
        else:
            self._leave_out_groups(rows, cell_sums, nearby, changes)

    def _leave_out_clips(
        self,
        block: Floats,
        rows: Ints,
        c0: int,
        class_sums: Floats,
        needed: NDArray[np.bool_],
        changes: dict[tuple[str, str], Sums],
    ) -> None:
        swept, layout = self.swept["all"], self.layout
        gsr, contrast = changes["all", "GSR"], changes["all", CONTRAST]
        kernels.leave_out_clips(
            block, rows, c0, layout.codes, layout.starts, swept.nearest_other, self.own_sums,
            class_sums, swept.other_mean, *self._runner_up, needed, separation.EPSILON,
            "GSR" in self.metrics, CONTRAST in self.metrics,
            gsr.totals, gsr.counts, contrast.totals, contrast.counts,
        )  # fmt: skip

    def leave_out_queries(self, rows: Ints, changes: dict[tuple[str, str], Sums]) -> None:
        """Clips as queries, and as the nearest of another class."""
        swept = self.swept["all"]
        near, second, own = swept.nearest_other[rows], swept.second_other[rows], swept.own_mean[rows]
        for name in ("GSR", CONTRAST):
            if name not in self.metrics:
                continue
            points = METRICS[name].compute(*((near, own) if name == "GSR" else (own, swept.other_mean[rows])))
            valid = np.isfinite(points)
            changes["all", name].totals[rows[valid]] -= points[valid]
            changes["all", name].counts[rows[valid]] -= 1.0
            if name == "GSR":
                put(changes["all", name], swept.nearest_unit[rows], points, separation.gsr(second, own))

    def _leave_out_groups(
        self,
        rows: Ints,
        cell_sums: Floats,
        nearby: dict[str, NDArray[np.bool_]],
        changes: dict[tuple[str, str], Sums],
    ) -> None:
        layout, cells = self.layout, self.cells
        if len(self.shared):
            r, cell = np.nonzero(cells.units[None, :] == self.units.of[rows][:, None])
            self.shared[rows[r], cells.codes[cell]] = cell_sums[r, cell]
        for protocol, swept in self.swept.items():
            gsr, contrast = changes[protocol, "GSR"], changes[protocol, CONTRAST]
            kernels.leave_out_groups(
                cell_sums, rows, layout.codes, self.units.of, cells.starts, cells.units, cells.counts,
                protocol != "all", swept.nearest_other, swept.nearest_unit, swept.second_other,
                self._class_sums(protocol, rows),
                nearby[protocol], separation.EPSILON, "GSR" in self.metrics, CONTRAST in self.metrics,
                gsr.totals, gsr.counts, contrast.totals, contrast.counts,
            )  # fmt: skip

    def _closed_form_sums(self, rows: Ints) -> Floats:
        """Sums of distances to every cell: one product with as many columns as there are cells."""
        space, cells = self.space, self.cells
        left = np.column_stack([space.points[rows], space.squares[rows], np.ones(len(rows))])
        sums = np.maximum(left @ self.operand.T, 0.0)
        for r in np.flatnonzero(space.flat[rows]):
            sums[r] = cells.counts
            sums[r, cells.of[rows[r]]] -= 1.0
        return sums

    @cached_property
    def own_sums(self) -> Floats:
        """Summed distance of every place to its own class (clips, all pairs)."""
        return np.asarray(self.swept["all"].own_mean * self.swept["all"].own_count)

    def _class_sums(self, protocol: str, rows: Ints) -> Floats:
        """Summed distances of some places to every class, [rows, C]; none where they were not kept."""
        kept = self.swept[protocol].class_sums
        return kept[rows] if len(kept) else kept

    @cached_property
    def _runner_up(self) -> tuple[Floats, Ints]:
        """The second lowest mean distance to another class, and the class of the lowest (clips, all pairs)."""
        n = self.layout.n
        second, nearest = np.full(n, np.inf), np.full(n, -1)
        if CONTRAST in self.metrics:
            for start in range(0, len(self.rows), ROWS):
                rows = self.rows[start : start + ROWS]
                means = self._class_sums("all", rows) / self.sizes
                lines = np.arange(len(means))
                means[lines, self.layout.codes[rows]] = np.inf
                nearest[rows] = means.argmin(axis=1)
                means[lines, nearest[rows]] = np.inf
                second[rows] = means.min(axis=1)
        return second, nearest

    def _nearby_classes(self, protocol: str, rows: Ints) -> NDArray[np.bool_]:
        """The classes that are, or could become without some unit, the nearest other class of each row: [rows, C].

        A class of n points at summed distance S, of which a unit holds at most m, no farther than r, keeps a mean of
        at least (S - m r) / (n - m); and the lowest mean can rise to the lowest S / (n - m) at the most.
        """
        needed = np.zeros((len(rows), self.layout.classes), bool)
        if CONTRAST not in self.metrics:
            return needed
        lines, own = np.arange(len(rows)), self.layout.codes[rows]
        sums, counts, most = self._class_sums(protocol, rows), self.sizes, self.largest
        if protocol != "all":
            counts = self.sizes - self._held(rows)
        with np.errstate(invalid="ignore", divide="ignore"):
            lost = most * self.reach(rows)[:, None]
            least = np.where(counts > most, np.maximum(sums - lost, 0.0) / (counts - most), 0.0)
            if self.clips:
                nearest = self._runner_up[1]
                limit = self.swept["all"].other_mean[rows]
                needed = (least < limit[:, None]) & (counts > 1)
                needed[lines, nearest[rows]] = True
            else:
                highest = np.where(counts > most, sums / (counts - most), np.inf)
                highest[lines, own] = np.inf
                needed = (least <= highest.min(axis=1)[:, None]) & (counts > 0)
        needed[lines, own] = False
        return np.asarray(needed)

    def reach(self, rows: Ints) -> Floats:
        """No point is farther than this from a row."""
        factors, reach = self.factors, self.space.reaches(rows)
        if factors is None:
            return reach
        if factors.kind == "scale":
            return np.asarray(reach * factors.first[rows] * factors.first.max())
        return np.ones(len(rows))


def _chunks(layout: Layout) -> Iterator[tuple[int, int]]:
    """Blocks of columns that end where classes do, but for classes that are too large for one."""
    least, most = CHUNK
    start = 0
    for stop in layout.starts[1:]:
        while stop - start > most:
            yield start, start + most
            start += most
        if stop - start >= least or (stop == layout.n and stop > start):
            yield start, int(stop)
            start = int(stop)
