"""Runs that are killed, that meet, and that run out of disk: the cache stays valid and the scores the same."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.representations import sounds

from earmark.errors import InputError
from earmark.representations import run
from earmark.runs import store as cache

ROOT = Path(__file__).resolve().parents[2]


class Nursery:
    """Starts runs in processes of their own; see nursery.py."""

    def __init__(self, log: Path) -> None:
        path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        self._log = log
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("nursery.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log.open("w"), text=True,
            env={**os.environ, "PYTHONPATH": path}, cwd=ROOT,
        )  # fmt: skip

    def run(self, *tasks: dict[str, Any]) -> list[dict[str, Any]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(tasks) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self._log.read_text()
        found: list[dict[str, Any]] = json.loads(answer)
        return found

    def said(self) -> str:
        return self._log.read_text()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    found = Nursery(tmp_path_factory.mktemp("nursery") / "stderr.txt")
    yield found
    found.close()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sounds.make_folder(tmp_path_factory.mktemp("sounds"), classes=4, per_class=12)


def slow(corpus: Path, place: Path, **changes: Any) -> dict[str, Any]:
    """A run that spends its time in every step: two models, PCA, two distances, noise."""
    models = [
        {"name": "bands", "spec": sounds.BANDS, "parameters": {"pause": 0.004}},
        {"name": "twice", "spec": sounds.BANDS, "parameters": {"pause": 0.004, "scale": 2.0}},
    ]
    variants = {"pca": ["none", 3], "distances": ["cosine", "euclidean"], "label_noise": [0.1]}
    return sounds.config(corpus, place, extractors=models, **variants, **changes)


def test_killed_at_ten_moments_it_continues_to_the_same_scores(nursery: Nursery, corpus: Path, tmp_path: Path) -> None:
    nursery.run({"config": slow(corpus, tmp_path / "warm")})
    (undisturbed,) = nursery.run({"config": slow(corpus, tmp_path / "whole")})
    assert undisturbed["code"] == 0, nursery.said()
    expected = sounds.without_seconds(tmp_path / "whole" / "run" / "scores.csv")
    moments = random.Random(3)
    killed = 0
    for attempt in range(10):
        place = tmp_path / f"attempt{attempt}"
        after = undisturbed["seconds"] * moments.uniform(0.02, 0.95)
        (first,) = nursery.run({"config": slow(corpus, place), "kill_after": after})
        killed += first["code"] == -9
        (second,) = nursery.run({"config": slow(corpus, place)})
        assert second["code"] == 0, nursery.said()
        assert sounds.without_seconds(place / "run" / "scores.csv") == expected
    assert killed >= 6  # a fast machine may finish before the blow now and then


def test_a_run_killed_many_times_over_does_not_start_from_zero(nursery: Nursery, corpus: Path, tmp_path: Path) -> None:
    (whole,) = nursery.run({"config": slow(corpus, tmp_path / "whole")})
    place = tmp_path / "often"
    for _ in range(3):
        nursery.run({"config": slow(corpus, place), "kill_after": whole["seconds"] * 0.6})
    (last,) = nursery.run({"config": slow(corpus, place)})
    record = json.loads((place / "run" / "run.json").read_text())
    assert last["code"] == 0
    assert record["steps"]["embed"]["cached"] > 0
    parts = list((place / "cache").rglob("*.part"))
    entries = list((place / "cache").rglob("*.entry"))
    assert len(parts) <= 3
    assert entries


def test_two_runs_on_one_cache_at_once(nursery: Nursery, corpus: Path, tmp_path: Path) -> None:
    nursery.run({"config": slow(corpus, tmp_path / "alone")})
    shared = {"url": str(tmp_path / "shared")}
    tasks = [{"config": slow(corpus, tmp_path / name) | {"cache": shared}} for name in ("one", "two", "three")]
    assert [answer["code"] for answer in nursery.run(*tasks)] == [0, 0, 0], nursery.said()
    expected = sounds.without_seconds(tmp_path / "alone" / "run" / "scores.csv")
    for name in ("one", "two", "three"):
        assert sounds.without_seconds(tmp_path / name / "run" / "scores.csv") == expected
    again = run(slow(corpus, tmp_path / "after") | {"cache": shared})
    assert again.counts["embed"]["computed"] == 0
    assert again.counts["evaluate"]["computed"] == 0


def test_a_write_cut_off_by_the_system_leaves_the_cache_valid(nursery: Nursery, corpus: Path, tmp_path: Path) -> None:
    """A limit on file sizes: a real failure in the middle of a write, as on a full disk."""
    task = {"config": sounds.config(corpus, tmp_path), "file_limit": 900}
    (first,) = nursery.run(task)
    assert first["code"] == 3
    assert "The cache" in nursery.said().splitlines()[-1]
    assert "stays valid" in nursery.said().splitlines()[-1]
    assert not list((tmp_path / "cache").rglob("*.part"))
    run(sounds.config(corpus, tmp_path))
    assert_same_as_fresh(corpus, tmp_path)


def test_a_full_disk(corpus: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        small = sounds.config(corpus, tmp_path, pooling=["flatten"], cache={"url": str(disk / "cache")})
        filler = disk / "filler"
        filler.write_bytes(b"x" * 56_000)
        with pytest.raises(InputError, match=r"No space left on device.*--cache-dir.*stays valid"):
            run(small)
        assert not list((disk / "cache").rglob("*.part"))
        filler.unlink()
        again = run(small).counts["embed"]
        assert (again["computed"], again["cached"], again["failed"]) == (48, 0, 0)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_disk_full_halfway(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = iter(range(1000))
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if next(writes) == 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(cache.os, "fsync", fsync)
    with pytest.raises(InputError, match="No space left on device"):
        run(sounds.config(corpus, tmp_path, distances=["cosine", "euclidean", "spearman"]))
    assert_same_as_fresh(corpus, tmp_path, distances=["cosine", "euclidean", "spearman"])


@pytest.mark.parametrize("place", ["file", "proc"])
def test_a_place_that_takes_no_cache(corpus: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    url = str(tmp_path / "file" / "cache") if place == "file" else "/proc/earmark/cache"
    with pytest.raises(InputError, match=r"The cache .* cannot be written .*--cache off"):
        run(sounds.config(corpus, tmp_path, cache={"url": url}))
    assert not (tmp_path / "run" / "scores.csv").exists()


def test_a_place_that_takes_no_results(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match="--into"):
        run(sounds.config(corpus, tmp_path, into=str(tmp_path / "file" / "run")))


def assert_same_as_fresh(corpus: Path, place: Path, **changes: Any) -> None:
    """The next run on the cache under `place` finishes with the scores of a run that nothing disturbed."""
    run(sounds.config(corpus, place, **changes))
    fresh = sounds.config(corpus, place / "fresh", **changes)
    run(fresh)
    ours, theirs = (where / "run" / "scores.csv" for where in (place, place / "fresh"))
    assert sounds.without_seconds(ours) == sounds.without_seconds(theirs)
