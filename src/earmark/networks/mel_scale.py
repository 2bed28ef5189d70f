"""Mel scales and their triangular filters, with NumPy alone: front ends of extractors and of networks share them."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Scale = Literal["htk", "slaney"]


def mel_filters(
    rate: int,
    n_fft: int,
    mels: int,
    fmin: float = 0.0,
    fmax: float | None = None,
    scale: Scale = "htk",
    *,
    area: bool = False,
) -> NDArray[np.float64]:
    """Triangles [mels, n_fft // 2 + 1], their corners equally spaced in mels: of height 1, or of equal area."""
    bins = np.arange(n_fft // 2 + 1) * (rate / n_fft)
    edges = mel_corners(rate, mels, fmin, fmax, scale)
    low, peak, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    bank = np.maximum(0.0, np.minimum((bins - low) / (peak - low), (high - bins) / (high - peak)))
    return bank * (2.0 / (high - low)) if area else bank


def mel_corners(
    rate: int, mels: int, fmin: float = 0.0, fmax: float | None = None, scale: Scale = "htk"
) -> NDArray[np.float64]:
    """The corners [mels + 2] of the triangles in hertz, equally spaced in mels; triangle m rises from corner m."""
    low, high = _to_mels(np.array([fmin, rate / 2 if fmax is None else fmax]), scale)
    return _to_hertz(np.linspace(low, high, mels + 2), scale)


# Slaney's scale: 200/3 Hz to a mel up to 1 kHz (mel 15), above it 27 mels for a factor of 6.4.
_KNEE, _STEP, _GROWTH = 1000.0, 200.0 / 3.0, np.log(6.4) / 27.0


def _to_mels(hertz: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
    if scale == "htk":
        return np.asarray(2595.0 * np.log10(1.0 + hertz / 700.0))
    above = _KNEE / _STEP + np.log(np.maximum(hertz, _KNEE) / _KNEE) / _GROWTH
    return np.where(hertz < _KNEE, hertz / _STEP, above)


def _to_hertz(mels: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
    if scale == "htk":
        return np.asarray(700.0 * (10.0 ** (mels / 2595.0) - 1.0))
    knee = _KNEE / _STEP
    return np.where(mels < knee, mels * _STEP, _KNEE * np.exp(_GROWTH * (np.maximum(mels, knee) - knee)))
