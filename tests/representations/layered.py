"""A model of three layers without any network: what is heard, its square, its cube."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from tests.representations import sounds

from earmark.extractors.contract import ExtractorCard, Frames


class Towers(sounds.Bands):
    """Layer k is the frames to the power k + 1; answers come last clip first. Counts its passes by kind."""

    card = ExtractorCard(name="towers", short_name="TW", rate=sounds.RATE, dimension=8, frame_rate=125.0)
    layers = 2
    passes: ClassVar[list[Any]] = []

    def extract(self, waveforms: Sequence[NDArray[np.float32]]) -> list[Frames]:
        type(self).passes.append("plain")
        return [self.layer(waveform, 2) for waveform in waveforms]

    def extract_layers(
        self, waveforms: Sequence[NDArray[np.float32]], layers: Sequence[int]
    ) -> Iterator[tuple[int, dict[int, Frames]]]:
        type(self).passes.append(tuple(layers))
        for place in reversed(range(len(waveforms))):
            yield place, {layer: self.layer(waveforms[place], layer) for layer in layers}

    def layer(self, waveform: NDArray[np.float32], layer: int) -> Frames:
        values, valid = self._one(waveform)
        return Frames((values / values.max()) ** (layer + 1), valid)


class Uneven(Towers):
    """Its layers differ in width, which one answer cannot hold."""

    def layer(self, waveform: NDArray[np.float32], layer: int) -> Frames:
        frames = super().layer(waveform, layer)
        return Frames(frames.values[:, : 8 - layer], frames.valid)
