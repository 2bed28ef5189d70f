"""The permutation null, a block of rows at a time: distances are made once and serve all permutations.

      64 rows x N places  --(where groups move as wholes: collapse)-->  64 rows x U units  -->  kernels.serve_rows

Memory: one block, and for each permutation of a batch its labels and its sums by class. The budget picks the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import kernels
from earmark.calibrate._null_job import Floats, Ints, Job, spans
from earmark.calibrate.closed_forms import CLASS_SUMS, CONTRAST, FARTHEST
from earmark.geometry.sweep import VALUE_COLUMNS, pair_distances
from earmark.metrics import separation
from earmark.workers import Workers

ROWS = 64  # fixed, like the sweep's: the height of a block is part of a sum's last digit
FAR_LISTS = 4  # lists of farthest units are this many times as long as it takes on average to meet the own class
NEAR_UNITS = 32  # where groups move as wholes: how many of the nearest are kept for each row


@dataclass(frozen=True)
class Shuffles:
    """A batch of labellings of the units, in the arrangements that kernels.py describes.

    `starts` and `sizes` (clips by class) have one row where no shuffle changes them.
    """

    codes: NDArray[Any]
    shuffles: NDArray[Any]
    members: NDArray[Any]
    starts: Ints
    sizes: Floats

    def __len__(self) -> int:
        return len(self.shuffles)


def shuffle(job: Job, start: int, stop: int, workers: Workers) -> Shuffles:
    """Shuffles start..stop of the job, ready to be read row by row."""
    draws, count, classes = job.draws, stop - start, job.layout.classes
    units, scheme = len(draws.unit_sizes), draws.scheme
    shuffles, codes = np.empty((count, units), draws.dtype), np.empty((units, count), draws.dtype)
    members = np.empty((count, units), np.uint16 if units <= 1 << 16 else np.int32)
    varied = False
    if draws.moves_groups:  # units of one block that differ in size make class sizes vary
        firsts = np.repeat(scheme.starts[:-1], np.diff(scheme.starts))
        varied = bool((draws.unit_sizes != draws.unit_sizes[firsts]).any())
    starts = np.empty((count, classes + 1), np.int64)
    sizes = np.empty((count if varied else 1, classes))

    def fill(p: int) -> None:
        labels = draws.labels(start + p)
        shuffles[p] = labels
        kernels.sort_units(labels, starts[p], members[p])
        if varied or p == 0:
            sizes[p] = np.bincount(labels, draws.unit_sizes, classes)

    for _ in workers.map(fill, range(count)):
        pass
    for _ in workers.map(lambda s: kernels.transpose_codes(shuffles, s[0], s[1], codes), list(spans(count, 64))):
        pass
    return Shuffles(codes, shuffles, members, starts if varied else starts[:1], sizes)


class _Batch:
    """Running sums over the rows, for one batch of permutations."""

    def __init__(self, count: int, classes: int, ks: int, *, far: bool, pairs: bool) -> None:
        self.valid, self.hits = (np.zeros((count, ks), np.int64) for _ in range(2))
        self.balanced, self.contrast_count = (np.zeros(count, np.int64) for _ in range(2))
        self.gsr, self.csr_point, self.contrast = (np.zeros(count) for _ in range(3))
        per_class = (count, classes) if far else (0, 0)
        self.near, self.wide, self.counts = (np.zeros(per_class) for _ in range(3))
        self.inter = np.zeros((count, classes, classes) if pairs else (0, 0, 0))

    def values(self, job: Job, shuffles: Shuffles) -> dict[str, Floats]:
        metrics = job.metrics
        with np.errstate(invalid="ignore", divide="ignore"):
            found = {f"P@{k}": self.hits[:, i] / (k * self.valid[:, i]) for i, k in enumerate(job.ks)}
            if "GSR" in metrics:
                found["GSR"] = self.gsr / self.balanced
            if metrics & FARTHEST:
                found["CSR"] = separation.csr_from_class_sums(self.near, self.wide, self.counts)
                found["CSR_pointwise"] = self.csr_point / self.counts.sum(axis=1)
            if metrics & CLASS_SUMS:
                found[CONTRAST] = self.contrast / self.contrast_count
                every, terms = np.arange(job.layout.classes), []
                for total, count in zip(self.inter, _pair_counts(job, shuffles), strict=True):
                    shares = separation.pair_shares(every, np.where(count > 0, total / count, np.nan))
                    terms.append([term.sum() for term in shares])
                overlap, confused, pairs = np.array(terms).T
                found["CS"], found["CSCF"] = overlap / pairs, confused / pairs
        return {name: values for name, values in found.items() if name.startswith("P@") or name in metrics}


def pairs_left_out(job: Job) -> tuple[Floats, Floats]:
    """Pairs of clips that no distance between classes is summed over: by unit (with itself), and by class [C, C]."""
    layout = job.layout
    left_out = np.zeros((layout.classes, layout.classes))
    apart = job.draws.unit_sizes if job.protocol == "all" else job.draws.unit_sizes**2
    if job.protocol != "all" and layout.groups is not None:
        whole = _constant_groups(job)
        cells = np.zeros((len(whole), layout.classes))
        np.add.at(cells, (layout.groups, layout.codes), 1.0)
        left_out = cells[~whole].T @ cells[~whole]
        apart = np.where(whole[_unit_groups(job)], apart, 0.0)
    return apart, left_out


def _pair_counts(job: Job, shuffles: Shuffles) -> Any:
    """Per permutation, the pairs of clips [C, C] that distances between classes were summed over."""
    apart, gone = pairs_left_out(job)
    for p in range(len(shuffles)):
        sizes = shuffles.sizes[p if len(shuffles.sizes) > 1 else 0]
        diagonal = np.bincount(shuffles.shuffles[p], apart, job.layout.classes)
        yield np.outer(sizes, sizes) - gone - np.diag(diagonal)


def _constant_groups(job: Job) -> NDArray[np.bool_]:
    """Of every group, whether all its clips share one label."""
    assert job.layout.groups is not None
    pairs = np.unique(job.layout.groups * job.layout.classes + job.layout.codes)
    return np.asarray(np.bincount(pairs // job.layout.classes) == 1)


def _unit_groups(job: Job) -> Ints:
    assert job.layout.groups is not None
    groups = np.empty(len(job.draws.unit_sizes), np.int64)
    groups[job.draws.units] = job.layout.groups
    return groups


def values(job: Job, workers: Workers, memory: int, progress: Any) -> dict[str, Floats]:
    """Every metric of the job, under each shuffle."""
    layout, units = job.layout, len(job.draws.unit_sizes)
    pairs = bool(job.metrics & CLASS_SUMS)
    each = units * 8 + layout.classes * 40 + (8 * layout.classes**2 if pairs else 0)
    step = int(np.clip(memory // 2 // each, 1, job.draws.count))
    parts = []
    for start, stop in spans(job.draws.count, step):
        shuffles = shuffle(job, start, stop, workers)
        batch = _Batch(stop - start, layout.classes, len(job.ks), far=bool(job.metrics & FARTHEST), pairs=pairs)
        _serve(job, shuffles, batch, workers, memory, lambda done, n=stop - start: progress(done * n / job.draws.count))
        parts.append(batch.values(job, shuffles))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True)
class _Left:
    """What is left out for each place: its group (-1: none), and how many of its class with it (or 0: see `cells`)."""

    barred: Ints
    aside: Ints
    cells: Floats  # [groups, C], clips of each class in each group
    unit_groups: Ints


def left_out(job: Job) -> _Left:
    """What the protocol leaves out for each place."""
    layout, units = job.layout, len(job.draws.unit_sizes)
    if job.protocol == "all" or layout.groups is None:
        ones = np.ones(layout.n, np.int64)
        return _Left(-ones, ones, np.zeros((0, 0)), np.full(units, -2))
    whole = _constant_groups(job)
    aside = np.where(whole, np.bincount(layout.groups), 0)[layout.groups]
    return _Left(layout.groups, aside, np.zeros((0, layout.classes)), _unit_groups(job))


def _serve(job: Job, shuffles: Shuffles, batch: _Batch, workers: Workers, memory: int, progress: Any) -> None:
    """Run every row past every permutation of the batch."""
    far, pairs, balance = bool(job.metrics & FARTHEST), bool(job.metrics & CLASS_SUMS), bool(job.metrics)
    operands = job.space.columns(np.float64, memory) if balance else np.zeros((0, 0))
    places, distances = job.swept.neighbours
    as_units = np.where(places >= 0, job.draws.units[places], -1)
    left = left_out(job)
    every_k = np.array(job.ks, np.int64)
    step = -(-len(shuffles) // (2 * workers.threads))
    parts = list(spans(len(shuffles), -(-step // 64) * 64))  # what one comparison of bytes can fill
    empty = np.zeros((0, 0))
    nothing = _Block(empty, empty, empty, np.zeros((0, 0, 0)), as_units, distances, as_units, distances)
    for first, last in spans(len(job.rows), ROWS if balance else len(job.rows)):
        rows = job.rows[first:last]
        block = nothing
        if balance:
            block = _Block.made(job, rows, operands, left, as_units, distances, pairs, workers)
        cells = _cells(job, rows, left)

        def serve(part: tuple[int, int], rows: Ints = rows, block: _Block = block, cells: Floats = cells) -> None:
            kernels.serve_rows(
                part[0], part[1], job.draws.units[rows], left.barred[rows], left.aside[rows], cells,
                shuffles.codes, shuffles.shuffles, shuffles.members, shuffles.starts, shuffles.sizes, left.unit_groups,
                as_units[rows], every_k, block.near_units, block.near_distances,
                block.far_units, block.far_distances, block.sums, block.peaks, block.lowest, block.lanes,
                balance, "GSR" in job.metrics, far, pairs, separation.EPSILON,
                batch.valid, batch.hits, batch.balanced, batch.gsr, batch.csr_point,
                batch.near, batch.wide, batch.counts, batch.inter, batch.contrast, batch.contrast_count,
            )  # fmt: skip

        for _ in workers.map(serve, parts):
            pass
        progress(len(rows) / len(job.rows))


def _cells(job: Job, rows: Ints, left: _Left) -> Floats:
    """How many clips of each class are left out for each row whose group is shuffled inside."""
    layout = job.layout
    cells = np.zeros((len(rows), left.cells.shape[1]))
    if cells.size and layout.groups is not None:
        for group in np.unique(layout.groups[rows[left.aside[rows] == 0]]):
            members = layout.group_members[layout.group_starts[group] : layout.group_starts[group + 1]]
            cells[layout.groups[rows] == group] = np.bincount(layout.codes[members], minlength=layout.classes)
    return cells


@dataclass(frozen=True)
class _Block:
    """Distances of a block of rows to all units: their sums, peaks and lowest; where the nearest others are."""

    sums: Floats
    peaks: Floats
    lowest: Floats
    lanes: Floats
    near_units: Ints
    near_distances: Floats
    far_units: Ints
    far_distances: Floats

    @classmethod
    def made(
        cls, job: Job, rows: Ints, operands: Floats, left: _Left, near_units: Ints, near_distances: Floats,
        pairs: bool, workers: Workers,
    ) -> _Block:  # fmt: skip
        block = np.empty((len(rows), job.layout.n))
        _fill(job, operands, rows, block, workers)
        units, own, barred = len(job.draws.unit_sizes), job.draws.units[rows], left.barred[rows]
        sums = peaks = lowest = block
        near_units, near_distances = near_units[rows], near_distances[rows]
        if job.draws.moves_groups:
            sums, peaks, lowest = (np.empty((len(rows), units)) for _ in range(3))
            width = min(NEAR_UNITS, units)
            near_units, near_distances = np.empty((len(rows), width), np.int64), np.empty((len(rows), width))
        far = _far_length(job)
        far_units, far_distances = np.empty((len(rows), far), np.int64), np.empty((len(rows), far))
        lanes = np.zeros((-(-len(rows) // kernels.LANES), units, kernels.LANES) if pairs else (0, 0, 0))

        def work(part: tuple[int, int]) -> None:
            a = slice(*part)
            if job.draws.moves_groups:
                kernels.collapse(block[a], job.draws.units, sums[a], peaks[a], lowest[a])
                kernels.shortest(lowest[a], own[a], barred[a], left.unit_groups, near_units[a], near_distances[a])
            if far:
                kernels.farthest_units(peaks[a], far_units[a], far_distances[a])
            if pairs:
                lanes[part[0] // kernels.LANES, :, : part[1] - part[0]] = sums[a].T

        for _ in workers.map(work, list(spans(len(rows), kernels.LANES))):
            pass
        return cls(sums, peaks, lowest, lanes, near_units, near_distances, far_units, far_distances)


def _far_length(job: Job) -> int:
    """How far down the list of farthest units one of the same class is looked for: a class of a U-th of all units is
    met after U of them on average. Classes so small that gathering them is cheaper get no list."""
    if not job.metrics & FARTHEST:
        return 0
    units = len(job.draws.unit_sizes)
    size = float((np.bincount(job.draws.scheme.unit_codes) ** 2).sum()) / units
    return 0 if size**2 < units / 4 else min(units, int(FAR_LISTS * units / size), kernels.NOWHERE)


def _fill(job: Job, operands: Floats, rows: Ints, block: Floats, workers: Workers) -> None:
    """Distances of `rows` to everything, in float64 strips of the sweep's fixed width; 0 to what is left out."""
    space, layout, factors = job.space, job.layout, job.factors
    left = space.operands(np.float64, rows)

    def strip(span: tuple[int, int]) -> None:
        block[:, slice(*span)] = pair_distances(space, factors, rows, left, operands, *span)

    for _ in workers.map(strip, list(spans(layout.n, VALUE_COLUMNS))):
        pass
    if job.protocol == "across_groups" and layout.groups is not None:
        for r, place in enumerate(rows):
            group = layout.groups[place]
            block[r, layout.group_members[layout.group_starts[group] : layout.group_starts[group + 1]]] = 0.0
