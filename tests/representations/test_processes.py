"""Embedding in several processes of one machine: the same vectors, and a clip that ends its process costs itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from tests.representations import sounds

from earmark.extractors.contract import ExtractorCard, Frames
from earmark.representations import _workers, run


class Deadly(sounds.Bands):
    """Takes every process but its owner's down with it, on a clip of an odd number of samples."""

    card = ExtractorCard(name="deadly", rate=sounds.RATE, dimension=8, frame_rate=125.0)

    def __init__(self, owner: int) -> None:
        super().__init__()
        self.owner = owner

    def extract(self, waveforms: Sequence[NDArray[np.float32]]) -> list[Frames]:
        if os.getpid() != self.owner and any(len(waveform) % 2 for waveform in waveforms):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().extract(waveforms)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(_workers, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(_workers, "WORTH_WINDOWS", 3)
    return sounds.make_folder(tmp_path / "sounds", per_class=25)


def config(corpus: Path, place: Path, jobs: int, **changes: Any) -> dict[str, Any]:
    return sounds.config(corpus, place, workers=jobs, threads=1, **changes)


@pytest.mark.usefixtures("several_threads")
def test_two_processes_make_what_one_makes(corpus: Path, tmp_path: Path) -> None:
    run(config(corpus, tmp_path / "one", 1))
    found = run(config(corpus, tmp_path / "two", 2))
    assert "processes do it" in (tmp_path / "two" / "run" / "run.log").read_text()
    assert "processes do it" not in (tmp_path / "one" / "run" / "run.log").read_text()
    assert found.counts["embed"]["computed"] == 75
    one, two = (tmp_path / name / "run" / "scores.csv" for name in ("one", "two"))
    assert sounds.without_seconds(one) == sounds.without_seconds(two)


def test_a_clip_that_ends_its_process_costs_itself(corpus: Path, tmp_path: Path) -> None:
    soundfile.write(corpus / "class2" / "odd.wav", sounds.tone(500, 1)[:301], sounds.RATE)
    model = {"name": "deadly", "spec": f"{__name__}:Deadly", "parameters": {"owner": os.getpid()}}
    found = run(config(corpus, tmp_path, 2, extractors=[model]))
    (failure,) = found.failures
    assert failure.id == "class2/odd.wav"
    assert failure.reason.startswith("the process that worked on it ended again and again (")
    assert "SIGKILL" in failure.reason
    assert found.counts["embed"]["computed"] == 75


def test_what_is_short_stays_in_this_process(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_workers, "WORTH_SECONDS", 20.0)
    heard = sounds.Bands.heard
    found = run(config(corpus, tmp_path, 2))
    assert sounds.Bands.heard >= heard + 75
    assert found.counts["embed"] | {"seconds": 0} == {"computed": 75, "cached": 0, "failed": 0, "seconds": 0}
    monkeypatch.setattr(_workers, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(_workers, "MEMORY_SHARE", 0.0)  # a machine whose memory holds one model
    run(config(corpus, tmp_path / "full", 2))
    assert "processes do it" not in (tmp_path / "full" / "run" / "run.log").read_text()
