"""Distances between magnitude spectrograms, at two resolutions.

    waveform --reflect half a window each side--> frames of 2048 and 512, hop a quarter, periodic Hann, FFT
        |X|                       STFT distance
        |X| x mel bank            mel distance: 150 and 80 bands, Slaney's scale, triangles of equal area

For both: the sum over the two resolutions of

    mean | log10 max(a, 1e-5)² - log10 max(b, 1e-5)² |  +  mean | a - b |

Windows are in samples at the clip's own rate, as in Codec-SUPERB's code, so distances of clips at different rates are
not comparable. Magnitudes are not normalised: a change of level is a distance too, and clips so quiet that their
magnitudes lie near the floor of 1e-5 are near to anything as quiet.

Numeric policy: float32 FFT, one logarithm for each pair of magnitudes (of their quotient), sums in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from earmark.codecs.contract import Measured, Waveform
from earmark.codecs.signal._sound import Pair, Sound
from earmark.extractors.mel_front_end import mel_corners, mel_filters
from earmark.scores.metrics import metric

Floats = NDArray[np.float32]
_Views = Callable[[Sound], tuple[Floats, ...]]

WINDOWS = (2048, 512)
BANDS = (150, 80)
FLOOR = np.float32(1e-5)
BLOCK = 1 << 16  # samples of frames at a time: 256 KiB, which stays in cache
SHORTEST = max(WINDOWS) // 2 + 1  # samples: a reflection of half a window needs one more


@metric(range=(0.0, math.inf), higher_is_better=False, standard=True, words="distance of magnitude spectrograms")
def stft_distance(pair: Pair) -> Measured:
    """0 and up, lower is better; 0 for the same waveform. Short clips are not_applicable."""
    return _distance(pair, _spectra)


@metric(range=(0.0, math.inf), higher_is_better=False, standard=True, words="distance of mel spectrograms")
def mel_distance(pair: Pair) -> Measured:
    """0 and up, lower is better; 0 for the same waveform. Short clips are not_applicable."""
    return _distance(pair, _mels)


def _distance(pair: Pair, views: _Views) -> Measured:
    return too_short(pair) or Measured(
        sum(log_and_linear(a, b) for a, b in zip(views(pair.reference), views(pair.decoded), strict=True))
    )


def too_short(pair: Pair) -> Measured | None:
    """Why clips as short as these have no distance, if so."""
    if len(pair.reference.samples) >= SHORTEST:
        return None
    return Measured.not_applicable(f"the clip is shorter than {1000 * SHORTEST / pair.reference.rate:.0f} ms")


def log_and_linear(a: Floats, b: Floats) -> float:
    """The two terms of a distance at one resolution."""
    ratio = np.maximum(a, FLOOR)
    ratio /= np.maximum(b, FLOOR)
    np.log(ratio, out=ratio)
    np.abs(ratio, out=ratio)
    logarithms = ratio.mean(dtype=np.float64) * (2.0 / math.log(10.0))
    np.subtract(a, b, out=ratio)
    np.abs(ratio, out=ratio)
    return float(logarithms + ratio.mean(dtype=np.float64))


def _spectra(sound: Sound) -> tuple[Floats, ...]:
    return sound.once("spectra", lambda: tuple(magnitudes(sound.samples, window) for window in WINDOWS))


def _mels(sound: Sound) -> tuple[Floats, ...]:
    def make() -> tuple[Floats, ...]:
        banks = (mel_bank(sound.rate, window, bands) for window, bands in zip(WINDOWS, BANDS, strict=True))
        return tuple(spectrum @ bank for spectrum, bank in zip(_spectra(sound), banks, strict=True))

    return sound.once("mels", make)


def magnitudes(samples: Waveform, window: int) -> Floats:
    """|X| [frames, window // 2 + 1], frame t centred on sample t * window // 4."""
    padded = np.pad(samples, window // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, window)[:: window // 4]
    made = np.empty((len(frames), window // 2 + 1), np.float32)
    block = max(1, BLOCK // window)
    for start in range(0, len(frames), block):
        tapered = frames[start : start + block] * hann(window)
        np.abs(scipy.fft.rfft(tapered, axis=1, overwrite_x=True), out=made[start : start + block])
    return made


@lru_cache(maxsize=8)
def hann(window: int) -> Floats:
    return (0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(window) / window)).astype(np.float32)


@lru_cache(maxsize=32)
def mel_bank(rate: int, window: int, bands: int) -> Floats:
    """The bank [window // 2 + 1, bands]: triangles of area 1, their corners equally spaced on Slaney's scale."""
    corners = mel_corners(rate, bands, scale="slaney")
    heights = 2.0 / (corners[2:] - corners[:-2])
    return np.ascontiguousarray((mel_filters(rate, window, bands, scale="slaney") * heights[:, None]).T, np.float32)
