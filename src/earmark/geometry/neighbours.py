"""Searches without labels: nearest neighbours, balls and closeness, under weights of the points, in one set or two.

A weight multiplies a distance: d(i, j) w_j. Corrections of hubness are weights, so corrected neighbourhoods come
from the same search as plain ones. Every search streams over tiles: memory grows with the number of points.

Self is left out by index, ties (40 bits) go to the lower row, and no result depends on tiles, threads, memory or,
for neighbours and balls, the device.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError
from earmark.geometry import devices
from earmark.geometry._candidates import Backend, Floats, Pairs, search
from earmark.geometry._cpu_backend import Cpu
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Neighbours, Progress
from earmark.workers import Workers

SPARE = 11  # candidates listed beyond the k needed, so that nearly every row is certified at once
WEIGHTS = (1e-100, 1e100)  # their squares fit float64


class BallCounts(NamedTuple):
    """How many balls hold each point, and how many points each ball holds."""

    per_point: NDArray[np.int64]
    per_centre: NDArray[np.int64]


def nearest(
    base: Space,
    k: int,
    *,
    queries: Space | None = None,
    weights: Floats | None = None,
    threads: int = 1,
    memory: int = 2 << 30,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Neighbours:
    """The k rows of `base` with the smallest d(q, j) * weights[j], for each query q, ordered by (d * weight, row).

    Without `queries` the base is searched for itself, each row without itself. `distances` are d * weight. Queries
    must come from `spaces.prepare_pair` together with the base. `progress` is called with the number of rows done.
    """
    pairs = Pairs.of(base, queries)
    check_k(k, base.n - int(pairs.same))
    found = Neighbours(np.full((pairs.rows.n, k), -1), np.full((pairs.rows.n, k), np.nan))
    with Workers(threads) as workers:
        search(
            pairs, backend_for(device, pairs, threads, memory), workers, _weights(weights, base.n, "weights"), k,
            k + SPARE, found, progress=progress,
        )  # fmt: skip
    return found


def ball_counts(
    centres: Space,
    radii: Floats,
    points: Space,
    *,
    centre_weights: Floats | None = None,
    point_weights: Floats | None = None,
    strict: bool = False,
    exclude_same_row: bool = False,
    threads: int = 1,
    memory: int = 2 << 30,
    device: str = "cpu",
    progress: Progress | None = None,
) -> BallCounts:
    """Which points lie in which balls: d(c, p) * centre_weights[c] * point_weights[p] <= radii[c], counted both ways.

    A point at the very radius (40 bits) is inside, with `strict` outside. A point of infinite weight is in no ball,
    and a ball of radius NaN holds nothing. `exclude_same_row` leaves out the pairs (c, c).
    """
    if exclude_same_row and centres.n != points.n:
        raise UsageError(f"exclude_same_row needs as many centres as points, not {centres.n} and {points.n}.")
    pairs = Pairs.of(points, centres, same=exclude_same_row)
    factors = _weights(centre_weights, centres.n, "centre_weights")
    weights = _weights(point_weights, points.n, "point_weights", infinite=True)
    radii = np.asarray(radii, np.float64)
    if radii.shape != (centres.n,):
        raise UsageError(f"radii must hold one value for each of the {centres.n} centres, not {radii.shape}.")
    counts = BallCounts(np.zeros(points.n, np.int64), np.zeros(centres.n, np.int64))
    present = np.isfinite(weights)
    if not (present.any() and centres.n):
        return counts
    weights = np.where(present, weights, 1.0)
    backend = backend_for(device, pairs, threads, memory)
    with Workers(threads) as workers:
        for rows, per_point, per_centre in backend.balls(workers, radii, factors, weights, present, strict):
            np.add(counts.per_point, per_point, out=counts.per_point)
            counts.per_centre[rows] = per_centre
            if progress is not None:
                progress(len(rows))
    return counts


def log_closeness(
    centres: Space,
    radius: float,
    points: Space,
    *,
    centre_weights: Floats | None = None,
    point_weights: Floats | None = None,
    threads: int = 1,
    memory: int = 2 << 30,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Floats:
    """Per point p, the sum over centres c of log(min(d(c, p) * centre_weights[c] * point_weights[p] / radius, 1)).

    0 for a point farther than `radius` from every centre, or of infinite weight; -inf for one that lies on a centre.
    """
    if not 0.0 < radius < np.inf:
        raise InputError(f"A closeness needs a radius above 0, not {radius}: are all points in one place?")
    pairs = Pairs.of(centres, points, same=False)
    weights = _weights(centre_weights, centres.n, "centre_weights")
    factors = _weights(point_weights, points.n, "point_weights", infinite=True)
    totals = np.zeros(points.n)
    rows = np.flatnonzero(np.isfinite(factors))
    if not (len(rows) and centres.n):
        return totals
    reaches = np.full(points.n, np.inf)
    reaches[rows] = radius / factors[rows]
    backend = backend_for(device, pairs, threads, memory)
    with Workers(threads) as workers:
        for block, sums in backend.logs(workers, rows, reaches, weights):
            totals[block] = sums
            if progress is not None:
                progress(len(block))
    return totals


def check_k(k: int, most: int, thing: str = "k") -> None:
    if k < 1:
        raise UsageError(f"{thing} must be at least 1, not {k}.")
    if k > most:
        raise UsageError(f"{thing}={k} needs more points than there are: the largest that fits is {most}.")


def backend_for(device: str, pairs: Pairs, threads: int, memory: int) -> Backend:
    """Where the products of a search run: see devices.py."""
    if pairs.given:  # given distances are read, and no product is made of them
        devices.check(device)
        return Cpu(pairs, threads, memory)
    device = devices.resolve(device, pairs.rows.n * pairs.columns.n * pairs.columns.points.shape[1])
    if device == "cpu":
        return Cpu(pairs, threads, memory)
    from earmark.geometry import torch_backend

    return torch_backend.Torch(pairs, device.removeprefix("torch:"), threads, memory)


def _weights(weights: Floats | None, n: int, name: str, *, infinite: bool = False) -> Floats:
    if weights is None:
        return np.ones(n)
    weights = np.ascontiguousarray(weights, np.float64)
    if weights.shape != (n,):
        raise UsageError(f"{name} must hold one value for each of the {n} points, not {weights.shape}.")
    low, high = WEIGHTS
    if not ((weights >= low) & ((weights <= high) | (infinite & (weights == np.inf)))).all():
        raise UsageError(f"{name} must lie between {low:g} and {high:g}{', or be infinite' if infinite else ''}.")
    return weights
