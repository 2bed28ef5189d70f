"""Distances as "prepare the vectors once, then one matrix product and an epilogue".

Every space turns its vectors into points whose *squared Euclidean distance* q carries the distance:

    cosine      z = x / |x|                    d = 1 - cos = q / 2
    spearman    z = centred ranks / norm       d = 1 - rho = q / 2
    euclidean   z = x                          d = sqrt(q)

and then centres them (subtracts the mean point), which leaves every q as it was. Centring is what keeps
float32 honest: an offset of a thousand times the spread costs no digits, for cosine as for euclidean.

Points with more than twice as many dimensions as there are points are rotated into as many dimensions as there
are points (`_compact`): no distance changes, and every product afterwards is that much shorter.

A vector with no direction (zero under cosine, constant under spearman) is *flat*: its similarity to anything
is 0, its distance 1. Flat vectors are counted and reported, never dropped in silence.

Everything that sweeps pairs asks a space for tiles of keys (`tile`), so a space may also hold distances that were
given: see `given.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError
from earmark.geometry import kernels, pair_kernels
from earmark.workers import Workers

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ties = Literal["average", "ordinal"]

DISTANCES = ("cosine", "euclidean", "spearman")
FLAT_SQUARE = 2.0  # the q of a pair with a flat member: d = q / 2 = 1
RANK_ROWS = 64
GATHERED_ROWS = 4096
DEPTH = 256  # dimensions summed in one product: long vectors are summed in strips, which bounds the rounding error
GRAM_ROWS = 256
CLOSEST = 1e-150  # differences under this share of the scale have no square in float64
JITTERS = (1e-12, 1e-11, 1e-10)  # added to the diagonal of the Gram matrix, as a share of its mean
FELT = 1e-9  # the most a jitter may be of the smallest squared norm


@dataclass(frozen=True)
class Space:
    """Vectors made ready for one distance, in the row order they were given.

    `points` are the centred float64 points, `squares` their squared norms, `raw` the rows (uncompacted) from which
    the distance of a single pair is decided, `flat` the rows without direction, `halved` the epilogue
    (True: d = q / 2, False: d = sqrt(q)). Points are divided by `scale`, a power of two (so no digit is
    lost) that brings the farthest to length about 1: values of any size fit float32.
    """

    distance: str
    points: Floats
    squares: Floats
    raw: Array
    flat: NDArray[np.bool_]
    halved: bool
    scale: float
    rotation_error: float = 0.0
    centre: Floats | None = None  # what was subtracted, where it is shared with another space (`prepare_pair`)

    @property
    def n(self) -> int:
        return int(self.points.shape[0])

    @property
    def form(self) -> int:
        """What makes a distance of a pair, for the kernels."""
        return pair_kernels.HALF if self.halved else pair_kernels.ROOT

    @property
    def doubt(self) -> float:
        """The share of a key by which it may lie above the needed one and still have to be decided."""
        return 0.0

    @property
    def widest(self) -> float:
        """A distance that no pair exceeds."""
        return float(2.0 * np.sqrt(self.squares.max(initial=0.0)) * self.scale)

    @cached_property
    def _lengths(self) -> Floats:
        return np.sqrt(self.squares)

    def reaches(self, rows: NDArray[np.int64]) -> Floats:
        """No point is farther than this from each of `rows`."""
        reach = self._lengths[rows] + self._lengths.max(initial=0.0)
        reach = reach**2 / 2 if self.halved else reach * self.scale
        if self.flat.any():
            reach = np.maximum(reach, 1.0)
        return np.asarray(reach * (1.0 + 1e-9))

    def in_order(self, order: NDArray[np.int64]) -> Space:
        """The same points in another order."""
        points = self.points[order]
        raw = points if self.raw is self.points else self.raw[order]
        return replace(self, points=points, squares=self.squares[order], raw=raw, flat=self.flat[order])

    def operands(self, dtype: type[np.floating[Any]], rows: Array | slice) -> Array:
        """Left operand of the product: with `columns`, row @ column.T = q - |z_row|^2."""
        z, squares = self.points[rows], self.squares[rows]
        left = np.empty((z.shape[0], self._width()), dtype)
        left[:, : z.shape[1]] = -2.0 * z
        left[:, z.shape[1]] = 1.0
        if self._any_flat:
            left[:, -1] = FLAT_SQUARE - squares
            left[self.flat[rows]] = 0.0  # a flat row is equally far from everything
        return left

    def columns(
        self, dtype: type[np.floating[Any]], memory: int | None = None, workers: Workers | None = None
    ) -> Array:
        """Right operand of the product, one row per point.

        Where it would take more than a quarter of `memory` bytes it is made strip by strip, each time one is asked for:
        what stands for it gives the same strips.
        """
        if memory is not None and np.dtype(dtype).itemsize * self.n * self._width() > memory // 4:
            return cast(Array, Strips(self, dtype))
        right = np.empty((self.n, self._width()), dtype)
        places = range(0, self.n, GATHERED_ROWS)
        fill = lambda c0: self.strip(dtype, c0, min(c0 + GATHERED_ROWS, self.n), right)  # noqa: E731
        for _ in map(fill, places) if workers is None else workers.map(fill, places):
            pass
        return right

    def strip(self, dtype: type[np.floating[Any]], c0: int, c1: int, operand: Array | None = None) -> Array:
        """The points c0 to c1 of the right operand, in their place of the whole where it is given."""
        right = np.empty((c1 - c0, self._width()), dtype) if operand is None else operand[c0:c1]
        dims, flat = self.points.shape[1], self.flat[c0:c1]
        right[:, :dims] = self.points[c0:c1]
        right[:, dims] = self.squares[c0:c1]
        if self._any_flat:
            right[:, -1] = 0.0
            right[flat] = 0.0
            right[flat, -1] = 1.0
        return right

    def tile(self, left: Array, columns: Array, c0: int, c1: int, out: Array) -> Array:
        """The keys of some rows with the points c0 to c1, in `out`; `left` and `columns` are the operands of both."""
        return product(left, columns[c0:c1], out)

    def release(self, mapped: int = 0, *, whole: bool = True) -> None:
        """Let go of what was read from a file, where there is one; see `GivenSpace.release`."""

    def error_bound(self, dtype: type[np.floating[Any]]) -> Floats:
        """How far `product` can be from the true q - |z|^2, per row: the textbook bound n*u*|a||b|.

        It holds for any order of summation inside a strip of DEPTH dimensions, with or without fused
        multiply-add, so a margin of twice this bound is a proof that the order of two keys is right, whatever
        BLAS did. It includes the width of a tie.
        """
        unit = float(np.finfo(dtype).eps) / 2
        largest = float(self.squares.max(initial=0.0)) ** 0.5
        scale = (np.sqrt(self.squares) + largest) ** 2
        if self.flat.any():
            scale = scale + FLAT_SQUARE
        width = self._width()
        terms = min(width, DEPTH) + -(-width // DEPTH) + 8
        return np.asarray((terms * unit + self.rotation_error + kernels.TIE_SHARE) * scale, np.float64)

    @cached_property
    def _any_flat(self) -> bool:
        return bool(self.flat.any())

    def _width(self) -> int:
        return int(self.points.shape[1]) + 1 + int(self._any_flat)


class Strips:
    """Stands for the right operand of a product where there is no room for it: a strip is made when it is taken."""

    def __init__(self, space: Space, dtype: type[np.floating[Any]]) -> None:
        self.space, self.dtype = space, dtype

    def __len__(self) -> int:
        return self.space.n

    def __getitem__(self, columns: slice) -> Array:
        c0, c1, _ = columns.indices(len(self))
        return self.space.strip(self.dtype, c0, c1)


def prepare(
    vectors: Array,
    distance: str,
    *,
    order: NDArray[np.int64] | None = None,
    ties: Ties = "average",
    threads: int = 1,
) -> Space:
    """Make `vectors` [N, D] ready for `distance`; `order` rearranges the rows (a permutation or a subset).

    `ties` matters to spearman alone: "average" gives tied values their mean rank (the textbook coefficient),
    "ordinal" ranks them by position, which some published numbers rest on.
    """
    if distance not in DISTANCES:
        raise UsageError(f"Unknown distance {distance!r}: choose from {', '.join(DISTANCES)}.")
    if distance == "euclidean":
        picked = vectors if order is None else vectors[order]
        points = _gathered(vectors, order)
        return _centred(distance, points, picked, np.zeros(len(points), bool), order, threads, halved=False)
    points = _gathered(vectors, order) if distance == "cosine" else _ranks(vectors, ties, threads, order)
    flat = _normalise(points, threads)
    return _centred(distance, points, None, flat, order, threads, halved=True)


def _gathered(vectors: Array, order: NDArray[np.int64] | None) -> Floats:
    """The rows in order as float64, without a copy of them all in between."""
    if order is None:
        return np.asarray(vectors.astype(np.float64))
    points = np.empty((len(order), vectors.shape[1]))
    for start in range(0, len(order), GATHERED_ROWS):
        points[start : start + GATHERED_ROWS] = vectors[order[start : start + GATHERED_ROWS]]
    return points


def prepare_pair(
    first: Array, second: Array, distance: str, *, ties: Ties = "average", threads: int = 1
) -> tuple[Space, Space]:
    """Make two sets of vectors ready for distances *between* them: one centre and one scale for both.

    The centre is the mean of `first` alone, so no digit of a distance between a row of `first` and a row of `second`
    depends on the other rows of `second`. Either space may also be used by itself.
    """
    if distance not in DISTANCES:
        raise UsageError(f"Unknown distance {distance!r}: choose from {', '.join(DISTANCES)}.")
    if first.shape[1] != second.shape[1]:
        raise InputError(
            f"The two sets have vectors of different lengths, {first.shape[1]} and {second.shape[1]}: "
            "use the same features for both."
        )
    halved = distance != "euclidean"
    points: list[Floats] = []
    flats: list[NDArray[np.bool_]] = []
    for vectors in (first, second):
        ranked = _ranks(vectors, ties, threads) if distance == "spearman" else vectors.astype(np.float64)
        points.append(ranked)
        flats.append(_normalise(ranked, threads) if halved else np.zeros(len(ranked), bool))
    with np.errstate(over="ignore", invalid="ignore"):
        directed = ~flats[0]
        centre = _mean(points[0], directed, None) if directed.any() else np.zeros(first.shape[1])
        for own, flat in zip(points, flats, strict=True):
            own -= centre
            own[flat] = 0.0
        scale = 1.0 if halved else max(_power_of_two(own) for own in points)
        squares = []
        for own in points:
            own /= scale
            squares.append(np.einsum("ij,ij->i", own, own))
    if not all(np.isfinite(values).all() for values in squares):
        raise InputError("The vectors' values are too large for float64 distances: rescale them first.")
    if not halved:
        _refuse_underflow((first, second), scale)
    if halved and max(float(values.max(initial=0.0)) for values in squares) < kernels.SAME_DIRECTION:
        for own, values in zip(points, squares, strict=True):
            own[:], values[:] = 0.0, 0.0
    raws = points if halved else [np.asarray(v, np.result_type(first, second)) for v in (first, second)]
    one, other = (
        Space(distance, points[i], squares[i], raws[i], flats[i], halved, scale, centre=centre) for i in (0, 1)
    )
    return one, other


def _refuse_underflow(sets: Sequence[Array], scale: float) -> None:
    """Refuse points so close, next to the farthest one, that the square of their distance would be 0.

    Rows are compared with the next ones: where one point is that far out, all the others are that close.
    """
    for vectors in sets:
        if vectors.dtype.itemsize < 8:
            continue  # the ends of float32 are not so far apart
        for start in range(0, len(vectors) - 1, RANK_ROWS):
            part = np.asarray(vectors[start : start + RANK_ROWS + 1], np.float64)
            gaps = np.abs(part[1:] - part[:-1]).max(axis=1, initial=0.0)
            if ((gaps > 0.0) & (gaps < CLOSEST * scale)).any():
                raise InputError(
                    f"Some vectors differ by less than {CLOSEST:g} of the largest value, too little for float64 "
                    "distances: leave out the extreme vectors or rescale them."
                )


def mean_and_spread(points: Array) -> tuple[Floats, Floats]:
    """Mean and population standard deviation of every coordinate; 1 for the deviation of one that is constant.

    The mean of n copies of 0.1 is not quite 0.1: what rounding leaves of a deviation is no spread.
    """
    mean, spread = points.mean(axis=0, dtype=np.float64), points.std(axis=0, dtype=np.float64)
    rounding = 10.0 * np.finfo(np.float64).eps * np.abs(mean) * np.sqrt(len(points))
    constant = (spread <= rounding) | (points == points[:1]).all(axis=0)
    return mean, np.where(constant, 1.0, spread)


def _centred(
    distance: str,
    points: Floats,
    raw: Array | None,
    flat: NDArray[np.bool_],
    order: NDArray[np.int64] | None,
    threads: int,
    *,
    halved: bool,
) -> Space:
    keep = ~flat
    with np.errstate(over="ignore", invalid="ignore"):
        if keep.any():
            points -= _mean(points, keep, order)
        points[flat] = 0.0
        scale = _power_of_two(points) if raw is not None else 1.0
        points /= scale
        squares = np.einsum("ij,ij->i", points, points)
    if not np.isfinite(squares).all():
        raise InputError("The vectors' values are too large for float64 distances: rescale them first.")
    if raw is not None:
        _refuse_underflow((raw,), scale)
    if halved and float(squares.max(initial=0.0)) < kernels.SAME_DIRECTION:
        points[:], squares[:] = 0.0, 0.0  # one direction and its rounding: x, 3x, 1.1x
    raw = points if raw is None else raw
    error = 0.0
    # Few giants among the points: the others are close pairs, each computed from its rows whatever is done here.
    if points.shape[1] > 2 * len(points) and squares.mean() <= 100 * np.median(squares):
        points, error = _compact(points, float(squares[keep].min(initial=np.inf)), threads)
        squares = np.einsum("ij,ij->i", points, points)
    return Space(distance, points, squares, raw, flat, halved, scale, error)


def _compact(points: Floats, least: float, threads: int) -> tuple[Floats, float]:
    """The same points in N dimensions instead of D: rows of the Cholesky factor of their Gram matrix.

    The Gram matrix [N, N] is smaller than the points themselves. A jitter on its diagonal makes up for lost rank;
    it lengthens every q by the same 2e-12 of the mean squared norm. A q that is small beside the norms of its points is
    computed from the rows themselves, so what can be felt is a jitter that is no longer small beside a norm: points
    near the centre of the others, whose squared norms begin at `least`. Returns the points and the share; unchanged
    points where the jitter would be felt, or when rounding defeats the factorisation.
    """
    from scipy.linalg import LinAlgError, cholesky

    n = len(points)
    mean = float(np.einsum("ij,ij->", points, points)) / n
    if mean == 0.0:
        return points[:, :1].copy(), 0.0
    if JITTERS[0] * mean > FELT * least:
        return points, 0.0
    gram = np.empty((n, n))

    def work(rows: slice) -> None:
        gram[rows, : rows.stop] = points[rows] @ points[: rows.stop].T

    blocks = [slice(start, min(start + GRAM_ROWS, n)) for start in range(0, n, GRAM_ROWS)]
    with Workers(threads) as workers:
        for _ in workers.map(work, blocks):
            pass
        diagonal = np.arange(n)
        before = gram[diagonal, diagonal].copy()
        for jitter in JITTERS:
            if jitter * mean > FELT * least:
                break
            gram[diagonal, diagonal] = before + jitter * mean
            try:
                return cholesky(gram, lower=True, check_finite=False), 4 * jitter
            except LinAlgError:
                continue
    return points, 0.0


def product(left: Array, right: Array, out: Array) -> Array:
    """left @ right.T into `out`, DEPTH dimensions at a time, so that rounding errors cannot pile up."""
    width = left.shape[1]
    np.matmul(left[:, :DEPTH], right[:, :DEPTH].T, out=out)
    for start in range(DEPTH, width, DEPTH):
        out += left[:, start : start + DEPTH] @ right[:, start : start + DEPTH].T
    return out


def _mean(points: Floats, keep: NDArray[np.bool_], order: NDArray[np.int64] | None) -> Floats:
    """The mean point, summed in the order the rows were given: its last digit must not depend on the labels."""
    rows = np.arange(len(points)) if order is None else np.argsort(order, kind="stable")
    rows = rows[keep[rows]]
    total = np.zeros(points.shape[1])
    for start in range(0, len(rows), RANK_ROWS):
        total += points[rows[start : start + RANK_ROWS]].sum(axis=0)
    return total / len(rows)


def _power_of_two(points: Floats) -> float:
    peaks = [
        np.abs(points[start : start + GATHERED_ROWS]).max(initial=0.0) for start in range(0, len(points), GATHERED_ROWS)
    ]
    return power_of_two(np.array(peaks) * points.shape[1] ** 0.5)


def power_of_two(sizes: Any) -> float:
    """The power of two that is no less than any of some sizes; 1 where all are 0."""
    peak = float(np.max(sizes, initial=0.0))
    if peak == 0.0 or not np.isfinite(peak):
        return 1.0
    return float(2.0 ** np.clip(np.ceil(np.log2(peak)), -1000, 1000))


def _normalise(points: Floats, threads: int) -> NDArray[np.bool_]:
    """Scale each row to length 1 in place; report the rows that have no direction."""
    flat = np.zeros(len(points), bool)

    def work(rows: slice) -> None:
        block = points[rows]
        # Dividing by the largest entry first keeps squares of huge and tiny values inside float64.
        peak = np.abs(block).max(axis=1, initial=0.0)
        flat[rows] = peak == 0.0
        block /= np.where(peak > 0.0, peak, 1.0)[:, None]
        norm = np.sqrt(np.einsum("ij,ij->i", block, block))
        block /= np.where(norm > 0.0, norm, 1.0)[:, None]

    _over_rows(work, len(points), threads)
    return flat


def _ranks(vectors: Array, ties: Ties, threads: int, order: NDArray[np.int64] | None = None) -> Floats:
    """Centred ranks of each row, in order; a constant row becomes exactly zero."""
    if ties not in ("average", "ordinal"):
        raise UsageError(f"Unknown way with ties {ties!r}: choose average or ordinal.")
    n, dims = len(vectors) if order is None else len(order), vectors.shape[1]
    ranks = np.empty((n, dims), np.float64)
    middle = (dims - 1) / 2

    def work(rows: slice) -> None:
        block = vectors[rows] if order is None else vectors[order[rows]]
        sorter = np.argsort(block, axis=1, kind="quicksort" if ties == "average" else "stable")
        kernels.ranks_from_sorter(block, sorter, ties == "average", middle, ranks[rows])
        if ties == "ordinal":
            # By position a constant row would get the ranks 1..D and look alive.
            ranks[rows][(block == block[:, :1]).all(axis=1)] = 0.0

    _over_rows(work, n, threads)
    return ranks


def _over_rows(work: Callable[[slice], None], n: int, threads: int) -> None:
    blocks = [slice(start, min(start + RANK_ROWS, n)) for start in range(0, n, RANK_ROWS)]
    with Workers(threads) as workers:
        for _ in workers.map(work, blocks):
            pass
