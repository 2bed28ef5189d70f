"""A run at another speed: other vectors under other keys, and annotations that stay in the time of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import earmark
from earmark.errors import InputError, UsageError
from earmark.representations import open_clips
from earmark.representations.report import gather
from earmark.runs.folder import read_record
from earmark.scores import Scores


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
    files = gather(again.folder, read_record(again.folder), again.scores, Scores(), {}).files
    assert files[0].outcome == "heard as one channel at 16000 Hz, at 0.1 of their speed"
    (clips,) = open_clips(settings["into"]).values()
    assert next(iter(clips.values())).seconds() == pytest.approx(0.2)  # 20 ms, ten times as slow
    native = earmark.run({**settings, "extractors": [{"spec": "logmel?rate=native", "pooling": "mean_time"}]})
    assert native.scores.value("P@1") == 1.0


def test_sounds_of_two_rates_have_no_native_one_even_where_their_vectors_are_cached(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    settings = {**settings, "extractors": [{"spec": "logmel?rate=native", "pooling": "mean_time"}]}
    earmark.run(settings)
    soundfile.write(tmp_path / "low.wav", np.random.default_rng(1).standard_normal(4800) / 9, 48_000, subtype="FLOAT")
    other = [f"low.wav,{0.01 * number:.2f},{0.01 * (number + 1):.2f},{'ab'[number % 2]}" for number in range(8)]
    (tmp_path / "low.csv").write_text("\n".join(["path,start,end,label", *other]))
    earmark.run({**settings, "corpus": str(tmp_path / "low.csv")})
    both = (tmp_path / "clips.csv").read_text() + "\n" + "\n".join(other)
    (tmp_path / "both.csv").write_text(both)
    with pytest.raises(InputError, match=r"250000 Hz \(12 clips\) and 48000 Hz \(8 clips\)"):
        earmark.run({**settings, "corpus": str(tmp_path / "both.csv")})


@pytest.mark.parametrize("speed", [0, -0.1, "slow", True])
def test_what_is_no_speed_is_refused(settings: dict[str, Any], speed: object) -> None:
    with pytest.raises(UsageError, match="speed"):
        earmark.run({**settings, "speed": speed})
