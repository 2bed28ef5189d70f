"""Golden triples: what brute force said once, Earmark says to 1e-12 (see make.py)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import earmark

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.json"))


def test_there_are_golden_files():
    assert len(NAMES) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_golden(name):
    record = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    with np.load(HERE / f"{name}.npz") as file:
        vectors, labels, groups = file["vectors"], file["labels"], file.get("groups")
    scores = earmark.evaluate(vectors, labels, groups=groups, **record["parameters"])
    for distance, protocols in record["expected"].items():
        for protocol, metrics in protocols.items():
            for metric, cells in metrics.items():
                row = scores.row(metric, distance=distance, protocol=protocol)
                for cell, value in cells.items():
                    assert getattr(row, cell) == pytest.approx(value, rel=0, abs=1e-12), (
                        distance,
                        protocol,
                        metric,
                        cell,
                    )
