"""Log-mel spectrograms, as the published numbers need them.

    waveform, 16 kHz          n samples; fewer than 512 are centred in 512 zeros
      reflect 256 each side   frame t is centred on sample 256 t, so T = 1 + n // 256
      periodic Hann, FFT 512  float32
      |.|^2, 128 mel bands    HTK scale, 0 to 8 kHz, triangles of height 1; the lowest ones fall between bins
      10 log10 max(x, 1e-10)  decibels
      floor                   80 dB below the clip's own maximum

Another rate keeps the lengths in samples: at 250 kHz (`logmel?rate=250000`) a frame is 2 ms long, and the bands reach
to 125 kHz. `rate=native` is the rate of the clips themselves, `fmin` and `fmax` narrow the bands.

Flattened, a clip is band-major (all of band 0, then band 1, ...) and padded with zeros at its end *after* the
decibels; `earmark.embedding.pooling` does that.

Speed: frames go through one batched float32 FFT in blocks that stay in cache, each mel band touches only the
bins under its triangle, and clips are spread over threads, all of which happens without the interpreter lock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.fft
from numba import njit
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.extractors.contract import ExtractorCard, Frames, Waveform
from earmark.extractors.mel_front_end import MelFrontEnd
from earmark.extractors.model_cards import CARDS
from earmark.extractors.windows import clip_by_clip
from earmark.networks.mel_scale import mel_filters
from earmark.workers import thread_count

SMALLEST_POWER = 1e-10
RANGE_DB = 80.0
BLOCK = 128  # frames: 256 KiB of windowed samples

Floats = NDArray[np.float32]

compiled = njit(cache=True, nogil=True)


class Recipe(NamedTuple):
    """Lengths in samples, frequencies in hertz. At another rate all samples count alike, so bands reach to its half."""

    rate: int = 16000
    window: int = 512
    hop: int = 256
    bands: int = 128
    fmin: float = 0.0
    fmax: float | None = None  # None: half the rate

    def checked(self) -> Recipe:
        """The recipe; UsageError where no spectrogram can be made by it."""
        MelFrontEnd(rate=self.rate, n_fft=self.window, hop=self.hop, mels=self.bands, fmin=self.fmin, fmax=self.fmax)
        return self

    def describe(self, card: ExtractorCard) -> ExtractorCard:
        """The card of an extractor of this recipe, from that of the default."""
        if self == PUBLISHED:
            return card
        top = f"{self.fmax or self.rate / 2:g} Hz" if self.fmax or self.rate else "half the rate"
        words = f"{self.window}-point FFT every {self.hop} samples, {self.bands} HTK bands, {self.fmin:g} Hz to {top}"
        frames = None if card.frame_rate is None else self.rate / self.hop
        return replace(card, rate=self.rate, frame_rate=frames, notes=words)


PUBLISHED = Recipe()
RATE, WINDOW, HOP, BANDS = PUBLISHED[:4]


class MelBased:
    """What extractors of mel spectrograms have in common: a recipe, whose rate may be that of the clips themselves.

    `rate="native"` takes the rate that clips are stored with, which all of them must share; the card then says 0, and
    `at_rate` makes the extractor that works.
    """

    card: ExtractorCard

    def __init__(
        self, *, rate: int | str = RATE, window: int = WINDOW, hop: int = HOP, fmin: float = 0.0,
        fmax: float | None = None, threads: int | None = None,
    ) -> None:  # fmt: skip
        native = rate == "native"
        if not native and (not isinstance(rate, int) or isinstance(rate, bool)):
            raise UsageError(f"A rate of {rate!r} is not possible: give samples per second, or native.")
        self.recipe = Recipe(0 if native else int(rate), window, hop, BANDS, fmin, fmax)
        if not native:
            self.recipe.checked()
        self.card = self.recipe.describe(type(self).card)
        self.threads = thread_count(threads)

    def at_rate(self, rate: int) -> Self:
        """The same at a rate in samples per second."""
        of = self.recipe
        return type(self)(rate=rate, window=of.window, hop=of.hop, fmin=of.fmin, fmax=of.fmax, threads=self.threads)

    def _spectrogram(self, waveform: Waveform) -> Floats:
        if not self.recipe.rate:
            raise UsageError(f"{self.card.name} at its native rate needs clips that say it: give a rate in hertz.")
        return log_mel(waveform, self.recipe)


class LogMel(MelBased):
    """Frames [T, 128] in decibels, 62.5 a second at 16 kHz. Every frame is valid."""

    card = CARDS["logmel"]
    first_centre = 0.0  # seconds

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(self._spectrogram, waveforms, self.threads)


def log_mel(waveform: Waveform, recipe: Recipe = PUBLISHED) -> Floats:
    """The log-mel spectrogram [T, 128] of one clip at 16 kHz, in decibels; or by another recipe."""
    samples = np.ascontiguousarray(waveform, dtype=np.float32)
    missing = max(0, recipe.window - len(samples))
    centred = np.pad(samples, (missing // 2, missing - missing // 2))
    padded = np.pad(centred, recipe.window // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, recipe.window)[:: recipe.hop]
    window, bank = _window(recipe.window), _banded(recipe)
    out = np.empty((len(frames), recipe.bands), np.float32)
    windowed = np.empty((min(BLOCK, len(frames)), recipe.window), np.float32)
    for start in range(0, len(frames), BLOCK):
        block = frames[start : start + BLOCK]
        np.multiply(block, window, out=windowed[: len(block)])
        spectrum = scipy.fft.rfft(windowed[: len(block)], axis=1, overwrite_x=True)
        _mel_powers(spectrum, bank.first, bank.offset, bank.weights, out[start : start + BLOCK])
    return _decibels(out)


def mel_bank(recipe: Recipe = PUBLISHED) -> NDArray[np.float64]:
    """The bank [128, 257]: triangles of height 1 between neighbouring points, equally spaced in HTK mels."""
    return mel_filters(recipe.rate, recipe.window, recipe.bands, recipe.fmin, recipe.fmax)


class _Banded(NamedTuple):
    """Of each band the first bin it touches, and where its weights stand in one flat array."""

    first: NDArray[np.int64]
    offset: NDArray[np.int64]
    weights: Floats


@cache
def _banded(recipe: Recipe) -> _Banded:
    bank = mel_bank(recipe).astype(np.float32)
    touched = [np.flatnonzero(row) for row in bank]
    first = np.array([bins[0] if len(bins) else 0 for bins in touched])
    offset = np.concatenate([[0], np.cumsum([len(bins) for bins in touched])])
    return _Banded(first, offset, bank[bank > 0])


@cache
def _window(length: int) -> Floats:
    return (0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(length) / length)).astype(np.float32)


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
