"""Tiny sounds and tiny models for tests of the pipeline; also imported by the processes that tests start."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from earmark.extractors.contract import ExtractorCard, Frames

RATE = 8000
FATAL = 304  # samples of a clip that Fussy does not survive


def tone(pitch: float, seed: int, seconds: float = 0.05, rate: int = RATE) -> NDArray[np.float32]:
    time_axis = np.arange(int(seconds * rate)) / rate
    noise = np.random.default_rng(seed).standard_normal(len(time_axis))
    return (0.4 * np.sin(2 * np.pi * pitch * time_axis) + 0.2 * noise).astype(np.float32)


def make_folder(root: Path, classes: int = 3, per_class: int = 6) -> Path:
    """root/class0/clip0.wav ...: noisy tones, one pitch to a class."""
    for kind in range(classes):
        (root / f"class{kind}").mkdir(parents=True, exist_ok=True)
        for number in range(per_class):
            sound = tone(300.0 * (kind + 1), 1000 * kind + number)
            soundfile.write(root / f"class{kind}" / f"clip{number}.wav", sound, RATE)
    return root


class Bands:
    """Frames of 8 spectral bands; counts the clips it was given."""

    card = ExtractorCard(name="bands", short_name="B", rate=RATE, dimension=8, frame_rate=125.0)
    heard = 0

    def __init__(self, scale: float = 1.0, pause: float = 0.0) -> None:
        self.scale, self.pause = scale, pause

    def extract(self, waveforms: Sequence[NDArray[np.float32]]) -> list[Frames]:
        time.sleep(self.pause * len(waveforms))
        type(self).heard += len(waveforms)
        return [self._one(waveform) for waveform in waveforms]

    def _one(self, waveform: NDArray[np.float32]) -> Frames:
        padded = np.pad(waveform, (0, -len(waveform) % 64 if len(waveform) > 64 else 64 - len(waveform)))
        spectrum = np.abs(np.fft.rfft(padded.reshape(-1, 64), axis=1))[:, :32]
        values = self.scale * spectrum.reshape(len(spectrum), 8, 4).sum(axis=2)
        return Frames(values.astype(np.float32), len(values))


class Fussy(Bands):
    """Fails on every clip of an odd number of samples, with whatever batch it comes in, and ends the program on one."""

    card = ExtractorCard(name="fussy", rate=RATE, dimension=8, frame_rate=125.0, context_seconds=0.04)

    def extract(self, waveforms: Sequence[NDArray[np.float32]]) -> list[Frames]:
        if any(len(waveform) % 2 for waveform in waveforms):
            raise ValueError("an odd number of samples")
        if any(len(waveform) == FATAL for waveform in waveforms):
            sys.exit(3)
        return super().extract(waveforms)


class Hanging(Bands):
    """Never comes back from a clip of an odd number of samples."""

    card = ExtractorCard(name="hanging", rate=RATE, dimension=8, frame_rate=125.0)

    def extract(self, waveforms: Sequence[NDArray[np.float32]]) -> list[Frames]:
        if any(len(waveform) % 2 for waveform in waveforms):
            time.sleep(3600)
        return super().extract(waveforms)


class Meddler(Bands):
    """Replaces the last file of a folder when it first hears something: as somebody might while a run is under way."""

    card = ExtractorCard(name="meddler", rate=RATE, dimension=8, frame_rate=125.0)

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def extract(self, waveforms: Sequence[NDArray[np.float32]]) -> list[Frames]:
        last = max(Path(self.path).glob("*/*.wav"))
        if soundfile.info(last).frames != 500:
            soundfile.write(last, tone(900, 7)[:400].repeat(2)[:500], RATE)
        return super().extract(waveforms)


class Learner(Bands):
    """Learns the mean level of a subset before it listens."""

    card = ExtractorCard(name="learner", rate=RATE, dimension=8, frame_rate=125.0)
    fits = 0
    fitted = False

    def fit(self, clips: Any, *, progress: Any = False, checkpoint: Any = None) -> None:
        type(self).fits += 1
        self.scale = 1.0 + len(list(clips))
        self.fitted = True

    def reconstruction_figure(self, path: Any) -> None:
        Path(path).write_bytes(b"a picture")


class Pupil(Learner):
    """Learns from the subsets that it is told to."""

    card = ExtractorCard(name="pupil", short_name="P", rate=RATE, dimension=8, frame_rate=125.0)

    def __init__(self, trained_on: Any = "subset") -> None:
        super().__init__()
        self.trained_on = trained_on


BANDS = "tests.representations.sounds:Bands"
FUSSY = "tests.representations.sounds:Fussy"
LEARNER = "tests.representations.sounds:Learner"
PUPIL = "tests.representations.sounds:Pupil"


def config(corpus: Path, place: Path, **changes: Any) -> dict[str, Any]:
    """A quick run of one model; results and cache under `place`."""
    given = {
        "corpus": str(corpus), "extractors": [{"name": "bands", "spec": BANDS}], "pooling": ["mean_time"],
        "metrics": ["P@1", "P@5", "GSR"], "into": str(place / "run"), "cache": {"url": str(place / "cache")},
        "steps": ["prepare", "embed", "evaluate"], "batch": 4,
    }  # fmt: skip
    return {**given, **changes}


def without_seconds(path: Path) -> list[str]:
    """The lines of a score table without the one column that may differ."""
    lines = path.read_bytes().decode().split("\n")
    column = lines[0].split(",").index("seconds")
    return [",".join(cell for place, cell in enumerate(line.split(",")) if place != column) for line in lines]
