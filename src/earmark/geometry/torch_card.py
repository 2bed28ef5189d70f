"""Neighbours of labelled points that lie on a torch device, decided there: nothing but results need leave it.

    Sets    the layouts of one or more sets of points, side by side: made once, used for every representation of them
    search  propose -> decide -> what is not certain again in float64 -> what still is not, from every pair

A fast product proposes (Triton's fused kernel, or blocks of float32 products where there is none), a certificate
proves, float64 decides: places and distances are those of the CPU to the last bit. Here the certificate is one-sided:
nothing that is not listed lies nearer than the last of a list, less the doubt of its key, and the k-th nearest of the
list is known exactly by then.

Nobody imports this module unless a device other than the CPU is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from earmark.errors import MissingExtra, require
from earmark.geometry import pair_kernels
from earmark.geometry.layout import Layout
from earmark.geometry.spaces import DEPTH, FLAT_SQUARE
from earmark.geometry.torch_pairs import Points, Tensor, blocks, full_precision, smallest, squares_of, upload

SPARE, FAR = 3, 4  # candidates kept beyond those needed; farthest kept
LENGTHS = (8, 16, 32)  # of the lists of the fused kernel
TORCH_SPARE = 11
BLOCK_BYTES = 1 << 29  # of one array of a block in flight; a smaller device halves it
NOBODY = np.iinfo(np.int64).max

_fused_on: dict[Any, Any] = {}


class Found(NamedTuple):
    """What was found of every place; NaN and -1 where there is nothing, or nobody asked."""

    places: Tensor  # [N, k]
    distances: Tensor
    other: Tensor
    far: Tensor
    unit: Tensor
    second: Tensor
    open: Tensor
    certain: Tensor

    @classmethod
    def nothing(cls, n: int, k: int, device: Any) -> Found:
        wide = {"dtype": torch.float64, "device": device}
        other, far, second = (torch.full((n,), torch.nan, **wide) for _ in range(3))
        return cls(
            torch.full((n, k), -1, dtype=torch.int64, device=device), torch.full((n, k), torch.nan, **wide), other, far,
            torch.full((n,), -1, dtype=torch.int64, device=device), second,
            torch.zeros(n, dtype=torch.bool, device=device), torch.zeros(n, dtype=torch.bool, device=device),
        )  # fmt: skip

    def store(self, rows: Tensor, part: Found) -> None:
        for mine, theirs in zip(self, part, strict=True):
            mine[rows] = theirs


class Sets:
    """Sets of points side by side on a device, each sorted by class; places, classes and candidates are ranges."""

    def __init__(self, layouts: Sequence[Layout], device: Any) -> None:
        self.layouts, self.device = tuple(layouts), torch.device(device)
        bounds = np.cumsum([0, *(layout.n for layout in layouts)])
        codes = np.cumsum([0, *(layout.classes for layout in layouts)])
        self.n, self.classes = int(bounds[-1]), int(codes[-1])
        self.bounds, self.class_bounds = bounds, codes

        def together(parts: Sequence[Any], dtype: Any) -> Tensor:
            return upload(np.concatenate([np.asarray(part) for part in parts]).astype(dtype), self.device)

        every = list(zip(layouts, bounds, strict=False))
        self.order = together([layout.order for layout in layouts], np.int64)
        self.codes = together([own.codes + at for own, at in zip(layouts, codes, strict=False)], np.int64)
        self.first = together([own.first + at for own, at in every], np.int32)
        self.last = together([own.last + at for own, at in every], np.int32)
        self.starts = together([*(own.starts[:-1] + at for own, at in every), [self.n]], np.int64)
        self.sizes = together([own.sizes for own in layouts], np.float64)
        self.set_of = together([np.full(own.n, i) for i, own in enumerate(layouts)], np.int64)
        self.class_starts = upload(codes.astype(np.int64), self.device)
        self.set_starts = upload(bounds.astype(np.int64), self.device)
        self.sum_rows: Any = None  # kept by torch_sums
        self.pair_rows: Any = None
        self._everyone: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

    def tiles(self, height: int) -> tuple[Tensor, Tensor, Tensor]:
        """Every place in blocks of `height` for the fused kernel, those with the most candidates first."""
        if height not in self._everyone:
            self._everyone[height] = self._tiles(np.arange(self.n), height)
        return self._everyone[height]

    def _tiles(self, rows: Any, height: int) -> tuple[Tensor, Tensor, Tensor]:
        tiles: list[tuple[int, int, Any]] = []
        which = np.searchsorted(self.bounds, rows, side="right") - 1
        for number in np.unique(which):
            own = rows[which == number]
            low, high = int(self.bounds[number]), int(self.bounds[number + 1])
            tiles += [(low, high, own[start : start + height]) for start in range(0, len(own), height)]
        tiles.sort(key=lambda tile: tile[0] - tile[1])
        padded = np.full((len(tiles), height), -1, np.int32)
        for number, (_, _, own) in enumerate(tiles):
            padded[number, : len(own)] = own
        lows, highs = (np.array([tile[end] for tile in tiles], np.int32) for end in (0, 1))
        return upload(padded.ravel(), self.device), upload(lows, self.device), upload(highs, self.device)


class Asked(NamedTuple):
    """What a search is to find: the k nearest, the farthest of the own class, the nearest without a unit."""

    k: int
    far: bool = False
    units: Tensor = None  # int64 of each place
    seconds: bool = False
    banned: Tensor = None  # int64 [N, 2]: units whose points are no candidates of a place, -1 for none


def search(points: Points, sets: Sets, asked: Asked, rows: Any = None) -> Found:
    """Everything asked of `rows` (places in order, all by default), decided."""
    found = propose_and_decide(points, sets, asked, rows)
    everyone = torch.arange(sets.n, device=sets.device) if rows is None else upload(np.asarray(rows), sets.device)
    settle_rest(points, sets, asked, found, everyone)
    return found


def settle_rest(points: Points, sets: Sets, asked: Asked, found: Found, rows: Tensor) -> None:
    """Find again what is not certain of `rows`: with float64 products, then from every pair."""
    for dtype in (torch.float64, None):
        left = rows[~found.certain[rows]]
        if not len(left):
            return
        _by_blocks(points, sets, asked, found, left, dtype)


def propose_and_decide(points: Points, sets: Sets, asked: Asked, rows: Any = None) -> Found:
    """The first pass over `rows`: what it could not decide is not certain."""
    fused = fused_kernels(sets.device)
    length = next((length for length in LENGTHS if length >= asked.k + SPARE), 0)
    if fused is not None and length:
        try:
            return _fused(fused, points, sets, asked, rows, length)
        except Exception as error:
            if not type(error).__module__.startswith("triton"):
                raise
            _fused_on[sets.device] = None  # a card with too little memory for a program, or too old
    found = Found.nothing(sets.n, asked.k, sets.device)
    everyone = torch.arange(sets.n, device=sets.device) if rows is None else upload(np.asarray(rows), sets.device)
    _by_blocks(points, sets, asked, found, everyone, torch.float32)
    return found


def fused_kernels(device: Any) -> Any:
    """The module of fused kernels, where Triton is there for the device and can build them, else None."""
    if device not in _fused_on:
        _fused_on[device] = _tried(device)
    return _fused_on[device]


def _tried(device: Any) -> Any:
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < (8, 0):
        return None
    try:
        require("triton", "Fused kernels", "torch")
        fused = require("earmark.geometry.triton_sweep", "Fused kernels", "torch")
        ends = torch.arange(2, device=device)
        fused.segment_sums(ends[:, None].to(torch.float64), ends)
    except MissingExtra:
        return None
    except Exception:  # a Triton without a C compiler, or for another torch: torch's own operations do without
        return None
    return fused


def _fused(fused: Any, points: Points, sets: Sets, asked: Asked, rows: Any, length: int) -> Found:
    parts = fused.parts_of(points.points, points.squares, points.rotation_error, flat=points.any_flat)
    tuned = fused.tuning(parts.width, sets.n // len(sets.layouts) if rows is None else len(rows))
    padded, lows, highs = sets.tiles(tuned.rows) if rows is None else sets._tiles(np.asarray(rows), tuned.rows)
    flat = fused.padded(points.flat.to(torch.int8)) if points.any_flat else None
    units = banned = None
    if asked.units is not None:
        units = fused.padded(asked.units.to(torch.int32))
    if asked.banned is not None:
        banned = asked.banned[padded.clamp(min=0).long()].T.to(torch.int32).contiguous()
    lists = fused.propose(
        parts, padded, lows, highs, sets.first, sets.last, length, FAR if asked.far else 1,
        flat=flat, units=units, banned=banned, tuned=tuned,
    )  # fmt: skip
    found = Found.nothing(sets.n, asked.k, sets.device)
    fused.decide(
        lists, padded, points.raw, sets.order, parts.doubt, found, halved=points.halved, flat=flat,
        units=units if asked.seconds else None,
    )  # fmt: skip
    if not points.halved:
        for values in (found.distances, found.other, found.far, found.second):
            values *= points.scale if values.dim() == 1 else points.scale[:, None]
    return found


# --- blocks of products ---------------------------------------------------------------------------------------


def _by_blocks(points: Points, sets: Sets, asked: Asked, found: Found, rows: Tensor, dtype: Any) -> None:
    """Find everything asked of `rows` with products of `dtype`, or (None) from every pair, a block at a time."""
    doubt = None if dtype is None else _doubt(points, dtype)
    edges = np.searchsorted(rows.cpu().numpy(), sets.bounds)
    for number, layout in enumerate(sets.layouts):
        if edges[number] == edges[number + 1]:
            continue
        low, high = int(sets.bounds[number]), int(sets.bounds[number + 1])
        own = rows[int(edges[number]) : int(edges[number + 1])]
        size = 8 * layout.n * (64 if dtype is None else 1)

        def work(block: Tensor, low: int = low, high: int = high) -> None:
            if dtype is None:
                part = _every_pair(points, sets, asked, block, low, high)
            else:
                part = _from_products(points, sets, asked, block, low, high, dtype, doubt)
            found.store(block, part)

        for _ in blocks(own, max(1, BLOCK_BYTES // max(1, size)), 1, sets.device, work):
            pass


def _doubt(points: Points, dtype: Any) -> Tensor:
    """How far q from a product of `dtype` can be from the truth, per place: see `Space.error_bound`."""
    length = points.squares.sqrt()
    size = (length + length.max()).square() + (FLAT_SQUARE if points.any_flat else 0.0)
    width = points.points.shape[1] + 2
    terms = min(width, DEPTH) + -(-width // DEPTH) + 8
    return (terms * torch.finfo(dtype).eps / 2 + points.rotation_error + pair_kernels.TIE_SHARE) * size


def _from_products(
    points: Points, sets: Sets, asked: Asked, at: Tensor, low: int, high: int, dtype: Any, doubt: Tensor
) -> Found:
    """Lists from a block of products, decided."""
    left, right = (-2.0 * points.points[at]).to(dtype), points.points[low:high].to(dtype)
    with full_precision():
        keys = left[:, :DEPTH] @ right[:, :DEPTH].T
        for start in range(DEPTH, right.shape[1], DEPTH):
            keys.addmm_(left[:, start : start + DEPTH], right[:, start : start + DEPTH].T)
    keys += points.squares[low:high].to(dtype)
    keys += points.squares[at].to(dtype)[:, None]
    if points.any_flat:
        keys.masked_fill_(points.flat[at][:, None] | points.flat[low:high], FLAT_SQUARE)
    own = _mask(keys, sets, asked, at, low, high)
    near = min(asked.k + TORCH_SPARE, high - low)
    far = min(FAR, high - low) if asked.far else 0
    lists = [smallest(torch.where(own, keys, torch.inf), near)]
    if far:  # what is no candidate is infinitely far: its negative would be the farthest of all
        lists.append(smallest(torch.where(own & (keys < torch.inf), -keys, torch.inf), far))
    lists.insert(1, smallest(keys.masked_fill_(own, torch.inf), near))
    values = torch.cat([part[0] for part in lists], 1).to(torch.float64)
    places = torch.cat([part[1] for part in lists], 1) + low
    role = torch.arange(values.shape[1], device=sets.device)
    floors = [values[:, near - 1], values[:, 2 * near - 1]]
    floors = [torch.where(floor < torch.inf, floor - doubt[at], floor) for floor in floors]
    ceiling = torch.full_like(floors[0], -torch.inf)
    if far:
        ceiling = torch.where(values[:, -1] < torch.inf, doubt[at] - values[:, -1], ceiling)
    valid = values < torch.inf
    places = torch.where(valid, places, at[:, None])
    squares = points.exact(at, places)
    return _decide(
        points, sets, asked, at, places, squares, valid, (role >= near) & (role < 2 * near), role >= 2 * near,
        (floors[0], floors[1], ceiling),
    )  # fmt: skip


def _every_pair(points: Points, sets: Sets, asked: Asked, at: Tensor, low: int, high: int) -> Found:
    """Everything from the exact squares of every pair of a block."""
    squares = squares_of(points.raw[at][:, None], points.raw[low:high].expand(len(at), -1, -1), 1.0)
    keys = squares.clone()
    own = _mask(keys, sets, asked, at, low, high)
    places = torch.arange(low, high, device=sets.device).expand(len(at), -1)
    never = torch.full((len(at),), torch.inf, dtype=torch.float64, device=sets.device)
    only_far = torch.zeros(high - low, dtype=torch.bool, device=sets.device)
    return _decide(
        points, sets, asked, at, places, squares, keys < torch.inf, ~own, only_far, (never, never, -never)
    )  # fmt: skip


def _mask(keys: Tensor, sets: Sets, asked: Asked, at: Tensor, low: int, high: int) -> Tensor:
    """Make what is no candidate infinitely far, in place; say which columns are of a row's own class."""
    keys[torch.arange(len(at), device=sets.device), at - low] = torch.inf
    if asked.banned is not None:
        for banned in asked.banned[at].unbind(1):
            keys.masked_fill_(asked.units[low:high] == banned[:, None], torch.inf)
    columns = torch.arange(low, high, device=sets.device)
    return (columns >= sets.first[at][:, None]) & (columns < sets.last[at][:, None])


def _decide(
    points: Points, sets: Sets, asked: Asked, at: Tensor, places: Tensor, squares: Tensor, valid: Tensor, other: Tensor,
    only_far: Tensor, limits: tuple[Tensor, Tensor, Tensor],
) -> Found:  # fmt: skip
    """Settle the candidates of some rows by their exact squares.

    `limits`: nothing of the own class that is not listed lies under the first, nothing of the others under the second,
    and nothing of the own class above the third.
    """
    inf, k = torch.inf, asked.k
    values = points.distances_of(squares, at[:, None], places)
    if points.any_flat:
        squares = torch.where(points.flat[at][:, None] | points.flat[places], FLAT_SQUARE, squares)
    near = valid & ~only_far
    spread = values * pair_kernels.SPLIT
    ranks = torch.where(near, spread - (spread - values), inf)
    by_row = torch.where(near, sets.order[places], NOBODY).argsort(1)
    order = by_row.gather(1, ranks.gather(1, by_row).argsort(dim=1, stable=True))[:, :k]
    there = near.gather(1, order)
    found = Found.nothing(len(at), k, sets.device)
    width = order.shape[1]
    found.places[:, :width] = torch.where(there, places.gather(1, order), -1)
    found.distances[:, :width] = torch.where(there, values.gather(1, order), torch.nan)
    needed = torch.where(there, squares.gather(1, order), 0.0).amax(1)
    theirs = near & other
    nearest = torch.where(theirs, values, inf).amin(1)
    reach = torch.where(theirs, squares, inf).amin(1)
    none = nearest == inf
    found.other.copy_(torch.where(none, torch.nan, nearest))
    reach = torch.maximum(needed, torch.where(none, 0.0, reach))
    if asked.seconds:
        units = asked.units[places]
        its = torch.where(theirs & (values == nearest[:, None]), places, NOBODY).amin(1)
        unit = torch.where(none, -1, asked.units[its.clamp(max=sets.n - 1)])
        left = theirs & (units != unit[:, None])
        second = torch.where(left, values, inf).amin(1)
        alone = second == inf
        found.unit.copy_(unit)
        found.second.copy_(torch.where(alone, torch.nan, second))
        found.open.copy_(alone & ~none & (limits[1] < inf))
        reach = torch.maximum(reach, torch.where(alone, 0.0, torch.where(left, squares, inf).amin(1)))
    tie = 1.0 + pair_kernels.TIE_SHARE
    certain = (limits[0] > needed * tie) & (limits[1] > reach * tie)
    if asked.far:
        mine = valid & ~other
        farthest = torch.where(mine, values, -1.0).amax(1)
        found.far.copy_(torch.where(farthest < 0.0, torch.nan, farthest))
        certain &= limits[2] < torch.where(mine, squares, 0.0).amax(1).clamp(min=1e-300)
    found.certain.copy_(certain)
    return found
