"""What the steps of a codec run share, and what they have come to so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from earmark.codecs.alignment import Delay
from earmark.codecs.clip_work import Known
from earmark.codecs.contract import Category, Measured
from earmark.corpora.clips import Clip, Corpus
from earmark.pipeline.cache import Cache
from earmark.pipeline.codec_config import CodecConfig
from earmark.pipeline.codec_delays import Sample
from earmark.pipeline.codec_packs import Blobs, Records
from earmark.pipeline.codec_systems import CodecSystem
from earmark.pipeline.prepare import Subset

__all__ = ["ClipResult", "CodecWork"]


class ClipResult(NamedTuple):
    """One clip through one codec. `refused` is why it was not coded; values are by "protocol metric"."""

    clip: Clip
    digest: str | None
    known: Known | None
    values: dict[str, Measured]
    refused: Measured | None


@dataclass
class CodecWork:
    """A run in progress. Systems go by their names, clips by the hash of their sound."""

    config: CodecConfig
    cache: Cache
    corpora: list[Corpus]
    systems: list[CodecSystem]
    metrics: tuple[str, ...]
    jobs: int
    progress: bool = False
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    subsets: list[Subset] = field(default_factory=list)
    categories: dict[str, Category] = field(default_factory=dict)  # by subset
    delays: dict[str, Delay] = field(default_factory=dict)
    coded: dict[str, Records] = field(default_factory=dict)
    measured: dict[tuple[str, Category], Records] = field(default_factory=dict)
    refused: dict[tuple[str, str], Measured] = field(default_factory=dict)
    counts: dict[str, dict[str, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.blobs = Blobs(self.cache)

    @property
    def protocol(self) -> str:
        """What the main measurements are called."""
        if self.config.definitions == "reference":
            return "reference"
        return "gain_matched" if self.config.gain_match else "all"

    def count(self, step: str, **amounts: float) -> None:
        counted = self.counts.setdefault(step, {})
        for name, amount in amounts.items():
            counted[name] = round(counted.get(name, 0) + amount, 3)

    def samples(self) -> list[tuple[Sample, Category]]:
        """Every readable sound once, in the order of the subsets."""
        found: dict[str, tuple[Sample, Category]] = {}
        for subset in self.subsets:
            for clip, digest in subset.readable:
                found.setdefault(digest, (Sample(clip, digest), self.categories[subset.name]))
        return list(found.values())

    def category_of(self, digest: str) -> Category:
        """The category a sound was measured under: that of the first subset which has it."""
        return self._by_digest[digest]

    @property
    def _by_digest(self) -> dict[str, Category]:
        if not hasattr(self, "_known_categories"):
            self._known_categories = {sample.digest: category for sample, category in self.samples()}
        return self._known_categories

    def results(self, subset: Subset, system: CodecSystem) -> Iterator[ClipResult]:
        """What came of every clip of a subset, in its order."""
        unreadable = {failure.id: failure.reason for failure in subset.failures}
        for clip, digest in zip(subset.clips, subset.digests, strict=True):
            if digest is None:
                failed = Measured.failed(unreadable.get(clip.id, "it cannot be read"))
                yield ClipResult(clip, None, None, {}, failed)
                continue
            record = self.coded[system.name].records.get(digest) if system.name in self.coded else None
            if record is None:
                why = self.refused.get((system.name, digest), Measured.failed("it was not tried"))
                yield ClipResult(clip, digest, None, {}, why)
                continue
            measured = self.measured[system.name, self.category_of(digest)].records.get(digest, {})
            values = {name: Measured(*value) for name, value in measured.items()}
            yield ClipResult(clip, digest, Known(**record), values, None)
