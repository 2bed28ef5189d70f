"""How far apart two distributions are, in one number: Fréchet distance and kernel distances.

    frechet_distance  |m_r - m_g|^2 + tr(C_r + C_g - 2 (C_r^1/2 C_g C_r^1/2)^1/2), m means, C covariances   [0, inf)
    kernel_distance   squared maximum mean discrepancy, unbiased, under k(x, y) = (x.y / D + 1)^3       may fall below 0
    kad               100 times the same under k(x, y) = exp(-|x - y|^2 / 2 s^2), s the median          may fall below 0
                      distance of two real points

Lower is better. All look at the vectors as given: not at neighbourhoods, and with the unit of the vectors squared
(Fréchet), to the sixth power (cubic kernel), or without a unit (Gaussian kernel). Fréchet sees nothing but two
Gaussians, and its value from samples is too high by an amount that falls like 1/n and grows with D: compare values of
equal n only. With n <= D the covariances have lost rank and the value is mostly that excess
(`earmark.generated._excess`). The kernel distances have no such excess: of two equal distributions they are 0 on
average, hence negative about half of the time. Fewer than two points have neither.

Fréchet: Dowson and Landau, 1982; Heusel et al., NeurIPS 2017; Kilgour et al., Interspeech 2019. Kernel: Gretton et al.,
JMLR 13, 2012; Bińkowski et al., ICLR 2018; Chung et al., KAD, 2025.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.workers import Workers

Array = NDArray[Any]
Floats = NDArray[np.float64]

TILE = 1024  # points on each side of a piece of a kernel matrix
FOLD = 4096  # points folded into a root at a time, at least
WELL = 1e-4  # the least of Cholesky's diagonal, of the largest: the trace of a root then has twelve digits
SCALE = 100.0  # of kad, as its authors print it
SAMPLED_PAIRS = 1 << 18  # that say where the median of distances is to be looked for
COPY = 1e-13  # squared, of the longest vector: what rounding leaves of the distance of a point and its copy
MARGIN = 0.004  # four standard errors of a median's rank among so many


# --- Fréchet ------------------------------------------------------------------------------------------------------


class Gaussian(NamedTuple):
    """What the Fréchet distance sees of a set: its mean, and a root R [rows, D] of its covariance R'R."""

    mean: Floats
    root: Floats
    n: int


def gaussian(points: Array) -> Gaussian:
    """The Gaussian with the mean and the covariance (over n - 1) of at least two points, in memory of D^2.

    The root is Cholesky's where there are many points and no dimension is nearly empty. Else a covariance would lose
    digits, and it is the R of a QR decomposition, to which points are added some thousands at a time, or the centred
    points themselves where there are no more of them than dimensions.
    """
    n, dims = points.shape
    mean = points.mean(axis=0, dtype=np.float64)
    if n <= dims:
        return Gaussian(mean, (points - mean) / np.sqrt(n - 1), n)
    root = _cholesky(points, mean) if n >= 2 * dims else None
    if root is None:
        root = np.empty((0, dims))
        for block in _blocks(n, dims):
            root = np.asarray(np.linalg.qr(np.concatenate([root, points[block] - mean]), mode="r"))
    return Gaussian(mean, root / np.sqrt(n - 1), n)


def _cholesky(points: Array, mean: Floats) -> Floats | None:
    """A root of the centred points' products, or None where it would lose digits."""
    dims = points.shape[1]
    products = np.zeros((dims, dims))
    for block in _blocks(len(points), dims):
        centred = points[block] - mean
        products += centred.T @ centred
    try:
        root = np.asarray(np.linalg.cholesky(products).T, np.float64)
    except np.linalg.LinAlgError:
        return None
    ends = np.diagonal(root)
    return root if ends.min() > WELL * ends.max() else None


def _blocks(n: int, dims: int) -> Iterator[slice]:
    rows = max(FOLD, 2 * dims)
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


def frechet_distance(real: Array | Gaussian, generated: Array | Gaussian) -> float:
    """The squared Fréchet (2-Wasserstein) distance of the Gaussians with the means and covariances of both sets.

    The trace of the root is the sum of the singular values of R_r R_g'. No eigenvalue is computed from a squared one,
    so lost rank costs no digits, and the cost is that of the smaller of n and D.
    """
    (mean_r, root_r, _), (mean_g, root_g, _) = _seen(real), _seen(generated)
    shared = np.linalg.svd(root_r @ root_g.T, compute_uv=False).sum()
    spread = (root_r**2).sum() + (root_g**2).sum() - 2.0 * shared
    return float(max(((mean_r - mean_g) ** 2).sum() + spread, 0.0))


def _seen(points: Array | Gaussian) -> Gaussian:
    return points if isinstance(points, Gaussian) else gaussian(points)


def frechet_effects(points: Array, of: Gaussian, other: Gaussian) -> Floats:
    """By how much every point of a set raises the Fréchet distance: the value less that without the point.

    To first order in 1/n: the mean moves as it does, and the distance with the covariance as its derivative says,
    tr((I - T) dC), where T is the linear map that carries the one Gaussian to the other. A group of points raises it by
    about the sum. At least three points.
    """
    n, dims = points.shape
    left, singular, right = np.linalg.svd(other.root @ of.root.T, full_matrices=False)
    del left
    carried = right.T * np.sqrt(singular)  # T = R^+ (carried carried') R^+'
    if n > dims:
        carried = np.linalg.pinv(of.root, rcond=n * np.finfo(np.float64).eps) @ carried / np.sqrt(n - 1)
    kept = ((of.root**2).sum() - singular.sum()) / (n - 2)
    effects = np.empty(n)
    for block in _blocks(n, dims):
        apart = points[block] - of.mean
        lengths = np.einsum("ij,ij->i", apart, apart)
        through = apart @ carried if n > dims else carried[block]
        moved = lengths - (n - 1) * np.einsum("ij,ij->i", through, through)
        moved *= n / ((n - 1) * (n - 2))
        effects[block] = 2.0 * (apart @ (of.mean - other.mean)) / (n - 1) - lengths / (n - 1) ** 2 + moved - kept
    return effects


# --- kernels ------------------------------------------------------------------------------------------------------


class Kernel(NamedTuple):
    """A kernel distance, and what each point does to it: twice its mean likeness to its own set less the other."""

    value: float
    real: Floats
    generated: Floats
    real_effects: Floats  # the value less that without the point
    generated_effects: Floats


def kernel_distance(real: Array, generated: Array, *, threads: int = 1) -> Kernel:
    """The unbiased squared maximum mean discrepancy under the cubic kernel, in memory that grows with N."""
    dims = real.shape[1]

    def cubic(products: Floats, first: Floats, second: Floats) -> Floats:
        products /= dims
        products += 1.0
        with np.errstate(over="ignore"):  # what is not finite is told by whoever asked
            return products * products * products

    with Workers(threads) as workers:
        return _discrepancy(real.astype(np.float64), generated.astype(np.float64), cubic, workers)


def kad(real: Array, generated: Array, *, bandwidth: float | None = None, threads: int = 1) -> Kernel:
    """100 times the unbiased squared maximum mean discrepancy under a Gaussian kernel, in memory that grows with N.

    `bandwidth` is s in exp(-d^2 / 2 s^2); None is the median distance of two real points, which must not be 0.
    """
    centre = real.mean(axis=0, dtype=np.float64)  # a distance of far-off points would lose digits
    x, y = real - centre, generated - centre
    with Workers(threads) as workers:
        width = median_distance(x, workers) if bandwidth is None else bandwidth
        rate = -0.5 / width**2

        def likeness(products: Floats, first: Floats, second: Floats) -> Floats:
            squared = _squared(products, first, second)
            squared *= rate
            return np.exp(squared, out=squared)

        plain = _discrepancy(x, y, likeness, workers)
    return Kernel(SCALE * plain.value, *(SCALE * values for values in plain[1:]))


def _squared(products: Floats, first: Floats, second: Floats) -> Floats:
    """Squared distances in place of products, from the squared lengths of both."""
    products *= -2.0
    products += first[:, None]
    products += second
    return np.maximum(products, 0.0, out=products)


Likeness = Callable[[Floats, Floats, Floats], Floats]


def _discrepancy(x: Floats, y: Floats, kernel: Likeness, workers: Workers) -> Kernel:
    m, n = len(x), len(y)
    own_x, own_y = _own_sums(x, kernel, workers) / (m - 1), _own_sums(y, kernel, workers) / (n - 1)
    across_x, across_y = _sums(x, y, kernel, workers)
    across_x, across_y = across_x / n, across_y / m
    value = own_x.mean() + own_y.mean() - 2.0 * across_x.mean()
    return Kernel(
        float(value), 2.0 * (own_x - across_x), 2.0 * (own_y - across_y),
        _without_each(own_x, across_x), _without_each(own_y, across_y),
    )  # fmt: skip


def _without_each(own: Floats, across: Floats) -> Floats:
    """The value less that without a point, of every point: the means over what stays are known in closed form."""
    n = len(own)
    if n < 3:
        return np.full(n, np.nan)
    within = own.mean() - (n * own.mean() - 2.0 * own) / (n - 2)
    between = across.mean() - (n * across.mean() - across) / (n - 1)
    return np.asarray(within - 2.0 * between)


def _own_sums(points: Floats, kernel: Likeness, workers: Workers) -> Floats:
    """For each point the sum of its kernel values with all others. A pair is looked at once."""
    sums = np.zeros(len(points))
    lengths = np.einsum("ij,ij->i", points, points)

    def work(tile: tuple[slice, slice]) -> tuple[Floats, Floats]:
        rows, columns = tile
        values = kernel(points[rows] @ points[columns].T, lengths[rows], lengths[columns])
        if rows == columns:
            np.fill_diagonal(values, 0.0)
        return values.sum(axis=1), values.sum(axis=0)

    tiles = list(_own_tiles(len(points)))
    for (rows, columns), (along, down) in zip(tiles, workers.map(work, tiles), strict=True):
        sums[rows] += along
        if rows != columns:
            sums[columns] += down
    return sums


def _sums(x: Floats, y: Floats, kernel: Likeness, workers: Workers) -> tuple[Floats, Floats]:
    """For each point of either set the sum of its kernel values with all of the other."""
    of_x, of_y = np.zeros(len(x)), np.zeros(len(y))
    lengths_x, lengths_y = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", y, y)

    def work(tile: tuple[slice, slice]) -> tuple[Floats, Floats]:
        rows, columns = tile
        values = kernel(x[rows] @ y[columns].T, lengths_x[rows], lengths_y[columns])
        return values.sum(axis=1), values.sum(axis=0)

    tiles = [(rows, columns) for rows in _tiles(len(x)) for columns in _tiles(len(y))]
    for (rows, columns), (along, down) in zip(tiles, workers.map(work, tiles), strict=True):
        of_x[rows] += along
        of_y[columns] += down
    return of_x, of_y


def _tiles(n: int) -> list[slice]:
    return [slice(start, min(start + TILE, n)) for start in range(0, n, TILE)]


def _own_tiles(n: int) -> Iterator[tuple[slice, slice]]:
    tiles = _tiles(n)
    return ((rows, columns) for place, rows in enumerate(tiles) for columns in tiles[place:])


# --- the median distance ------------------------------------------------------------------------------------------


def median_distance(points: Floats, workers: Workers) -> float:
    """The median distance of two points, of an even number of pairs the lower of the two in the middle.

    It is exact, and in memory that grows with N: a sample of pairs says between which distances it lies, and only those
    in between are kept.
    """
    n = len(points)
    rank = (n * (n - 1) // 2 - 1) // 2
    low, high = (0.0, np.inf) if n <= 2 * TILE else _bracket(points)
    below, kept = _between(points, low, high, workers)
    if not below <= rank < below + len(kept):
        below, kept = _between(points, 0.0, np.inf, workers)
    squared = float(np.partition(kept, rank - below)[rank - below])
    longest = float(np.einsum("ij,ij->i", points, points).max())
    return float(np.sqrt(squared)) if squared > COPY * longest else 0.0


def _bracket(points: Floats) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    first = rng.integers(len(points), size=SAMPLED_PAIRS)
    second = (first + rng.integers(1, len(points), size=SAMPLED_PAIRS)) % len(points)
    squared = np.empty(SAMPLED_PAIRS)
    for start in range(0, SAMPLED_PAIRS, FOLD):
        block = slice(start, start + FOLD)
        apart = points[first[block]] - points[second[block]]
        squared[block] = np.einsum("ij,ij->i", apart, apart)
    low, high = np.quantile(squared, [0.5 - MARGIN, 0.5 + MARGIN])
    return float(low), float(high)


def _between(points: Floats, low: float, high: float, workers: Workers) -> tuple[int, Floats]:
    """How many pairs are nearer than a squared distance, and the squared distances from it to another."""
    lengths = np.einsum("ij,ij->i", points, points)

    def work(tile: tuple[slice, slice]) -> tuple[int, Floats]:
        rows, columns = tile
        squared = _squared(points[rows] @ points[columns].T, lengths[rows], lengths[columns])
        values = squared[np.triu_indices(len(squared), 1)] if rows == columns else squared.ravel()
        return int((values < low).sum()), values[(values >= low) & (values <= high)]

    found = list(workers.map(work, _own_tiles(len(points))))
    return sum(count for count, _ in found), np.concatenate([kept for _, kept in found])
