"""Models of others that give out all their hidden layers: clips one by one, any layer, all of them from one pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.extractors.contract import ExtractorCard, Frames, Waveform, as_array
from earmark.extractors.windows import cover

Floats = NDArray[np.float32]


class LayeredClips:
    """An extractor of layers. A kind of model says how one clip is heard (`hidden`)."""

    card: ExtractorCard
    layers: int  # the number of the last layer
    layer: int
    shortest: int  # samples; a shorter clip lies in the middle of so many

    def hidden(self, samples: Floats) -> Sequence[Any]:
        """[T, D] of every layer for one clip, tensors or arrays."""
        raise NotImplementedError

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return [frames[self.layer] for _, frames in self.extract_layers(waveforms, [self.layer])]

    def extract_layers(
        self, waveforms: Sequence[Waveform], layers: Sequence[int]
    ) -> Iterator[tuple[int, Mapping[int, Frames]]]:
        """Frames of several layers from one pass; keys are as they were asked. Every frame is valid."""
        counted = {layer: counted_layer(layer, self.layers, self.card.name) for layer in layers}
        for clip, waveform in enumerate(waveforms):
            hidden = self.hidden(cover(waveform, self.shortest, 1))
            chosen = {layer: np.asarray(as_array(hidden[number]), np.float32) for layer, number in counted.items()}
            yield clip, {layer: Frames(values, len(values)) for layer, values in chosen.items()}


def counted_layer(layer: int, last: int, name: str) -> int:
    """A layer counted from 0; -1 is the last."""
    if isinstance(layer, bool) or not isinstance(layer, int) or not -last - 1 <= layer <= last:
        raise UsageError(f"{name} has layers 0 to {last}, or -1 for the last: there is no layer {layer}.")
    return layer % (last + 1)
