"""The labelled sweep on a GPU: the same findings as on the CPU, from products that torch makes.

    plain distances   torch_card.search finds and decides on the device; places and distances come back
    corrected ones    block of rows x all columns: float64 keys, masked by class, by banned unit and by the row itself;
                      lists of each protocol (nearest own, nearest other, farthest own) -> `kernels.decide` of the CPU
    class sums        in float64: in closed form, or distances of a block added class by class

Places and distances are those of the CPU to the last bit, whatever proposed them; sums differ in their last digits. A
block that does not fit the memory of the device is halved.

Nobody imports this module unless a device other than the CPU is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.geometry import torch_pairs
from earmark.geometry.factors import Factors
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import DEPTH, Space
from earmark.geometry.sweep import ROWS, Floats, Lists, Progress, Propose, RowOutputs, Run, Wanted, mend_closed_form
from earmark.geometry.torch_card import Asked, Sets, fused_kernels, search
from earmark.geometry.torch_pairs import Points, Result, Tensor, smallest, to_numpy
from earmark.geometry.torch_sums import WIDTH_UNIT, class_sums
from earmark.workers import Workers

Ints = NDArray[np.int64]
Precision = type[np.floating[Any]]

BLOCK_BYTES = 1 << 29  # of one array of a block in flight; a smaller device halves it
SEARCHED = 1 << 16  # rows searched at a time: a sweep of a million says how far it is
SMALL_CLASSES = 64  # up to as many, a product with indicators adds up classes faster than a walk over them


class TorchRun(Run):
    """A sweep whose products are made on a torch device: "torch:cuda", "torch:cuda:1", or "torch:cpu" to test it."""

    def __init__(
        self, space: Space, layout: Layout, wanted: Wanted, factors: Factors | None, threads: int, memory: int,
        kept: int, device: str,
    ) -> None:  # fmt: skip
        super().__init__(space, layout, wanted, factors, threads, memory, kept)
        self.device, self.card = device, torch.device(device.removeprefix("torch:"))
        self.points = Points.of(space, factors, self.card)
        self.sets = Sets([layout], self.card)
        self.unit_of = self.upload(self.units)
        self.columns = torch.arange(layout.n, device=self.card)
        self.right: Tensor = None
        if wanted.class_sums and self.closed_form:
            self.class_columns = self.upload(self.class_operand).T

    def search(self, rows: Ints, progress: Progress | None) -> None:
        self.queries, self.asked = rows, np.bincount(self.layout.codes[rows], minlength=self.layout.classes)
        if self.factors is not None:
            self.pass_twice(rows, [np.float64], progress)
            return
        summed = self.wanted.class_sums
        for name in self.protocols:
            for start in range(0, len(rows), SEARCHED):
                block = rows[start : start + SEARCHED]
                self.search_plain(name, block)
                if progress is not None and not summed and name == self.protocols[-1]:
                    progress(len(block))
        if summed and self.sum_up_there(rows):
            if progress is not None:
                progress(len(rows))
        elif summed:
            with Workers(self.threads) as workers:
                self.sum_up(workers, rows, progress)

    def search_plain(self, protocol: str, rows: Ints) -> None:
        """Neighbours and extremes of `rows`, decided on the device."""
        banned = self.banned(protocol, np.arange(self.layout.n))
        asked = Asked(
            self.k,
            self.wanted.farthest,
            self.unit_of,
            self.seconds,
            self.upload(banned) if (banned >= 0).any() else None,
        )
        try:
            found = search(self.points, self.sets, asked, None if len(rows) == self.layout.n else rows)
        except torch.OutOfMemoryError:
            raise UsageError(f"The memory of {self.card} does not hold the sweep: use device cpu.") from None
        at = self.upload(rows)
        self._store(protocol, rows, RowOutputs(*(to_numpy(part[at]) for part in found[:-1])))

    def sum_up_there(self, rows: Ints) -> bool:
        """The class sums of all places and what is made of them, on the device; False where that is not for it."""
        wanted, layout = self.wanted, self.layout
        fits = 8 * layout.n * layout.classes <= self.memory
        if len(rows) < layout.n or self.protocols != ("all",) or wanted.weights is not None or not fits:
            return False
        try:
            summed = class_sums(self.points, self.sets, careful=self.points.any_flat)
            if int(summed.suspects):
                summed = class_sums(self.points, self.sets, careful=True)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return False
        out, c = self.found["all"], layout.classes
        out.own_mean[:], out.other_mean[:] = to_numpy(summed.own_mean), to_numpy(summed.other_mean)
        out.own_count[:] = self.sizes[layout.codes] - 1.0
        if wanted.keep_sums:
            torch.from_numpy(out.class_sums).copy_(summed.sums.view(layout.n, c))
        if wanted.visit_class is not None:
            counts = np.outer(self.sizes, self.sizes) - np.diag(self.sizes)
            with np.errstate(invalid="ignore", divide="ignore"):
                means = np.where(counts > 0, to_numpy(summed.pairs.view(c, c)) / counts, np.nan)
            for code in range(c):
                wanted.visit_class("all", code, means[code : code + 1])
        return True

    def sum_up(self, workers: Workers, rows: Ints, progress: Progress | None) -> None:
        """The class sums of `rows` and all that is made of them."""

        def tiles() -> Iterator[tuple[Ints, Floats]]:
            for block, sums in self.blocks(rows, self.plain_sums):
                for start in range(0, len(block), ROWS):
                    yield block[start : start + ROWS], sums[start : start + ROWS]

        def work(tile: tuple[Ints, Floats]) -> tuple[int, Any]:
            return len(tile[0]), self.reduce_sums(*tile)

        self.merge(workers.map(work, tiles()), progress)

    def tiles(self, rows: Ints, dtype: Precision, sums: bool) -> Iterator[tuple[Ints, Propose]]:
        def work(block: Ints) -> tuple[dict[str, Lists], Floats]:
            return self.propose(block, sums)

        for block, (lists, summed) in self.blocks(rows, work):
            for start in range(0, len(block), ROWS):
                part = slice(start, start + ROWS)
                yield block[part], _given({n: _part(f, part) for n, f in lists.items()}, summed[part])

    def propose(self, rows: Ints, sums: bool) -> tuple[dict[str, Lists], Floats]:
        """The candidate lists of a block of rows under a correction, and its class sums."""
        assert self.factors is not None
        at = self.upload(rows)
        keys = self.keys(rows)
        self.points.distances_from_keys(keys, at)
        self.points.mend_rotated(keys, at)
        self.points.keys_from_distances(keys, at)
        summed = torch.zeros((len(rows), 0))
        if sums:
            summed = self.class_sums(self.points.corrected_from_keys(keys.clone(), at).T)
        if self.factors.signed:
            keys -= self.doubt * (keys + 2.0 * self.points.first)
        lists = {}
        for name in self.protocols:
            own_keys = keys if name == self.protocols[-1] else keys.clone()
            lists[name] = self.lists(own_keys, at, rows, name)
        return lists, to_numpy(summed)

    # --- candidate lists --------------------------------------------------------------------------

    def keys(self, rows: Ints) -> Tensor:
        """The float64 product of some rows with every column, DEPTH dimensions at a time."""
        if self.right is None:
            self.right = self.upload(self.space.columns(np.float64))
        right, left = self.right, self.upload(self.space.operands(np.float64, rows))
        keys = left[:, :DEPTH] @ right[:, :DEPTH].T
        for start in range(DEPTH, right.shape[1], DEPTH):
            keys.addmm_(left[:, start : start + DEPTH], right[:, start : start + DEPTH].T)
        return keys

    def lists(self, keys: Tensor, at: Tensor, rows: Ints, protocol: str) -> Lists:
        """The candidates of each row among `keys`, which are used up."""
        keys[torch.arange(len(rows), device=self.card), at] = torch.inf
        banned = self.banned(protocol, rows)
        for unit in (banned[:, 0], banned[:, 1]):
            if (unit >= 0).any():
                keys.masked_fill_(self.unit_of == self.upload(unit)[:, None], torch.inf)
        # Rows come in order of class: their classes are a range of columns.
        low, high = int(self.first[rows].min()), int(self.last[rows].max())
        columns = self.columns[low:high]
        first, last = self.upload(self.first[rows])[:, None], self.upload(self.last[rows])[:, None]
        own = (columns >= first) & (columns < last)
        part = keys[:, low:high]
        found = Lists.empty(len(rows), self.near, self.far, np.float64)
        self.fill(found, 0, slice(0, self.near), torch.where(own, part, torch.inf), low)
        if self.wanted.farthest:
            # What is no candidate is infinitely far: its negative would be the farthest of all.
            far = torch.where(own & (part < torch.inf), -part, torch.inf)
            self.fill(found, 2, slice(2 * self.near, 2 * self.near + self.far), far, low)
        part.masked_fill_(own, torch.inf)
        self.fill(found, 1, slice(self.near, 2 * self.near), keys)
        return found

    def fill(self, found: Lists, which: int, where: slice, keys: Tensor, low: int = 0) -> None:
        """The smallest keys of each row, of columns from `low` on, into one of its lists."""
        values, places = (to_numpy(part) for part in smallest(keys, min(where.stop - where.start, keys.shape[1])))
        found.keys[:, where][:, : values.shape[1]] = values
        found.places[:, where][:, : values.shape[1]] = places + low
        found.counts[:, which] = (values < np.inf).sum(axis=1)

    # --- class sums -------------------------------------------------------------------------------

    def plain_sums(self, rows: Ints) -> Floats:
        """The sums of the distances of some rows to every class."""
        at, points = self.upload(rows), self.points
        if self.closed_form:
            squares = points.squares[at, None]
            left = torch.cat([points.points[at], squares, torch.ones_like(squares)], 1)
            sums = to_numpy((left @ self.class_columns).clamp(min=0.0))
            return mend_closed_form(sums, self.space, self.layout, rows, self.class_squares)
        fused = fused_kernels(self.card)
        if fused is None:
            tile = self.keys(rows)
            points.distances_from_keys(tile, at)
            return to_numpy(self.class_sums(tile.T))
        if self.right is None:
            self.right = _widened(self.upload(self.space.columns(np.float64)))
        left = _widened(self.upload(self.space.operands(np.float64, rows)))
        sums = torch.empty((len(rows), self.layout.classes), dtype=torch.float64, device=self.card)
        fused.root_sums(
            self.right @ left.T, at, points.squares, points.raw, points.scale, self.sets.starts, sums
        )  # fmt: skip
        return to_numpy(sums)

    def class_sums(self, distances: Tensor) -> Tensor:
        """[rows, C] from distances [N, rows]."""
        sizes = self.upload(self.layout.sizes)
        if self.layout.classes <= SMALL_CLASSES:
            codes = self.upload(self.layout.codes)
            classes = torch.arange(self.layout.classes, device=self.card)[:, None]
            return ((codes == classes).to(torch.float64) @ distances).T
        return torch.segment_reduce(distances.contiguous(), "sum", lengths=sizes, axis=0).T

    def blocks(self, rows: Ints, work: Callable[[Ints], Result]) -> Iterator[tuple[Ints, Result]]:
        """`work` on blocks of whole tiles."""
        height = BLOCK_BYTES // (8 * max(self.layout.n, 1))
        return torch_pairs.blocks(rows, height, ROWS, self.card, work)

    def upload(self, values: NDArray[Any]) -> Tensor:
        return torch_pairs.upload(values, self.card)


def _widened(operand: Tensor) -> Tensor:
    """Zeros behind the last dimension, up to a width that products like."""
    return torch.nn.functional.pad(operand, (0, -operand.shape[1] % WIDTH_UNIT))


def _given(lists: dict[str, Lists], sums: Floats) -> Propose:
    return lambda: (lists, sums)


def _part(lists: Lists, rows: slice) -> Lists:
    return Lists(lists.keys[rows], lists.places[rows], lists.counts[rows], lists.near)
