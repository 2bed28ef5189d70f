"""Sums of distances to classes on a torch device, and what is made of them there.

For all sets side by side: the sums [N_s, C_s] of set s lie in one array behind those of the set before. Where distances
are q / 2 sums have a closed form, one product with C_s columns; sums of square roots come from blocks of products. What
closed forms cannot know (collapsed classes, vectors without direction) is counted, and put right if asked.

Nobody imports this module unless a device other than the CPU is asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from earmark.geometry import kernels
from earmark.geometry.torch_card import Sets, fused_kernels
from earmark.geometry.torch_pairs import Points, Tensor, blocks, upload
from earmark.geometry.torch_spaces import segment_sums

BLOCK_BYTES = 1 << 29  # of one array of a block in flight; a smaller device halves it
WIDTH_UNIT = 8  # float64 products of other widths take half as long again
PAIRS = 1 << 22  # distances computed one by one at a time


class Rows(NamedTuple):
    """Where the sums of each place lie in the array of all: the first, how many, and the number of the first class."""

    at: Tensor
    classes: Tensor
    first: Tensor


class Sums(NamedTuple):
    """Mean distances of every place, sums over pairs of classes, and how many sums a closed form could not know."""

    sums: Tensor  # the sums [N_s, C_s] of each set, one behind the other
    own_mean: Tensor
    other_mean: Tensor
    pairs: Tensor  # the sums [C_s, C_s] of each set, one behind the other
    suspects: Tensor


def offsets(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)])


def class_sums(points: Points, sets: Sets, *, careful: bool = False) -> Sums:
    """The mean distance of every place to its own class, the lowest to another, and sums over pairs of classes.

    `careful` puts right what closed forms cannot know; else it is counted.
    """
    device = sets.device
    shapes = [(layout.n, layout.classes) for layout in sets.layouts]
    begin = offsets(np.array([n * c for n, c in shapes]))
    begin_pairs = offsets(np.array([c * c for _, c in shapes]))
    sums = torch.empty(int(begin[-1]), dtype=torch.float64, device=device)
    pairs = torch.empty(int(begin_pairs[-1]), dtype=torch.float64, device=device)
    operand = left_of_class = class_squares = torch.zeros((sets.classes, 0), device=device)
    if points.halved:
        operand, left_of_class, class_squares = _closed_form(points, sets)
    suspects = torch.zeros((), dtype=torch.int64, device=device)
    for number, (n, c) in enumerate(shapes):
        mine = slice(int(sets.bounds[number]), int(sets.bounds[number + 1]))
        classes = slice(int(sets.class_bounds[number]), int(sets.class_bounds[number + 1]))
        own = sums[begin[number] : begin[number + 1]].view(n, c)
        both = pairs[begin_pairs[number] : begin_pairs[number + 1]].view(c, c)
        starts = sets.starts[classes.start : classes.stop + 1] - mine.start
        if points.halved:
            squares = points.squares[mine, None]
            left = torch.cat([points.points[mine], squares, torch.ones_like(squares)], 1)
            torch.mm(left, operand[classes].T, out=own)
            if careful:
                _put_right(own.clamp_(min=0.0), points, sets, mine, classes, class_squares[classes])
                both.copy_(segment_sums(own, starts))
            else:
                torch.mm(left_of_class[classes], operand[classes].T, out=both)
        else:
            _root_sums(points, sets, mine, starts, own)
            both.copy_(segment_sums(own, starts))
    fused = fused_kernels(device)
    if fused is not None:
        own_mean, other_mean, found = fused.summarise(
            sums,
            points.squares,
            class_squares if points.halved and not careful else None,
            sets.sizes,
            sets.codes,
            rows_of(sets),
        )
        return Sums(sums, own_mean, other_mean, pairs, found.sum())
    own_mean, other_mean = (torch.empty(sets.n, dtype=torch.float64, device=device) for _ in range(2))
    for number, (n, c) in enumerate(shapes):
        mine = slice(int(sets.bounds[number]), int(sets.bounds[number + 1]))
        classes = slice(int(sets.class_bounds[number]), int(sets.class_bounds[number + 1]))
        own = sums[begin[number] : begin[number + 1]].view(n, c)
        if points.halved and not careful:
            suspects += _suspects(own, points, sets, mine, classes, class_squares[classes]).sum()
        own.clamp_(min=0.0)
        codes, sizes = (sets.codes[mine] - classes.start)[:, None], sets.sizes[classes]
        count = sizes[codes[:, 0]] - 1.0
        own_mean[mine] = torch.where(count > 0, own.gather(1, codes)[:, 0] / count, torch.nan)
        lowest = (own / sizes).scatter_(1, codes, torch.inf).amin(1)
        other_mean[mine] = torch.where(lowest < torch.inf, lowest, torch.nan)
    return Sums(sums, own_mean, other_mean, pairs, suspects)


def rows_of(sets: Sets) -> Rows:
    """Where the sums of each place lie."""
    if sets.sum_rows is None:
        parts = []
        begin, first = 0, 0
        for layout in sets.layouts:
            n, c = layout.n, layout.classes
            parts.append((begin + c * np.arange(n), np.full(n, c), np.full(n, first)))
            begin, first = begin + n * c, first + c
        sets.sum_rows = Rows(*(upload(np.concatenate(part), sets.device) for part in zip(*parts, strict=True)))
    rows: Rows = sets.sum_rows
    return rows


def pair_terms(pairs: Tensor, sets: Sets, rounding: float) -> Tensor:
    """[C, 3]: of each class against the others of its set, what `separation.pair_shares` gives."""
    if sets.pair_rows is None:
        parts = []
        begin, first = 0, 0
        for layout in sets.layouts:
            c = layout.classes
            parts.append((begin + c * np.arange(c), np.full(c, c), np.full(c, first)))
            begin, first = begin + c * c, first + c
        sets.pair_rows = Rows(*(upload(np.concatenate(part), sets.device) for part in zip(*parts, strict=True)))
    fused = fused_kernels(sets.device)
    if fused is not None:
        return fused.pair_terms(pairs, sets.sizes, sets.pair_rows, rounding)
    terms = []
    begin = 0
    for number, layout in enumerate(sets.layouts):
        c = layout.classes
        sizes = sets.sizes[sets.class_bounds[number] : sets.class_bounds[number + 1]]
        means = pairs[begin : begin + c * c].view(c, c) / (sizes[:, None] * sizes)
        intra = means.diagonal()[:, None] * (sizes / (sizes - 1.0))[:, None]
        measured = (sizes > 1.0)[:, None] & ~torch.eye(c, dtype=torch.bool, device=sets.device)
        both = intra + means
        share = torch.where(both > 0.0, intra / both, 0.5)
        confused = means < intra * (1.0 - rounding)
        terms.append(
            torch.stack([torch.where(measured, share, 0.0).sum(1), (confused & measured).sum(1), measured.sum(1)], 1)
        )
        begin += c * c
    return torch.cat(terms)


def _closed_form(points: Points, sets: Sets) -> tuple[Tensor, Tensor, Tensor]:
    """Right operand of closed-form sums, left operand summed over classes, mean squared norm: all by class."""
    flat = points.flat.to(torch.float64)
    stacked = torch.cat([points.points, points.squares[:, None], flat[:, None]], 1)
    totals = segment_sums(stacked, sets.starts)
    vectors, squares, no_direction = totals[:, :-2], totals[:, -2:-1], totals[:, -1:]
    sizes = sets.sizes[:, None]
    directed = sizes - no_direction
    operand = torch.cat([-vectors, directed / 2, squares / 2 + no_direction], 1)
    return operand, torch.cat([vectors, squares, sizes], 1), (squares / directed.clamp(min=1.0))[:, 0]


def _suspects(
    sums: Tensor, points: Points, sets: Sets, mine: slice, classes: slice, class_squares: Tensor
) -> Tensor:  # fmt: skip
    """Which closed-form sums cancellation may have eaten: see `kernels.mend_collapsed_sums`."""
    limit = points.squares[mine, None] + class_squares
    return (sums < kernels.COLLAPSED * sets.sizes[classes] * limit) & ~points.flat[mine, None]


def _put_right(
    sums: Tensor, points: Points, sets: Sets, mine: slice, classes: slice, class_squares: Tensor
) -> None:  # fmt: skip
    """Recompute from pairs what a closed form cannot know, in place."""
    rows, codes = _suspects(sums, points, sets, mine, classes, class_squares).nonzero(as_tuple=True)
    sizes = sets.sizes[classes].to(torch.int64)
    step = max(1, PAIRS // max(1, int(sizes.max())))
    for start in range(0, len(rows), step):
        r, c = rows[start : start + step], codes[start : start + step]
        lengths = sizes[c]
        a = torch.repeat_interleave(r + mine.start, lengths)
        within = torch.arange(len(a), device=sets.device) - torch.repeat_interleave(
            lengths.cumsum(0) - lengths, lengths
        )
        b = torch.repeat_interleave(sets.starts[classes.start + c], lengths) + within
        found = torch.where(a == b, 0.0, points.distances_of(points.exact(a, b), a, b))
        sums[r, c] = torch.segment_reduce(found, "sum", lengths=lengths)
    flat = points.flat[mine].nonzero()[:, 0]
    sums[flat] = sets.sizes[classes]
    sums[flat, sets.codes[mine][flat] - classes.start] -= 1.0


def _root_sums(points: Points, sets: Sets, mine: slice, starts: Tensor, sums: Tensor) -> None:
    """Sums of euclidean distances of one set, a block of rows at a time."""
    own, squares, fused = points.points[mine], points.squares[mine], fused_kernels(sets.device)
    n, dims = own.shape
    pad = -(dims + 1) % WIDTH_UNIT
    right = torch.nn.functional.pad(torch.cat([own, squares[:, None]], 1), (0, pad))
    left = torch.nn.functional.pad(torch.cat([-2.0 * own, torch.ones_like(squares)[:, None]], 1), (0, pad))

    def work(rows: Tensor) -> None:
        part = slice(int(rows[0]), int(rows[-1]) + 1)
        if fused is not None:
            keys = right @ left[part].T
            fused.root_sums(
                keys, rows_on[part], squares, points.raw[mine], points.scale[mine], starts, sums[part]
            )  # fmt: skip
            return
        tile = left[part] @ right.T
        points.distances_from_keys(tile, rows_on[part] + mine.start, mine.start)
        sums[part] = torch.segment_reduce(tile.T.contiguous(), "sum", lengths=starts.diff(), axis=0).T

    rows_on = torch.arange(n, device=sets.device)
    for _ in blocks(np.arange(n), BLOCK_BYTES // (8 * max(1, n)), 1, sets.device, work):
        pass
