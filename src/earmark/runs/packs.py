"""Results of items in the cache, many to a pack, every item found by the digest of what it is.

    <kind>/<stage key>/<pack>.entry

Of each item a pack holds a record (a small mapping that JSON can hold) and named parts, arrays or bytes, whose lengths
may differ from item to item. Packs are only ever added: a later one adds to, and wins over, what an earlier one says of
an item. Which pack holds an item is read from the headers, so a changed file costs its clip, a new part costs that
part, and a killed run costs the pack that was being filled. Twelve thousand clips make a few hundred files.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.runs.identity import fingerprint
from earmark.runs.store import Cache, Entry

Array = NDArray[Any]

PACK_ITEMS = 256
PACK_BYTES = 32 << 20
PACK_SECONDS = 15.0
"""A pack is written when it is full or old: the most that a killed run loses."""


class Span(NamedTuple):
    """Where a part of an item lies: in which pack, from where to where."""

    pack: str
    start: int
    end: int


class LostPacks(Exception):
    """Packs that the records promised are gone or damaged; their items are to be computed again."""

    def __init__(self, packs: set[str]) -> None:
        super().__init__(f"{len(packs)} packs are gone or damaged")
        self.packs = packs


class Records:
    """What is known of each item of one kind, by its digest; arrays are read when they are asked for."""

    def __init__(self, cache: Cache, kind: str) -> None:
        self.cache, self.kind = cache, kind
        self.records: dict[str, dict[str, Any]] = {}
        self.spans: dict[str, dict[str, Span]] = {}  # by part, by item
        self.about: dict[str, dict[str, Any]] = {}  # by pack: what holds for all of its items
        self.spent = 0.0  # seconds of computing behind all packs
        self.computed = 0  # items in them, counted once for each pack

    def add(self, pack: str, meta: Mapping[str, Any]) -> None:
        """Know a pack by its header."""
        items: list[str] = meta["items"]
        for item, record in zip(items, meta["records"], strict=True):
            self.records.setdefault(item, {}).update(record)
        for part, lengths in meta["lengths"].items():
            spans = self.spans.setdefault(part, {})
            start = 0
            for item, length in zip(items, lengths, strict=True):
                if length is not None:
                    spans[item] = Span(pack, start, start + length)
                    start += length
        self.about[pack] = meta["about"]
        self.spent += meta["spent"]
        self.computed += len(items)

    def forget(self, packs: set[str]) -> None:
        """Know nothing of the items whose parts lay in packs that are gone."""
        for part, spans in self.spans.items():
            for item in [item for item, span in spans.items() if span.pack in packs]:
                del self.spans[part][item]
                self.records.pop(item, None)

    def having(self, parts: Iterable[str]) -> set[str]:
        """Items that have every one of these parts."""
        known = [self.spans.get(part, {}).keys() for part in parts]
        return set.intersection(*map(set, known)) if known else set(self.records)

    def longest(self, part: str, items: Iterable[str] | None = None) -> int:
        """The greatest length of a part, of all items or of some; 0 where there is none."""
        spans = self.spans.get(part, {})
        chosen = spans.values() if items is None else [spans[item] for item in items]
        return max((span.end - span.start for span in chosen), default=0)

    def array(self, item: str, part: str) -> Array:
        """A part of an item; `LostPacks` when its pack is gone or damaged."""
        span = self.spans[part][item]
        entry = self.cache.recent(self.kind, span.pack)
        if entry is None or part not in entry.arrays:
            raise LostPacks({span.pack})
        return entry.arrays[part][span.start : span.end]

    def arrays(self, items: Sequence[str], part: str) -> Iterator[tuple[int, Array]]:
        """(row, part) of every item, pack by pack; `LostPacks`, once the others are given, when some are gone."""
        rows: dict[str, list[int]] = {}
        for row, item in enumerate(items):
            rows.setdefault(self.spans[part][item].pack, []).append(row)
        lost: set[str] = set()
        for pack in rows:
            try:
                for row in rows[pack]:
                    yield row, self.array(items[row], part)
            except LostPacks:
                lost.add(pack)
        if lost:
            raise LostPacks(lost)

    def payload(self, item: str, part: str) -> bytes | None:
        """A part of an item as bytes. One that was never there or whose pack is gone is None, and forgotten."""
        if item not in self.spans.get(part, {}):
            return None
        try:
            return self.array(item, part).tobytes()
        except LostPacks as lost:
            self.forget(lost.packs)
            return None


def read_records(cache: Cache, kind: str) -> Records:
    """Everything that the packs of a kind hold, from their headers."""
    records = Records(cache, kind)
    for header in cache.headers(kind):
        meta = _in_todays_words(header.meta)
        if meta is not None:
            records.add(header.key, meta)
    return records


def _in_todays_words(meta: dict[str, Any]) -> dict[str, Any] | None:
    """A pack's header; runs of Earmark 0.1.0 and before wrote the same facts under other names."""
    if "items" in meta:
        return meta
    if {"clips", "facts", "lengths"} <= meta.keys():  # vectors
        names = ("seconds", "rate", "channels")
        meta["records"] = [dict(zip(names, facts, strict=False)) for facts in meta["facts"]]
    elif {"clips", "records", "sizes"} <= meta.keys():  # what codecs sent, and what was measured on it
        meta["lengths"] = {"blob": meta["sizes"]} if any(meta["sizes"]) else {}
    else:
        return None
    about = {name: meta[name] for name in ("features", "remark") if meta.get(name)}
    return {**meta, "items": meta["clips"], "about": about, "spent": meta.get("spent", 0.0)}


class Packer:
    """Collects what is known of items and writes a pack whenever one is full."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self.about: dict[str, Any] = {}  # what holds for all items, to be kept with them
        self._clear()

    def _clear(self) -> None:
        self._items: dict[str, dict[str, Any]] = {}
        self._parts: dict[str, dict[str, Array]] = {}
        self._bytes = 0
        self._started = time.monotonic()

    def add(self, item: str, record: Mapping[str, Any], parts: Mapping[str, Array | bytes] | None = None) -> None:
        self._items[item] = dict(record)
        for name, part in (parts or {}).items():
            array = np.frombuffer(part, np.uint8) if isinstance(part, bytes) else part
            self._parts.setdefault(name, {})[item] = array
            self._bytes += array.nbytes

    def flush_if_full(self) -> None:
        """To be called between batches, so that a pack holds whole batches."""
        old = time.monotonic() - self._started > PACK_SECONDS
        if len(self._items) >= PACK_ITEMS or self._bytes >= PACK_BYTES or (self._items and old):
            self.flush()

    def flush(self) -> None:
        if not self._items:
            return
        lengths = {
            name: [len(arrays[item]) if item in arrays else None for item in self._items]
            for name, arrays in self._parts.items()
        }
        meta = {
            "items": list(self._items),
            "records": list(self._items.values()),
            "lengths": lengths,
            "about": self.about,
            "spent": time.monotonic() - self._started,
        }
        arrays = {
            name: np.concatenate([arrays[item] for item in self._items if item in arrays])
            for name, arrays in self._parts.items()
        }
        key = fingerprint(meta["items"], sorted(arrays), [sorted(record) for record in self._items.values()])
        self._records.cache.put(self._records.kind, key, Entry(meta, arrays))
        self._records.add(key, meta)
        self._clear()
