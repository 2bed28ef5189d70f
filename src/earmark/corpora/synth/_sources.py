"""What synthetic sounds are made of: random streams, oscillators, noises, resonances, envelopes.

Everything is a pure function of arrays and of a random generator; time runs in samples at `RATE`. Filters
work on spectra (whole clips, or overlapping frames where they move), so that no loop runs over samples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Signal = NDArray[np.float64]

RATE = 16_000
HOP = 128  # between the frames of a moving filter: 8 ms
_BINS = 512  # transform of a frame of 2 * HOP samples, padded so that the filter's ringing fits
_SMALL = 1e-9


def stream(*keys: object) -> Generator:
    """A random generator that depends on the keys alone: the same keys give the same numbers, anywhere."""
    digest = hashlib.blake2b("\x1f".join(map(str, keys)).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def between(rng: Generator, low: float, high: float) -> float:
    """A number drawn evenly from low to high."""
    return float(rng.uniform(low, high))


def octaves(rng: Generator, low: float, high: float) -> float:
    """A number drawn evenly in its logarithm from low to high: for frequencies, rates and times."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def wobble(rng: Generator, spread: float) -> float:
    """A factor near one: exp of a normal deviate, held within two and a half spreads."""
    return float(np.exp(spread * np.clip(rng.standard_normal(), -2.5, 2.5)))


def samples_in(seconds: float) -> int:
    """Length in samples of a time, never below one."""
    return max(1, round(seconds * RATE))


# --- curves -----------------------------------------------------------------------------------------------


def smooth(values: Signal, width: float) -> Signal:
    """Blur a curve with a Gaussian of `width` samples; the ends are held."""
    if width < 0.3 or len(values) < 3:
        return values
    reach = max(1, int(3 * width))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    padded = np.concatenate([np.full(reach, values[0]), values, np.full(reach, values[-1])])
    return np.convolve(padded, kernel / kernel.sum(), mode="valid")


def contour(points: Sequence[float] | Signal, n: int) -> Signal:
    """A curve of n samples through evenly spaced points, eased from each to the next."""
    values = np.asarray(points, dtype=np.float64)
    if len(values) == 1:
        return np.full(n, values[0])
    at = np.linspace(0, len(values) - 1, n)
    left = np.minimum(at.astype(np.int64), len(values) - 2)
    ease = 0.5 - 0.5 * np.cos(np.pi * (at - left))
    eased: Signal = values[left] * (1 - ease) + values[left + 1] * ease
    return eased


def drift(rng: Generator, n: int, every: float) -> Signal:
    """A slow random curve of unit spread that takes a new direction about every `every` seconds."""
    return contour(rng.standard_normal(max(2, round(n / (every * RATE)) + 2)), n)


def swell(n: int, attack: float, release: float) -> Signal:
    """An envelope of one, with raised-cosine ends of `attack` and `release` seconds (shortened to fit)."""
    envelope = np.ones(n)
    rise = min(samples_in(attack), n // 2)
    fall = min(samples_in(release), n // 2)
    if rise:
        envelope[:rise] = 0.5 - 0.5 * np.cos(np.pi * (np.arange(rise) + 0.5) / rise)
    if fall:
        envelope[n - fall :] *= 0.5 + 0.5 * np.cos(np.pi * (np.arange(fall) + 0.5) / fall)
    return envelope


def decay(n: int, seconds: float) -> Signal:
    """An envelope that falls by 60 dB in `seconds`."""
    envelope: Signal = np.exp(-6.908 * np.arange(n) / (seconds * RATE))
    return envelope


# --- oscillators ------------------------------------------------------------------------------------------


def cycles(frequency: Signal) -> Signal:
    """Running count of cycles of a frequency curve in Hz."""
    return np.cumsum(frequency) / RATE


def tone(frequency: Signal) -> Signal:
    """A sine that follows a frequency curve."""
    return np.sin(2 * np.pi * cycles(frequency))


def harmonics(frequency: Signal, weights: Sequence[float] | Signal) -> Signal:
    """Harmonics 1, 2, … of a frequency curve; each fades out as it nears half the rate, so nothing aliases.

    Multiples of one angle come from the Chebyshev recurrence, a multiplication and a subtraction each.
    """
    angle = 2 * np.pi * cycles(frequency)
    twice = 2 * np.cos(angle)
    before, now = np.zeros_like(angle), np.sin(angle)
    total = np.zeros_like(angle)
    for number, weight in enumerate(weights, start=1):
        if weight:
            room = np.clip((0.48 * RATE - number * frequency) / (0.04 * RATE), 0, 1)
            total += weight * room * now
        before, now = now, twice * now - before
    return total


def glottal(frequency: Signal, openness: float) -> Signal:
    """Flow derivative of vibrating vocal folds: a slow opening, a sharp closing, rest (Rosenberg's pulse)."""
    place = np.mod(cycles(frequency), 1.0)
    closing = 0.35 * openness
    rise = np.sin(np.pi * np.clip(place / openness, 0, 1)) * (place < openness)
    shutting = (place >= openness) & (place < openness + closing)
    fall = np.where(shutting, (place - openness) / closing - 1.0, 0.0)
    return 0.25 * rise + fall


# --- noises -----------------------------------------------------------------------------------------------


def noise(rng: Generator, n: int, slope: float = 0.0) -> Signal:
    """Noise of unit power that falls by `slope` dB per octave above 60 Hz (0 white, 3 pink, 6 brown)."""
    white = rng.standard_normal(n)
    if slope == 0:
        return white
    return unit_power(tilt(white, -slope))


def tilt(signal: Signal, slope: float) -> Signal:
    """Tilt a spectrum by `slope` dB per octave about 1 kHz; flat below 60 Hz."""
    frequency = np.maximum(_grid(_fast(len(signal))), 60.0) / 1000.0
    return through(signal, frequency ** (slope / 6.02))


# --- filters ----------------------------------------------------------------------------------------------


def _fast(n: int) -> int:
    """The next length whose transform is quick: a power of two, or three quarters of one."""
    power = 1 << max(4, (n - 1).bit_length())
    return power * 3 // 4 if n <= power * 3 // 4 else power


@lru_cache(maxsize=64)
def _grid(n: int) -> Signal:
    grid: Signal = np.fft.rfftfreq(n, 1 / RATE).astype(np.float64)
    grid.setflags(write=False)
    return grid


def through(signal: Signal, response: NDArray[np.complex128] | Signal) -> Signal:
    """Multiply the spectrum by a response given on the frequencies of `spectrum_of(len(signal))`."""
    size = _fast(len(signal))
    return np.fft.irfft(np.fft.rfft(signal, size) * response, size)[: len(signal)]


def spectrum_of(n: int) -> Signal:
    """The frequencies in Hz at which `through` wants the response for a signal of n samples."""
    return _grid(_fast(n))


def bump(frequency: Signal, centre: float, octave_width: float) -> Signal:
    """A hill of height one around `centre`, Gaussian in octaves."""
    return np.exp(-0.5 * (np.log2(np.maximum(frequency, 1.0) / centre) / octave_width) ** 2)


def band(signal: Signal, centre: float, octave_width: float) -> Signal:
    """Keep a hill of the spectrum, Gaussian in octaves."""
    return through(signal, bump(spectrum_of(len(signal)), centre, octave_width))


def low_pass(signal: Signal, corner: float, order: float = 2.0) -> Signal:
    """Let through what lies below the corner; 6 dB per octave and order above it."""
    return through(signal, (1 + (spectrum_of(len(signal)) / corner) ** 2) ** (-order / 2))


def convolve(signal: Signal, kernel: Signal, n: int | None = None) -> Signal:
    """The first n samples (as many as the signal has by default) of the convolution."""
    size = _fast(len(signal) + len(kernel) - 1)
    spectrum = np.fft.rfft(signal, size) * np.fft.rfft(kernel, size)
    return np.fft.irfft(spectrum, size)[: len(signal) if n is None else n]


def resonances(frequency: Signal, centres: Signal, widths: Signal) -> NDArray[np.complex128]:
    """Resonators in cascade, unit gain at 0 Hz: [T, K] centres and widths in Hz → [T, len(frequency)]."""
    delay = np.exp(-2j * np.pi * frequency / RATE)
    radius = np.exp(-np.pi * widths / RATE)
    twice, square = 2 * radius * np.cos(2 * np.pi * centres / RATE), radius**2
    response: NDArray[np.complex128] = np.prod(1 - twice + square, axis=1)[:, None] + np.zeros_like(delay)
    for k in range(centres.shape[1]):
        response /= 1 - delay * (twice[:, k : k + 1] - square[:, k : k + 1] * delay)
    return response


def frame_count(n: int) -> int:
    """Frames of a moving filter over n samples."""
    return -(-n // HOP) + 1


def frame_grid() -> Signal:
    """The frequencies in Hz of a moving filter's frames."""
    return _grid(_BINS)


def moving(signal: Signal, responses: NDArray[np.complex128] | Signal) -> Signal:
    """A filter that changes with time: responses [frame_count(n), len(frame_grid())], cross-faded."""
    n, frames = len(signal), frame_count(len(signal))
    padded = np.zeros((frames + 1) * HOP)
    padded[HOP : HOP + n] = signal
    window = np.hanning(2 * HOP + 1)[:-1]
    cut = np.lib.stride_tricks.sliding_window_view(padded, 2 * HOP)[::HOP] * window
    ringing = np.fft.irfft(np.fft.rfft(cut, _BINS, axis=1) * responses, _BINS, axis=1)
    parts = ringing.reshape(frames, _BINS // HOP, HOP)
    out = np.zeros((frames + _BINS // HOP, HOP))
    for part in range(_BINS // HOP):
        out[part : part + frames] += parts[:, part]
    return out.reshape(-1)[HOP : HOP + n]


# --- strikes ----------------------------------------------------------------------------------------------


def modes(n: int, frequencies: Sequence[float], decays: Sequence[float], gains: Sequence[float]) -> Signal:
    """A struck body: sines that start together and each fall by 60 dB in its own time."""
    time = np.arange(n) / RATE
    total = np.zeros(n)
    for frequency, seconds, gain in zip(frequencies, decays, gains, strict=True):
        if frequency < 0.48 * RATE:
            total += gain * np.exp(-6.908 * time / seconds) * np.sin(2 * np.pi * frequency * time)
    return total


def strikes(
    n: int, onsets: Sequence[int] | NDArray[np.int64], gains: Sequence[float] | Signal, kernel: Signal
) -> Signal:
    """The same short sound at many onsets (in samples), each with its gain."""
    train = np.zeros(n)
    at = np.asarray(onsets, dtype=np.int64)
    inside = (at >= 0) & (at < n)
    np.add.at(train, at[inside], np.asarray(gains, dtype=np.float64)[inside])
    return convolve(train, kernel)


def arrivals(rng: Generator, n: int, per_second: float) -> NDArray[np.int64]:
    """Onsets in samples of events that come at random (a Poisson process); at least one."""
    count = max(1, int(rng.poisson(per_second * n / RATE)))
    return np.sort(rng.integers(0, n, count))


def beats(rng: Generator, n: int, period: float, jitter: float) -> NDArray[np.int64]:
    """Onsets in samples of a beat of `period` seconds, each moved by `jitter` periods; the first is early."""
    first = rng.uniform(0, 0.5)
    count = max(1, int(n / (period * RATE) - first) + 1)
    at = (first + np.arange(count) + jitter * rng.standard_normal(count)) * period * RATE
    kept: NDArray[np.int64] = np.clip(at, 0, n - 1).astype(np.int64)
    return kept


def unit_power(signal: Signal) -> Signal:
    """Scale to a root mean square of one; silence stays silent."""
    scaled: Signal = signal / (np.sqrt(np.mean(signal**2)) + _SMALL)
    return scaled
