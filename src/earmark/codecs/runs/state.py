"""A codec run in progress: what its stages share, and what they have come to so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from earmark.codecs.alignment import Delay
from earmark.codecs.cells import Confinement
from earmark.codecs.clip_work import DECODE_SECONDS, UNCONFINED, Known
from earmark.codecs.contract import Category, Measured
from earmark.codecs.runs._systems import CodecSystem
from earmark.codecs.runs.config import CodecConfig
from earmark.codecs.standing import CheckStatus, Promise, Standing
from earmark.corpora.clips import Clip, Corpus
from earmark.corpora.subsets import PreparedSubset
from earmark.runs.engine import Ledger
from earmark.runs.packs import Records, read_records
from earmark.runs.store import Cache

BLOB = "blob"
"""The part of a pack that holds what a codec sent."""
TANDEM_METRICS = ("pesq", "stoi", "mel_distance")
DELAY_METRICS = ("stft_distance", "mel_distance", "stoi")
"""Measured once more without the delay taken out, for codecs that have one: what a benchmark without alignment sees."""


class Sample(NamedTuple):
    """A clip by the hash of its sound, and the category it is measured under: that of the first subset with it."""

    clip: Clip
    digest: str
    category: Category


class ClipResult(NamedTuple):
    """One clip through one codec. `refused` is why it was not coded; values are by "protocol metric"."""

    clip: Clip
    digest: str | None
    known: Known | None
    values: dict[str, Measured]
    refused: Measured | None


@dataclass(kw_only=True)
class CodecWork(Ledger):
    """A run in progress. Systems go by their names, clips by the hash of their sound."""

    config: CodecConfig
    cache: Cache
    corpora: list[Corpus]
    systems: list[CodecSystem]
    metrics: tuple[str, ...]
    jobs: int
    confinement: Confinement = UNCONFINED
    subsets: list[PreparedSubset] = field(default_factory=list)
    categories: dict[str, Category] = field(default_factory=dict)  # by subset
    delays: dict[str, Delay] = field(default_factory=dict)
    coded: dict[str, Records] = field(default_factory=dict)
    measured: dict[tuple[str, Category], Records] = field(default_factory=dict)
    refused: dict[tuple[str, str], Measured] = field(default_factory=dict)
    suitable: list[Sample] = field(default_factory=list)  # clips that delays and promises are found on
    promises: dict[str, tuple[Promise, ...]] = field(default_factory=dict)  # by system
    unrepeated: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by system: clips it did not code again
    checks: dict[str, tuple[CheckStatus, str]] = field(default_factory=dict)  # by system, with a reason
    files: dict[str, set[str]] = field(default_factory=dict)  # by system: what it opened while it worked
    standings: dict[str, Standing] = field(default_factory=dict)  # by system; what its results rest on
    elsewhere: Counter[str] = field(default_factory=Counter)  # what workers computed for this run, by step
    settled: dict[str, Sequence[Any]] = field(default_factory=dict)  # by system: delays that workers found

    @property
    def protocol(self) -> str:
        """What the main measurements are called."""
        if self.config.definitions == "reference":
            return "reference"
        return "gain_matched" if self.config.gain_match else "all"

    @cached_property
    def samples(self) -> dict[str, Sample]:
        """Every readable sound once, in the order of the subsets; known once these are prepared."""
        samples: dict[str, Sample] = {}
        for subset in self.subsets:
            for clip, digest in subset.readable:
                samples.setdefault(digest, Sample(clip, digest, self.categories[subset.name]))
        return samples

    @cached_property
    def rates(self) -> dict[str, int]:
        """The sampling rate of every sound that a codec has coded; known once all are done."""
        records = (records for coded in self.coded.values() for records in coded.records.items())
        return {digest: int(record["rate"]) for digest, record in records}

    def count_cached(self, step: str, amount: int) -> None:
        """Count what the cache holds; what workers put there for this run was computed."""
        moved = min(amount, self.elsewhere[f"{step} computed"])
        self.elsewhere[f"{step} computed"] -= moved
        self.count(step, cached=amount - moved, **({"computed": moved} if moved else {}))

    def read_coded(self, system: CodecSystem) -> None:
        """Know what the cache holds of a codec's output."""
        self.coded[system.name] = read_records(self.cache, system.coded_kind)

    def read_measured(self, system: CodecSystem) -> None:
        """Know what the cache holds of measurements made with the codec's delay taken out."""
        for category in dict.fromkeys(self.categories.values()):
            kind = system.measured_kind(self.delays[system.name].seconds, category)
            self.measured[system.name, category] = read_records(self.cache, kind)

    def names_wanted(self, system: CodecSystem) -> tuple[str, ...]:
        """Every measurement of a clip through a codec."""
        config, metrics = self.config, self.metrics
        names = [f"{self.protocol} {metric}" for metric in metrics]
        if config.unaligned and self.delays[system.name].seconds and self.protocol != "reference":
            names += [f"unaligned {metric}" for metric in DELAY_METRICS if metric in metrics]
        few = [metric for metric in TANDEM_METRICS if metric in metrics] or list(metrics[:3])
        names += [f"tandem:{number} {metric}" for number in range(1, config.tandem + 1) for metric in few]
        names += [f"loss:{percent:g}#{config.seed} {metric}" for percent in config.loss for metric in few]
        return tuple(names)

    def missing_names(self, system: CodecSystem, digest: str) -> tuple[str, ...]:
        """Measurements of a clip that are not in the cache; none are wanted where nothing is decoded."""
        if system.card.encode_only:
            return ()
        wanted = (DECODE_SECONDS, *self.names_wanted(system))
        if digest not in self.coded[system.name].records:
            return wanted
        known = self.measured[system.name, self.samples[digest].category].records.get(digest, {})
        return tuple(name for name in wanted if name not in known)

    def _is_ours(self, name: str) -> bool:
        """Whether a kept value is of this run, and not of a stranger's metric that is not asked for or has changed."""
        metric = name.partition(" ")[2]
        return "#" not in metric or metric in self.metrics

    def results(self, subset: PreparedSubset, system: CodecSystem) -> Iterator[ClipResult]:
        """What came of every clip of a subset, in its order."""
        unreadable = {failure.id: failure.reason for failure in subset.failures}
        for clip, digest in zip(subset.clips, subset.digests, strict=True):
            if digest is None:
                unread = Measured.not_applicable(unreadable.get(clip.id, "it cannot be read"))
                yield ClipResult(clip, None, None, {}, unread)
                continue
            record = self.coded[system.name].records.get(digest) if system.name in self.coded else None
            refused = self.refused.get((system.name, digest))
            if record is None or refused is not None:
                yield ClipResult(clip, digest, None, {}, refused or Measured.failed("it was not tried"))
                continue
            measured = self.measured[system.name, self.samples[digest].category].records.get(digest, {})
            values = {name: Measured(*value) for name, value in measured.items() if self._is_ours(name)}
            seconds = values.pop(DECODE_SECONDS, Measured.failed("not decoded")).value
            yield ClipResult(clip, digest, Known(**{**record, "decode_seconds": seconds}), values, None)
