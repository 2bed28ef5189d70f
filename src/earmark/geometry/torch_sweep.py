"""The labelled sweep on a GPU: products, candidate lists and class sums are torch's, decisions are the CPU's.

    block of rows x all columns   keys = left @ right.T (float32, or float64 under a correction)
         |                        masked by class, by banned unit and by the row itself
         v
    lists of each protocol: nearest own, nearest other, farthest own  ->  `kernels.decide`, as on the CPU
    sums over classes (float64): closed form, or distances of the block added class by class

Candidates are decided by the kernel that decides them on the CPU, so neighbours and distances are those of the CPU to
the last bit, whatever proposed them; sums differ in their last digits. Where Triton is there, the lists of plain
distances come from one fused kernel (triton_sweep.py), which keeps no block of keys. A block that does not fit the
memory of the device is halved.

Nobody imports this module unless a device other than the CPU is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.geometry import kernels, torch_pairs
from earmark.geometry.factors import Factors
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import DEPTH, Space
from earmark.geometry.sweep import ROWS, Floats, Lists, Progress, Propose, Run, Wanted
from earmark.geometry.torch_pairs import Tensor, full_precision, smallest, to_numpy

Ints = NDArray[np.int64]
Precision = type[np.floating[Any]]
Result = TypeVar("Result")

BLOCK_BYTES = 1 << 29  # of one array of a block in flight; a smaller device halves it
SMALL_CLASSES = 64  # up to as many, a product with indicators adds up classes faster than a walk over them


class TorchRun(Run):
    """A sweep whose products are made on a torch device: "torch:cuda", "torch:cuda:1", or "torch:cpu" to test it."""

    def __init__(
        self, space: Space, layout: Layout, wanted: Wanted, factors: Factors | None, threads: int, memory: int,
        device: str,
    ) -> None:  # fmt: skip
        super().__init__(space, layout, wanted, factors, threads, memory)
        self.device, self.card = device, torch.device(device.removeprefix("torch:"))
        self.height = 0  # rows of a block that is known to fit; 0: not tried yet
        try:
            self.pairs = torch_pairs.Pairs(space, factors, self.card)
        except torch.OutOfMemoryError:
            raise UsageError(f"The memory of {self.card} does not hold the vectors: use device cpu.") from None
        self.unit_of = self.upload(self.units)
        self.columns = torch.arange(layout.n, device=self.card)
        self.right: dict[Precision, Tensor] = {}

    def search(self, rows: Ints, progress: Progress | None) -> None:
        self.asked = np.bincount(self.layout.codes[rows], minlength=self.layout.classes)
        # Sums have a product of their own here, so plain lists may always come from float32.
        self.pass_twice(rows, [np.float64] if self.factors is not None else [np.float32, np.float64], progress)

    def tiles(self, rows: Ints, dtype: Precision, sums: bool) -> Iterator[tuple[Ints, Propose]]:
        def work(block: Ints) -> tuple[dict[str, Lists], Floats]:
            return self.propose(block, dtype, sums)

        for block, (lists, class_sums) in self.blocks(rows, dtype, work):
            for start in range(0, len(block), ROWS):
                part = slice(start, start + ROWS)
                yield block[part], _given(block[part], {n: _part(f, part) for n, f in lists.items()}, class_sums[part])

    def propose(self, rows: Ints, dtype: Precision, sums: bool) -> tuple[dict[str, Lists], Floats]:
        """The candidate lists of a block of rows, and its class sums."""
        at = self.upload(rows)
        keys = self.keys(at, rows, dtype)
        class_sums = torch.zeros((len(rows), 0), dtype=torch.float64, device=self.card)
        if self.factors is not None:
            self.pairs.distances_from_keys(keys, at)
            self.pairs.mend_rotated(keys, at)
            self.pairs.keys_from_distances(keys, at)
            if sums:
                class_sums = self.class_sums(self.pairs.corrected_from_keys(keys.clone(), at).T)
            if self.factors.signed:
                keys -= self.doubt * (keys + 2.0 * self.pairs.first)
        elif sums:
            class_sums = self.plain_sums(rows, at)
        lists = {}
        for name in self.protocols:
            own_keys = keys if name == self.protocols[-1] else keys.clone()
            lists[name] = self.lists(own_keys, at, rows, name)
        found = to_numpy(class_sums)
        if sums and self.closed_form:
            kernels.mend_collapsed_sums(
                found, rows, self.space.squares, self.class_squares, self.layout.starts, self.space.raw, self.space.flat
            )
            for r in np.flatnonzero(self.space.flat[rows]):
                found[r] = self.sizes
                found[r, self.layout.codes[rows[r]]] -= 1.0
        return lists, found

    # --- candidate lists --------------------------------------------------------------------------

    def keys(self, at: Tensor, rows: Ints, dtype: Precision) -> Tensor:
        """The product of some rows with every column, DEPTH dimensions at a time."""
        if dtype not in self.right:
            self.right = {dtype: self.upload(self.space.columns(dtype))}
        right, left = self.right[dtype], self.upload(self.space.operands(dtype, rows))
        with full_precision():
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
        found = Lists.empty(len(rows), self.near, self.far, np.float32 if keys.dtype == torch.float32 else np.float64)
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

    def plain_sums(self, rows: Ints, at: Tensor) -> Tensor:
        """The sums of the distances of some rows to every class."""
        space, pairs = self.space, self.pairs
        if self.closed_form:
            left = torch.cat([pairs.points[at], pairs.squares[at, None], torch.ones_like(pairs.squares[at, None])], 1)
            return (left @ self.upload(self.class_operand).T).clamp(min=0.0)
        tile = self.keys(at, rows, np.float64)
        pairs.distances_from_keys(tile, at)
        return self.class_sums(tile.T)

    def class_sums(self, distances: Tensor) -> Tensor:
        """[rows, C] from distances [N, rows]."""
        sizes = self.upload(self.layout.sizes)
        if self.layout.classes <= SMALL_CLASSES:
            codes = self.upload(self.layout.codes)
            classes = torch.arange(self.layout.classes, device=self.card)[:, None]
            return ((codes == classes).to(torch.float64) @ distances).T
        return torch.segment_reduce(distances.contiguous(), "sum", lengths=sizes, axis=0).T

    # --- blocks -----------------------------------------------------------------------------------

    def blocks(self, rows: Ints, dtype: Precision, work: Callable[[Ints], Result]) -> Iterator[tuple[Ints, Result]]:
        """`work` on blocks of rows, in order; blocks are whole tiles, halved until one fits the device."""
        most = max(1, BLOCK_BYTES // (max(self.layout.n, 1) * np.dtype(dtype).itemsize) // ROWS) * ROWS
        height = min(self.height or most, most)
        start = 0
        while start < len(rows):
            block = rows[start : start + height]
            try:
                result = work(block)
            except torch.OutOfMemoryError:
                if height <= ROWS:
                    raise UsageError(
                        f"The memory of {self.card} does not hold {len(block)} rows of the sweep: use device cpu."
                    ) from None
                height = self.height = max(1, height // 2 // ROWS) * ROWS
                torch.cuda.empty_cache()
                continue
            start += len(block)
            yield block, result

    def upload(self, values: NDArray[Any]) -> Tensor:
        return torch_pairs.upload(values, self.card)


def _given(rows: Ints, lists: dict[str, Lists], sums: Floats) -> Propose:
    return lambda: (lists, sums)


def _part(lists: Lists, rows: slice) -> Lists:
    return Lists(lists.keys[rows], lists.places[rows], lists.counts[rows], lists.near)
