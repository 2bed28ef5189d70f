"""Codecs that keep their promises, and codecs that break one each, for runs in this and in other processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.contract import CodecCard, Coded
from earmark.corpora.clips import Clip, Corpus, CorpusCard

RATE = 16000
QUICK: dict[str, Any] = {
    "metrics": ["stft_distance", "mel_distance"], "bootstrap": 50, "report": False, "jobs": 0, "isolation": "off",
    "check": False,
}  # fmt: skip
"""Options of a run that is over soon."""
Samples = NDArray[np.float32]


class Sixteen:
    """16-bit samples as they are: what comes out is what went in, to rounding."""

    def __init__(self, name: str = "sixteen", delay: int = 0) -> None:
        self.card = CodecCard(name=name, family="toy", rate=RATE, frame_rate=50.0, delay=0 if delay == 0 else None)
        self.lag = delay

    def encode(self, waveform: Samples) -> Coded:
        grid = np.clip(np.rint(waveform * 32767), -32768, 32767).astype("<i2")
        return Coded(len(waveform), (grid.tobytes(),), header=b"toy")

    def decode(self, coded: Coded) -> Samples:
        heard = np.frombuffer(coded.packets[0], "<i2").astype(np.float32) / 32767
        return np.concatenate([np.zeros(self.lag, np.float32), heard])


class Late(Sixteen):
    """The same, 20 ms late, and its card does not say so."""

    def __init__(self) -> None:
        super().__init__("late", delay=320)


class Silent(Sixteen):
    def __init__(self) -> None:
        super().__init__("silent")

    def decode(self, coded: Coded) -> Samples:
        return np.zeros(coded.samples, np.float32)


class NotANumber(Sixteen):
    def __init__(self) -> None:
        super().__init__("nan")

    def decode(self, coded: Coded) -> Samples:
        return np.full(coded.samples, np.nan, np.float32)


class Short(Sixteen):
    def __init__(self) -> None:
        super().__init__("short")

    def decode(self, coded: Coded) -> Samples:
        return super().decode(coded)[: coded.samples // 3]


class WrongRate(Sixteen):
    """Decodes to 24 kHz and says nothing of it."""

    def __init__(self) -> None:
        super().__init__("wrong-rate")

    def decode(self, coded: Coded) -> Samples:
        heard = super().decode(coded)
        places = np.arange(len(heard) * 3 // 2) * 2 / 3
        return np.interp(places, np.arange(len(heard)), heard).astype(np.float32)


class Deadly(Sixteen):
    """Takes its process down on loud clips, as a C library may."""

    def __init__(self) -> None:
        super().__init__("deadly")

    def encode(self, waveform: Samples) -> Coded:
        if np.abs(waveform).max() > 0.8:
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().encode(waveform)


class Hanging(Sixteen):
    """Never comes back from loud clips."""

    def __init__(self) -> None:
        super().__init__("hanging")

    def encode(self, waveform: Samples) -> Coded:
        if np.abs(waveform).max() > 0.8:
            time.sleep(3600)
        return super().encode(waveform)


class Coarse(Sixteen):
    """One byte a sample, in steps that can be heard."""

    steps = 31

    def __init__(self, name: str = "coarse") -> None:
        super().__init__(name)

    def encode(self, waveform: Samples) -> Coded:
        return Coded(len(waveform), (np.rint(waveform * self.steps).astype(np.int8).tobytes(),))

    def decode(self, coded: Coded) -> Samples:
        return np.frombuffer(coded.packets[0], np.int8).astype(np.float32) / self.steps


class Picky(Coarse):
    """Better than Coarse, at the same rate, on the clips that it takes: the loud ones."""

    steps = 127

    def __init__(self) -> None:
        super().__init__("picky")

    def encode(self, waveform: Samples) -> Coded:
        if np.abs(waveform).max() < 0.4:
            raise ValueError("too quiet for me")
        return super().encode(waveform)


class Moody(Late):
    """As late as Late, and it takes loud clips only: very quiet ones end the program."""

    def __init__(self) -> None:
        super().__init__()
        self.card = CodecCard(name="moody", family="toy", rate=RATE, frame_rate=50.0)

    def encode(self, waveform: Samples) -> Coded:
        if np.abs(waveform).max() < 0.15:
            sys.exit(3)
        if np.abs(waveform).max() < 0.4:
            raise ValueError("too quiet for me")
        return super().encode(waveform)


class Refusing(Coarse):
    """Takes no clip at all, and does not say its delay."""

    def __init__(self) -> None:
        super().__init__("refusing")
        self.card = CodecCard(name="refusing", family="toy", rate=RATE)

    def encode(self, waveform: Samples) -> Coded:
        raise ValueError("not today")


class Counting(Sixteen):
    """Writes a letter for each clip that it encodes, and takes its time."""

    def __init__(self) -> None:
        super().__init__("counting")

    def encode(self, waveform: Samples) -> Coded:
        with Path(os.environ["TOY_COUNT"]).open("a") as stream:
            stream.write("e")
        time.sleep(0.05)
        return super().encode(waveform)


def voiced(seed: int, seconds: float = 1.0, rate: int = RATE, peak: float = 0.5) -> Samples:
    """A gliding harmonic sound with syllables, in a little noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(rate * seconds)) / rate
    pitch = 140 + 40 * np.sin(2 * np.pi * (0.6 + 0.1 * seed) * t)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    sound = sum(np.sin(k * phase) / k for k in range(1, 16)) * (0.2 + np.sin(2 * np.pi * 3 * t + seed) ** 2)
    sound = sound / np.abs(sound).max() + 0.01 * rng.standard_normal(len(t))
    return (peak * sound / np.abs(sound).max()).astype(np.float32)


def memory(count: int = 4, **changes: Any) -> Corpus:
    """Clips in two classes that exist in memory alone."""
    clips = [Clip(f"c{seed}", f"k{seed % 2}", samples=voiced(seed, **changes), rate=RATE) for seed in range(count)]
    return Corpus(CorpusCard("toy"), clips)


def cube_or_die(number: int) -> int:
    """Work for a worker: it may speak, fail and die."""
    if number < 0:
        os._exit(7)
    print("a library speaks")  # must not disturb the answers
    return number**4 // number
