"""Hubness: how unevenly points appear in each other's neighbour lists.

N_k(x) counts the points that have x among their k nearest; its mean is k.

    hub_ratio     mean N_k of the ceil(1 % of N) points with the highest N_k, over k   [0, N/k]; 1 is even
    antihub_rate  share of points with N_k = 0                                         [0, 1]
    hub_skew      skewness of N_k (population form); 0 when all are equal
    robin_hood    half the mean absolute deviation of N_k over its mean                [0, 1]

Lower is better for all. (Low et al. 2013; Flexer & Schnitzer 2015; Radovanovic et al. 2010; Feldbauer et al. 2018)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.scores.metrics import FRACTION, UNBOUNDED, metric

Floats = NDArray[np.float64]

TOP_SHARE = 0.01
SURE = 4.0  # times the standard error of a variance, from which on a ratio to it means something


def k_occurrences(neighbour_places: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """N_k of every place from neighbour lists [N, >= k] (entries of -1 are no neighbour)."""
    listed = neighbour_places[:, :k].ravel()
    return np.bincount(listed[listed >= 0], minlength=len(neighbour_places))


@metric(
    range=(0.0, math.inf), higher_is_better=False, title="hub ratio, 1 is even",
    words="how often the top 1 % of clips appear as neighbours, relative to even; 1 is even",
    paper="Low et al., 2013",
)  # fmt: skip
def hub_ratio(occurrences: NDArray[np.int64], k: int) -> float:
    top = math.ceil(TOP_SHARE * len(occurrences))
    return float(np.sort(occurrences)[-top:].mean() / k)


@metric(
    range=FRACTION, higher_is_better=False, percent=True, words="share of clips that are nobody's neighbour",
    title="antihubs, in no list", paper="Flexer and Schnitzer, 2015",
)  # fmt: skip
def antihub_rate(occurrences: NDArray[np.int64]) -> float:
    return float((occurrences == 0).mean())


@metric(
    range=UNBOUNDED, higher_is_better=False, words="skewness of how often clips appear as neighbours; 0 is even",
    paper="Radovanovic et al., 2010",
)  # fmt: skip
def hub_skew(occurrences: NDArray[np.int64]) -> float:
    deviation = occurrences - occurrences.mean()
    variance = float((deviation**2).mean())
    return float((deviation**3).mean() / variance**1.5) if variance > 0 else 0.0


def sampled_skew(lists: NDArray[np.int64], n: int, sure: float = SURE) -> float:
    """`hub_skew` of n points from the lists [m, k] of m of them, drawn without replacement; NaN where m is too small:
    where the spread of N_k is less than `sure` times what chance makes of it if every point is in k lists.

    How many of these lists a point is in is hypergeometric given N_k, so sums of seen (seen - 1) ... give unbiased
    moments of N_k (`sampled_moments`), where the skewness of `seen` itself is that of chance alone. The ratio of two
    unbiased moments has a bias of its own, far below its error (docs/large.md).
    """
    seen = np.bincount(lists[lists >= 0], minlength=n).astype(np.float64)
    sums = seen.sum(), (seen * (seen - 1)).sum(), (seen * (seen - 1) * (seen - 2)).sum()
    moments = sampled_moments(*sums, np.float64(len(lists)), np.float64(n))
    chance = lists.shape[1] * np.sqrt(2.0 * n) / len(lists) * (1.0 - len(lists) / n)
    return float(skew_of(*moments)) if moments[1] > sure * chance else np.nan


def sampled_moments(first: Any, second: Any, third: Any, queries: Any, n: Any) -> tuple[Floats, Floats, Floats]:
    """Mean of N_k and unbiased second and third central moments, where the mean is that of the lists seen.

    From sums over the points of seen, seen (seen - 1) and seen (seen - 1) (seen - 2); NaN for fewer than 3 queries.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        share = 1.0 / queries
        mean = first * share
        share = share * (n - 1) / (queries - 1)
        second = second * share
        share = share * (n - 2) / np.where(queries > 2, queries - 2.0, np.nan)
        third = third * share
    cube = third + 3.0 * second + mean - 3.0 * mean * (second + mean) + 2.0 * mean**3
    return mean, second + mean - mean**2, cube


def skew_of(mean: Floats, variance: Floats, cube: Floats) -> Floats:
    """Skewness from moments; NaN where the variance came out as nothing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(variance > 0.0, cube / variance**1.5, np.nan)


@metric(
    range=FRACTION, higher_is_better=False, percent=True,
    words="share of neighbour appearances to take from the frequent and give to the rare until all are equal",
    paper="Feldbauer et al., 2018",
)  # fmt: skip
def robin_hood(occurrences: NDArray[np.int64]) -> float:
    total = float(occurrences.sum())
    return float(0.5 * np.abs(occurrences - occurrences.mean()).sum() / total) if total > 0 else 0.0
