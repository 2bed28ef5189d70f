"""Moonshine's encoder: a speech recogniser's hidden layers, from int8 ONNX files of its authors.

    16 kHz ── 127 samples every 64 ── tanh, group norm over the clip ── two convolutions ── blocks ── layer norm
                                                                  a frame every 24 ms: layer 0 │ 1 … n-1 │ n

Clips are heard one by one, never side by side: the graph has no mask, its group norm spans whatever it is given, and
its int8 products share one scale over a call, so that a clip's frames would depend on the clips beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.extractors.contract import Frames, Waveform
from earmark.extractors.model_cards import CARDS
from earmark.extractors.wheel_weights import paths_of
from earmark.extractors.windows import cover, map_clips
from earmark.onnx_files import open_session
from earmark.workers import thread_count

RATE = 16000
SHORTEST = 1600  # samples; the graph needs 895
LONGEST = 30 * RATE
"""What is heard in one go: the length of what it was trained on. Its attention grows with the square."""

Floats = NDArray[np.float32]


class Size(NamedTuple):
    """Facts of one of the two models: blocks of the encoder, and the heads of the decoder's blocks."""

    spelling: str
    layers: int
    dimension: int
    parameters: int  # of the encoder
    head: int


SIZES = {
    "tiny": Size("moonshine", 6, 288, 7_681_248, 36),
    "base": Size("moonshine:base", 8, 416, 20_153_120, 52),
}


def size_of(name: str) -> Size:
    """The model of a name: tiny where none is given."""
    if (name or "tiny") not in SIZES:
        raise UsageError(f"There is no Moonshine {name!r}: choose from {', '.join(SIZES)}.")
    return SIZES[name or "tiny"]


class Moonshine:
    """`moonshine` (tiny) and `moonshine:base`: frames [T, 288] or [T, 416], 41.7 a second.

    A clip shorter than 0.1 s lies in the middle of 0.1 s of silence; one longer than 30 s is heard in the fewest equal
    parts of at most 30 s.

    Args:
        model: tiny or base.
        layer: which hidden layer; 0 is what enters the first block, -1 what leaves the last norm.
        threads: clips heard at once; None is one for each core.
        device: cpu, or cuda where onnxruntime has it.
    """

    def __init__(
        self, model: str = "tiny", *, layer: int = -1, threads: int | None = None, device: str = "cpu"
    ) -> None:
        size = size_of(model)
        self.layers = size.layers
        self.layer = self._counted(layer)
        self.threads = thread_count(threads)
        self.card = CARDS["moonshine"]
        if size.spelling != self.card.name:
            self.card = replace(
                self.card, title="Moonshine base encoder", dimension=size.dimension, parameters=size.parameters,
                checkpoint="base",
            )  # fmt: skip
        self.files = paths_of(size.spelling)[:1]
        inner = ["/Transpose_output_0", *(f"/layers.{number}/Add_1_output_0" for number in range(size.layers - 1))]
        self._session = open_session(self.files[0], "Moonshine embeddings", self.card.extra, inner=inner, device=device)
        self._outputs = [*inner, "last_hidden_state"]

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return [by_layer[self.layer] for by_layer in self._heard(waveforms, [self.layer])]

    def extract_layers(
        self, waveforms: Sequence[Waveform], layers: Sequence[int]
    ) -> Iterator[tuple[int, Mapping[int, Frames]]]:
        """Frames of several layers from one pass; keys are as they were asked."""
        counted = {layer: self._counted(layer) for layer in layers}
        heard = self._heard(waveforms, sorted(set(counted.values())))
        for clip, by_layer in enumerate(heard):
            yield clip, {layer: by_layer[number] for layer, number in counted.items()}

    def _counted(self, layer: int) -> int:
        if not -self.layers - 1 <= layer <= self.layers:
            raise UsageError(f"This model has layers 0 to {self.layers}, or -1 for the last; there is no {layer}.")
        return layer % (self.layers + 1)

    def _heard(self, waveforms: Sequence[Waveform], layers: Sequence[int]) -> list[dict[int, Frames]]:
        wanted = [self._outputs[layer] for layer in layers]

        def hear(waveform: Waveform) -> dict[int, Frames]:
            parts = [self._session.run(wanted, {"input_values": part[None]}) for part in equal_parts(waveform)]
            joined = [np.concatenate([values[0] for values in of_layer]) for of_layer in zip(*parts, strict=True)]
            return {layer: Frames(values, len(values)) for layer, values in zip(layers, joined, strict=True)}

        heard: list[dict[int, Frames]] = map_clips(hear, waveforms, self.threads)
        return heard


def equal_parts(waveform: Waveform) -> list[Floats]:
    """A clip in as few equal parts as possible, none longer than LONGEST nor shorter than SHORTEST."""
    samples = cover(waveform, SHORTEST, 1)
    return np.array_split(samples, -(-len(samples) // LONGEST))


def encoder_of(size: Size) -> Any:
    """The encoder as its authors publish it, without hidden layers."""
    return open_session(paths_of(size.spelling)[0], "Recognition by Moonshine", "onnx")
