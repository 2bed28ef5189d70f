"""Packs: what goes in comes out, and packs of earlier versions are still read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from earmark.runs.packs import LostPacks, Packer, read_records
from earmark.runs.store import Cache, Entry


def test_arrays_of_unlike_lengths_come_back(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path))
    packer = Packer(read_records(cache, "vectors/a"))
    packer.about["features"] = 3
    for number in range(4):
        packer.add(f"i{number}", {"n": number}, {"part": np.full(number, number, np.float32)} if number != 2 else {})
    packer.flush()
    records = read_records(cache, "vectors/a")
    assert records.having(["part"]) == {"i0", "i1", "i3"}
    assert records.array("i3", "part").tolist() == [3.0, 3.0, 3.0]
    assert {row: array.tolist() for row, array in records.arrays(["i3", "i1"], "part")} == {0: [3] * 3, 1: [1]}
    assert [about["features"] for about in records.about.values()] == [3]
    (pack,) = (tmp_path / "vectors" / "a").glob("*.entry")
    pack.unlink()
    fresh = read_records(cache, "vectors/b")
    fresh.add("gone", {"items": ["x"], "records": [{}], "lengths": {"part": [2]}, "about": {}, "spent": 0.0})
    with pytest.raises(LostPacks):
        fresh.array("x", "part")
    assert fresh.payload("x", "part") is None
    assert fresh.having(["part"]) == set()


def test_packs_of_version_0_1_0_are_read(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path))
    vectors = {
        "clips": ["a", "b"], "facts": [[1.5, 8000, 1], [2.0, 8000, 2]], "lengths": {"mean_time": [2, 2]},
        "features": 2, "remark": "it keeps state", "spent": 3.0,
    }  # fmt: skip
    cache.put("vectors/key", "one", Entry(vectors, {"mean_time": np.arange(4, dtype=np.float32)}))
    records = read_records(cache, "vectors/key")
    assert records.records["b"] == {"seconds": 2.0, "rate": 8000, "channels": 2}
    assert records.array("b", "mean_time").tolist() == [2.0, 3.0]
    assert records.about["one"] == {"features": 2, "remark": "it keeps state"}
    coded = {"clips": ["a", "b"], "records": [{"bits": 8}, {"bits": 16}], "sizes": [1, 2]}
    cache.put("coded/key", "one", Entry(coded, {"blob": np.frombuffer(b"xyz", np.uint8)}))
    assert read_records(cache, "coded/key").payload("b", "blob") == b"yz"
    values = {"clips": ["a"], "records": [{"all pesq": [4.0, "ok", ""]}], "sizes": [None]}
    cache.put("codec-metrics/key", "one", Entry(values))
    assert read_records(cache, "codec-metrics/key").records["a"] == {"all pesq": [4.0, "ok", ""]}
