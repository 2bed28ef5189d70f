"""Hubness corrections: distances rescaled so that neighbour lists come out more even.

With d the distance, mu_i the mean distance of point i to its k nearest, s_i that to its k-th nearest:

    none     d
    sphere   the distance of x / |x|
    ls       1 - exp(-d^2 / (s_i s_j))                      local scaling
    nicdm    d mean(mu) / sqrt(mu_i mu_j)                   non-iterative contextual dissimilarity
    icdm     the same, repeated until every mu_i is alike; neighbours are found anew under each correction
    csls     2 d - mu_i - mu_j                              cross-domain similarity, local scaling
    mp       1 - SF_i(d) SF_j(d)                            mutual proximity, SF normal with i's mean and deviation
    dsl      |x_i - x_j|^2 - |x_i - c_i|^2 - |x_j - c_j|^2  localised centring, c_i the mean of the k nearest

Conventions. A point is not its own neighbour (by index). Labels and groups play no part: factors are those of all
points, also where pairs of a group are left out afterwards. The k nearest are found under the distance itself. For
dsl, |x_i - x_j|^2 is d^2 (euclidean) or 2 d (cosine, spearman: unit vectors and unit ranks).

Points in one place. A point whose k nearest all lie on it has no scale of its own: its mu or s of 0 counts as the mean
of those that are not 0 (ls, nicdm, icdm), so every corrected distance is finite. If all are 0, nothing is corrected. In
mp a deviation counts as 2^-12 of the mean at least, so that equal distances stay equal.

csls and dsl are differences: they order neighbours, and ratios of them mean nothing. No points belong to the corrected
distances of any but sphere. (Zelnik-Manor & Perona 2004; Jégou et al. 2010; Conneau et al. 2018; Schnitzer et al. 2012;
Hara et al. 2016)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError
from earmark.geometry import pair_kernels
from earmark.geometry.correction_names import CORRECTIONS, Correction, parse, parse_all
from earmark.geometry.factors import Factors, exact_distances
from earmark.geometry.icdm import icdm
from earmark.geometry.layout import Layout
from earmark.geometry.neighbours import nearest
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import ROWS, VALUE_COLUMNS, Neighbours, Progress
from earmark.workers import Workers

__all__ = ["CORRECTIONS", "Correction", "Neighbourhoods", "factors_of", "on_sphere", "parse", "parse_all"]

Floats = NDArray[np.float64]

_EVEN = 2.0**-12
_SPREAD_ROWS = 256


def on_sphere(vectors: NDArray[Any]) -> Floats:
    """Every vector at length 1; a zero vector stays where it is."""
    points = np.asarray(vectors, np.float64)
    # Dividing by the largest entry first keeps squares of huge and tiny values inside float64.
    peak = np.abs(points).max(axis=1, keepdims=True, initial=0.0)
    points = points / np.where(peak > 0.0, peak, 1.0)
    norm = np.sqrt(np.einsum("ij,ij->i", points, points))[:, None]
    return np.asarray(points / np.where(norm > 0.0, norm, 1.0))


class Neighbourhoods:
    """The points of a space in the order they were given, and their nearest neighbours, found once for all.

    Labels decide where points lie in a layout, and ties go by place: factors must not depend on that.
    """

    def __init__(
        self,
        space: Space,
        layout: Layout,
        corrections: Sequence[Correction],
        *,
        threads: int = 1,
        memory: int = 2 << 30,
        device: str = "cpu",
    ) -> None:
        self.space, self.order = _as_given(space, layout), layout.order
        fitting = [item.k for item in corrections if item.local and not item.too_few(space.n)]
        self.deepest = max(fitting, default=0)
        self.threads, self.memory, self.device = threads, memory, device
        self._found: Neighbours | None = None

    def nearest(self, k: int, progress: Progress | None = None) -> Neighbours:
        """The k nearest of every point."""
        if self._found is None or self._found.places.shape[1] < k:
            self._found = nearest(
                self.space, max(k, self.deepest), threads=self.threads, memory=self.memory, device=self.device,
                progress=progress,
            )  # fmt: skip
        return Neighbours(self._found.places[:, :k], self._found.distances[:, :k])

    def known(self, k: int) -> Neighbours | None:
        """The k nearest, if they have been found for another correction."""
        return None if self._found is None or self._found.places.shape[1] < k else self.nearest(k)


def factors_of(correction: Correction, near: Neighbourhoods, *, progress: Progress | None = None) -> Factors | None:
    """What `correction` needs to know of each point, in places of the layout; None where distances stay as they are.

    `progress` is called with numbers of rows; how often each row is counted depends on the correction.
    """
    space, k = near.space, correction.k
    if correction.too_few(space.n):
        raise UsageError(correction.too_few(space.n) + ".")
    if correction.keeps_points:
        return None
    if correction.name == "mp":
        found = _normal(space, near.threads, progress)
    elif correction.name == "icdm":
        fitted = icdm(
            space, k, correction.iterations, threads=near.threads, memory=near.memory, device=near.device,
            progress=progress, start=near.known(k),
        )  # fmt: skip
        found = Factors("scale", fitted.factors)
    elif correction.name == "ls":
        found = Factors("local", 1.0 / np.sqrt(_positive(near.nearest(k, progress).distances[:, -1])))
    elif correction.name == "nicdm":
        means = near.nearest(k, progress).distances.mean(axis=1)
        target = float(means[means > 0.0].mean()) if means.any() else 1.0
        found = Factors("scale", np.sqrt(target / _positive(means)))
    elif correction.name == "csls":
        found = Factors("shift", near.nearest(k, progress).distances.mean(axis=1))
    else:
        places = near.nearest(k, progress).places
        found = Factors("square_shift", _centroid_squares(space, places, near.threads))
    _refuse_overflow(found, space)
    return found.at(near.order)


def _as_given(space: Space, layout: Layout) -> Space:
    if np.array_equal(layout.order, np.arange(layout.n)):
        return space
    back = np.empty(layout.n, np.int64)
    back[layout.order] = np.arange(layout.n)
    return space.in_order(back)


def _positive(radii: Floats) -> Floats:
    """Radii with those of 0 replaced by the mean of the others; all of them 1 where all are 0."""
    scaled = radii > 0.0
    return np.where(scaled, radii, radii[scaled].mean() if scaled.any() else 1.0)


def _centroid_squares(space: Space, places: NDArray[np.int64], threads: int) -> Floats:
    found = np.empty(space.n)

    def work(start: int) -> None:
        rows = slice(start, start + _SPREAD_ROWS)
        pair_kernels.centroid_squares(
            np.arange(space.n)[rows], places[rows], space.raw, space.flat, space.form, space.scale, found[rows]
        )

    with Workers(threads) as workers:
        for _ in workers.map(work, range(0, space.n, _SPREAD_ROWS)):
            pass
    return found


def _normal(space: Space, threads: int, progress: Progress | None) -> Factors:
    """Mean and deviation of the distances of each point to all others, from tiles of the sweep's fixed shape."""
    means, deviations = np.zeros(space.n), np.zeros(space.n)
    columns = space.columns(np.float64)

    def work(start: int) -> int:
        rows = np.arange(start, min(start + ROWS, space.n))
        left = space.operands(np.float64, rows)
        counts, mean, squares = (np.zeros(len(rows)) for _ in range(3))
        for c0 in range(0, space.n, VALUE_COLUMNS):
            c1 = min(c0 + VALUE_COLUMNS, space.n)
            tile = space.tile(left, columns, c0, c1, np.empty((len(rows), c1 - c0)))
            exact_distances(tile, c0, rows, space)
            tile /= space.scale  # a power of two: squares of any distances fit, and no digit changes
            pair_kernels.add_moments(tile, c0, rows, counts, mean, squares)
        deviation = np.sqrt(squares / np.maximum(counts, 1.0))
        means[rows], deviations[rows] = mean * space.scale, deviation * space.scale
        return len(rows)

    with Workers(threads) as workers:
        for done in workers.map(work, range(0, space.n, ROWS)):
            if progress is not None:
                progress(done)
    deviations = np.maximum(deviations, _EVEN * means)
    return Factors("normal", means, np.where(deviations > 0.0, deviations, 1.0))


def _refuse_overflow(factors: Factors, space: Space) -> None:
    """Values near the ends of float64 have no corrected distances; nothing less extreme comes near."""
    farthest = np.float64(space.widest)
    with np.errstate(over="ignore"):
        largest = {"scale": farthest * factors.first.max() ** 2, "square_shift": farthest**2}.get(
            factors.kind, farthest
        )
    if not largest < pair_kernels.LARGEST:
        raise InputError("The values are too far apart to be corrected in float64: rescale them first.")
