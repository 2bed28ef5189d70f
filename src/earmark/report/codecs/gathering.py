"""From the folder of a codec run to its page: gathers what the report shows, sounds included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from earmark.codecs import harness
from earmark.codecs.alignment import aligned
from earmark.codecs.cells import Confinement
from earmark.codecs.clip_work import opened
from earmark.codecs.runs.config import CodecConfig
from earmark.codecs.runs.folder import clip_values
from earmark.codecs.runs.state import BLOB
from earmark.corpora.clips import Clip, Corpus
from earmark.corpora.subsets import choose_subsets, open_corpora
from earmark.errors import EarmarkError, InputError
from earmark.places import locate
from earmark.report.codecs._comparison import (
    CodecReport,
    Failed,
    Heard,
    WorstClip,
    apart,
    compare_settings,
    failing,
    rates_of,
)
from earmark.report.codecs.finished import Runs, differences, open_runs
from earmark.report.codecs.page import write_codecs
from earmark.runs.packs import Records, read_records
from earmark.runs.store import Cache
from earmark.scores import Scores, metric_facts
from earmark.submissions import Dataset

WORST = 8
"""Codecs whose worst clip is shown."""


def report_codec_run(
    path: str | Path,
    *,
    scores: Scores | None = None,
    cache: Cache | None = None,
    corpora: Sequence[Corpus] | None = None,
    title: str = "",
) -> Path:
    """Write RUN/report.html from what the folder and the cache hold.

    Args:
        path: the folder of the run.
        scores: what its scores.csv holds, where that is at hand.
        cache: where what the codecs sent lies; None: where the run's record says.
        corpora: spare opening them again.
        title: of the page.
    """
    target = locate(path) / "report.html"
    write_codecs(gather([path], scores=scores, cache=cache, corpora=corpora, title=title), target)
    return target


def gather(
    places: Sequence[str | Path],
    *,
    scores: Scores | None = None,
    cache: Cache | None = None,
    corpora: Sequence[Corpus] | None = None,
    title: str = "",
) -> CodecReport:
    """What the page of one run, or of several, is made of."""
    runs = open_runs(places, scores)
    record = runs.records[0]
    sounds = _Sounds(runs, cache, corpora)
    return CodecReport(
        title=title or f"Codecs on {', '.join(dataset.title or dataset.subset for dataset in runs.datasets)}",
        scores=runs.scores,
        cards=runs.cards,
        datasets=runs.datasets,
        protocol=runs.protocol,
        metrics=runs.metrics,
        differences=differences(runs, [m for m in ("pesq", "mel_distance") if m in runs.metrics]),
        worst=_worst(runs, sounds),
        failures=[Failed(**one) for one in _missing(runs)],
        failed=runs.failed,
        standings=runs.standings,
        versions=record["versions"],
        notes=[note for one in runs.records for note in one["notes"]],
        settings=_settings(runs),
    )


def _missing(runs: Runs) -> list[dict[str, Any]]:
    names = Failed._fields
    return [{name: one[name] for name in names} for record in runs.records for one in record.get("missing", [])]


def _settings(runs: Runs) -> dict[str, str]:
    try:
        config = CodecConfig.load(runs.places[0] / "config.yaml")
    except EarmarkError:
        return {}
    shown = ("definitions", "gain_match", "tasks", "retention", "tandem", "loss", "limit", "bootstrap", "seed")
    values = {name: getattr(config, name) for name in shown}
    return {name: str(value) for name, value in values.items() if value not in (None, [], 0, False)}


# --- the worst clips -------------------------------------------------------------------------------------------------


def _worst(runs: Runs, sounds: _Sounds) -> list[WorstClip]:
    """For the codecs on the front, and then for others, the clip that lies furthest below the codec's mean."""
    found: list[WorstClip] = []
    for dataset in runs.datasets:
        metric = "mel_distance" if dataset.category == "audio" else "pesq"
        if metric not in runs.metrics:
            metric = next(iter(runs.metrics), "")
        if not metric:
            continue
        values: dict[str, list[tuple[str, float]]] = {}
        for place in runs.places:
            for subset, system, clip, value in clip_values(place, metric):
                if subset == dataset.subset and value.value is not None:
                    values.setdefault(system, []).append((clip, value.value))
        sign = 1 if metric_facts(metric).higher_is_better else -1
        for system in _chosen(runs, dataset, values, max(2, WORST // len(runs.datasets))):
            clip, worst = min(values[system], key=lambda one: sign * one[1])
            mean = float(np.mean([value for _, value in values[system]]))
            found.append(
                WorstClip(
                    dataset.subset, system, clip, metric, worst, mean, sounds.fetching(dataset.subset, system, clip)
                )
            )
    return found


def _chosen(runs: Runs, dataset: Dataset, values: dict[str, Any], wanted: int) -> list[str]:
    """Codecs to listen to: those that no other beats, spread over the rates; others where these are too few."""
    left_out = apart(runs.standings, runs.cards) | failing(runs.failed, dataset, "overall")
    overall = compare_settings(
        runs.scores, runs.cards, dataset.subset, "overall", protocol=runs.protocol, left_out=left_out
    )
    lossy = [name for name in values if not runs.cards[name].lossless]
    front = [point.system for point in overall.front if point.system in lossy]
    if len(front) > wanted:
        front = [front[place] for place in np.linspace(0, len(front) - 1, wanted).round().astype(int)]
    rates = rates_of(runs.scores, dataset.subset)
    others = sorted((name for name in lossy if name not in front), key=lambda name: rates[name].value or 0.0)
    chosen = [*front, *others[: max(0, wanted - len(front))]]
    return sorted(chosen, key=lambda name: rates[name].value or 0.0)


class _Sounds:
    """Clips before and after codecs, decoded when they are asked for."""

    def __init__(self, runs: Runs, cache: Cache | None, corpora: Sequence[Corpus] | None) -> None:
        self._runs, self._cache = runs, cache
        self._clips: dict[tuple[str, str], Clip] | None = None
        self._corpora = corpora
        self._records: dict[str, Records] = {}

    def fetching(self, subset: str, system: str, clip: str) -> Callable[[], Heard]:
        return lambda: self.fetch(subset, system, clip)

    def fetch(self, subset: str, system: str, clip: str) -> Heard:
        known = self._known(subset, clip)
        samples, rate = known.read()
        record, entry = next(
            (record, one) for record in self._runs.records for one in record["codecs"] if one["card"]["name"] == system
        )
        cache = self._cache or self._open(record)
        kind = f"coded/{entry['key']}"
        if kind not in self._records:
            self._records[kind] = read_records(cache, kind)
        payload = self._records[kind].payload(known.digest(), BLOB)
        if payload is None:
            raise InputError("the cache no longer holds what the codec sent")
        if not entry["spec"]:
            raise InputError("the codec existed only in the memory of the run")
        decoded = harness.decode(opened(entry["spec"], Confinement()), harness.unpack(payload), rate, len(samples))
        return Heard(samples, aligned(decoded, entry["delay"]["seconds"], rate, len(samples)), rate)

    def _open(self, record: dict[str, Any]) -> Cache:
        if not record["cache"]:
            raise InputError("the run kept no cache")
        return Cache(record["cache"])

    def _known(self, subset: str, clip: str) -> Clip:
        if self._clips is None:
            self._clips = {}
            for place in self._runs.places:
                config = CodecConfig.load(place / "config.yaml")
                corpora = self._corpora or open_corpora(config.corpus)
                for corpus, given in zip(corpora, config.corpus, strict=True):
                    for name, clips in choose_subsets(corpus, given.subsets).items():
                        self._clips |= {(name, one.id): one for one in clips}
        if (subset, clip) not in self._clips:
            raise InputError(f"the corpus no longer has the clip {clip}")
        return self._clips[subset, clip]
