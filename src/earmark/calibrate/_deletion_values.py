"""The value of each metric without each unit, from lists and from the changes that leaving out units brings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from earmark.calibrate import deletion_kernels as kernels
from earmark.calibrate._deletion_work import Floats, Ints, Sums, Work, put, share
from earmark.calibrate.closed_forms import CONTRAST, HUBNESS, PAIR_SHARES
from earmark.geometry import hubness as hubs
from earmark.geometry.sweep import Swept, search_without
from earmark.metrics import separation
from earmark.scores.metrics import METRICS
from earmark.workers import Workers


def values(work: Work, protocol: str, ks: tuple[int, ...], hub_k: int) -> Iterator[tuple[str, Floats]]:
    """Every metric asked for, without each unit."""
    swept, answerable = work.swept[protocol], work.answerable(protocol)
    for k in ks:
        if k < work.layout.n:
            yield f"P@{k}", _precision(work, protocol, k)
    near = np.where(answerable, swept.nearest_other, np.nan)
    if "GSR" in work.metrics:
        yield "GSR", work.changes[protocol, "GSR"].mean(separation.gsr(near, swept.own_mean))
    if "CSR" in work.metrics:
        yield "CSR", _class_balance(work, protocol)
    if "CSR_pointwise" in work.metrics:
        yield "CSR_pointwise", _point_balance(work, protocol)
    if work.metrics & PAIR_SHARES:
        yield from _class_pairs(work, protocol)
    if CONTRAST in work.metrics:
        points = np.where(answerable, METRICS[CONTRAST].compute(swept.own_mean, swept.other_mean), np.nan)
        yield CONTRAST, work.changes[protocol, CONTRAST].mean(points)
    if work.metrics & frozenset(HUBNESS) and hub_k < work.layout.n:
        yield from _hubness(work, protocol, hub_k)


def _sole_units(work: Work, protocol: str) -> Ints:
    """The unit that holds all partners of a place, -1 where there are several: without it, a query has none."""
    cells, layout = work.cells, work.layout
    count = np.diff(cells.starts)[layout.codes]
    first = cells.units[cells.starts[layout.codes]]
    second = cells.units[np.minimum(cells.starts[layout.codes] + 1, len(cells.units) - 1)]
    other = np.where(first == work.units.of, second, first)
    alone = (cells.counts[cells.of] == 1.0) | (protocol != "all")  # no partner in its own unit
    return np.where((count == 2) & alone, other, -1)


def _without(work: Work, protocol: str, rows: Ints, left_out: Ints, k: int) -> Ints:
    """The k nearest of some places without a unit each, searched again."""
    return search_without(
        work.space, work.layout, rows, left_out, work.units.of, k, across_groups=protocol != "all",
        factors=work.factors, threads=work.threads, memory=work.memory,
    ).neighbours.places  # fmt: skip


def _complete(work: Work, places: Ints) -> Ints:
    """Lists that end with -1 where they hold every candidate, so that no kernel takes them for cut off."""
    if places.shape[1] < work.layout.n - 1:
        return places
    return np.column_stack([places, np.full(len(places), -1)])


def _precision(work: Work, protocol: str, k: int) -> Floats:
    layout, answerable = work.layout, work.answerable(protocol)
    places, every = _complete(work, work.swept[protocol].neighbours.places), np.arange(layout.n)
    change, unresolved = Sums.zeros(len(work.units)), np.empty(layout.n, np.int64)
    kernels.leave_out_of_lists(
        places, every, layout.codes, work.units.of, answerable, _sole_units(work, protocol), k,
        change.totals, change.counts, unresolved,
    )  # fmt: skip
    hits = np.where(places[:, :k] >= 0, layout.codes[places[:, :k]] == layout.codes[:, None], False).sum(axis=1)
    measured = np.where(answerable & (places[:, k - 1] >= 0), hits, np.nan)
    rows = np.flatnonzero(unresolved >= 0)
    if len(rows):
        left = _without(work, protocol, rows, unresolved[rows], k)
        again = (layout.codes[left] == layout.codes[rows][:, None]).sum(axis=1).astype(np.float64)
        put(change, unresolved[rows], measured[rows], np.where(left[:, k - 1] >= 0, again, np.nan))
    return change.mean(measured) / k


def _point_balance(work: Work, protocol: str) -> Floats:
    change = Sums.zeros(len(work.units))
    points = separation.csr_pointwise(work.swept[protocol].nearest_other, work.far[protocol])
    for which, left_near, left_far in _balances_left(work, protocol, work.swept[protocol]):
        put(change, which, points, separation.csr_pointwise(left_near, left_far))
    return change.mean(points)


def _balances_left(work: Work, protocol: str, swept: Swept) -> Iterator[tuple[Ints, Floats, Floats]]:
    """(unit, NID and MID of a place without it) for every unit that changes them; -1: none, NaN: nothing left."""
    mine = work.units.of
    near, second, unit = swept.nearest_other, swept.second_other, swept.nearest_unit
    far, second_far, far_unit = work.far[protocol], work.second_far[protocol], work.far_unit[protocol]
    nothing, same = np.full(len(mine), np.nan), unit == far_unit
    yield mine, nothing, nothing
    yield np.where(same | (unit == mine), -1, unit), second, far
    yield np.where(same | (far_unit == mine), -1, far_unit), near, second_far
    yield np.where(same & (unit != mine), unit, -1), second, second_far


def _class_balance(work: Work, protocol: str) -> Floats:
    """CSR: class sums of NID and MID, of which leaving out a unit changes those of few classes."""
    layout, near, far = work.layout, work.swept[protocol].nearest_other, work.far[protocol]
    valid = np.isfinite(near) & np.isfinite(far)
    touched, delta = balance_steps(work, protocol, work.swept[protocol])
    base = np.column_stack([
        np.bincount(layout.codes[valid], values[valid], layout.classes) for values in (near, far, np.ones(layout.n))
    ])  # fmt: skip
    after: Floats = np.asarray(base[touched % layout.classes] + delta, np.float64)
    terms, new_terms = _balance_terms(np.asarray(base, np.float64)), _balance_terms(after)
    of = touched // layout.classes
    total = terms.sum() + np.bincount(of, new_terms - terms[touched % layout.classes], len(work.units))
    count = base[:, 2].sum() + np.bincount(of, delta[:, 2], len(work.units))
    return share(total, count)


def balance_steps(work: Work, protocol: str, swept: Swept) -> tuple[Ints, Floats]:
    """What leaving out a unit adds to a class's sums of NID, of MID and of points: (unit * C + class, [.., 3])."""
    layout, near, far = work.layout, swept.nearest_other, work.far[protocol]
    valid = np.isfinite(near) & np.isfinite(far)
    keys, changes = [], []
    for which, left_near, left_far in _balances_left(work, protocol, swept):
        chosen = valid & (which >= 0)
        stays = np.isfinite(left_near) & np.isfinite(left_far)
        now = [np.where(stays, left, 0.0) for left in (left_near, left_far, np.ones(layout.n))]
        keys.append(which[chosen] * layout.classes + layout.codes[chosen])
        changes.append(np.column_stack([now[0] - near, now[1] - far, now[2] - 1.0])[chosen])
    touched, slot = np.unique(np.concatenate(keys), return_inverse=True)
    steps = np.concatenate(changes)
    return touched, np.column_stack([np.bincount(slot, steps[:, i], len(touched)) for i in range(3)])


def _class_pairs(work: Work, protocol: str) -> Iterator[tuple[str, Floats]]:
    pair_sums = np.add.reduceat(work.swept[protocol].class_sums, work.layout.starts[:-1], axis=0)
    if protocol != "all":
        pair_counts = np.outer(work.sizes, work.sizes) - work.table.T @ work.table
    else:
        pair_counts = np.outer(work.sizes, work.sizes) - np.diag(work.sizes)
    terms = _pair_terms(pair_sums, pair_counts)
    if work.on_device is not None:
        totals = work.on_device.pair_totals(protocol, pair_sums, pair_counts, terms)
    else:
        totals = _pair_totals(work, protocol, pair_sums, pair_counts, terms)
    for name, values in (("CS", totals[0]), ("CSCF", totals[1])):
        if name in work.metrics:
            yield name, np.clip(share(values, totals[2]), 0.0, 1.0)


def _pair_terms(pair_sums: Floats, pair_counts: Floats) -> list[Floats]:
    """What each ordered pair of classes contributes to CS and CSCF, and whether it is measured: [C, C] each."""
    means = _pair_means(pair_sums, pair_counts)
    with np.errstate(invalid="ignore", divide="ignore"):
        intra = np.diag(means)[:, None]
        measured = np.isfinite(means) & np.isfinite(intra) & ~np.eye(len(means), dtype=bool)
        overlap = np.where(measured, np.where(intra + means > 0, intra / (intra + means), 0.5), 0.0)
        confused = np.where(measured, means < intra * (1.0 - separation.ROUNDING), False)
    return [overlap, confused.astype(np.float64), measured.astype(np.float64)]


def _pair_means(pair_sums: Floats, pair_counts: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(pair_counts > 0.5, np.maximum(pair_sums, 0.0) / pair_counts, np.nan)


def _pair_totals(
    work: Work, protocol: str, pair_sums: Floats, pair_counts: Floats, terms: list[Floats]
) -> list[Floats]:
    """The sums of terms without each unit."""
    classes, units, across = work.layout.classes, work.units, protocol != "all"
    totals = [np.full(len(units), float(part.sum())) for part in terms]
    spans = range(0, len(units), max(1, -(-len(units) // (4 * work.threads))))
    shared = work.shared if not across else work.shared[:0]
    means = _pair_means(pair_sums, pair_counts)

    def leave_out_rows(first: int) -> None:
        rows = slice(first, first + spans.step)
        codes, changes = work.layout.codes[rows], np.zeros((3, len(work.layout.codes[rows]), 2))
        kernels.leave_out_rows(
            codes, work.swept[protocol].class_sums[rows], np.zeros((0, classes)), work.sizes, np.diagonal(means).copy(),
            codes, means, pair_counts, pair_counts, np.diagonal(pair_counts), np.diagonal(pair_counts), False,
            separation.ROUNDING, *changes,
        )  # fmt: skip
        for total, change in zip(totals, changes, strict=True):
            total[rows] += change[:, 0]

    def leave_out_units(first: int) -> None:
        kernels.leave_out_pairs(
            first, min(first + spans.step, len(units)), units.starts, units.members, work.layout.codes,
            work.swept[protocol].class_sums, shared, pair_sums, pair_counts, work.sizes, np.zeros(classes), across,
            separation.ROUNDING, *totals, *terms, np.zeros(classes, np.int64),
            np.zeros((classes, classes)), np.zeros((classes, classes)),
        )  # fmt: skip

    with Workers(work.threads) as workers:
        for _ in workers.map(leave_out_rows if work.clips else leave_out_units, spans):
            pass
    return totals


def _hubness(work: Work, protocol: str, k: int) -> Iterator[tuple[str, Floats]]:
    starts, places, steps = occurrence_changes(work, protocol, k)
    occurrences = hubs.k_occurrences(work.swept[protocol].neighbours.places, k)
    width = int(occurrences.max(initial=0)) + int(np.diff(starts).max(initial=0)) + 2
    values = [np.full(len(work.units), np.nan) for _ in HUBNESS]
    kernels.leave_out_occurrences(
        work.units.starts, work.units.members, occurrences, starts, places, steps, np.zeros(width, np.int64),
        hubs.TOP_SHARE, k, *values,
    )  # fmt: skip
    yield from ((name, without) for name, without in zip(HUBNESS, values, strict=True) if name in work.metrics)


def occurrence_changes(work: Work, protocol: str, k: int) -> tuple[Ints, Ints, Ints]:
    """Which k-occurrences change without each unit: unit u's are the places and steps from starts[u] on."""
    rows, units = work.rows, work.units
    places = _complete(work, work.swept[protocol].neighbours.places)
    event_units, event_places, steps = (np.full((len(rows), 2 * k), fill) for fill in (-1, 0, 0))
    unresolved = np.empty(len(rows), np.int64)
    kernels.occurrence_events(places, rows, k, units.of, event_units, event_places, steps, unresolved)
    open_rows = np.flatnonzero(unresolved >= 0)
    if len(open_rows):
        left = _without(work, protocol, rows[open_rows], unresolved[open_rows], k)
        for r, unit, now in zip(open_rows, unresolved[open_rows], left, strict=True):
            stayed = int((units.of[places[rows[r], :k]] != unit).sum())
            new = now[stayed:][now[stayed:] >= 0]
            free = np.flatnonzero(event_units[r] < 0)[: len(new)]
            event_units[r, free], event_places[r, free], steps[r, free] = unit, new, 1
    used = event_units.ravel() >= 0
    order = np.argsort(event_units.ravel()[used], kind="stable")
    starts = np.searchsorted(event_units.ravel()[used][order], np.arange(len(units) + 1))
    return starts, event_places.ravel()[used][order], steps.ravel()[used][order]


def _balance_terms(sums: Floats) -> Floats:
    """CSR terms of classes from rows (summed NID, summed MID, points), weighted by their points."""
    near, far, count = sums.T
    some = count > 0.5
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(some, separation.csr_pointwise(near / count, far / count) * count, 0.0)
