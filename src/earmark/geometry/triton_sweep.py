"""The sweep as fused kernels: a tile of products is looked through while it is in registers, and never written.

    propose   a program has ROWS rows and walks over strips of COLUMNS points. Points are two float16 parts of
              themselves (22 bits), so a product is three of the tensor cores' fastest; q = |a|^2 + |b|^2 - 2 ab follows
              in float32. A key is q without its last 7 bits, which hold the column of the strip instead: one integer
              to compare. Points are sorted by class: strips outside the classes of a program's rows go to one list.
    decide    the float64 distances of the candidates, as `pair_kernels` has them to the last bit; which are the k
              nearest, the nearest of another class, the farthest of the own; and whether that is certain
    root_sums sums of square roots over classes, from a block of float64 products

How far a key can be from the truth is told by `doubts`. Nobody imports this module unless Triton is there.
"""
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from earmark.geometry.kernels import CLOSE, COLLAPSED
from earmark.geometry.pair_kernels import SAME_DIRECTION, SPLIT, TIE_SHARE
from earmark.geometry.spaces import FLAT_SQUARE

Tensor = Any

ROWS, COLUMNS = 64, 128  # of a tile; the columns must be 128: a key keeps 7 bits for them
DEPTH = 64  # dimensions at a time, where a point has more than WHOLE
WHOLE = 128
MANY = 1 << 16  # rows from which a program takes twice as many
UNIT = 2.0**-22  # of one addition in a tensor core, which cuts digits off instead of rounding
CUT = 2.0**-16  # the share of q that its last 7 bits can be
EMPTY = 0x7FFFFFFF  # the key of no candidate
NOWHERE = 0x7F800000  # the bits of infinity: so is the key of what is no candidate

_EMPTY = tl.constexpr(EMPTY)
_NOWHERE = tl.constexpr(NOWHERE)
_VACANT = tl.constexpr(EMPTY << 32)
_SPLIT = tl.constexpr(SPLIT)
_SAME = tl.constexpr(SAME_DIRECTION)
_TIE = tl.constexpr(1.0 + TIE_SHARE)
_CUT = tl.constexpr(1.0 + CUT)
_CLOSE = tl.constexpr(CLOSE)
_FLAT_SQUARE = tl.constexpr(FLAT_SQUARE)


class Parts(NamedTuple):
    """Points in two float16 parts, [N + COLUMNS, width], times a power of two; squared norms in float32."""

    high: Tensor
    low: Tensor
    squares: Tensor
    factor: Tensor  # [1]: what makes -2 ab of a product of the parts
    doubt: Tensor  # float64 [N]: how far a q of each point can be from the truth

    @property
    def width(self) -> int:
        return int(self.high.shape[1])


@triton.jit
def _split(points, scales, high, low, lost, second, n, dims, WIDTH: tl.constexpr, K: tl.constexpr, R: tl.constexpr):
    """Two float16 parts of each point, and the squared lengths of what they miss and of the second."""
    row = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    scale = tl.load(scales)
    real = row < n
    missed = tl.zeros([R], tl.float64)
    small = tl.zeros([R], tl.float64)
    for k0 in range(0, WIDTH, K):
        k = k0 + tl.arange(0, K)
        inside = real[:, None] & (k < dims)[None, :]
        x = tl.load(points + row[:, None] * dims + k[None, :], mask=inside, other=0.0) * scale
        one = x.to(tl.float32).to(tl.float16)
        rest = x - one.to(tl.float64)
        two = rest.to(tl.float32).to(tl.float16)
        rest -= two.to(tl.float64)
        at = row[:, None] * WIDTH + k[None, :]
        tl.store(high + at, one)
        tl.store(low + at, two)
        missed += tl.sum(rest * rest, 1)
        small += tl.sum(two.to(tl.float64) * two.to(tl.float64), 1)
    tl.store(lost + row, missed, mask=real)
    tl.store(second + row, small, mask=real)


def parts_of(points: Tensor, squares: Tensor, rotation_error: float, *, flat: bool) -> Parts:
    """Two float16 parts of float64 points, and what is lost by them.

    A product of two points z = h + l + r misses r_i z_j + (h_i + l_i) r_j + l_i l_j. The tensor cores add the 3 D terms
    of l h + h l + h h one by one, and each time cut off at most UNIT of what is added up by then: of |l||h| while the
    small terms are (where a point is added whole: else all three come step by step), then of |h||h|. The rest is
    rounding in float32.
    """
    n, dims = points.shape
    width = max(16, triton.next_power_of_2(dims)) if dims <= WHOLE else -(-dims // DEPTH) * DEPTH
    exponent = torch.frexp(points.abs().amax()).exponent.clamp(-40, 40)
    scale = torch.ldexp(torch.ones_like(squares[:1]), 13 - exponent)
    rows = n + COLUMNS
    height = 32
    high, low = (
        torch.empty((-(-rows // height) * height, width), dtype=torch.float16, device=points.device) for _ in range(2)
    )
    lost, second = torch.empty_like(squares), torch.empty_like(squares)
    _split[(triton.cdiv(rows, height),)](
        points, scale, high, low, lost, second, n, dims, WIDTH=width, K=min(width, DEPTH), R=height, num_warps=4
    )
    lost, second, length = lost.sqrt() / scale, second.sqrt() / scale, squares.sqrt()
    lost_most, second_most, longest = torch.stack([lost, second, length]).amax(1).unbind()
    taken, most = length + lost + second, longest + lost_most + second_most  # no less than any part of a point
    error = lost * longest + (length + lost) * lost_most + second * second_most
    if width <= WHOLE:
        error += (dims + 2) * UNIT * taken * most + (2 * dims + 2) * UNIT * (second * most + taken * second_most)
    else:
        error += (3 * dims + 2) * UNIT * taken * most
    size = (length + longest).square() + (FLAT_SQUARE if flat else 0.0)
    error = 2.0 * error + (2.0**-21 + rotation_error + TIE_SHARE) * size
    return Parts(high, low, padded(squares.to(torch.float32)), (-2.0 / scale.square()).to(torch.float32), error)


def padded(values: Tensor) -> Tensor:
    """One value for each place, and some behind the last: the last strip may reach there."""
    return torch.nn.functional.pad(values, (0, COLUMNS))


@triton.jit
def _offer(x, c0, held, FLIPPED: tl.constexpr):
    """Put the smallest keys of a tile into the lists of its rows, in place of the largest there."""
    worst = tl.max(held, 1)
    best = tl.min(x, 1)
    flip: tl.constexpr = 127 if FLIPPED else 0
    entry = (best.to(tl.int64) << 32) | (c0 + ((best & 127) ^ flip)).to(tl.int64)
    better = (entry < worst) & (best < _NOWHERE)
    while tl.max(better.to(tl.int32), 0) > 0:
        held = tl.where((held == worst[:, None]) & better[:, None], entry[:, None], held)
        x = tl.where(x == best[:, None], _EMPTY, x)
        worst = tl.max(held, 1)
        best = tl.min(x, 1)
        entry = (best.to(tl.int64) << 32) | (c0 + ((best & 127) ^ flip)).to(tl.int64)
        better = (entry < worst) & (best < _NOWHERE)
    return held


@triton.jit
def _propose(
    high, low, squares, flats, units, rows, banned, first, last, lows, highs, near_out, far_out, factors, count,
    WIDTH: tl.constexpr, WHOLE_WIDTH: tl.constexpr, K: tl.constexpr, LENGTH: tl.constexpr, FAR: tl.constexpr,
    R: tl.constexpr, C: tl.constexpr, BANNED: tl.constexpr, FLAT: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    index = block * R + tl.arange(0, R)
    me = tl.load(rows + index)
    real = me >= 0
    row = tl.where(real, me, 0).to(tl.int64)
    mine = tl.where(real, tl.load(squares + row), float("inf"))
    begin = tl.load(first + row, mask=real, other=2147483647)
    end = tl.load(last + row, mask=real, other=0)
    own_low, own_high = tl.min(begin, 0), tl.max(end, 0)
    column_low, column_high = tl.load(lows + block), tl.load(highs + block)
    factor = tl.load(factors)
    slot = tl.arange(0, LENGTH)
    vacant = tl.zeros([R, LENGTH], tl.int64) + (slot.to(tl.int64) + _VACANT)[None, :]
    own = vacant
    other = vacant
    far_slot = tl.arange(0, FAR)
    far = tl.zeros([R, FAR], tl.int64) + (far_slot.to(tl.int64) + _VACANT)[None, :]
    if FLAT:
        my_flat = tl.load(flats + row) != 0
    if BANNED:
        one = tl.load(banned + index)
        two = tl.load(banned + count + index)
    if WHOLE_WIDTH:
        whole = tl.arange(0, WIDTH)
        a_high = tl.load(high + row[:, None] * WIDTH + whole[None, :])
        a_low = tl.load(low + row[:, None] * WIDTH + whole[None, :])
    for c0 in range(column_low, column_high, C):
        within = tl.arange(0, C)
        columns = c0 + within
        product = tl.zeros([R, C], tl.float32)
        if WHOLE_WIDTH:
            at = columns.to(tl.int64)[None, :] * WIDTH + whole[:, None]
            b_high = tl.load(high + at)
            # The small terms first: what is cut off of them is small.
            product = tl.dot(a_low, b_high, product)
            product = tl.dot(a_high, tl.load(low + at), product)
            product = tl.dot(a_high, b_high, product)
        else:
            for k0 in range(0, WIDTH, K):
                step = k0 + tl.arange(0, K)
                left = row[:, None] * WIDTH + step[None, :]
                at = columns.to(tl.int64)[None, :] * WIDTH + step[:, None]
                a = tl.load(high + left)
                b = tl.load(high + at)
                product = tl.dot(a, b, product)
                product = tl.dot(tl.load(low + left), b, product)
                product = tl.dot(a, tl.load(low + at), product)
        theirs = tl.load(squares + columns)
        theirs = tl.where(columns < column_high, theirs, float("inf"))
        q = tl.maximum((mine[:, None] + theirs[None, :]) + factor * product, 0.0)
        if FLAT:
            their_flat = tl.load(flats + columns) != 0
            q = tl.where((my_flat[:, None] | their_flat[None, :]) & (q < float("inf")), _FLAT_SQUARE, q)
        x = (q.to(tl.int32, bitcast=True) & -128) | within[None, :]
        if BANNED:
            unit = tl.load(units + columns)[None, :]
            x = tl.where((unit == one[:, None]) | (unit == two[:, None]), _EMPTY, x)
        if (c0 >= own_high) | (c0 + C <= own_low):
            other = _offer(x, c0, other, False)
        else:
            inside = (columns[None, :] >= begin[:, None]) & (columns[None, :] < end[:, None])
            other = _offer(tl.where(inside, _EMPTY, x), c0, other, False)
            inside = inside & (columns[None, :] != me[:, None])
            own = _offer(tl.where(inside, x, _EMPTY), c0, own, False)
            if FAR > 1:
                x = tl.where(x < 128, x + 128, x)  # a key that can be told from none when it is turned round
                far = _offer(tl.where(inside & (x < _NOWHERE), _EMPTY - x, _EMPTY), c0, far, True)
    out = near_out + index.to(tl.int64)[:, None] * (2 * LENGTH) + slot[None, :]
    tl.store(out, own)
    tl.store(out + LENGTH, other)
    tl.store(far_out + index.to(tl.int64)[:, None] * FAR + far_slot[None, :], far)


class Lists(NamedTuple):
    """Candidates of some rows: key << 32 | place, in no order."""

    near: Tensor  # [rows, 2 L]: L of the own class, then L of the others
    far: Tensor  # [rows, F] of the own class


class Tuning(NamedTuple):
    """How a program of `propose` is shaped; no result depends on it."""

    rows: int = ROWS
    warps: int = 4
    stages: int = 1


def tuning(width: int, rows: int) -> Tuning:
    """What was fastest on an H200: long columns are read once for more rows, wide points in smaller steps ahead."""
    if width > WHOLE:
        return Tuning(ROWS, 4, 3)
    return Tuning(2 * ROWS, 8, 2) if rows >= MANY else Tuning(ROWS, 4, 1)


def propose(
    parts: Parts, rows: Tensor, lows: Tensor, highs: Tensor, first: Tensor, last: Tensor, length: int, far: int, *,
    flat: Tensor | None = None, units: Tensor | None = None, banned: Tensor | None = None, tuned: Tuning,
) -> Lists:  # fmt: skip
    """The candidate lists of `rows` (int32, whole blocks of `tuned.rows`, -1 for nobody).

    Columns `lows` to `highs` (one for each block) are the candidates of a block; `length` and `far` are powers of two,
    `far` 1 where the farthest are not wanted. `banned` [2, rows] are units whose points are no candidates of a row.
    """
    count, device = len(rows), rows.device
    near = torch.empty((count, 2 * length), dtype=torch.int64, device=device)
    farthest = torch.empty((count, far), dtype=torch.int64, device=device)
    nothing = rows
    _propose[(count // tuned.rows,)](
        parts.high, parts.low, parts.squares, nothing if flat is None else flat, nothing if units is None else units,
        rows, nothing if banned is None else banned, first, last, lows, highs, near, farthest,
        parts.factor, count,
        WIDTH=parts.width, WHOLE_WIDTH=parts.width <= WHOLE, K=DEPTH, LENGTH=length, FAR=far, R=tuned.rows, C=COLUMNS,
        BANNED=banned is not None, FLAT=flat is not None,
        num_warps=tuned.warps, num_stages=tuned.stages,
    )  # fmt: skip
    return Lists(near, farthest)


@triton.jit
def _pair_squares(raw, me, place, dims, whole, R: tl.constexpr, M: tl.constexpr):
    """q of each row and its candidates: eight interleaved sums, added as `pair_kernels.pair_square` adds them."""
    eight = tl.arange(0, 8)
    sums = tl.zeros([R, M, 8], tl.float64)
    for d in range(0, whole, 8):
        x = tl.load(raw + (me * dims + d)[:, None] + eight[None, :]).to(tl.float64)
        y = tl.load(raw + (place * dims + d)[:, :, None] + eight[None, None, :]).to(tl.float64)
        apart = x[:, None, :] - y
        sums += apart * apart
    even, odd = tl.split(tl.reshape(sums, [R, M, 4, 2]))
    even, odd = tl.split(tl.reshape(even + odd, [R, M, 2, 2]))
    even, odd = tl.split(even + odd)
    total = even + odd
    for d in range(whole, dims):
        x = tl.load(raw + me * dims + d).to(tl.float64)
        y = tl.load(raw + place * dims + d).to(tl.float64)
        apart = x[:, None] - y
        total += apart * apart
    return total


@triton.jit
def _decide(
    raw, flats, order, units, doubts, rows, near, far, places_out, distances_out, other_out, far_out, unit_out,
    second_out, open_out, certain_out, dims, whole, k,
    LENGTH: tl.constexpr, FAR: tl.constexpr, R: tl.constexpr, HALVED: tl.constexpr, FLAT: tl.constexpr,
    SECOND: tl.constexpr,
):  # fmt: skip
    index = (tl.program_id(0) * R + tl.arange(0, R)).to(tl.int64)
    me = tl.load(rows + index).to(tl.int64)
    real = me >= 0
    me = tl.where(real, me, 0)
    doubt = tl.load(doubts + me)
    column = tl.arange(0, 2 * LENGTH)
    is_other = (column >= LENGTH)[None, :]
    held = tl.load(near + index[:, None] * (2 * LENGTH) + column[None, :])
    key = (held >> 32).to(tl.int32)
    vacant = key >= _NOWHERE
    place = tl.where(vacant, me[:, None], held & 0xFFFFFFFF)
    q = _pair_squares(raw, me, place, dims, whole, R, 2 * LENGTH)
    if HALVED:
        value = tl.where(q > _SAME, 0.5 * q, 0.0)
        if FLAT:
            flat = (tl.load(flats + me) != 0)[:, None] | (tl.load(flats + place) != 0)
            value = tl.where(flat, 1.0, value)
            q = tl.where(flat, _FLAT_SQUARE, q)
    else:
        value = tl.sqrt(q)
    spread = value * _SPLIT
    rank = tl.where(vacant, float("inf"), spread - (spread - value))
    row = tl.load(order + place)
    needed = tl.zeros([R], tl.float64)
    for t in range(k):
        lowest = tl.min(rank, 1)
        first = tl.min(tl.where(rank == lowest[:, None], row, 9223372036854775807), 1)
        picked = (rank == lowest[:, None]) & (row == first[:, None])
        found = lowest < float("inf")
        chosen = tl.max(tl.where(picked, place, -1), 1)
        distance = tl.max(tl.where(picked, value, -1.0), 1)
        needed = tl.maximum(needed, tl.where(found, tl.max(tl.where(picked, q, 0.0), 1), 0.0))
        tl.store(places_out + me * k + t, tl.where(found, chosen, -1), mask=real)
        tl.store(distances_out + me * k + t, tl.where(found, distance, float("nan")), mask=real)
        rank = tl.where(picked, float("inf"), rank)
    # The nearest of the other classes, and what is the nearest without its unit.
    theirs = is_other & (vacant == 0)
    nearest = tl.min(tl.where(theirs, value, float("inf")), 1)
    reach = tl.min(tl.where(theirs, q, float("inf")), 1)
    none = nearest == float("inf")
    other_reach = tl.maximum(needed, tl.where(none, 0.0, reach))
    tl.store(other_out + me, tl.where(none, float("nan"), nearest), mask=real)
    other_full = tl.sum((is_other & vacant).to(tl.int32), 1) == 0
    if SECOND:
        their_unit = tl.load(units + place)
        its = tl.min(tl.where(theirs & (value == nearest[:, None]), place, 9223372036854775807), 1)
        unit = tl.max(tl.where(theirs & (place == its[:, None]), their_unit, -1), 1)
        left = theirs & (their_unit != unit[:, None])
        second = tl.min(tl.where(left, value, float("inf")), 1)
        second_reach = tl.min(tl.where(left, q, float("inf")), 1)
        alone = second == float("inf")
        tl.store(unit_out + me, tl.where(none, -1, unit).to(tl.int64), mask=real)
        tl.store(second_out + me, tl.where(alone, float("nan"), second), mask=real)
        tl.store(open_out + me, (alone & other_full & (none == 0)).to(tl.int8), mask=real)
        other_reach = tl.maximum(other_reach, tl.where(alone, 0.0, second_reach))
    # Nothing that is not listed has a q under the largest key of its list, less the doubt.
    at_least = (key & -128).to(tl.float32, bitcast=True).to(tl.float64)
    own_full = tl.sum(((is_other == 0) & vacant).to(tl.int32), 1) == 0
    own_floor = tl.max(tl.where(is_other | vacant, 0.0, at_least), 1) - doubt
    other_floor = tl.max(tl.where((is_other == 0) | vacant, 0.0, at_least), 1) - doubt
    certain = ((own_full == 0) | (own_floor > needed * _TIE)) & ((other_full == 0) | (other_floor > other_reach * _TIE))
    if FAR > 1:
        held = tl.load(far + index[:, None] * FAR + tl.arange(0, FAR)[None, :])
        key = _EMPTY - (held >> 32).to(tl.int32)
        vacant = held >= _VACANT
        place = tl.where(vacant, me[:, None], held & 0xFFFFFFFF)
        q = _pair_squares(raw, me, place, dims, whole, R, FAR)
        if HALVED:
            value = tl.where(q > _SAME, 0.5 * q, 0.0)
            if FLAT:
                flat = (tl.load(flats + me) != 0)[:, None] | (tl.load(flats + place) != 0)
                value = tl.where(flat, 1.0, value)
                q = tl.where(flat, _FLAT_SQUARE, q)
        else:
            value = tl.sqrt(q)
        farthest = tl.max(tl.where(vacant, -1.0, value), 1)
        tl.store(far_out + me, tl.where(farthest < 0.0, float("nan"), farthest), mask=real)
        at_most = (key & -128).to(tl.float32, bitcast=True).to(tl.float64) * _CUT
        full = tl.sum(vacant.to(tl.int32), 1) == 0
        ceiling = tl.min(tl.where(vacant, float("inf"), at_most), 1) + doubt
        certain = certain & ((full == 0) | (ceiling < tl.max(tl.where(vacant, 0.0, q), 1)))
    tl.store(certain_out + me, certain.to(tl.int8), mask=real)


def decide(
    lists: Lists, rows: Tensor, raw: Tensor, order: Tensor, doubts: Tensor, found: Any, *, halved: bool,
    flat: Tensor | None = None, units: Tensor | None = None,
) -> None:  # fmt: skip
    """The nearest and the extremes of `rows` from their lists, in float64, into `found` (`torch_card.Found`).

    Euclidean distances are those of `raw` as it is: what it was divided by is not known here.
    """
    count, length, far = len(rows), lists.near.shape[1] // 2, lists.far.shape[1]
    height = max(1, min(16, 256 // length))
    assert count % height == 0, "rows come in whole blocks"
    k, dims = found.places.shape[1], raw.shape[1]
    _decide[(count // height,)](
        raw, rows if flat is None else flat, order, rows if units is None else units, doubts, rows, *lists,
        found.places, found.distances, found.other, found.far, found.unit, found.second, found.open.view(torch.int8),
        found.certain.view(torch.int8), dims, dims - dims % 8, k,
        LENGTH=length, FAR=far, R=height, HALVED=halved, FLAT=flat is not None, SECOND=units is not None,
        num_warps=4, enable_fp_fusion=False,
    )  # fmt: skip


@triton.jit
def _root_sums(
    keys, rows, squares, raw, scales, starts, sums, count, dims, classes,
    R: tl.constexpr, M: tl.constexpr,
):  # fmt: skip
    """sums[r, c] = the distances of row r to the points of class c, from keys [N, rows]; see `root_sums`."""
    code = tl.program_id(0)
    index = tl.program_id(1) * R + tl.arange(0, R)
    inside = index < count
    me = tl.load(rows + index, mask=inside, other=0)
    mine = tl.load(squares + me)
    start, stop = tl.load(starts + code), tl.load(starts + code + 1)
    member = tl.arange(0, M)
    total = tl.zeros([R], tl.float64)
    for first in range(start, stop, M):
        place = first + member
        there = place < stop
        theirs = tl.load(squares + place, mask=there, other=0.0)
        both = place.to(tl.int64)[:, None] * count + index[None, :]
        q = tl.load(keys + both, mask=there[:, None] & inside[None, :], other=0.0) + mine[None, :]
        q = tl.maximum(q, 0.0)
        same = place[:, None] == me[None, :]
        close = (q < _CLOSE * (mine[None, :] + theirs[:, None])) & (same == 0) & there[:, None] & inside[None, :]
        # A root by two steps of Newton's from float32: a third of the work, and good to the last digits of a sum.
        inverse = tl.rsqrt(tl.maximum(q, 1e-37).to(tl.float32)).to(tl.float64)
        root = q * inverse
        root += 0.5 * inverse * (q - root * root)
        root += 0.5 * inverse * (q - root * root)
        if tl.max(tl.max(close.to(tl.int32), 1), 0) > 0:
            exact = tl.zeros([M, R], tl.float64)
            for d in range(0, dims):
                x = tl.load(raw + me * dims + d).to(tl.float64)
                y = tl.load(raw + place * dims + d, mask=there, other=0.0).to(tl.float64)
                apart = x[None, :] - y[:, None]
                exact += apart * apart
            root = tl.where(close, tl.sqrt(exact), root)
        total += tl.sum(tl.where(same | (there[:, None] == 0), 0.0, root), 0)
    tl.store(sums + index.to(tl.int64) * classes + code, total * tl.load(scales + me), mask=inside)


def root_sums(
    keys: Tensor, rows: Tensor, squares: Tensor, raw: Tensor, scale: Tensor, starts: Tensor, sums: Tensor
) -> None:
    """Sums of euclidean distances over classes into `sums` [rows, C], from float64 products `keys` [N, rows].

    What `kernels.distances_from_keys` makes of a tile, and `add_class_sums`; where the product has lost digits, the
    pair itself is asked.
    """
    count, classes = len(rows), len(starts) - 1
    height, members = 64, 16
    _root_sums[(classes, triton.cdiv(count, height))](
        keys, rows, squares, raw, scale, starts, sums, count, raw.shape[1], classes, R=height, M=members, num_warps=4
    )


@triton.jit
def _segment_sums(values, starts, sums, width, W: tl.constexpr, M: tl.constexpr):
    segment = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * W + tl.arange(0, W)
    inside = column < width
    start, stop = tl.load(starts + segment), tl.load(starts + segment + 1)
    total = tl.zeros([W], tl.float64)
    for first in range(start, stop, M):
        row = (first + tl.arange(0, M)).to(tl.int64)
        part = tl.load(
            values + row[:, None] * width + column[None, :], mask=(row < stop)[:, None] & inside[None, :], other=0.0
        )
        total += tl.sum(part, 0)
    tl.store(sums + segment * width + column, total, mask=inside)


def segment_sums(values: Tensor, starts: Tensor) -> Tensor:
    """[S, W] sums of the rows of `values` [N, W] from starts[s] to starts[s + 1]."""
    values = values.contiguous()
    width, segments = values.shape[1], len(starts) - 1
    sums = torch.empty((segments, width), dtype=torch.float64, device=values.device)
    columns = min(128, max(16, triton.next_power_of_2(width)))
    _segment_sums[(segments, triton.cdiv(width, columns))](
        values, starts, sums, width, W=columns, M=2048 // columns, num_warps=4
    )
    return sums


@triton.jit
def _summarise(
    sums, squares, class_squares, sizes, codes, at, classes, first_class, own_out, other_out, suspects_out,
    C: tl.constexpr, SUSPECTS: tl.constexpr, COLLAPSED: tl.constexpr,
):  # fmt: skip
    """Per row: mean distance to the own class, the lowest to another, and the sums a closed form cannot know."""
    row = tl.program_id(0).to(tl.int64)
    begin, count, first = tl.load(at + row), tl.load(classes + row), tl.load(first_class + row)
    own = tl.load(codes + row) - first
    mine = tl.load(squares + row)
    lowest = tl.full([C], float("inf"), tl.float64)
    my_sum = tl.zeros([C], tl.float64)
    found = tl.zeros([C], tl.int32)
    for start in range(0, count, C):
        code = start + tl.arange(0, C)
        inside = code < count
        total = tl.load(sums + begin + code, mask=inside, other=0.0)
        size = tl.load(sizes + first + code, mask=inside, other=1.0)
        if SUSPECTS:
            limit = mine + tl.load(class_squares + first + code, mask=inside, other=0.0)
            found += (inside & (total < COLLAPSED * size * limit)).to(tl.int32)
        total = tl.maximum(total, 0.0)
        lowest = tl.minimum(lowest, tl.where(inside & (code != own), total / size, float("inf")))
        my_sum += tl.where(inside & (code == own), total, 0.0)
    others = tl.load(sizes + first + own) - 1.0
    tl.store(own_out + row, tl.where(others > 0.0, tl.sum(my_sum, 0) / others, float("nan")))
    low = tl.min(lowest, 0)
    tl.store(other_out + row, tl.where(low < float("inf"), low, float("nan")))
    if SUSPECTS:
        tl.store(suspects_out + row, tl.sum(found, 0))


def summarise(
    sums: Tensor, squares: Tensor, class_squares: Tensor | None, sizes: Tensor, codes: Tensor, rows: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean distances of every place to its own class and to the nearest other, and how many sums are suspect.

    `rows` (`torch_sums.Rows`) says where the sums of each place lie. `class_squares` are the mean squared norms of the
    classes where sums are closed forms: see `kernels.mend_collapsed_sums`.
    """
    own, other = torch.empty_like(squares), torch.empty_like(squares)
    suspects = torch.zeros(len(squares), dtype=torch.int32, device=squares.device)
    _summarise[(len(squares),)](
        sums, squares, squares if class_squares is None else class_squares, sizes, codes, *rows, own, other, suspects,
        C=128, SUSPECTS=class_squares is not None, COLLAPSED=COLLAPSED, num_warps=1,
    )  # fmt: skip
    return own, other, suspects


@triton.jit
def _pair_terms(pairs, sizes, at, classes, first_class, out, rounding, C: tl.constexpr):
    """Per class: summed shares of its own mean distance, pairs closer together than it is wide, and all pairs."""
    code = tl.program_id(0).to(tl.int64)
    begin, count, first = tl.load(at + code), tl.load(classes + code), tl.load(first_class + code)
    own = code - first
    size = tl.load(sizes + code)
    intra = tl.load(pairs + begin + own) / (size * size - size)
    compared = tl.where(size > 1.0, count, 0)  # a class of one has no width
    overlap = tl.zeros([C], tl.float64)
    confused = tl.zeros([C], tl.float64)
    for start in range(0, count, C):
        other = start + tl.arange(0, C)
        inside = (other < compared) & (other != own)
        total = tl.load(pairs + begin + other, mask=inside, other=0.0)
        mean = total / (size * tl.load(sizes + first + other, mask=inside, other=1.0))
        both = intra + mean
        share = tl.where(both > 0.0, intra / both, 0.5)
        overlap += tl.where(inside, share, 0.0)
        confused += tl.where(inside & (mean < intra * (1.0 - rounding)), 1.0, 0.0)
    tl.store(out + code * 3, tl.sum(overlap, 0))
    tl.store(out + code * 3 + 1, tl.sum(confused, 0))
    tl.store(out + code * 3 + 2, tl.where(size > 1.0, (count - 1).to(tl.float64), 0.0))


def pair_terms(pairs: Tensor, sizes: Tensor, rows: Any, rounding: float) -> Tensor:
    """[C, 3]: what `separation.pair_shares` gives for each class, from sums over pairs of classes."""
    terms = torch.empty((len(sizes), 3), dtype=torch.float64, device=sizes.device)
    _pair_terms[(len(sizes),)](pairs, sizes, *rows, terms, rounding, C=128, num_warps=1)
    return terms


@triton.jit
def _ranks(vectors, out, dims, W: tl.constexpr, K: tl.constexpr, ORDINAL: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * W + tl.arange(0, W)
    inside = column < dims
    mine = tl.load(vectors + row * dims + column, mask=inside, other=0.0)
    rank = tl.zeros([W], tl.float64)
    for k0 in range(0, dims, K):
        k = k0 + tl.arange(0, K)
        theirs = tl.load(vectors + row * dims + k, mask=k < dims, other=float("inf"))
        there = (k < dims)[None, :]
        less = (theirs[None, :] < mine[:, None]) & there
        same = (theirs[None, :] == mine[:, None]) & there
        if ORDINAL:
            rank += tl.sum((less | (same & (k[None, :] < column[:, None]))).to(tl.int32), 1).to(tl.float64)
        else:
            rank += 0.5 * tl.sum(2 * less.to(tl.int32) + same.to(tl.int32), 1).to(tl.float64)
    if ORDINAL == 0:
        rank -= 0.5
    tl.store(out + row * dims + column, rank, mask=inside)


def ranks(vectors: Tensor, *, ordinal: bool) -> Tensor:
    """Ranks 0 to D - 1 inside each row; equal values share their mean rank, or (`ordinal`) are ranked by position."""
    n, dims = vectors.shape
    out = torch.empty((n, dims), dtype=torch.float64, device=vectors.device)
    width = min(128, max(16, triton.next_power_of_2(dims)))
    _ranks[(n, triton.cdiv(dims, width))](vectors, out, dims, W=width, K=32, ORDINAL=ordinal, num_warps=2)
    return out
