"""What each metric is worth without each unit: the values that the jackknife rests on, from one sweep.

A unit is a clip or, where groups are given, a group; without it means without its points, as queries and as candidates
alike. The sweep kept lists a little deeper than k, the runner-up of every nearest other-class point and the class sums
(`wanted`); what is left to do touches the pairs inside classes and few others (see deletion_kernels.py).

Two things are held as they are: a class that shrinks to one clip stays among the candidates, and under a hubness
correction the factors of the points do not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import deletion_kernels as kernels
from earmark.calibrate.closed_forms import CONTRAST, FARTHEST, HUBNESS, PAIR_SHARES
from earmark.geometry import hubness as hubs
from earmark.geometry.factors import Factors
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import ROWS, Swept, pair_distances, search_without, summed_operand
from earmark.metrics import separation
from earmark.scores.metrics import METRICS
from earmark.workers import Workers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHUNK = (512, 2048)  # columns of a block: classes are put together up to the first, and cut at the second
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


def depth_needed(k: int, units: Units) -> int:
    """How many neighbours a list must hold so that leaving out a unit rarely exhausts it."""
    return k + 1 if units.kind == "clip" else 2 * k + 16


def sums_fit(layout: Layout, protocols: int, memory: int, queries: int) -> bool:
    """Whether the class sums of every query may be kept: half of the memory budget at the most."""
    shared = 1 if layout.groups is not None else 0
    return 8 * queries * layout.classes * (protocols + shared) <= memory // 2


def leave_out(
    space: Space,
    layout: Layout,
    swept: dict[str, Swept],
    units: Units,
    metrics: Iterable[str],
    ks: tuple[int, ...],
    *,
    hub_k: int,
    factors: Factors | None = None,
    threads: int = 1,
    memory: int = 2 << 30,
) -> dict[str, dict[str, Floats]]:
    """Per protocol and metric, the value without each unit, [U]; NaN where it cannot be measured any more.

    `swept` comes from a sweep that was given the units, lists of `depth_needed`, and kept its class sums if `metrics`
    names any of CLASS_SUMS.
    """
    return Work(space, layout, swept, units, frozenset(metrics), factors, threads, memory).all_values(ks, hub_k)


@dataclass
class _Sums:
    """Changes of a metric's sum and number of terms, by unit."""

    totals: Floats
    counts: Floats

    @classmethod
    def zeros(cls, units: int) -> _Sums:
        return cls(np.zeros(units), np.zeros(units))

    def add(self, other: _Sums) -> None:
        self.totals += other.totals
        self.counts += other.counts

    def mean(self, points: Floats) -> Floats:
        """The mean over the finite points after each change."""
        valid = np.isfinite(points)
        total, count = float(points[valid].sum()), float(valid.sum())
        return _share(total + self.totals, count + self.counts)


def _share(totals: Floats, counts: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(counts > 0.5, totals / counts, np.nan)


@dataclass(frozen=True)
class _Cells:
    """Points by class and unit: cell of each place, cells of each class; class, unit and size of each cell."""

    of: Ints
    order: Ints  # places, cell by cell
    bounds: Ints  # where each cell begins in `order`
    starts: Ints
    codes: Ints
    units: Ints
    counts: Floats


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
        self.clips = units.kind == "clip"
        self.closed_form = space.halved and factors is None
        self.sizes = layout.sizes.astype(np.float64)
        self.changes = {(protocol, name): _Sums.zeros(len(units)) for protocol in swept for name in ("GSR", CONTRAST)}
        self.far = {protocol: np.full(layout.n, np.nan) for protocol in swept}
        self.far_unit = {protocol: np.full(layout.n, -1) for protocol in swept}
        self.second_far = {protocol: np.full(layout.n, np.nan) for protocol in swept}
        pairs = bool(metrics & PAIR_SHARES) and not self.clips
        self.shared = np.zeros((layout.n if pairs and "all" in swept else 0, layout.classes))

    @cached_property
    def cells(self) -> _Cells:
        layout = self.layout
        keys = layout.codes * len(self.units) + self.units.of
        present, of, counts = np.unique(keys, return_inverse=True, return_counts=True)
        starts = np.searchsorted(present, np.arange(layout.classes + 1) * len(self.units))
        bounds = np.concatenate([[0], np.cumsum(counts)])
        order = np.argsort(of, kind="stable")
        codes, units = np.divmod(present, len(self.units))
        return _Cells(of, order, bounds, starts, codes, units, counts.astype(np.float64))

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

    def answerable(self, protocol: str) -> NDArray[np.bool_]:
        return np.asarray(self._partners(protocol) > 0)

    def _partners(self, protocol: str) -> Floats:
        sizes = self.sizes[self.layout.codes]
        return np.asarray(sizes - (1.0 if protocol == "all" else self.cells.counts[self.cells.of]))

    # --- pairs inside classes, and those of classes that could become the nearest ----------------------------

    def go_over_classes(self) -> None:
        """Fill `changes`, the two farthest of the own class, and the sums inside groups."""
        rows_at_once = ROWS if self.clips else int(np.clip(CELLS // len(self.cells.counts), 8, ROWS))
        tiles = [self.rows[start : start + rows_at_once] for start in range(0, len(self.rows), rows_at_once)]
        self.columns = self.space.columns(np.float64)
        self.chunks = list(_chunks(self.layout))
        if not self.clips and self.closed_form:
            self.operand = summed_operand(self.space, self.cells.bounds, self.cells.order)[0]
        with Workers(self.threads) as workers:
            for changes in workers.map(self._tile, tiles):
                for key, sums in changes.items():
                    self.changes[key].add(sums)

    def _tile(self, rows: Ints) -> dict[tuple[str, str], _Sums]:
        layout, space = self.layout, self.space
        left = space.operands(np.float64, rows)
        own = range(int(layout.codes[rows[0]]), int(layout.codes[rows[-1]]) + 1)
        nearby = {protocol: self._nearby_classes(protocol, rows) for protocol in self.swept}
        pairs = self.clips or not self.closed_form  # whether distances of pairs are summed here, not classes at once
        changes = {key: _Sums.zeros(len(self.units)) for key in self.changes}
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
                self._leave_out_clips(block, rows, c0, nearby["all"], changes)
            elif pairs:
                kernels.add_cell_sums(block, c0, self.cells.of, cell_sums)
        if self.clips:
            self._leave_out_queries(rows, changes)
        else:
            self._leave_out_groups(rows, cell_sums, nearby, changes)
        return changes

    def _leave_out_clips(
        self, block: Floats, rows: Ints, c0: int, needed: NDArray[np.bool_], changes: dict[tuple[str, str], _Sums]
    ) -> None:
        swept, layout = self.swept["all"], self.layout
        gsr, contrast = changes["all", "GSR"], changes["all", CONTRAST]
        kernels.leave_out_clips(
            block, rows, c0, layout.codes, layout.starts, swept.nearest_other, self._own_sums,
            self._class_sums("all", rows), swept.other_mean, *self._runner_up, needed, separation.EPSILON,
            "GSR" in self.metrics, CONTRAST in self.metrics,
            gsr.totals, gsr.counts, contrast.totals, contrast.counts,
        )  # fmt: skip

    def _leave_out_queries(self, rows: Ints, changes: dict[tuple[str, str], _Sums]) -> None:
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
                _put(changes["all", name], swept.nearest_unit[rows], points, separation.gsr(second, own))

    def _leave_out_groups(
        self,
        rows: Ints,
        cell_sums: Floats,
        nearby: dict[str, NDArray[np.bool_]],
        changes: dict[tuple[str, str], _Sums],
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
    def _own_sums(self) -> Floats:
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
            lost = most * self._reach(rows)[:, None]
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

    def _reach(self, rows: Ints) -> Floats:
        """No point is farther than this from a row."""
        factors, reach = self.factors, self.space.reaches(rows)
        if factors is None:
            return reach
        if factors.kind == "scale":
            return np.asarray(reach * factors.first[rows] * factors.first.max())
        return np.ones(len(rows))

    # --- values ----------------------------------------------------------------------------------------------

    def all_values(self, ks: tuple[int, ...], hub_k: int) -> dict[str, dict[str, Floats]]:
        """Per protocol and metric, the value without each unit."""
        if self.metrics & (FARTHEST | {"GSR", CONTRAST}) or len(self.shared):
            self.go_over_classes()
        found: dict[str, dict[str, Floats]] = {}
        for protocol in self.swept:
            found[protocol] = dict(self.values(protocol, ks, hub_k))
            for name, without in found[protocol].items():
                if name not in HUBNESS:  # which knows no classes
                    without[self.one_class_left] = np.nan
        return found

    def values(self, protocol: str, ks: tuple[int, ...], hub_k: int) -> Iterator[tuple[str, Floats]]:
        """Every metric asked for, without each unit."""
        swept, answerable = self.swept[protocol], self.answerable(protocol)
        for k in ks:
            if k < self.layout.n:
                yield f"P@{k}", self._precision(protocol, k)
        near = np.where(answerable, swept.nearest_other, np.nan)
        if "GSR" in self.metrics:
            yield "GSR", self.changes[protocol, "GSR"].mean(separation.gsr(near, swept.own_mean))
        if "CSR" in self.metrics:
            yield "CSR", self._class_balance(protocol)
        if "CSR_pointwise" in self.metrics:
            yield "CSR_pointwise", self._point_balance(protocol)
        if self.metrics & PAIR_SHARES:
            yield from self._class_pairs(protocol)
        if CONTRAST in self.metrics:
            points = np.where(answerable, METRICS[CONTRAST].compute(swept.own_mean, swept.other_mean), np.nan)
            yield CONTRAST, self.changes[protocol, CONTRAST].mean(points)
        if self.metrics & frozenset(HUBNESS) and hub_k < self.layout.n:
            yield from self._hubness(protocol, hub_k)

    def _sole_units(self, protocol: str) -> Ints:
        """The unit that holds all partners of a place, -1 where there are several: without it, a query has none."""
        cells, layout = self.cells, self.layout
        count = np.diff(cells.starts)[layout.codes]
        first = cells.units[cells.starts[layout.codes]]
        second = cells.units[np.minimum(cells.starts[layout.codes] + 1, len(cells.units) - 1)]
        other = np.where(first == self.units.of, second, first)
        alone = (cells.counts[cells.of] == 1.0) | (protocol != "all")  # no partner in its own unit
        return np.where((count == 2) & alone, other, -1)

    def _without(self, protocol: str, rows: Ints, left_out: Ints, k: int) -> Ints:
        """The k nearest of some places without a unit each, searched again."""
        return search_without(
            self.space, self.layout, rows, left_out, self.units.of, k, across_groups=protocol != "all",
            factors=self.factors, threads=self.threads, memory=self.memory,
        ).neighbours.places  # fmt: skip

    def _complete(self, places: Ints) -> Ints:
        """Lists that end with -1 where they hold every candidate, so that no kernel takes them for cut off."""
        if places.shape[1] < self.layout.n - 1:
            return places
        return np.column_stack([places, np.full(len(places), -1)])

    def _precision(self, protocol: str, k: int) -> Floats:
        layout, answerable = self.layout, self.answerable(protocol)
        places, every = self._complete(self.swept[protocol].neighbours.places), np.arange(layout.n)
        change, unresolved = _Sums.zeros(len(self.units)), np.empty(layout.n, np.int64)
        kernels.leave_out_of_lists(
            places, every, layout.codes, self.units.of, answerable, self._sole_units(protocol), k,
            change.totals, change.counts, unresolved,
        )  # fmt: skip
        hits = np.where(places[:, :k] >= 0, layout.codes[places[:, :k]] == layout.codes[:, None], False).sum(axis=1)
        measured = np.where(answerable & (places[:, k - 1] >= 0), hits, np.nan)
        rows = np.flatnonzero(unresolved >= 0)
        if len(rows):
            left = self._without(protocol, rows, unresolved[rows], k)
            again = (layout.codes[left] == layout.codes[rows][:, None]).sum(axis=1).astype(np.float64)
            _put(change, unresolved[rows], measured[rows], np.where(left[:, k - 1] >= 0, again, np.nan))
        return change.mean(measured) / k

    def _point_balance(self, protocol: str) -> Floats:
        change = _Sums.zeros(len(self.units))
        points = separation.csr_pointwise(self.swept[protocol].nearest_other, self.far[protocol])
        for which, left_near, left_far in self._balances_left(protocol, self.swept[protocol]):
            _put(change, which, points, separation.csr_pointwise(left_near, left_far))
        return change.mean(points)

    def _balances_left(self, protocol: str, swept: Swept) -> Iterator[tuple[Ints, Floats, Floats]]:
        """(unit, NID and MID of a place without it) for every unit that changes them; -1: none, NaN: nothing left."""
        mine = self.units.of
        near, second, unit = swept.nearest_other, swept.second_other, swept.nearest_unit
        far, second_far, far_unit = self.far[protocol], self.second_far[protocol], self.far_unit[protocol]
        nothing, same = np.full(len(mine), np.nan), unit == far_unit
        yield mine, nothing, nothing
        yield np.where(same | (unit == mine), -1, unit), second, far
        yield np.where(same | (far_unit == mine), -1, far_unit), near, second_far
        yield np.where(same & (unit != mine), unit, -1), second, second_far

    def _class_balance(self, protocol: str) -> Floats:
        """CSR: class sums of NID and MID, of which leaving out a unit changes those of few classes."""
        layout, near, far = self.layout, self.swept[protocol].nearest_other, self.far[protocol]
        valid = np.isfinite(near) & np.isfinite(far)
        touched, delta = self._balance_steps(protocol, self.swept[protocol])
        base = np.column_stack([
            np.bincount(layout.codes[valid], values[valid], layout.classes) for values in (near, far, np.ones(layout.n))
        ])  # fmt: skip
        after: Floats = np.asarray(base[touched % layout.classes] + delta, np.float64)
        terms, new_terms = _balance_terms(np.asarray(base, np.float64)), _balance_terms(after)
        of = touched // layout.classes
        total = terms.sum() + np.bincount(of, new_terms - terms[touched % layout.classes], len(self.units))
        count = base[:, 2].sum() + np.bincount(of, delta[:, 2], len(self.units))
        return _share(total, count)

    def _balance_steps(self, protocol: str, swept: Swept) -> tuple[Ints, Floats]:
        """What leaving out a unit adds to a class's sums of NID, of MID and of points: (unit * C + class, [.., 3])."""
        layout, near, far = self.layout, swept.nearest_other, self.far[protocol]
        valid = np.isfinite(near) & np.isfinite(far)
        keys, changes = [], []
        for which, left_near, left_far in self._balances_left(protocol, swept):
            chosen = valid & (which >= 0)
            stays = np.isfinite(left_near) & np.isfinite(left_far)
            now = [np.where(stays, left, 0.0) for left in (left_near, left_far, np.ones(layout.n))]
            keys.append(which[chosen] * layout.classes + layout.codes[chosen])
            changes.append(np.column_stack([now[0] - near, now[1] - far, now[2] - 1.0])[chosen])
        touched, slot = np.unique(np.concatenate(keys), return_inverse=True)
        steps = np.concatenate(changes)
        return touched, np.column_stack([np.bincount(slot, steps[:, i], len(touched)) for i in range(3)])

    def _class_pairs(self, protocol: str) -> Iterator[tuple[str, Floats]]:
        layout, classes, across = self.layout, self.layout.classes, protocol != "all"
        class_sums = self.swept[protocol].class_sums
        pair_sums = np.add.reduceat(class_sums, layout.starts[:-1], axis=0)
        if across:
            pair_counts = np.outer(self.sizes, self.sizes) - self.table.T @ self.table
        else:
            pair_counts = np.outer(self.sizes, self.sizes) - np.diag(self.sizes)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(pair_counts > 0.5, np.maximum(pair_sums, 0.0) / pair_counts, np.nan)
        intra = np.diag(means)[:, None]
        measured = np.isfinite(means) & np.isfinite(intra) & ~np.eye(classes, dtype=bool)
        with np.errstate(invalid="ignore", divide="ignore"):
            overlap = np.where(measured, np.where(intra + means > 0, intra / (intra + means), 0.5), 0.0)
            confused = np.where(measured, means < intra * (1.0 - separation.ROUNDING), False).astype(np.float64)
        pairs = measured.astype(np.float64)
        totals = [np.full(len(self.units), float(terms.sum())) for terms in (overlap, confused, pairs)]
        spans = range(0, len(self.units), max(1, -(-len(self.units) // (4 * self.threads))))
        shared = self.shared if not across else self.shared[:0]

        def leave_out_units(first: int) -> None:
            kernels.leave_out_pairs(
                first, min(first + spans.step, len(self.units)), self.units.starts, self.units.members, layout.codes,
                class_sums, shared, pair_sums, pair_counts, self.sizes, np.zeros(classes), across, separation.ROUNDING,
                totals[0], totals[1], totals[2], overlap, confused, pairs, np.zeros(classes, np.int64),
                np.zeros((classes, classes)), np.zeros((classes, classes)),
            )  # fmt: skip

        def leave_out_rows(first: int) -> None:
            rows = slice(first, first + spans.step)
            codes = layout.codes[rows]
            changes = np.zeros((3, len(codes), 2))
            kernels.leave_out_rows(
                codes, class_sums[rows], np.zeros((0, classes)), self.sizes, np.diagonal(means).copy(), codes, means,
                pair_counts, pair_counts, np.diagonal(pair_counts), np.diagonal(pair_counts), False,
                separation.ROUNDING, *changes,
            )  # fmt: skip
            for total, change in zip(totals, changes, strict=True):
                total[rows] += change[:, 0]

        work = leave_out_rows if self.clips else leave_out_units
        with Workers(self.threads) as workers:
            for _ in workers.map(work, spans):
                pass
        for name, values in (("CS", totals[0]), ("CSCF", totals[1])):
            if name in self.metrics:
                yield name, np.clip(_share(values, totals[2]), 0.0, 1.0)

    def _hubness(self, protocol: str, k: int) -> Iterator[tuple[str, Floats]]:
        starts, places, steps = self._events(protocol, k)
        occurrences = hubs.k_occurrences(self.swept[protocol].neighbours.places, k)
        width = int(occurrences.max(initial=0)) + int(np.diff(starts).max(initial=0)) + 2
        values = [np.full(len(self.units), np.nan) for _ in HUBNESS]
        kernels.leave_out_occurrences(
            self.units.starts, self.units.members, occurrences, starts, places, steps, np.zeros(width, np.int64),
            hubs.TOP_SHARE, k, *values,
        )  # fmt: skip
        yield from ((name, without) for name, without in zip(HUBNESS, values, strict=True) if name in self.metrics)

    def _events(self, protocol: str, k: int) -> tuple[Ints, Ints, Ints]:
        """Which k-occurrences change without each unit: unit u's are the places and steps from starts[u] on."""
        rows, units = self.rows, self.units
        places = self._complete(self.swept[protocol].neighbours.places)
        event_units, event_places, steps = (np.full((len(rows), 2 * k), fill) for fill in (-1, 0, 0))
        unresolved = np.empty(len(rows), np.int64)
        kernels.occurrence_events(places, rows, k, units.of, event_units, event_places, steps, unresolved)
        open_rows = np.flatnonzero(unresolved >= 0)
        if len(open_rows):
            left = self._without(protocol, rows[open_rows], unresolved[open_rows], k)
            for r, unit, now in zip(open_rows, unresolved[open_rows], left, strict=True):
                stayed = int((units.of[places[rows[r], :k]] != unit).sum())
                new = now[stayed:][now[stayed:] >= 0]
                free = np.flatnonzero(event_units[r] < 0)[: len(new)]
                event_units[r, free], event_places[r, free], steps[r, free] = unit, new, 1
        used = event_units.ravel() >= 0
        order = np.argsort(event_units.ravel()[used], kind="stable")
        starts = np.searchsorted(event_units.ravel()[used][order], np.arange(len(units) + 1))
        return starts, event_places.ravel()[used][order], steps.ravel()[used][order]


def _balance_terms(sums: Floats) -> Floats:
    """CSR terms of classes from rows (summed NID, summed MID, points), weighted by their points."""
    near, far, count = sums.T
    some = count > 0.5
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(some, separation.csr_pointwise(near / count, far / count) * count, 0.0)


def _put(change: _Sums, units: Ints, before: Floats, after: Floats) -> None:
    """Replace the term of each point by another one in the sums of a unit (-1: of none); NaN is no term."""
    chosen = (units >= 0) & np.isfinite(before)
    stays = chosen & np.isfinite(after)
    size = len(change.totals)
    change.totals -= np.bincount(units[chosen], before[chosen], size)
    change.counts -= np.bincount(units[chosen], minlength=size)
    change.totals += np.bincount(units[stays], after[stays], size)
    change.counts += np.bincount(units[stays], minlength=size)


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
