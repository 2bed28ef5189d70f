"""Pairs inside classes, and those of classes that could become the nearest: what leaving out a unit does to them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import deletion_kernels as kernels
from earmark.calibrate._deletion_work import Floats, Ints, Sums, Work, put
from earmark.calibrate.closed_forms import CONTRAST, FARTHEST
from earmark.geometry.layout import Layout
from earmark.geometry.sweep import ROWS, pair_distances, summed_operand
from earmark.metrics import separation
from earmark.scores.metrics import METRICS
from earmark.workers import Workers

CHUNK = (512, 2048)  # columns of a block: classes are put together up to the first, and cut at the second
CELLS = 1 << 21  # sums of a tile over cells: fewer rows at a time where there are many


def go_over_classes(work: Work) -> None:
    """Fill `changes`, the two farthest of the own class, and the sums inside groups."""
    rows_at_once = ROWS if work.clips else int(np.clip(CELLS // len(work.cells.counts), 8, ROWS))
    tiles = [work.rows[start : start + rows_at_once] for start in range(0, len(work.rows), rows_at_once)]
    columns, chunks, operand = work.space.columns(np.float64, work.memory), list(_chunks(work.layout)), np.zeros((0, 0))
    if not work.clips and work.closed_form:
        operand = summed_operand(work.space, work.cells.bounds, work.cells.order)[0]
    if work.clips:
        _ = work.runner_up  # once, not by every worker
    with Workers(work.threads) as workers:
        for changes in workers.map(lambda rows: _tile(work, rows, columns, chunks, operand), tiles):
            for key, sums in changes.items():
                work.changes[key].add(sums)


def _tile(
    work: Work, rows: Ints, columns: Floats, chunks: list[tuple[int, int]], operand: Floats
) -> dict[tuple[str, str], Sums]:
    layout, space = work.layout, work.space
    left = space.operands(np.float64, rows)
    own = range(int(layout.codes[rows[0]]), int(layout.codes[rows[-1]]) + 1)
    nearby = {protocol: _nearby_classes(work, protocol, rows) for protocol in work.swept}
    pairs = work.clips or not work.closed_form  # whether distances of pairs are summed here, not classes at once
    changes = {key: Sums.zeros(len(work.units)) for key in work.changes}
    cell_sums = np.zeros((len(rows), 0 if work.clips else len(work.cells.counts)))
    if not work.clips and work.closed_form:
        cell_sums = _closed_form_sums(work, rows, operand)
    class_sums = work.class_sums("all", rows) if work.clips else np.zeros((0, 0))
    wanted = np.zeros(layout.classes, bool)
    if pairs or work.metrics & FARTHEST:
        wanted[own.start : own.stop] = True
    if pairs:
        for needed in nearby.values():
            wanted |= needed.any(axis=0)
        wanted |= bool(len(work.shared))
    for c0, c1 in chunks:
        if not wanted[layout.codes[c0] : layout.codes[c1 - 1] + 1].any():
            continue
        block = pair_distances(space, work.factors, rows, left, columns, c0, c1)
        for protocol in work.swept:
            if work.metrics & FARTHEST:
                kernels.farthest_of_two_units(
                    block, rows, c0, layout.codes, layout.starts, work.units.of, protocol != "all",
                    work.far[protocol], work.far_unit[protocol], work.second_far[protocol],
                )  # fmt: skip
        if work.clips:
            _leave_out_clips(work, block, rows, c0, class_sums, nearby["all"], changes)
        elif pairs:
            kernels.add_cell_sums(block, c0, work.cells.of, cell_sums)
    if work.clips:
        leave_out_queries(work, rows, changes)
    else:
        _leave_out_groups(work, rows, cell_sums, nearby, changes)
    return changes


def _leave_out_clips(
    work: Work,
    block: Floats,
    rows: Ints,
    c0: int,
    class_sums: Floats,
    needed: NDArray[np.bool_],
    changes: dict[tuple[str, str], Sums],
) -> None:
    swept, layout = work.swept["all"], work.layout
    gsr, contrast = changes["all", "GSR"], changes["all", CONTRAST]
    kernels.leave_out_clips(
        block, rows, c0, layout.codes, layout.starts, swept.nearest_other, work.own_sums,
        class_sums, swept.other_mean, *work.runner_up, needed, separation.EPSILON,
        "GSR" in work.metrics, CONTRAST in work.metrics,
        gsr.totals, gsr.counts, contrast.totals, contrast.counts,
    )  # fmt: skip


def leave_out_queries(work: Work, rows: Ints, changes: dict[tuple[str, str], Sums]) -> None:
    """Clips as queries, and as the nearest of another class."""
    swept = work.swept["all"]
    near, second, own = swept.nearest_other[rows], swept.second_other[rows], swept.own_mean[rows]
    for name in ("GSR", CONTRAST):
        if name not in work.metrics:
            continue
        points = METRICS[name].compute(*((near, own) if name == "GSR" else (own, swept.other_mean[rows])))
        valid = np.isfinite(points)
        changes["all", name].totals[rows[valid]] -= points[valid]
        changes["all", name].counts[rows[valid]] -= 1.0
        if name == "GSR":
            put(changes["all", name], swept.nearest_unit[rows], points, separation.gsr(second, own))


def _leave_out_groups(
    work: Work,
    rows: Ints,
    cell_sums: Floats,
    nearby: dict[str, NDArray[np.bool_]],
    changes: dict[tuple[str, str], Sums],
) -> None:
    layout, cells = work.layout, work.cells
    if len(work.shared):
        r, cell = np.nonzero(cells.units[None, :] == work.units.of[rows][:, None])
        work.shared[rows[r], cells.codes[cell]] = cell_sums[r, cell]
    for protocol, swept in work.swept.items():
        gsr, contrast = changes[protocol, "GSR"], changes[protocol, CONTRAST]
        kernels.leave_out_groups(
            cell_sums, rows, layout.codes, work.units.of, cells.starts, cells.units, cells.counts,
            protocol != "all", swept.nearest_other, swept.nearest_unit, swept.second_other,
            work.class_sums(protocol, rows), nearby[protocol], separation.EPSILON, "GSR" in work.metrics, CONTRAST in work.metrics,
            gsr.totals, gsr.counts, contrast.totals, contrast.counts,
        )  # fmt: skip


def _closed_form_sums(work: Work, rows: Ints, operand: Floats) -> Floats:
    """Sums of distances to every cell: one product with as many columns as there are cells."""
    space, cells = work.space, work.cells
    left = np.column_stack([space.points[rows], space.squares[rows], np.ones(len(rows))])
    sums = np.maximum(left @ operand.T, 0.0)
    for r in np.flatnonzero(space.flat[rows]):
        sums[r] = cells.counts
        sums[r, cells.of[rows[r]]] -= 1.0
    return sums


def _nearby_classes(work: Work, protocol: str, rows: Ints) -> NDArray[np.bool_]:
    """The classes that are, or could become without some unit, the nearest other class of each row: [rows, C].

    A class of n points at summed distance S, of which a unit holds at most m, no farther than r, keeps a mean of
    at least (S - m r) / (n - m); and the lowest mean can rise to the lowest S / (n - m) at the most.
    """
    needed = np.zeros((len(rows), work.layout.classes), bool)
    if CONTRAST not in work.metrics:
        return needed
    lines, own = np.arange(len(rows)), work.layout.codes[rows]
    sums, counts, most = work.class_sums(protocol, rows), work.sizes, work.largest
    if protocol != "all":
        counts = work.sizes - work.held(rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        lost = most * work.reach(rows)[:, None]
        least = np.where(counts > most, np.maximum(sums - lost, 0.0) / (counts - most), 0.0)
        if work.clips:
            nearest = work.runner_up[1]
            limit = work.swept["all"].other_mean[rows]
            needed = (least < limit[:, None]) & (counts > 1)
            needed[lines, nearest[rows]] = True
        else:
            highest = np.where(counts > most, sums / (counts - most), np.inf)
            highest[lines, own] = np.inf
            needed = (least <= highest.min(axis=1)[:, None]) & (counts > 0)
    needed[lines, own] = False
    return np.asarray(needed)


def _chunks(layout: Layout) -> Iterator[tuple[int, int]]:
    """Blocks of columns that end where classes do, but for classes that are too large for one."""
    least, most = CHUNK
    start = 0
    for stop in layout.starts[1:]:
        while stop - start > most:
            yield start, start + most
            start += most
        if stop - start >= least or (stop == layout.n and stop > start):
            yield start, int(stop)
            start = int(stop)
