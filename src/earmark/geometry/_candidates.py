"""Candidate lists: for each row, the few columns among which its nearest under given weights must lie.

    rows (queries) x columns (base)     key_ij = c_j q_ij   with c_j = w_j^2 (d = sqrt q) or w_j (d = q / 2)

The weight of a column is folded into its operand, so a weighted search is one plain product and no epilogue:

    left_i  = [ -2 z_i        1          |z_i|^2 ]
    right_j = [  c_j z_j   c_j |z_j|^2     c_j   ]        left_i . right_j = c_j |z_i - z_j|^2

The numeric policy stands in `neighbour_kernels`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.geometry import kernels, neighbour_kernels
from earmark.geometry.pair_kernels import GIVEN, ROOT
from earmark.geometry.spaces import DEPTH, FLAT_SQUARE, Space
from earmark.geometry.sweep import Neighbours, Progress, blocks
from earmark.workers import Workers

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Precision = type[np.floating[Any]]

EVERY_PAIR_ROWS = 16
EVERY = slice(None)
WIDEST = 1e30  # factors that differ by more than this do not fit float32 together


@dataclass(frozen=True)
class Pairs:
    """Which pairs are searched: rows against columns, of one space (a row does not meet itself) or of two."""

    rows: Space
    columns: Space
    same: bool

    @classmethod
    def of(cls, columns: Space, rows: Space | None = None, *, same: bool | None = None) -> Pairs:
        if rows is None or rows is columns:
            return cls(columns, columns, rows is None if same is None else same)
        shared = rows.centre is not None and columns.centre is not None and np.array_equal(rows.centre, columns.centre)
        if rows.distance != columns.distance or rows.scale != columns.scale or not shared:
            raise UsageError("Two spaces meet only if they were made ready together: use prepare_pair.")
        return cls(rows, columns, bool(same))

    @property
    def halved(self) -> bool:
        return self.columns.halved

    @property
    def form(self) -> int:
        return self.columns.form

    @property
    def given(self) -> bool:
        """Whether the distances were given: keys are c_j d_ij / scale with c_j = w_j."""
        return self.form == GIVEN

    @property
    def scale(self) -> float:
        return self.columns.scale

    @property
    def flat(self) -> bool:
        return bool(self.rows.flat.any() or self.columns.flat.any())

    def own(self, rows: Ints) -> Ints:
        """The column each row may not meet; -1 where it may meet all."""
        return rows if self.same else np.full(len(rows), -1)

    @cached_property
    def decided_by(self) -> tuple[Array, NDArray[np.bool_], Array, NDArray[np.bool_]]:
        """Vectors and flat marks of rows and of columns, from which the kernels compute a single distance."""
        rows = _plain(self.rows.raw)
        return rows, self.rows.flat, rows if self.rows is self.columns else _plain(self.columns.raw), self.columns.flat

    def factors(self, weights: Floats) -> Floats:
        """c of each column."""
        return weights * weights if self.form == ROOT else weights

    def key_of(self, values: Floats, key_scale: float) -> Floats:
        """The keys of distances times weights."""
        if self.given:
            return values / self.scale * key_scale
        return (2.0 * values if self.halved else (values / self.scale) ** 2) * key_scale


class Folded(NamedTuple):
    """Columns with their weights folded in: the right operand, its power-of-two scale, the rounding bound by row.

    Where distances were given the operand is the factor of each column.
    """

    right: Array
    key_scale: float
    errors: Floats


class Lists(NamedTuple):
    """Candidates of some rows: places and distances (a lower bound where not `known`), and what the rest cannot beat.

    The first `counts[r]` entries of row r are filled. No unlisted column has d * weight below `floors[r]`, for the
    weights the list was made with; inf where every column is listed.
    """

    places: NDArray[np.int32]
    distances: Floats
    known: NDArray[np.bool_]
    counts: Ints
    floors: Floats

    @classmethod
    def empty(cls, rows: int, length: int) -> Lists:
        return cls(
            np.empty((rows, length), np.int32),
            np.empty((rows, length)),
            np.zeros((rows, length), bool),
            np.zeros(rows, np.int64),
            np.full(rows, np.inf),
        )

    def part(self, rows: Ints | NDArray[np.bool_] | slice) -> Lists:
        places, distances, known, counts, floors = self
        return Lists(places[rows], distances[rows], known[rows], counts[rows], floors[rows])

    def store(self, rows: Ints | slice, part: Lists) -> None:
        """Take over the lists of `rows`, which may be shorter than these."""
        length = part.places.shape[1]
        self.places[rows, :length] = part.places
        self.distances[rows, :length] = part.distances
        self.known[rows, :length] = part.known
        self.counts[rows] = part.counts
        self.floors[rows] = part.floors

    def forget(self, rows: Ints) -> None:
        """Leave the lists of `rows` empty: they prove nothing."""
        self.counts[rows], self.floors[rows] = 0, 0.0

    def proofs(self) -> tuple[Ints, Floats]:
        """Counts and floors of every row."""
        return self.counts, self.floors


class Kept(Protocol):
    """Lists of every row that outlive a search, wherever the backend keeps them."""

    def forget(self, rows: Ints) -> None: ...

    def proofs(self) -> tuple[Ints, Floats]: ...


class Backend(Protocol):
    """Where products are computed, and lists made, kept and settled."""

    def keep_lists(self, length: int) -> Any:
        """Empty lists (`Kept`) of every row, with room for `length` candidates each."""
        ...

    def find(
        self, workers: Workers, under: Floats, weights: Floats, dtype: Precision, rows: Ints, length: int, k: int,
        out: Neighbours, *, keep: Any = None, ordered: bool = True,
    ) -> Iterator[tuple[int, Ints]]:  # fmt: skip
        """List `length` candidates of `rows` under the weights `under` and settle them under `weights`, into `out`.

        For blocks of rows, in order: how many were done, and which of them are not certain. `keep` takes the lists.
        """
        ...

    def settle(self, workers: Workers, lists: Any, rows: Ints | None, weights: Floats, k: int, out: Neighbours) -> None:
        """The k nearest of `rows` (None: all) as far as the lists that were kept know, into `out`."""
        ...

    def visit(
        self, workers: Workers, weights: Floats, rows: Ints, columns: Ints, reaches: Floats, lists: Any
    ) -> Iterator[tuple[Ints, NDArray[np.int8]]]:
        """Add to the kept lists of `rows` every one of `columns` with d * weight under the row's reach.

        For blocks of rows: the rows, and 0 where nothing was new, 1 where something was, 2 where it did not fit.
        """
        ...

    def balls(
        self, workers: Workers, radii: Floats, row_weights: Floats, weights: Floats, present: NDArray[np.bool_],
        strict: bool,
    ) -> Iterator[tuple[Ints, Ints, Ints]]:  # fmt: skip
        """For blocks of rows: the rows, how many of them hold each column, how many `present` columns each holds."""
        ...

    def logs(self, workers: Workers, rows: Ints, reaches: Floats, weights: Floats) -> Iterator[tuple[Ints, Floats]]:
        """For blocks of `rows`: the rows, and their sums over columns of log(min(d * weight / reach, 1))."""
        ...


def fold(pairs: Pairs, weights: Floats, dtype: Precision, columns: Ints | slice = EVERY) -> Folded:
    """The right operand of some columns under the weights of all, and how far a key can be from the truth, per row."""
    space = pairs.columns
    factors, key_scale = scaled_factors(pairs, weights)
    factors = factors[columns]
    if pairs.given:
        return Folded(factors / pairs.scale, key_scale, error_bound(pairs, factors, dtype, columns))
    dims = space.points.shape[1]
    right = np.empty((len(factors), width_of(pairs)), dtype)
    np.multiply(space.points[columns], factors[:, None], out=right[:, :dims], casting="same_kind")
    right[:, dims] = factors * space.squares[columns]
    right[:, dims + 1] = factors
    if pairs.flat:
        flat = space.flat[columns]
        right[flat] = 0.0
        right[:, -1] = np.where(flat, factors, 0.0)
    return Folded(right, key_scale, error_bound(pairs, factors, dtype, columns))


def scaled_factors(pairs: Pairs, weights: Floats) -> tuple[Floats, float]:
    """c of each column, brought to 1 or less by a power of two, and that power."""
    factors = pairs.factors(weights)
    key_scale = float(2.0 ** -np.ceil(np.log2(factors.max())))
    return factors * key_scale, key_scale


def error_bound(pairs: Pairs, factors: Floats, dtype: Precision, columns: Ints | slice = EVERY) -> Floats:
    """How far a key can be from the truth, per row, whatever the column.

    The textbook bound n * u * |a| |b| of a dot product, for any order of summation; it includes the width of a tie.
    """
    rows, squares = pairs.rows, pairs.columns.squares[columns]
    largest = float(factors.max())
    info = np.finfo(dtype)
    if pairs.given:  # one product with the factor, and its rounding to the type of the tile
        size = rows.reaches(np.arange(rows.n)) / pairs.scale * largest
        return np.asarray((4.0 * float(info.eps) + kernels.TIE_SHARE) * size + 8.0 * float(info.tiny), np.float64)
    # max over j of c_j (|z_i| + |z_j|)^2, term by term
    size = largest * rows.squares + 2.0 * np.sqrt(rows.squares) * float((factors * np.sqrt(squares)).max())
    size += float((factors * squares).max())
    if pairs.flat:
        size += FLAT_SQUARE * largest
    width = width_of(pairs)
    terms = min(width, DEPTH) + -(-width // DEPTH) + 8
    share = terms * float(info.eps) / 2 + max(rows.rotation_error, pairs.columns.rotation_error) + kernels.TIE_SHARE
    return np.asarray(share * size + terms * float(info.tiny), np.float64)


def left_operand(pairs: Pairs, rows: Ints, dtype: Precision) -> Array:
    """The left operand of some rows."""
    space = pairs.rows
    points = space.points[rows]
    dims = points.shape[1]
    left = np.empty((len(rows), width_of(pairs)), dtype)
    np.multiply(points, -2.0, out=left[:, :dims], casting="same_kind")
    left[:, dims] = 1.0
    left[:, dims + 1] = space.squares[rows]
    if pairs.flat:
        left[:, -1] = FLAT_SQUARE
        flat = space.flat[rows]
        left[flat, : dims + 1] = 0.0
        left[flat, dims + 1] = FLAT_SQUARE
    return left


def width_of(pairs: Pairs) -> int:
    return int(pairs.columns.points.shape[1]) + 2 + int(pairs.flat)


def settle(
    pairs: Pairs, rows: Ints, lists: Lists, weights: Floats, k: int, *, ordered: bool = True
) -> tuple[Neighbours, NDArray[np.bool_]]:
    """The k nearest of `rows` from their lists (whose distances it fills in), and which rows are certain."""
    raw_a, flat_a, raw_b, flat_b = pairs.decided_by
    found = Neighbours(np.full((len(rows), k), -1), np.full((len(rows), k), np.nan))
    certified = np.empty(len(rows), bool)
    neighbour_kernels.settle(
        raw_a, flat_a, rows, raw_b, flat_b, pairs.form, pairs.scale, lists.places, lists.distances, lists.known,
        lists.counts, lists.floors, weights, k, ordered, found.places, found.distances, certified,
    )  # fmt: skip
    pairs.rows.release(8 * len(rows) * pairs.columns.n, whole=False)
    return found, certified


def search(
    pairs: Pairs,
    backend: Backend,
    workers: Workers,
    weights: Floats,
    k: int,
    length: int,
    out: Neighbours,
    *,
    rows: Ints | None = None,
    keep: Kept | None = None,
    ordered: bool = True,
    progress: Progress | None = None,
) -> None:
    """Find the k nearest of `rows` (all by default) into `out`: float32 lists, float64 lists, every pair, as needed.

    `keep` holds on to the lists, whole rows of it; a row that needed every pair keeps an empty list.
    """
    rows = np.arange(pairs.rows.n) if rows is None else rows
    factors = pairs.factors(weights)
    fits = float(factors.max()) < WIDEST * float(factors.min())
    precisions: list[Precision] = [np.float32, np.float64] if fits and not pairs.given else [np.float64]

    for dtype in precisions:
        if not len(rows):
            return
        failed = []
        for done, left in backend.find(
            workers, weights, weights, dtype, rows, length, k, out, keep=keep, ordered=ordered
        ):
            failed.append(left)
            if progress is not None:
                progress(done)
        rows, progress = np.concatenate(failed), None

    def every_pair(block: Ints) -> None:
        found, _ = settle(pairs, block, all_columns(pairs, block), weights, k)
        out.places[block], out.distances[block] = found
        if keep is not None:
            keep.forget(block)

    for _ in workers.map(every_pair, blocks(rows, EVERY_PAIR_ROWS)):
        pass


def all_columns(pairs: Pairs, rows: Ints) -> Lists:
    """Lists of every column a row may meet, nothing known of any distance."""
    n = pairs.columns.n - int(pairs.same)
    lists = Lists.empty(len(rows), n)
    everyone = np.arange(pairs.columns.n, dtype=np.int32)
    for r, row in enumerate(rows):
        lists.places[r] = np.delete(everyone, row) if pairs.same else everyone
    lists.distances[:] = 0.0
    lists.counts[:] = n
    return lists


def ball_limits(pairs: Pairs, folded: Folded, reaches: Floats) -> tuple[Floats, Floats]:
    """Keys below the first are inside a ball of that reach, keys not below the second are outside it, for certain."""
    keys = np.where(reaches >= 0.0, pairs.key_of(reaches, folded.key_scale), -np.inf)
    margin = folded.errors + 4 * kernels.TIE_SHARE * np.where(np.isfinite(keys), keys, 0.0)
    return keys - margin, np.nextafter((keys + margin).astype(np.float32), np.float32(np.inf)).astype(np.float64)


def _plain(raw: Array) -> Array:
    """Vectors as the kernels want them: few types, so that little is compiled."""
    return np.ascontiguousarray(raw if raw.dtype in (np.float32, np.float64) else raw.astype(np.float64))
