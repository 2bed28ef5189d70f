"""Clips of no known group in a run across groups: left out, and named."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

import earmark
from earmark import audio


def test_clips_without_a_group_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = ["path,label,group"]
    for number in range(24):
        tone = np.sin(np.arange(2000) * (0.1 + 0.2 * (number % 3))) + 0.1 * rng.normal(size=2000)
        audio.write(tmp_path / f"{number}.wav", 0.4 * tone, 16_000)
        rows.append(f"{number}.wav,k{number % 3},{'' if number < 6 else f'bird{number % 4}'}")
    (tmp_path / "clips.csv").write_text("\n".join(rows) + "\n")
    config = {"corpus": str(tmp_path / "clips.csv"), "extractors": ["mfcc"], "metrics": "P@1", "cache": "off"}
    into = tmp_path / "run"
    done = earmark.run({**config, "across_groups": True, "steps": "prepare,embed,evaluate", "into": str(into)})
    for protocol in ("all", "across_groups"):
        row = done.scores.row("P@1", protocol=protocol)
        assert row.n == 18
        assert "6 rows without a group dropped" in row.reason
    with (into / "clips.csv").open(newline="") as stream:
        outcomes = {clip["id"]: clip["outcome"] for clip in csv.DictReader(stream)}
    assert outcomes["0.wav"] == "not scored: no group, so that across groups cannot be known"
    assert outcomes["7.wav"] == "used"
