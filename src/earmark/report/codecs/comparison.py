"""What a table of codecs says about rates: curves of families, the front, BD-rates, and steps that go the wrong way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from earmark.codecs.contract import CodecCard, Measured
from earmark.codecs.rate_distortion import Curve, Monotonicity, Point, bd_rate, curves, monotonicity, pareto
from earmark.errors import UsageError, did_you_mean
from earmark.report.reading import facts
from earmark.scores import Row, Scores

__all__ = ["LADDER", "BdRate", "Comparison", "best_below", "compare_settings", "compared_metrics", "value_rows"]

LADDER = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Rates (kbps) for which a winner is named."""
PREFERRED = (
    "overall", "overall_unsaturated", "pesq", "stoi", "mel_distance", "stft_distance", "visqol", "zimtohrli", "wer",
    "dwer", "eer", "accuracy", "aec_map", "er_accuracy", "P@1",
)  # fmt: skip
"""Metrics that are drawn against the rate, in this order, where they were measured."""


class BdRate(NamedTuple):
    """How much more rate `family` needs than `anchor` for the same score, on average."""

    anchor: str
    family: str
    change: Measured


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


def compare_settings(
    scores: Scores,
    cards: Mapping[str, CodecCard],
    subset: str,
    metric: str,
    *,
    protocol: str = "all",
    anchor: str | None = None,
) -> Comparison:
    """The comparison of all settings; BD-rates of every pair of families, or of each against the anchor."""
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
    lossy = {name: curve for name, curve in families.items() if not _lossless(curve, cards)}
    kept = pareto([point.kbps for point in points], [point.value for point in points], higher)
    front = sorted((point for point, stays in zip(points, kept, strict=True) if stays), key=lambda point: point.kbps)
    return Comparison(
        subset, metric, protocol, higher, points, families, tuple(front),
        monotonicity(lossy, metric, higher_is_better=higher), tuple(_bd_rates(lossy, anchor)), values,
        frozenset(families) - frozenset(lossy),
    )  # fmt: skip


def _lossless(curve: Curve, cards: Mapping[str, CodecCard]) -> bool:
    return all(point.system in cards and cards[point.system].lossless for point in curve.points)


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
        yield BdRate(first, second, bd_rate(a.kbps, a.values, b.kbps, b.values))


def best_below(found: Comparison, kbps: float) -> Point | None:
    """The best setting that sends at most so much; among equals the one with fewer bits."""
    sign = 1 if found.higher_is_better else -1
    within = [point for point in found.points if point.kbps <= kbps]
    return max(within, key=lambda point: (sign * point.value, -point.kbps), default=None)
