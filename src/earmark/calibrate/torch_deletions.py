"""The jackknife's deletions on a torch device: what `_deletion_pairs` does, and the class pairs of `_deletion_values`.

A block of rows at a time, densely: what leaving out a place (or a unit) does to a row is one element of a matrix
[rows, places] or [rows, units], and changes are its sums over the rows.

      clips    distances [R, N]  -> own class:     balance and contrast without each of its clips
                                 -> other classes: contrast without each clip of a class that could be the nearest
      groups   cell sums [R, cells] (a cell: the points of one class in one unit) -> own class and lowest other class
                                    without each unit [R, U]

Lists (P@k, hubness) stay with the CPU: they cost little. The height of a block rests on the shape of the data alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from earmark.calibrate._deletion_pairs import Floats, Pairs, Sums
from earmark.calibrate._null_job import spans
from earmark.calibrate.closed_forms import CONTRAST, FARTHEST
from earmark.calibrate.deletion_kernels import ROUNDING
from earmark.calibrate.torch_blocks import Blocks, balance, segment_sums
from earmark.geometry.sweep import summed_operand
from earmark.metrics import separation

Tensor = Any

BLOCK = 1 << 27  # bytes of a matrix [rows, places]


class TorchDeletions:
    """What leaving out each unit does, worked out on a device for one set of places."""

    def __init__(self, work: Pairs, device: Any) -> None:
        self.work, self.device = work, device
        self.blocks = Blocks(work.space, work.factors, device)
        upload = self.upload = self.blocks.upload
        layout = work.layout
        self.codes, self.starts = upload(layout.codes), upload(layout.starts)
        self.units, self.sizes = upload(work.units.of), upload(work.sizes)
        self.gsr, self.contrast = "GSR" in work.metrics, CONTRAST in work.metrics
        self.largest = upload(work.largest)
        if not work.clips:
            cells = work.cells
            self.cell_codes, self.cell_units = upload(cells.codes), upload(cells.units)
            self.cell_counts = upload(cells.counts)
            self.cell_of = torch.full((layout.classes, len(work.units)), -1, dtype=torch.int64, device=device)
            self.cell_of[self.cell_codes, self.cell_units] = torch.arange(len(cells.counts), device=device)
            self.table = upload(work.table)

    @property
    def rows_at_once(self) -> int:
        width = max(self.work.layout.n, len(self.work.units))
        return int(np.clip(BLOCK // (8 * width), 8, 2048))

    # --- pairs --------------------------------------------------------------------------------------

    def go_over_classes(self) -> None:
        """Fill `changes`, the two farthest of the own class, and the sums inside groups, as `_deletion_pairs`."""
        work = self.work
        totals = {key: [self._zeros(len(work.units)) for _ in range(2)] for key in work.changes}
        if not work.clips and work.closed_form:
            self.operand = self.upload(summed_operand(work.space, work.cells.bounds, work.cells.order)[0])
        for first, last in spans(work.layout.n, self.rows_at_once):
            self._go_over_rows(first, last, totals)
        for key, (total, count) in totals.items():
            work.changes[key].add(Sums(_numpy(total), _numpy(count)))
        if work.clips:
            work.leave_out_queries(np.arange(work.layout.n), work.changes)

    def _zeros(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.float64, device=self.device)

    def _go_over_rows(self, first: int, last: int, totals: dict[tuple[str, str], list[Tensor]]) -> None:
        work, layout = self.work, self.work.layout
        own = slice(int(layout.first[first]), int(layout.last[last - 1]))
        sums_needed = self.gsr or self.contrast or len(work.shared) > 0
        summed = sums_needed and not work.clips and not work.closed_form
        wide = summed or (work.clips and self.contrast)
        block: Tensor = None
        columns = slice(0, layout.n) if wide else own
        if wide or (work.metrics & FARTHEST) or (work.clips and self.gsr):
            block = self.blocks.distances(first, last, columns)
        if work.metrics & FARTHEST:
            part = block[:, own] if wide else block
            for protocol in work.swept:
                self._farthest(protocol, part, first, last, own)
        if work.clips:
            if self.gsr or self.contrast:
                self._leave_out_clips(block, first, last, own, columns, totals)
            return
        if not sums_needed:
            return
        cell_sums = self._cell_sums(block, first, last)
        if len(work.shared):
            at = self.cell_of[:, self.units[first:last]].t()  # [R, C]
            work.shared[first:last] = _numpy(torch.where(at >= 0, cell_sums.gather(1, at.clamp(min=0)), 0.0))
        for protocol in work.swept:
            self._leave_out_groups(protocol, cell_sums, first, last, totals)

    def _farthest(self, protocol: str, block: Tensor, first: int, last: int, own: slice) -> None:
        """The farthest of the own class with its unit, and the farthest of another unit."""
        work, rows = self.work, slice(first, last)
        apart = self.codes[own] != self.codes[rows][:, None]
        if protocol == "all":
            apart |= torch.arange(own.start, own.stop, device=self.device) == self._places(rows)[:, None]
        else:
            apart |= self.units[own] == self.units[rows][:, None]
        values = block.masked_fill(apart, -1.0)
        far, at = values.max(1)
        unit = torch.where(far >= 0, self.units[own][at], -1)
        second = values.masked_fill_(self.units[own] == unit[:, None], -1.0).amax(1)
        work.far[protocol][rows] = _numpy(torch.where(far >= 0, far, torch.nan))
        work.far_unit[protocol][rows] = _numpy(unit)
        work.second_far[protocol][rows] = _numpy(torch.where(second >= 0, second, torch.nan))

    def _places(self, rows: slice) -> Tensor:
        return torch.arange(rows.start, rows.stop, device=self.device)

    # --- clips --------------------------------------------------------------------------------------

    def _leave_out_clips(
        self, block: Tensor, first: int, last: int, own: slice, columns: slice,
        totals: dict[tuple[str, str], list[Tensor]],
    ) -> None:  # fmt: skip
        """Changes of GSR and contrast when a clip is left out of the classes of some rows."""
        swept, rows = self.work.swept["all"], slice(first, last)
        near, own_sum, lowest = (
            self.upload(values[rows])[:, None] for values in (swept.nearest_other, self.work.own_sums, swept.other_mean)
        )
        mine = self.codes[rows]
        partners = (self.sizes[mine] - 1.0)[:, None]
        mean = own_sum / partners
        inside = block[:, own] if columns != own else block
        same = self.codes[own] == mine[:, None]
        same &= self._places(own) != self._places(rows)[:, None]
        left = _rest(own_sum, inside) / (partners - 1.0)
        terms: list[tuple[str, Callable[[Tensor], Tensor], Tensor]] = [
            ("GSR", lambda own_mean: balance(near, own_mean), near),
            (CONTRAST, lambda own_mean: _contrast(own_mean, lowest), lowest),
        ]
        for name, term, counts in terms:
            if name in self.work.metrics:
                chosen = same & counts.isfinite()
                total, count = totals["all", name]
                gone = chosen & (partners == 1.0)
                change = torch.where(gone, 0.0, term(left)) - term(mean)
                total[own] += torch.where(chosen, change, 0.0).sum(0)
                count[own] -= gone.sum(0)
        if self.contrast:
            self._leave_out_of_others(block, rows, mean, lowest, totals["all", CONTRAST])

    def _leave_out_of_others(self, block: Tensor, rows: slice, mean: Tensor, lowest: Tensor, totals: Any) -> None:
        """Changes of the contrast when a clip is left out of a class that is, or could become, the nearest."""
        sums, mine = self.upload(self.work.swept["all"].class_sums[rows]), self.codes[rows][:, None]
        means = (sums / self.sizes).scatter_(1, mine, torch.inf)
        nearest = means.argmin(1, keepdim=True)
        second = means.scatter(1, nearest, torch.inf).amin(1, keepdim=True)
        lost = self.largest * self.upload(self.work.reach(np.arange(rows.start, rows.stop)))[:, None]
        spare = self.sizes - self.largest
        least = torch.where(spare > 0, (sums - lost).clamp(min=0.0) / spare, 0.0)
        needed = ((least < lowest) & (self.sizes > 1)).scatter_(1, nearest, True).scatter_(1, mine, False)
        needed &= mean.isfinite() & lowest.isfinite()
        other = torch.where(torch.arange(sums.shape[1], device=self.device) == nearest, second, lowest)  # [R, C]
        # By class, then by place: a class of one takes its sum with it.
        sizes = self.sizes[self.codes]
        rest = _rest(sums[:, self.codes], block) / (sizes - 1.0)
        left = other[:, self.codes]
        left = torch.where(sizes > 1, torch.minimum(left, rest), left)
        chosen, width = needed[:, self.codes], _contrast(mean, lowest)
        gone = chosen & (left == torch.inf)
        change = torch.where(gone, 0.0, _contrast(mean, left)) - width
        totals[0] += torch.where(chosen, change, 0.0).sum(0)
        totals[1] -= gone.sum(0)

    # --- groups -------------------------------------------------------------------------------------

    def _cell_sums(self, block: Tensor | None, first: int, last: int) -> Tensor:
        """Summed distances [R, cells] of some rows to every cell."""
        work, blocks, rows = self.work, self.blocks, slice(first, last)
        if not work.closed_form:
            assert block is not None
            order, bounds = self.upload(work.cells.order), self.upload(work.cells.bounds[:-1])
            return segment_sums(block.t().contiguous(), order, bounds).t().contiguous()
        squares = blocks.squares[rows]
        left = torch.column_stack([blocks.points[rows], squares, torch.ones_like(squares)])
        sums = (left @ self.operand.t()).clamp_(min=0.0)
        if blocks.any_flat:
            own = torch.zeros_like(sums)
            own[torch.arange(len(sums), device=self.device), self.upload(work.cells.of[rows])] = 1.0
            sums = torch.where(blocks.flat[rows][:, None], self.cell_counts - own, sums)
        return sums

    def _leave_out_groups(
        self, protocol: str, cell_sums: Tensor, first: int, last: int, totals: dict[tuple[str, str], list[Tensor]]
    ) -> None:
        """Changes of GSR and contrast when a group is left out, from the sums of rows over cells."""
        swept, rows, across = self.work.swept[protocol], slice(first, last), protocol != "all"
        near, second = (self.upload(v[rows])[:, None] for v in (swept.nearest_other, swept.second_other))
        near_unit = self.upload(swept.nearest_unit[rows])[:, None]
        unit = self.units[rows][:, None]
        every = torch.arange(len(self.work.units), device=self.device)
        mine = every == unit  # [R, U]
        cells = self.cell_of[self.codes[rows]]
        here, cells = cells >= 0, cells.clamp(min=0)
        counts = torch.where(here, self.cell_counts[cells], 0.0)
        sums = torch.where(here, cell_sums.gather(1, cells), 0.0)
        if across:
            sums.masked_fill_(mine, 0.0)
            partners = counts.masked_fill(mine, 0.0).sum(1, keepdim=True)
        else:
            partners = counts.sum(1, keepdim=True) - 1.0
        total = sums.sum(1, keepdim=True)
        own, own_left = total / partners, partners - counts
        own_sum = torch.where(here & ~mine if across else here, _rest(total, sums), total)
        answers = partners > 0
        if self.gsr:
            before = balance(near, own)
            taken = near_unit == every
            nearest = torch.where(taken, second, near)
            gone = mine | (own_left <= 0) | ~nearest.isfinite()
            after = balance(nearest, own_sum / own_left)
            change = torch.where(gone, -before, torch.where((own_left < partners) | taken, after - before, 0.0))
            chosen = answers & near.isfinite()
            self._add(totals[protocol, "GSR"], chosen, change, gone)
        if self.contrast:
            lowest, lows = self._lows(protocol, cell_sums, rows, mine)
            width = _contrast(own, lowest)
            gone = mine | (own_left <= 0) | (lows == torch.inf)
            change = torch.where(gone, -width, _contrast(own_sum / own_left, lows) - width)
            self._add(totals[protocol, CONTRAST], answers & (lowest < torch.inf), change, gone)

    @staticmethod
    def _add(totals: list[Tensor], chosen: Tensor, change: Tensor, gone: Tensor) -> None:
        totals[0] += torch.where(chosen, change, 0.0).sum(0)
        totals[1] -= (chosen & gone).sum(0)

    def _lows(self, protocol: str, cell_sums: Tensor, rows: slice, mine: Tensor) -> tuple[Tensor, Tensor]:
        """The lowest mean distance to another class [R, 1], and without each unit [R, U]; inf where there is none."""
        sums, own = self.upload(self.work.swept[protocol].class_sums[rows]), self.codes[rows][:, None]
        counts = self.sizes.expand_as(sums)
        if protocol != "all":
            counts = counts - self.table[self.units[rows]]
        means = torch.where(counts > 0, sums / counts, torch.inf).scatter_(1, own, torch.inf)
        # Without a unit, a class it has points of keeps what its other points measure ...
        left = counts[:, self.cell_codes] - self.cell_counts
        values = _rest(sums[:, self.cell_codes], cell_sums) / left
        values = torch.where((left > 0) & (means < torch.inf)[:, self.cell_codes], values, torch.inf)
        at = self.cell_units.expand_as(values)
        lows = torch.full(mine.shape, torch.inf, dtype=torch.float64, device=self.device)
        lows.scatter_reduce_(1, at, values, "amin")
        # ... and the others stay as they are: the nearest of those that the unit has no points of.
        order = means.argsort(1)
        looking = ~mine
        for t in range(means.shape[1]):
            code = order[:, t]
            value = means.gather(1, code[:, None])
            absent = self.cell_of[code] < 0
            lows = torch.where(looking & absent, torch.minimum(lows, value), lows)
            looking &= ~absent & (value < torch.inf)
            if not looking.any():
                break
        return means.amin(1, keepdim=True), lows

    # --- pairs of classes ---------------------------------------------------------------------------

    def pair_totals(self, protocol: str, pair_sums: Floats, pair_counts: Floats, terms: list[Floats]) -> list[Floats]:
        """The sums of CS and CSCF terms without each unit, from what each cell takes away from the pairs of classes."""
        work, classes = self.work, self.work.layout.classes
        pairs = _ClassPairs(self, protocol, pair_sums, pair_counts, terms)
        owners = work.units.of if work.clips else work.cells.units
        changes = [
            _numpy(pairs.without(first, last))
            for first, last in spans(len(owners), int(np.clip(BLOCK // (8 * classes), 1, len(owners))))
        ]
        change = np.concatenate(changes, axis=1)
        return [
            np.asarray(float(part.sum()) + np.bincount(owners, of_cells, len(work.units)), np.float64)
            for part, of_cells in zip(terms, change, strict=True)
        ]


class _ClassPairs:
    """Terms of ordered pairs of classes, without the points of a cell's unit; a clip is a cell of its own."""

    def __init__(
        self, deletions: TorchDeletions, protocol: str, pair_sums: Floats, pair_counts: Floats, terms: list[Floats]
    ) -> None:
        work, upload = deletions.work, deletions.upload
        self.across, self.clips, self.deletions = protocol != "all", work.clips, deletions
        self.pair_sums, self.pair_counts = upload(pair_sums), upload(pair_counts)
        self.terms = torch.stack([upload(part) for part in terms])  # [3, C, C]
        self.sums = upload(work.swept[protocol].class_sums)
        self.shared = None
        if not work.clips:
            order, bounds = upload(work.cells.order), upload(work.cells.bounds[:-1])
            self.sums = segment_sums(self.sums, order, bounds)  # [cells, C]
            if not self.across:
                self.shared = segment_sums(upload(work.shared), order, bounds)
        counts = self.pair_counts.diagonal()
        self.intra = torch.where(counts > 0.5, _rest(self.pair_sums.diagonal(), 0.0) / counts, -1.0)

    def without(self, first: int, last: int) -> Tensor:
        """Changes [3, cells] of the sums of terms by the cells first..last."""
        deletions, cells = self.deletions, slice(first, last)
        sizes, sums = deletions.sizes, self.sums[cells]
        if self.clips:
            code = deletions.codes[cells]
            held = torch.zeros_like(sums).scatter_(1, code[:, None], 1.0)  # points of the unit by class
        else:
            code = deletions.cell_codes[cells]
            held = deletions.table[deletions.cell_units[cells]]
        own, touched = code[:, None], held > 0
        mine, left = held.gather(1, own), sizes - held  # [cells, 1], [cells, C]
        rest = left.gather(1, own)
        # Pairs (own, b), with what the unit's points of b take away as well.
        total = self.pair_sums[code] - sums
        if not self.clips:
            others = deletions.cell_of[:, deletions.cell_units[cells]].t().clamp(min=0)  # the unit's cell of b
            total = total - torch.where(touched, self.sums[others, own], 0.0)
            if self.shared is not None:
                total = total + torch.where(touched, self.shared[cells], 0.0)
        elif not self.across:
            total = total.scatter_add(1, own, -sums.gather(1, own))
        if self.across:
            count = self.pair_counts[code] - mine * left - torch.where(touched, held * rest, 0.0)
        else:
            count = rest * (left - torch.zeros_like(left).scatter_(1, own, 1.0))
        means = _mean(self.pair_sums[code], total, count)
        intra = means.gather(1, own)
        change = self._terms(intra, means) - self.terms[:, code]
        # Pairs (b, own) of classes that the unit has no points of.
        back = self.pair_sums[:, code].t()
        count = self.pair_counts[:, code].t() - mine * left if self.across else left * rest
        means = _mean(back, back - sums, count)
        there = self._terms(self.intra, means) - self.terms[:, :, code].transpose(1, 2)
        change += torch.where(touched, 0.0, there)
        return change.scatter_(2, own.expand(3, -1, -1), 0.0).sum(2)

    @staticmethod
    def _terms(intra: Tensor, inter: Tensor) -> Tensor:
        measured, total = (intra >= 0) & (inter >= 0), intra + inter
        overlap = torch.where(total > 0, intra / total, 0.5)
        confused = inter < intra * (1.0 - separation.ROUNDING)
        return torch.stack([torch.where(measured, overlap, 0.0), (measured & confused).double(), measured.double()])


def _mean(whole: Tensor, left: Tensor, count: Tensor) -> Tensor:
    """The mean of what is left of a sum; -1 where no pair is left."""
    return torch.where(count > 0.5, _rest(whole, whole - left) / count, -1.0)


def _rest(total: Tensor, part: Any) -> Tensor:
    """A sum of distances without some of them; 0 where only rounding is left."""
    left = total - part
    return torch.where(left > ROUNDING * total, left, 0.0)


def _contrast(own: Tensor, other: Tensor) -> Tensor:
    largest = torch.maximum(own, other)
    return torch.where(largest > 0.0, (other - own) / largest, 0.0)


def _numpy(tensor: Tensor) -> NDArray[Any]:
    return np.array(tensor.cpu().numpy())
