"""Searches on a GPU: the products, the candidate lists and the float64 distances of the candidates are torch's.

    block of rows x all columns   keys = left @ right.T, DEPTH dimensions at a time, TF32 off
         |                        groups of 16 keys: only groups with the smallest minima are looked into
         v
    lists, with the distances of the candidates that will be needed, settled and kept there (`torch_lists`)

A distance is computed here as `pair_kernels.pair_square` does it: eight interleaved float64 sums, added in the
same order, one operation at a time so that nothing is fused. CUDA rounds roots of float64 correctly; torch's CPU may be
off by a bit, so NumPy takes them there.
So neighbours and ball counts are those of the CPU to the last bit, on any device. A block that does not fit the
device's memory is halved.

Nobody imports this module unless a device other than the CPU is asked for.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.geometry import kernels, torch_lists
from earmark.geometry._candidates import (
    Floats,
    Folded,
    Ints,
    Pairs,
    Precision,
    ball_limits,
    error_bound,
    scaled_factors,
    width_of,
)
from earmark.geometry.neighbour_kernels import FAINT
from earmark.geometry.spaces import DEPTH, FLAT_SQUARE, Space
from earmark.geometry.sweep import Neighbours
from earmark.geometry.torch_lists import SETTLED, Part, TorchLists
from earmark.workers import Workers

Tensor = Any
Result = TypeVar("Result")

GROUP = 16
AHEAD = 8  # distances looked up beyond those that will surely be needed: what rounding leaves open
BLOCK_BYTES = 1 << 30  # of keys in flight; a smaller device halves it
PAIR_BYTES = 1 << 30  # of vectors gathered for their distances
SQUARED = 64  # dimensions squared at once, a multiple of eight: fewer and larger operations


class Torch:
    """The backend of `candidates.Backend` for a torch device: "cuda", "cuda:1", or "cpu" (to test without a GPU)."""

    def __init__(self, pairs: Pairs, device: str, threads: int, memory: int) -> None:
        self.pairs, self.device, self.threads = pairs, torch.device(device), threads
        self.height = 0  # rows of a block that is known to fit; 0: not tried yet
        rows, _, columns, _ = pairs.decided_by
        with self._room_for("the vectors"):
            self.rows = self.columns = _uploaded(pairs.rows, rows, self.device)
            if pairs.rows is not pairs.columns:
                self.columns = _uploaded(pairs.columns, columns, self.device)

    # --- candidate lists --------------------------------------------------------------------------

    def keep_lists(self, length: int) -> TorchLists:
        with self._room_for("the lists of candidates"):
            return TorchLists(self.pairs.rows.n, length, self.device)

    def find(
        self, workers: Workers, under: Floats, weights: Floats, dtype: Precision, rows: Ints, length: int, k: int,
        out: Neighbours, *, keep: TorchLists | None = None, ordered: bool = True,
    ) -> Iterator[tuple[int, Ints]]:  # fmt: skip
        folded = self._fold(under, dtype)
        listed_under, settled_under = self._upload(under), self._upload(weights)

        def work(block: Ints) -> NDArray[np.bool_]:
            at = self._upload(block)
            part = self._lists(block, at, folded, listed_under, length, k)
            certified = self._settled(block, at, part, settled_under, k, out, ordered)
            if keep is not None:
                keep.store(at, part)
            return certified

        for block, certified in self._blocks(rows, dtype, work):
            yield len(block), block[~certified]

    def settle(
        self, workers: Workers, lists: TorchLists, rows: Ints | None, weights: Floats, k: int, out: Neighbours
    ) -> None:
        there = self._upload(weights)
        everyone = np.arange(self.pairs.rows.n) if rows is None else rows
        step = max(1, SETTLED // lists.length)
        for start in range(0, len(everyone), step):
            block = everyone[start : start + step]
            at = self._upload(block)
            part = lists.part(slice(start, start + step) if rows is None else at)
            self._settled(block, at, part, there, k, out, True)
            if rows is not None:  # of a slice the part is a view
                lists.store(at, part)

    def visit(
        self, workers: Workers, weights: Floats, rows: Ints, columns: Ints, reaches: Floats, lists: TorchLists
    ) -> Iterator[tuple[Ints, NDArray[np.int8]]]:
        folded = self._fold(weights, np.float32, columns)
        _, limits = ball_limits(self.pairs, folded, reaches)
        chosen = self._upload(columns)

        def work(block: Ints) -> NDArray[np.int8]:
            near = self._keys(block, folded, chosen) < self._upload(limits[block].astype(np.float32))[:, None]
            at, number = near.nonzero(as_tuple=True)
            return lists.add(self._upload(block), at, chosen[number])

        yield from self._blocks(rows, np.float32, work)

    def _lists(self, rows: Ints, at: Tensor, folded: Folded, weights: Tensor, length: int, eager: int) -> Part:
        pairs, n = self.pairs, self.pairs.columns.n
        available = n - int(pairs.same)
        keys = self._keys(rows, folded)
        values, places = _smallest(keys, min(length, available))
        del keys
        count = places.shape[1]
        errors = self._upload(folded.errors[rows])[:, None]
        share = (values.double() - errors).clamp(min=0.0) / folded.key_scale
        bounds = 0.5 * share if pairs.halved else share.sqrt() * pairs.scale
        floors = bounds[:, -1].clone() if count < available else torch.full_like(bounds[:, 0], torch.inf)
        distances = bounds / weights[places]
        known = torch.zeros_like(places, dtype=torch.bool)
        sure = min(eager + AHEAD, count)
        distances[:, :sure] = self._distances(at, places[:, :sure])
        known[:, :sure] = True
        return Part(places.int(), distances, known, torch.full_like(at, count), floors)

    def _settled(
        self, rows: Ints, at: Tensor, part: Part, weights: Tensor, k: int, out: Neighbours, ordered: bool
    ) -> NDArray[np.bool_]:
        """The neighbours of some rows into `out`; which of them are certain."""
        found = torch_lists.settle(
            part, weights, k, lambda row, column: self._distances(at[row], column), ordered=ordered
        )
        at_once: Ints | slice = rows  # a slice is written much faster
        if len(rows) and rows[-1] - rows[0] + 1 == len(rows) and (np.diff(rows) == 1).all():
            at_once = slice(int(rows[0]), int(rows[-1]) + 1)
        out.places[at_once], out.distances[at_once] = _numpy(found.places), _numpy(found.values)
        return _numpy(found.certified)

    # --- balls and closeness ----------------------------------------------------------------------

    def balls(
        self, workers: Workers, radii: Floats, row_weights: Floats, weights: Floats, present: NDArray[np.bool_],
        strict: bool,
    ) -> Iterator[tuple[Ints, Ints, Ints]]:  # fmt: skip
        folded = self._fold(weights, np.float32)
        lows, highs = ball_limits(self.pairs, folded, radii / row_weights)
        # The CPU compares in float64; here both are rounded outwards, and more is decided by the pair's distance.
        lows32 = np.nextafter(lows.astype(np.float32), np.float32(-np.inf))
        absent = self._upload(np.flatnonzero(~present))

        def count(rows: Ints) -> tuple[Ints, Ints]:
            keys = self._keys(rows, folded)
            keys[:, absent] = torch.inf
            inside = keys < self._upload(lows32[rows])[:, None]
            near = ((keys < self._upload(highs[rows].astype(np.float32))[:, None]) & ~inside).nonzero()
            per_row, per_column = _numpy(inside.sum(1)), _numpy(inside.sum(0))[: self.pairs.columns.n]
            a, b = _numpy(near[:, 0]), _numpy(near[:, 1])
            distances = _numpy(self._distances(self._upload(rows)[near[:, 0]], near[:, 1]))
            ranks = kernels.rank_of(distances * weights[b] * row_weights[rows[a]])
            limits = kernels.rank_of(radii[rows[a]])
            found = ranks < limits if strict else ranks <= limits
            np.add.at(per_row, a[found], 1)
            np.add.at(per_column, b[found], 1)
            return per_column, per_row

        for block, (per_column, per_row) in self._blocks(np.arange(self.pairs.rows.n), np.float32, count):
            yield block, per_column, per_row

    def logs(self, workers: Workers, rows: Ints, reaches: Floats, weights: Floats) -> Iterator[tuple[Ints, Floats]]:
        pairs, n = self.pairs, self.pairs.columns.n
        folded = self._fold(weights, np.float64)
        with np.errstate(over="ignore", under="ignore"):
            limits = pairs.key_of(reaches, folded.key_scale)
        power = 1.0 if pairs.halved else 0.5
        factors = self._upload(pairs.factors(weights) * folded.key_scale)
        sizes = self.columns.squares * factors

        def total(block: Ints) -> Floats:
            keys = self._keys(block, folded)[:, :n]
            limit, bound = (self._upload(v[block])[:, None] for v in (limits, limits + folded.errors))
            size = self.rows.squares[self._upload(block)][:, None] * factors + sizes
            # As `neighbour_kernels.add_logs`: what a key cannot tell is asked of the pair before it is left out.
            lost = (keys < (kernels.CLOSE * size).clamp(min=FAINT)) | ~((limit > FAINT) & (limit < torch.inf))
            found = torch.where(lost, 0.0, power * (keys / limit).clamp(0.0, 1.0).log())
            near = (lost & (keys < bound)).nonzero()
            if len(near):
                exact = self._distances(self._upload(block)[near[:, 0]], near[:, 1])
                value, reach = exact * self._upload(weights)[near[:, 1]], self._upload(reaches[block])[near[:, 0]]
                part = torch.where(value < reach, value / reach, 1.0).log()
                found[near[:, 0], near[:, 1]] = torch.where(value == 0.0, -torch.inf, part)
            return _numpy(found.sum(1))

        yield from self._blocks(rows, np.float64, total)

    # --- products and distances -------------------------------------------------------------------

    def _fold(self, weights: Floats, dtype: Precision, columns: Ints | None = None) -> Folded:
        """`candidates.fold` on the device; columns, all or some, are padded to whole groups."""
        pairs = self.pairs
        factors, key_scale = scaled_factors(pairs, weights)
        chosen: Tensor | slice = slice(None)
        if columns is not None:
            factors, chosen = factors[columns], self._upload(columns)
        n, dims = len(factors), pairs.columns.points.shape[1]
        with self._room_for("the vectors"):
            right = torch.zeros((-(-n // GROUP) * GROUP, width_of(pairs)), dtype=_TYPES[dtype], device=self.device)
        scaled = self._upload(factors)
        right[:n, :dims] = self.columns.points[chosen] * scaled[:, None]
        right[:n, dims] = self.columns.squares[chosen] * scaled
        right[:n, dims + 1] = scaled
        if pairs.flat:
            flat = self.columns.flat[chosen]
            right[:n][flat] = 0.0
            right[:n, -1] = torch.where(flat, scaled, 0.0)
        which = slice(None) if columns is None else columns
        return Folded(right, key_scale, error_bound(pairs, factors, dtype, which))

    def _keys(self, rows: Ints, folded: Folded, columns: Tensor | None = None) -> Tensor:
        """The keys of a block of rows with the folded columns; inf for the row itself and for the padding."""
        pairs = self.pairs
        n = self.pairs.columns.n if columns is None else len(columns)
        at = self._upload(rows)
        right = folded.right
        dims = pairs.columns.points.shape[1]
        left = torch.zeros((len(rows), right.shape[1]), dtype=right.dtype, device=self.device)
        left[:, :dims] = -2.0 * self.rows.points[at]
        left[:, dims] = 1.0
        left[:, dims + 1] = self.rows.squares[at]
        if pairs.flat:
            left[:, -1] = FLAT_SQUARE
            flat = self.rows.flat[at]
            left[flat, : dims + 1] = 0.0
            left[flat, dims + 1] = FLAT_SQUARE
        with _full_precision():
            keys = left[:, :DEPTH] @ right[:, :DEPTH].T
            for start in range(DEPTH, right.shape[1], DEPTH):
                keys.addmm_(left[:, start : start + DEPTH], right[:, start : start + DEPTH].T)
        keys[:, n:] = torch.inf
        if pairs.same and columns is None:
            keys[torch.arange(len(rows), device=self.device), at] = torch.inf
        elif pairs.same:
            keys[:, :n].masked_fill_(at[:, None] == columns, torch.inf)
        return keys

    def _distances(self, a: Tensor, b: Tensor) -> Tensor:
        """The distances of rows a [R] and columns b [R] or [R, m], as `neighbour_kernels.pair_distance` gives them."""
        pairs, inverse = self.pairs, 1.0 if self.pairs.halved else 1.0 / self.pairs.scale
        size = max(1, b[:1].numel() * self.rows.raw.shape[1] * self.rows.raw.element_size())
        step = max(1, PAIR_BYTES // size)
        squares = torch.empty(b.shape, dtype=torch.float64, device=self.device)
        if b.dim() > 1:
            a = a[:, None]
        for start in range(0, len(a), step):
            part = slice(start, start + step)
            squares[part] = _squares(self.rows.raw[a[part]], self.columns.raw[b[part]], inverse)
        if not pairs.halved:
            return _root(squares).mul_(pairs.scale)
        flat = self.rows.flat[a] | self.columns.flat[b]
        return torch.where(flat, 1.0, torch.where(squares > kernels.SAME_DIRECTION, 0.5 * squares, 0.0))

    # --- blocks -----------------------------------------------------------------------------------

    def _blocks(self, rows: Ints, dtype: Precision, work: Callable[[Ints], Result]) -> Iterator[tuple[Ints, Result]]:
        """`work` on blocks of rows, in order; blocks are halved until one fits the memory of the device."""
        most = max(1, BLOCK_BYTES // (max(self.pairs.columns.n, 1) * np.dtype(dtype).itemsize))
        height = min(self.height or most, most)
        start = 0
        while start < len(rows):
            block = rows[start : start + height]
            try:
                result = work(block)
            except torch.OutOfMemoryError:
                if height == 1:
                    with self._room_for("one row of the search"):
                        raise
                height = self.height = max(1, len(block) // 2)
                torch.cuda.empty_cache()
                continue
            start += len(block)
            yield block, result

    @contextmanager
    def _room_for(self, thing: str) -> Iterator[None]:
        try:
            yield
        except torch.OutOfMemoryError:
            raise UsageError(f"The memory of {self.device} does not hold {thing}: use device cpu.") from None

    def _upload(self, values: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device)


class _Uploaded:
    """A space on the device."""

    def __init__(self, space: Space, raw: NDArray[Any], device: Any) -> None:
        def move(values: NDArray[Any]) -> Tensor:
            # torch warns of arrays that may not be written to, as those of a mapped file.
            return torch.from_numpy(values if values.flags.writeable else values.copy()).to(device)

        self.points, self.squares, self.flat = move(space.points), move(space.squares), move(space.flat)
        self.raw = self.points if raw is space.points else move(raw)


_there: dict[tuple[int, str], tuple[weakref.ref[Space], _Uploaded]] = {}
"""Spaces that lie on a device already: searches one after another, as those of GICDM, move them once."""


def _uploaded(space: Space, raw: NDArray[Any], device: Any) -> _Uploaded:
    """The space on the device, where it stays as long as it lives here."""
    key = id(space), str(device)
    if key not in _there:
        moved = _Uploaded(space, raw, device)
        _there[key] = weakref.ref(space, lambda _: _there.pop(key, None)), moved
    return _there[key][1]


_TYPES: dict[Any, Any] = {np.float32: torch.float32, np.float64: torch.float64}


def _smallest(keys: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` smallest keys of each row, in order, and where they stand.

    The smallest `count` lie in the `count` groups with the smallest minima, or behind the last whole group: one pass
    over the keys, and the selection works on a sixteenth of them.
    """
    rows, width = keys.shape
    whole = width - width % GROUP
    if width <= 4 * GROUP * count:
        found = torch.topk(keys, count, dim=1, largest=False)
        return found.values, found.indices
    minima = keys[:, :whole].unflatten(1, (-1, GROUP)).amin(2)
    groups = torch.topk(minima, count, dim=1, largest=False, sorted=False).indices
    inside = torch.arange(GROUP, device=keys.device)
    places = (groups[:, :, None] * GROUP + inside).view(rows, -1)
    if whole < width:
        places = torch.cat([places, torch.arange(whole, width, device=keys.device).expand(rows, -1)], 1)
    found = torch.topk(keys.gather(1, places), count, dim=1, largest=False)
    return found.values, places.gather(1, found.indices)


def _squares(x: Tensor, y: Tensor, inverse: float) -> Tensor:
    """|x - y|^2 over the last dimension, times inverse^2, summed as `pair_kernels.pair_square` sums."""
    dims = x.shape[-1]
    whole = dims - dims % 8
    sums = torch.zeros((*y.shape[:-1], 8), dtype=torch.float64, device=x.device)
    total = torch.zeros(y.shape[:-1], dtype=torch.float64, device=x.device)
    for start in range(0, dims, SQUARED):
        stop = min(start + SQUARED, dims)
        apart = x[..., start:stop].double() - y[..., start:stop]
        apart *= inverse
        apart *= apart
        for d in range(0, min(stop, whole) - start, 8):
            sums += apart[..., d : d + 8]
    s = sums.unbind(-1)
    total += ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
    for d in range(whole, dims):
        total += apart[..., d - start]
    return total


def _root(values: Tensor) -> Tensor:
    """Correctly rounded square roots."""
    return values.sqrt_() if values.is_cuda else torch.from_numpy(np.sqrt(values.numpy()))


def _numpy(tensor: Tensor) -> NDArray[Any]:
    """An array of its own."""
    return np.array(tensor.numpy()) if tensor.device.type == "cpu" else np.asarray(tensor.cpu().numpy())


@contextmanager
def _full_precision() -> Iterator[None]:
    """float32 products in float32: TF32 keeps ten bits of each factor."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
