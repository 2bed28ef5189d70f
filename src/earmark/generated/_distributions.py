"""How far apart two distributions are, in one number: Fréchet distance and kernel distance.

    frechet_distance  |m_r - m_g|^2 + tr(C_r + C_g - 2 (C_r^1/2 C_g C_r^1/2)^1/2), m means, C covariances   [0, inf)
    kernel_distance   squared maximum mean discrepancy, unbiased, under k(x, y) = (x.y / D + 1)^3       may fall below 0

Lower is better. Both look at the vectors as given: not at a distance, not at neighbourhoods, and with the unit of the
vectors squared (Fréchet) or to the sixth power (kernel). Fréchet sees nothing but two Gaussians, and its value from
samples is too high by an amount that falls like 1/n and grows with D: compare values of equal n only. With n <= D
the covariances have lost rank and the value is mostly that excess. The kernel distance has no such excess: of two
equal distributions it is 0 on average, hence negative about half of the time. Fewer than two points have neither.

Fréchet: Dowson and Landau, 1982; Heusel et al., NeurIPS 2017. Kernel: Gretton et al., JMLR 13, 2012; Bińkowski et al.,
ICLR 2018.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.workers import Workers

Array = NDArray[Any]
Floats = NDArray[np.float64]

ROWS = 512  # of a kernel matrix at a time
DEGREE = 3


def frechet_distance(real: Array, generated: Array) -> float:
    """The squared Fréchet (2-Wasserstein) distance of the Gaussians with the means and covariances of both sets.

    C = R'R with R from a QR decomposition, and the trace of the root is the sum of the singular values of R_r R_g'. No
    eigenvalue is computed from a squared one, so lost rank costs no digits.
    """
    (mean_r, root_r), (mean_g, root_g) = _moments(real), _moments(generated)
    shared = np.linalg.svd(root_r @ root_g.T, compute_uv=False).sum()
    spread = (root_r**2).sum() + (root_g**2).sum() - 2.0 * shared
    return float(max(((mean_r - mean_g) ** 2).sum() + spread, 0.0))


def _moments(points: Array) -> tuple[Floats, Floats]:
    """The mean, and a root R of the covariance R'R."""
    values = points.astype(np.float64)
    mean = values.mean(axis=0)
    root = np.linalg.qr((values - mean) / np.sqrt(len(values) - 1), mode="r")
    return np.asarray(mean), np.asarray(root)


class Kernel(NamedTuple):
    """The kernel distance, and what each point does to it: twice its mean likeness to its own set less the other."""

    value: float
    real: Floats
    generated: Floats


def kernel_distance(real: Array, generated: Array, *, threads: int = 1) -> Kernel:
    """The unbiased squared maximum mean discrepancy under the cubic kernel, in memory that grows with N."""
    x, y = real.astype(np.float64), generated.astype(np.float64)
    with Workers(threads) as workers:
        own_x, across_x = _kernel_means(x, x, workers, own=True), _kernel_means(x, y, workers)
        own_y, across_y = _kernel_means(y, y, workers, own=True), _kernel_means(y, x, workers)
    value = own_x.mean() + own_y.mean() - across_x.mean() - across_y.mean()
    return Kernel(float(value), 2.0 * (own_x - across_x), 2.0 * (own_y - across_y))


def _kernel_means(rows: Floats, columns: Floats, workers: Workers, *, own: bool = False) -> Floats:
    """For each row the mean kernel value with all columns, or with all others when the two sets are one."""
    n, dims = rows.shape
    means = np.empty(n)

    def work(start: int) -> None:
        block = slice(start, min(start + ROWS, n))
        total = np.zeros(block.stop - start)
        for first in range(0, len(columns), 4 * ROWS):
            kernel = rows[block] @ columns[first : first + 4 * ROWS].T
            kernel /= dims
            kernel += 1.0
            total += (kernel * kernel * kernel).sum(axis=1)
        if own:
            total -= (np.einsum("ij,ij->i", rows[block], rows[block]) / dims + 1.0) ** DEGREE
        means[block] = total / (len(columns) - own)

    for _ in workers.map(work, range(0, n, ROWS)):
        pass
    return means
