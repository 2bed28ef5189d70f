"""Finished codec runs put side by side: rates and scores of all settings, and pairs at like rates on the same clips."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from earmark._version import __version__
from earmark.codecs.aggregate import compare
from earmark.codecs.contract import CodecCard, Measured
from earmark.codecs.runs.folder import clip_values, read_cards, read_codec_record
from earmark.codecs.standing import Standing
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.places import locate
from earmark.report.codecs._comparison import (
    Comparison,
    Difference,
    Failures,
    compare_subsets,
    compared_metrics,
    rates_of,
    split_by_subset,
)
from earmark.report.codecs.text import shared_text
from earmark.scores import Row, Scores, load_scores, merge
from earmark.submissions import Dataset

LIKE = 1.25
"""Rates within this factor are alike."""
METRICS = ("pesq", "stoi", "mel_distance", "stft_distance")


class Runs(NamedTuple):
    """One or several runs on the same sounds."""

    places: tuple[Path, ...]
    scores: Scores
    cards: dict[str, CodecCard]
    datasets: tuple[Dataset, ...]
    protocol: str
    metrics: tuple[str, ...]
    records: tuple[dict[str, Any], ...]
    failed: Failures = MappingProxyType({})
    standings: Mapping[str, Standing] = MappingProxyType({})

    def compared(self, metrics: Sequence[str] | None, anchor: str | None) -> list[Comparison]:
        """Every metric (or those named) of every subset that has settings to compare; UsageError for a wrong name."""
        known = dict.fromkeys(
            name for subset, own in split_by_subset(self.scores).items() for name, _ in compared_metrics(own, subset)
        )
        for name in metrics or ():
            if name not in known:
                raise UsageError(
                    f"There is no {name} to compare by: two settings must have a value.{did_you_mean(name, known)} "
                    f"Known here: {', '.join(known) or 'none'}."
                )
        found = compare_subsets(
            self.scores, self.cards, self.datasets, self.failed, standings=self.standings, metrics=metrics,
            anchor=anchor,
        )  # fmt: skip
        return [comparison for comparisons in found.values() for comparison in comparisons]


def open_runs(places: Sequence[str | Path], scores: Scores | None = None) -> Runs:
    """The runs in these folders; refused when they measured one subset on different sounds or in different ways.

    `scores` are theirs, where they are at hand.
    """
    folders = tuple(locate(place) for place in places)
    records = tuple(read_codec_record(place) for place in folders)
    protocols = {record["protocol"] for record in records}
    if len(protocols) > 1:
        raise UsageError(
            f"The runs were measured in different ways ({', '.join(sorted(protocols))}): compare like runs."
        )
    datasets: dict[str, Dataset] = {}
    cards: dict[str, CodecCard] = {}
    failed: dict[str, dict[str, Any]] = {}
    standings: dict[str, Standing] = {}
    for place, record in zip(folders, records, strict=True):
        for given in record["datasets"]:
            dataset = Dataset(**given)
            if datasets.setdefault(dataset.subset, dataset).digest != dataset.digest:
                raise InputError(f"{place}: its {dataset.subset} holds other sounds than that of the runs before it.")
        cards |= read_cards(record)
        standings |= {codec["card"]["name"]: Standing.of(codec.get("standing")) for codec in record["codecs"]}
        for subset, codecs in record.get("failed", {}).items():
            failed.setdefault(subset, {}).update(codecs)
    if scores is None:
        scores = merge(*(load_scores(place / "scores.csv") for place in folders), on_conflict="last")
    metrics = tuple(dict.fromkeys(metric for record in records for metric in record["metrics"]))
    return Runs(folders, scores, cards, tuple(datasets.values()), protocols.pop(), metrics, records, failed, standings)


def differences(runs: Runs, metrics: Sequence[str] | None = None) -> list[Difference]:
    """Each setting against the setting of another family whose rate is nearest, where that is alike, clip by clip."""
    found: list[Difference] = []
    for metric in metrics or METRICS:
        if metric not in runs.metrics:
            continue
        values: dict[str, dict[str, dict[str, Measured]]] = {}
        for place in runs.places:
            for subset, system, clip, value in clip_values(place, metric):
                values.setdefault(subset, {}).setdefault(system, {})[clip] = value
        for subset, systems in values.items():
            rates = {name: row.value or 0.0 for name, row in rates_of(runs.scores, subset).items()}
            for one, other in _alike(rates, runs.cards):
                if one not in systems or other not in systems:
                    continue
                clips = [clip for clip in systems[one] if clip in systems[other]]
                pair = compare([systems[one][clip] for clip in clips], [systems[other][clip] for clip in clips])
                if pair is not None:
                    ends = pair.value, pair.low, pair.high, pair.p_value, pair.n
                    found.append(Difference(subset, metric, one, other, rates[one], rates[other], *ends))
    return found


def _alike(rates: Mapping[str, float], cards: Mapping[str, CodecCard]) -> list[tuple[str, str]]:
    """Pairs of settings of different families with like rates: for each setting the nearest one, each pair once."""
    lossy = {name: rate for name, rate in rates.items() if rate > 0 and name in cards and not cards[name].lossless}
    pairs: dict[tuple[str, str], None] = {}
    for name, rate in lossy.items():
        others = {
            other: abs(math.log(lossy[other] / rate)) for other in lossy if cards[other].family != cards[name].family
        }
        nearest = min(others, key=lambda other: (others[other], other), default=None)
        if nearest is not None and others[nearest] <= math.log(LIKE):
            first, second = sorted((name, nearest), key=lambda one: list(lossy).index(one))
            pairs[first, second] = None
    return list(pairs)


def comparison_rows(comparisons: Sequence[Comparison], pairs: Sequence[Difference], suite: str) -> Scores:
    """BD-rates and differences as score rows: the system is "A - B"."""
    rows: list[Row] = []
    for comparison in comparisons:
        for pair in comparison.bd_rates:
            rows.append(Row(
                suite=suite, subset=f"{comparison.subset}:{comparison.metric}", system=f"{pair.family} - {pair.anchor}",
                metric="bd_rate", protocol=comparison.protocol, value=pair.change.value, status=pair.change.status,
                reason=pair.change.reason or shared_text(comparison, pair), version=__version__,
            ))  # fmt: skip
    for difference in pairs:
        rows.append(Row(
            suite=suite, subset=difference.subset, system=f"{difference.system} - {difference.other}",
            metric=f"{difference.metric}:difference", value=difference.value, low=difference.low, high=difference.high,
            p_value=difference.p_value, n=difference.n, version=__version__,
        ))  # fmt: skip
    return Scores(tuple(rows))
