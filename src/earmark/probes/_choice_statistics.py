"""How choices go with differences of distances: agreement and rank correlations, with their values without each unit.

Choices are +1 (A) and -1 (B), so both correlations follow from one sum over pairs of judgements with different choices,

    P = sum over i that chose A, j that chose B of sign(difference_i - difference_j)

    Spearman   P / sqrt(4 n_A n_B / n * (n^3 - n - sum over ties (t^3 - t)) / 12)     average ranks on ties
    Kendall    P / sqrt(n_A n_B (n (n - 1) / 2 - sum over ties t (t - 1) / 2))        tau-b

With n_A n_B in place of P they are as large as they can be: a perfect order of as many choices of A as of B has 0.87
and 0.71. The P of the judgements without a unit is P less the pairs that hold one of its judgements.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def shares_without(hits: NDArray[np.bool_], units: Ints) -> Floats:
    """The share of hits without each unit; NaN where nothing is left."""
    lost = np.bincount(units, hits)
    left = len(hits) - np.bincount(units)
    return np.where(left > 0, (hits.sum() - lost) / np.maximum(left, 1), np.nan)


class Correlation(NamedTuple):
    """A rank correlation and its values without each unit, NaN where there is none.

    `most` is the largest size that it can have: with two choices alone even a perfect order does not reach 1.
    """

    value: float
    without: Floats
    most: float


def correlations(differences: Floats, choices: Ints, units: Ints) -> tuple[Correlation, Correlation]:
    """Spearman's and Kendall's correlation of differences with choices of +1 and -1.

    NaN where all choices, or all differences, are the same. `units` numbers the unit of each judgement from 0.
    """
    _, ties = np.unique(differences, return_inverse=True)
    ties = np.asarray(ties, np.int64).ravel()
    chose_a = choices > 0
    count = int(units.max(initial=-1)) + 1
    pairs = _signs(ties, chose_a)
    total = float(pairs.sum()) / 2.0
    n, n_a = float(len(choices)), float(chose_a.sum())
    per_unit = np.bincount(units, minlength=count).astype(float)
    a_per_unit = np.bincount(units[chose_a], minlength=count).astype(float)
    within, cubes_lost, squares_lost = _inside(ties, chose_a, units, count)
    sizes = np.bincount(ties).astype(float)
    cubes, squares = float((sizes**3 - sizes).sum()), float((sizes**2 - sizes).sum())
    left = total - np.bincount(units, pairs, minlength=count) + within
    everything = _both(np.array([total]), np.array([n]), np.array([n_a]), np.array([cubes]), np.array([squares]))
    without = _both(left, n - per_unit, n_a - a_per_unit, cubes - cubes_lost, squares - squares_lost)
    perfect = _both(np.array([n_a * (n - n_a)]), np.array([n]), np.array([n_a]), np.array([cubes]), np.array([squares]))
    spearman, kendall = (
        Correlation(float(value[0]), left_out, float(most[0]))
        for value, left_out, most in zip(everything, without, perfect, strict=True)
    )
    return spearman, kendall


def _both(pairs: Floats, n: Floats, n_a: Floats, cubes: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """Spearman's and Kendall's correlation from the sums above."""
    chosen = n_a * (n - n_a)
    with np.errstate(divide="ignore", invalid="ignore"):
        ranks = np.maximum(4.0 * chosen / n, 0.0) * (n**3 - n - cubes) / 12.0
        untied = chosen * (n**2 - n - squares) / 2.0
        spearman = np.where(ranks > 0.5, pairs / np.sqrt(ranks), np.nan)
        kendall = np.where(untied > 0.5, pairs / np.sqrt(untied), np.nan)
    return np.clip(spearman, -1.0, 1.0), np.clip(kendall, -1.0, 1.0)


def _signs(ties: Ints, chose_a: NDArray[np.bool_]) -> Floats:
    """What each judgement adds to P, over all judgements with the other choice; their sum is 2 P."""
    levels = int(ties.max(initial=-1)) + 1
    a, b = (np.bincount(ties[chosen], minlength=levels).astype(float) for chosen in (chose_a, ~chose_a))
    # Of the other choice: how many differences lie below, less how many lie above.
    below_b, below_a = np.cumsum(b) - b, np.cumsum(a) - a
    of_a = below_b - (b.sum() - below_b - b)
    of_b = (a.sum() - below_a - a) - below_a
    return np.asarray(np.where(chose_a, of_a[ties], of_b[ties]), np.float64)


def _inside(ties: Ints, chose_a: NDArray[np.bool_], units: Ints, count: int) -> tuple[Floats, Floats, Floats]:
    """Per unit: the P of its own judgements, and what the sums over ties lose without it."""
    sizes = np.bincount(ties).astype(float)
    cells, times = np.unique(units * len(sizes) + ties, return_counts=True)
    owners, before = cells // len(sizes), sizes[cells % len(sizes)]
    after = before - times.astype(float)
    cubes, squares = (
        np.asarray(np.bincount(owners, before**power - before - after**power + after, minlength=count), np.float64)
        for power in (3, 2)
    )
    within = np.zeros(count)
    order = np.argsort(units, kind="stable")
    starts = np.searchsorted(units[order], np.arange(count + 1))
    for unit in np.flatnonzero(np.diff(starts) > 1):
        rows = order[starts[unit] : starts[unit + 1]]
        _, own = np.unique(ties[rows], return_inverse=True)
        within[unit] = float(_signs(np.asarray(own, np.int64).ravel(), chose_a[rows]).sum()) / 2.0
    return within, cubes, squares
