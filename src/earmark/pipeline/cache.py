"""Finished steps, kept by content: a folder or any fsspec URL that many runs may read and write at once.

An entry's name is the hash of everything it depends on, so it is never wrong, only absent. It is written beside
its place under a name of its own, forced to disk and renamed: a reader sees all of it or nothing, a killed
writer leaves a part that nobody reads, and two writers of one entry leave one whole entry. Damaged entries are
found by their checksum, removed and computed again.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import fsspec
from fsspec.implementations.local import LocalFileSystem

from earmark.atomic import write_whole
from earmark.errors import InputError
from earmark.pipeline import entries
from earmark.pipeline.config import Policy
from earmark.pipeline.entries import Damaged, Entry

SUFFIX = ".entry"
STALE_SECONDS = 24 * 3600
"""A part older than this belongs to a writer that is gone."""
_HEADER_GUESS = 1 << 16

log = logging.getLogger("earmark.pipeline")


class Listed(NamedTuple):
    """An entry whose header was read, and not yet its arrays."""

    key: str
    meta: dict[str, Any]
    arrays: dict[str, Any]


def default_url() -> str:
    """EARMARK_CACHE, else ~/.cache/earmark (or where XDG_CACHE_HOME says)."""
    given = os.environ.get("EARMARK_CACHE")
    if given:
        return given
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return str(Path(home).expanduser() / "earmark")


@contextlib.contextmanager
def open_cache(url: str = "", policy: Policy = "use") -> Iterator[Cache]:
    """The cache at `url`. With policy `off` it is a temporary folder that goes when the run ends."""
    if policy != "off":
        yield Cache(url or default_url(), policy)
        return
    with tempfile.TemporaryDirectory(prefix="earmark-", ignore_cleanup_errors=True) as folder:
        yield Cache(folder, policy)


class Cache:
    """Entries under a URL, by kind and key."""

    def __init__(self, url: str, policy: Policy = "use") -> None:
        self.policy = policy
        self._since = time.time_ns() if policy == "refresh" else 0
        try:
            self._fs, self._root = fsspec.core.url_to_fs(str(Path(url).expanduser()) if "://" not in url else url)
        except (ImportError, ValueError) as error:
            raise InputError(f"The cache {url!r} cannot be opened ({error}).") from error
        self.local = isinstance(self._fs, LocalFileSystem)
        self._root = self._root.rstrip("/")
        self.url = self._root if self.local else url

    def folder(self) -> Path | None:
        """The cache as a folder of this machine, or None when it lies elsewhere."""
        return Path(self._root) if self.local else None

    def place(self, kind: str, key: str) -> str:
        """Where an entry lies."""
        return f"{self._root}/{kind}/{key}{SUFFIX}"

    # --- reading ---------------------------------------------------------------------------------------------

    def get(self, kind: str, key: str) -> Entry | None:
        """The entry, every byte checked; None when there is none, or it is damaged, or it is to be refreshed."""
        data = self._read(self.place(kind, key))
        if data is None:
            return None
        try:
            entry = entries.unpack(data)
        except Damaged as damage:
            self._discard(kind, key, damage)
            return None
        return entry if self._current(entry.meta) else None

    def peek(self, kind: str, key: str) -> Listed | None:
        """The header of an entry whose size is right; its arrays are checked when they are read."""
        place = self.place(kind, key)
        data = self._read(place, _HEADER_GUESS)
        if data is None:
            return None
        try:
            seal = entries.read_seal(data)
            if self._fs.size(place) != seal.size:
                raise Damaged(f"it does not have its {seal.size} bytes")
            if len(data) < seal.start + seal.header:
                data = self._read(place, seal.start + seal.header) or b""
            header = entries.read_header(data, seal)
        except Damaged as damage:
            self._discard(kind, key, damage)
            return None
        except OSError:
            return None
        return Listed(key, header["meta"], header["arrays"]) if self._current(header["meta"]) else None

    def listing(self, kind: str) -> list[Listed]:
        """The headers of every entry of a kind, oldest first."""
        folder = f"{self._root}/{kind}"
        self._fs.invalidate_cache(folder)
        try:
            names = [Path(name).name for name in self._fs.ls(folder, detail=False)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._unreadable(error) from error
        for name in names:
            if name.endswith(".part"):
                self._sweep(f"{folder}/{name}")
        keys = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
        found = [listed for listed in (self.peek(kind, key) for key in sorted(keys)) if listed is not None]
        return sorted(found, key=lambda listed: (listed.meta.get("written", 0), listed.key))

    def _current(self, meta: Any) -> bool:
        return int(meta.get("written", 0)) >= self._since

    def _read(self, place: str, size: int | None = None) -> bytes | None:
        try:
            with self._fs.open(place, "rb") as stream:
                data: bytes = stream.read() if size is None else stream.read(size)
                return data
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise self._unreadable(error) from error

    def _discard(self, kind: str, key: str, damage: Damaged) -> None:
        log.warning("cache entry %s/%s is damaged (%s): it is computed again", kind, key, damage)
        with contextlib.suppress(OSError):
            self._fs.rm_file(self.place(kind, key))

    def _sweep(self, place: str) -> None:
        """Remove a part that a killed writer left long ago."""
        if self.local:
            with contextlib.suppress(OSError):
                if time.time() - Path(place).stat().st_mtime > STALE_SECONDS:
                    Path(place).unlink()

    # --- writing ---------------------------------------------------------------------------------------------

    def put(self, kind: str, key: str, entry: Entry) -> None:
        """Store an entry, whole or not at all; an error of one sentence when the place takes no more."""
        stamped = Entry({**entry.meta, "written": time.time_ns()}, entry.arrays)
        data = entries.pack(stamped)
        try:
            if self.local:
                place = Path(self.place(kind, key))
                place.parent.mkdir(parents=True, exist_ok=True)
                write_whole(place, data)
            else:
                self._write_remotely(self.place(kind, key), data)
        except OSError as error:
            raise self._unwritable(error) from error

    def check_writable(self) -> None:
        """Refuse a place that takes no entries before the work, not after it."""
        token = secrets.token_hex(8)
        self.put("probe", token, Entry())
        with contextlib.suppress(OSError):
            self._fs.rm_file(self.place("probe", token))

    def _write_remotely(self, place: str, data: bytes) -> None:
        # An object store shows an object when its upload ends; other file systems need the rename.
        part = f"{place}.{os.getpid()}-{secrets.token_hex(8)}.part"
        self._fs.makedirs(place.rpartition("/")[0], exist_ok=True)
        try:
            self._fs.pipe_file(part, data)
            self._fs.mv(part, place)
        finally:
            with contextlib.suppress(OSError):
                if self._fs.exists(part):
                    self._fs.rm_file(part)

    def _unwritable(self, error: OSError) -> InputError:
        remedy = {
            errno.ENOSPC: "free some space there, or give another place with --cache-dir",
            errno.EDQUOT: "free some space there, or give another place with --cache-dir",
        }.get(error.errno or 0, "give another place with --cache-dir, or do without with --cache off")
        return InputError(
            f"The cache {self.url} cannot be written ({error.strerror or error}): {remedy}; "
            "what it holds already stays valid."
        )

    def _unreadable(self, error: OSError) -> InputError:
        return InputError(
            f"The cache {self.url} cannot be read ({error.strerror or error}): check its permissions, or give "
            "another place with --cache-dir."
        )
