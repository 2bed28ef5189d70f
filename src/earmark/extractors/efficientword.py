"""EfficientWord-Net: a ResNet-50 that tells spoken words apart, 2048 numbers for 1.5 s of sound.

    waveform, 16 kHz     1.5 s windows side by side; zeros on both sides up to a whole number of them
      frames             400 samples every 160, not tapered; 149 in a window, the last one ends in zeros
      FFT 512, |.|^2/512
      64 mel bands       HTK scale, corners rounded down to FFT bins, height 1
      natural logarithm  of 2^-52 where a band holds nothing
      ResNet-50          trained with ArcFace; vectors have length 1, and 0 for digital silence

A clip shorter than 1.5 s lies in the middle of one window.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.extractors.contract import Frames, Waveform
from earmark.extractors.mel_front_end import mel_corners
from earmark.extractors.model_cards import CARDS
from earmark.extractors.wheel_weights import paths_of
from earmark.extractors.windows import clip_by_clip, windows
from earmark.onnx_files import open_session
from earmark.workers import thread_count

__all__ = ["EfficientWord", "log_bands"]

RATE = 16000
WINDOW = 24000
FRAME, HOP, FFT, BANDS = 400, 160, 512, 64
DIMENSION = 2048
EMPTY = np.finfo(np.float64).eps

Floats = NDArray[np.float32]


class EfficientWord:
    """Frames [T, 2048], one for each 1.5 s (or every `hop` seconds). Every frame is valid."""

    card = CARDS["efficientword"]

    def __init__(self, *, hop: float = WINDOW / RATE, threads: int | None = None) -> None:
        if not 0 < hop <= WINDOW / RATE:
            raise UsageError(f"The hop of efficientword must be above 0 and at most {WINDOW / RATE} s, not {hop}.")
        self.hop = max(1, round(hop * RATE))
        self.threads = thread_count(threads)
        self._session = open_session(paths_of(self.card.name)[0], "EfficientWord-Net embeddings", self.card.extra)

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(self._clip, waveforms, self.threads)

    def _clip(self, waveform: Waveform) -> Floats:
        return np.concatenate([self._hear(window) for window in windows(waveform, WINDOW, self.hop)])

    def _hear(self, samples: Floats) -> Floats:
        if not samples.any():  # the network ends with a division by a length that is 0 for silence
            return np.zeros((1, DIMENSION), np.float32)
        values: Floats = self._session.run(None, {"input": log_bands(samples)[None, None]})[0]
        return values


def log_bands(samples: Floats) -> Floats:
    """Log mel energies [149, 64] of one window."""
    count = 1 + -(-(len(samples) - FRAME) // HOP)
    padded = np.pad(samples.astype(np.float64), (0, (count - 1) * HOP + FRAME - len(samples)))
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP]
    power = np.abs(scipy.fft.rfft(frames, FFT, axis=1)) ** 2 / FFT
    energies = power @ _bank().T
    return np.log(np.where(energies == 0, EMPTY, energies)).astype(np.float32)


@cache
def _bank() -> NDArray[np.float64]:
    """Triangles [64, 257] whose corners are FFT bins; where two corners share a bin, a side is missing."""
    corners = np.floor((FFT + 1) * mel_corners(RATE, BANDS) / RATE)
    bins = np.arange(FFT // 2 + 1)
    low, peak, high = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        rising = np.where((bins >= low) & (bins < peak), (bins - low) / (peak - low), 0.0)
        falling = np.where((bins >= peak) & (bins < high), (high - bins) / (high - peak), 0.0)
    return rising + falling
