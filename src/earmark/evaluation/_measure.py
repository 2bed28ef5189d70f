"""One distance: for each correction sweep once for every metric, calibrate, tabulate."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.calibrate import bootstrap as resampling
from earmark.calibrate import deletions, permutation
from earmark.calibrate.closed_forms import CONTRAST
from earmark.evaluation._from_sweep import (
    ClassPairs,
    Evaluated,
    clusters_of,
    from_pairs,
    from_sweep,
    not_applicable,
    not_under,
    without_vectors,
)
from earmark.evaluation._intervals import IntervalPlan, plan_intervals
from earmark.evaluation._label_sets import not_of_sets
from earmark.evaluation._own_metrics import own_metrics
from earmark.evaluation._queries import Queries, draw_queries
from earmark.evaluation.data import Data
from earmark.evaluation.options import Options
from earmark.geometry import spaces
from earmark.geometry.corrections import Correction, Neighbourhoods, factors_of, on_sphere
from earmark.geometry.factors import Factors
from earmark.geometry.given import prepare_given
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Swept, Wanted, sweep
from earmark.metrics import catalogue
from earmark.progress import progress_bar
from earmark.scores import Row, Scores, metric_facts
from earmark.vectors._arranging import arranged

Floats = NDArray[np.float64]

CLASS_SUMS = frozenset({"own_mean", "other_mean", "class_pairs"})
"""What is made of summed distances to classes."""
WITH_VECTORS = {"sphere": "moves vectors", "dsl": "takes distances to means of vectors"}
"""Corrections that distances alone do not suffice for."""


@dataclass(frozen=True)
class _Setting:
    """A space, how its distances are corrected, and what a reader should know of it."""

    distance: str
    correction: Correction
    space: Space
    factors: Factors | None
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.distance if self.correction.name == "none" else f"{self.distance} {self.correction}"


KeepLists = Callable[[str, str, NDArray[np.int64]], None]  # (distance, correction, neighbours as given rows [N, k])


def measure(
    data: Data, distance: str, options: Options, where: dict[str, str], keep_lists: KeepLists | None = None
) -> Iterator[Scores]:
    """The scores of one distance under each correction; points are prepared and neighbours found once for all."""
    plain: Space | None = None
    near: Neighbourhoods | None = None
    for correction in options.correct:
        started = time.perf_counter()
        reason = correction.too_few(data.layout.n)
        if data.distances is not None and correction.name in WITH_VECTORS:
            reason = f"{correction.name} {WITH_VECTORS[correction.name]}, and distances were given without vectors"
        if reason:
            yield _refused(data, distance, correction, options, where, reason)
            continue
        if correction.name == "sphere":
            space = _prepare(data, distance, options, on_sphere(data.vectors))
        else:
            space = plain = plain or _prepare(data, distance, options, data.vectors)
        factors = None
        if not correction.keeps_points:
            near = near or Neighbourhoods(
                space, data.layout, options.correct,
                threads=options.threads, memory=options.memory, device=options.device,
            )  # fmt: skip
            passes = 1 + correction.iterations if correction.name == "icdm" else 1
            with progress_bar(
                options.progress, passes * space.n, f"{distance} {correction}: neighbourhoods", "row"
            ) as tick:
                factors = factors_of(correction, near, progress=tick)
        setting = _Setting(distance, correction, space, factors, (*data.notes, *_flat_notes(space)))
        yield _measure(data, setting, options, where, started, keep_lists)


def _prepare(data: Data, distance: str, options: Options, vectors: NDArray[Any]) -> Space:
    if data.distances is not None:
        return prepare_given(partial(arranged, data.distances, memory=options.memory), data.order, distance)
    return spaces.prepare(vectors, distance, order=data.order, ties=options.ties, threads=options.threads)


def _flat_notes(space: Space) -> list[str]:
    kind = "zero" if space.distance == "cosine" else "constant"
    flat = int(space.flat.sum())
    return [f"{flat} {kind} vectors have no direction: their distance to all is 1"] if flat else []


def _measure(
    data: Data, setting: _Setting, options: Options, where: dict[str, str], started: float,
    keep_lists: KeepLists | None,
) -> Scores:  # fmt: skip
    names, ks = catalogue.plan(options.metrics, options.k)
    layout, threads, space = data.layout, options.threads, setting.space
    refused = not_under(setting.correction, names) | ({} if data.distances is None else without_vectors(names))
    if layout.sets is not None:
        everything = options.metrics is None or "all" in options.metrics
        names = (*catalogue.LABELS, *(name for name in names if name not in catalogue.LABELS)) if everything else names
        refused = not_of_sets(names) | refused
    sample = draw_queries(layout, options, names)
    queries: Queries | None = None
    if sample is not None:
        queries = Queries(sample, space, layout, names, options, corrected=setting.factors is not None)
        refused = queries.refused() | refused
    needed = catalogue.needs([*(name for name in names if name not in refused), *(["P@k"] if ks else [])])
    if catalogue.needs(filter(catalogue.is_own, names)) & {"neighbours", "neighbour_distances"}:
        needed |= {"occurrences"}  # lists as deep as theirs
    if layout.classes < 2:
        needed -= CLASS_SUMS
    counts = None
    if options.bootstrap:
        counts = resampling.resample(layout.order, layout.groups, options.bootstrap, options.seed)
    protocols = _protocols(options)
    usable = tuple(name for name in names if name not in refused)
    intervals = plan_intervals(layout, usable, len(protocols), options, sample)
    pairs = ClassPairs(protocols, layout.classes, options.bootstrap)
    depth = intervals.depth(max((*ks, options.hub_k if "occurrences" in needed else 1)))
    if options.permutations:
        depth = max(depth, permutation.neighbours_needed(layout))
    wanted = Wanted(
        neighbours=depth,
        farthest="farthest_same" in needed,
        class_sums=bool(needed & CLASS_SUMS),
        across_groups=options.across_groups,
        weights=counts if "class_pairs" in needed else None,
        visit_class=pairs.visit if "class_pairs" in needed and queries is None else None,
        units=intervals.units.of if intervals.jackknife else None,
        keep_sums=_keeps_sums(queries, intervals) and bool(needed & CLASS_SUMS),
    )
    swept: dict[str, Swept] = {}
    if needed - catalogue.FROM_POINTS:
        asking = layout.n if sample is None else len(sample.rows)
        with progress_bar(options.progress, asking, f"{setting.title}: distances", "row") as tick:
            swept = sweep(
                space, layout, wanted,
                factors=setting.factors, threads=threads, memory=options.memory, device=options.device,
                rows=None if sample is None else sample.rows, progress=tick,
            )  # fmt: skip
    without: dict[str, dict[str, Floats]] = {}
    if swept and intervals.jackknife:
        with progress_bar(options.progress, 1, f"{setting.title}: intervals", "") as tick:
            if queries is not None:
                without = queries.leave_out(
                    swept, intervals.units, intervals.metrics, ks, options.hub_k, setting.factors
                )
            else:
                without = deletions.leave_out(
                    space, layout, swept, intervals.units, intervals.metrics, ks, hub_k=options.hub_k,
                    factors=setting.factors, threads=threads, memory=options.memory, device=options.device,
                )  # fmt: skip
            tick(1)
    items: dict[str, list[Evaluated | Row]] = {name: [] for name in protocols}
    for name in protocols:
        if swept:
            left = without.get(name, {})
            for item in _from_sweep(
                queries, swept[name], pairs, name, names, ks, layout, counts, options.hub_k, refused, intervals
            ):
                found = None if isinstance(item, Row) else left.get(item.metric, item.without)
                items[name].append(item if isinstance(item, Row) else replace(item, without=found))
        else:
            items[name] += [not_applicable(metric, why) for metric, why in refused.items() if from_pairs(metric)]
        items[name] += own_metrics(data, swept.get(name), names, options.hub_k, refused, counts, name)
    items["all"] += clusters_of(space, layout, names, options, setting.title, refused)
    nulls: dict[str, dict[str, Floats]] = {}
    schemes = {name: _scheme(layout, name, options) for name in protocols}
    calibrated = (frozenset(names) - frozenset(refused)) & (permutation.CALIBRATED | permutation.LABEL_METRICS)
    if queries is not None:
        calibrated = queries.calibrated(calibrated)
    usable_ks = tuple(k for k in ks if k < layout.n)
    if options.permutations and swept and (calibrated or usable_ks):
        with progress_bar(options.progress, 1.0, f"{setting.title}: permutations", "") as tick:
            together: dict[bool, dict[str, Swept]] = {}
            for name, found_in in swept.items():
                together.setdefault(schemes[name].ignored, {})[name] = found_in
            for part in together.values():
                nulls |= permutation.null_distributions(
                    space, layout, part, calibrated, usable_ks, options.permutations,
                    scheme=schemes[next(iter(part))], factors=setting.factors,
                    seed=options.seed, threads=threads, memory=options.memory, device=options.device,
                    rows=None if sample is None else np.flatnonzero(sample.base),
                    progress=lambda share: tick(share / len(together)),
                )  # fmt: skip
    base = _base(data, setting.distance, setting.correction, options, where, time.perf_counter() - started)
    rows, per_point, per_unit = [], {}, {}
    key = setting.distance, str(setting.correction)
    for name, measured in items.items():
        for item in measured:
            null = nulls.get(name, {})
            row = _row(item, name, base, null, setting.notes, intervals, schemes[name], options.permutations)
            rows.append(row)
            if options.per_unit and isinstance(item, Evaluated) and item.without is not None:
                by_row = intervals.units.kind == "clip"
                per_unit[(*key, name, item.metric)] = layout.to_rows(item.without) if by_row else item.without
            if options.per_point and isinstance(item, Evaluated) and item.points is not None:
                values = np.full(data.rows, np.nan)
                values[data.order] = item.points
                per_point[(*key, name, item.metric)] = values
        if options.per_point and name in swept:
            per_point[(*key, name, "nearest_row")] = _nearest_rows(data, swept[name])
    if keep_lists is not None and swept:
        keep_lists(*key, layout.to_rows(data.order[swept["all"].neighbours.places]))
    return Scores(rows=tuple(rows), per_point=per_point, per_unit=per_unit)


def _scheme(layout: Layout, protocol: str, options: Options) -> permutation.Scheme:
    """How labels are shuffled: across groups always as groups allow, for what is left out there are whole groups."""
    return permutation.scheme_of(layout, ignore_groups=options.shuffle == "clips" and protocol == "all")


def _keeps_sums(queries: Queries | None, intervals: IntervalPlan) -> bool:
    if queries is None:
        return intervals.keep_sums
    return queries.keeps_sums or (intervals.jackknife and CONTRAST in intervals.metrics)


def _from_sweep(
    queries: Queries | None, swept: Swept, pairs: ClassPairs, protocol: str, names: tuple[str, ...],
    ks: tuple[int, ...], layout: Layout, counts: resampling.Counts | None, hub_k: int, refused: dict[str, str],
    intervals: IntervalPlan,
) -> Iterator[Evaluated | Row]:  # fmt: skip
    if queries is None:
        return from_sweep(swept, pairs, protocol, names, ks, layout, counts, hub_k, refused)
    usable = [name for name in names if name not in refused]
    own = queries.own_items(swept, protocol, usable, hub_k, intervals.units, jackknife=intervals.jackknife)
    return from_sweep(
        queries.base(swept), pairs, protocol, names, ks, layout, counts, hub_k, refused,
        asking=queries.sample.base, elsewhere=list(own), note=queries.note,
    )  # fmt: skip


def _protocols(options: Options) -> tuple[str, ...]:
    return ("all", "across_groups") if options.across_groups else ("all",)


def _base(
    data: Data, distance: str, correction: Correction, options: Options, where: dict[str, str], seconds: float
) -> dict[str, Any]:
    """The cells that all rows of one distance and correction share."""
    measure = distance if correction.name == "none" else f"{distance} {correction}"
    text = f"{data.digest} {measure} {options.fingerprint()} {__version__}"
    return {
        **where, "distance": distance, "correction": str(correction), "seconds": seconds, "version": __version__,
        "inputs": hashlib.sha256(text.encode()).hexdigest(),
    }  # fmt: skip


def _refused(
    data: Data, distance: str, correction: Correction, options: Options, where: dict[str, str], reason: str
) -> Scores:
    """Rows without values: what is there cannot be corrected like this."""
    names, ks = catalogue.plan(options.metrics, options.k)
    base = _base(data, distance, correction, options, where, 0.0)
    return Scores(
        tuple(
            _row(not_applicable(metric, reason), protocol, base, {}, (), None)
            for protocol in _protocols(options)
            for metric in (*(f"P@{k}" for k in ks), *names)
            if protocol == "all" or from_pairs(metric)
        )
    )


def _nearest_rows(data: Data, swept: Swept) -> Floats:
    """The given row of each given row's nearest neighbour; NaN where there is none."""
    nearest = swept.neighbours.places[:, 0]
    rows = np.full(data.rows, np.nan)
    rows[data.order] = np.where(nearest >= 0, data.order[nearest], np.nan)
    return rows


def _row(
    item: Evaluated | Row, protocol: str, base: dict[str, Any], nulls: dict[str, Floats], notes: Iterable[str],
    intervals: IntervalPlan | None, scheme: permutation.Scheme | None = None, permutations: int = 0,
) -> Row:  # fmt: skip
    if catalogue.is_own(item.metric):
        known = f"{base['inputs']} {catalogue.digest([item.metric])}"
        base = base | {"inputs": hashlib.sha256(known.encode()).hexdigest()}
    if isinstance(item, Row):
        return Row(metric=item.metric, protocol=protocol, status=item.status, reason=item.reason, **base)
    cells, remark = ({}, "") if intervals is None else intervals.cells(item)
    shuffled = nulls.get(item.metric)
    if scheme is not None and shuffled is not None and np.isfinite(shuffled).any():
        null = permutation.against_null(
            item.value, shuffled,
            higher_is_better=metric_facts(item.metric).higher_is_better, exact=scheme.exact(permutations),
        )  # fmt: skip
        cells |= {
            "baseline": null.baseline, "baseline_low": null.low, "baseline_high": null.high, "lift": null.lift,
            "p_value": null.p_value if scheme.testable else None, "shuffle": scheme.label, "baseline_error": null.error,
        }  # fmt: skip
    if scheme is not None and permutations and permutation.has_null(item.metric):
        notes = [*notes, *scheme.notes(permutations)]
    reason = "; ".join(filter(None, [*notes, item.reason, remark]))
    return Row(metric=item.metric, protocol=protocol, value=item.value, n=item.n, reason=reason, **cells, **base)
