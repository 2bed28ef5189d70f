"""How the rows of one setting get their intervals: what must be kept while sweeping, and what a row then says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import bootstrap as resampling
from earmark.calibrate import deletions, jackknife
from earmark.calibrate.closed_forms import CLASS_SUMS, PAIR_SHARES
from earmark.calibrate.sample import Sample
from earmark.evaluation._from_sweep import Evaluated, from_pairs
from earmark.evaluation.options import Options
from earmark.geometry.layout import Layout
from earmark.metrics import catalogue
from earmark.scores import metric_facts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class IntervalPlan:
    """The units of the jackknife, the metrics it is for (P@k apart), and why others have no interval."""

    kind: str
    units: deletions.Units
    metrics: frozenset[str]
    reasons: dict[str, str]
    queries: int | None = None  # how many asked, where not all did

    @property
    def jackknife(self) -> bool:
        return self.kind == "jackknife" and self.size >= jackknife.LEAST_UNITS

    @property
    def size(self) -> int:
        """How many units a value rests on: of a sample of queries as many clips as asked."""
        if self.queries is None or self.units.kind != "clip":
            return len(self.units)
        return self.queries

    @property
    def keep_sums(self) -> bool:
        return self.jackknife and bool(self.metrics & CLASS_SUMS)

    def depth(self, k: int) -> int:
        """How deep the lists of neighbours must be."""
        return deletions.depth_needed(k, self.units) if self.jackknife else k

    def cells(self, item: Evaluated) -> tuple[dict[str, Any], str]:
        """The cells of a row that tell its interval, and a remark for its reason."""
        if self.kind == "bootstrap" and item.resampled is not None:
            low, high = resampling.interval(item.resampled)
            return {"low": low, "high": high, "interval": "bootstrap_queries", **self._unit_cells()}, ""
        if self.kind != "jackknife":
            return {}, ""
        if not self.jackknife:
            return {}, jackknife.too_few(self.size, self.units.kind)
        if item.metric in self.reasons:
            return {}, self.reasons[item.metric]
        if item.without is None and self.queries is not None and item.metric in PAIR_SHARES:
            return {}, "no interval: with queries drawn, leaving out a group takes the distances of all its clips"
        if item.without is None:
            clustered = item.metric in catalogue.CLUSTERED
            return {}, f"no interval: it would take a new {'clustering' if clustered else 'evaluation'} for each clip"
        low, high = metric_facts(item.metric).range
        # Where every point has k neighbours, no mean of the highest counts is under their mean.
        ends = (1.0, high) if item.metric == "hub_ratio" and item.value >= 1.0 else (low, high)
        outcome = jackknife.interval(item.value, item.without, ends, self.units.kind, units=self.size)
        if outcome.low is None:
            return {}, outcome.reason
        return {"low": outcome.low, "high": outcome.high, "interval": "jackknife", **self._unit_cells()}, ""

    def _unit_cells(self) -> dict[str, Any]:
        return {"unit": self.units.kind, "units": self.size}


def plan_intervals(
    layout: Layout, names: tuple[str, ...], protocols: int, options: Options, sample: Sample | None = None
) -> IntervalPlan:
    """Decide what the jackknife can do for the metrics of a setting."""
    units = deletions.units_of(layout)
    metrics = frozenset(name for name in names if from_pairs(name))
    reasons: dict[str, str] = {}
    asking = layout.n if sample is None else len(sample.rows)
    kept = CLASS_SUMS if sample is None else CLASS_SUMS - PAIR_SHARES  # which a sample treats by themselves
    if metrics & kept and not deletions.sums_fit(layout, protocols, options.memory, asking):
        large = (
            f"no interval: the distances of {asking} clips to {layout.classes} classes do not fit in half of the "
            "memory allowed; allow more with --memory"
        )
        reasons = dict.fromkeys(metrics & kept, large)
        metrics -= kept
    return IntervalPlan(options.intervals, units, metrics, reasons, None if sample is None else sample.size)
