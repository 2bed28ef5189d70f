"""One distance: sweep once for every metric, calibrate, tabulate."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.calibrate import bootstrap as resampling
from earmark.calibrate import permutation
from earmark.errors import MissingExtra
from earmark.evaluation.data import Data
from earmark.evaluation.options import Options
from earmark.geometry import hubness as hubs
from earmark.geometry import spaces
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Swept, Wanted, sweep
from earmark.metrics import catalogue, clustering, retrieval, separation
from earmark.scores import Row, Scores, metric_facts
from earmark.wording import counted

Floats = NDArray[np.float64]


class _ClassPairs:
    """Collects CS and CSCF terms class by class while the sweep runs; slots by class, so order is no matter."""

    def __init__(self, protocols: Iterable[str], classes: int, resamples: int) -> None:
        self.terms = {name: np.zeros((3, classes, 1 + resamples)) for name in protocols}

    def visit(self, protocol: str, code: int, means: Floats) -> None:
        for slot, term in enumerate(separation.pair_shares(np.full(len(means), code), means)):
            self.terms[protocol][slot, code] = term

    def values(self, protocol: str) -> tuple[Floats, Floats, int]:
        """CS and CSCF of the data and of every resample, and the number of class pairs measured."""
        overlap, confused, pairs = self.terms[protocol].sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return overlap / pairs, confused / pairs, int(pairs[0])


@dataclass(frozen=True)
class _Measured:
    """One metric before it becomes a row."""

    metric: str
    value: float
    n: int
    resampled: Floats | None = None
    points: Floats | None = None  # per place
    reason: str = ""


def measure(data: Data, distance: str, options: Options, where: dict[str, str]) -> Scores:
    started = time.perf_counter()
    names, ks = catalogue.plan(options.metrics, options.k)
    layout, threads = data.layout, options.threads
    space = spaces.prepare(data.vectors, distance, order=data.order, ties=options.ties, threads=threads)
    notes = list(data.notes)
    if space.flat.any():
        kind = "zero" if distance == "cosine" else "constant"
        notes.append(f"{int(space.flat.sum())} {kind} vectors have no direction: their distance to all is 1")
    needed = catalogue.needs([*names, *(["P@k"] if ks else [])])
    if layout.classes < 2:
        needed -= {"class_sums", "class_pairs"}
    counts = None
    if options.bootstrap:
        counts = resampling.resample(layout.order, layout.groups, options.bootstrap, options.seed)
    protocols = ("all", "across_groups") if options.across_groups else ("all",)
    pairs = _ClassPairs(protocols, layout.classes, options.bootstrap)
    wanted = Wanted(
        neighbours=_neighbours(layout, ks, needed, options),
        farthest="farthest" in needed,
        class_sums="class_sums" in needed,
        across_groups=options.across_groups,
        weights=counts if "class_pairs" in needed else None,
        visit_class=pairs.visit if "class_pairs" in needed else None,
    )
    swept: dict[str, Swept] = {}
    if needed - {"kmeans", "density"}:
        with _bar(options, layout.n, f"{distance}: distances", "row") as tick:
            swept = sweep(space, layout, wanted, threads=threads, memory=options.memory, progress=tick)
    found: dict[str, list[_Measured | Row]] = {name: [] for name in protocols}
    for name in protocols:
        if swept:
            found[name] += _from_sweep(swept[name], pairs, name, names, ks, layout, counts, options)
    found["all"] += _clusters(space, layout, names, options, distance)
    nulls: dict[str, dict[str, Floats]] = {}
    calibrated = frozenset(names) & permutation.CALIBRATED
    usable_ks = tuple(k for k in ks if k < layout.n)
    if options.permutations and swept and (calibrated or usable_ks):
        with _bar(options, 1.0, f"{distance}: permutations", "") as tick:
            nulls = permutation.null_distributions(
                space, layout, swept, calibrated, usable_ks, options.permutations,
                seed=options.seed, threads=threads, memory=options.memory, progress=tick,
            )  # fmt: skip
    seconds = time.perf_counter() - started
    base: dict[str, Any] = {
        **where, "distance": distance, "seconds": seconds, "version": __version__,
        "inputs": _inputs(data, distance, options),
    }  # fmt: skip
    rows, per_point = [], {}
    for name, measured in found.items():
        for item in measured:
            row = _row(item, name, base, nulls.get(name, {}), notes)
            rows.append(row)
            if options.per_point and isinstance(item, _Measured) and item.points is not None:
                values = np.full(data.rows, np.nan)
                values[data.order] = item.points
                per_point[(distance, "none", name, item.metric)] = values
        if options.per_point and name in swept:
            per_point[(distance, "none", name, "nearest_row")] = _nearest_rows(data, swept[name])
    return Scores(rows=tuple(rows), per_point=per_point)


def _nearest_rows(data: Data, swept: Swept) -> Floats:
    """The given row of each given row's nearest neighbour; NaN where there is none."""
    nearest = swept.neighbours.places[:, 0]
    rows = np.full(data.rows, np.nan)
    rows[data.order] = np.where(nearest >= 0, data.order[nearest], np.nan)
    return rows


def _neighbours(layout: Layout, ks: tuple[int, ...], needed: frozenset[str], options: Options) -> int:
    depth = max((*ks, options.hub_k if "occurrences" in needed else 1))
    if options.permutations:
        depth = max(depth, permutation.neighbours_needed(layout))
    return depth


def _from_sweep(
    swept: Swept,
    pairs: _ClassPairs,
    protocol: str,
    names: tuple[str, ...],
    ks: tuple[int, ...],
    layout: Layout,
    counts: resampling.Counts | None,
    options: Options,
) -> Iterator[_Measured | Row]:
    """Every metric that the sweep's quantities decide, in catalogue order."""
    places = swept.neighbours.places
    answerable = _partners(layout, protocol) > 0
    alone = int((~answerable).sum())
    excluded = f"{counted(alone, 'point')} without a same-class partner excluded" if alone else ""

    def mean_of(metric: str, points: Floats, why: str = "") -> _Measured | Row:
        points = np.where(answerable, points, np.nan)
        valid = np.isfinite(points)
        short = int((answerable & ~valid).sum())
        remarks = "; ".join(filter(None, [excluded, f"{counted(short, 'point')} {why}" if short and why else ""]))
        if not valid.any():
            return _not_applicable(metric, "no point has a same-class partner to be compared with")
        resampled = None if counts is None else resampling.resampled_means(points, counts)
        return _Measured(metric, float(points[valid].mean()), int(valid.sum()), resampled, points, remarks)

    for k in ks:
        if k >= layout.n:
            yield _not_applicable(f"P@{k}", f"k = {k} needs more than {layout.n} points")
            continue
        codes = np.where(places[:, :k] >= 0, layout.codes[places[:, :k]], -1)
        points = retrieval.precision_at_k(codes, layout.codes, k)
        if protocol == "across_groups":
            # A query whose group leaves fewer than k candidates has no k-th neighbour to judge.
            points = np.where(places[:, k - 1] >= 0, points, np.nan)
        yield mean_of(f"P@{k}", points, f"with fewer than {counted(k, 'candidate')} outside their group excluded")
    for name in names:
        if name == "GSR":
            yield mean_of(name, separation.gsr(swept.nearest_other, swept.own_mean))
        elif name == "CSR_pointwise":
            yield mean_of(name, separation.csr_pointwise(swept.nearest_other, swept.farthest_same))
        elif name == "silhouette":
            yield mean_of(name, separation.silhouette(swept.own_mean, swept.other_mean))
        elif name == "CSR":
            yield _csr(swept, layout, counts, excluded)
        elif name in ("CS", "CSCF"):
            cs, cscf, measured = pairs.values(protocol)
            values = cs if name == "CS" else cscf
            if measured:
                resampled = values[1:] if len(values) > 1 else None
                yield _Measured(name, float(values[0]), layout.n - alone, resampled, reason=excluded)
            else:
                yield _not_applicable(name, "no pair of classes can be compared")
        elif name in catalogue.HUBNESS:
            yield _hubness(name, places, layout.n, options.hub_k)


def _partners(layout: Layout, protocol: str) -> NDArray[np.int64]:
    """How many same-class points each place may be compared with."""
    partners = layout.sizes[layout.codes] - 1
    if protocol == "across_groups" and layout.groups is not None:
        cells = layout.groups * layout.classes + layout.codes
        _, cell, size = np.unique(cells, return_inverse=True, return_counts=True)
        partners = partners - (size[cell] - 1)
    return np.asarray(partners)


def _csr(swept: Swept, layout: Layout, counts: resampling.Counts | None, excluded: str) -> _Measured | Row:
    points = int((np.isfinite(swept.nearest_other) & np.isfinite(swept.farthest_same)).sum())
    if not points:
        return _not_applicable("CSR", "no point has a same-class partner to be compared with")
    near, far, starts = swept.nearest_other, swept.farthest_same, layout.starts
    value = separation.csr(near, far, starts, np.ones((1, layout.n)))[0]
    resampled = None
    if counts is not None:
        # A resample at a time: [resamples, N] in float64 would be the largest array of the evaluation.
        resampled = np.array([separation.csr(near, far, starts, row[None, :])[0] for row in counts])
    return _Measured("CSR", float(value), points, resampled, reason=excluded)


def _hubness(name: str, places: NDArray[np.int64], n: int, k: int) -> _Measured | Row:
    if k >= n:
        return _not_applicable(name, f"k = {k} needs more than {n} points")
    if not (places[:, 0] >= 0).any():
        return _not_applicable(name, "no point has a neighbour outside its group")
    occurrences = hubs.k_occurrences(places, k)
    measure: dict[str, float] = {
        "hub_ratio": hubs.hub_ratio(occurrences, k),
        "antihub_rate": hubs.antihub_rate(occurrences),
        "hub_skew": hubs.hub_skew(occurrences),
        "robin_hood": hubs.robin_hood(occurrences),
    }
    points = occurrences.astype(np.float64) if name == "hub_ratio" else None
    return _Measured(name, measure[name], n, points=points)


def _clusters(
    space: Space, layout: Layout, names: tuple[str, ...], options: Options, distance: str
) -> Iterator[_Measured | Row]:
    # In the order the rows were given: clusters must not depend on the labels they are judged by.
    codes = layout.to_rows(layout.codes)
    asked = [name for name in names if name in catalogue.CLUSTERING]
    if asked:
        with _bar(options, 1, f"{distance}: k-means", "fit") as tick:
            clusters = clustering.kmeans_clusters(layout.to_rows(space.points), layout.classes, options.seed)
            tick(1)
        for name in asked:
            measure = {"NMI": clustering.nmi, "ARI": clustering.ari, "kmeans_purity": clustering.purity}[name]
            yield _Measured(name, measure(clusters, codes), layout.n)
    if "purity" in names:
        try:
            with _bar(options, 1, f"{distance}: UMAP + HDBSCAN", "fit") as tick:
                clusters = clustering.density_clusters(layout.to_rows(space.points), options.seed)
                tick(1)
        except MissingExtra as error:
            yield _not_applicable("purity", str(error))
            return
        noise = int((clusters < 0).sum())
        if noise == layout.n:
            yield _not_applicable("purity", "HDBSCAN found no cluster: every point is noise")
        else:
            value = clustering.purity(clusters, codes)
            reason = f"{counted(noise, 'point')} called noise by HDBSCAN left out" if noise else ""
            yield _Measured("purity", value, layout.n - noise, reason=reason)


def _not_applicable(metric: str, reason: str) -> Row:
    return Row(metric=metric, status="not_applicable", reason=reason)


def _row(item: _Measured | Row, protocol: str, base: dict[str, Any], nulls: dict[str, Floats], notes: list[str]) -> Row:
    if isinstance(item, Row):
        return Row(metric=item.metric, protocol=protocol, status=item.status, reason=item.reason, **base)
    cells: dict[str, Any] = {}
    if item.resampled is not None:
        cells["low"], cells["high"] = resampling.interval(item.resampled)
    shuffled = nulls.get(item.metric)
    if shuffled is not None and np.isfinite(shuffled).any():
        null = permutation.against_null(
            item.value, shuffled, higher_is_better=metric_facts(item.metric).higher_is_better
        )
        cells |= {
            "baseline": null.baseline, "baseline_low": null.low, "baseline_high": null.high,
            "lift": null.lift, "p_value": null.p_value,
        }  # fmt: skip
    reason = "; ".join(filter(None, [*notes, item.reason]))
    return Row(metric=item.metric, protocol=protocol, value=item.value, n=item.n, reason=reason, **cells, **base)


def _inputs(data: Data, distance: str, options: Options) -> str:
    text = f"{data.digest} {distance} {options.fingerprint()} {__version__}"
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _bar(options: Options, total: float, title: str, unit: str) -> Iterator[Any]:
    """A progress bar on stderr that appears only when the work takes over two seconds."""
    if not options.progress:
        yield lambda _: None
        return
    from tqdm import tqdm

    shape = "{l_bar}{bar}| {elapsed} so far, {remaining} left"
    with tqdm(total=total, desc=title, unit=unit, delay=2.0, leave=False, bar_format=shape) as bar:
        yield bar.update
