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
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from earmark.codecs.contract import Measured, Waveform
from earmark.codecs.signal._sound import Pair, Sound
from earmark.networks.mel_scale import mel_filters
from earmark.scores.metrics import metric

Floats = NDArray[np.float32]

WINDOWS = (2048, 512)
BANDS = (150, 80)
FLOOR = np.float32(1e-5)
BLOCK = 1 << 16  # samples of frames at a time: 256 KiB, which stays in cache
SHORTEST = max(WINDOWS) // 2 + 1  # samples: a reflection of half a window needs one more


@metric(range=(0.0, math.inf), higher_is_better=False, standard=True, words="distance of magnitude spectrograms")
def stft_distance(pair: Pair) -> Measured:
    """0 and up, lower is better; 0 for the same waveform. Short clips are not_applicable."""
    return too_short(pair) or Measured(_distances(pair)[0])


@metric(range=(0.0, math.inf), higher_is_better=False, standard=True, words="distance of mel spectrograms")
def mel_distance(pair: Pair) -> Measured:
    """0 and up, lower is better; 0 for the same waveform. Short clips are not_applicable."""
    return too_short(pair) or Measured(_distances(pair)[1])


def too_short(pair: Pair) -> Measured | None:
    """Why clips as short as these have no distance, if so."""
    if len(pair.reference.samples) >= SHORTEST:
        return None
    return Measured.not_applicable(f"the clip is shorter than {1000 * SHORTEST / pair.reference.rate:.0f} ms")


def _distances(pair: Pair) -> tuple[float, float]:
    return pair.decoded.once("distances", lambda: _both_distances(pair))


def _both_distances(pair: Pair) -> tuple[float, float]:
    """Both in one pass over the decoded clip: a block of its spectrum is compared while it is in cache."""
    totals = np.zeros(2)
    views = pair.reference.once("spectra", lambda: tuple(_views(pair.reference)))
    for window, bands, (spectrum, mels) in zip(WINDOWS, BANDS, views, strict=True):
        bank = mel_bank(pair.reference.rate, window, bands)
        sums = np.zeros(2)
        for span, block in _blocks(pair.decoded.samples, window):
            sums += _two_sums(spectrum[span], block), _two_sums(mels[span], block @ bank)
        totals += sums / (spectrum.size, mels.size)
    return float(totals[0]), float(totals[1])


def _two_sums(a: Floats, b: Floats) -> float:
    """The sums of the logarithmic and of the linear differences."""
    ratio = np.maximum(a, FLOOR)
    ratio /= np.maximum(b, FLOOR)
    np.log(ratio, out=ratio)
    np.abs(ratio, out=ratio)
    logarithms = ratio.sum(dtype=np.float64) * (2.0 / math.log(10.0))
    np.subtract(a, b, out=ratio)
    np.abs(ratio, out=ratio)
    return float(logarithms + ratio.sum(dtype=np.float64))


def _views(sound: Sound) -> Iterator[tuple[Floats, Floats]]:
    """For each window the magnitudes |X| [frames, window // 2 + 1] and their mel bands."""
    for window, bands in zip(WINDOWS, BANDS, strict=True):
        bank = mel_bank(sound.rate, window, bands)
        blocks = [block for _, block in _blocks(sound.samples, window)]
        # Products of the same blocks as on the decoded side: a larger one rounds otherwise, and a copy is to be at 0.
        yield np.concatenate(blocks), np.concatenate([block @ bank for block in blocks])


def _blocks(samples: Waveform, window: int) -> Iterator[tuple[slice, Floats]]:
    """Magnitudes of a few frames at a time, and which frames they are; frame t is centred on sample t * window // 4."""
    frames = framed(samples, window)
    count = max(1, BLOCK // window)
    for start in range(0, len(frames), count):
        tapered = frames[start : start + count] * hann(window)
        yield slice(start, start + count), np.abs(scipy.fft.rfft(tapered, axis=1, overwrite_x=True))


def framed(samples: Waveform, window: int) -> Floats:
    """Frames [T, window] with a hop of a quarter, the ends reflected."""
    padded = np.pad(samples, window // 2, mode="reflect")
    return np.lib.stride_tricks.sliding_window_view(padded, window)[:: window // 4]


@lru_cache(maxsize=8)
def hann(window: int) -> Floats:
    return (0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(window) / window)).astype(np.float32)


@lru_cache(maxsize=32)
def mel_bank(rate: int, window: int, bands: int) -> Floats:
    """The bank [window // 2 + 1, bands]: triangles of area 1, their corners equally spaced on Slaney's scale."""
    return np.ascontiguousarray(mel_filters(rate, window, bands, scale="slaney", area=True).T, np.float32)
