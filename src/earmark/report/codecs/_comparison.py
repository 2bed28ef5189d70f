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
from earmark.codecs.ranking import kind_of, leading_kind, why_apart
from earmark.codecs.rate_distortion import (
    Curve,
    Monotonicity,
    Point,
    bd_rate,
    curves,
    monotonicity,
    shared_range,
)
from earmark.codecs.standing import Standing
from earmark.errors import UsageError, did_you_mean
from earmark.report.metric_text import facts
from earmark.scores import Row, Scores
from earmark.scores.spelling import without_rate
from earmark.submissions import Dataset

MEASURED = ("ok", "incomplete")
"""What has a value of its own; an incomplete one is shown and not ranked."""
LADDER = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Rates (kbps) for which a winner is named."""
PREFERRED = (
    "overall", "overall_unsaturated", "pesq", "stoi", "mel_distance", "stft_distance", "visqol", "zimtohrli", "wer",
    "dwer", "eer", "accuracy", "aec_map", "er_accuracy", "P@1",
)  # fmt: skip
"""Metrics that are drawn against the rate, in this order, where they were measured."""


Failures = Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]
"""{subset: {codec: {"coding" or a metric: clips that failed}}}, with every codec of the run."""


class LeftOut(NamedTuple):
    """Why a setting is not ranked: in a word or two for a table, and as the end of a sentence about it."""

    mark: str
    reason: str


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
    anchors: frozenset[str] = frozenset()  # settings that lose nothing
    left_out: Mapping[str, LeftOut] = MappingProxyType({})  # settings that are not ranked, anchors aside

    @property
    def ranked(self) -> tuple[Point, ...]:
        """The settings that may win."""
        return tuple(point for point in self.points if point.system not in {*self.left_out, *self.anchors})


def apart(standings: Mapping[str, Standing], cards: Mapping[str, CodecCard]) -> dict[str, LeftOut]:
    """The settings that are not ranked with the most trusted ones that there are (`earmark.codecs.ranking`)."""
    known = {name: standings.get(name, Standing()) for name, card in cards.items() if not card.lossless}
    leading = leading_kind(kind_of(standing) for standing in known.values())
    return {
        name: LeftOut(_APART[kind_of(standing)], why_apart(standing))
        for name, standing in known.items()
        if kind_of(standing) != leading
    }


_APART = {"isolated": "", "unknown": "isolation unknown", "unisolated": "not isolated", "faulty": "faulty"}


def failing(failed: Failures, dataset: Dataset, metric: str) -> dict[str, LeftOut]:
    """The settings that failed on clips which another setting did not fail on, for what the metric needs."""
    parts = METRICS_OF[dataset.category] if metric.startswith("overall") else (metric,)
    own = {
        system: {clip for what in ("coding", *parts) for clip in clips.get(what, ())}
        for system, clips in failed.get(dataset.subset, {}).items()
    }
    everybody = set.intersection(*own.values()) if own else set()
    lost = {system: len(clips - everybody) for system, clips in own.items()}
    return {
        system: LeftOut(f"failed {clips}/{dataset.clips}", f"it failed on {clips} of {dataset.clips} clips")
        for system, clips in lost.items()
        if clips
    }


def compare_settings(
    scores: Scores,
    cards: Mapping[str, CodecCard],
    subset: str,
    metric: str,
    *,
    protocol: str = "all",
    anchor: str | None = None,
    left_out: Mapping[str, LeftOut] = MappingProxyType({}),
) -> Comparison:
    """The comparison of all settings; BD-rates of every pair of families, or of each against the anchor.

    Settings in `left_out` (see `failing` and `apart`), and those whose value or rate is incomplete, keep their values
    and are neither on the front nor the best at a rate; nor are anchors, which have no rate to trade.
    """
    values = value_rows(scores, subset, metric, protocol)
    rates = rates_of(scores, subset, protocol)
    excluded = {
        name: LeftOut("failed", f"it failed on clips ({row.reason})")
        for name, row in values.items()
        if row.status == "incomplete"
    }
    excluded |= {
        name: LeftOut("0 kbps", "nothing that it sent was counted")
        for name in values
        if name in rates and not rates[name].value
    }
    excluded |= {name: why for name, why in left_out.items() if name in values}
    points = tuple(
        Point(name, cards[name].family if name in cards else name, rates[name].value or 0.0, row.value or 0.0)
        for name, row in values.items()
        if name in rates and (rates[name].value or 0) > 0
    )
    higher = facts(metric).higher_is_better
    families = curves(points)
    anchors = frozenset(name for name in values if name in cards and cards[name].lossless)
    ranked = [point for point in points if point.system not in {*excluded, *anchors}]
    kept = pareto_front([[point.kbps for point in ranked], [point.value for point in ranked]], [False, higher])
    front = sorted((point for point, stays in zip(ranked, kept, strict=True) if stays), key=lambda point: point.kbps)
    lossy = curves(ranked)
    return Comparison(
        subset, metric, protocol, higher, points, families, tuple(front),
        monotonicity(lossy, metric, higher_is_better=higher), tuple(_bd_rates(lossy, anchor)), values, anchors,
        {name: why for name, why in excluded.items() if name not in anchors},
    )  # fmt: skip


def compare_subsets(
    scores: Scores,
    cards: Mapping[str, CodecCard],
    datasets: Iterable[Dataset],
    failed: Failures,
    *,
    standings: Mapping[str, Standing] = MappingProxyType({}),
    metrics: Sequence[str] | None = None,
    anchor: str | None = None,
) -> dict[str, list[Comparison]]:
    """By subset, the comparison under every metric (or those named) that can be drawn against the rate."""
    described = {dataset.subset: dataset for dataset in datasets}
    found: dict[str, list[Comparison]] = {}
    others = apart(standings, cards)
    for subset, own in split_by_subset(scores).items():
        for metric, protocol in compared_metrics(own, subset):
            if metrics is None or metric in metrics:
                left_out = others | (failing(failed, described[subset], metric) if subset in described else {})
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
    """The measured rows of one metric on one subset, by system: whole ones, and those that failed on some clips."""
    return {
        row.system: row
        for row in scores
        if (row.subset, row.metric, row.protocol) == (subset, metric, protocol)
        and row.status in MEASURED and row.value is not None and row.correction in ("none", "")
    }  # fmt: skip


def rates_of(scores: Scores, subset: str, protocol: str = "all") -> dict[str, Row]:
    """The bitrate of each system: over all clips, or over those of the sampling rate that a protocol names."""
    _, at, rate = protocol.partition("@")
    return value_rows(scores, subset, "kbps", f"all{at}{rate}")


def compared_metrics(scores: Scores, subset: str) -> list[tuple[str, str]]:
    """(metric, protocol) that can be drawn against the rate: the preferred ones that two settings have a value of."""
    found: dict[tuple[str, str], set[str]] = {}
    for row in scores:
        drawn = row.metric in PREFERRED and ":" not in row.protocol and without_rate(row.protocol) != "unaligned"
        if drawn and row.subset == subset and row.status in MEASURED:
            found.setdefault((row.metric, row.protocol), set()).add(row.system)
    several = (key for key, systems in found.items() if len(systems) > 1)
    return sorted(several, key=lambda key: (PREFERRED.index(key[0]), *_rate_order(key[1])))


def _rate_order(protocol: str) -> tuple[str, int]:
    """Protocols by name, and those of one sampling rate from the lowest on."""
    name, _, rate = protocol.partition("@")
    return name, int(rate or 0)


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
    within = [point for point in found.ranked if point.kbps <= kbps]
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
    standings: Mapping[str, Standing] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)  # what was asked for, in words
    sound_budget: int = 6_000_000  # characters of sound in the page
