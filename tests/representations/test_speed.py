"""A run at another speed: other vectors under other keys, and annotations that stay in the time of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import earmark
from earmark.errors import UsageError


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """One recording at 250 kHz with calls of 40 and 70 kHz, each 20 ms long, found by start and end."""
    rate, rng = 250_000, np.random.default_rng(0)
    times = np.arange(rate // 50) / rate
    lines, calls = ["path,start,end,label"], []
    for number in range(12):
        pitch = (40_000, 70_000)[number % 2] + 1000 * rng.standard_normal()
        calls.append(0.5 * np.sin(2 * np.pi * pitch * times) + 0.001 * rng.standard_normal(len(times)))
        lines.append(f"mice.wav,{0.02 * number:.2f},{0.02 * (number + 1):.2f},{('low', 'high')[number % 2]}")
    soundfile.write(tmp_path / "mice.wav", np.concatenate(calls), rate, subtype="FLOAT")
    (tmp_path / "clips.csv").write_text("\n".join(lines))
    return {
        "corpus": str(tmp_path / "clips.csv"), "extractors": [{"spec": "logmel", "pooling": "mean_time"}],
        "cache": str(tmp_path / "cache"), "into": str(tmp_path / "run"), "metrics": ["P@1"],
        "steps": ["embed", "evaluate"],
    }  # fmt: skip


def test_sixteen_kilohertz_tell_calls_apart_that_are_played_slowly(settings: dict[str, Any]) -> None:
    fast = earmark.run(settings)
    slow = earmark.run({**settings, "speed": 0.1})
    assert fast.counts["embed"]["computed"] == slow.counts["embed"]["computed"] == 12
    assert slow.scores.value("P@1") == 1.0
    assert fast.scores.value("P@1") < 1.0  # filtered away before the model hears it
    again = earmark.run({**settings, "speed": 0.1})
    assert again.counts["embed"]["computed"] == 0
    assert [row.value for row in again.scores] == [row.value for row in slow.scores]
    native = earmark.run({**settings, "extractors": [{"spec": "logmel?rate=native", "pooling": "mean_time"}]})
    assert native.scores.value("P@1") == 1.0


@pytest.mark.parametrize("speed", [0, -0.1, "slow", True])
def test_what_is_no_speed_is_refused(settings: dict[str, Any], speed: object) -> None:
    with pytest.raises(UsageError, match="speed"):
        earmark.run({**settings, "speed": speed})
