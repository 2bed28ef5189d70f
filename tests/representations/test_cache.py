"""Entries are whole or absent, wherever they lie."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from earmark.errors import InputError
from earmark.runs import store as entries
from earmark.runs.store import Cache, Damaged, Entry, default_url, open_cache

ENTRY = Entry({"note": "ü", "n": 3}, {"values": np.arange(6, dtype=np.float32).reshape(2, 3), "none": np.empty((0, 4))})


@pytest.mark.parametrize("url", ["folder", "memory://earmark-test"])
def test_what_goes_in_comes_out(tmp_path: Path, url: str) -> None:
    cache = Cache(url if "://" in url else str(tmp_path / url))
    assert cache.get("kind", "key") is None
    cache.put("kind", "key", ENTRY)
    found = cache.get("kind", "key")
    assert found is not None
    assert found.meta["note"] == "ü"
    assert np.array_equal(found.arrays["values"], ENTRY.arrays["values"])
    assert found.arrays["none"].shape == (0, 4)
    peeked = cache.peek("kind", "key")
    assert peeked is not None
    assert peeked.arrays["values"]["shape"] == [2, 3]
    assert [listed.key for listed in cache.headers("kind")] == ["key"]
    assert cache.headers("other") == []


def test_every_damage_is_found() -> None:
    whole = entries.pack(ENTRY)
    assert entries.pack(ENTRY) == whole
    for size in range(0, len(whole), 7):
        with pytest.raises(Damaged):
            entries.unpack(whole[:size])
    for place in range(0, len(whole), 5):
        changed = bytearray(whole)
        changed[place] ^= 1
        with pytest.raises(Damaged):
            entries.unpack(bytes(changed))


def test_a_damaged_entry_is_removed_and_forgotten(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path))
    cache.put("kind", "key", ENTRY)
    path = Path(cache.path("kind", "key"))
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 255]))
    assert cache.peek("kind", "key") is not None  # the header is whole; the arrays are checked when read
    assert cache.get("kind", "key") is None
    assert not path.exists()
    path.write_bytes(data[:-4])
    assert cache.peek("kind", "key") is None


def test_parts_are_never_read_and_swept_when_old(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path))
    cache.put("kind", "key", ENTRY)
    young, old = (tmp_path / "kind" / f".{name}.entry.1-ab.part" for name in ("young", "old"))
    for part in (young, old):
        part.write_bytes(b"half")
    long_ago = time.time() - 2 * 24 * 3600
    os.utime(old, (long_ago, long_ago))
    assert [listed.key for listed in cache.headers("kind")] == ["key"]
    assert young.exists()
    assert not old.exists()


def test_refresh_does_not_see_what_was_there(tmp_path: Path) -> None:
    Cache(str(tmp_path)).put("kind", "key", ENTRY)
    again = Cache(str(tmp_path), "refresh")
    assert again.get("kind", "key") is None
    assert again.peek("kind", "key") is None
    again.put("kind", "key", ENTRY)
    assert again.get("kind", "key") is not None


def test_off_leaves_nothing() -> None:
    with open_cache("", "off") as cache:
        cache.put("kind", "key", ENTRY)
        folder = cache.folder()
    assert folder is not None
    assert not folder.exists()


def test_the_default_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EARMARK_CACHE", "/somewhere")
    assert default_url() == "/somewhere"
    monkeypatch.delenv("EARMARK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_url() == "/caches/earmark"


def test_an_unknown_kind_of_place() -> None:
    with pytest.raises(InputError, match="cannot be opened"):
        Cache("nosuchscheme://somewhere")
