"""A block of rows against a batch of shuffles on a torch device: what `torch_null` adds up.

Matrices are [rows, shuffles] unless they say otherwise. Where `triton_null` can run, its kernels take the place of the
longest of torch's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from earmark.calibrate import _null_by_rows as by_rows
from earmark.calibrate._null_job import spans
from earmark.calibrate.torch_blocks import balance, segment_sums
from earmark.geometry.torch_pairs import upload
from earmark.metrics import separation

if TYPE_CHECKING:
    from earmark.calibrate.torch_null import Shuffled, Task

Tensor = Any

GATHERED = 1 << 28  # bytes gathered at once
LOOK = 4  # neighbours compared before it is asked whether any query still looks for another class


class Rows:
    """Some rows, and what every shuffle makes of them."""

    def __init__(
        self, task: Task, shuffled: Shuffled, points: Tensor, inter: Tensor, first: int, last: int, room: int
    ) -> None:
        self.task, self.shuffled, self.points, self.inter, self.room = task, shuffled, points, inter, room
        self.rows, self.device = slice(first, last), task.device
        self.mine = shuffled.codes[task.units[self.rows]]
        self.partners = shuffled.of_class(shuffled.sizes, self.mine) - self._left_out(self.mine)
        self.open = self.partners > 0
        self.block = distances_of_rows(task, first, last) if task.by_rows else None

    def _left_out(self, mine: Tensor) -> Tensor:
        task = self.task
        aside = task.aside[self.rows][:, None]
        if task.cells is None:
            return aside
        return torch.where(aside > 0, aside, task.cells[task.groups[self.rows]].gather(1, mine.long()))

    def measure(self, add: Callable[[str, Tensor], None]) -> None:
        task = self.task
        if task.job.ks:
            self._count_hits(add)
        nearest = self._nearest_other() if task.balance else None
        own = farthest = None
        if task.totals:
            own = self._go_over_classes(add)
        if task.far or (task.by_rows and own is None and task.balance):
            gathered, farthest = self._gather_own()
            own = gathered if own is None else own
        elif task.balance and own is None:
            own = self._closed_own()
        if nearest is not None:
            measured = self.open & (nearest < torch.inf)
            if "GSR" in task.job.metrics:
                add("balanced", measured.sum(0))
                add("gsr", torch.where(measured, balance(nearest, own / self.partners), 0.0).sum(0))
            if task.far:
                add("csr", torch.where(measured, balance(nearest, farthest), 0.0).sum(0))
                terms = torch.stack([nearest, farthest, torch.ones_like(nearest)], 2)
                add("by_class", self._by_class(torch.where(measured[:, :, None], terms, 0.0)))

    # --- lists of neighbours ------------------------------------------------------------------------

    @cached_property
    def lists(self) -> Tensor:
        return upload(self.task.hit_units[self.rows], self.device)

    def _same(self, units: NDArray[Any]) -> Tensor:
        """Whether a unit for each row (-1: none) has its class."""
        same = self.shuffled.codes[upload(np.maximum(units, 0), self.device)] == self.mine
        return same if (units >= 0).all() else same & upload(units >= 0, self.device)[:, None]

    def _count_hits(self, add: Callable[[str, Tensor], None]) -> None:
        task = self.task
        lists, ks = task.hit_units[self.rows], task.job.ks
        if task.fused is not None:
            counts = [
                task.fused.count_hits(self.shuffled.codes, task.units[self.rows], self.lists, self.open, k) for k in ks
            ]
            add("hits", torch.stack([hits for hits, _ in counts], 1))
            add("valid", torch.stack([valid for _, valid in counts], 1))
            return
        found, hits, valid = torch.zeros_like(self.mine, dtype=torch.int16), {}, {}
        for t in range(max(ks)):
            found += self._same(lists[:, t])
            if t + 1 in ks:
                # A query whose group leaves it fewer than k candidates has no P@k.
                listed = upload(lists[:, t] >= 0, self.device)[:, None] & self.open
                hits[t + 1] = torch.where(listed, found, 0).sum(0)
                valid[t + 1] = listed.sum(0)
        add("hits", torch.stack([hits[k] for k in ks], 1))
        add("valid", torch.stack([valid[k] for k in ks], 1))

    def _nearest_other(self) -> Tensor:
        """The distance of the nearest point of another class: from lists, and from whole rows where those end."""
        task = self.task
        if task.moves_groups:
            units, distances = self.near_units
        else:
            units, distances = task.hit_units[self.rows], upload(task.distances[self.rows], self.device)
        nearest = torch.full_like(self.partners, torch.inf)
        if task.fused is not None:
            given = upload(units, self.device) if task.moves_groups else self.lists
            codes = self.shuffled.codes
            task.fused.look(codes, task.units[self.rows], given, distances.contiguous(), self.open, nearest)
            return self._search_rows(nearest, nearest.isnan())
        looking = self.open.clone()
        for t in range(units.shape[1]):
            other = looking & ~self._same(units[:, t])
            if (units[:, t] < 0).any():
                other &= upload(units[:, t] >= 0, self.device)[:, None]
            nearest = torch.where(other, distances[:, t, None], nearest)
            looking &= ~other
            if t % LOOK == LOOK - 1 and not looking.any():
                return nearest
        return self._search_rows(nearest, looking)

    def _search_rows(self, nearest: Tensor, looking: Tensor) -> Tensor:
        """Fill in what lists do not tell."""
        rows, columns = looking.nonzero(as_tuple=True)
        step = max(1, GATHERED // (9 * self.shuffled.units))
        for start in range(0, len(rows), step):
            r, p = rows[start : start + step], columns[start : start + step]
            nearest[r, p] = self._search_row(r, p)
        return nearest

    @property
    def near_units(self) -> tuple[NDArray[Any], Tensor]:
        """The nearest units of each row but its own and those of its group, where groups move as wholes."""
        task = self.task
        lowest = self._block.lowest.clone()
        lowest[torch.arange(len(lowest), device=self.device), task.units[self.rows]] = torch.inf
        lowest.masked_fill_(task.unit_groups == task.barred[self.rows][:, None], torch.inf)
        distances, units = lowest.topk(min(by_rows.NEAR_UNITS, lowest.shape[1]), 1, largest=False)
        return torch.where(distances < torch.inf, units, -1).cpu().numpy(), distances

    def _search_row(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The nearest of another class among all units, one row and one shuffle at a time."""
        task, shuffled = self.task, self.shuffled
        if self.block is not None:
            lowest, at = self.block.lowest, rows
        else:
            some, at = rows.unique(return_inverse=True)
            lowest = _collapse(task, task.blocks.distances_of(some.cpu().numpy() + self.rows.start)).lowest
        other = shuffled.labels[columns] != self.mine[rows, columns][:, None]
        other &= task.unit_groups != task.barred[self.rows][rows][:, None]
        return torch.where(other, lowest[at], torch.inf).amin(1)

    # --- the own class ------------------------------------------------------------------------------

    @property
    def _block(self) -> _Block:
        if self.block is None:
            self.block = distances_of_rows(self.task, self.rows.start, self.rows.stop)
        return self.block

    def _closed_own(self) -> Tensor:
        """Summed distance to the own class from its summed points."""
        blocks, shuffled = self.task.blocks, self.shuffled
        own = torch.empty_like(self.partners)
        if self.task.fused is not None and self.task.fits_own_sums:
            members, starts = shuffled.members, shuffled.starts
            self.task.fused.own_sums(blocks.points, blocks.squares, blocks.flat, members, starts, own)
            return own
        points, squares = blocks.points[self.rows], blocks.squares[self.rows][:, None]
        totals = self.points.flatten(0, 1)  # [B C, D + 2]
        step = max(1, GATHERED // (8 * totals.shape[1] * len(points)))
        for p0, p1 in spans(shuffled.count, step):
            at = torch.arange(p0, p1, device=self.device) * shuffled.classes + self.mine[:, p0:p1]
            part = totals[at]  # [R, b, D + 2]
            dots = (part[:, :, :-2] @ points[:, :, None])[:, :, 0]
            flats = part[:, :, -1]
            directed = self.partners[:, p0:p1] + 1.0 - flats
            own[:, p0:p1] = (0.5 * (directed * squares + part[:, :, -2]) + flats - dots).clamp(min=0.0)
        if blocks.any_flat:
            flat = blocks.flat[self.rows][:, None]
            own = torch.where(flat, self.partners, own)
        return own

    def _gather_own(self) -> tuple[Tensor, Tensor]:
        """Summed and largest distance to the own class, from rows of distances."""
        shuffled, block, far = self.shuffled, self._block, self.task.far
        rows, count = self.mine.shape
        own, farthest = torch.empty_like(self.partners), torch.empty_like(self.partners)
        if self.task.fused is not None:
            mine, members, starts = self.mine.contiguous(), shuffled.members, shuffled.starts
            self.task.fused.gather_own(block.sums, block.peaks, mine, members, starts, own, farthest, far=far)
            return own, farthest
        lengths = shuffled.unit_counts[self.mine.int()]
        step = max(1, GATHERED // max(1, 40 * int(lengths.sum(0).max())))
        for p0, p1 in spans(count, step):
            size = lengths[:, p0:p1].flatten()  # row by row
            segment = torch.repeat_interleave(size)
            place = torch.arange(len(segment), device=self.device) - (size.cumsum(0) - size)[segment]
            first = shuffled.starts[self.mine[:, p0:p1].int()].flatten()[segment]
            row, column = segment // (p1 - p0), segment % (p1 - p0) + p0
            unit = shuffled.members[column, first + place]
            values = block.sums[row, unit]
            own[:, p0:p1] = torch.segment_reduce(values, "sum", lengths=size, unsafe=True).view(rows, -1)
            if far:
                if block.peaks is not block.sums:
                    values = block.peaks[row, unit]
                farthest[:, p0:p1] = torch.segment_reduce(values, "max", lengths=size, unsafe=True).view(rows, -1)
        return own, farthest

    def _by_class(self, terms: Tensor) -> Tensor:
        """Sums [B, C, D] of terms [R, B, D] over the rows of each shuffled class, always in the same order."""
        rows, count, width = terms.shape
        classes = self.shuffled.classes
        mine = self.mine.t().long()
        order = mine.argsort(dim=1, stable=True)
        columns = torch.arange(count, device=self.device)[:, None]
        sizes = torch.bincount((columns * classes + mine).flatten(), minlength=count * classes)
        offsets = sizes.cumsum(0) - sizes
        values = terms.transpose(0, 1).reshape(count * rows, width)
        return segment_sums(values, (columns * rows + order).flatten(), offsets).view(count, classes, width)

    # --- every class --------------------------------------------------------------------------------

    def _go_over_classes(self, add: Callable[[str, Tensor], None]) -> Tensor:
        """Contrast and class pairs from summed distances to every class; those to the own class are returned."""
        task, shuffled, rows = self.task, self.shuffled, len(self.mine)
        own = torch.empty_like(self.partners)
        # Sums, and a copy of them in the order of rows.
        step = max(1, min(self.room // 4, 1 << 32) // (24 * rows * shuffled.classes))
        contrast, contrasted = [], []
        for p0, p1 in spans(shuffled.count, step):
            part = shuffled.part(p0, p1)
            mine = self.mine[:, p0:p1].t().long()[:, None]  # [b, 1, R]
            if task.closed:
                means, own_part = self._closed_means(p0, p1, part, mine)
            else:
                totals = part.class_sums(self._block.columns)
                own_part = totals.gather(1, mine)[:, 0]
                if self.inter is not None:
                    self._add_pairs(totals, p0, p1)
                means = totals.div_(self._counts(part)) if task.contrast else None
            own[:, p0:p1] = own_part.t()
            if means is not None:
                # A class without clips has no mean: 0 / 0.
                means.scatter_(1, mine, torch.inf)
                lowest = (means if task.cells is None else means.nan_to_num_(nan=torch.inf, posinf=torch.inf)).amin(1)
                mean = own_part / self.partners[:, p0:p1].t()
                measured = self.open[:, p0:p1].t() & (lowest < torch.inf)
                largest = torch.maximum(mean, lowest)
                terms = torch.where(measured & (largest > 0), (lowest - mean) / largest, 0.0)
                contrast.append(terms.sum(1))
                contrasted.append(measured.sum(1))
        if task.contrast:
            add("contrast", torch.cat(contrast))
            add("contrasted", torch.cat(contrasted))
        return own

    def _counts(self, part: Shuffled) -> Tensor:
        """How many clips of each class there are for each row: [b, C, R], or one for all rows."""
        task = self.task
        if task.cells is None:
            return part.sizes[:, :, None]
        inside = task.aside[self.rows] == 0
        return part.sizes[:, :, None] - torch.where(inside[:, None], task.cells[task.groups[self.rows]], 0.0).t()

    def _closed_means(self, p0: int, p1: int, part: Shuffled, mine: Tensor) -> tuple[Tensor, Tensor]:
        """Mean distances [b, C, R] to every class, and summed ones [b, R] to the own, from summed points."""
        blocks = self.task.blocks
        points, squares = blocks.points[self.rows], blocks.squares[self.rows]
        sums, norms, flats = self.points[p0:p1, :, :-2], self.points[p0:p1, :, -2:-1], self.points[p0:p1, :, -1:]
        sizes = part.sizes[:, :, None]
        right = torch.cat([-sums, 0.5 * (sizes - flats), 0.5 * norms + flats], 2)
        right /= sizes
        left = torch.column_stack([points, squares, torch.ones_like(squares)])
        means = (right.flatten(0, 1) @ left.t()).view(p1 - p0, -1, len(points)).clamp_(min=0.0)
        if blocks.any_flat:
            means.masked_fill_(blocks.flat[self.rows], 1.0)
        own = means.gather(1, mine)[:, 0] * self.shuffled.of_class(self.shuffled.sizes, self.mine)[:, p0:p1].t()
        if blocks.any_flat:
            own = torch.where(blocks.flat[self.rows], self.partners[:, p0:p1].t(), own)
        return means, own

    def _add_pairs(self, totals: Tensor, p0: int, p1: int) -> None:
        terms = torch.where(self.open[:, p0:p1].t()[:, None], totals, 0.0).permute(2, 0, 1)  # [R, b, C]
        whole, self.mine = self.mine, self.mine[:, p0:p1]
        self.inter[p0:p1] += self._by_class(terms)
        self.mine = whole


class _Block:
    """Distances of a block of rows to all units: sums, peaks and lowest [R, U]; `columns` are the sums, [U, R]."""

    def __init__(self, sums: Tensor, peaks: Tensor, lowest: Tensor) -> None:
        self.sums, self.peaks, self.lowest = sums, peaks, lowest

    @cached_property
    def columns(self) -> Tensor:
        return self.sums.t().contiguous()


def distances_of_rows(task: Task, first: int, last: int) -> _Block:
    """Distances of the places first..last, 0 to what is left out."""
    block = task.blocks.distances(first, last)
    if task.grouped:
        block.masked_fill_(task.groups == task.groups[first:last][:, None], 0.0)
    return _collapse(task, block)


def _collapse(task: Task, block: Tensor) -> _Block:
    if not task.moves_groups:
        return _Block(block, block, block)
    at = task.units.expand(len(block), -1)
    sums = segment_sums(block.t().contiguous(), task.unit_order, task.unit_offsets).t().contiguous()
    peaks = torch.zeros_like(sums).scatter_reduce_(1, at, block, "amax")
    lowest = torch.full_like(sums, torch.inf).scatter_reduce_(1, at, block, "amin")
    return _Block(sums, peaks, lowest)


def closed_pair_shares(shuffled: Shuffled, points: Tensor, room: int) -> Tensor:
    """CS and CSCF terms [B, 3] from class sums, as `_null_by_shuffle._pair_metrics`."""
    classes, parts = shuffled.classes, []
    step = max(1, min(room // 4, 1 << 32) // (48 * classes**2))
    every = torch.arange(classes, device=points.device)
    for p0, p1 in spans(shuffled.count, step):
        sizes = shuffled.sizes[p0:p1] if len(shuffled.sizes) > 1 else shuffled.sizes.expand(p1 - p0, -1)
        sums, squares, flats = points[p0:p1, :, :-2], points[p0:p1, :, -2], points[p0:p1, :, -1]
        directed = sizes - flats
        total = -(sums @ sums.transpose(1, 2))
        total += 0.5 * (squares[:, :, None] * directed[:, None] + directed[:, :, None] * squares[:, None])
        pairs = sizes[:, :, None] * sizes[:, None]
        total += pairs - directed[:, :, None] * directed[:, None]  # pairs with a flat member
        total[:, every, every] -= flats
        pairs[:, every, every] -= sizes
        parts.append(pair_shares(torch.where(pairs > 0, total.clamp(min=0.0) / pairs, torch.nan), 0))
    return torch.cat(parts)


def pair_shares(means: Tensor, first: int) -> Tensor:
    """`separation.pair_shares` of mean distances [B, C, C], summed: [B, 3]."""
    intra = means.diagonal(dim1=1, dim2=2)[:, :, None]
    measured = means.isfinite() & intra.isfinite()
    measured.diagonal(dim1=1, dim2=2).fill_(False)
    total = intra + means
    overlap = torch.where(measured, torch.where(total > 0, intra / total, 0.5), 0.0)
    confused = measured & (means < intra * (1.0 - separation.ROUNDING))
    return torch.stack([overlap.sum((1, 2)), confused.sum((1, 2)).double(), measured.sum((1, 2)).double()], 1)
