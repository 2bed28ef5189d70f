"""The permutation null: what each metric gives when labels are shuffled over the same distances.

Labels are shuffled, distances stay. Two ways lead there (see kernels.py), and `_plan` takes the cheaper:

  by shuffle  one permutation at a time, from class sums; cosine and spearman, all pairs, no farthest points
  by rows     one block of distances at a time, which serves all permutations; everything, corrected distances too
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import kernels
from earmark.geometry import kernels as tiles
from earmark.geometry import pair_kernels
from earmark.geometry.factors import Factors, order_keys
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import Space, product
from earmark.geometry.sweep import VALUE_COLUMNS, Swept
from earmark.metrics import separation
from earmark.workers import Workers

Floats = NDArray[np.float64]
Progress = Callable[[float], None]

FARTHEST = frozenset({"CSR", "CSR_pointwise"})
BALANCE = frozenset({"GSR"}) | FARTHEST
CLASS_PAIRS = frozenset({"CS", "CSCF", "silhouette"})
CALIBRATED = BALANCE | CLASS_PAIRS  # and every P@k
ROWS = 64  # fixed, like the sweep's: the height of a block is part of a sum's last digit
CLASS_ROWS = 256
TIE = 1e-12  # a shuffled value this close to the observed one counts as reaching it


@dataclass(frozen=True)
class Null:
    """An observed value against its null: mean and 95 % interval of the null, lift, p (never 0)."""

    baseline: float
    low: float
    high: float
    lift: float
    p_value: float


def against_null(value: float, shuffled: Floats, *, higher_is_better: bool = True) -> Null:
    """Compare `value` with the metric's values under shuffled labels; p = (count + 1) / (n + 1)."""
    shuffled = shuffled[np.isfinite(shuffled)]
    reached = shuffled >= value - TIE if higher_is_better else shuffled <= value + TIE
    baseline = float(shuffled.mean())
    low, high = np.percentile(shuffled, [2.5, 97.5])
    p_value = (int(reached.sum()) + 1) / (len(shuffled) + 1)
    return Null(baseline, float(low), float(high), value - baseline, p_value)


def neighbours_needed(layout: Layout) -> int:
    """How many neighbours to keep so that a shuffled class rarely fills a whole list."""
    share = float(layout.sizes.max()) / layout.n
    return int(np.clip(np.ceil(np.log(1e-3) / np.log(share)) if share < 1 else 64, 16, 64))


def null_distributions(
    space: Space,
    layout: Layout,
    swept: dict[str, Swept],
    metrics: frozenset[str],
    ks: tuple[int, ...],
    permutations: int,
    *,
    factors: Factors | None = None,
    seed: int = 0,
    threads: int = 1,
    memory: int = 2 << 30,
    progress: Progress | None = None,
) -> dict[str, dict[str, Floats]]:
    """Per protocol and metric, the values under `permutations` shuffles of the labels.

    `metrics` names any of CALIBRATED; `ks` the k of P@k (each at most the neighbours of the sweep); `factors` correct
    the distances, as they did in the sweep.
    `progress` is called with the share of the work just done, 0 to 1.
    """
    every = metrics & CALIBRATED
    jobs = [
        (name, way, part)
        for name in swept
        for way, part in _plan(space, layout, name, every, bool(ks), swept[name], corrected=factors is not None)
    ]
    found: dict[str, dict[str, Floats]] = {name: {} for name in swept}
    tick = progress or (lambda _: None)
    with Workers(threads) as workers:
        for name, by_rows, part in jobs:
            # P@k comes with whichever way runs first.
            job_ks = ks if not any(f"P@{k}" in found[name] for k in ks) else ()
            job = _Job(space, layout, swept[name], name, part, job_ks, permutations, seed, factors)
            if by_rows:
                found[name] |= _by_rows(job, workers, memory, lambda done: tick(done / len(jobs)))
            else:
                found[name] |= _by_shuffle(job, workers, lambda done: tick(done / len(jobs)))
    return found


@dataclass(frozen=True)
class _Job:
    """One way of computing some metrics of one protocol."""

    space: Space
    layout: Layout
    swept: Swept
    protocol: str
    metrics: frozenset[str]
    ks: tuple[int, ...]
    permutations: int
    seed: int
    factors: Factors | None


def _plan(
    space: Space,
    layout: Layout,
    protocol: str,
    metrics: frozenset[str],
    precision: bool,
    swept: Swept,
    *,
    corrected: bool,
) -> Iterator[tuple[bool, frozenset[str]]]:
    """Split the metrics into (by rows?, metrics) by what each way can do and costs per query and permutation.

    By rows, a query gathers its class (or, for class pairs, every point); by shuffle it costs two passes over
    its own vector (and for the silhouette a product with every class, at BLAS speed). Closed forms lose their digits
    when a class falls into one point, so they are not used where duplicates could fill a shuffled class.
    """
    dims, size = space.points.shape[1], float((layout.sizes**2).sum()) / layout.n
    crowded = float(layout.sizes.max()) / layout.n > 0.86  # neighbour lists would often be exhausted
    if corrected:
        yield True, metrics
        return
    twins = int((swept.neighbours.distances[:, 0] < tiles.CLOSE * space.squares.mean()).sum())
    if not space.halved or protocol != "all" or crowded or twins >= layout.sizes.min():
        yield True, metrics
        return
    by_rows = metrics & FARTHEST
    if by_rows or dims > 5 * size + 600:
        by_rows |= metrics & BALANCE
    if dims * (2 + layout.classes / 8) > layout.n:
        by_rows |= metrics & CLASS_PAIRS
    by_shuffle = metrics - by_rows
    if by_rows:
        yield True, by_rows
    if by_shuffle or (precision and not by_rows):
        yield False, by_shuffle


# --- one block of rows at a time -------------------------------------------------------------------------


@dataclass(frozen=True)
class Shuffles:
    """`members[p]` shuffles the places; `codes[place, p]` is the class of a place under permutation p."""

    members: NDArray[Any]
    codes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.members)


def draw(n: int, seed: int, permutation: int) -> NDArray[np.int64]:
    """A shuffle of the places. Each permutation has its own stream, so batches and threads do not matter."""
    return np.random.default_rng([seed, permutation]).permutation(n)


def shuffle(layout: Layout, start: int, stop: int, seed: int, workers: Workers) -> Shuffles:
    """Permutations start..stop of the seed's sequence, ready to be read row by row."""
    count = stop - start
    members = np.empty((count, layout.n), np.uint16 if layout.n <= 1 << 16 else np.int32)
    codes = np.empty((layout.n, count), np.int16 if layout.classes < 1 << 15 else np.int32)

    def fill(p: int) -> None:
        members[p] = draw(layout.n, seed, start + p)

    for _ in workers.map(fill, range(count)):
        pass
    sorted_codes = layout.codes.astype(codes.dtype)
    for _ in workers.map(
        lambda span: kernels.transpose_codes(members, sorted_codes, span[0], span[1], codes),
        list(_spans(count, 32)),
    ):
        pass
    return Shuffles(members, codes)


class _Batch:
    """Running sums over the rows, for one batch of permutations."""

    def __init__(self, count: int, classes: int, ks: int, *, far: bool, pairs: bool) -> None:
        self.valid, self.hits = (np.zeros((count, ks), np.int64) for _ in range(2))
        self.balanced, self.silhouette_count = (np.zeros(count, np.int64) for _ in range(2))
        self.gsr, self.csr_point, self.silhouette = (np.zeros(count) for _ in range(3))
        per_class = (count, classes) if far else (0, 0)
        self.near, self.wide, self.sizes = (np.zeros(per_class) for _ in range(3))
        per_pair = (count, classes, classes) if pairs else (0, 0, 0)
        self.inter, self.inter_count = np.zeros(per_pair), np.zeros(per_pair)

    def values(self, metrics: frozenset[str], ks: tuple[int, ...]) -> dict[str, Floats]:
        with np.errstate(invalid="ignore", divide="ignore"):
            found = {f"P@{k}": self.hits[:, i] / (k * self.valid[:, i]) for i, k in enumerate(ks)}
            if "GSR" in metrics:
                found["GSR"] = self.gsr / self.balanced
            if metrics & FARTHEST:
                found["CSR"] = separation.csr_from_class_sums(self.near, self.wide, self.sizes)
                found["CSR_pointwise"] = self.csr_point / self.balanced
            if metrics & CLASS_PAIRS:
                found["silhouette"] = self.silhouette / self.silhouette_count
                pairs = [
                    _pair_metrics([(0, np.where(count > 0, total / count, np.nan))])
                    for total, count in zip(self.inter, self.inter_count, strict=True)
                ]
                found["CS"], found["CSCF"] = np.array(pairs).T
        return {name: values for name, values in found.items() if name.startswith("P@") or name in metrics}


def _by_rows(job: _Job, workers: Workers, memory: int, progress: Any) -> dict[str, Floats]:
    layout = job.layout
    pairs = bool(job.metrics & CLASS_PAIRS)
    each = layout.n * 8 + layout.classes * 24 + (16 * layout.classes**2 if pairs else 0)
    step = int(np.clip(memory // 2 // each, 1, job.permutations))
    parts = []
    for start, stop in _spans(job.permutations, step):
        shuffles = shuffle(layout, start, stop, job.seed, workers)
        batch = _Batch(stop - start, layout.classes, len(job.ks), far=bool(job.metrics & FARTHEST), pairs=pairs)
        _serve(job, shuffles, batch, workers, lambda done, n=stop - start: progress(done * n / job.permutations))
        parts.append(batch.values(job.metrics, job.ks))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _serve(job: _Job, shuffles: Shuffles, batch: _Batch, workers: Workers, progress: Any) -> None:
    """Run every row past every permutation of the batch."""
    space, layout = job.space, job.layout
    across, pairs = job.protocol == "across_groups", bool(job.metrics & CLASS_PAIRS)
    balance = bool(job.metrics)
    groups = layout.groups if layout.groups is not None else np.zeros(1, np.int64)
    operands = space.columns(np.float64) if balance else np.zeros((0, 0))
    places, distances = job.swept.neighbours
    every_k = np.array(job.ks, np.int64)
    spans = list(_spans(len(shuffles), max(1, -(-len(shuffles) // (4 * workers.threads)))))
    for first, last in _spans(layout.n, ROWS if balance else layout.n):
        rows = np.arange(first, last)
        block = np.empty((len(rows), layout.n if balance else 0))
        if balance:
            _fill(space, layout, job.factors, operands, rows, block, across, workers)

        def serve(span: tuple[int, int], rows: NDArray[np.int64] = rows, block: Floats = block) -> None:
            kernels.serve_rows(
                block, rows, span[0], span[1], shuffles.codes, shuffles.members, layout.starts,
                places, distances, groups, layout.group_starts, layout.group_members, across, every_k,
                balance, bool(job.metrics & FARTHEST), pairs, separation.EPSILON,
                batch.valid, batch.hits, batch.balanced, batch.gsr, batch.csr_point,
                batch.near, batch.wide, batch.sizes, batch.inter, batch.inter_count,
                batch.silhouette, batch.silhouette_count,
            )  # fmt: skip

        for _ in workers.map(serve, spans):
            pass
        progress(len(rows) / layout.n)


def _fill(
    space: Space,
    layout: Layout,
    factors: Factors | None,
    operands: Floats,
    rows: NDArray[np.int64],
    block: Floats,
    across: bool,
    workers: Workers,
) -> None:
    """Distances of `rows` to everything, in float64 strips of the sweep's fixed width."""
    left = space.operands(np.float64, rows)

    def strip(span: tuple[int, int]) -> None:
        c0 = span[0]
        tile = product(left, operands[c0 : span[1]], np.empty((len(rows), span[1] - c0)))
        if factors is None:
            tiles.distances_from_keys(tile, c0, rows, space.squares, space.raw, space.flat, space.halved, space.scale)
        else:
            order_keys(tile, c0, rows, space, factors)
            pair_kernels.corrected_from_keys(tile, c0, rows, factors.code)
        block[:, c0 : span[1]] = tile

    for _ in workers.map(strip, list(_spans(layout.n, VALUE_COLUMNS))):
        pass
    if across and layout.groups is not None:
        for r, place in enumerate(rows):
            group = layout.groups[place]
            block[r, layout.group_members[layout.group_starts[group] : layout.group_starts[group + 1]]] = 0.0


# --- one shuffle at a time -------------------------------------------------------------------------------


def _by_shuffle(job: _Job, workers: Workers, progress: Any) -> dict[str, Floats]:
    space, layout, metrics = job.space, job.layout, job.metrics
    places = np.ascontiguousarray(job.swept.neighbours.places, np.int32)
    sizes = layout.sizes.astype(np.float64)
    every_k = np.array(job.ks, np.int64)

    def measure(p: int) -> dict[str, float]:
        codes, own = np.empty(layout.n, np.int32), np.empty(layout.n)
        sums = np.empty((layout.classes, space.points.shape[1]))
        squares, flats = np.empty(layout.classes), np.empty(layout.classes)
        hits = np.zeros(len(job.ks), np.int64)
        valid, gsr = kernels.score_shuffle(
            draw(layout.n, job.seed, p), layout.starts, space.points, space.squares, space.flat, space.raw,
            places, job.swept.neighbours.distances, every_k, separation.EPSILON,
            codes, own, sums, squares, flats, hits,
        )  # fmt: skip
        found = {f"P@{k}": hits[i] / (k * valid) for i, k in enumerate(job.ks)}
        if "GSR" in metrics:
            found["GSR"] = gsr / valid
        if metrics & {"CS", "CSCF"}:
            found["CS"], found["CSCF"] = _pair_metrics(_class_means(sizes, sums, squares, flats))
        if "silhouette" in metrics:
            found["silhouette"] = _mean_silhouette(space, codes, sizes, sums, squares, flats)
        return found

    rows = []
    for found in workers.map(measure, range(job.permutations)):
        rows.append(found)
        progress(1 / job.permutations)
    return {name: np.array([row[name] for row in rows]) for name in rows[0] if name.startswith("P@") or name in metrics}


def _class_means(sizes: Floats, sums: Floats, squares: Floats, flats: Floats) -> Iterator[tuple[int, Floats]]:
    """Mean distances between classes, a block of rows at a time, from class sums."""
    directed = sizes - flats
    for first, last in _spans(len(sizes), CLASS_ROWS):
        a = slice(first, last)
        total = 0.5 * (np.outer(squares[a], directed) + np.outer(directed[a], squares)) - sums[a] @ sums.T
        total += np.outer(sizes[a], sizes) - np.outer(directed[a], directed)  # pairs with a flat member
        pairs = np.outer(sizes[a], sizes)
        own = np.arange(first, last)
        total[own - first, own] -= flats[a]  # a flat point is at distance 0 from itself
        pairs[own - first, own] -= sizes[a]
        with np.errstate(invalid="ignore", divide="ignore"):
            yield first, np.where(pairs > 0, np.maximum(total, 0.0) / pairs, np.nan)


def _pair_metrics(blocks: Any) -> tuple[float, float]:
    """CS and CSCF from blocks (first class, mean distances [rows, C])."""
    overlap = confused = pairs = 0.0
    for first, means in blocks:
        shares = separation.pair_shares(np.arange(first, first + len(means)), means)
        overlap += float(shares.overlap.sum())
        confused += float(shares.confused.sum())
        pairs += float(shares.pairs.sum())
    return (overlap / pairs, confused / pairs) if pairs else (float("nan"), float("nan"))


def _mean_silhouette(
    space: Space, codes: NDArray[Any], sizes: Floats, sums: Floats, squares: Floats, flats: Floats
) -> float:
    directed = sizes - flats
    operand = np.column_stack([-sums, directed / 2, squares / 2 + flats])
    total, count = 0.0, 0
    for first, last in _spans(space.n, CLASS_ROWS):
        rows = slice(first, last)
        left = np.column_stack([space.points[rows], space.squares[rows], np.ones(last - first)])
        class_sums = np.maximum(left @ operand.T, 0.0)
        flat = space.flat[rows]
        class_sums[flat] = sizes
        class_sums[flat, codes[rows][flat]] -= 1.0
        own, partners, other = (np.empty(last - first) for _ in range(3))
        tiles.summarise_sums(class_sums, sizes[None, :], True, codes[rows], own, partners, other)
        points = separation.silhouette(own, other)
        total += float(np.nansum(points))
        count += int(np.isfinite(points).sum())
    return total / count if count else float("nan")


def _spans(stop: int, step: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + step, stop)) for start in range(0, stop, step))
