"""A map of vectors on paper: clips that the distance puts close together, close together.

    vectors ── sample (above MOST clips) ── the distance's own points ── PCA ── t-SNE started from the PCA, or UMAP

A map of two dimensions cannot be right everywhere. `kept` says how right this one is: the share of clips whose
nearest neighbour among all those drawn is one of their ten nearest on the map.
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


class Projection(NamedTuple):
    """`points` [M, 2] on the map, the given row of each in `rows`, how it was made, and how true it is."""

    points: Floats
    rows: NDArray[np.int64]
    method: str
    kept: float | None
    note: str


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
    components = principal_components(placed, _COMPONENTS)
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
    return Projection(mapped, rows, name, neighbours_kept(placed, mapped), note)


def principal_components(points: Floats, count: int) -> Floats:
    """Scores [N, <= count] on the leading components of centred points; the largest loading of each is positive.

    Through the smaller of the two Gram matrices, exactly: flattened spectrograms have far more dimensions than
    there are clips.
    """
    centred = points - points.mean(axis=0)
    wide = centred.shape[1] > centred.shape[0]
    gram = centred @ centred.T if wide else centred.T @ centred
    weights, axes = np.linalg.eigh(gram)
    order = np.argsort(weights)[::-1][: min(count, centred.shape[0], centred.shape[1])]
    weights, axes = np.maximum(weights[order], 0.0), axes[:, order]
    scores = axes * np.sqrt(weights) if wide else centred @ axes
    peaks = np.abs(scores).argmax(axis=0)
    signs = np.sign(scores[peaks, np.arange(scores.shape[1])])
    return np.asarray(scores * np.where(signs == 0, 1.0, signs))


def neighbours_kept(points: Floats, mapped: Floats, near: int = NEAR) -> float | None:
    """Share of points whose nearest neighbour is among their `near` nearest on the map; None where that says little."""
    n = len(points)
    if n <= 2 * near:
        return None
    kept = 0
    for start in range(0, n, _ROWS):
        rows = np.arange(start, min(start + _ROWS, n))
        nearest = _squares(points, rows).argmin(axis=1)
        shown = np.argpartition(_squares(mapped, rows), near, axis=1)[:, :near]
        kept += int((shown == nearest[:, None]).any(axis=1).sum())
    return kept / n


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
