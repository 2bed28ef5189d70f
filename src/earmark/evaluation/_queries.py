"""Where not every clip asks (`queries`): what is drawn, what cannot be measured then, and what a row says of it.

P@k, GSR, CSR_pointwise, silhouette   means over the clips drawn: unbiased
hub_skew                              unbiased moments of how many lists each clip is in
CSR                                   class means, less the bias of a ratio of them
CS, CSCF                              exact under cosine and spearman; else estimated class means, less the bias
other hubness, strangers' metrics     take every clip's neighbours: no value, and the row says so
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import permutation, sampled_deletions, sampled_pairs
from earmark.calibrate import sample as sampling
from earmark.calibrate.closed_forms import CLASS_MEANS, PAIR_SHARES
from earmark.calibrate.deletions import Units
from earmark.calibrate.sample import Sample
from earmark.evaluation._from_sweep import Evaluated, from_pairs, not_applicable
from earmark.evaluation.options import Options
from earmark.geometry import hubness as hubs
from earmark.geometry.factors import Factors
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Swept
from earmark.metrics import catalogue, separation
from earmark.scores import Row
from earmark.scores.spelling import SAMPLED

Floats = NDArray[np.float64]


class Queries:
    """The sample of one setting: its draw, and what is estimated from it."""

    def __init__(
        self, sample: Sample, space: Space, layout: Layout, names: Iterable[str], options: Options, *, corrected: bool
    ) -> None:
        self.sample, self.space, self.layout, self.options = sample, space, layout, options
        self.closed_form = space.halved and not corrected
        self.names = frozenset(names)
        self.note = f"{sample.size} of {layout.n} {SAMPLED} (seed {options.seed})"

    def refused(self) -> dict[str, str]:
        """Metrics that a sample cannot give under any protocol, and why."""
        reasons = {name: self._reason(name, "all") for name in self.names}
        return {name: reason for name, reason in reasons.items() if reason}

    def _reason(self, name: str, protocol: str) -> str:
        """Why a sample cannot give a metric; empty where it can."""
        layout, sample = self.layout, self.sample
        if name in catalogue.HUBNESS and name != "hub_skew":
            return (
                f"it counts the neighbour lists of every clip, and {sample.size} of {layout.n} were made: leave out "
                "queries"
            )
        if name in catalogue.LABELS:
            return "it averages over the clips of every label: leave out queries"
        if catalogue.is_own(name) and from_pairs(name):
            return "it takes the neighbours of every clip: leave out queries"
        if name not in CLASS_MEANS or not self._is_estimated(name, protocol):
            return ""
        if not sample.covers_classes:
            return (
                f"it takes {sampling.LEAST} queries of each of {layout.classes} classes: draw at least "
                f"{sampling.LEAST * layout.classes}"
            )
        if name == "CSCF":
            return (
                "which of two mean distances is smaller cannot be told from a sample without bias: leave out queries, "
                "or take CS"
            )
        if name in PAIR_SHARES and not self.sums_fit:
            return (
                f"the distances of {len(sample.rows)} queries to {layout.classes} classes do not fit in half of the "
                "memory allowed; allow more with --memory"
            )
        return ""

    @property
    def sums_fit(self) -> bool:
        """Whether class sums of the queries may be kept, with tables of classes by classes beside them."""
        protocols = 2 if self.options.across_groups else 1
        size = len(self.sample.rows) * protocols + 4 * self.layout.classes
        return 8 * size * self.layout.classes <= self.options.memory // 2

    @property
    def keeps_sums(self) -> bool:
        """Whether a value rests on kept class sums."""
        protocols = ("all", "across_groups") if self.options.across_groups else ("all",)
        return any(
            name in PAIR_SHARES and self._is_estimated(name, protocol) and not self._reason(name, protocol)
            for name in self.names
            for protocol in protocols
        )

    def _is_estimated(self, name: str, protocol: str) -> bool:
        return name not in PAIR_SHARES or protocol != "all" or not self.closed_form

    def base(self, swept: Swept) -> Swept:
        return sampled_deletions.of_base(swept, self.sample)

    def own_items(
        self, swept: Swept, protocol: str, names: Iterable[str], hub_k: int, units: Units, *, jackknife: bool
    ) -> Iterator[Evaluated | Row]:
        """The metrics that are no means over queries; `swept` is what everything that asked found."""
        layout, sample = self.layout, self.sample
        wanted = [name for name in names if not self._reason(name, protocol)]
        yield from (not_applicable(name, self._reason(name, protocol)) for name in names if name not in wanted)
        if PAIR_SHARES & set(wanted):
            yield from self._pair_shares(swept, protocol, wanted, units, jackknife=jackknife)
        for name in wanted:
            if name == "CSR":
                codes = layout.codes[sample.rows]
                near, wide = swept.nearest_other[sample.rows], swept.farthest_same[sample.rows]
                value = separation.sampled_csr(near, wide, codes, layout.sizes.astype(np.float64), sample.asked)
                measured = int((np.isfinite(near) & np.isfinite(wide)).sum())
                yield self._item(name, value, measured, "no point has a same-class partner to be compared with")
            elif name == "hub_skew":
                if hub_k >= layout.n:
                    why = f"k = {hub_k} needs at least {hub_k + 1} points, there are {layout.n}"
                    yield not_applicable(name, why)
                    continue
                value = hubs.sampled_skew(swept.neighbours.places[sample.base, :hub_k], layout.n)
                why = "with so few queries the spread of occurrences is not told apart from chance: draw more"
                yield self._item(name, value, sample.size, why)

    def _item(self, name: str, value: float, n: int, why: str) -> Evaluated | Row:
        if not np.isfinite(value):
            return not_applicable(name, why)
        return Evaluated(name, value, n, reason=self._told(self.note) if name in CLASS_MEANS else self.note)

    def _told(self, note: str) -> str:
        """A remark on class means, with what shuffles cannot give of them."""
        lacking = "no baseline: class means under shuffled labels take every clip as a query"
        return f"{note}; {lacking}" if self.options.permutations else note

    def _pair_shares(
        self, swept: Swept, protocol: str, names: Iterable[str], units: Units, *, jackknife: bool
    ) -> Iterator[Evaluated | Row]:
        layout, sample = self.layout, self.sample
        estimated = self._is_estimated("CS", protocol)
        if estimated:
            means = sampled_pairs.estimated_means(layout, swept, sample, protocol)
        else:
            means = sampled_pairs.exact_means(self.space, layout)
        clips = units.kind == "clip"
        shares = sampled_pairs.share_metrics(
            layout, sample, means, threads=self.options.threads, jackknife=jackknife and clips
        )
        for name in names:
            if name not in PAIR_SHARES:
                continue
            if name not in shares:
                yield not_applicable(name, "no pair of classes can be compared")
                continue
            share = shares[name]
            note = self.note if estimated else "exact, from the means of classes"
            n = len(sample.rows) if estimated else layout.n
            yield Evaluated(name, share.value, n, reason=self._told(note), without=share.without)

    def leave_out(
        self, swept: dict[str, Swept], units: Units, metrics: Iterable[str], ks: tuple[int, ...], hub_k: int,
        factors: Factors | None,
    ) -> dict[str, dict[str, Floats]]:  # fmt: skip
        return sampled_deletions.leave_out(
            self.space, self.layout, swept, self.sample, units, set(metrics) - PAIR_SHARES, ks, hub_k=hub_k,
            factors=factors, threads=self.options.threads, memory=self.options.memory,
        )  # fmt: skip

    def calibrated(self, metrics: frozenset[str]) -> frozenset[str]:
        """Of some metrics, those whose baseline is measured on the queries."""
        found = metrics & permutation.MEANS
        sums = 8 * self.layout.classes**2 * min(self.options.permutations, 64)
        return found if sums <= self.options.memory // 2 else found - {"silhouette"}


def draw_queries(layout: Layout, options: Options, names: Iterable[str]) -> Sample | None:
    """The sample asked for; None where every clip asks."""
    return sampling.draw(layout, options.queries, options.seed, by_class=bool(CLASS_MEANS & set(names)))
