"""What a sweep means: every metric of one setting, with its resampled values and its value at each point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import bootstrap as resampling
from earmark.calibrate.labels import label_sets_of, label_values, worth_of
from earmark.errors import MissingExtra
from earmark.evaluation.options import Options
from earmark.geometry import hubness as hubs
from earmark.geometry.corrections import Correction
from earmark.geometry.label_sets import partners_of
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Swept
from earmark.metrics import catalogue, clustering, separation
from earmark.progress import progress_bar
from earmark.scores import METRICS, Metric, Row
from earmark.wording import counted
from earmark.workers import Workers

Floats = NDArray[np.float64]


class ClassPairs:
    """Collects CS and CSCF terms class by class while the sweep runs; slots by class, so order is no matter."""

    def __init__(self, protocols: Iterable[str], classes: int, resamples: int) -> None:
        self.terms = {name: np.zeros((3, classes, 1 + resamples)) for name in protocols}

    def visit(self, protocol: str, code: int, means: Floats) -> None:
        for slot, term in enumerate(separation.pair_shares(np.full(len(means), code), means)):
            self.terms[protocol][slot, code] = term

    def values(self, protocol: str, metric: str) -> tuple[Floats, int]:
        """CS or CSCF of the data and of every resample, and the number of class pairs measured."""
        overlap, confused, pairs = self.terms[protocol].sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return (overlap if metric == "CS" else confused) / pairs, int(pairs[0])


@dataclass(frozen=True)
class Evaluated:
    """One metric before it becomes a row."""

    metric: str
    value: float
    n: int
    resampled: Floats | None = None
    points: Floats | None = None  # per place
    reason: str = ""
    without: Floats | None = None  # per unit


def from_pairs(metric: str) -> bool:
    """Whether distances of pairs decide a metric, and not points or clusters of them."""
    return metric.startswith("P@") or not catalogue.FROM_POINTS.issuperset(METRICS[metric].needs)


def not_under(correction: Correction, names: Iterable[str]) -> dict[str, str]:
    """Which of the metrics mean nothing under a correction, and why."""
    refused = {}
    for name in names:
        if correction.signed and name in catalogue.SEPARATION:
            refused[name] = f"{correction.name} gives differences, which may be negative: {name} needs distances"
        elif not correction.keeps_points and not from_pairs(name):
            refused[name] = f"{correction.name} corrects distances and moves no points: there is nothing to cluster"
    return refused


def without_vectors(names: Iterable[str]) -> dict[str, str]:
    """Which of the metrics mean nothing where distances were given and no vectors, and why."""
    reasons = {
        "kmeans": "k-means moves means of vectors", "density": "UMAP projects vectors", "vectors": "it takes vectors",
    }  # fmt: skip
    return {
        name: f"{reasons[need]}, and distances were given without them"
        for name in names
        for need in METRICS[name].needs
        if need in reasons
    }


def quantity(swept: Swept, name: str, k: int) -> Any:
    """What a metric asks of a sweep by the name of an argument: a value for each place, or k."""
    if name == "occurrences":
        return hubs.k_occurrences(swept.neighbours.places, k)
    return k if name == "k" else getattr(swept, name)


def from_sweep(
    swept: Swept, pairs: ClassPairs, protocol: str, names: tuple[str, ...], ks: tuple[int, ...], layout: Layout,
    counts: resampling.Counts | None, hub_k: int, refused: Mapping[str, str],
    asking: NDArray[np.bool_] | None = None, elsewhere: Iterable[Evaluated | Row] = (), note: str = "",
) -> Iterator[Evaluated | Row]:  # fmt: skip
    """Every metric of Earmark's own that the sweep's quantities decide, in catalogue order.

    `asking` marks the places that asked, where not all did; `elsewhere` are metrics that were measured in another way
    then, and `note` is what the others say of it.
    """
    places = swept.neighbours.places
    done = {item.metric: item for item in elsewhere}
    answerable = _partners(layout, protocol) > 0
    background = 0 if layout.sets is None else int((layout.sets.sizes[layout.codes] == 0).sum())
    alone = int((~answerable).sum()) - background
    if asking is not None:
        answerable = answerable & asking
    excluded = f"{counted(alone, 'point')} without a same-class partner excluded" if alone else ""

    def mean_of(metric: str, points: Floats, why: str = "") -> Evaluated | Row:
        points = np.where(answerable, points, np.nan)
        valid = np.isfinite(points)
        short = int((answerable & ~valid).sum())
        left_out = f"{counted(short, 'point')} {why}" if short and why else ""
        remarks = "; ".join(filter(None, [note, excluded, left_out]))
        if not valid.any():
            every = f"all points {why}" if why and answerable.any() else ""
            return not_applicable(metric, every or "no point has a same-class partner to be compared with")
        resampled = None if counts is None else resampling.resampled_means(points, counts)
        return Evaluated(metric, float(points[valid].mean()), int(valid.sum()), resampled, points, remarks)

    every = np.arange(layout.n)
    for k in ks:
        if k >= layout.n:
            yield not_applicable(f"P@{k}", f"k = {k} needs at least {k + 1} points, there are {layout.n}")
            continue
        points = worth_of(layout, "P@k", every, places[:, :k]).sum(axis=1) / k
        if protocol == "across_groups":
            # A query whose group leaves fewer than k candidates has no k-th neighbour to judge.
            points = np.where(places[:, k - 1] >= 0, points, np.nan)
        yield mean_of(f"P@{k}", points, f"with fewer than {counted(k, 'candidate')} outside their group excluded")
    for name in (name for name in catalogue.LABELS if name in names):
        if name in refused:
            yield not_applicable(name, refused[name])
        elif name == "label_jaccard":
            alike = worth_of(layout, name, every, places[:, :1])[:, 0]
            yield mean_of(name, np.where(places[:, 0] >= 0, alike, np.nan), "without a candidate excluded")
        else:
            yield _by_label(swept, protocol, layout)
    for name in (*catalogue.SEPARATION, *catalogue.HUBNESS):
        if name not in names:
            continue
        record = METRICS[name]
        if name in refused:
            yield not_applicable(name, refused[name])
        elif name in done:
            yield done[name]
        elif name in catalogue.HUBNESS:
            yield _hubness(record, swept, layout.n, hub_k)
        elif "class_pairs" in record.needs:
            values, measured = pairs.values(protocol, name)
            if measured:
                resampled = values[1:] if len(values) > 1 else None
                yield Evaluated(name, float(values[0]), layout.n - alone, resampled, reason=excluded)
            else:
                yield not_applicable(name, "no pair of classes can be compared")
        else:
            near, wide = (quantity(swept, need, hub_k) for need in record.needs[:2])
            if "weights" in record.needs:
                item = _by_class(record, near, wide, layout, counts, excluded)
            else:
                item = mean_of(name, record.compute(near, wide))
            felt = separation.epsilon_note(near, wide) if "nearest_other" in record.needs else ""
            if felt and isinstance(item, Evaluated):
                item = replace(item, reason="; ".join(filter(None, [item.reason, felt])))
            yield item


def _by_label(swept: Swept, protocol: str, layout: Layout) -> Evaluated | Row:
    """The mean over labels; it has no value of each point, and no resampled ones."""
    name = "label_P@1"
    value = label_values(layout, swept, protocol, (name,), ())[name]
    if not np.isfinite(value):
        return not_applicable(name, "no label is of two points that may be compared")
    asking = int((_partners(layout, protocol) > 0).sum())
    labels = counted(label_sets_of(layout).labels, "label")
    return Evaluated(name, value, asking, reason=f"mean over {labels}")


def _partners(layout: Layout, protocol: str) -> NDArray[np.int64]:
    """How many same-class points each place may be compared with; of label sets, whether there is any."""
    if layout.sets is not None:
        units = np.arange(layout.n) if layout.groups is None else layout.groups
        found = partners_of(layout.sets, layout.codes, units, across=protocol == "across_groups")
        return found.answerable.astype(np.int64)
    partners = layout.sizes[layout.codes] - 1
    if protocol == "across_groups" and layout.groups is not None:
        cells = layout.groups * layout.classes + layout.codes
        _, cell, size = np.unique(cells, return_inverse=True, return_counts=True)
        partners = partners - (size[cell] - 1)
    return np.asarray(partners)


def _by_class(
    record: Metric, near: Floats, wide: Floats, layout: Layout, counts: resampling.Counts | None, excluded: str
) -> Evaluated | Row:
    """A metric of class means: a function of two values of each place, of where classes start, and of weights."""
    points = int((np.isfinite(near) & np.isfinite(wide)).sum())
    if not points:
        return not_applicable(record.name, "no point has a same-class partner to be compared with")
    value = record.compute(near, wide, layout.starts, np.ones((1, layout.n)))[0]
    resampled = None
    if counts is not None:
        # A resample at a time: [resamples, N] in float64 would be the largest array of the evaluation.
        resampled = np.array([record.compute(near, wide, layout.starts, row[None, :])[0] for row in counts])
    return Evaluated(record.name, float(value), points, resampled, reason=excluded)


def _hubness(record: Metric, swept: Swept, n: int, k: int) -> Evaluated | Row:
    if k >= n:
        return not_applicable(record.name, f"k = {k} needs at least {k + 1} points, there are {n}")
    if not (swept.neighbours.places[:, 0] >= 0).any():
        return not_applicable(record.name, "no point has a neighbour outside its group")
    value = record.compute(*(quantity(swept, need, k) for need in record.needs))
    points = quantity(swept, "occurrences", k).astype(np.float64) if "k" in record.needs else None
    return Evaluated(record.name, value, n, points=points)


def clusters_of(
    space: Space, layout: Layout, names: tuple[str, ...], options: Options, title: str, refused: Mapping[str, str],
) -> Iterator[Evaluated | Row]:  # fmt: skip
    """The metrics of clusters: k-means of several seeds, and UMAP with HDBSCAN."""
    clustered = [name for name in names if name in catalogue.CLUSTERED]
    yield from (not_applicable(name, refused[name]) for name in clustered if name in refused)
    asked = [name for name in clustered if name in catalogue.CLUSTERING and name not in refused]
    if asked:
        # Sorted by value, so that neither the labels nor the order of the rows has a say.
        order = clustering.canonical_order(space.raw)
        points = space.points[order]
        with (
            progress_bar(options.progress, clustering.SEEDS, f"{title}: k-means", "fit") as tick,
            Workers(options.threads) as workers,
        ):
            fits = []
            for clusters in workers.map(
                lambda start: clustering.kmeans_clusters(points, layout.classes, start),
                [int(start) for start in np.random.default_rng(options.seed).integers(0, 2**32, clustering.SEEDS)],
            ):
                fits.append(clusters)
                tick(1)
        for name in asked:
            values = np.array([METRICS[name].compute(clusters, layout.codes[order]) for clusters in fits])
            spread = f"mean over {len(fits)} k-means seeds of {clustering.STARTS} starts, sd {values.std(ddof=1):.4f}"
            yield Evaluated(name, float(values.mean()), layout.n, reason=spread)
    if "purity" in names and "purity" not in refused:
        if layout.n < clustering.SMALLEST:
            yield not_applicable("purity", f"clusters of {clustering.SMALLEST} clips are looked for among {layout.n}")
            return
        try:
            with progress_bar(options.progress, 1, f"{title}: UMAP + HDBSCAN", "fit") as tick:
                # In the order the rows were given: clusters must not depend on the labels they are judged by.
                clusters = clustering.density_clusters(layout.to_rows(space.points), options.seed)
                tick(1)
        except MissingExtra as error:
            yield not_applicable("purity", str(error))
            return
        noise = int((clusters < 0).sum())
        if noise == layout.n:
            yield not_applicable("purity", "HDBSCAN found no cluster: every point is noise")
        else:
            value = clustering.purity(clusters, layout.to_rows(layout.codes))
            reason = f"{counted(noise, 'point')} called noise by HDBSCAN left out" if noise else ""
            yield Evaluated("purity", value, layout.n - noise, reason=reason)


def not_applicable(metric: str, reason: str) -> Row:
    return Row(metric=metric, status="not_applicable", reason=reason)
