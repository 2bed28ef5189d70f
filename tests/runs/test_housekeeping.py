"""What a cache takes up, what is pruned, and what is damaged."""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path

import numpy as np
import pytest

from earmark.cli import main
from earmark.errors import InputError
from earmark.extractors.wheel_weights import weights_folder
from earmark.runs.housekeeping import damaged_in, prune, shares, stored_in
from earmark.runs.store import RUNNING, Cache, Entry, open_cache

DAY = 24 * 3600


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """Four entries of two kinds, written 0, 10, 20 and 30 days ago."""
    made = Cache(str(tmp_path / "cache"))
    for number in range(4):
        kind = "vectors/stage" if number % 2 else "scores"
        made.put(kind, f"key{number}", Entry({"n": number}, {"values": np.zeros(1000 * (number + 1), np.float32)}))
        written = time.time() - 10 * number * DAY
        os.utime(made.path(kind, f"key{number}"), (written, written))
    return made


def test_kinds_are_counted(cache: Cache) -> None:
    (tmp := cache.root / "notes.txt").write_text("mine")
    found = {share.kind: share for share in shares(stored_in(cache))}
    assert set(found) == {"scores", "vectors"}
    assert [found[kind].entries for kind in ("scores", "vectors")] == [2, 2]
    assert found["vectors"].size > found["scores"].size
    assert tmp.exists()


def test_old_entries_go(cache: Cache) -> None:
    would = prune(cache, older_than=15, dry=True)
    assert len(stored_in(cache)) == 4
    assert prune(cache, older_than=15) == would
    assert would.removed == would.kept == 2
    assert cache.get("scores", "key0") is not None
    assert cache.get("scores", "key2") is None


def test_the_oldest_go_until_the_rest_fits(cache: Cache) -> None:
    sizes = [file.size for file in stored_in(cache)]
    assert prune(cache, keep=sum(sizes[1:])).removed == 1
    assert prune(cache, keep=sum(sizes[1:])).removed == 0
    assert cache.get("vectors/stage", "key3") is None
    assert prune(cache, keep=0).kept == 0


def test_kinds_that_are_not_named_stay(cache: Cache) -> None:
    assert prune(cache, keep=0, kinds=["vectors"]).removed == 2
    assert {file.kind for file in stored_in(cache)} == {"scores"}


def test_parts_of_killed_writers_go_when_they_are_old(cache: Cache) -> None:
    old, new = (cache.root / "scores" / f"{name}.part" for name in ("old", "new"))
    for part in (old, new):
        part.write_bytes(b"half")
    os.utime(old, (time.time() - 2 * DAY,) * 2)
    prune(cache, older_than=1000)
    assert not old.exists()
    assert new.exists()


def test_a_changed_byte_is_found(cache: Cache) -> None:
    assert damaged_in(cache) == []
    path = Path(cache.path("scores", "key0"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    ((file, reason),) = damaged_in(cache)
    assert file.path == path
    assert "checksum" in reason
    damaged_in(cache, remove=True)
    assert not path.exists()
    assert damaged_in(cache) == []


def test_the_command(cache: Cache, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--cache-dir", cache.url, "--json", "--quiet"]
    assert main(["cache", "info", *where]) == 0
    assert {kind["kind"] for kind in json.loads(capsys.readouterr().out)["kinds"]} == {"scores", "vectors"}
    assert main(["cache", "prune", "--older-than", "25", *where]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == 1
    Path(cache.path("scores", "key0")).write_bytes(b"nonsense")
    assert main(["cache", "verify", *where]) == 1
    assert len(json.loads(capsys.readouterr().out)) == 1
    assert main(["cache", "verify", "--remove", *where]) == 0
    assert main(["cache", "prune", "--cache-dir", cache.url]) == 2
    assert "--older-than DAYS" in capsys.readouterr().err
    assert main(["cache", "prune", "--keep", "0", "--kind", "vector", "--cache-dir", cache.url]) == 2
    assert "it has scores, vectors" in capsys.readouterr().err


def test_an_empty_cache_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--cache-dir", str(tmp_path / "none"), "--quiet"]
    assert main(["cache", "info", *where]) == 0
    assert "0 B in 0 files" in capsys.readouterr().out
    assert main(["cache", "verify", *where]) == 0


def test_weights_lie_apart_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EARMARK_WEIGHTS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert weights_folder() == tmp_path / "data" / "earmark" / "weights"
    (tmp_path / "cache" / "earmark" / "weights").mkdir(parents=True)
    assert weights_folder() == tmp_path / "cache" / "earmark" / "weights"
    (tmp_path / "data" / "earmark" / "weights").mkdir(parents=True)
    assert weights_folder() == tmp_path / "data" / "earmark" / "weights"


def test_a_cache_elsewhere_is_looked_after_alike(cache: Cache) -> None:
    """An fsspec URL that is no folder of this machine to Earmark."""
    elsewhere = Cache("memory://earmark-housekeeping")
    for number, kind in enumerate(("scores", "vectors/stage")):
        elsewhere.put(kind, f"key{number}", Entry({"n": number}, {"values": np.zeros(10, np.float32)}))
    try:
        assert {share.kind for share in shares(stored_in(elsewhere))} == {"scores", "vectors"}
        assert all(time.time() - file.written < DAY for file in stored_in(elsewhere))
        assert damaged_in(elsewhere) == []
        assert prune(elsewhere, older_than=1).removed == 0
    finally:
        assert prune(elsewhere, keep=0).kept == 0


def test_what_no_run_refers_to_goes(cache: Cache, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").mkdir()
    record = {"evaluations": [{"key": "key0"}], "vectors": [{"extractor_key": "stage"}], "format": 1}
    (tmp_path / "run" / "run.json").write_text(json.dumps(record))
    words = ["cache", "prune", "--unused-by", str(tmp_path / "run"), "--cache-dir", cache.url, "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == 1
    assert cache.get("scores", "key2") is None
    assert cache.get("scores", "key0") is not None
    assert cache.get("vectors/stage", "key3") is not None
    assert main([*words[:3], str(tmp_path / "nowhere"), "--cache-dir", cache.url]) == 1


@pytest.mark.skipif(os.name == "nt", reason="processes are known by age alone on Windows")
def test_nothing_goes_while_a_run_uses_the_cache(cache: Cache) -> None:
    with open_cache(cache.url):
        with pytest.raises(InputError, match=f"A run uses the cache .*process {os.getpid()}"):
            prune(cache, keep=0)
        assert prune(cache, keep=0, dry=True).removed == 4
    assert not (cache.root / RUNNING).exists()
    (cache.root / RUNNING).mkdir()
    mark = cache.root / RUNNING / f"{platform.node() or 'here'}-999999999-1"  # of a run that was killed
    mark.touch()
    assert prune(cache, keep=0).removed == 4
    assert not mark.exists()
