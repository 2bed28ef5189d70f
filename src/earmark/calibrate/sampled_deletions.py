"""What each metric is worth without each unit, where not every clip asked (see sample.py).

The statistic is the mean over the queries that were drawn, with all clips as candidates. Leaving out a unit takes away
its queries, and its clips from the lists and class sums of the other queries. By the Efron-Stein inequality, which asks
for no symmetry, the summed squares of these changes are not too small for the variance of that statistic: what other
clips would give and what other queries would give are both in it. So one interval holds the value of all clips of this
collection, and the value that another collection would show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import deletion_kernels as kernels
from earmark.calibrate.closed_forms import CONTRAST, FARTHEST, HUBNESS
from earmark.calibrate.deletions import Units, Work
from earmark.calibrate.sample import Sample
from earmark.geometry import hubness as hubs
from earmark.geometry.factors import Factors
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Neighbours, Swept
from earmark.metrics import separation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def of_base(swept: Swept, sample: Sample) -> Swept:
    """What the queries of the base found; the others found nothing."""
    base = sample.base
    hidden = {
        name: np.where(base, getattr(swept, name), np.nan)
        for name in ("nearest_other", "farthest_same", "own_mean", "own_count", "other_mean", "second_other")
    }
    lists = Neighbours(
        np.where(base[:, None], swept.neighbours.places, -1),
        np.where(base[:, None], swept.neighbours.distances, np.nan),
    )
    return replace(swept, neighbours=lists, nearest_unit=np.where(base, swept.nearest_unit, -1), **hidden)


def leave_out(
    space: Space,
    layout: Layout,
    swept: dict[str, Swept],
    sample: Sample,
    units: Units,
    metrics: Iterable[str],
    ks: tuple[int, ...],
    *,
    hub_k: int,
    factors: Factors | None = None,
    threads: int = 1,
    memory: int = 2 << 30,
) -> dict[str, dict[str, Floats]]:
    """As `deletions.leave_out`, from a sweep whose rows were `sample.rows`; CS and CSCF apart (sampled_pairs.py)."""
    asked = frozenset(metrics)
    base = {protocol: of_base(found, sample) for protocol, found in swept.items()}
    rows = np.flatnonzero(sample.base)
    found: dict[str, dict[str, Floats]] = {protocol: {} for protocol in swept}
    for part, places, these in (
        (asked & {"GSR", CONTRAST, "hub_skew"}, rows, ks),
        (asked & FARTHEST, sample.rows, ()),
    ):
        if part or these:
            work = _SampledWork(space, layout, base, units, part, factors, threads, memory, places)
            work.sample, work.every = sample, swept
            for protocol, values in work.all_values(these, hub_k).items():
                found[protocol] |= values
    return found


class _SampledWork(Work):
    """One sample of queries; `swept` holds what its base found, `every` what all found that asked."""

    sample: Sample
    every: dict[str, Swept]

    def _class_sums(self, protocol: str, rows: Ints) -> Floats:
        kept = self.swept[protocol].class_sums
        return kept[self.sample.slots(rows)] if len(kept) else kept

    def _class_balance(self, protocol: str) -> Floats:
        """CSR: every class weighs as many clips as it has, whatever the number of its queries."""
        layout, cells, swept = self.layout, self.cells, self.every[protocol]
        near, far = swept.nearest_other, self.far[protocol]
        valid = np.isfinite(near) & np.isfinite(far)
        classes, units = layout.classes, len(self.units)
        base: Floats = np.column_stack([
            np.bincount(layout.codes[valid], values[valid], classes) for values in (near, far, np.ones(layout.n))
        ]).astype(np.float64)  # fmt: skip
        asked = self.sample.asked
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(asked > 0, base[:, 2] / asked, 0.0)  # of the queries, those that can be measured
        ratio = _ratios(base)
        # Every unit takes its clips' weight away; where it changes a mean, the class's new ratio replaces the old one.
        of_class = self.sizes * share
        lost = cells.counts * share[cells.codes]
        total = float((of_class * ratio).sum()) - np.bincount(cells.units, lost * ratio[cells.codes], units)
        count = float(of_class.sum()) - np.bincount(cells.units, lost, units)
        touched, delta = self._balance_steps(protocol, swept)
        unit, code = touched // classes, touched % classes
        gone, queries_gone = self._members(unit, code)
        after = base[code] + delta
        with np.errstate(invalid="ignore", divide="ignore"):
            left = np.where(asked[code] > queries_gone, after[:, 2] / (asked[code] - queries_gone), 0.0)
        before_weight = (self.sizes[code] - gone) * share[code]
        after_weight = (self.sizes[code] - gone) * left
        total += np.bincount(unit, after_weight * _ratios(after) - before_weight * ratio[code], units)
        count += np.bincount(unit, after_weight - before_weight, units)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(count > 0.5, total / count, np.nan)

    def _members(self, units: Ints, codes: Ints) -> tuple[Floats, Floats]:
        """How many clips of a class each unit holds, and how many of them asked."""
        cells, size = self.cells, len(self.units)
        known = cells.codes * size + cells.units
        wanted = codes * size + units
        slot = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        there = known[slot] == wanted
        asked = np.bincount(cells.of[self.sample.rows], minlength=len(known))
        return np.where(there, cells.counts[slot], 0.0), np.where(there, asked[slot], 0.0)

    def _hubness(self, protocol: str, k: int) -> Iterator[tuple[str, Floats]]:
        layout, units = self.layout, self.units
        starts, places, steps = self._events(protocol, k)
        seen = hubs.k_occurrences(self.swept[protocol].neighbours.places, k)
        sums = [np.zeros(len(units)) for _ in range(3)]
        kernels.leave_out_seen(units.starts, units.members, seen, starts, places, steps, *sums)
        queries = self.sample.size - np.bincount(units.of[self.sample.base], minlength=len(units))
        left = layout.n - np.diff(units.starts)
        assert set(HUBNESS) & self.metrics == {"hub_skew"}
        one, two, three = sums
        moments = hubs.sampled_moments(one, two, three, queries.astype(np.float64), left.astype(np.float64))
        yield "hub_skew", hubs.skew_of(*moments)


def _ratios(sums: Floats) -> Floats:
    """CSR of classes from rows (summed NID, summed MID, points); 0 where there are no points."""
    near, far, count = sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(count > 0.5, separation.csr_pointwise(near / count, far / count), 0.0)
