"""A mel spectrogram of any description: what networks trained elsewhere were fed with.

    waveform --pad--> frames --taper, FFT, |.|^power--> mel bands --log--> (x - mean) / std      [T, mels]

`earmark.extractors.logmel` has one fixed recipe and is fast; this one has every knob that published front ends
turn, as data: a mapping in a YAML file beside a model is a `MelFrontEnd`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, get_args, get_type_hints

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from earmark.errors import UsageError, did_you_mean
from earmark.networks.mel_scale import Scale, mel_filters

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class MelFrontEnd:
    """How a waveform becomes mel frames. Lengths are in samples, frequencies in hertz."""

    rate: int = 16000
    n_fft: int = 400
    window: int | None = None  # length of the taper, centred in n_fft; None: n_fft
    hop: int = 160
    mels: int = 64
    fmin: float = 0.0
    fmax: float | None = None  # None: half the rate
    scale: Scale = "htk"
    height: Literal["one", "area"] = "one"  # triangles of height 1, or of equal area (librosa's default)
    taper: Literal["hann", "hamming", "rectangular"] = "hann"
    power: float = 2.0
    padding: Literal["none", "zeros", "reflect"] = "none"  # half of n_fft on both sides; none: whole frames only
    log: Literal["none", "natural", "log10", "decibels"] = "natural"
    floor: float = 1e-10  # smallest value before the logarithm
    offset: float = 0.0  # added before the logarithm
    mean: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for field in fields(self):
            choices = (
                get_args(hints[field.name]) if field.name in ("scale", "height", "taper", "padding", "log") else ()
            )
            value = getattr(self, field.name)
            if isinstance(value, bool):
                raise UsageError(f"A front end's {field.name} cannot be yes or no; give its value.")
            if choices and value not in choices:
                raise UsageError(
                    f"A front end's {field.name} cannot be {value!r}: choose from {', '.join(choices)}."
                    f"{did_you_mean(str(value), choices)}"
                )
        top = self.rate / 2 if self.fmax is None else self.fmax
        sound = (
            min(self.rate, self.n_fft, self.hop, self.mels) >= 1
            and 0 <= self.fmin < top <= self.rate / 2
            and 1 <= self.taper_length <= self.n_fft
            and self.power > 0
            and self.std > 0
        )
        if not sound:
            raise UsageError(
                "A front end needs positive lengths, a window of at most n_fft, 0 <= fmin < fmax <= rate / 2, "
                "and positive power and std."
            )

    @classmethod
    def of(cls, given: Mapping[str, Any], rate: int | None = None) -> MelFrontEnd:
        """From a mapping, as it stands in YAML; an unknown key is named with the nearest known one."""
        known = [field.name for field in fields(cls)]
        for key in given:
            if key not in known:
                raise UsageError(
                    f"A front end has no {key!r}.{did_you_mean(str(key), known)} Known: {', '.join(known)}."
                )
        try:
            return cls(**({"rate": rate} if rate else {}) | dict(given))
        except TypeError as error:
            raise UsageError(f"A front end cannot be made of {dict(given)}: {error}.") from error

    @property
    def taper_length(self) -> int:
        return self.n_fft if self.window is None else self.window

    @property
    def shortest(self) -> int:
        """Samples that give one frame. Shorter clips lie in the middle of as many."""
        return self.n_fft if self.padding == "none" else self.n_fft // 2 + 1

    def __call__(self, waveform: NDArray[Any]) -> Floats:
        """Mel frames [T, mels] of one clip at the front end's rate, T at least 1."""
        samples = np.asarray(waveform, np.float32)
        missing = max(0, self.shortest - len(samples))
        samples = np.pad(samples, (missing // 2, missing - missing // 2))
        if self.padding != "none":
            samples = np.pad(samples, self.n_fft // 2, mode="reflect" if self.padding == "reflect" else "constant")
        frames = np.lib.stride_tricks.sliding_window_view(samples, self.n_fft)[:: self.hop]
        spectrum = np.abs(scipy.fft.rfft(frames * self._taper, axis=1))
        values = (spectrum**self.power) @ self._bank
        return np.asarray((self._logarithm(values) - self.mean) / self.std, np.float32)

    def _logarithm(self, values: Floats) -> Floats:
        if self.log == "none":
            return values
        logs = np.log(np.maximum(values + np.float32(self.offset), np.float32(self.floor)))
        scale = {"natural": 1.0, "log10": 1 / np.log(10), "decibels": 10 / np.log(10)}[self.log]
        return np.asarray(logs * np.float32(scale), np.float32)

    @cached_property
    def _taper(self) -> Floats:
        from scipy.signal import get_window  # half a second to import, and most callers want no window

        shape = "boxcar" if self.taper == "rectangular" else self.taper
        window = get_window(shape, self.taper_length, fftbins=True)
        left = (self.n_fft - self.taper_length) // 2
        return np.pad(window, (left, self.n_fft - self.taper_length - left)).astype(np.float32)

    @cached_property
    def _bank(self) -> Floats:
        area = self.height == "area"
        bank = mel_filters(self.rate, self.n_fft, self.mels, self.fmin, self.fmax, self.scale, area=area)
        return np.ascontiguousarray(bank.T.astype(np.float32))
