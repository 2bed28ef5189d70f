"""A clip, and what several metrics ask of it: copies at other rates, spectra, pitch. Each is computed once.

The clean side of a comparison is the same for every codec: make one `Sound` of it and give that to `measure`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from earmark import audio
from earmark.codecs.contract import Category, Waveform
from earmark.errors import InputError, UsageError

Made = TypeVar("Made")

SILENCE = 2.0**-16
"""Half of what a silent clip moves at most: half a step of 16-bit samples. A constant is silent at any level."""


class Sound:
    """A mono waveform at `rate` that remembers what was computed from it."""

    def __init__(self, samples: ArrayLike, rate: int) -> None:
        waveform = np.asarray(samples)
        if waveform.ndim != 1 or not len(waveform) or waveform.dtype.kind != "f":
            raise InputError(
                f"A clip is one row of floating-point samples, not {waveform.dtype} of shape {waveform.shape}."
            )
        if not np.isfinite(waveform).all():
            raise InputError("The clip holds NaN or infinite samples: export it again or leave it out.")
        if rate < 1:
            raise UsageError(f"A rate of {rate} Hz is not possible; give a positive whole number.")
        self.samples: Waveform = np.ascontiguousarray(waveform, np.float32)
        self.rate = rate
        self._made: dict[Any, Any] = {}

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate

    @property
    def silent(self) -> bool:
        return self.once("silent", lambda: is_silent(self.samples))

    def at(self, rate: int) -> Waveform:
        """The samples at another rate."""
        return self.once(("at", rate), lambda: audio.resample(self.samples, self.rate, rate))

    def once(self, key: Any, make: Callable[[], Made]) -> Made:
        """What `make` returns, computed at the first call with this key."""
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made


def is_silent(samples: Waveform) -> bool:
    """Whether there is nothing to hear: samples that do not move, whatever their level."""
    return not len(samples) or float(samples.max()) - float(samples.min()) < 2.0 * SILENCE


class Pair(NamedTuple):
    """What a metric is given: two sounds of one rate and length, neither silent."""

    reference: Sound
    decoded: Sound
    category: Category = "speech"
