"""A map of vectors on paper: clips that the distance puts close together, close together.

    vectors ── sample (above MOST clips) ── the distance's own points ── PCA ── t-SNE started from the PCA, or UMAP

A map of two dimensions cannot be right everywhere. Three numbers say how right this one is: `kept`, the share of clips
whose nearest neighbour among all those drawn is one of their ten nearest on the map; `shared`, how many of the ten
nearest on the map are among the ten nearest of all, as a share; and `trust`, the trustworthiness of Venna and Kaski
(2001), in which a false neighbour costs more the farther away it truly is. Of many clips they are those of a sample.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from earmark.errors import InputError, require
from earmark.geometry import spaces

Floats = NDArray[np.float64]
Method = Literal["auto", "pca", "tsne", "umap"]

MOST = 2000
ENOUGH_FOR_TSNE = 30
NEAR = 10
_COMPONENTS = 50
_ROWS = 512
_EXACT = 4000
"""Sides of the largest Gram matrix whose components are computed exactly."""
_ASKED = 1000


class Projection(NamedTuple):
    """`points` [M, 2] on the map, the given row of each in `rows`, how it was made, and how true it is.

    `share` is the part of the variance that the two first principal components hold, of a map that is made of them.
    """

    points: Floats
    rows: NDArray[np.int64]
    method: str
    kept: float | None
    note: str
    share: float | None = None
    shared: float | None = None
    trust: float | None = None


class Truth(NamedTuple):
    """How much of the neighbourhoods of all dimensions a map keeps: see the head of this file."""

    kept: float
    shared: float
    trust: float


def project(
    vectors: ArrayLike, seed: int = 0, *, distance: str = "euclidean", method: Method = "auto", most: int = MOST
) -> Projection:
    """Lay `vectors` [N, D] out on a plane, deterministically: the same input gives the same map.

    More than `most` vectors are sampled at random with `seed`, and `note` says so. `auto` is t-SNE started from
    the two first principal components, or these alone under 30 vectors. `umap` needs the extra `clustering`, and
    is the same two components under 30 vectors too.
    """
    given = np.asarray(vectors)
    if given.ndim != 2 or 0 in given.shape:
        raise InputError(f"A projection needs vectors [clips, dimensions]; these have the shape {given.shape}.")
    rows = np.arange(len(given))
    note = ""
    if len(given) > most:
        rows = np.sort(np.random.default_rng(seed).choice(len(given), most, replace=False))
        note = f"{most} of {len(given)} clips, drawn at random"
    placed = spaces.prepare(given[rows], distance).points
    if not np.isfinite(placed).all():
        raise InputError("A projection needs finite vectors; these hold NaN or infinity.")
    components = principal_components(placed, _COMPONENTS, seed)
    flat = _two_columns(components)
    # Points that differ in nothing but rounding have no map: t-SNE would spread the rounding over the plane.
    lively = bool(np.ptp(flat, axis=0).max(initial=0.0) > 1e-12)
    enough = lively and len(rows) >= ENOUGH_FOR_TSNE
    if enough and method == "umap":
        mapped, name = _umap(components, seed), "UMAP"
    elif method in ("auto", "tsne") and (enough or (lively and method == "tsne")):
        mapped, name = _tsne(components, seed), "t-SNE"
    else:
        mapped, name = flat, "PCA"
    share = _share_of_variance(placed, flat) if name == "PCA" else None
    truth = truth_of(placed, mapped, seed=seed)
    if truth is None:
        return Projection(mapped, rows, name, None, note, share)
    return Projection(mapped, rows, name, truth.kept, note, share, truth.shared, truth.trust)


def _share_of_variance(points: Floats, flat: Floats) -> float | None:
    total = float(((points - points.mean(axis=0)) ** 2).sum())
    return min(1.0, float((flat**2).sum()) / total) if total > 0 else None


def principal_components(points: Floats, count: int, seed: int = 0) -> Floats:
    """Scores [N, <= count] on the leading components of centred points; the largest loading of each is positive.

    Through the smaller of the two Gram matrices, exactly: flattened spectrograms have far more dimensions than
    there are clips. Where both sides are in the thousands, through random projections, whose memory grows with neither.
    """
    centred = points - points.mean(axis=0)
    if min(centred.shape) > _EXACT:
        from sklearn.utils.extmath import randomized_svd

        left, weights, _ = randomized_svd(centred, count, random_state=seed % 2**32)
        return _turned(left * weights)
    wide = centred.shape[1] > centred.shape[0]
    gram = centred @ centred.T if wide else centred.T @ centred
    weights, axes = np.linalg.eigh(gram)
    order = np.argsort(weights)[::-1][: min(count, centred.shape[0], centred.shape[1])]
    weights, axes = np.maximum(weights[order], 0.0), axes[:, order]
    return _turned(axes * np.sqrt(weights) if wide else centred @ axes)


def _turned(scores: Floats) -> Floats:
    peaks = np.abs(scores).argmax(axis=0)
    signs = np.sign(scores[peaks, np.arange(scores.shape[1])])
    return np.asarray(scores * np.where(signs == 0, 1.0, signs))


def truth_of(points: Floats, mapped: Floats, near: int = NEAR, seed: int = 0, most: int = MOST) -> Truth | None:
    """How true a map is to the neighbourhoods of the points; None where they are too few to tell.

    Of more than `most` points a thousand, drawn with `seed`, ask for their neighbours among all.
    """
    n = len(points)
    if n <= 2 * near:
        return None
    asking = np.arange(n)
    if n > most:
        asking = np.sort(np.random.default_rng(seed).choice(n, min(_ASKED, n), replace=False))
    kept = shared = excess = 0
    for start in range(0, len(asking), _ROWS):
        rows = asking[start : start + _ROWS]
        full = _squares(points, rows)
        shown = np.argpartition(_squares(mapped, rows), near, axis=1)[:, :near]
        kept += int((shown == full.argmin(axis=1)[:, None]).any(axis=1).sum())
        for own in np.take_along_axis(full, shown, axis=1).T:
            ranks = 1 + (full < own[:, None]).sum(axis=1)
            shared += int((ranks <= near).sum())
            excess += int(np.maximum(ranks - near, 0).sum())
    pairs = len(asking) * near
    return Truth(kept / len(asking), shared / pairs, 1.0 - 2.0 * excess / (pairs * (2 * n - 3 * near - 1)))


def _squares(points: Floats, rows: NDArray[np.int64]) -> Floats:
    lengths = np.einsum("ij,ij->i", points, points)
    squares = lengths[rows, None] + lengths - 2.0 * points[rows] @ points.T
    squares[np.arange(len(rows)), rows] = np.inf
    return np.asarray(squares)


def _two_columns(components: Floats) -> Floats:
    missing = max(0, 2 - components.shape[1])
    return np.asarray(np.pad(components, ((0, 0), (0, missing)))[:, :2])


def _umap(components: Floats, seed: int) -> Floats:
    """UMAP of the components with its usual 15 neighbours, from its usual start."""
    model = require("umap", "UMAP maps", "clustering").UMAP
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed costs threads, and that few points are connected badly
        made = model(n_neighbors=min(15, len(components) - 1), random_state=seed % 2**32, n_jobs=1)
        return np.asarray(made.fit_transform(components), np.float64)


def _tsne(components: Floats, seed: int) -> Floats:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    start: Any = _two_columns(components)
    start = start / max(float(start[:, 0].std()), 1e-300) * 1e-4
    perplexity = min(30.0, (len(components) - 1) / 4)
    # One thread: several would add up the same numbers in another order, and t-SNE magnifies the last digit.
    with threadpool_limits(limits=1):
        model = TSNE(n_components=2, init=start, perplexity=perplexity, random_state=seed, learning_rate="auto")
        return np.asarray(model.fit_transform(components), np.float64)
