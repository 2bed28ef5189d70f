"""A module with the HEAR API as an extractor: `hear:hearbaseline.torch`, or `hear:module:weights.pt`.

The module has `load_model(path)`, which returns a model with `sample_rate`, and one or both of

    get_timestamp_embeddings(audio [n, samples], model) -> (embeddings [n, T, D], timestamps [n, T] in ms)
    get_scene_embeddings(audio [n, samples], model) -> embeddings [n, D]

Frames come from the first, or, with `kind: scene`, one vector per clip from the second. Clips are given one by one:
the API pads nothing and says nothing of lengths. One shorter than `shortest` seconds lies in the middle of silence.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from earmark.errors import InputError, UsageError, require
from earmark.extractors.contract import ExtractorCard, Frames, Waveform, as_frames
from earmark.extractors.torch_models import device_of
from earmark.extractors.windows import SHORTEST, cover
from earmark.registry import load_path

FUNCTIONS = {"timestamp": "get_timestamp_embeddings", "scene": "get_scene_embeddings"}


class HearModule:
    """Frames [T, D] at the timestamps of the model, or one vector per clip. Every frame is valid."""

    def __init__(
        self,
        spec: str,
        *,
        kind: Literal["timestamp", "scene"] | None = None,
        shortest: float = SHORTEST,
        device: str = "cpu",
    ) -> None:
        module, _, weights = spec.partition(":")
        self._torch = require("torch", "HEAR modules", "torch")
        self._device = device_of(self._torch, device)
        load_path(f"{module}:load_model", "HEAR module")
        self._module: Any = sys.modules[module]
        self.kind = _kind(self._module, kind, module)
        self._model: Any = self._module.load_model(*([weights] if weights else []))
        for name, arguments in (("to", (self._device,)), ("eval", ())):
            change = getattr(self._model, name, None)
            self._model = change(*arguments) if callable(change) else self._model
        rate = getattr(self._model, "sample_rate", None)
        if not isinstance(rate, int | float) or rate < 1:
            raise InputError(f"The model of {module} states no sample_rate: the HEAR API asks for it.")
        self._shortest = max(1, round(shortest * rate))
        size = getattr(self._model, f"{self.kind}_embedding_size", None)
        self.card = ExtractorCard(
            name=module.rpartition(".")[2],
            title=f"HEAR module {module}",
            rate=int(rate),
            dimension=size if isinstance(size, int) else None,
            frame_rate=None if self.kind == "scene" else self._frame_rate(int(rate)),
            version=f"1 {_content(self._module, weights)}",
        )

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return [as_frames(self._hear(waveform)[0], 1)[0] for waveform in waveforms]

    def _hear(self, waveform: Waveform) -> tuple[Any, Any]:
        """Embeddings of one clip, with a first axis of length 1, and their timestamps (None for a whole clip)."""
        torch = self._torch
        samples = cover(waveform, self._shortest, 1)
        with torch.inference_mode():
            audio = torch.from_numpy(np.ascontiguousarray(samples, np.float32))[None, :].to(self._device)
            answer = getattr(self._module, FUNCTIONS[self.kind])(audio, self._model)
        if self.kind == "scene":
            return answer, None
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise InputError("get_timestamp_embeddings must return embeddings and timestamps.")
        embeddings, stamps = answer
        shape, count = list(np.shape(embeddings)), math.prod(np.shape(stamps))
        if len(shape) != 3 or shape[1] != count:
            raise InputError(
                f"get_timestamp_embeddings gives embeddings {shape} with {count} "
                "timestamps of one clip: the HEAR API asks for [1, timestamps, features]."
            )
        return embeddings, stamps

    def _frame_rate(self, rate: int) -> float:
        """Frames a second, from the timestamps of two seconds of silence."""
        stamps = np.asarray(self._hear(np.zeros(2 * rate, np.float32))[1], dtype=np.float64).ravel()
        if len(stamps) < 2:
            return 0.5
        span = float(stamps[-1] - stamps[0]) * len(stamps) / (len(stamps) - 1)
        if not 200.0 <= span <= 6000.0:
            raise InputError(
                f"The timestamps of get_timestamp_embeddings span {span:g} for two seconds of sound: the HEAR API asks "
                "for milliseconds."
            )
        return 1000.0 / float(np.median(np.diff(stamps)))


def _kind(module: Any, asked: str | None, name: str) -> str:
    there = [kind for kind, function in FUNCTIONS.items() if hasattr(module, function)]
    if asked is not None and asked not in FUNCTIONS:
        raise UsageError(f"There is no kind {asked!r} of HEAR embeddings: choose from {', '.join(FUNCTIONS)}.")
    if not there or (asked and asked not in there):
        raise UsageError(f"{name} has no {FUNCTIONS[asked or 'timestamp']}: it does not follow the HEAR API.")
    return asked or there[0]


def _content(module: Any, weights: str) -> str:
    """A hash of the module's file and of its weights, so that changed ones give new vectors."""
    digest = hashlib.sha256()
    for file in (inspect.getsourcefile(module), weights):
        if file and Path(file).is_file():
            with Path(file).open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:16]
