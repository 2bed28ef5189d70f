"""The resampler of the package julius (0.2.7 and later), by which Codec-SUPERB's code comes to 16 kHz, without torch.

    y[q new + i] = sum over k of x[q old + k] h_i[k],        t = (k / old - i / new) s,    s = 0.945 min(old, new)
    h_i[k]       ~ sinc(t) cos²(pi t / 48)                   within 24 zeros of the sinc on either side, of sum 1

`old` and `new` are the two rates without their common divisor; the first and the last sample go on beyond the ends.
julius makes its taps in float32, whose rounding of t is worth 1e-5 of a tap at 44.1 kHz, a hundred times what its sums
lose: taps are therefore made here by the same float32 operations, and the sums in float64. Samples agree with those of
julius to some 1e-7 of full scale; the length, which julius rounds in float32, is the same.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.contract import Waveform

ZEROS = 24
ROLL_OFF = 0.945


def resampled(samples: Waveform, rate: int, wanted: int) -> Waveform:
    """`samples` at the rate `wanted`."""
    if rate == wanted:
        return samples
    divisor = math.gcd(rate, wanted)
    old, new = rate // divisor, wanted // divisor
    phases = _phases(old, new)
    length = int(np.floor(np.float32(new * len(samples) / old)))
    cycles = -(-length // new)
    if cycles < 1:
        return samples[:0]
    width = phases.taps.shape[1]
    lead = -int(phases.first.min())
    last = (cycles - 1) * old + int(phases.first.max()) + width
    padded = np.pad(samples.astype(np.float64), (lead, max(0, last - len(samples))), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)
    made = np.empty((cycles, new), np.float32)
    for phase, (first, taps) in enumerate(zip(phases.first + lead, phases.taps, strict=True)):
        made[:, phase] = windows[first::old][:cycles] @ taps
    return made.reshape(-1)[:length]


class _Phases(NamedTuple):
    """For each of the `new` samples of a cycle the taps [new, width] and the sample that the first of them weighs."""

    taps: NDArray[np.float64]
    first: NDArray[np.int64]


@lru_cache(maxsize=16)
def _phases(old: int, new: int) -> _Phases:
    cutoff = min(old, new) * ROLL_OFF
    reach = math.ceil(ZEROS * old / cutoff)
    phase = np.arange(new)
    first = phase * old // new - reach  # the taps that are left out are zero to 1e-20
    index = (first[:, None] + np.arange(2 * reach + 2)).astype(np.float32)
    t = (-phase / new).astype(np.float32)[:, None] + index / np.float32(old)
    t = np.clip(t * np.float32(cutoff), np.float32(-ZEROS), np.float32(ZEROS)) * np.float32(math.pi)
    window = _cosine(t / np.float32(ZEROS) / np.float32(2.0)) ** 2
    sinc = np.divide(_sine(t), t, out=np.ones_like(t), where=t != 0)
    taps = sinc * window
    taps /= taps.sum(axis=1, dtype=np.float64, keepdims=True).astype(np.float32)
    return _Phases(taps.astype(np.float64), first)


def _sine(angle: NDArray[np.float32]) -> NDArray[np.float32]:
    """The sine of a float32, rounded once."""
    return np.sin(angle.astype(np.float64)).astype(np.float32)


def _cosine(angle: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.cos(angle.astype(np.float64)).astype(np.float32)
