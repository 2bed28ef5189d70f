"""Nine ways to say how alike two datasets are, from the scores of the same models on both.

A similarity is a pure function of two complete blocks, [n, a] and [n, b] with the same n models in their rows, to an
array [a, b] (passing one array twice halves the work); larger is more alike and a dataset with itself has 1.
`similarity_matrix` applies it to all pairs of columns, each pair on the models that have a score on both.

    pearson, spearman, kendall   correlation; tau-b; average ranks on ties; negative ones stay negative
    cosine                       x.y / (|x| |y|)
    manhattan, euclidean,        exp(-L_p), p = 1, 2, 3; with n of m models in common the p-th power of the
      minkowski                  distance is scaled by m / n, so that a gap does not make two datasets alike
    wasserstein                  exp(-W1 / largest W1 of all pairs)
    jensen_shannon               1 - sqrt(JSD), natural logarithm, each column divided by its sum

Where a column cannot be compared (a constant one has no correlation, one of zeros no direction and no distribution, a
pair fewer than two models in common) the similarity is 0: knowing one says nothing about the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, did_you_mean

Floats = NDArray[np.float64]
Similarity = Callable[[Floats, Floats], Floats]

FLAT = 1e-12
"""A column whose spread is under this share of its size is constant: the rest is rounding."""


def correlations(x: Floats, y: Floats) -> Floats:
    """Pearson's r of every column of x with every column of y; 0 where one of them is constant."""
    a, b = _standardised(x), _standardised(y)
    return np.clip(a.T @ b, -1.0, 1.0)


def rank_correlations(x: Floats, y: Floats) -> Floats:
    """Spearman's rho: Pearson's r of average ranks."""
    from scipy.stats import rankdata

    return correlations(rankdata(x, axis=0), rankdata(y, axis=0))


def kendall(x: Floats, y: Floats) -> Floats:
    """Kendall's tau-b: (concordant - discordant) / sqrt(pairs not tied in x * pairs not tied in y).

    For each model, the signs of its differences to all later ones; their products are summed by a matrix product of
    -1, 0 and 1, which is exact in float32.
    """
    n = len(x)
    balance = np.zeros((x.shape[1], y.shape[1]))
    untied_x, untied_y = np.zeros(x.shape[1]), np.zeros(y.shape[1])
    for i in range(n - 1):
        sx = np.sign(x[i + 1 :] - x[i]).astype(np.float32)
        sy = sx if y is x else np.sign(y[i + 1 :] - y[i]).astype(np.float32)
        balance += sx.T @ sy
        untied_x += np.count_nonzero(sx, axis=0)
        untied_y += np.count_nonzero(sy, axis=0)
    return _divided(balance, np.sqrt(np.outer(untied_x, untied_y)))


def cosine(x: Floats, y: Floats) -> Floats:
    """x.y / (|x| |y|); 0 where one of them is all zeros."""
    norms = np.outer(np.linalg.norm(x, axis=0), np.linalg.norm(y, axis=0))
    return np.clip(_divided(x.T @ y, norms), -1.0, 1.0)


def distances(x: Floats, y: Floats, p: int) -> Floats:
    """The sum over models of |x - y|^p, for p = 1, 2, 3: the p-th power of the L_p distance."""

    def to_all(column: Floats, others: Floats) -> Floats:
        gap = np.abs(others - column)
        return np.asarray((gap if p == 1 else gap * gap if p == 2 else gap * gap * gap).sum(axis=0), np.float64)

    return _by_column(x, y, to_all)


def transport(x: Floats, y: Floats) -> Floats:
    """W1, the mean difference of the sorted scores."""
    ordered = np.sort(x, axis=0)
    return distances(ordered, ordered if y is x else np.sort(y, axis=0), 1) / len(x)


def jensen_shannon(x: Floats, y: Floats) -> Floats:
    """1 - sqrt(JSD) of the columns as distributions over the models; 0 where a column sums to 0."""
    from scipy.special import rel_entr

    if (x < 0).any() or (y < 0).any():
        raise InputError("jensen_shannon needs scores of at least 0; normalise the matrix, clipped at chance, first.")
    p = _divided(x, x.sum(axis=0))
    q = p if y is x else _divided(y, y.sum(axis=0))

    def to_all(column: Floats, others: Floats) -> Floats:
        middle = (column + others) / 2
        divergence = (rel_entr(column, middle) + rel_entr(others, middle)).sum(axis=0) / 2
        return np.asarray(1 - np.sqrt(np.maximum(divergence, 0.0)), np.float64)

    out = _by_column(p, q, to_all)
    out[~p.any(axis=0)] = 0.0
    out[:, ~q.any(axis=0)] = 0.0
    return out


_BLOCKS: dict[str, Similarity] = {
    "pearson": correlations,
    "spearman": rank_correlations,
    "kendall": kendall,
    "cosine": cosine,
    "manhattan": lambda x, y: distances(x, y, 1),
    "euclidean": lambda x, y: distances(x, y, 2),
    "minkowski": lambda x, y: distances(x, y, 3),
    "wasserstein": transport,
    "jensen_shannon": jensen_shannon,
}
_POWERS = {"manhattan": 1, "euclidean": 2, "minkowski": 3}

NINE: tuple[str, ...] = tuple(_BLOCKS)


def similarity_matrix(values: Floats, name: str) -> Floats:
    """[d, d] similarities of the columns of `values` [m, d], symmetric, with 1 on the diagonal. NaN is missing."""
    if name not in _BLOCKS:
        raise UsageError(f'There is no similarity "{name}"; there are {", ".join(NINE)}.{did_you_mean(name, NINE)}')
    raw, common = all_pairs(np.asarray(values, np.float64), _BLOCKS[name])
    if name in _POWERS:
        p = _POWERS[name]
        raw = np.exp(-((raw * _divided(np.float64(len(values)), common)) ** (1 / p)))
    elif name == "wasserstein":
        raw = np.exp(-raw / raw.max()) if raw.max() > 0 else np.ones_like(raw)
    raw[common < 2] = 0.0
    np.fill_diagonal(raw, 1.0)
    return raw


def all_pairs(values: Floats, block: Similarity) -> tuple[Floats, Floats]:
    """block() for all pairs of columns, and how many models each pair has in common.

    Columns with gaps in the same rows are one block: a matrix without gaps is a single call.
    """
    known = np.isfinite(values)
    patterns, which = np.unique(known, axis=1, return_inverse=True)
    which = which.ravel()
    members = [np.flatnonzero(which == k) for k in range(patterns.shape[1])]
    d = values.shape[1]
    out, common = np.zeros((d, d)), np.zeros((d, d))
    for k, left in enumerate(members):
        for other in range(k, len(members)):
            right = members[other]
            rows = patterns[:, k] & patterns[:, other]
            n = int(rows.sum())
            common[np.ix_(left, right)] = n
            common[np.ix_(right, left)] = n
            if n < 2:
                continue
            x = values[np.ix_(rows, left)]
            found = block(x, x if other == k else values[np.ix_(rows, right)])
            out[np.ix_(left, right)] = found
            out[np.ix_(right, left)] = found.T
    # A block against itself may differ from its transpose in the last digit.
    return (out + out.T) / 2, common


def _by_column(x: Floats, y: Floats, to_all: Callable[[Floats, Floats], Floats]) -> Floats:
    """to_all() of each column of x with the columns of y; where y is x, each pair once."""
    out = np.empty((x.shape[1], y.shape[1]))
    for i in range(x.shape[1]):
        if y is x:
            out[i, i:] = out[i:, i] = to_all(x[:, i : i + 1], x[:, i:])
        else:
            out[i] = to_all(x[:, i : i + 1], y)
    return out


def _standardised(x: Floats) -> Floats:
    """Columns with mean 0 and length 1; a constant column becomes zeros."""
    centred = x - x.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    flat = length <= FLAT * np.maximum(np.linalg.norm(x, axis=0), np.finfo(np.float64).tiny)
    return _divided(centred, np.where(flat, 0.0, length))


def _divided(a: Floats | np.float64, b: Floats) -> Floats:
    """a / b, and 0 where b is 0."""
    top, bottom = np.broadcast_arrays(a, b)
    out: Floats = np.divide(top, bottom, out=np.zeros(bottom.shape), where=bottom != 0)
    return out
