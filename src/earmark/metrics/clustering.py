"""Clusters found without labels, compared with the labels: k-means (NMI, ARI, purity) and UMAP + HDBSCAN.

k-means runs on the prepared points of the space (unit vectors for cosine, unit ranks for spearman), with as
many clusters as classes. It ends in one of many local optima, so a score is the mean over SEEDS clusterings, each the
best of STARTS starts, and their spread goes with it. `purity` projects with UMAP to two dimensions and clusters with
HDBSCAN; points HDBSCAN calls noise are left out, as the VocSim text says. It depends on library versions: never
gate on it. All range over [0, 1] (ARI can fall slightly below 0), higher is better.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from earmark.errors import MissingExtra
from earmark.scores.metrics import FRACTION, METRICS, metric, register

Floats = NDArray[np.float64]

SEEDS = 5
STARTS = 20  # from here on more of them no longer narrow the spread over seeds
SMALLEST = 5  # clips of a cluster that HDBSCAN may find


def canonical_order(rows: NDArray[Any]) -> NDArray[np.int64]:
    """The rows sorted by their values: an order that does not depend on the one they came in, nor on labels."""
    return np.argsort(np.unique(rows, axis=0, return_inverse=True)[1].ravel(), kind="stable")


def kmeans_clusters(points: Floats, clusters: int, seed: int) -> NDArray[Any]:
    """Cluster numbers of k-means: of STARTS starts, seeded by greedy k-means++, the one with the lowest inertia."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    # One thread: several add up in the order they finish, and OpenMP counts them anew in every thread that calls it.
    with warnings.catch_warnings(), threadpool_limits(limits=1, user_api="openmp"):
        # Fewer distinct points than clusters: the score says it all.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(clusters, n_init=STARTS, random_state=seed % 2**32, copy_x=True).fit(points)
    return np.asarray(found.labels_)


def density_clusters(points: Floats, seed: int, min_cluster_size: int = SMALLEST) -> NDArray[Any]:
    """Cluster numbers of HDBSCAN on a 2-D UMAP projection; -1 is noise."""
    try:
        from umap import UMAP
    except ImportError as error:
        raise MissingExtra("The purity metric (UMAP + HDBSCAN)", "clustering") from error
    from sklearn.cluster import HDBSCAN

    neighbours = min(15, len(points) - 1)
    projected = UMAP(n_neighbors=neighbours, random_state=seed % 2**32, n_jobs=1).fit_transform(points)
    return np.asarray(HDBSCAN(min_cluster_size=min_cluster_size, copy=True).fit_predict(projected))


@metric(
    "kmeans_purity", range=FRACTION, percent=True, needs=("kmeans",),
    words="share of clips in the majority class of their k-means cluster",
)  # fmt: skip
def purity(clusters: NDArray[Any], codes: NDArray[Any]) -> float:
    """Size-weighted share of each cluster's majority class; noise (-1) is left out; NaN if all is noise."""
    kept = clusters >= 0
    if not kept.any():
        return float("nan")
    table = np.zeros((int(clusters.max()) + 1, int(codes.max()) + 1), np.int64)
    np.add.at(table, (clusters[kept], codes[kept]), 1)
    return float(table.max(axis=1).sum() / kept.sum())


@metric(
    "NMI", range=FRACTION, percent=True, needs=("kmeans",),
    words="agreement of k-means clusters with the classes: normalised mutual information",
)  # fmt: skip
def nmi(clusters: NDArray[Any], codes: NDArray[Any]) -> float:
    """Normalised mutual information, arithmetic mean of the entropies."""
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(codes, clusters))


@metric(
    "ARI",
    range=(-0.5, 1.0),
    percent=True,  # beside NMI and purity, as the papers print it
    needs=("kmeans",),
    words="agreement of k-means clusters with the classes: adjusted Rand index, 0 by chance",
)
def ari(clusters: NDArray[Any], codes: NDArray[Any]) -> float:
    """Adjusted Rand index."""
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(codes, clusters))


_WORDS = "the same for HDBSCAN clusters of a UMAP; sensitive to the versions of both"
register(replace(METRICS["kmeans_purity"], name="purity", needs=("density",), words=_WORDS))
