"""The slow reference of hubness corrections: the full matrix, rewritten; nothing here comes from Earmark.

Written from section 2 of formulas/gicdm.md. A point whose k nearest all lie on it has no scale of its own; the mean of
the other points' stands in for it.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm
from tests import brute


def neighbourhoods(matrix, k):
    """[N, k]: the nearest of each point, ties by row."""
    lists = brute.neighbours(matrix, brute.pairs_allowed(len(matrix)))
    return np.array([listed[:k] for listed in lists])


def coordinates(vectors, distance, ties="average"):
    """Points whose squared distances are d^2 (euclidean) or 2 d; a vector without direction has one of its own."""
    x = np.asarray(vectors, float)
    if distance == "euclidean":
        return x
    if distance == "spearman":
        x = np.array([brute.rankdata(row, method=ties) for row in x])
        x = x - x.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(x, axis=1)
    flat = np.flatnonzero(norms == 0)
    own = np.zeros((len(x), len(flat)))
    own[flat, np.arange(len(flat))] = 1.0
    return np.hstack([x / np.where(norms > 0, norms, 1)[:, None], own])


def scaled(values):
    """The values, with the mean of the others in place of 0; ones if all are 0."""
    return np.where(values > 0, values, values[values > 0].mean() if values.any() else 1.0)


def matrix(vectors, distance, name, k=10, iterations=10, ties="average"):
    """[N, N]: distances after a correction."""
    if name == "sphere":
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return brute.distance_matrix(vectors / np.where(lengths > 0, lengths, 1), distance, ties)
    d = brute.distance_matrix(vectors, distance, ties)
    if name == "none":
        return d
    if name == "icdm":
        for _ in range(iterations):
            mean = np.take_along_axis(d, neighbourhoods(d, k), axis=1).mean(axis=1)
            alike = mean[mean > 0].mean() if mean.any() else 1.0
            d = d * alike / np.sqrt(np.outer(*[np.where(mean > 0, mean, alike)] * 2))
        return d
    if name == "mp":
        others = ~np.eye(len(d), dtype=bool)
        mean = np.array([row[kept].mean() for row, kept in zip(d, others, strict=True)])
        deviation = np.array([row[kept].std() for row, kept in zip(d, others, strict=True)])
        deviation = np.maximum(deviation, mean / 4096)
        deviation[deviation == 0] = 1.0
        z = (d - mean[:, None]) / deviation[:, None]
        lower, upper = norm.cdf(z), norm.sf(z)
        near = lower + lower.T - lower * lower.T  # 1 - SF SF without the loss of digits near 0
        return np.where(upper * upper.T > 0.5, near, 1 - upper * upper.T)
    nearest = neighbourhoods(d, k)
    close = np.take_along_axis(d, nearest, axis=1)
    if name == "ls":
        s = scaled(close[:, -1])
        return -np.expm1(-(d**2) / np.outer(s, s))
    mean = close.mean(axis=1)
    if name == "nicdm":
        alike = mean[mean > 0].mean() if mean.any() else 1.0
        return d * alike / np.sqrt(np.outer(*[np.where(mean > 0, mean, alike)] * 2))
    if name == "csls":
        return 2 * d - mean[:, None] - mean
    points = coordinates(vectors, distance, ties)
    spread = ((points - points[nearest].mean(axis=1)) ** 2).sum(axis=1)
    return (d**2 if distance == "euclidean" else 2 * d) - spread[:, None] - spread
