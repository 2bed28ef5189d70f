"""Sounds that codecs are tested on, and how far one lags behind another. Made here, with seeds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.signal

LYRA = Path(__file__).resolve().parents[2].parent / "shared" / "weights" / "lyra"


def voice(rate: int, seconds: float = 1.0, seed: int = 0) -> Any:
    """Harmonics of a swaying pitch, louder and softer four times a second, in a little noise."""
    return _voice(rate, seconds, seed).copy()


@cache
def _voice(rate: int, seconds: float, seed: int) -> Any:
    time = np.arange(round(seconds * rate)) / rate
    sway = time + 0.01 * np.sin(2 * np.pi * 3 * time)
    pitch = 140 + 11 * seed
    orders = [order for order in range(1, 20) if order * pitch < 0.4 * rate]
    tones = sum(np.sin(2 * np.pi * pitch * order * sway + order) / order for order in orders)
    noise = np.convolve(np.random.default_rng(seed).standard_normal(len(time) + 1), [0.5, 0.5], "valid")
    return (0.15 * tones * (0.5 + 0.5 * np.sin(2 * np.pi * 4 * time + 1)) + 0.03 * noise).astype(np.float32)


def pulses(rate: int, seconds: float = 1.0, seed: int = 0) -> Any:
    """Pulses at a gliding pitch through one resonance: sharp in time, and still speech to a speech coder."""
    time = np.arange(round(seconds * rate)) / rate
    phase = np.cumsum(120 + 40 * np.sin(2 * np.pi * 1.3 * time + seed)) / rate
    rung = scipy.signal.lfilter([1], [1, -1.3, 0.8], np.diff(np.floor(phase), prepend=0))
    rung += 0.01 * np.random.default_rng(seed).standard_normal(len(time))
    return (0.3 * rung / np.abs(rung).max()).astype(np.float32)


def lag(clean: Any, heard: Any, rate: int) -> int:
    """Where the plain cross-correlation above 500 Hz (below, filters of speech coders turn phases) is largest."""
    above = scipy.signal.butter(4, 500, "high", fs=rate, output="sos")
    a, b = (scipy.signal.sosfiltfilt(above, samples) for samples in (clean, heard))
    reach = 3000
    whole = scipy.signal.correlate(b, a, method="fft")
    middle = len(a) - 1
    near = whole[max(0, middle - reach) : middle + reach + 1]
    return int(np.argmax(near)) + max(0, middle - reach) - middle


def snr(clean: Any, heard: Any) -> float:
    """Decibels of the clean sound over the difference."""
    clean, heard = clean.astype(np.float64), heard[: len(clean)].astype(np.float64)
    return float(10 * np.log10(np.sum(clean**2) / np.sum((heard - clean) ** 2)))
