"""Fidelity and coverage as pure functions of ball counts; how the counts are found is `earmark.fidelity.balls`.

N real points i, M generated points j, D_ij their distances. r_i is the distance from real i to its k-th other real
point, s_j the same among generated points. "Inside" is D <= r; where a metric says "strictly", D < r.

    precision         share of j inside the ball of some i                                 [0, 1]
    density           mean over j of (balls that j is inside) / k                          [0, N/k], about 1 when alike
    coverage          share of balls i with some j inside                                  [0, 1]
    recall            share of i inside the ball of some j                                 [0, 1]
    sym_precision     min of precision and the share of balls j with some i inside, strictly               [0, 1]
    sym_recall        min of recall and coverage, strictly                                 [0, 1]
    p_precision       mean over j of 1 - product over i of min(D_ij / R, 1), R = 1.2 mean r                [0, 1]
    p_recall          the same over i with R = 1.2 mean s                                  [0, 1]
    precision_cover   share of balls j with at least k real points inside, s_j to the (3k - 1)-th other    [0, 1]
    recall_cover      share of balls i with at least k generated points inside, r_i likewise               [0, 1]
    clipped_density   mean over j of min(balls / k, 1), r_i cut at the median r, over the same mean for the real
                      points themselves                                                    [0, 1] capped, else 0 and up
    clipped_coverage  the share c of filled places, k to a ball, strictly; then the share of M good points that
                      would be expected to fill as many                                    [0, 1]

Higher is better for all. Ties: a point at exactly the radius is inside unless strictly is said. Sets of fewer than
k + 1 points have no such balls and are refused before. Precision, recall: Kynkäänniemi et al. 2019; density, coverage:
Naeem et al. 2020; symmetric: Khayatkhoei and AbdAlmageed 2023; P: Park and Kim 2023; cover: Cheema and Urner 2023;
clipped: Salvy et al. 2025.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SPREAD = 1.2  # the `a` of P-precision and P-recall


def met(counts: Ints, least: int = 1) -> Floats:
    """1 for every point inside, or ball around, at least `least`; else 0."""
    return (counts >= least).astype(np.float64)


def filled(counts: Ints, k: int) -> Floats:
    """Counts as a share of k, no more than 1."""
    return np.asarray(np.minimum(counts, k) / k)


def closeness(logs: Floats) -> Floats:
    """1 - product of min(D / R, 1), from the sum of the logarithms; 1 where a distance is 0."""
    return np.asarray(0.0 - np.expm1(logs))


def clipped_radii(radii: Floats) -> Floats:
    """Radii cut at their median: no outlier has a wide ball."""
    return np.minimum(radii, np.median(radii))


def clipped_density(mean: Floats, reference: float, *, cap: bool = True) -> Floats:
    """The mean filling of generated points over that of real points, cut at 1 unless `cap` is False."""
    ratio = np.asarray(mean / reference)
    return np.minimum(ratio, 1.0) if cap else ratio


def clipped_coverage(
    mean: Floats, k: int, real: int, generated: int, reference: float = 1.0, *, beyond: int = 1
) -> Floats:
    """The share of `generated` good points that would be expected to fill as many places as were filled.

    No more than 1, or with `beyond` about that many times as much: how far the filling is above what is needed for 1.

    `mean` and `reference` are means over the k places of each of `real` balls, so each is a whole number of places over
    k * `real`. They are compared with f(m) as such: where both are the very same fraction, no rounding may decide.
    """
    places = k * real
    of = round(reference * places)
    filled_places = np.rint(np.asarray(mean) * places).astype(np.int64)
    steps = [_steps_below(int(count), of, k, real, beyond * generated) for count in filled_places.ravel()]
    return np.reshape(np.asarray(steps) / (generated + 1), filled_places.shape)


@lru_cache(maxsize=4096)
def _steps_below(filled_places: int, of: int, k: int, real: int, most: int) -> int:
    """How many of f(0), ..., f(most) lie under the fraction filled_places / of."""
    share = Fraction(filled_places, of)
    return bisect_left(range(most + 1), share, key=lambda m: expected_filling(m, k, real))


def expected_filling(m: int, k: int, real: int) -> Fraction:
    """f(m): the expected share of filled places, k to a ball, when m good points are generated; exact.

    The share of the distribution inside the ball to the k-th of N - 1 others is Beta(k, N - k), so the number J of m
    points inside is beta-binomial, and f(m) = E[min(J, k)] / k = 1 - sum over j < k of (k - j) P(J = j) / k, with

        P(J = j) = C(m, j) k (k + 1) ... (k + j - 1) (N - 1) ... (N - k) / ((N + m - 1) ... (N + m - k - j))

    As its authors have it, f(m) = 0 for m < k. From there on it grows with m.
    """
    if m < k:
        return Fraction(0)
    missing, among = 0, prod(range(real - k, real))  # over (N + m - 1) ... (N + m - k - j), which grows with j
    for j in range(k):
        missing = missing * (real + m - k - j) + (k - j) * among
        among = among * (m - j) * (k + j) // (j + 1)
    return 1 - Fraction(missing, k * prod(range(real + m - 2 * k + 1, real + m)))
