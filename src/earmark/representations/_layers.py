"""What is kept of a model's frames, as named parts: pooled, of a hidden layer, or frame by frame.

    mean_time             pooled from the layer that the model gives unasked
    @9/mean_time          from its hidden layer 9: all layers of a run come from one forward pass
    frames/3              every third frame, each scaled to length 1, one after another (for DTW re-ranking)
    frames/3/width        their number of features

A model asked for layers is wrapped so that one answer holds the frames of all of them side by side, [T, layers x D],
and each part is taken from its own columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.embedding import pooling
from earmark.errors import InputError, UsageError, require
from earmark.extractors.contract import Extractor, Frames, Waveform, as_array

Layers = Sequence[int | None]
"""None stands for the layer that the model gives unasked."""

_FRAMES, _WIDTH = "frames/", "/width"


# --- names ---------------------------------------------------------------------------------------------------


def part_of(layer: int | None, part: str) -> str:
    return part if layer is None else f"@{layer}/{part}"


def split(part: str) -> tuple[int | None, str]:
    """The layer and the part of it."""
    if not part.startswith("@"):
        return None, part
    layer, _, rest = part[1:].partition("/")
    return int(layer), rest


def frame_parts(stride: int, layer: int | None = None) -> tuple[str, str]:
    """The parts that hold every n-th frame of a clip, and the width of a frame."""
    name = part_of(layer, f"{_FRAMES}{stride}")
    return name, f"{name}{_WIDTH}"


def layers_of(parts: Iterable[str]) -> tuple[int | None, ...]:
    """The layers that parts are of, in order, each once."""
    return tuple(dict.fromkeys(split(part)[0] for part in parts))


def layer_name(name: str, layer: int | None) -> str:
    """How a model's layer is called: `wavlm@9`, `WLM@9`."""
    return name if layer is None else f"{name}@{layer}"


def choose_layers(wanted: str | Sequence[int], layers: int | None, name: str) -> tuple[int, ...]:
    """The layers asked for, counted from 0: `all`, or numbers, of which -1 is the last."""
    if layers is None:
        raise UsageError(f"{name} has no hidden layers to choose from: leave out its layers.")
    if wanted == "all":
        return tuple(range(layers + 1))
    numbers = tuple(dict.fromkeys(layer if layer >= 0 else layers + 1 + layer for layer in map(int, wanted)))
    wrong = [layer for layer in numbers if not 0 <= layer <= layers]
    if wrong:
        raise UsageError(f"{name} has layers 0 to {layers}: there is no layer {wrong[0]}.")
    return numbers


# --- frames --------------------------------------------------------------------------------------------------


class Sweep:
    """A model that answers with several of its layers side by side."""

    def __init__(self, extractor: Any, layers: Layers) -> None:
        self._extractor, self._layers = extractor, tuple(layers)
        self.card = extractor.card

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        numbers = [layer for layer in self._layers if layer is not None]
        unasked = self._extractor.extract(waveforms) if None in self._layers else []
        answers: dict[int, Frames] = {}
        for row, layers in self._extractor.extract_layers(waveforms, numbers):
            chosen = [unasked[row] if layer is None else layers[layer] for layer in self._layers]
            if len({frames.values.shape for frames in chosen}) > 1:
                raise InputError(f"layers of {self.card.name} have frames of different shapes")
            answers[row] = Frames(_side_by_side([frames.values for frames in chosen]), chosen[0].valid)
        return [answers[row] for row in range(len(waveforms))]


def sweep_layers(extractor: Extractor, parts: Iterable[str]) -> Extractor:
    """The model as it is, or wrapped when parts of its layers are wanted."""
    layers = layers_of(parts)
    return extractor if layers in ((), (None,)) else Sweep(extractor, layers)


def _side_by_side(values: Sequence[Any]) -> Any:
    """Frames of several layers in one, where they are."""
    if not hasattr(values[0], "detach"):
        return np.concatenate(values, axis=1)
    return require("torch", "Layers on a device", "torch").cat(list(values), 1)


class Taken(NamedTuple):
    """What is kept of a clip, by part, and how many features a frame of each layer has."""

    vectors: dict[str, NDArray[np.float32]]
    features: int


def start_taking(answers: Sequence[Frames], parts: Sequence[str]) -> list[Callable[[], Taken]]:
    """Every part from answers that hold the layers of all of them, as functions that give them (or raise)."""
    layers = layers_of(parts)
    names = {layer: {part: name for part in parts for of, name in [split(part)] if of == layer} for layer in layers}
    pooled = {layer: [part for part, name in names[layer].items() if not name.startswith(_FRAMES)] for layer in layers}
    owns = [_of_layers(frames, layers) for frames in answers]
    started = iter(
        pooling.start_pooling(
            [(own[layer], [names[layer][part] for part in pooled[layer]]) for own in owns for layer in layers]
        )
    )

    def gathering(own: dict[int | None, Frames], arriving: dict[int | None, Callable[[], list[Any]]]) -> Taken:
        vectors: dict[str, NDArray[np.float32]] = {}
        for layer in layers:
            vectors |= dict(zip(pooled[layer], arriving[layer](), strict=True))
            rest = {part: name for part, name in names[layer].items() if part not in vectors}
            vectors |= {part: _frames(own[layer], name) for part, name in rest.items()}
        return Taken(vectors, int(next(iter(own.values())).values.shape[1]))

    return [partial(gathering, own, {layer: next(started) for layer in layers}) for own in owns]


def _of_layers(frames: Frames, layers: Layers) -> dict[int | None, Frames]:
    """The frames of each layer, from its own columns."""
    width = int(frames.values.shape[1]) // len(layers)
    return {
        layer: Frames(frames.values[:, number * width : (number + 1) * width], frames.valid)
        for number, layer in enumerate(layers)
    }


def _frames(frames: Frames, name: str) -> NDArray[np.float32]:
    """The kept frames one after another, or their width. A frame of zeros stays zero."""
    if name.endswith(_WIDTH):
        return np.array([frames.values.shape[1]], np.float32)
    kept = np.asarray(as_array(frames.values[: frames.valid : int(name.removeprefix(_FRAMES))]), np.float32)
    norms = np.linalg.norm(kept.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(kept / np.where(norms > 0, norms, 1.0), np.float32).ravel()
