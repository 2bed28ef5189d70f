"""Records of clips in the cache, many to a pack, every clip found by the hash of its sound.

    coded/<codec key>/<pack>.entry            what a codec sent for some clips, its bits and times
    codec-metrics/<measure key>/<pack>.entry  what was measured on them

A record is a small mapping that JSON can hold, with a blob of bytes where one belongs to it. Packs are only ever added,
and a later pack adds its keys to those of an earlier one with the same clip. A pack is written when it is full or old:
the most that a killed run loses. Twelve thousand clips make a few hundred files.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from earmark.pipeline.cache import Cache
from earmark.pipeline.entries import Entry
from earmark.pipeline.keys import fingerprint

__all__ = ["Blobs", "Packer", "Place", "Records", "read_records"]

PACK_CLIPS = 256
PACK_BYTES = 32 << 20
PACK_SECONDS = 8.0
OPEN_PACKS = 12


class Place(NamedTuple):
    """Where a blob lies."""

    kind: str
    pack: str
    start: int
    end: int


@dataclass
class Records:
    """What is known of each clip, by the hash of its sound."""

    kind: str
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    blobs: dict[str, Place] = field(default_factory=dict)

    def add(self, pack: str, meta: Mapping[str, Any]) -> None:
        start = 0
        for clip, record, size in zip(meta["clips"], meta["records"], meta["sizes"], strict=True):
            self.records.setdefault(clip, {}).update(record)
            if size is not None:
                self.blobs[clip] = Place(self.kind, pack, start, start + size)
                start += size

    def forget(self, clip: str) -> None:
        self.records.pop(clip, None)
        self.blobs.pop(clip, None)


def read_records(cache: Cache, kind: str) -> Records:
    """Every record of a kind, from the headers of its packs."""
    found = Records(kind)
    for listed in cache.listing(kind):
        if {"clips", "records", "sizes"} <= listed.meta.keys():
            found.add(listed.key, listed.meta)
    return found


class Blobs:
    """Reads blobs, keeping the last packs open: clips of one pack are asked for one after another."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._open: dict[tuple[str, str], Entry] = {}

    def read(self, place: Place) -> bytes | None:
        """The bytes of a blob, checked; None when its pack is gone or damaged."""
        key = place.kind, place.pack
        if key not in self._open:
            entry = self._cache.get(*key)
            if entry is None or "blob" not in entry.arrays:
                return None
            while len(self._open) >= OPEN_PACKS:
                del self._open[next(iter(self._open))]
            self._open[key] = entry
        return self._open[key].arrays["blob"][place.start : place.end].tobytes()


class Packer:
    """Collects records and writes a pack whenever one is full or old."""

    def __init__(self, cache: Cache, records: Records) -> None:
        self._cache, self._records = cache, records
        self._clear()

    def _clear(self) -> None:
        self._clips: list[str] = []
        self._made: list[dict[str, Any]] = []
        self._blobs: list[bytes | None] = []
        self._bytes = 0
        self._started = time.monotonic()

    def add(self, clip: str, record: Mapping[str, Any], blob: bytes | None = None) -> None:
        if not self._clips:
            self._started = time.monotonic()
        self._clips.append(clip)
        self._made.append(dict(record))
        self._blobs.append(blob)
        self._bytes += len(blob or b"")
        old = time.monotonic() - self._started > PACK_SECONDS
        if len(self._clips) >= PACK_CLIPS or self._bytes >= PACK_BYTES or old:
            self.flush()

    def flush(self) -> None:
        if not self._clips:
            return
        sizes = [None if blob is None else len(blob) for blob in self._blobs]
        meta = {"clips": self._clips, "records": self._made, "sizes": sizes}
        whole = np.frombuffer(b"".join(blob or b"" for blob in self._blobs), np.uint8)
        key = fingerprint(self._clips, [sorted(record) for record in self._made])
        self._cache.put(self._records.kind, key, Entry(meta, {"blob": whole} if any(sizes) else {}))
        self._records.add(key, meta)
        self._clear()
