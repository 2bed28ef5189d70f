"""Vectors of clips in the cache: many clips to a pack, every clip found by the hash of its sound.

    vectors/<extractor key>/<pack key>.entry

A pack holds, for some clips, the parts that poolings are made of (`mean_time`, `flatten`, ...), each a vector
whose length may differ from clip to clip, and how many features the model's frames have: `flatten` is cut into so
many rows, which are padded in time when clips are put together. Packs are only ever added. Which pack holds a clip is
read from their headers, so a changed file costs its clip, a new pooling costs that pooling, and a killed run costs the
pack that was being filled.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.embedding import pooling
from earmark.errors import InputError
from earmark.pipeline import layers
from earmark.pipeline.cache import Cache, Listed
from earmark.pipeline.entries import Entry
from earmark.pipeline.keys import fingerprint

Vector = NDArray[np.float32]

PACK_CLIPS = 256
PACK_BYTES = 32 << 20
PACK_SECONDS = 20.0
"""A pack is written when it is full or old: the most that a killed run loses."""


class Place(NamedTuple):
    pack: str
    row: int


class Facts(NamedTuple):
    """What was learnt of a clip when it was decoded; rate and channels of its file, 0 where it has none."""

    seconds: float
    rate: int = 0
    channels: int = 0


class LostPacks(Exception):
    """Packs that the index promised are gone or damaged; their clips are to be computed again."""

    def __init__(self, packs: set[str]) -> None:
        super().__init__(f"{len(packs)} packs are gone or damaged")
        self.packs = packs


def kind_of(extractor_key: str) -> str:
    return f"vectors/{extractor_key}"


@dataclass
class Index:
    """Where the parts of every clip lie: by part, by clip."""

    places: dict[str, dict[str, Place]] = field(default_factory=dict)
    lengths: dict[str, dict[str, list[int]]] = field(default_factory=dict)  # by pack, by part, one per row
    facts: dict[str, Facts] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)  # of the model's frames, by pack
    remark: str = ""  # on the model: what was noticed when it first heard these clips
    spent: float = 0.0  # seconds of computing behind all packs
    clips: int = 0

    def add(self, key: str, meta: Mapping[str, Any]) -> None:
        """Know a pack; a later one wins over an earlier one that holds the same clip."""
        for part, lengths in meta["lengths"].items():
            self.lengths.setdefault(key, {})[part] = lengths
            places = self.places.setdefault(part, {})
            for row, clip in enumerate(meta["clips"]):
                places[clip] = Place(key, row)
        for clip, facts in zip(meta["clips"], meta["facts"], strict=True):
            self.facts[clip] = Facts(*facts)
        if meta.get("features"):
            self.features[key] = meta["features"]
        self.remark = self.remark or meta.get("remark", "")
        self.spent += meta.get("spent", 0.0)
        self.clips += len(meta["clips"])

    def forget(self, packs: set[str]) -> None:
        for part, places in self.places.items():
            self.places[part] = {clip: place for clip, place in places.items() if place.pack not in packs}

    def missing(self, clips: Iterable[str], parts: Sequence[str]) -> list[str]:
        """Parts that at least one of the clips lacks."""
        wanted = set(clips)
        return [part for part in parts if not wanted <= self.places.get(part, {}).keys()]

    def lacks(self, clip: str, parts: Iterable[str]) -> bool:
        return any(clip not in self.places.get(part, {}) for part in parts)

    def length(self, part: str, clip: str) -> int:
        place = self.places[part][clip]
        return self.lengths[place.pack][part][place.row]


def read_index(cache: Cache, extractor_key: str) -> Index:
    index = Index()
    for listed in cache.listing(kind_of(extractor_key)):
        if _is_pack(listed):
            index.add(listed.key, listed.meta)
    return index


def _is_pack(listed: Listed) -> bool:
    return {"clips", "facts", "lengths"} <= listed.meta.keys()


class Packer:
    """Collects the parts of clips and writes a pack whenever one is full."""

    def __init__(self, cache: Cache, extractor_key: str, index: Index) -> None:
        self._cache, self._kind, self._index = cache, kind_of(extractor_key), index
        self.remark = ""  # on the model, to be kept with its vectors
        self._clear()

    def _clear(self) -> None:
        self._clips: list[str] = []
        self._facts: list[Facts] = []
        self._parts: dict[str, list[Vector]] = {}
        self._features = 0
        self._bytes = 0
        self._started = time.monotonic()

    def add(self, clip: str, facts: Facts, parts: Mapping[str, Vector], features: int) -> None:
        """Take the parts of a clip, made of frames of so many features: the same for every clip."""
        self._features = features
        self._clips.append(clip)
        self._facts.append(facts)
        for name, vector in parts.items():
            self._parts.setdefault(name, []).append(vector)
            self._bytes += vector.nbytes

    def flush_if_full(self) -> None:
        """To be called between batches, so that a pack holds whole batches."""
        old = time.monotonic() - self._started > PACK_SECONDS
        if len(self._clips) >= PACK_CLIPS or self._bytes >= PACK_BYTES or (self._clips and old):
            self.flush()

    def flush(self) -> None:
        if not self._clips:
            return
        meta = {
            "clips": self._clips,
            "facts": self._facts,
            "lengths": {name: [len(vector) for vector in vectors] for name, vectors in self._parts.items()},
            "features": self._features,
            "remark": self.remark,
            "spent": time.monotonic() - self._started,
        }
        arrays = {name: np.concatenate(vectors) for name, vectors in self._parts.items()}
        key = fingerprint(self._clips, sorted(self._parts))
        self._cache.put(self._kind, key, Entry(meta, arrays))
        self._index.add(key, meta)
        self._clear()


def read_pack(cache: Cache, extractor_key: str, pack: str, parts: Sequence[str]) -> dict[str, Vector]:
    """Every vector of a pack, by "clip part"; `LostPacks` when it is gone or damaged."""
    entry = cache.get(kind_of(extractor_key), pack)
    if entry is None or any(part not in entry.arrays for part in parts):
        raise LostPacks({pack})
    found: dict[str, Vector] = {}
    for part in parts:
        ends = np.cumsum(entry.meta["lengths"][part])
        for clip, end, length in zip(entry.meta["clips"], ends, entry.meta["lengths"][part], strict=True):
            found[f"{clip} {part}"] = entry.arrays[part][end - length : end]
    return found


def assemble(
    cache: Cache, extractor_key: str, index: Index, clips: Sequence[str], parts: Sequence[str]
) -> NDArray[np.float32]:
    """The matrix [clips, D]: each part padded with zeros in time to its longest, the parts side by side."""
    widths = [max((index.length(part, clip) for clip in clips), default=0) for part in parts]
    starts = np.concatenate([[0], np.cumsum(widths)]).astype(int)
    values = np.zeros((len(clips), int(starts[-1])), np.float32)
    lost: set[str] = set()
    for start, width, part in zip(starts, widths, parts, strict=False):
        rows_over_time = _rows_of(part, index, {index.places[part][clip].pack for clip in clips})
        by_pack: dict[str, list[tuple[int, int]]] = {}
        for number, clip in enumerate(clips):
            place = index.places[part][clip]
            by_pack.setdefault(place.pack, []).append((number, place.row))
        for pack, rows in by_pack.items():
            entry = cache.get(kind_of(extractor_key), pack)
            if entry is None or part not in entry.arrays:
                lost.add(pack)
                continue
            ends = np.cumsum(entry.meta["lengths"][part])
            for number, row in rows:
                vector = entry.arrays[part][ends[row] - entry.meta["lengths"][part][row] : ends[row]]
                pooling.lay(values[number, start : start + width], vector, rows_over_time)
    if lost:
        raise LostPacks(lost)
    return values


def _rows_of(part: str, index: Index, used: set[str]) -> int:
    """How many rows a part is padded in. Packs of Earmark 0.1.0 do not tell, and were measured as one row."""
    known = {pooling.rows_of(layers.split(part)[1], index.features.get(pack, 1)) for pack in used}
    if len(known) > 1:
        raise InputError(
            f"The cache holds vectors of one model with {' and '.join(map(str, sorted(known)))} features: compute them "
            "again with --cache refresh."
        )
    return known.pop() if known else 1
