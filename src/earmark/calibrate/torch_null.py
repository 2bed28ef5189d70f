"""The permutation null on a torch device: the shuffles are those of the CPU, and so are the values.

      labels [P, units]  --(drawn by the CPU's threads, the next batch while the device works)-->  codes [units, P]

      lists of neighbours   codes of a neighbour, all shuffles side by side, against the own ones:
                            hits, and the nearest of another class
      class sums            segment sums over the members of each shuffled class: of points (cosine, spearman, all
                            pairs), or of rows of float64 distances (everything else)
      farthest of the own   rows of distances, gathered over the members of the own class

A row is a place, a column a shuffle, so one read of a neighbour's codes serves every shuffle. Nothing is swept again.
Rows are taken in blocks whose height rests on the shape of the data alone, and no sum is left to the order in which
threads happen to finish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from earmark.calibrate import _null_by_rows as by_rows
from earmark.calibrate._null_job import Draws, Floats, Job, spans
from earmark.calibrate.closed_forms import CONTRAST, FARTHEST, PAIR_SHARES
from earmark.calibrate.torch_blocks import Blocks, segment_sums
from earmark.calibrate.torch_null_rows import GATHERED, Rows, closed_pair_shares, pair_shares
from earmark.errors import UsageError
from earmark.geometry.torch_pairs import upload
from earmark.metrics import separation
from earmark.workers import Workers

Tensor = Any
Tick = Callable[[float], None]

LABELS = 1 << 23  # of a batch of shuffles, at most: while the device works on one, the next is drawn
CLOSED_ROWS = 1 << 15  # rows at once where no distances are made
ROW_BYTES = 1 << 27  # of a block of distances


def values(
    jobs: Sequence[tuple[Job, bool]], device: Any, workers: Workers, memory: int, progress: Tick
) -> list[dict[str, Floats]]:
    """Every metric of each job, under each shuffle. A job comes with whether closed forms may be used for it."""
    draws = jobs[0][0].draws
    tasks = [Task(job, device, closed=closed) for job, closed in jobs]
    found: list[list[dict[str, NDArray[Any]]]] = [[] for _ in tasks]
    room = torch.cuda.mem_get_info(device)[0] // 2 if device.type == "cuda" else memory // 2
    step = max(1, min(room // max(task.bytes_each for task in tasks), LABELS // len(draws.unit_sizes), draws.count))
    start = 0
    while start < draws.count:
        stop = min(start + step, draws.count)
        try:
            shuffled = Shuffled(draws, start, stop, workers, device)
            parts = [task.measure(shuffled, room) for task in tasks]
        except torch.OutOfMemoryError:
            if step == 1:
                raise UsageError(f"The memory of {device} does not hold one shuffle: use device cpu.") from None
            step = max(1, step // 2)
            torch.cuda.empty_cache()
            continue
        except Exception as error:
            if not type(error).__module__.startswith("triton") or all(task.fused is None for task in tasks):
                raise
            for task in tasks:  # a Triton that cannot build the kernels: torch's own operations can do without
                task.fused = None
            continue
        for rows, part in zip(found, parts, strict=True):
            rows.append(part)
        progress((stop - start) / draws.count)
        start = stop
    return [_joined(task.job, parts) for task, parts in zip(tasks, found, strict=True)]


def fused_kernels(device: Any) -> Any:
    """The kernels of `triton_null` where they can run, else None: torch's own operations give the same."""
    if device.type != "cuda":
        return None
    try:
        from earmark.calibrate import triton_null
    except ImportError:
        return None
    return triton_null


def _joined(job: Job, parts: list[dict[str, Tensor]]) -> dict[str, Floats]:
    """The values of all batches, from sums and counts that are still on the device."""
    sums = {name: np.concatenate([part[name].cpu().numpy() for part in parts]) for name in parts[0]}
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {f"P@{k}": sums["hits"][:, i] / (k * sums["valid"][:, i]) for i, k in enumerate(job.ks)}
        if "gsr" in sums:
            found["GSR"] = sums["gsr"] / sums["balanced"]
        if "csr" in sums:
            near, wide, counts = np.moveaxis(sums["by_class"], 2, 0)
            found["CSR"] = separation.csr_from_class_sums(near, wide, counts)
            found["CSR_pointwise"] = sums["csr"] / counts.sum(axis=1)
        if "contrast" in sums:
            found[CONTRAST] = sums["contrast"] / sums["contrasted"]
        if "shares" in sums:
            overlap, confused, pairs = sums["shares"].T
            found["CS"], found["CSCF"] = overlap / pairs, confused / pairs
    return {name: values for name, values in found.items() if name.startswith("P@") or name in job.metrics}


class Shuffled:
    """A batch of shuffles on the device."""

    def __init__(self, draws: Draws, start: int, stop: int, workers: Workers, device: Any) -> None:
        self.count, self.units = stop - start, len(draws.unit_sizes)
        self.starts = upload(draws.starts, device)
        self.classes = len(self.starts) - 1
        self.members = self._drawn(draws, start, workers, device)  # [B, U]
        codes = torch.arange(self.classes, device=device).repeat_interleave(self.starts.diff())
        kind = torch.uint8 if self.classes <= 1 << 8 else torch.int16 if self.classes < 1 << 15 else torch.int32
        self.labels = torch.empty((self.count, self.units), dtype=kind, device=device)
        self.labels.scatter_(1, self.members.long(), codes.to(kind).expand(self.count, -1))
        self.codes = self.labels.t().contiguous()  # [U, B]
        self.unit_counts = self.starts.diff()
        first = torch.arange(self.count, dtype=torch.int32, device=device)[:, None]
        self.offsets = (first * self.units + self.starts[:-1].int()).flatten()
        self.order = self.members.flatten()
        self.sizes = self.unit_counts[None].double()  # clips of each class, for each shuffle or for all
        if draws.moves_groups:
            self.sizes = self.class_sums(upload(draws.unit_sizes, device)[:, None])[:, :, 0]

    def _drawn(self, draws: Draws, start: int, workers: Workers, device: Any) -> Tensor:
        """The units by class, drawn on the CPU; nothing else has to travel."""
        short = draws.member_type is np.uint16
        drawn = torch.empty(
            (self.count, self.units), dtype=torch.int16 if short else torch.int32, pin_memory=device.type == "cuda"
        )
        draws.members(start, drawn.numpy().view(draws.member_type), workers)
        moved = drawn.to(device, non_blocking=True)
        return moved.int() & 0xFFFF if short else moved

    def class_sums(self, values: Tensor) -> Tensor:
        """Sums [B, C, D] of values [U, D] over the members of each shuffled class."""
        sums = segment_sums(values, self.order, self.offsets)
        return sums.view(self.count, self.classes, -1)

    def part(self, start: int, stop: int) -> Shuffled:
        """Some of the shuffles."""
        part = object.__new__(Shuffled)
        part.__dict__.update(self.__dict__)
        part.labels, part.codes = self.labels[start:stop], self.codes[:, start:stop]
        part.members, part.count = self.members[start:stop], stop - start
        part.order, part.offsets = part.members.flatten(), self.offsets[: part.count * self.classes]
        part.sizes = self.sizes[start:stop] if len(self.sizes) > 1 else self.sizes
        return part

    def of_class(self, table: Tensor, mine: Tensor) -> Tensor:
        """table[p, mine[r, p]] for a table of classes, of one shuffle or of each: [R, B]."""
        if len(table) == 1:
            return table[0][mine.int()]
        return table.t().gather(0, mine.long())


class Task:
    """One protocol's metrics: what all batches share, on the device."""

    def __init__(self, job: Job, device: Any, *, closed: bool) -> None:
        self.job, self.device, self.closed = job, device, closed
        layout, metrics, draws = job.layout, job.metrics, job.draws
        self.blocks = Blocks(job.space, job.factors, device)
        self.fused = fused_kernels(device)
        self.far, self.contrast = bool(metrics & FARTHEST), CONTRAST in metrics
        self.pairs, self.balance = bool(metrics & PAIR_SHARES), bool(metrics & ({"GSR"} | FARTHEST))
        self.totals = self.contrast or (self.pairs and not closed)  # sums of every row over every class
        self.by_rows = self.far or (bool(metrics) and not closed)
        self.grouped = job.protocol != "all" and layout.groups is not None
        places, distances = job.swept.neighbours
        self.hit_units = np.where(places >= 0, draws.units[places], -1)
        self.distances = distances
        self.moves_groups, self.unit_count = draws.moves_groups, len(draws.unit_sizes)
        if self.moves_groups:
            self.unit_order = upload(np.argsort(draws.units, kind="stable").astype(np.int32), device)
            self.unit_offsets = upload(
                np.concatenate([[0], np.cumsum(np.bincount(draws.units))[:-1]]).astype(np.int32), device
            )
        self.units = upload(draws.units, device)
        self.groups: Tensor = None if layout.groups is None else upload(layout.groups, device)
        self._leave_groups_out()

    @property
    def sums_points(self) -> bool:
        """Whether class sums of points are needed: not where the fused kernel makes the only use of them."""
        if not self.closed or not self.job.metrics:
            return False
        if self.contrast or self.pairs or self.fused is None:
            return True
        return not self.by_rows and not self.fits_own_sums

    @property
    def fits_own_sums(self) -> bool:
        """Whether clips are the units, all rows are taken at once, and vectors are short enough for the kernel."""
        whole, dims = self.rows_at_once == self.job.layout.n, self.blocks.points.shape[1]
        return whole and not self.moves_groups and dims <= self.fused.WIDEST

    @property
    def bytes_each(self) -> int:
        """About what one shuffle takes on the device."""
        layout, rows = self.job.layout, self.rows_at_once
        each = self.unit_count * 24 + rows * 64
        if self.closed:
            each += 16 * layout.classes * (self.blocks.points.shape[1] + 2)
        if self.pairs and not self.closed:
            each += 8 * layout.classes**2
        return each

    @property
    def rows_at_once(self) -> int:
        """The height of a block of rows: by the shape of the data alone, since it is part of a sum's last digit."""
        n = self.job.layout.n
        return min(n, int(np.clip(ROW_BYTES // (8 * n), 16, 4096)) if self.by_rows else CLOSED_ROWS)

    def _leave_groups_out(self) -> None:
        """What is left out for each place: see `_null_by_rows`."""
        left, layout = by_rows.left_out(self.job), self.job.layout
        self.barred, self.unit_groups = upload(left.barred, self.device), upload(left.unit_groups, self.device)
        self.aside = upload(left.aside.astype(np.float64), self.device)
        self.cells: Tensor = None
        if self.grouped and (left.aside == 0).any():
            assert layout.groups is not None
            cells = np.zeros((len(layout.group_starts) - 1, layout.classes))
            inside = left.aside == 0
            np.add.at(cells, (layout.groups[inside], layout.codes[inside]), 1.0)
            self.cells = upload(cells, self.device)

    @cached_property
    def unit_points(self) -> Tensor:
        """Per unit, for closed forms: its summed points, squared norms and points without direction, [U, D + 2]."""
        blocks = self.blocks
        flat = blocks.flat.double()
        points = torch.column_stack([blocks.points, blocks.squares * (1.0 - flat), flat])
        return self._by_unit(points)

    def _by_unit(self, values: Tensor) -> Tensor:
        return segment_sums(values, self.unit_order, self.unit_offsets) if self.moves_groups else values

    # --- one batch of shuffles ----------------------------------------------------------------------

    def measure(self, shuffled: Shuffled, room: int) -> dict[str, Tensor]:
        """Sums and counts of every metric for each shuffle of the batch."""
        sums: dict[str, Tensor] = {}

        def add(name: str, values: Tensor) -> None:
            sums[name] = sums[name] + values if name in sums else values

        points = shuffled.class_sums(self.unit_points) if self.sums_points else None
        inter = None
        if self.pairs and not self.closed:
            shape = (shuffled.count, shuffled.classes, shuffled.classes)
            inter = torch.zeros(shape, dtype=torch.float64, device=self.device)
        for first, last in spans(self.job.layout.n, self.rows_at_once):
            Rows(self, shuffled, points, inter, first, last, room).measure(add)
        if self.pairs:
            shares = closed_pair_shares(shuffled, points, room) if inter is None else self._pair_shares(shuffled, inter)
            sums["shares"] = shares
        return sums

    def _pair_shares(self, shuffled: Shuffled, inter: Tensor) -> Tensor:
        """CS and CSCF terms from summed distances [B, C, C], as `_null_by_rows` counts their pairs."""
        apart, left_out = by_rows.pairs_left_out(self.job)
        diagonal = shuffled.class_sums(upload(apart, self.device)[:, None])[:, :, 0]
        gone, parts = upload(left_out, self.device), []
        for p0, p1 in spans(shuffled.count, max(1, GATHERED // (8 * inter[0].numel()))):
            sizes = shuffled.sizes[p0:p1] if len(shuffled.sizes) > 1 else shuffled.sizes
            counts = sizes[:, :, None] * sizes[:, None, :] - gone - torch.diag_embed(diagonal[p0:p1])
            parts.append(pair_shares(torch.where(counts > 0, inter[p0:p1] / counts, torch.nan), 0))
        return torch.cat(parts)
