"""MFCC statistics: one vector per clip, the classical baseline.

    log-mel [T, 128] in decibels   as in `earmark.extractors.logmel`
      DCT-II, orthonormal          the first 20 coefficients of each frame, the 0th (loudness) included
      slope                        d_t = sum_n n (c[t+n] - c[t-n]) / (2 sum_n n^2), n = 1, 2; edges repeated
      mean, standard deviation     over all frames, of coefficients and slopes (population: divided by T)

The vector is [mean c, std c, mean d, std d], 4 x 20 = 80 numbers. A clip of one frame has slopes and deviations
of 0; a constant clip is a valid vector like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from earmark.extractors.contract import Frames, Waveform
from earmark.extractors.logmel import BANDS, MelBased, log_mel
from earmark.extractors.model_cards import CARDS
from earmark.extractors.windows import map_clips

COEFFICIENTS = 20
REACH = 2  # frames to each side that a slope looks at

Floats = NDArray[np.float64]


class MFCC(MelBased):
    """One vector of 80 numbers per clip (T = 1)."""

    card = CARDS["mfcc"]

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        vectors = map_clips(lambda waveform: statistics(self._coefficients(waveform)), waveforms, self.threads)
        return [Frames(vector[None, :], 1) for vector in vectors]

    def _coefficients(self, waveform: Waveform) -> Floats:
        return self._spectrogram(waveform).astype(np.float64) @ _cosines()


def mfcc(waveform: Waveform) -> Floats:
    """Coefficients [T, 20] of one clip at 16 kHz."""
    return log_mel(waveform).astype(np.float64) @ _cosines()


def slopes(coefficients: Floats) -> Floats:
    """The regression slope of every coefficient over five frames, [T, C] in and out."""
    frames = len(coefficients)
    padded = np.pad(coefficients, ((REACH, REACH), (0, 0)), mode="edge")
    total = np.zeros_like(coefficients)
    for n in range(1, REACH + 1):
        total += n * (padded[REACH + n :][:frames] - padded[REACH - n :][:frames])
    return total / (2.0 * sum(n * n for n in range(1, REACH + 1)))


def statistics(coefficients: Floats) -> NDArray[np.float32]:
    """[mean c, std c, mean d, std d] of coefficients [T, C] and their slopes."""
    parts = [reduce(axis=0) for series in (coefficients, slopes(coefficients)) for reduce in (series.mean, series.std)]
    return np.concatenate(parts).astype(np.float32)


@cache
def _cosines() -> Floats:
    """The orthonormal DCT-II as a matrix [128, 20]."""
    basis: Floats = scipy.fft.dct(np.eye(BANDS), type=2, norm="ortho", axis=1)[:, :COEFFICIENTS]
    return np.ascontiguousarray(basis)
