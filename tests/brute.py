"""The slow reference: every metric from the full distance matrix, loops and all.

Written from formulas/vocsim.md and section 1 of formulas/gicdm.md; nothing here comes from Earmark.
Distances are computed in extended precision and rounded once, so that what ties on paper ties here.

Conventions: a point is not its own neighbour (by index). Neighbours are ordered by (distance, row). A point
with no same-class partner is excluded: NaN, never 0. With `groups`, pairs inside a group do not exist.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.stats import rankdata, skew

EPSILON = 1e-9
EQUAL = 1e-12  # two means this close (relative) are equal: the strict < of CSCF is not decided by rounding
POINT_METRICS = ("GSR", "CSR_pointwise", "silhouette")


# --- distances ------------------------------------------------------------------------------------


def distance_matrix(vectors, distance, ties="average"):
    """[N, N]: cosine 1 - cos, spearman 1 - rho, euclidean; a vector without direction is at 1 from all."""
    x = np.asarray(vectors).astype(np.longdouble)
    if distance == "spearman":
        x = np.array([rankdata(row, method=ties) for row in np.asarray(vectors)]).astype(np.longdouble)
        constant = (np.asarray(vectors) == np.asarray(vectors)[:, :1]).all(axis=1)
        x = np.where(constant[:, None], 0, x - x.mean(axis=1, keepdims=True))
    if distance != "euclidean":
        peak = np.abs(x).max(axis=1, keepdims=True)
        x = x / np.where(peak > 0, peak, 1)
        norm = np.sqrt((x * x).sum(axis=1, keepdims=True))
        x = x / np.where(norm > 0, norm, 1)
    squares = np.array([((x - row) ** 2).sum(axis=1) for row in x])
    if distance == "euclidean":
        return np.sqrt(squares).astype(np.float64)
    found = (squares / 2).astype(np.float64)  # |u - v|^2 / 2 = 1 - u.v for unit vectors
    flat = ~x.any(axis=1)
    found[flat, :] = found[:, flat] = 1.0
    np.fill_diagonal(found, 0.0)
    return found


def pairs_allowed(n, groups=None):
    """[N, N] bool: which candidates a query may meet."""
    allowed = ~np.eye(n, dtype=bool)
    if groups is not None:
        groups = np.asarray(groups)
        allowed &= groups[:, None] != groups[None, :]
    return allowed


def neighbours(distances, allowed):
    """For each row, its candidates from near to far; ties by row."""
    everyone = np.arange(len(distances))
    return [
        candidates[np.lexsort((candidates, row[candidates]))]
        for row, candidates in ((distances[i], everyone[allowed[i]]) for i in range(len(distances)))
    ]


# --- per point ------------------------------------------------------------------------------------


def balance(near, wide):
    return ((near - wide) / (near + wide + EPSILON) + 1) / 2


def point_parts(distances, labels, groups=None):
    """NID, AvgID, MID and the lowest mean distance to another class, per point; NaN where there is none."""
    labels = np.asarray(labels)
    allowed = pairs_allowed(len(labels), groups)
    parts = np.full((4, len(labels)), np.nan)
    for i in range(len(labels)):
        mates = distances[i, allowed[i] & (labels == labels[i])]
        others = distances[i, allowed[i] & (labels != labels[i])]
        other_labels = labels[allowed[i] & (labels != labels[i])]
        if len(others):
            parts[0, i] = others.min()
            parts[3, i] = min(others[other_labels == c].mean() for c in np.unique(other_labels))
        if len(mates):
            parts[1, i], parts[2, i] = mates.mean(), mates.max()
    return parts


def point_values(distances, labels, groups=None, ks=(1, 5)):
    """{metric: [N]} of every metric that is a mean over queries."""
    labels = np.asarray(labels)
    allowed = pairs_allowed(len(labels), groups)
    near, average, farthest, other = point_parts(distances, labels, groups)
    alone = np.isnan(average)
    found = {}
    lists = neighbours(distances, allowed)
    for k in ks:
        share = [
            np.mean(labels[listed[:k]] == label) if len(listed) >= k else np.nan
            for listed, label in zip(lists, labels, strict=True)
        ]
        found[f"P@{k}"] = np.where(alone, np.nan, share)
    found["GSR"] = balance(near, average)
    found["CSR_pointwise"] = balance(near, farthest)
    largest = np.maximum(average, other)
    found["silhouette"] = (other - average) / np.where(largest == 0, 1.0, largest)
    return found


# --- whole-set values -----------------------------------------------------------------------------


def class_pair_means(distances, labels, groups=None, weights=None):
    """[C, C]: mean distance of the (weighted) points of class a to those of class b; NaN without a pair."""
    labels = np.asarray(labels)
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, float)
    allowed = pairs_allowed(len(labels), groups)
    members = [np.flatnonzero(labels == name) for name in np.unique(labels)]
    means = np.full((len(members), len(members)), np.nan)
    for a, first in enumerate(members):
        for b, second in enumerate(members):
            block = np.ix_(first, second)
            counted = weights[first, None] * allowed[block]
            if counted.sum() > 0:
                means[a, b] = math.fsum((counted * distances[block]).ravel()) / counted.sum()
    return means


def cs_and_cscf(means):
    """Over ordered pairs of classes: mean of 1 / (1 + inter / intra), share with inter < intra."""
    terms, confused = [], []
    for a in range(len(means)):
        for b in range(len(means)):
            intra, inter = means[a, a], means[a, b]
            if a == b or np.isnan(intra) or np.isnan(inter):
                continue
            if intra == 0:
                terms.append(0.5 if inter == 0 else 0.0)  # limits of 1 / (1 + inter / intra)
            else:
                terms.append(1 / (1 + inter / intra))
            confused.append(inter < intra * (1 - EQUAL))
    return (np.mean(terms), np.mean(confused)) if terms else (np.nan, np.nan)


def csr(near, farthest, labels, weights=None):
    """Class means of NID and MID first, then the ratio, classes weighted by (weighted) size."""
    labels = np.asarray(labels)
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, float)
    weights = np.where(np.isnan(near) | np.isnan(farthest), 0.0, weights)
    total = 0.0
    for name in np.unique(labels):
        mine = (labels == name) & (weights > 0)
        if mine.any():
            mean_near = np.average(near[mine], weights=weights[mine])
            mean_farthest = np.average(farthest[mine], weights=weights[mine])
            total += weights[mine].sum() * balance(mean_near, mean_farthest)
    return total / weights.sum() if weights.sum() > 0 else np.nan


def weighted_mean(points, weights=None):
    weights = np.ones(len(points)) if weights is None else np.asarray(weights, float)
    kept = ~np.isnan(points)
    return (weights * points)[kept].sum() / weights[kept].sum() if weights[kept].sum() > 0 else np.nan


def label_values(distances, labels, groups=None, ks=(1, 5), weights=None):
    """{metric: value} of every metric that has a null and an interval; `weights` count drawn queries."""
    found = {
        name: weighted_mean(points, weights) for name, points in point_values(distances, labels, groups, ks).items()
    }
    near, _, farthest, _ = point_parts(distances, labels, groups)
    found["CSR"] = csr(near, farthest, labels, weights)
    found["CS"], found["CSCF"] = cs_and_cscf(class_pair_means(distances, labels, groups, weights))
    return found


def occurrences(distances, k, groups=None):
    """N_k: in how many lists of k neighbours each point stands."""
    lists = neighbours(distances, pairs_allowed(len(distances), groups))
    counts = np.zeros(len(distances), int)
    for listed in lists:
        counts[listed[:k]] += 1
    return counts


def hub_values(counts, k):
    ordered = sorted(counts, reverse=True)
    top = ordered[: math.ceil(len(counts) / 100)]
    return {
        "hub_ratio": np.mean(top) / k,
        "antihub_rate": np.mean(counts == 0),
        "hub_skew": float(skew(counts)) if np.ptp(counts) else 0.0,
        "robin_hood": 0.5 * np.abs(counts - counts.mean()).sum() / counts.sum() if counts.sum() else 0.0,
    }


def kept_rows(labels, min_class_size=2):
    """Rows with a label, in a class that is large enough."""
    names = ["" if label is None or label != label else str(label) for label in labels]
    return np.array([i for i, name in enumerate(names) if name and names.count(name) >= min_class_size], int)


def values(vectors, labels, distance, *, ties="average", groups=None, ks=(1, 5), hub_k=5, min_class_size=2):
    """{metric: value} of one evaluation under one protocol (`groups` given: across groups)."""
    rows = kept_rows(labels, min_class_size)
    distances = distance_matrix(np.asarray(vectors)[rows], distance, ties)
    groups = None if groups is None else np.asarray(groups)[rows]
    found = label_values(distances, np.asarray(labels)[rows], groups, ks)
    if hub_k < len(rows):
        found |= hub_values(occurrences(distances, hub_k, groups), hub_k)
    return found


# --- calibration ----------------------------------------------------------------------------------


def exchangeable(labels, groups=None):
    """[[rows of a unit, ...], ...]: blocks of units that may exchange their labels, as groups allow.

    Rows stand sorted by the text of their class (then by row). Groups of one label are units, exchanged with those of
    their size where sizes alone leave 1000 orders, else with all; rows of other groups are units, exchanged inside.
    """
    labels = np.asarray(labels)
    order = np.argsort(labels.astype(str), kind="stable").tolist()
    if groups is None or len(np.unique(groups)) == len(labels):
        return [[[row] for row in order]]
    groups = np.asarray(groups).astype(str)
    rows = {name: [row for row in order if groups[row] == name] for name in np.unique(groups)}
    constant = [members for members in rows.values() if len(set(labels[members])) == 1]
    sizes = sorted({len(members) for members in constant})
    by_size = [[members for members in constant if len(members) == size] for size in sizes]
    enough = math.prod(math.factorial(len(block)) for block in by_size) >= 1000
    inside = [[[row] for row in members] for members in rows.values() if len(set(labels[members])) > 1]
    return (by_size if enough else [constant] if constant else []) + inside


def shuffled_labels(labels, permutation, seed, groups=None):
    """Labels under one permutation.

    Without groups, the class of slot t falls to place members[t] of the sorted rows; with them, a number between 0 and
    1 for every unit decides, from the last unit of a block to its second, with which unit up to itself it exchanges.
    """
    labels = np.asarray(labels)
    rng, moved = np.random.default_rng([seed, permutation]), labels.copy()
    blocks = exchangeable(labels, groups)
    if groups is None or len(np.unique(groups)) == len(labels):
        order = np.array([unit[0] for unit in blocks[0]])
        moved[order[rng.permutation(len(labels))]] = labels[order]
        return moved
    numbers = iter(rng.random(sum(len(block) for block in blocks)))
    for block in blocks:
        drawn = [next(numbers) for _ in block]
        given = [labels[unit[0]] for unit in block]
        for t in range(len(block) - 1, 0, -1):
            other = int(drawn[t] * (t + 1))
            given[t], given[other] = given[other], given[t]
        for unit, label in zip(block, given, strict=True):
            moved[unit] = label
    return moved


def other_arrangements(labels, groups):
    """Every way to put the labels that groups allow, but the given one; names of classes do not count."""

    def anonymous(given):
        seen = {}
        return tuple(seen.setdefault(label, len(seen)) for label in given)

    labels = np.asarray(labels)
    blocks = exchangeable(labels, groups)
    choices = [sorted(set(itertools.permutations([labels[unit[0]] for unit in block]))) for block in blocks]
    found = {}
    for choice in itertools.product(*choices):
        moved = labels.copy()
        for block, given in zip(blocks, choice, strict=True):
            for unit, label in zip(block, given, strict=True):
                moved[unit] = label
        found[anonymous(moved)] = moved
    found.pop(anonymous(labels))
    return list(found.values())


def null_values(distances, labels, permutations, seed=0, groups=None, ks=(1, 5), *, across=True):
    """{metric: [P]}: the plain metric of each shuffle, exchanged as groups allow; `across` leaves out their pairs."""
    barred = groups if across else None
    rounds = [
        label_values(distances, shuffled_labels(labels, p, seed, groups), barred, ks) for p in range(permutations)
    ]
    return {name: np.array([found[name] for found in rounds]) for name in rounds[0]}


def drawn(n, resamples, seed=0, groups=None):
    """[B, N]: how often each row is drawn; whole groups (numbered by their sorted text) when given."""
    counts = np.zeros((resamples, n), int)
    groups = None if groups is None else np.asarray(groups).astype(str)
    names = None if groups is None else np.unique(groups)
    for b in range(resamples):
        rng = np.random.default_rng([seed, b])
        if names is None:
            for row in rng.integers(0, n, n):
                counts[b, row] += 1
        else:
            for group in rng.integers(0, len(names), len(names)):
                counts[b] += groups == names[group]
    return counts


def resampled_values(distances, labels, resamples, seed=0, groups=None, across=False, ks=(1, 5)):
    """{metric: [B]}: queries (or groups of queries) drawn with replacement, their candidates unchanged."""
    barred = groups if across else None
    rounds = [
        label_values(distances, labels, barred, ks, weights) for weights in drawn(len(labels), resamples, seed, groups)
    ]
    return {name: np.array([found[name] for found in rounds]) for name in rounds[0]}


def interval(samples):
    return tuple(np.percentile(samples[~np.isnan(samples)], [2.5, 97.5]))
