"""Stalk: how two datasets, or two models, relate.

For a pair, straight lines are fitted before and after bending one side or both, and the fit with the largest R^2 names
the relation; under 0.5 there is NONE. R^2 is that of the fitted line, in the space in which it is straight, so it is a
squared correlation and both directions of a fit have the same one.

    scheme    LINEAR   EXPONENTIAL                      POWER-LAW
    simba     y ~ x    log1p of one side, either one    square of one side, either one
    loglog    y ~ x    log of one side, either one      log of both sides

`simba` is what fits the paper's printed counts best; the paper does not say which transforms it used. `loglog` is the
textbook's. It looks only at the models whose scores are above 0 on both datasets, for all three fits. Of equal fits the
simpler wins: LINEAR, EXPONENTIAL, POWER-LAW. A constant column relates to nothing, and so does a pair with fewer than
three scores in common, through which a line always passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.matrix import Matrix, usable
from earmark.analysis.similarities import all_pairs, correlations
from earmark.errors import InputError, UsageError

Floats = NDArray[np.float64]
Scheme = Literal["simba", "loglog"]
Fit = Callable[[Floats, Floats], Floats]

KINDS = ("LINEAR", "EXPONENTIAL", "POWER-LAW", "NONE")
NONE = KINDS.index("NONE")
WEAKEST = 0.5
TIE = 1e-12
FEWEST = 3


class Relations(NamedTuple):
    """All pairs of the columns of a matrix.

    kind    [d, d] places in KINDS, symmetric; a column with itself is LINEAR
    r2      [d, d] R^2 of the best fit, also where it is too small to count; 1 on the diagonal
    counts  pairs of each kind, each pair once
    """

    names: tuple[str, ...]
    kind: NDArray[np.int8]
    r2: Floats
    counts: dict[str, int]


class Stalk(NamedTuple):
    datasets: Relations
    models: Relations


def relations(
    values: Floats, names: tuple[str, ...] | None = None, scheme: Scheme = "simba", weakest: float = WEAKEST
) -> Relations:
    """The relations of the columns of normalised values [n, d], NaN where missing; give the transpose for the rows."""
    if scheme not in _SCHEMES:
        raise UsageError(f'The scheme is "simba" or "loglog", not {scheme!r}.')
    scores = np.asarray(values, np.float64)
    if scheme == "loglog":
        scores = np.where(scores > 0, scores, np.nan)
    elif (scores < 0).any():
        raise InputError("Relations need scores of at least 0; normalise the matrix, clipped at chance, first.")
    fits = []
    for fit in _SCHEMES[scheme]:
        found, common = all_pairs(scores, fit)
        fits.append(np.where(common >= FEWEST, found, 0.0))
    r2 = fits[0]
    kind = np.zeros(r2.shape, np.int8)
    for place, fit_r2 in enumerate(fits[1:], start=1):
        better = fit_r2 > r2 + TIE
        kind[better] = place
        r2 = np.where(better, fit_r2, r2)
    kind[r2 < weakest - TIE] = NONE
    np.fill_diagonal(kind, 0)
    np.fill_diagonal(r2, 1.0)
    above = kind[np.triu_indices(len(kind), 1)]
    counts = {name: int((above == place).sum()) for place, name in enumerate(KINDS)}
    return Relations(names or tuple(str(j) for j in range(len(kind))), kind, r2, counts)


def stalk(matrix: Matrix, scheme: Scheme = "simba", weakest: float = WEAKEST) -> Stalk:
    """The relations between datasets and between models."""
    left = usable(matrix)
    values = left.normalised()
    return Stalk(
        relations(values, left.datasets, scheme, weakest),
        relations(values.T, left.models, scheme, weakest),
    )


def linkage(found: Relations) -> Floats:
    """A dendrogram of the columns, as scipy's linkage matrix [d - 1, 4]: average linkage of the distances 1 - R^2."""
    from scipy.cluster.hierarchy import linkage as link
    from scipy.spatial.distance import squareform

    if len(found.names) < 2:
        raise InputError("A dendrogram needs at least two columns.")
    apart = np.clip(1 - found.r2, 0.0, None)
    np.fill_diagonal(apart, 0.0)
    return np.asarray(link(squareform(apart, checks=False), method="average"), np.float64)


def _straight(x: Floats, y: Floats) -> Floats:
    return correlations(x, y) ** 2


def _bent(bend: Callable[[Floats], Floats]) -> Fit:
    """One side bent, whichever gives the better line."""
    return lambda x, y: np.maximum(_straight(bend(x), y), _straight(x, bend(y)))


_SCHEMES: dict[str, tuple[Fit, Fit, Fit]] = {
    "simba": (_straight, _bent(np.log1p), _bent(np.square)),
    "loglog": (_straight, _bent(np.log), lambda x, y: _straight(np.log(x), np.log(y))),
}
