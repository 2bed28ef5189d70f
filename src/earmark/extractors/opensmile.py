"""openSMILE's eGeMAPSv02: 88 hand-made statistics of voice quality for a clip, in their own units.

A clip shorter than 0.1 s lies in the middle of 0.1 s of silence: the statistics need a few frames of 60 ms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from earmark.errors import require
from earmark.extractors.contract import Frames, Waveform
from earmark.extractors.model_cards import CARDS
from earmark.extractors.windows import cover

__all__ = ["OpenSmile"]

SHORTEST = 1600  # samples


class OpenSmile:
    """One vector of 88 numbers per clip (T = 1)."""

    card = CARDS["opensmile"]

    def __init__(self) -> None:
        require("opensmile", "eGeMAPS features", "encoders")
        import opensmile  # an import statement: its version is part of the cache key

        self._smile = opensmile.Smile(
            feature_set=opensmile.FeatureSet.eGeMAPSv02, feature_level=opensmile.FeatureLevel.Functionals
        )

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return [Frames(self._clip(waveform), 1) for waveform in waveforms]

    def _clip(self, waveform: Waveform) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        samples = cover(waveform, SHORTEST, 1)
        return np.asarray(self._smile.process_signal(samples, self.card.rate), np.float32).reshape(1, -1)
