"""Codecs that break one promise each, and one that keeps all."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.contract import CodecCard, Coded

Samples = NDArray[np.float32]
RATE = 16000


class Honest:
    name, delay = "honest", 0

    def __init__(self) -> None:
        self.card = CodecCard(
            name=self.name, family="toy", title="toy", licence="none", rate=RATE, kbps=256.0, delay=self.delay,
            frame_rate=50.0,
        )  # fmt: skip

    def encode(self, waveform: Samples) -> Coded:
        return Coded(len(waveform), (np.rint(np.clip(waveform, -1, 1) * 32767).astype("<i2").tobytes(),))

    def decode(self, coded: Coded) -> Samples:
        return np.frombuffer(coded.packets[0], "<i2").astype(np.float32) / 32767


class WrongDelay(Honest):
    """Declares no delay and has 7.3 ms."""

    name = "wrong-delay"

    def decode(self, coded: Coded) -> Samples:
        return np.concatenate([np.zeros(117, np.float32), super().decode(coded)])


class Slow(Honest):
    """Plays 3 % slower and cuts to length."""

    name, factor = "slow", 1.03

    def decode(self, coded: Coded) -> Samples:
        samples = super().decode(coded)
        return np.interp(np.arange(len(samples)) / self.factor, np.arange(len(samples)), samples).astype(np.float32)


class Remembering(Honest):
    """Sends a clip differently after others: the louder, the more it has seen."""

    name, seen = "remembering", 0

    def encode(self, waveform: Samples) -> Coded:
        self.seen += 1
        return super().encode(np.asarray(waveform * (1.0 - 0.01 * min(self.seen, 50)), np.float32))

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(self), ()


class Echoing(Honest):
    """The decoder mixes in the end of the clip before."""

    name, last = "echoing", np.zeros(100, np.float32)

    def decode(self, coded: Coded) -> Samples:
        samples = super().decode(coded).copy()
        count = min(100, len(samples))
        samples[:count] += self.last[:count]
        self.last = np.resize(samples[-100:], 100).astype(np.float32)
        return samples


class Chancy(Honest):
    """Adds noise that nobody can foresee."""

    name = "chancy"

    def decode(self, coded: Coded) -> Samples:
        samples = super().decode(coded)
        return np.asarray(samples + 0.01 * np.random.default_rng().standard_normal(len(samples)), np.float32)


class Troubled(Honest):
    """Never comes back from a very loud clip, and ends the program on a loud one."""

    name = "troubled"

    def encode(self, waveform: Samples) -> Coded:
        if np.abs(waveform).max() > 0.95:
            time.sleep(3600)
        return super().encode(waveform)

    def decode(self, coded: Coded) -> Samples:
        samples = super().decode(coded)
        if np.abs(samples).max() > 0.8:
            sys.exit(0)
        return samples


class Weighted(Honest):
    """Finds its own weights, when it first needs them."""

    name, gain = "weighted", None

    def encode(self, waveform: Samples) -> Coded:
        if self.gain is None:
            self.gain = float(Path(os.environ.get("EARMARK_LYRA", ".")).joinpath("gain.txt").read_text())
        return super().encode(np.asarray(waveform * self.gain, np.float32))
