"""One number for a codec on a dataset: the published overall score, one that does not saturate, and what it tracks.

    overall               harmonic mean of z:  (PESQ + 0.5) / 5,  STOI,  F0 correlation,  sigmoid(1 / d) for distances
    overall_unsaturated   harmonic mean of z:  (PESQ - 1.043) / (4.6438 - 1.043),  STOI,  F0 correlation, each cut to
                          [0, 1],  and  1 / (1 + d / 2) for distances

The metrics of a category are the paper's. A metric is averaged over the clips of a dataset first, then normalised, then
combined (`overall` of means); the other order is `overall` of each clip, averaged by whoever wants it. The paper does
not say which it used; published means, put through the formula, come within 0.015 of its tables.

Wu et al., Codec-SUPERB, Findings of ACL 2024, section 3.1.3. The sigmoid's argument is not printed there; 1/d is what
reproduces the published numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.contract import CATEGORIES, Category, Measured
from earmark.errors import UsageError
from earmark.scores import Row, harmonic_mean
from earmark.scores import metrics as records

METRICS_OF: dict[Category, tuple[str, ...]] = {
    "speech": ("stft_distance", "mel_distance", "pesq", "stoi"),
    "audio": ("stft_distance", "mel_distance"),
    "music": ("stft_distance", "mel_distance", "pesq", "stoi", "f0_corr"),
}
"""The metrics that a category's overall score combines."""

HALF_DISTANCE = 2.0
"""The distance at which half is lost: 10 dB between the two spectrograms, on average, at each of two resolutions."""

PESQ_RANGE = (1.0428, 4.6438)
"""What wide-band PESQ can return: its mapping at raw scores of -0.5 and 4.5."""

DISTANCES = ("stft_distance", "mel_distance")
"""Metrics whose windows are counted in samples of the clip: values at different sampling rates are not of one scale."""

_Scale = Callable[[str, float], float]


@records.metric(
    range=(0.0, 1.03), words="harmonic mean of normalised metrics, as published"
)  # wide-band PESQ passes 4.5
def overall(means: Mapping[str, float | None], category: Category) -> Measured:
    """The published overall score from the mean of each metric; 0 to 1.03, higher is better.

    Not applicable when a metric of the category is missing, and where the harmonic mean is undefined because a
    normalised value is 0 or below (an F0 correlation can be).
    """
    scaled = _combined(means, category, normalised)
    return scaled if isinstance(scaled, Measured) else _harmonic(scaled)


@records.metric(range=records.FRACTION, words="harmonic mean of normalised metrics, without saturation")
def overall_unsaturated(means: Mapping[str, float | None], category: Category) -> Measured:
    """The same without saturation; 0 to 1, higher is better, 1 exactly for a codec that changes nothing.

    A normalised value of 0 makes it 0, to which the harmonic mean tends. Not applicable when a metric is missing.
    """
    scaled = _combined(means, category, unsaturated)
    if isinstance(scaled, Measured):
        return scaled
    return Measured(0.0) if min(scaled.values()) == 0.0 else _harmonic(scaled)


def overall_of_datasets(values: Iterable[float | None]) -> Measured:
    """The harmonic mean of the overall scores of several datasets: how the paper makes a category's score."""
    scores = list(values)
    missing = sum(value is None for value in scores)
    if not scores or missing:
        return Measured.not_applicable(f"{missing} of {len(scores)} datasets have no overall score")
    return _harmonic({f"dataset {place}": value for place, value in enumerate(scores, 1) if value is not None})


def normalised(metric: str, value: float) -> float:
    """A metric's mean as the published score takes it: distances into (0.5, 1], PESQ into about [0.3, 1.03]."""
    if metric in DISTANCES:
        return 1.0 if value <= 0.0 else 1.0 / (1.0 + math.exp(-1.0 / value))
    return (value + 0.5) / 5.0 if metric == "pesq" else value


def unsaturated(metric: str, value: float) -> float:
    """A metric's mean in [0, 1] without saturation."""
    if metric in DISTANCES:
        return 1.0 / (1.0 + max(value, 0.0) / HALF_DISTANCE)
    if metric == "pesq":
        low, high = PESQ_RANGE
        value = (value - low) / (high - low)
    return min(max(value, 0.0), 1.0)


def _combined(means: Mapping[str, float | None], category: Category, scale: _Scale) -> dict[str, float] | Measured:
    if category not in CATEGORIES:
        raise UsageError(f"A category is {', '.join(CATEGORIES)}, not {category!r}.")
    values = {metric: means.get(metric) for metric in METRICS_OF[category]}
    missing = [metric for metric, value in values.items() if value is None or not math.isfinite(value)]
    if missing:
        return Measured.not_applicable(f"no value of {', '.join(missing)}")
    return {metric: scale(metric, value) for metric, value in values.items() if value is not None}


def _harmonic(values: Mapping[str, float]) -> Measured:
    below = [f"{name} ({value:.3g})" for name, value in values.items() if value <= 0.0]
    if below:
        return Measured.not_applicable(f"the harmonic mean needs positive values: {', '.join(below)}")
    return Measured(harmonic_mean(list(values.values())))


# --- which metrics the score follows ----------------------------------------------------------------------------


class Correlation(NamedTuple):
    """How one metric moves with another over codecs, averaged over the datasets of a category.

    `correlation` and `p_value` are means over `datasets` datasets, each over at least `fewest` codecs; None, with the
    reason, where no dataset has enough.
    """

    metric: str
    category: str
    correlation: float | None
    p_value: float | None
    datasets: int
    fewest: int
    reason: str = ""


Cells = Mapping[tuple[str, str], Mapping[str, float | None]]
"""{(dataset, codec): {metric: value}}"""

FEWEST_CODECS = 3


def cells_of(rows: Iterable[Row], protocol: str = "all") -> dict[tuple[str, str], dict[str, float | None]]:
    """Rows of a score table as `metric_correlations` wants them: what was measured, without means over datasets."""
    cells: dict[tuple[str, str], dict[str, float | None]] = {}
    for row in rows:
        if row.status == "ok" and row.protocol == protocol and not row.aggregate:
            cells.setdefault((row.subset, row.system), {})[row.metric] = row.value
    return cells


def metric_correlations(
    cells: Cells, categories: Mapping[str, Category], *, against: str = "overall",
    metrics: Iterable[str] | None = None, method: Literal["pearson", "spearman"] = "pearson",
) -> list[Correlation]:  # fmt: skip
    """Table 4 of Codec-SUPERB for any run: which metrics the overall score, or any other, goes with.

    On each dataset, over codecs, the correlation of a metric with `against` and its two-sided p-value; then their means
    over the datasets of a category, as in the paper. `categories` says of which category a dataset is. `metrics` are
    those of the category's overall score when not given. A dataset on which fewer than three codecs have both values,
    or one of them does not vary, is left out and counted in the reason. A mean of p-values is no p-value; it is what
    the paper prints.
    """
    from scipy import stats

    wanted = None if metrics is None else tuple(metrics)
    correlate = stats.pearsonr if method == "pearson" else stats.spearmanr
    correlations = []
    for category in dict.fromkeys(categories.values()):
        datasets = [dataset for dataset, mine in categories.items() if mine == category]
        for metric in METRICS_OF[category] if wanted is None else wanted:
            pairs = [both for both in (_both(cells, dataset, metric, against) for dataset in datasets) if len(both)]
            results = [correlate(both[:, 0], both[:, 1]) for both in pairs]
            left_out = len(datasets) - len(pairs)
            correlations.append(
                Correlation(
                    metric,
                    category,
                    correlation=float(np.mean([result.statistic for result in results])) if results else None,
                    p_value=float(np.mean([result.pvalue for result in results])) if results else None,
                    datasets=len(pairs),
                    fewest=min(map(len, pairs), default=0),
                    reason=f"{left_out} of {len(datasets)} datasets left out: too few codecs that differ"
                    if left_out
                    else "",
                )
            )
    return correlations


def _both(cells: Cells, dataset: str, metric: str, against: str) -> NDArray[np.float64]:
    """Rows (metric, against) of the codecs that have both on a dataset; none where they cannot be correlated."""
    rows = [
        (values[metric], values[against])
        for (mine, _), values in cells.items()
        if mine == dataset and values.get(metric) is not None and values.get(against) is not None
    ]
    both = np.array(rows, np.float64).reshape(-1, 2)
    enough = len(both) >= FEWEST_CODECS and bool((np.ptp(both, axis=0) > 0).all())
    return both if enough else both[:0]
