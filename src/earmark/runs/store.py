"""Finished work, kept by content: a folder or any fsspec URL that many runs may read and write at once.

An entry's name is the hash of everything it depends on, so it is never wrong, only absent. In a folder it is written
beside its place under a name of its own, forced to disk and renamed; an object store gets it by one upload, which it
shows when it is whole. A reader sees all of it or nothing, a killed writer leaves a part that nobody reads, and two
writers of one entry leave one whole entry. A cut connection is taken up again (`earmark.places`). Its bytes are

    earmark-entry 1 <header bytes> <header sha256> <body bytes> <body sha256>\\n
    {"meta": {...}, "arrays": {"values": {"dtype": "<f4", "shape": [256, 128], "at": 0}, ...}}
    raw little-endian arrays, one after another

so a damaged entry is known by reading it; it is then removed and computed again. The header alone can be read and
checked without the arrays.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import platform
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.atomic import write_whole
from earmark.errors import InputError
from earmark.places import is_remote, locate, read_heads, sizes_in
from earmark.runs.config import Policy

MAGIC = b"earmark-entry 1"
SEAL_SIZE = 256  # the first line is never longer
SUFFIX = ".entry"
STALE_SECONDS = 24 * 3600
"""A part older than this belongs to a writer that is gone."""
RUNNING = "running"
"""The folder of a cache in which runs that use it leave a mark."""
RECENT = 12
"""Entries that `Cache.recent` holds in memory."""
HEADER_GUESS = 1 << 16
_HEADERS_AT_ONCE = 256

log = logging.getLogger("earmark.runs")


# --- one entry as bytes --------------------------------------------------------------------------------------


class Damaged(Exception):
    """Bytes that are not a whole entry; the message says why."""


@dataclass(frozen=True)
class Entry:
    """Facts that JSON can hold, and named arrays."""

    meta: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class Header(NamedTuple):
    """What is known of an entry without its arrays."""

    key: str
    meta: dict[str, Any]
    arrays: dict[str, Any]


class Seal(NamedTuple):
    """What the first line says of the rest."""

    start: int  # where the header begins
    header: int
    header_hash: str
    body: int
    body_hash: str

    @property
    def size(self) -> int:
        return self.start + self.header + self.body


def pack(entry: Entry) -> bytes:
    """The bytes of an entry; the same entry gives the same bytes."""
    layout: dict[str, Any] = {}
    chunks: list[bytes] = []
    at = 0
    for name, array in entry.arrays.items():
        plain = np.ascontiguousarray(array)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        layout[name] = {"dtype": plain.dtype.str, "shape": list(plain.shape), "at": at}
        chunks.append(plain.tobytes())
        at += len(chunks[-1])
    body = b"".join(chunks)
    facts = {"meta": dict(entry.meta), "arrays": layout}
    header = json.dumps(facts, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    seal = f" {len(header)} {_sha256(header)} {len(body)} {_sha256(body)}\n".encode()
    return MAGIC + seal + header + body


def read_seal(data: bytes) -> Seal:
    """The seal at the start of `data`; `Damaged` when there is none."""
    line, newline, _ = data[:SEAL_SIZE].partition(b"\n")
    words = line.removeprefix(MAGIC).split()
    if not newline or not line.startswith(MAGIC) or len(words) != 4:
        raise Damaged("it does not start like a cache entry")
    try:
        return Seal(len(line) + 1, int(words[0]), words[1].decode(), int(words[2]), words[3].decode())
    except ValueError:
        raise Damaged("its first line is damaged") from None


def read_header(data: bytes, seal: Seal) -> dict[str, Any]:
    """The header, checked against the seal: {"meta": ..., "arrays": ...}."""
    header = data[seal.start : seal.start + seal.header]
    if len(header) != seal.header or _sha256(header) != seal.header_hash:
        raise Damaged("its header does not match its checksum")
    facts: dict[str, Any] = json.loads(header)
    return facts


def unpack(data: bytes) -> Entry:
    """The entry, with every byte checked. Arrays are read-only views of `data`."""
    seal = read_seal(data)
    if len(data) != seal.size:
        raise Damaged(f"it has {len(data)} bytes instead of {seal.size}")
    facts = read_header(data, seal)
    body = memoryview(data)[seal.start + seal.header :]
    if _sha256(body) != seal.body_hash:
        raise Damaged("its contents do not match their checksum")
    arrays = {}
    for name, layout in facts["arrays"].items():
        dtype = np.dtype(layout["dtype"])
        count = int(np.prod(layout["shape"], dtype=np.int64))
        flat = np.frombuffer(body, dtype, count, layout["at"]) if count else np.empty(0, dtype)
        arrays[name] = flat.reshape(layout["shape"])
    return Entry(facts["meta"], arrays)


def _sha256(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


# --- all of them ---------------------------------------------------------------------------------------------


def default_url() -> str:
    """EARMARK_CACHE, else ~/.cache/earmark (or where XDG_CACHE_HOME says)."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return os.environ.get("EARMARK_CACHE") or str(Path(home).expanduser() / "earmark")


@contextlib.contextmanager
def open_cache(url: str = "", policy: Policy = "use") -> Iterator[Cache]:
    """The cache at `url`. With policy `off` it is a temporary folder that goes when the run ends."""
    if policy != "off":
        cache = Cache(url or default_url(), policy)
        with _marked_as_used(cache):
            yield cache
        return
    with tempfile.TemporaryDirectory(prefix="earmark-", ignore_cleanup_errors=True) as folder:
        yield Cache(folder, policy)


@contextlib.contextmanager
def _marked_as_used(cache: Cache) -> Iterator[None]:
    """A file RUNNING/host-process-number in the cache while a run uses it, so that nobody prunes it meanwhile."""
    mark = cache.root / RUNNING / f"{platform.node() or 'here'}-{os.getpid()}-{time.time_ns()}"
    if cache.local:
        with contextlib.suppress(OSError):  # a cache that is only read
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
    try:
        yield
    finally:
        if cache.local:
            with contextlib.suppress(OSError):
                mark.unlink(missing_ok=True)
                mark.parent.rmdir()  # where no other run is left


class Made(NamedTuple):
    """An entry, and whether it had to be computed."""

    entry: Entry
    computed: bool


class Cache:
    """Entries under a URL, by kind and key. Those written before `since` (in ns) are taken for absent."""

    def __init__(self, url: str, policy: Policy = "use", since: int | None = None) -> None:
        self.policy = policy
        self.since = since if since is not None else time.time_ns() if policy == "refresh" else 0
        self._recent: dict[tuple[str, str], Entry] = {}
        root = locate(url).expanduser()
        self.local = not is_remote(root)
        if is_remote(root):
            root.check_scheme()
        self._root = Path(os.path.abspath(root)) if self.local else root  # noqa: PTH100 (`..` goes, links stay)
        self.url = str(self._root)

    @property
    def root(self) -> Path:
        """Where the entries lie."""
        return self._root

    def folder(self) -> Path | None:
        """The cache as a folder of this machine, or None when it lies elsewhere."""
        return self._root if self.local else None

    def path(self, kind: str, key: str) -> str:
        """Where an entry lies."""
        return str(self._place(kind, key))

    def _place(self, kind: str, key: str) -> Path:
        return self._root / kind / f"{key}{SUFFIX}"

    def recall(self, kind: str, key: str, make: Callable[[], Entry]) -> Made:
        """The entry as it was stored, or made now and stored."""
        entry = self.get(kind, key)
        if entry is not None:
            return Made(entry, False)
        entry = make()
        self.put(kind, key, entry)
        return Made(entry, True)

    # --- reading ---------------------------------------------------------------------------------------------

    def get(self, kind: str, key: str) -> Entry | None:
        """The entry, every byte checked; None when there is none, or it is damaged, or it is to be refreshed."""
        damage = Damaged()
        # Elsewhere, a read that crosses a write or is cut short without a word looks damaged: it is read once more.
        for _ in range(1 if self.local else 2):
            data = self._read(self._place(kind, key))
            if data is None:
                return None
            try:
                entry = unpack(data)
            except Damaged as found:
                damage = found
                continue
            return entry if self._current(entry.meta) else None
        self._discard(kind, key, damage)
        return None

    def recent(self, kind: str, key: str) -> Entry | None:
        """`get`, for entries that are asked for again and again: the last few stay in memory."""
        if (kind, key) not in self._recent:
            entry = self.get(kind, key)
            if entry is None:
                return None
            while len(self._recent) >= RECENT:
                del self._recent[next(iter(self._recent))]
            self._recent[kind, key] = entry
        return self._recent[kind, key]

    def peek(self, kind: str, key: str) -> Header | None:
        """The header of an entry whose size is right; its arrays are checked when they are read."""
        place = self._place(kind, key)
        try:
            return self._checked_headers(kind, {key: place.stat().st_size}).get(key)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise self._unreadable(error) from error

    def headers(self, kind: str) -> list[Header]:
        """The headers of every entry of a kind, oldest first: one listing, and many headers at a time."""
        try:
            sizes = sizes_in(self._root / kind)
        except OSError as error:
            raise self._unreadable(error) from error
        for name in sizes if self.local else ():
            if name.endswith(".part"):
                _sweep(self._root / kind / name)
        keys = {name.removesuffix(SUFFIX): size for name, size in sorted(sizes.items()) if name.endswith(SUFFIX)}
        headers = self._checked_headers(kind, keys).values()
        return sorted(headers, key=lambda header: (header.meta.get("written", 0), header.key))

    def _checked_headers(self, kind: str, sizes: Mapping[str, int]) -> dict[str, Header]:
        """The headers of entries of these sizes that are whole and current."""
        headers: dict[str, Header] = {}
        keys = list(sizes)
        for start in range(0, len(keys), _HEADERS_AT_ONCE):
            batch = keys[start : start + _HEADERS_AT_ONCE]
            for key, known in self._batch_of_headers(kind, {key: sizes[key] for key in batch}).items():
                # Damaged, or replaced between the listing and the reading: look again.
                header = self._second_look(kind, key, known) if isinstance(known, Damaged) else known
                if header is not None and self._current(header.meta):
                    headers[key] = header
        return headers

    def _batch_of_headers(self, kind: str, sizes: Mapping[str, int]) -> dict[str, Header | Damaged]:
        found: dict[str, Header | Damaged] = {}
        known = dict(zip(sizes, self._heads(kind, {key: min(HEADER_GUESS, sizes[key]) for key in sizes}), strict=True))
        longer: dict[str, int] = {}
        for key, data in known.items():
            with contextlib.suppress(Damaged):  # which is found again below
                seal = read_seal(data or b"")
                if data is not None and len(data) < seal.start + seal.header <= sizes[key]:
                    longer[key] = seal.start + seal.header
        known.update(zip(longer, self._heads(kind, longer), strict=True))
        for key, data in known.items():
            if data is None:
                continue
            try:
                seal = read_seal(data)
                if sizes[key] != seal.size:
                    raise Damaged(f"it has {sizes[key]} bytes instead of {seal.size}")
                facts = read_header(data, seal)
            except Damaged as damage:
                found[key] = damage
            else:
                found[key] = Header(key, facts["meta"], facts["arrays"])
        return found

    def _second_look(self, kind: str, key: str, damage: Damaged) -> Header | None:
        try:
            size = self._place(kind, key).stat().st_size
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise self._unreadable(error) from error
        header = self._batch_of_headers(kind, {key: size}).get(key)
        if isinstance(header, Damaged):
            self._discard(kind, key, damage)
            return None
        return header

    def _heads(self, kind: str, sizes: Mapping[str, int]) -> list[bytes | None]:
        try:
            return read_heads([self._place(kind, key) for key in sizes], list(sizes.values()))
        except OSError as error:
            raise self._unreadable(error) from error

    def _current(self, meta: Mapping[str, Any]) -> bool:
        return int(meta.get("written", 0)) >= self.since

    def _read(self, place: Path) -> bytes | None:
        try:
            return place.read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise self._unreadable(error) from error

    def _discard(self, kind: str, key: str, damage: Damaged) -> None:
        log.warning("cache entry %s/%s is damaged (%s): it is computed again", kind, key, damage)
        with contextlib.suppress(OSError, InputError):
            self._place(kind, key).unlink()

    # --- writing ---------------------------------------------------------------------------------------------

    def put(self, kind: str, key: str, entry: Entry) -> None:
        """Store an entry, whole or not at all; an error of one sentence when the place takes no more."""
        data = pack(Entry({**entry.meta, "written": time.time_ns()}, entry.arrays))
        try:
            place = self._place(kind, key)
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, data)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            remedy = (
                "free some space there, or give another place with --cache-dir"
                if full
                else "give another place with --cache-dir, or do without with --cache off"
            )
            raise InputError(
                f"The cache {self.url} cannot be written ({error.strerror or error}): {remedy}; "
                "what it holds already stays valid."
            ) from error

    def check_writable(self) -> None:
        """Refuse a place that takes no entries before the work, not after it."""
        token = secrets.token_hex(8)
        self.put("probe", token, Entry())
        with contextlib.suppress(OSError):
            self._place("probe", token).unlink()

    def _unreadable(self, error: OSError) -> InputError:
        return InputError(
            f"The cache {self.url} cannot be read ({error.strerror or error}): check its permissions, or give "
            "another place with --cache-dir."
        )


def _sweep(part: Path) -> None:
    """Remove a part that a killed writer left long ago."""
    with contextlib.suppress(OSError):
        if time.time() - part.stat().st_mtime > STALE_SECONDS:
            part.unlink()
