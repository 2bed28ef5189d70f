"""The permutation null: what each metric gives when labels are shuffled over the same distances.

Labels are shuffled as groups allow (arrangements.py), distances stay. Two ways lead there, and `_plan` takes the
cheaper for each metric:

  by shuffle  a few permutations at a time, from class sums; cosine and spearman, all pairs, no farthest points
  by rows     one block of distances at a time, which serves all permutations; everything, corrected distances too
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import _null_by_rows as null_by_rows
from earmark.calibrate import _null_by_shuffle as null_by_shuffle
from earmark.calibrate._arrangements import Scheme, scheme_of
from earmark.calibrate._devices import torch_device
from earmark.calibrate._null_job import Draws, Job
from earmark.calibrate.closed_forms import BALANCE, CALIBRATED, CLASS_MEANS, CLASS_SUMS, FARTHEST
from earmark.calibrate.labels import LABEL_METRICS, label_null
from earmark.geometry import kernels as tiles
from earmark.geometry.factors import Factors
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Swept
from earmark.workers import Workers

__all__ = [
    "CALIBRATED", "LABEL_METRICS", "MEANS", "Null", "Scheme", "against_null", "has_null", "neighbours_needed",
    "null_distributions", "scheme_of",
]  # fmt: skip

Floats = NDArray[np.float64]
Progress = Callable[[float], None]

DEPTHS = (16, 64)  # how many neighbours are kept at least and at most
MEANS = CALIBRATED - CLASS_MEANS  # metrics that are means over queries
AS_PRODUCTS = 100.0  # a multiplication of a null takes the CPU as long as so many of a matrix product
TIE = 1e-12  # a shuffled value this close to the observed one counts as reaching it


@dataclass(frozen=True)
class Null:
    """An observed value against its null: mean and 95 % interval of the null, lift, p (never 0).

    `error` is the Monte-Carlo standard error of the baseline: what other shuffles would move it by.
    """

    baseline: float
    low: float
    high: float
    lift: float
    p_value: float
    error: float = 0.0


def against_null(value: float, shuffled: Floats, *, higher_is_better: bool = True, exact: bool = False) -> Null:
    """Compare `value` with the metric's values under shuffled labels; p = (count + 1) / (n + 1).

    `exact` says that `shuffled` holds every arrangement but the observed one, which then belongs to the null itself:
    nothing was drawn, and the baseline has no error.
    """
    shuffled = shuffled[np.isfinite(shuffled)]
    reached = shuffled >= value - TIE if higher_is_better else shuffled <= value + TIE
    p_value = (int(reached.sum()) + 1) / (len(shuffled) + 1)
    if exact:
        shuffled = np.append(shuffled, value)
    baseline = float(shuffled.mean())
    low, high = np.percentile(shuffled, [2.5, 97.5])
    error = 0.0 if exact or len(shuffled) < 2 else float(shuffled.std(ddof=1)) / len(shuffled) ** 0.5
    return Null(baseline, float(low), float(high), value - baseline, p_value, error)


def has_null(metric: str) -> bool:
    """Whether a metric is one that shuffled labels are measured by."""
    return metric in CALIBRATED | LABEL_METRICS or metric.startswith("P@")


def neighbours_needed(layout: Layout) -> int:
    """How many neighbours to keep so that a shuffled class rarely fills a whole list."""
    low, high = DEPTHS
    if layout.sets is not None:  # no neighbour of another class is looked for
        return low
    shares = _shares(layout, scheme_of(layout))
    share = float(np.mean(shares**high)) ** (1 / high)
    return int(np.clip(np.ceil(np.log(1e-3) / np.log(share)) if share < 1 else high, low, high))


def _shares(layout: Layout, scheme: Scheme) -> Floats:
    """Of the likely neighbours of each place, the largest share that one class can have: of all clips, or of its block
    where labels are shuffled inside large groups."""
    everywhere = float(layout.sizes.max()) / layout.n
    shares = np.full(layout.n, everywhere)
    if scheme.name not in ("inside_groups", "blocks"):
        return shares
    of_unit = np.full(len(scheme.unit_codes), everywhere)
    for start, stop in pairwise(scheme.starts):
        if stop - start >= DEPTHS[0]:
            of_unit[start:stop] = max(everywhere, np.bincount(scheme.unit_codes[start:stop]).max() / (stop - start))
    return np.asarray(of_unit[scheme.units])


def null_distributions(
    space: Space,
    layout: Layout,
    swept: dict[str, Swept],
    metrics: frozenset[str],
    ks: tuple[int, ...],
    permutations: int,
    *,
    scheme: Scheme | None = None,
    factors: Factors | None = None,
    seed: int = 0,
    threads: int = 1,
    memory: int = 2 << 30,
    device: str = "cpu",
    rows: NDArray[np.int64] | None = None,
    progress: Progress | None = None,
) -> dict[str, dict[str, Floats]]:
    """Per protocol and metric, the values under `permutations` shuffles of the labels.

    `scheme` is `scheme_of(layout)`, where the caller has it. When it has no more arrangements than `permutations`, the
    values are those of every arrangement but the given one (`scheme.exact`, `scheme.draws`), so there may be none.
    `metrics` names any of CALIBRATED and LABEL_METRICS; `ks` the k of P@k (each at most the neighbours of the sweep);
    `factors` correct the distances, as they did in the sweep.
    `device` says where: the shuffles are the same everywhere, P@k is equal, and the others are to rounding.
    `rows` are the places that ask, where not all did: the values, of P@k and of MEANS, are means over them.
    `progress` is called with the share of the work just done, 0 to 1.
    """
    scheme = scheme or scheme_of(layout)
    found: dict[str, dict[str, Floats]] = {name: {} for name in swept}
    draws = Draws(scheme, layout, permutations, seed, memory)
    if not draws.count:
        return found
    tick = progress or (lambda _: None)
    by_label = metrics & LABEL_METRICS
    if by_label or layout.sets is not None:
        together = ks if layout.sets is not None else ()
        with Workers(threads) as workers:
            for name in swept:
                done = lambda share: tick(share / len(swept))  # noqa: E731
                found[name] = label_null(layout, draws, swept[name], name, by_label, together, workers, done)
        if layout.sets is not None or not (ks or metrics & CALIBRATED):
            return found
        rest = null_distributions(
            space, layout, swept, metrics - by_label, ks, permutations, scheme=scheme, factors=factors, seed=seed,
            threads=threads, memory=memory, device=device, rows=rows,
        )  # fmt: skip
        return {name: found[name] | rest[name] for name in swept}
    asking = np.arange(layout.n) if rows is None else rows
    work = draws.count * layout.n * space.points.shape[1] * AS_PRODUCTS
    where = torch_device(device, work) if rows is None else None
    if where is not None:
        from earmark.calibrate import torch_null

        jobs = [
            Job(space, layout, draws, swept[name], name, metrics & CALIBRATED, ks, factors, asking) for name in swept
        ]
        closed = [_closed_form(space, scheme, name, swept[name], corrected=factors is not None) for name in swept]
        with Workers(threads) as workers:
            values = torch_null.values(list(zip(jobs, closed, strict=True)), where, workers, memory, tick)
        return dict(zip(swept, values, strict=True))
    plans = [
        (name, way, part)
        for name in swept
        for way, part in (
            _plan(
                space, layout, scheme, name, metrics & CALIBRATED, bool(ks), swept[name], corrected=factors is not None
            )
            if rows is None
            else [(True, metrics & MEANS)]
        )
    ]
    with Workers(threads) as workers:
        for name, by_rows, part in plans:
            # P@k comes with whichever way runs first.
            job_ks = ks if not any(f"P@{k}" in found[name] for k in ks) else ()
            job = Job(space, layout, draws, swept[name], name, part, job_ks, factors, asking)
            done = lambda share: tick(share / len(plans))  # noqa: E731
            way = null_by_rows.values if by_rows else null_by_shuffle.values
            found[name] |= way(job, workers, memory, done)
    return found


def _closed_form(space: Space, scheme: Scheme, protocol: str, swept: Swept, *, corrected: bool) -> bool:
    """Whether class sums of points give the distances: of all pairs of cosine and spearman, plain ones.

    Closed forms lose their digits when a class falls into one point, so they are not used where duplicates could fill
    a shuffled class.
    """
    smallest = int(np.bincount(scheme.unit_codes).min() * np.bincount(scheme.units).min())
    twins = int((swept.neighbours.distances[:, 0] < tiles.CLOSE * space.squares.mean()).sum())
    return space.halved and not corrected and protocol == "all" and twins < smallest


def _plan(
    space: Space,
    layout: Layout,
    scheme: Scheme,
    protocol: str,
    metrics: frozenset[str],
    precision: bool,
    swept: Swept,
    *,
    corrected: bool,
) -> Iterator[tuple[bool, frozenset[str]]]:
    """Split the metrics into (by rows?, metrics) by what each way can do and costs per query and permutation.

    By rows, a query gathers the units of its class (or, for class pairs, adds every unit to a class); by shuffle it
    costs two passes over its own vector, and for the contrast a product with every class at BLAS speed. Where groups
    move as wholes, a list of neighbours is often one group, and the nearest of another class is found by rows.
    """
    dims, units = space.points.shape[1], len(scheme.unit_codes)
    of_class = np.bincount(scheme.unit_codes)
    size = float((of_class**2).sum()) / units
    crowded = float(np.mean(_shares(layout, scheme) ** DEPTHS[1])) > 0.86 ** DEPTHS[1]  # lists often exhausted
    if crowded or not _closed_form(space, scheme, protocol, swept, corrected=corrected):
        yield True, metrics
        return
    by_rows = metrics & FARTHEST
    if layout.classes * dims > 3 * units + 10 * layout.classes:
        by_rows |= metrics & CLASS_SUMS
    if units < layout.n or by_rows & CLASS_SUMS or (not metrics & CLASS_SUMS and dims > 3 * size + 100):
        by_rows |= metrics & BALANCE
    by_shuffle = metrics - by_rows
    if by_rows or (precision and units < layout.n):
        yield True, by_rows
    if by_shuffle or (precision and not by_rows and units == layout.n):
        yield False, by_shuffle
