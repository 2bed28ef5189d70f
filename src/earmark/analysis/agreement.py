"""Which metrics, and which distances, put the models in the same order.

A configuration is a system under a distance (and a correction and a protocol). Its value of a metric is the mean over
subsets; two metrics, or two distances, agree as far as these means have the same order. A metric of which less is
better is turned round: agreement is positive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from earmark import published
from earmark.analysis.prowl import swapped_pairs
from earmark.errors import InputError
from earmark.scores import VOCSIM_SUBSETS, Scores, metric_facts

Floats = NDArray[np.float64]
Configuration = tuple[str, str, str, str]
Key = TypeVar("Key", tuple[str, ...], tuple[str, str, str, str])

COSTS = frozenset(
    "kbps header_kbps entropy_kbps delay_ms encode_rtf decode_rtf parameters_m macs_g peak_memory_gb".split()
)
"""What a system costs: no quality that another metric could agree with."""
FEWEST = 4
"""Configurations: among three, two orders agree or disagree wholly by chance."""


class Agreement(NamedTuple):
    """How two metrics, or two distances, order the same models.

    rho       Spearman's rank correlation, tau Kendall's tau-b, both over the `n` models that have both values
    swapped   the share of pairs of models that the two put in opposite orders; ties count as neither
    same_top  whether the best model is the same
    """

    kind: str
    under: str
    one: str
    other: str
    n: int
    rho: float
    tau: float
    swapped: float
    same_top: bool


class Printed(NamedTuple):
    """One pair of metrics in VocSim's Table 12 and in what the printed full tables give, in four readings.

    public, all19  means over the 15 public or all 19 subsets, then Spearman over configurations
    by_subset      Spearman on each subset, averaged; pooled: Spearman over all cells at once

    CS and CSCF, of which less is better, are turned round here: the signs of the printed table are those of metrics of
    which more is better.
    """

    one: str
    other: str
    printed: float
    public: float
    all19: float
    by_subset: float
    pooled: float
    n: int


def distance_agreement(scores: Scores) -> list[Agreement]:
    """Every pair of distances, for each metric: do they put the systems in the same order?"""
    means = _means(scores)
    found = []
    for metric, cells in means.items():
        by_distance: dict[str, dict[tuple[str, ...], float]] = {}
        for (system, distance, *rest), value in cells.items():
            by_distance.setdefault(distance, {})[(system, *rest)] = value
        for one, other in combinations(by_distance, 2):
            pair = by_distance[one], by_distance[other]
            found += _agreement("distance", metric, one, other, pair, (metric, metric))
    return found


def metric_agreement(scores: Scores) -> list[Agreement]:
    """Every pair of metrics of quality, over all configurations: do they put them in the same order?"""
    means = {metric: values for metric, values in _means(scores).items() if metric not in COSTS}
    return [
        entry
        for one, other in combinations(means, 2)
        for entry in _agreement("metric", "all configurations", one, other, (means[one], means[other]), (one, other))
    ]


def _agreement(
    kind: str, under: str, one: str, other: str, means: Sequence[Mapping[Key, float]], metrics: Sequence[str]
) -> list[Agreement]:
    """How two orders agree, or nothing where they cannot be compared; `means` and `metrics` are those of both."""
    shared = [key for key in means[0] if key in means[1]]
    x, y = (
        _turn(metric) * np.array([values[key] for key in shared]) for values, metric in zip(means, metrics, strict=True)
    )
    if len(shared) < FEWEST or np.ptp(x) <= 1e-12 or np.ptp(y) <= 1e-12:
        return []
    from scipy.stats import kendalltau

    swapped = swapped_pairs(x, y)
    same = int(x.argmax()) == int(y.argmax())
    tau = float(kendalltau(np.round(x, 12), np.round(y, 12)).statistic)
    return [Agreement(kind, under, one, other, len(shared), _spearman(x, y), tau, swapped, same)]


def _turn(metric: str) -> int:
    try:
        return 1 if metric_facts(metric).higher_is_better else -1
    except InputError:
        return 1


def _spearman(x: Floats, y: Floats) -> float:
    from scipy.stats import rankdata

    return float(np.corrcoef(rankdata(np.round(x, 12)), rankdata(np.round(y, 12)))[0, 1])


def _means(scores: Scores) -> dict[str, dict[Configuration, float]]:
    """The mean over subsets of every configuration that has a value on each subset of its metric."""
    cells = _by_subset(scores)
    found: dict[str, dict[Configuration, float]] = {}
    for metric, subsets in cells.items():
        whole = set.intersection(*(set(values) for values in subsets.values())) if subsets else set()
        first = next(iter(subsets.values()), {})
        found[metric] = {
            key: float(np.mean([values[key] for values in subsets.values()])) for key in first if key in whole
        }
    return found


def _by_subset(scores: Scores) -> dict[str, dict[str, dict[Configuration, float]]]:
    """metric -> subset -> configuration -> value, of the measured rows of single subsets."""
    found: dict[str, dict[str, dict[Configuration, float]]] = {}
    for row in scores:
        if row.status != "ok" or row.value is None or not row.single or row.statistic:
            continue
        key = (row.system, row.distance, row.correction, row.protocol)
        found.setdefault(row.metric, {}).setdefault(f"{row.suite}/{row.subset}", {})[key] = row.value
    return found


# --- VocSim's Table 12 ------------------------------------------------------------------------------------------


def table12() -> list[Printed]:
    """VocSim's printed correlations of metrics beside those that follow from its printed full tables.

    Silhouette is in Table 12 and tabulated nowhere, so it is left out. Means are over the cells that a configuration
    has, as in the paper's own averages, which count rows that repeat others too.
    """
    cells = _by_subset(published.load("vocsim", with_repeats=True))
    public = {f"vocsim/{subset.name}" for subset in VOCSIM_SUBSETS if subset.status == "public"}
    every = {f"vocsim/{subset.name}" for subset in VOCSIM_SUBSETS}
    rows = published.read("vocsim_table12_metric_correlations")
    names = [row["metric"] for row in rows if row["metric"] in cells]
    printed = {(row["metric"], other): row[other] for row in rows for other in row if other != "metric"}
    found = []
    for one, other in combinations(names, 2):
        over_public = _over(cells[one], cells[other], sorted(public))
        over_all = _over(cells[one], cells[other], sorted(every))
        single = [_over(cells[one], cells[other], [subset]) for subset in sorted(every)]
        pairs = [
            (values[key], cells[other][subset][key])
            for subset, values in cells[one].items()
            for key in values
            if key in cells[other].get(subset, {})
        ]
        pooled = np.array(pairs)
        turned = _turn(one) * _turn(other)
        found.append(
            Printed(
                one, other, float(printed[one, other]), turned * _spearman(*over_public),
                turned * _spearman(*over_all), turned * float(np.mean([_spearman(*columns) for columns in single])),
                turned * _spearman(pooled[:, 0], pooled[:, 1]), len(over_public[0]),
            )
        )  # fmt: skip
    return found


def _over(
    one: Mapping[str, Mapping[Configuration, float]],
    other: Mapping[str, Mapping[Configuration, float]],
    subsets: Sequence[str],
) -> tuple[Floats, Floats]:
    """The means of two metrics over subsets, as the paper averages: over the cells that a configuration has."""
    columns: list[dict[Configuration, float]] = [{}, {}]
    for means, table in zip(columns, (one, other), strict=True):
        cells: dict[Configuration, list[float]] = {}
        for subset in subsets:
            for key, value in table.get(subset, {}).items():
                cells.setdefault(key, []).append(value)
        means.update({key: float(np.mean(values)) for key, values in cells.items()})
    order = [key for key in columns[0] if key in columns[1]]
    return np.array([columns[0][key] for key in order]), np.array([columns[1][key] for key in order])
