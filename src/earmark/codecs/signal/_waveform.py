"""Sample by sample: scale-invariant signal-to-distortion ratio, and the matching of levels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.codecs.contract import Measured, Waveform
from earmark.codecs.signal._sound import Pair
from earmark.scores.metrics import UNBOUNDED, metric

EXACT = 1e-14  # of the energy: less is the rounding of float32
NOTHING = 1e-24  # of the energy: less is the rounding of the sums


@metric(
    range=UNBOUNDED, standard=True, unit="dB", paper="Le Roux et al., ICASSP 2019",
    words="scale-invariant signal-to-distortion ratio",
)  # fmt: skip
def si_sdr(pair: Pair) -> Measured:
    """Scale-invariant signal-to-distortion ratio in decibels, any value, higher is better.

        target = (<s, e> / <s, s>) s        10 log10(|target|² / |e - target|²)

    for the reference s and the decoded e, both without their means. It falls to about minus infinity for a codec that
    keeps the sound and not the waveform (a vocoder), and has no upper bound: a clip that comes back exactly, or
    multiplied by a number, is not_applicable, and so is all above 140 dB, which is the rounding of float32 and would
    rule any mean. Le Roux et al., ICASSP 2019.
    """
    clean = pair.reference.samples.astype(np.float64)
    heard = pair.decoded.samples.astype(np.float64)
    clean -= clean.mean()
    heard -= heard.mean()
    energy = float(clean @ clean)
    if energy == 0.0:
        return Measured.not_applicable("the reference is constant")
    target = (float(clean @ heard) / energy) * clean
    rest = heard - target
    kept, lost = float(target @ target), float(rest @ rest)
    if kept <= NOTHING * lost:
        return Measured.failed("nothing of the waveform came back: the ratio is minus infinity")
    if lost <= EXACT * kept:
        return Measured.not_applicable("the waveform came back exactly: the ratio is infinite")
    return Measured(10.0 * float(np.log10(kept / lost)))


def gain_matched(heard: NDArray[Any], clean: Waveform) -> Waveform:
    """The decoded clip at the energy of the reference. (A projection would silence a vocoder: it keeps no waveform.)"""
    energy = np.square(heard, dtype=np.float64).sum()
    wanted = np.square(clean, dtype=np.float64).sum()
    return np.asarray(heard * np.sqrt(wanted / energy), np.float32)
