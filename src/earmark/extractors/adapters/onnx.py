"""An ONNX file as an extractor: `onnx:model.onnx`, with what the file does not say in `model.yaml` beside it.

The input is known by its shape: [T], [B, T] or [B, 1, T] takes samples; anything else takes a mel spectrogram, which
the YAML file describes (see `earmark.extractors.adapters.model_files`). An input of fixed length is given windows of
that length. Clips go through one by one, so none depends on another, and are spread over threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from earmark.errors import UsageError, did_you_mean
from earmark.extractors.adapters.model_files import Floats, ModelFile, input_layout, read_setup
from earmark.extractors.contract import Frames, Waveform
from earmark.extractors.logmel import map_clips
from earmark.extractors.onnx_session import open_session
from earmark.workers import thread_count

__all__ = ["OnnxModel"]

_FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}


class OnnxModel:
    """Frames of an ONNX model. Every frame is valid."""

    def __init__(
        self,
        path: str,
        *,
        rate: int | None = None,
        seconds: float | None = None,
        hop: float | None = None,
        shortest: float | None = None,
        front_end: Mapping[str, Any] | None = None,
        layout: Sequence[str] | None = None,
        output: str | None = None,
        output_layout: Sequence[str] | None = None,
        card: Mapping[str, Any] | None = None,
        threads: int | None = None,
    ) -> None:
        file = Path(path).expanduser()
        setup = read_setup(
            file,
            {
                "rate": rate, "seconds": seconds, "hop": hop, "shortest": shortest, "front_end": front_end,
                "layout": layout, "output": output, "output_layout": output_layout, "card": card,
            },
        )  # fmt: skip
        self.threads = thread_count(threads)
        self._session = open_session(file)
        self._input = _only_input(self._session, file.name)
        self._output = _chosen_output(self._session, setup.output, file.name)
        shape = self._input.shape
        self._model = ModelFile(file.stem, setup, input_layout(shape, setup, file.name), shape, self._call)
        self.card = self._model.card("ONNX file")

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        found = map_clips(self._model.frames, waveforms, self.threads)
        return [Frames(values, len(values)) for values in found]

    def _call(self, given: Floats) -> Any:
        return self._session.run([self._output], {self._input.name: given.astype(_FLOATS[self._input.type])})[0]


def _only_input(session: Any, name: str) -> Any:
    inputs = session.get_inputs()
    if len(inputs) != 1:
        raise UsageError(
            f"{name} has {len(inputs)} inputs ({', '.join(one.name for one in inputs)}): export it with one, "
            "or wrap it in a class with `extract`."
        )
    if inputs[0].type not in _FLOATS:
        raise UsageError(
            f"{name} takes {inputs[0].type}, not floating-point numbers: wrap it in a class with `extract`."
        )
    return inputs[0]


def _chosen_output(session: Any, wanted: str, name: str) -> str:
    outputs = [one.name for one in session.get_outputs()]
    if wanted and wanted not in outputs:
        raise UsageError(
            f"{name} has no output {wanted!r}.{did_you_mean(wanted, outputs)} Its own: {', '.join(outputs)}."
        )
    return wanted or str(outputs[0])
