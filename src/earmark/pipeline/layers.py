"""A model's hidden layers as systems of a run: all of them from one forward pass.

What is kept of a layer is a part like any other, with the layer in front: `@9/mean_time`. A model asked for layers is
wrapped so that one answer holds the frames of all of them side by side, [T, layers x D], and each part is pooled from
its own columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from earmark.errors import InputError, UsageError
from earmark.extractors.contract import Extractor, Frames, Waveform

__all__ = ["Sweep", "columns", "counted", "layers_of", "named", "part_of", "split", "swept"]


def part_of(layer: int | None, part: str) -> str:
    return part if layer is None else f"@{layer}/{part}"


def split(part: str) -> tuple[int | None, str]:
    """The layer and the part of it; None stands for the layer that the model gives unasked."""
    if not part.startswith("@"):
        return None, part
    layer, _, rest = part[1:].partition("/")
    return int(layer), rest


def layers_of(parts: Iterable[str]) -> tuple[int | None, ...]:
    """The layers that parts are of, in order, each once."""
    return tuple(dict.fromkeys(split(part)[0] for part in parts))


def named(name: str, layer: int | None) -> str:
    """How a model's layer is called: `wavlm@9`, `WLM@9`."""
    return name if layer is None else f"{name}@{layer}"


def counted(asked: str | Sequence[int], layers: int | None, name: str) -> tuple[int, ...]:
    """The layers asked for, counted from 0: `all`, or numbers, of which -1 is the last."""
    if layers is None:
        raise UsageError(f"{name} has no hidden layers to choose from: leave out its layers.")
    if asked == "all":
        return tuple(range(layers + 1))
    found = tuple(dict.fromkeys(layer if layer >= 0 else layers + 1 + layer for layer in map(int, asked)))
    wrong = [layer for layer in found if not 0 <= layer <= layers]
    if wrong:
        raise UsageError(f"{name} has layers 0 to {layers}: there is no layer {wrong[0]}.")
    return found


class Sweep:
    """A model that answers with several of its layers side by side."""

    def __init__(self, extractor: Any, layers: Sequence[int | None]) -> None:
        self._extractor, self._layers = extractor, tuple(layers)
        self.card = extractor.card

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        asked = [layer for layer in self._layers if layer is not None]
        unasked = self._extractor.extract(waveforms) if None in self._layers else []
        found: dict[int, Frames] = {}
        for place, layers in self._extractor.extract_layers(waveforms, asked):
            chosen = [unasked[place] if layer is None else layers[layer] for layer in self._layers]
            if len({frames.values.shape for frames in chosen}) > 1:
                raise InputError(f"layers of {self.card.name} have frames of different shapes")
            found[place] = Frames(np.concatenate([frames.values for frames in chosen], axis=1), chosen[0].valid)
        return [found[place] for place in range(len(waveforms))]


def columns(frames: Frames, layer: int | None, layers: Sequence[int | None]) -> Frames:
    """The frames of one layer out of an answer that holds several."""
    width = frames.values.shape[1] // len(layers)
    start = width * list(layers).index(layer)
    return Frames(frames.values[:, start : start + width], frames.valid)


def swept(extractor: Extractor, parts: Iterable[str]) -> Extractor:
    """The model as it is, or wrapped when parts of its layers are wanted."""
    layers = layers_of(parts)
    return extractor if layers in ((), (None,)) else Sweep(extractor, layers)
