"""Log-mel spectrograms, as the published numbers need them.

    waveform, 16 kHz          n samples; fewer than 512 are centred in 512 zeros
      reflect 256 each side   frame t is centred on sample 256 t, so T = 1 + n // 256
      periodic Hann, FFT 512  float32
      |.|^2, 128 mel bands    HTK scale, 0 to 8 kHz, triangles of height 1; the lowest ones fall between bins
      10 log10 max(x, 1e-10)  decibels
      floor                   80 dB below the clip's own maximum

Flattened, a clip is band-major (all of band 0, then band 1, ...) and padded with zeros at its end *after* the
decibels; `earmark.embedding.pooling` does that.

Speed: frames go through one batched float32 FFT in blocks that stay in cache, each mel band touches only the
bins under its triangle, and clips are spread over threads, all of which happens without the interpreter lock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
from numba import njit
from numpy.typing import NDArray

from earmark.extractors.contract import Frames, Waveform
from earmark.extractors.mel_front_end import mel_filters
from earmark.extractors.model_cards import CARDS
from earmark.extractors.windows import clip_by_clip
from earmark.workers import thread_count

RATE = 16000
WINDOW = 512
HOP = 256
BANDS = 128
SMALLEST_POWER = 1e-10
RANGE_DB = 80.0
BLOCK = 128  # frames: 256 KiB of windowed samples

Floats = NDArray[np.float32]

compiled = njit(cache=True, nogil=True)


class LogMel:
    """Frames [T, 128] in decibels, 62.5 a second. Every frame is valid."""

    card = CARDS["logmel"]

    def __init__(self, *, threads: int | None = None) -> None:
        self.threads = thread_count(threads)

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(log_mel, waveforms, self.threads)


def log_mel(waveform: Waveform) -> Floats:
    """The log-mel spectrogram [T, 128] of one clip at 16 kHz, in decibels."""
    samples = np.ascontiguousarray(waveform, dtype=np.float32)
    missing = max(0, WINDOW - len(samples))
    centred = np.pad(samples, (missing // 2, missing - missing // 2))
    padded = np.pad(centred, WINDOW // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP]
    window, bank = _window(), _banded()
    out = np.empty((len(frames), BANDS), np.float32)
    windowed = np.empty((min(BLOCK, len(frames)), WINDOW), np.float32)
    for start in range(0, len(frames), BLOCK):
        block = frames[start : start + BLOCK]
        np.multiply(block, window, out=windowed[: len(block)])
        spectrum = scipy.fft.rfft(windowed[: len(block)], axis=1, overwrite_x=True)
        _mel_powers(spectrum, bank.first, bank.offset, bank.weights, out[start : start + BLOCK])
    return _decibels(out)


def mel_bank() -> NDArray[np.float64]:
    """The bank [128, 257]: triangles of height 1 between neighbouring points, equally spaced in HTK mels."""
    return mel_filters(RATE, WINDOW, BANDS)


class _Banded(NamedTuple):
    """Of each band the first bin it touches, and where its weights stand in one flat array."""

    first: NDArray[np.int64]
    offset: NDArray[np.int64]
    weights: Floats


@cache
def _banded() -> _Banded:
    bank = mel_bank().astype(np.float32)
    touched = [np.flatnonzero(row) for row in bank]
    first = np.array([bins[0] if len(bins) else 0 for bins in touched])
    offset = np.concatenate([[0], np.cumsum([len(bins) for bins in touched])])
    return _Banded(first, offset, bank[bank > 0])


@cache
def _window() -> Floats:
    return (0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)


@compiled
def _mel_powers(spectrum: Any, first: Any, offset: Any, weights: Any, out: Any) -> None:
    """Mel powers of a block of frames, clamped from below; `out` is [frames, bands]."""
    frames, bins = spectrum.shape
    power = np.empty(bins, np.float32)
    smallest = np.float32(SMALLEST_POWER)
    for t in range(frames):
        for b in range(bins):
            power[b] = spectrum[t, b].real * spectrum[t, b].real + spectrum[t, b].imag * spectrum[t, b].imag
        for m in range(first.shape[0]):
            total = np.float32(0.0)
            for w in range(offset[m], offset[m + 1]):
                total += weights[w] * power[first[m] + w - offset[m]]
            out[t, m] = max(total, smallest)


def _decibels(power: Floats) -> Floats:
    """10 log10 in place, floored at the clip's maximum minus 80 dB."""
    np.log(power, out=power)
    power *= np.float32(10.0 / math.log(10.0))
    floor = power.max() - np.float32(RANGE_DB)
    np.maximum(power, floor, out=power)
    return power
