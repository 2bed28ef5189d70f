"""What each metric is worth without each unit: the values that the jackknife rests on, from one sweep.

A unit is a clip or, where groups are given, a group; without it means without its points, as queries and as candidates
alike. The sweep kept lists a little deeper than k, the runner-up of every nearest other-class point and the class sums
(`wanted`); what is left to do touches the pairs inside classes and few others (see deletion_kernels.py).

Two things are held as they are: a class that shrinks to one clip stays among the candidates, and under a hubness
correction the factors of the points do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from earmark.calibrate import deletion_kernels as kernels
from earmark.calibrate._deletion_pairs import Floats, Ints, Pairs, Sums, Units, put, share, units_of
from earmark.calibrate._devices import torch_device
from earmark.calibrate.closed_forms import CONTRAST, FARTHEST, HUBNESS, PAIR_SHARES
from earmark.calibrate.labels import label_sets_of, worth_of
from earmark.geometry import hubness as hubs
from earmark.geometry.factors import Factors
from earmark.geometry.label_sets import partners_of
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Swept, search_without
from earmark.metrics import separation
from earmark.scores.metrics import METRICS
from earmark.workers import Workers

__all__ = ["Units", "Work", "depth_needed", "leave_out", "sums_fit", "units_of"]


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
    device: str = "cpu",
) -> dict[str, dict[str, Floats]]:
    """Per protocol and metric, the value without each unit, [U]; NaN where it cannot be measured any more.

    `swept` comes from a sweep that was given the units, lists of `depth_needed`, and kept its class sums if `metrics`
    names any of CLASS_SUMS. `device` says where: values are the same everywhere to rounding, P@k and hubness equal.
    """
    work = Work(space, layout, swept, units, frozenset(metrics), factors, threads, memory)
    where = torch_device(device, float(layout.n) ** 2 * space.points.shape[1])
    if where is not None:
        from earmark.calibrate.torch_deletions import TorchDeletions

        work.elsewhere = TorchDeletions(work, where)
    return work.all_values(ks, hub_k)


class Work(Pairs):
    """One set of places, swept once; what each metric is worth without each unit."""

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
        if "label_P@1" in self.metrics:
            yield "label_P@1", self._label_precision(protocol)
        if "label_jaccard" in self.metrics:
            yield "label_jaccard", self._mean_worth(protocol, 1, partial(worth_of, self.layout, "label_jaccard"))
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
        if self.layout.sets is not None:
            return self.label_partners(protocol).sole
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
        return self._mean_worth(protocol, k, partial(worth_of, self.layout, "P@k")) / k

    def _mean_worth(self, protocol: str, k: int, worth: Callable[[Ints, Ints], Floats]) -> Floats:
        """The mean, over the places that can be answered, of what their k nearest count together."""
        answerable, every = self.answerable(protocol), np.arange(self.layout.n)
        places = self._complete(self.swept[protocol].neighbours.places)
        change, unresolved = Sums.zeros(len(self.units)), np.empty(self.layout.n, np.int64)
        each = worth(every, places)
        kernels.leave_out_of_lists(
            places, every, each, self.units.of, answerable, self._sole_units(protocol), k,
            change.totals, change.counts, unresolved,
        )  # fmt: skip
        measured = np.where(answerable & (places[:, k - 1] >= 0), each[:, :k].sum(axis=1), np.nan)
        rows = np.flatnonzero(unresolved >= 0)
        if len(rows):
            left = self._without(protocol, rows, unresolved[rows], k)
            again = worth(rows, left).sum(axis=1)
            put(change, unresolved[rows], measured[rows], np.where(left[:, k - 1] >= 0, again, np.nan))
        return change.mean(measured)

    def _label_precision(self, protocol: str) -> Floats:
        """The mean over labels of how often the nearest neighbour of a clip with a label has it, without each unit."""
        layout, units = self.layout, self.units
        sets = label_sets_of(layout)
        asking = partners_of(sets, layout.codes, units.of, across=protocol != "all", by_label=True)
        places = self._complete(self.swept[protocol].neighbours.places)
        nearest = places[:, 0]
        own, near = units.of, np.where(nearest >= 0, units.of[nearest], -1)
        second = self._nearest_beside(protocol, places, near)

        def hits(found: Ints) -> Floats:
            codes = np.where(found >= 0, layout.codes[found], -1)[asking.entries.places]
            held = sets.holds(codes, asking.entries.labels).astype(np.float64)
            return np.where(asking.answerable & (codes >= 0), held, np.nan)

        before, nothing = hits(nearest), np.full(len(asking.answerable), np.nan)
        of_entry = asking.entries.places
        changes = _ByLabel(sets.labels, len(units), asking.entries.labels, before)
        changes.put(own[of_entry], nothing)
        changes.put(np.where(asking.sole != own[of_entry], asking.sole, -1), nothing)
        changed = near[of_entry]
        changed = np.where((changed == own[of_entry]) | (changed == asking.sole), -1, changed)
        changes.put(changed, hits(second))
        return changes.means()

    def _nearest_beside(self, protocol: str, places: Ints, units: Ints) -> Ints:
        """The nearest of every place that is not of a unit; -1 where there is none."""
        of = np.where(places >= 0, self.units.of[places], -1)
        stays = (of != units[:, None]) & (places >= 0)
        second = np.where(stays.any(axis=1), places[np.arange(len(places)), stays.argmax(axis=1)], -1)
        rows = np.flatnonzero((second < 0) & (units >= 0) & (places[:, -1] >= 0))  # cut off before another unit came
        if len(rows):
            second[rows] = self._without(protocol, rows, units[rows], 1)[:, 0]
        return second

    def _point_balance(self, protocol: str) -> Floats:
        change = Sums.zeros(len(self.units))
        points = separation.csr_pointwise(self.swept[protocol].nearest_other, self.far[protocol])
        for which, left_near, left_far in self._balances_left(protocol, self.swept[protocol]):
            put(change, which, points, separation.csr_pointwise(left_near, left_far))
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
        return share(total, count)

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
        pair_sums = np.add.reduceat(self.swept[protocol].class_sums, self.layout.starts[:-1], axis=0)
        if protocol != "all":
            pair_counts = np.outer(self.sizes, self.sizes) - self.table.T @ self.table
        else:
            pair_counts = np.outer(self.sizes, self.sizes) - np.diag(self.sizes)
        given = protocol, pair_sums, pair_counts, _pair_terms(pair_sums, pair_counts)
        totals = self.elsewhere.pair_totals(*given) if self.elsewhere is not None else self._pair_totals(*given)
        for name, values in (("CS", totals[0]), ("CSCF", totals[1])):
            if name in self.metrics:
                yield name, np.clip(share(values, totals[2]), 0.0, 1.0)

    def _pair_totals(self, protocol: str, pair_sums: Floats, pair_counts: Floats, terms: list[Floats]) -> list[Floats]:
        """The sums of terms without each unit."""
        classes, units, across = self.layout.classes, self.units, protocol != "all"
        totals = [np.full(len(units), float(part.sum())) for part in terms]
        spans = range(0, len(units), max(1, -(-len(units) // (4 * self.threads))))
        shared = self.shared if not across else self.shared[:0]
        means = _pair_means(pair_sums, pair_counts)

        def leave_out_rows(first: int) -> None:
            rows = slice(first, first + spans.step)
            codes = self.layout.codes[rows]
            changes = np.zeros((3, len(codes), 2))
            kernels.leave_out_rows(
                codes, self.swept[protocol].class_sums[rows], np.zeros((0, classes)), self.sizes,
                np.diagonal(means).copy(), codes, means, pair_counts, pair_counts, np.diagonal(pair_counts),
                np.diagonal(pair_counts), False, separation.ROUNDING, changes[0], changes[1], changes[2],
            )  # fmt: skip
            for total, change in zip(totals, changes, strict=True):
                total[rows] += change[:, 0]

        def leave_out_units(first: int) -> None:
            kernels.leave_out_pairs(
                first, min(first + spans.step, len(units)), units.starts, units.members, self.layout.codes,
                self.swept[protocol].class_sums, shared, pair_sums, pair_counts, self.sizes, np.zeros(classes), across,
                separation.ROUNDING, totals[0], totals[1], totals[2], terms[0], terms[1], terms[2],
                np.zeros(classes, np.int64),
                np.zeros((classes, classes)), np.zeros((classes, classes)),
            )  # fmt: skip

        with Workers(self.threads) as workers:
            for _ in workers.map(leave_out_rows if self.clips else leave_out_units, spans):
                pass
        return totals

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


class _ByLabel:
    """Means over labels, each a mean over its clips, and how leaving out units changes them."""

    def __init__(self, labels: int, units: int, label_of: Ints, before: Floats) -> None:
        self.labels, self.units, self.label_of, self.before = labels, units, label_of, before
        self.keys: list[Ints] = []
        self.totals: list[Floats] = []
        self.counts: list[Floats] = []

    def put(self, units: Ints, after: Floats) -> None:
        """The term of each clip and label becomes another one without a unit (-1: nothing changes); NaN is no term."""
        chosen = (units >= 0) & np.isfinite(self.before)
        now, was = after[chosen], self.before[chosen]
        self.keys.append(units[chosen] * self.labels + self.label_of[chosen])
        self.totals.append(np.nan_to_num(now) - was)
        self.counts.append(np.isfinite(now) - 1.0)

    def means(self) -> Floats:
        """The mean over labels without each unit."""
        valid = np.isfinite(self.before)
        total = np.bincount(self.label_of[valid], self.before[valid], self.labels).astype(np.float64)
        count = np.bincount(self.label_of[valid], minlength=self.labels).astype(np.float64)
        keys, slot = np.unique(np.concatenate(self.keys), return_inverse=True)
        unit, label = np.divmod(keys, self.labels)
        new_total = total[label] + np.bincount(slot, np.concatenate(self.totals), len(keys))
        new_count = count[label] + np.bincount(slot, np.concatenate(self.counts), len(keys))
        mean, new_mean = (np.nan_to_num(share(a, b)) for a, b in ((total, count), (new_total, new_count)))
        gone = ((new_count < 0.5) & (count[label] > 0.5)).astype(np.float64)
        sums = mean.sum() + np.bincount(unit, new_mean - mean[label], self.units)
        left = (count > 0.5).sum() - np.bincount(unit, gone, self.units)
        return share(np.asarray(sums, np.float64), np.asarray(left, np.float64))


def _balance_terms(sums: Floats) -> Floats:
    """CSR terms of classes from rows (summed NID, summed MID, points), weighted by their points."""
    near, far, count = sums.T
    some = count > 0.5
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(some, separation.csr_pointwise(near / count, far / count) * count, 0.0)


def _pair_means(pair_sums: Floats, pair_counts: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(pair_counts > 0.5, np.maximum(pair_sums, 0.0) / pair_counts, np.nan)


def _pair_terms(pair_sums: Floats, pair_counts: Floats) -> list[Floats]:
    """What each ordered pair of classes contributes to CS and CSCF, and whether it is measured: [C, C] each."""
    means = _pair_means(pair_sums, pair_counts)
    with np.errstate(invalid="ignore", divide="ignore"):
        intra = np.diag(means)[:, None]
        measured = np.isfinite(means) & np.isfinite(intra) & ~np.eye(len(means), dtype=bool)
        overlap = np.where(measured, np.where(intra + means > 0, intra / (intra + means), 0.5), 0.0)
        confused = np.where(measured, means < intra * (1.0 - separation.ROUNDING), False)
    return [overlap, confused.astype(np.float64), measured.astype(np.float64)]
