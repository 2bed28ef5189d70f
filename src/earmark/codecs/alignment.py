"""By how much a codec's output lags: one number for a codec, found once and reported; never a search on each clip.

    declared by the card ........................................ that
    else, over several clips:
      waveform   peak of the generalised cross-correlation (exponent 0.5) within ±200 ms, to a fraction of a sample;
                 taken when the peak stands out and the clips agree to 1 ms, or five and more agree to 0.1 ms
      envelope   peak of the correlation of log-mel envelopes, for codecs that keep the sound and not the waveform
    the codec's delay is the median over the clips; the spread is the middle half of them

A search on each clip would hide what a codec does to timing, and it fails where it matters: on a vocoder the waveform's
best lag is another one for every clip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from earmark import audio
from earmark.codecs.contract import CodecCard, Waveform
from earmark.codecs.signal._sound import is_silent
from earmark.errors import InputError
from earmark.extractors.mel_front_end import MelFrontEnd
from earmark.wording import counted

Floats = NDArray[np.float64]

REACH = 0.2  # seconds on both sides
FEWEST_CLIPS = 5
SHARP = 1.5  # times the next peak more than 1 ms away
AGREED = 0.001  # seconds: the middle half of the clips
SAME = 0.0001  # seconds: agreement that no chance explains, whatever the peaks look like
SNAP = 0.05  # samples: a lag this near to a whole number is that number
FINE = 16  # steps of a sample in which the peak is sought
ENVELOPE_RATE = 16_000
ENVELOPE_HOP = 16  # samples: 1 ms


class Delay(NamedTuple):
    """How far the decoded waveform lags behind the reference. Negative: it is early."""

    seconds: float
    method: Literal["declared", "waveform", "envelope"]
    spread_seconds: float = 0.0  # between the quartiles of the clips
    n: int = 0  # clips it was found on
    reason: str = ""  # what to know about it: few clips, a peak that is not sharp


class Lag(NamedTuple):
    """The best lag of one clip, and how many times higher its peak is than the next one."""

    seconds: float
    sharpness: float


def declared(card: CodecCard) -> Delay | None:
    """The delay that the codec's card states, if it does."""
    return None if card.delay is None else Delay(card.delay / card.rate, "declared")


def calibrate(pairs: Sequence[tuple[Waveform, Waveform]], rate: int) -> Delay:
    """The delay of a codec from (reference, decoded) clips at `rate`; at least five, or the reason says so.

    Clips that are silent on either side are left out; InputError when none is left. A best lag at the end of the search
    is no peak but a slope: the delay is then 0 and the reason says so.
    """
    usable = [(clean, heard) for clean, heard in pairs if _loud(clean) and _loud(heard)]
    if not usable:
        raise InputError("No clip is left to calibrate a delay on: all are silent; give clips with sound.")
    few = "" if len(usable) >= FEWEST_CLIPS else f"calibrated on {counted(len(usable), 'clip')} only"
    lags = [waveform_lag(clean, heard, rate) for clean, heard in usable]
    lag, spread = _middle([lag.seconds for lag in lags])
    sharpness = float(np.median([lag.sharpness for lag in lags]))
    agreed = (sharpness >= SHARP and spread <= AGREED) or (not few and spread <= SAME)
    if agreed and not _at_the_edge(lag):
        whole = round(lag * rate)
        snapped = whole / rate if abs(lag * rate - whole) < SNAP else lag
        return Delay(snapped, "waveform", spread, len(usable), few)
    why_not = f"the waveform's correlation has no sharp peak ({sharpness:.1f} times the next)"
    if spread > AGREED:
        why_not = f"the best lag of the waveform differs between clips (by {1000 * spread:.0f} ms)"
    reason = "; ".join(part for part in (few, why_not) if part)
    lag, spread = _middle([envelope_lag(clean, heard, rate).seconds for clean, heard in usable])
    if _at_the_edge(lag):
        beyond = f"no lag within {1000 * REACH:.0f} ms fits, so none is taken out: state the delay on the card"
        return Delay(0.0, "envelope", spread, len(usable), "; ".join(part for part in (few, beyond) if part))
    return Delay(round(lag * rate) / rate, "envelope", spread, len(usable), reason)


def aligned(decoded: Waveform, delay_seconds: float, rate: int, length: int) -> Waveform:
    """`length` samples of the decoded waveform, moved forward by its delay; zeros where it has none.

    Whole samples are moved; what is left of a sample is shifted in the frequency domain, where nothing else changes.
    """
    lag = delay_seconds * rate
    whole = round(lag)
    rest = lag - whole
    samples = np.asarray(decoded, np.float32)
    if abs(rest) > SNAP:
        samples = _fractionally_shifted(samples, rest)
    out = np.zeros(length, np.float32)
    first, last = max(whole, 0), min(len(samples), whole + length)
    if first < last:
        out[first - whole : last - whole] = samples[first:last]
    return out


def waveform_lag(clean: Waveform, heard: Waveform, rate: int) -> Lag:
    """The lag with the highest cross-correlation, whatever its sign, of spectra whitened by half."""
    reach = round(REACH * rate)
    size = scipy.fft.next_fast_len(max(len(clean), len(heard)) + reach + 1, real=True)
    spectrum = scipy.fft.rfft(heard.astype(np.float64), size) * np.conj(scipy.fft.rfft(clean.astype(np.float64), size))
    magnitude = np.abs(spectrum)
    whitened = spectrum / np.sqrt(np.maximum(magnitude, 1e-12 * magnitude.max()))
    correlation = scipy.fft.irfft(whitened, size)
    near = np.abs(np.concatenate([correlation[-reach:], correlation[: reach + 1]]))
    peak = int(near.argmax())
    apart = max(1, round(0.001 * rate))
    others = np.concatenate([near[: max(0, peak - apart)], near[peak + apart + 1 :]])
    sharpness = float(near[peak] / max(others.max(initial=0.0), 1e-300))
    return Lag((peak - reach + _fraction(whitened, peak - reach, size)) / rate, sharpness)


def envelope_lag(clean: Waveform, heard: Waveform, rate: int) -> Lag:
    """The lag with the highest correlation of log-mel envelopes, in steps of a millisecond and between them."""
    a, b = (envelopes(samples, rate) for samples in (clean, heard))
    reach = round(REACH * ENVELOPE_RATE / ENVELOPE_HOP)
    size = scipy.fft.next_fast_len(max(len(a), len(b)) + reach + 1, real=True)
    spectra = scipy.fft.rfft(b, size, axis=0) * np.conj(scipy.fft.rfft(a, size, axis=0))
    correlation = scipy.fft.irfft(spectra.sum(axis=1), size)
    near = np.concatenate([correlation[-reach:], correlation[: reach + 1]]) / _overlapping_energy(a, b, reach)
    peak = int(near.argmax())
    between = _parabola(*near[peak - 1 : peak + 2]) if 0 < peak < len(near) - 1 else 0.0
    return Lag((peak - reach + between) * ENVELOPE_HOP / ENVELOPE_RATE, 1.0)


def _overlapping_energy(a: Floats, b: Floats, reach: int) -> Floats:
    """For each lag the energy of the two where they overlap: without it short clips are drawn to lag 0."""
    lags = np.arange(-reach, reach + 1)
    sum_a, sum_b = (np.concatenate([[0.0], np.cumsum(np.square(c).sum(axis=1))]) for c in (a, b))
    first, last = np.maximum(-lags, 0), np.minimum(len(a), len(b) - lags)
    last = np.maximum(last, first)  # no overlap at all
    of_a = sum_a[np.minimum(last, len(a))] - sum_a[np.minimum(first, len(a))]
    of_b = sum_b[np.clip(last + lags, 0, len(b))] - sum_b[np.clip(first + lags, 0, len(b))]
    return np.asarray(np.sqrt(np.maximum(of_a * of_b, 1e-12 * sum_a[-1] * sum_b[-1])) + 1e-300)


def envelopes(samples: Waveform, rate: int) -> Floats:
    """Log-mel bands [T, 40], each without its mean: a band that a codec drops, or a change of level, says nothing."""
    bands = _FRONT_END(audio.resample(samples, rate, ENVELOPE_RATE)).astype(np.float64)
    return np.asarray(bands - bands.mean(axis=0))


_FRONT_END = MelFrontEnd(
    rate=ENVELOPE_RATE, n_fft=512, window=400, hop=ENVELOPE_HOP, mels=40, fmin=100.0, fmax=3800.0, padding="zeros",
    floor=1e-6,
)  # fmt: skip


def _fraction(whitened: NDArray[np.complex128], lag: int, size: int) -> float:
    """The part of a sample by which the peak lies beside `lag`: the correlation between samples, summed directly."""
    steps = np.arange(-FINE, FINE + 1) / FINE
    turns = 2.0 * np.pi * np.arange(len(whitened)) / size
    at_lag = whitened * np.exp(1j * turns * lag)
    values = np.abs(np.array([(at_lag * np.exp(1j * turns * step)).real.sum() for step in steps]))
    best = int(values.argmax())
    if not 0 < best < len(values) - 1:
        return float(steps[best])
    return float(steps[best] + _parabola(*values[best - 1 : best + 2]) / FINE)


def _parabola(left: float, middle: float, right: float) -> float:
    """Where a parabola through three equally spaced values has its top, in steps from the middle one."""
    curve = left - 2.0 * middle + right
    return 0.0 if curve == 0.0 else float(0.5 * (left - right) / curve)


def _fractionally_shifted(samples: Waveform, lag: float) -> Waveform:
    """The waveform moved forward by less than a sample; silence on both sides keeps its ends apart."""
    size = scipy.fft.next_fast_len(len(samples) + 64, real=True)
    spectrum = scipy.fft.rfft(samples.astype(np.float64), size)
    turns = 2.0 * np.pi * np.arange(len(spectrum)) / size
    return np.asarray(scipy.fft.irfft(spectrum * np.exp(1j * turns * lag), size)[: len(samples)], np.float32)


def _middle(values: Sequence[float]) -> tuple[float, float]:
    low, middle, high = np.percentile(values, (25, 50, 75))
    return float(middle), float(high - low)


def _at_the_edge(seconds: float) -> bool:
    return abs(seconds) >= REACH - 1.5 * ENVELOPE_HOP / ENVELOPE_RATE


def _loud(samples: Waveform) -> bool:
    return bool(np.isfinite(samples).all()) and not is_silent(samples)
