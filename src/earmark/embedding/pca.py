"""Principal components: exact, deterministic, and in blocks, so that only the smaller square is ever held.

    D <= N   covariance [D, D], summed over blocks of rows
    D >  N   Gram matrix [N, N], summed over blocks of columns; same components, found from the other side

Numeric policy. Data is centred and multiplied in float64, one BLAS thread to a block, and the blocks are added in
order, so that no result depends on the number of threads. Each component is turned so that its largest loading
(the first of equals) is positive. Directions whose variance is lost in rounding get zero loadings: their
coordinates are exactly 0. Nothing is whitened unless asked.

Fewer points than dimensions: at most N - 1 directions exist, and `note` says when fewer than asked came out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError
from earmark.workers import Workers, thread_count

Array = NDArray[Any]
Floats = NDArray[np.float64]

BLOCK_BYTES = 32 << 20


class Reduction(NamedTuple):
    """To how many components vectors are reduced, and whether each is scaled to variance 1: `100`, `100w`."""

    components: int
    whiten: bool = False

    def __str__(self) -> str:
        return f"{self.components}{'w' * self.whiten}"

    @property
    def code(self) -> str:
        """As names of systems have it: `D100`, `D100W`."""
        return f"D{self.components}{'W' * self.whiten}"


def parse_reduction(given: object) -> Reduction | None:
    """Read `100`, `100w`, the papers' `D100`, `D100W`, and `none`; UsageError for anything else."""
    if given is None or isinstance(given, Reduction):
        return given
    text = str(given).strip().lower()
    if text == "none":
        return None
    found = re.fullmatch(r"d?(\d+)(w?)", text)
    if found is None:
        raise UsageError(
            f"{given!r} is no number of principal components: write 100, 100w to scale each to variance 1, or none."
        )
    _check_components(int(found[1]))
    return Reduction(int(found[1]), bool(found[2]))


@dataclass(frozen=True, eq=False)
class PCA:
    """A fitted projection. `components` [K, D] are rows; `variances` [K] divide by N - 1."""

    mean: Floats
    components: Floats
    variances: Floats
    total_variance: float
    whiten: bool = False
    note: str = ""

    @property
    def explained(self) -> Floats:
        """Share of the variance that each component holds; zeros when there is no variance at all."""
        return self.variances / self.total_variance if self.total_variance > 0 else np.zeros_like(self.variances)

    def transform(self, vectors: Array) -> NDArray[np.float32]:
        """Coordinates [N, K] in float32; rows are taken in blocks, so `vectors` may be a memory map."""
        if vectors.ndim != 2 or vectors.shape[1] != len(self.mean):
            raise InputError(f"The PCA is for {len(self.mean)} dimensions; the vectors have shape {vectors.shape}.")
        loadings = self.components.T
        if self.whiten:
            deviations = np.sqrt(self.variances)
            loadings = loadings / np.where(deviations > 0, deviations, 1.0)
        out = np.empty((len(vectors), len(self.components)), np.float32)
        with Workers(1):
            for rows in _slices(len(vectors), vectors.shape[1]):
                out[rows] = (vectors[rows].astype(np.float64) - self.mean) @ loadings
        return out


class Reduced(NamedTuple):
    """Coordinates and the projection they came from."""

    vectors: NDArray[np.float32]
    pca: PCA


def reduce(vectors: Array, components: int, *, whiten: bool = False, threads: int | None = None) -> Reduced:
    """Fit on `vectors` [N, D] and return their own coordinates."""
    fitted = fit(vectors, components, whiten=whiten, threads=threads)
    return Reduced(fitted.transform(vectors), fitted)


def fit(vectors: Array, components: int, *, whiten: bool = False, threads: int | None = None) -> PCA:
    """The first `components` principal components of `vectors` [N, D], or as many as there can be."""
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise InputError(f"PCA needs vectors [N, D]; the shape is {vectors.shape}.")
    points, dimensions = vectors.shape
    _check(components, points)
    mean = _mean(vectors)
    kept = min(components, dimensions, points - 1)
    if dimensions <= points:
        square = _summed(vectors, mean, 0, threads)
        variances, directions = _top(square, kept)
        loadings = directions.T
    else:
        square = _summed(vectors, mean, 1, threads)
        variances, directions = _top(square, kept)
        loadings = _from_gram(vectors, mean, variances, directions)
    total = float(np.trace(square))
    return _finish(mean, loadings, variances, total, points, components, whiten)


class Moments:
    """Mean and covariance of rows that arrive in blocks, for data that is never held at once (frames)."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, rows: Array) -> None:
        wide = np.asarray(rows, dtype=np.float64)
        if not len(wide):
            return
        if self.count == 0:
            self._shift = wide.mean(axis=0)  # near the mean: no digits are lost when it is subtracted again
            self._sum = np.zeros(wide.shape[1])
            self._square = np.zeros((wide.shape[1], wide.shape[1]))
        wide = wide - self._shift
        self.count += len(wide)
        self._sum += wide.sum(axis=0)
        self._square += wide.T @ wide

    def extend(self, blocks: Iterable[Array]) -> Moments:
        """Add every block, one BLAS thread each."""
        with Workers(1):
            for block in blocks:
                self.add(block)
        return self

    def fit(self, components: int, *, whiten: bool = False) -> PCA:
        """The components of all rows added so far."""
        _check(components, self.count)
        offset = self._sum / self.count
        square = self._square - self.count * np.outer(offset, offset)
        variances, directions = _top(square, min(components, len(offset), self.count - 1))
        total = float(np.trace(square))
        return _finish(self._shift + offset, directions.T, variances, total, self.count, components, whiten)


def _check_components(components: int) -> None:
    if components < 1:
        raise UsageError(f"PCA needs at least 1 component, not {components}.")


def _check(components: int, points: int) -> None:
    _check_components(components)
    if points < 2:
        raise InputError(f"PCA needs at least 2 points; there is {points}.")


def _slices(length: int, width: int) -> Iterator[slice]:
    """Slices of `length` such that a float64 block `width` across stays within the block budget."""
    step = max(1, BLOCK_BYTES // (8 * width))
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def _mean(vectors: Array) -> Floats:
    total = np.zeros(vectors.shape[1])
    for rows in _slices(*vectors.shape):
        total += vectors[rows].sum(axis=0, dtype=np.float64)
    return total / len(vectors)


def _summed(vectors: Array, mean: Floats, axis: int, threads: int | None) -> Floats:
    """The covariance's numerator (axis 0: blocks of rows) or the Gram matrix (axis 1: blocks of columns)."""

    def product(part: slice) -> Floats:
        block = vectors[part] - mean if axis == 0 else (vectors[:, part] - mean[part]).T
        return np.asarray(block.T @ block)

    side = vectors.shape[1 - axis]
    square = np.zeros((side, side))
    # A product is as large as the square itself: no more threads than squares fit into a gigabyte.
    count = max(1, min(thread_count(threads), (1 << 30) // (3 * square.nbytes)))
    with Workers(count) as workers:
        for part in workers.map(product, _slices(vectors.shape[axis], side)):
            square += part
    return square


def _top(square: Floats, count: int) -> tuple[Floats, Floats]:
    """The `count` largest eigenvalues, falling, and their vectors as columns; eigenvalues are never negative."""
    side = len(square)
    with Workers(1):
        values, vectors = scipy.linalg.eigh(square, subset_by_index=[side - count, side - 1])
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def _from_gram(vectors: Array, mean: Floats, values: Floats, directions: Floats) -> Floats:
    """Loadings [K, D] from the Gram matrix's eigenvectors: X^T u / |X^T u|."""
    scale = np.where(values > 0, 1.0 / np.sqrt(np.where(values > 0, values, 1.0)), 0.0)
    loadings = np.empty((len(values), vectors.shape[1]))
    with Workers(1):
        for columns in _slices(vectors.shape[1], len(vectors)):
            loadings[:, columns] = ((vectors[:, columns] - mean[columns]).T @ directions * scale).T
    return loadings


def _finish(mean: Floats, loadings: Floats, values: Floats, total: float, points: int, asked: int, whiten: bool) -> PCA:
    """Silence directions lost in rounding, fix signs, and say what is missing."""
    real = values > max(points, len(mean)) * np.finfo(np.float64).eps * max(total, 0.0)
    signs = np.sign(loadings[np.arange(len(loadings)), np.abs(loadings).argmax(axis=1)])
    loadings = np.ascontiguousarray(loadings * np.where(real, signs, 0.0)[:, None])
    values = np.where(real, values, 0.0)
    note = ""
    if len(values) < asked:
        note = f"PCA: {len(values)} of {asked} components, all that {points} points in {len(mean)} dimensions have"
    elif not real.all():
        note = f"PCA: only {int(real.sum())} of {asked} components hold variance; the others are 0"
    return PCA(mean, loadings, values / (points - 1), total / (points - 1), whiten, note)
