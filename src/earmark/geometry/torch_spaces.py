"""Vectors that lie on a torch device, made ready for one distance there: what `spaces.prepare` does on the CPU.

The same formulas in float64, one set beside the other; last digits may differ from the CPU's, whose sums run in another
order. Nobody imports this module unless a device other than the CPU is asked for.
"""

from __future__ import annotations

from typing import Any

import torch

from earmark.errors import UsageError
from earmark.geometry import kernels
from earmark.geometry.spaces import DISTANCES, Ties
from earmark.geometry.torch_card import Sets, fused_kernels
from earmark.geometry.torch_pairs import Points, Tensor

RANK_BYTES = 1 << 28  # of comparisons at once


def prepare(vectors: Tensor, distance: str, sets: Sets, *, ties: Ties = "average", any_flat: bool = False) -> Points:
    """Points of `vectors` [N, D], the sets one behind the other and each in the order of its layout.

    `any_flat` says whether to reckon with vectors without direction; where they were not, `Points.flat` shows them, and
    the points have to be prepared again.
    """
    if distance not in DISTANCES:
        raise UsageError(f"Unknown distance {distance!r}: choose from {', '.join(DISTANCES)}.")
    points = _ranks(vectors, ties) if distance == "spearman" else vectors.to(torch.float64)
    if distance == "euclidean":
        flat = torch.zeros(sets.n, dtype=torch.bool, device=sets.device)
        centred = points - _means(points, flat, sets)[sets.set_of]
        peaks = _largest(centred.abs().amax(1), sets) * points.shape[1] ** 0.5
        scale = torch.ldexp(torch.ones_like(peaks), _exponent(peaks))[sets.set_of]
        centred /= scale[:, None]
        squares = torch.linalg.vecdot(centred, centred)
        return Points(centred, squares, points / scale[:, None], flat, scale, halved=False, any_flat=False)
    peaks = points.abs().amax(1)
    flat = peaks == 0.0
    points = points / torch.where(flat, 1.0, peaks)[:, None]
    lengths = torch.linalg.vecdot(points, points).sqrt()
    points /= torch.where(flat, 1.0, lengths)[:, None]
    points -= _means(points, flat, sets)[sets.set_of]
    if any_flat:
        points[flat] = 0.0
    squares = torch.linalg.vecdot(points, points)
    # One direction and its rounding, x, 3x, 1.1x, is one point.
    spread = (_largest(squares, sets) >= kernels.SAME_DIRECTION).to(torch.float64)[sets.set_of]
    points *= spread[:, None]
    squares *= spread
    return Points(points, squares, points, flat, torch.ones_like(squares), halved=True, any_flat=any_flat)


def segment_sums(values: Tensor, starts: Tensor) -> Tensor:
    """[S, W] sums of the rows of `values` [N, W] from starts[s] to starts[s + 1], in a fixed order."""
    fused = fused_kernels(values.device)
    if fused is not None:
        return fused.segment_sums(values, starts)
    return torch.segment_reduce(values, "sum", lengths=starts.diff(), axis=0)


def _means(points: Tensor, flat: Tensor, sets: Sets) -> Tensor:
    """The mean of the points of each set that have a direction; 0 where none has."""
    counted = torch.cat([points, (~flat).to(torch.float64)[:, None]], 1)
    totals = segment_sums(segment_sums(counted, sets.starts), sets.class_starts)
    return totals[:, :-1] / totals[:, -1:].clamp(min=1.0)


def _largest(values: Tensor, sets: Sets) -> Tensor:
    """The largest value of each set."""
    return torch.zeros(len(sets.layouts), dtype=values.dtype, device=sets.device).scatter_reduce_(
        0, sets.set_of, values, "amax"
    )


def _exponent(sizes: Tensor) -> Tensor:
    """Of the power of two that is no less than each size; 0 where that is 0."""
    mantissa, exponent = torch.frexp(sizes)
    return torch.where(sizes > 0.0, exponent - (mantissa == 0.5).to(exponent.dtype), 0).clamp(-1000, 1000)


def _ranks(vectors: Tensor, ties: Any) -> Tensor:
    """Centred ranks of each row; a constant row becomes exactly zero."""
    if ties not in ("average", "ordinal"):
        raise UsageError(f"Unknown way with ties {ties!r}: choose average or ordinal.")
    n, dims = vectors.shape
    fused = fused_kernels(vectors.device)
    if fused is not None:
        ranks = fused.ranks(vectors.contiguous(), ordinal=ties == "ordinal")
    else:
        ranks = torch.empty((n, dims), dtype=torch.float64, device=vectors.device)
        step = max(1, RANK_BYTES // (dims * dims))
        before = torch.ones(dims, dims, dtype=torch.bool, device=vectors.device).tril(-1)
        for start in range(0, n, step):
            mine, theirs = vectors[start : start + step, :, None], vectors[start : start + step, None, :]
            same = mine == theirs
            equal = (same & before).sum(2) if ties == "ordinal" else (same.sum(2) - 1) * 0.5
            ranks[start : start + step] = (theirs < mine).sum(2) + equal
    ranks -= (dims - 1) / 2
    if ties == "ordinal":
        ranks = torch.where((vectors == vectors[:, :1]).all(1)[:, None], 0.0, ranks)
    return ranks
