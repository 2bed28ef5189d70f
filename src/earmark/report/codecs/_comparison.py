"""What a table of codecs says about rates: curves of families, the front, BD-rates, and steps that go the wrong way.

And what a report on codecs is made of: plain values, gathered by whoever ran them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.pareto import pareto_front
from earmark.codecs.contract import CodecCard, Measured
from earmark.codecs.overall import METRICS_OF
from earmark.codecs.rate_distortion import (
    Curve,
    Monotonicity,
    Point,
    bd_rate,
    curves,
    monotonicity,
    shared_range,
)
from earmark.errors import UsageError, did_you_mean
from earmark.report.metric_text import facts
from earmark.scores import Row, Scores
from earmark.submissions import Dataset

LADDER = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Rates (kbps) for which a winner is named."""
PREFERRED = (
    "overall", "overall_unsaturated", "pesq", "stoi", "mel_distance", "stft_distance", "visqol", "zimtohrli", "wer",
    "dwer", "eer", "accuracy", "aec_map", "er_accuracy", "P@1",
)  # fmt: skip
"""Metrics that are drawn against the rate, in this order, where they were measured."""


Failures = Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]
"""{subset: {codec: {"coding" or a metric: clips that failed}}}, with every codec of the run."""


class Failing(NamedTuple):
    """Clips that a setting failed on, of all clips."""

    clips: int
    total: int


class BdRate(NamedTuple):
    """How much more rate `family` needs than `anchor` for the same score, on average."""

    anchor: str
    family: str
    change: Measured
    shared: tuple[float, float] | None = None  # the scores that both reach, where there is a value


class Comparison(NamedTuple):
    """One metric on one subset, over all settings that have a value and a rate."""

    subset: str
    metric: str
    protocol: str
    higher_is_better: bool
    points: tuple[Point, ...]
    curves: dict[str, Curve]
    front: tuple[Point, ...]  # lowest rate first
    monotonicity: Monotonicity
    bd_rates: tuple[BdRate, ...]
    rows: dict[str, Row]  # by system, for intervals
    lossless: frozenset[str] = frozenset()  # families that lose nothing: anchors
    left_out: Mapping[str, Failing] = MappingProxyType({})  # settings that failed where others did not

    @property
    def whole(self) -> tuple[Point, ...]:
        """The settings that may win: a mean without the clips that were too hard would win by failing."""
        return tuple(point for point in self.points if point.system not in self.left_out)


def failing(failed: Failures, dataset: Dataset, metric: str) -> dict[str, Failing]:
    """The settings that failed on clips which another setting did not fail on, for what the metric needs."""
    parts = METRICS_OF[dataset.category] if metric.startswith("overall") else (metric,)
    own = {
        system: {clip for what in ("coding", *parts) for clip in clips.get(what, ())}
        for system, clips in failed.get(dataset.subset, {}).items()
    }
    everybody = set.intersection(*own.values()) if own else set()
    apart = {system: len(clips - everybody) for system, clips in own.items()}
    return {system: Failing(clips, dataset.clips) for system, clips in apart.items() if clips}


def compare_settings(
    scores: Scores,
    cards: Mapping[str, CodecCard],
    subset: str,
    metric: str,
    *,
    protocol: str = "all",
    anchor: str | None = None,
    left_out: Mapping[str, Failing] = MappingProxyType({}),
) -> Comparison:
    """The comparison of all settings; BD-rates of every pair of families, or of each against the anchor.

    Settings in `left_out` (see `failing`) keep their values and are neither on the front nor the best at a rate.
    """
    values = value_rows(scores, subset, metric, protocol)
    rates = value_rows(scores, subset, "kbps", "all")
    points = tuple(
        Point(name, cards[name].family if name in cards else name, rates[name].value or 0.0, row.value or 0.0)
        for name, row in values.items()
        if name in rates and (rates[name].value or 0) > 0
    )
    higher = facts(metric).higher_is_better
    families = curves(points)
    # An anchor without loss has no rate to trade: it stands in the table and in no comparison of rates.
    lossless = {name for name, card in cards.items() if card.lossless}
    lossy = {
        name: curve for name, curve in families.items() if not all(point.system in lossless for point in curve.points)
    }
    whole = [point for point in points if point.system not in left_out]
    kept = pareto_front([[point.kbps for point in whole], [point.value for point in whole]], [False, higher])
    front = sorted((point for point, stays in zip(whole, kept, strict=True) if stays), key=lambda point: point.kbps)
    return Comparison(
        subset, metric, protocol, higher, points, families, tuple(front),
        monotonicity(lossy, metric, higher_is_better=higher), tuple(_bd_rates(lossy, anchor)), values,
        frozenset(families) - frozenset(lossy),
        {point.system: left_out[point.system] for point in points if point.system in left_out},
    )  # fmt: skip


def compare_subsets(
    scores: Scores,
    cards: Mapping[str, CodecCard],
    datasets: Iterable[Dataset],
    failed: Failures,
    *,
    metrics: Sequence[str] | None = None,
    anchor: str | None = None,
) -> dict[str, list[Comparison]]:
    """By subset, the comparison under every metric (or those named) that can be drawn against the rate."""
    described = {dataset.subset: dataset for dataset in datasets}
    found: dict[str, list[Comparison]] = {}
    for subset, own in split_by_subset(scores).items():
        for metric, protocol in compared_metrics(own, subset):
            if metrics is None or metric in metrics:
                left_out = failing(failed, described[subset], metric) if subset in described else {}
                compared = compare_settings(
                    own, cards, subset, metric, protocol=protocol, anchor=anchor, left_out=left_out
                )
                found.setdefault(subset, []).append(compared)
    return found


def split_by_subset(scores: Scores) -> dict[str, Scores]:
    """The rows of each subset as a table of their own, without means over subsets."""
    rows: dict[str, list[Row]] = {}
    for row in scores:
        if not row.aggregate:
            rows.setdefault(row.subset, []).append(row)
    return {subset: Scores(tuple(own)) for subset, own in rows.items()}


def value_rows(scores: Scores, subset: str, metric: str, protocol: str) -> dict[str, Row]:
    """The measured rows of one metric on one subset, by system."""
    return {
        row.system: row
        for row in scores
        if (row.subset, row.metric, row.protocol) == (subset, metric, protocol)
        and row.status == "ok" and row.value is not None and row.correction in ("none", "")
    }  # fmt: skip


def compared_metrics(scores: Scores, subset: str) -> list[tuple[str, str]]:
    """(metric, protocol) that can be drawn against the rate: the preferred ones that two settings have a value of."""
    found: dict[tuple[str, str], set[str]] = {}
    for row in scores:
        drawn = row.metric in PREFERRED and ":" not in row.protocol and row.protocol != "unaligned"
        if drawn and row.subset == subset and row.status == "ok":
            found.setdefault((row.metric, row.protocol), set()).add(row.system)
    return sorted((key for key, systems in found.items() if len(systems) > 1), key=lambda key: PREFERRED.index(key[0]))


def _bd_rates(families: Mapping[str, Curve], anchor: str | None) -> Iterable[BdRate]:
    with_curves = [name for name, curve in families.items() if len(curve.points) > 1]
    if anchor is not None and anchor not in families:
        raise UsageError(
            f"There is no family {anchor!r} here.{did_you_mean(anchor, families)} Known: {', '.join(families)}."
        )
    pairs: Iterable[Sequence[str]] = combinations(with_curves, 2)
    if anchor is not None:
        pairs = [(anchor, name) for name in with_curves if name != anchor]
    for first, second in pairs:
        a, b = families[first], families[second]
        change = bd_rate(a.kbps, a.values, b.kbps, b.values)
        shared = None if change.value is None else shared_range(a.values, b.values)
        yield BdRate(first, second, change, shared)


def best_below(found: Comparison, kbps: float) -> Point | None:
    """The best setting that sends at most so much; among equals the one with fewer bits."""
    sign = 1 if found.higher_is_better else -1
    within = [point for point in found.whole if point.kbps <= kbps]
    return max(within, key=lambda point: (sign * point.value, -point.kbps), default=None)


# --- what a report is made of ---------------------------------------------------------------------------------------

Samples = NDArray[np.float32]


class Heard(NamedTuple):
    """A clip before and after a codec, aligned."""

    reference: Samples
    coded: Samples
    rate: int


class WorstClip(NamedTuple):
    """A clip that a codec did badly on. `fetch` decodes it when the page is made."""

    subset: str
    system: str
    id: str
    metric: str
    value: float
    mean: float  # of the codec on that subset
    fetch: Callable[[], Heard]


class Failed(NamedTuple):
    """Clips that a codec or a metric has no value for, for one reason."""

    subset: str
    system: str
    what: str  # "coding", or the metric
    status: str
    clips: int
    first: str
    reason: str


class Difference(NamedTuple):
    """One setting minus another on the clips that both have a value for."""

    subset: str
    metric: str
    system: str
    other: str
    kbps: float
    other_kbps: float
    value: float
    low: float | None
    high: float | None
    p_value: float | None
    n: int


@dataclass(frozen=True)
class CodecReport:
    """Everything the page shows. `scores` may hold several subsets; `datasets` says of what category each is."""

    title: str
    scores: Scores
    cards: Mapping[str, CodecCard]
    datasets: Sequence[Dataset]
    protocol: str = "all"
    metrics: Sequence[str] = ()
    differences: Sequence[Difference] = ()
    worst: Sequence[WorstClip] = ()
    failures: Sequence[Failed] = ()
    failed: Failures = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)  # what was asked for, in words
    sound_budget: int = 6_000_000  # characters of sound in the page
