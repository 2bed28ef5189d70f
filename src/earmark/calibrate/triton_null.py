"""Fused kernels of the permutation null for CUDA: each does in one pass what `torch_null` does in a dozen.

      own_sums      a program for each class of each shuffle: gathers the points of its members, sums them, and
                    takes every member's product with the sum; points are read twice and nothing is written but the
                    result [rows, shuffles]
      count_hits    rows x 128 shuffles: codes of the first k neighbours against the own one, counted by shuffle
      look          rows x 128 shuffles: down the list until every shuffle has met another class
      gather_own    a program for each row of distances, which it keeps in the first cache: sum and largest over the
                    members of the own class, shuffle by shuffle

`torch_null` gives the same without them (to the last bits of sums), on any device; counts are of integers, and no sum
depends on which program ends first. Nobody imports this module unless there is a CUDA device and Triton.
"""
# mypy: ignore-errors

from __future__ import annotations

import torch
import triton
import triton.language as tl

WIDEST = 1024  # dimensions: longer vectors are left to torch
SHUFFLES = 128
ROWS = 16
OWN_WARPS, OWN_HEIGHT = 4, 16  # of `own_sums`, for vectors of up to 128 dimensions


@triton.jit(do_not_specialize=["units", "shuffles"])
def _own_sums(
    points, squares, flat, members, starts, own, dims, units, shuffles, HEIGHT: tl.constexpr, WIDTH: tl.constexpr
):
    code, shuffle = tl.program_id(0), tl.program_id(1).to(tl.int64)
    first, last = tl.load(starts + code), tl.load(starts + code + 1)
    d, line = tl.arange(0, WIDTH), tl.arange(0, HEIGHT)
    listed = members + shuffle * units
    total = tl.zeros([HEIGHT, WIDTH], tl.float64)
    norms, flats = tl.zeros([HEIGHT], tl.float64), tl.zeros([HEIGHT], tl.float64)
    for start in range(first, last, HEIGHT):
        here = start + line < last
        at = tl.load(listed + start + line, mask=here, other=0).to(tl.int64)
        inside = here[:, None] & (d < dims)[None, :]
        total += tl.load(points + at[:, None] * dims + d[None, :], mask=inside, other=0.0)
        no_direction = tl.load(flat + at, mask=here, other=0).to(tl.float64)
        norms += tl.load(squares + at, mask=here, other=0.0) * (1.0 - no_direction)
        flats += no_direction
    summed, norm, lost = tl.sum(total, 0), tl.sum(norms, 0), tl.sum(flats, 0)
    size = (last - first).to(tl.float64)
    for start in range(first, last, HEIGHT):
        here = start + line < last
        at = tl.load(listed + start + line, mask=here, other=0).to(tl.int64)
        inside = here[:, None] & (d < dims)[None, :]
        x = tl.load(points + at[:, None] * dims + d[None, :], mask=inside, other=0.0)
        square = tl.load(squares + at, mask=here, other=0.0)
        value = 0.5 * ((size - lost) * square + norm) + lost - tl.sum(x * summed[None, :], 1)
        no_direction = tl.load(flat + at, mask=here, other=0) != 0
        value = tl.where(no_direction, size - 1.0, tl.maximum(value, 0.0))
        tl.store(own + at * shuffles + shuffle, value, mask=here)


def own_sums(points, squares, flat, members, starts, own):
    """Summed distance (q / 2) of every place to its class under each shuffle, into own [N, B]; units are places."""
    n, dims = points.shape
    width = triton.next_power_of_2(dims)
    _own_sums[(len(starts) - 1, len(members))](
        points, squares, flat.to(torch.uint8), members, starts.int(), own, dims, n, len(members),
        HEIGHT=max(1, OWN_HEIGHT * 128 // max(width, 128)), WIDTH=width, num_warps=OWN_WARPS,
    )  # fmt: skip


@triton.jit(do_not_specialize=["rows", "shuffles", "depth", "k"])
def _count_hits(
    codes, units, lists, open_queries, hits, valid, rows, shuffles, depth, k, HEIGHT: tl.constexpr, WIDTH: tl.constexpr
):
    p = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    inside = p < shuffles
    found, counted = tl.zeros([WIDTH], tl.int32), tl.zeros([WIDTH], tl.int32)
    first = tl.program_id(0).to(tl.int64) * HEIGHT
    for row in range(first, tl.minimum(first + HEIGHT, rows)):
        # A query whose group leaves it fewer than k candidates has no P@k.
        if tl.load(lists + row * depth + k - 1) >= 0:
            mine = tl.load(codes + tl.load(units + row) * shuffles + p, mask=inside, other=0)
            asked = tl.load(open_queries + row * shuffles + p, mask=inside, other=0).to(tl.int32)
            counted += asked
            for t in range(k):
                unit = tl.load(lists + row * depth + t)
                same = tl.load(codes + unit * shuffles + p, mask=inside, other=0) == mine
                found += same.to(tl.int32) * asked
    tl.atomic_add(hits + p, found.to(tl.int64), mask=inside)
    tl.atomic_add(valid + p, counted.to(tl.int64), mask=inside)


def count_hits(codes, units, lists, open_queries, k):
    """Per shuffle, how many of the first k neighbours share the class of their query, and how many queries there are.

    codes [U, B]; units [R] of the rows; lists [R, K] int64, -1 past the last; open_queries [R, B].
    """
    rows, shuffles = open_queries.shape
    hits, valid = torch.zeros((2, shuffles), dtype=torch.int64, device=codes.device)
    grid = (triton.cdiv(rows, 64), triton.cdiv(shuffles, SHUFFLES))
    _count_hits[grid](
        codes, units, lists, open_queries.view(torch.uint8), hits, valid, rows, shuffles, lists.shape[1], k,
        HEIGHT=64, WIDTH=SHUFFLES, num_warps=1,
    )  # fmt: skip
    return hits, valid


@triton.jit(do_not_specialize=["rows", "shuffles", "depth"])
def _look(
    codes, units, lists, distances, open_queries, nearest, rows, shuffles, depth,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    p = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    inside = p < shuffles
    first = tl.program_id(0).to(tl.int64) * HEIGHT
    for row in range(first, tl.minimum(first + HEIGHT, rows)):
        mine = tl.load(codes + tl.load(units + row) * shuffles + p, mask=inside, other=0)
        looking = tl.load(open_queries + row * shuffles + p, mask=inside, other=0).to(tl.int32)
        near = tl.full([WIDTH], float("inf"), tl.float64)
        t = 0
        while t < depth:
            unit = tl.load(lists + row * depth + t)
            if unit >= 0:
                other = (tl.load(codes + unit * shuffles + p, mask=inside, other=0) != mine) & (looking > 0)
                near = tl.where(other, tl.load(distances + row * depth + t), near)
                looking = tl.where(other, 0, looking)
                t = tl.where(tl.max(looking, 0) > 0, t + 1, depth)
            else:
                t = depth
        # What the list does not tell is NaN until the whole row is searched.
        near = tl.where(looking > 0, float("nan"), near)
        tl.store(nearest + row * shuffles + p, near, mask=inside)


def look(codes, units, lists, distances, open_queries, nearest):
    """The distance of the nearest unit of another class in each list into nearest [R, B]: NaN where the list ends
    before one is met, inf where there is nothing to look for."""
    rows, shuffles = open_queries.shape
    _look[(triton.cdiv(rows, ROWS), triton.cdiv(shuffles, SHUFFLES))](
        codes, units, lists, distances, open_queries.view(torch.uint8), nearest, rows, shuffles, lists.shape[1],
        HEIGHT=ROWS, WIDTH=SHUFFLES, num_warps=1,
    )  # fmt: skip


@triton.jit(do_not_specialize=["units", "shuffles"])
def _gather_own(
    sums, peaks, mine, members, starts, own, farthest, units, shuffles,
    FAR: tl.constexpr, TWO: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    line, step = tl.arange(0, HEIGHT), tl.arange(0, WIDTH)
    for start in range(0, shuffles, HEIGHT):
        p = start + line
        inside = p < shuffles
        code = tl.load(mine + row * shuffles + p, mask=inside, other=0).to(tl.int32)
        first = tl.load(starts + code)
        size = tl.where(inside, tl.load(starts + code + 1) - first, 0)
        total, top = tl.zeros([HEIGHT, WIDTH], tl.float64), tl.zeros([HEIGHT, WIDTH], tl.float64)
        listed = members + p.to(tl.int64) * units + first
        for at in range(0, tl.max(size, 0), WIDTH):
            here = (at + step)[None, :] < size[:, None]
            unit = tl.load(listed[:, None] + (at + step)[None, :], mask=here, other=0)
            value = tl.load(sums + row * units + unit, mask=here, other=0.0)
            total += value
            if FAR:
                if TWO:
                    value = tl.load(peaks + row * units + unit, mask=here, other=0.0)
                top = tl.maximum(top, value)
        tl.store(own + row * shuffles + p, tl.sum(total, 1), mask=inside)
        if FAR:
            tl.store(farthest + row * shuffles + p, tl.max(top, 1), mask=inside)


def gather_own(sums, peaks, mine, members, starts, own, farthest, *, far, warps=32):
    """Sum (and largest) of the distances sums (and peaks) [R, U] over the members of the own class, [R, B]."""
    rows, shuffles = mine.shape
    _gather_own[(rows,)](
        sums, peaks, mine, members, starts.int(), own, farthest, sums.shape[1], shuffles,
        FAR=far, TWO=peaks is not sums, HEIGHT=2 * warps, WIDTH=32, num_warps=warps,
    )  # fmt: skip
