"""The permutation null from class sums: cosine and spearman distances, all pairs, a few permutations at a time.

      points of each shuffled class --(sum)--> totals [B * C, D] --(one product with all points)--> summed distances

A permutation costs N x D additions, and where the contrast is wanted one product with C columns: in float32, where
it only proposes which class is nearest (kernels.lowest_means). B permutations share a product, so that BLAS has
something to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import kernels
from earmark.calibrate._null_job import Floats, Job, spans
from earmark.calibrate.closed_forms import CONTRAST, PAIR_SHARES
from earmark.metrics import separation
from earmark.workers import Workers

ROWS, COLUMNS = 512, 256  # of a product's tile
CLASS_ROWS = 256


def values(job: Job, workers: Workers, memory: int, progress: Any) -> dict[str, Floats]:
    """Every metric of the job, under each shuffle."""
    space = job.space
    together = max(1, COLUMNS // job.layout.classes)
    left: NDArray[Any] = np.zeros((0, 0), np.float32)
    if CONTRAST in job.metrics:
        left = np.column_stack([space.points, space.squares, np.ones(space.n)]).astype(np.float32)

    def measure(span: tuple[int, int]) -> list[dict[str, float]]:
        return _measure(job, span, together, left)

    rows: list[dict[str, float]] = []
    for found in workers.map(measure, spans(job.draws.count, together)):
        rows += found
        progress(len(found) / job.draws.count)
    wanted = [name for name in rows[0] if name.startswith("P@") or name in job.metrics]
    return {name: np.array([row[name] for row in rows]) for name in wanted}


def _measure(job: Job, span: tuple[int, int], together: int, left: NDArray[Any]) -> list[dict[str, float]]:
    space, layout, metrics = job.space, job.layout, job.metrics
    n, classes, dims = layout.n, layout.classes, space.points.shape[1]
    labels = np.zeros((span[1] - span[0], n), np.int32)
    for b in range(len(labels)):
        labels[b] = job.draws.labels(span[0] + b)[job.draws.units]
    sizes = np.stack([np.bincount(row, minlength=classes) for row in labels]).astype(np.float64)
    sums = np.empty((len(labels), classes, dims))
    squares, flats = np.empty((len(labels), classes)), np.empty((len(labels), classes))
    if metrics:
        kernels.class_totals(labels, space.points, space.squares, space.flat, sums, squares, flats)
    own = lowest = np.zeros((len(labels), 0))
    if metrics & {"GSR", CONTRAST}:
        own = np.empty((len(labels), n))
        for b in range(len(labels)):
            kernels.own_means(
                labels[b], sizes[b], space.points, space.squares, space.flat, sums[b], squares[b], flats[b], own[b]
            )
    if CONTRAST in metrics:
        lowest = _lowest(job, labels, sizes, sums, squares, flats, left)
    if metrics & PAIR_SHARES:
        pairs = _pair_metrics(sizes, sums, squares, flats)
    places = np.ascontiguousarray(job.swept.neighbours.places, np.int32)
    rows = []
    for b in range(len(labels)):
        found: dict[str, float] = {}
        if job.ks or "GSR" in metrics:
            hits = np.zeros(len(job.ks), np.int64)
            valid, gsr = kernels.judge_neighbours(
                labels[b], sizes[b], places, job.swept.neighbours.distances, np.array(job.ks, np.int64),
                own[b] if "GSR" in metrics else own[b, :0], space.raw, space.flat, separation.EPSILON, hits,
            )  # fmt: skip
            found = {f"P@{k}": hits[i] / (k * valid) for i, k in enumerate(job.ks)}
            found["GSR"] = gsr / valid
        if metrics & PAIR_SHARES:
            found["CS"], found["CSCF"] = pairs[b]
        if CONTRAST in metrics:
            found[CONTRAST] = kernels.mean_contrast(own[b], lowest[b])
        rows.append(found)
    return rows


def _lowest(
    job: Job, labels: NDArray[Any], sizes: Floats, sums: Floats, squares: Floats, flats: Floats, left: NDArray[Any]
) -> Floats:
    """The mean distance of every place to the nearest other class [B, N]."""
    space, (count, n), classes = job.space, labels.shape, job.layout.classes
    lowest = np.empty((count, n))
    share = 1.0 / np.maximum(sizes, 1.0)[:, :, None]
    level = (squares / 2 + flats)[:, :, None] * share
    operand = np.concatenate([-sums * share, (sizes - flats)[:, :, None] / 2 * share, level], axis=2)
    # The textbook bound of a product in any order of summation, for the longest class mean; twice it is a proof.
    unit = float(np.finfo(np.float32).eps) / 2 * (operand.shape[2] + 12)
    longest = np.sqrt(np.einsum("bcd,bcd->bc", operand[:, :, :-2], operand[:, :, :-2])).max(axis=1)
    margins = (
        2 * unit * (np.outer(longest, np.sqrt(space.squares)) + space.squares / 2 + level.max(axis=(1, 2))[:, None])
    )
    right = operand.astype(np.float32).reshape(count * classes, -1)
    for first, last in spans(n, ROWS):
        keys = right @ left[first:last].T
        for b in range(count):
            kernels.lowest_means(
                keys[b * classes : (b + 1) * classes], margins[b], first, labels[b], sizes[b],
                space.points, space.squares, space.flat, sums[b], squares[b], flats[b], lowest[b],
            )  # fmt: skip
    return lowest


def _pair_metrics(sizes: Floats, sums: Floats, squares: Floats, flats: Floats) -> Floats:
    """CS and CSCF [B, 2] from class sums, a block of classes at a time."""
    count, classes = sizes.shape
    directed = sizes - flats
    terms = np.zeros((3, count))
    for first, last in spans(classes, CLASS_ROWS):
        a, own = slice(first, last), np.arange(first, last)
        total = -(sums[:, a] @ sums.transpose(0, 2, 1))
        total += 0.5 * (squares[:, a, None] * directed[:, None] + directed[:, a, None] * squares[:, None])
        pairs = sizes[:, a, None] * sizes[:, None]
        total += pairs - directed[:, a, None] * directed[:, None]  # pairs with a flat member
        total[:, own - first, own] -= flats[:, a]  # a flat point is at distance 0 from itself
        pairs[:, own - first, own] -= sizes[:, a]
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(pairs > 0, np.maximum(total, 0.0) / pairs, np.nan)
        shares = separation.pair_shares(np.tile(own, count), means.reshape(-1, classes))
        terms += [term.reshape(count, -1).sum(axis=1) for term in shares]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((terms[:2] / terms[2]).T)
