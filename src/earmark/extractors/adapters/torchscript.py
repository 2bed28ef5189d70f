"""A TorchScript file as an extractor: `torchscript:model.pt`, with what it does not say in `model.yaml` beside it.

The module is called with float32 samples [1, T]; with a front_end it is called with mel frames in the layout that
the YAML file gives (see `earmark.extractors.adapters.model_files`). Clips go through one by one.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from earmark.errors import InputError, UsageError, require
from earmark.extractors.adapters.model_files import Floats, ModelFile, Setup, read_setup
from earmark.extractors.contract import Frames, Waveform

__all__ = ["TorchScriptModel"]


class TorchScriptModel:
    """Frames of a TorchScript module. Every frame is valid."""

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
        device: str = "cpu",
    ) -> None:
        file = Path(path).expanduser()
        setup = read_setup(
            file,
            {
                "rate": rate, "seconds": seconds, "hop": hop, "shortest": shortest, "front_end": front_end,
                "layout": layout, "output": output, "output_layout": output_layout, "card": card,
            },
        )  # fmt: skip
        self._torch, self._device = require("torch", "TorchScript files", "torch"), device
        self._module = self._open(file)
        self._output = setup.output
        self._model = ModelFile(file.stem, setup, _layout(setup, file.name), (), self._call)
        self.card = self._model.card("TorchScript file")

    def _open(self, file: Path) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # newer torch advises another format, which is of no use here
                module = self._torch.jit.load(str(file), map_location=self._device)
        except Exception as error:
            text = " ".join(str(error).split())[:200]
            raise InputError(f"{file} cannot be opened as a TorchScript file: {text}.") from error
        return module.eval()

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        found = [self._model.frames(waveform) for waveform in waveforms]
        return [Frames(values, len(values)) for values in found]

    def _call(self, given: Floats) -> Any:
        with self._torch.inference_mode():
            answer = self._module(self._torch.from_numpy(given).to(self._device))
        return _chosen(answer, self._output).detach().cpu().float().numpy()


def _layout(setup: Setup, name: str) -> tuple[str, ...]:
    if setup.layout or setup.front_end is None:
        return setup.layout or ("batch", "time")
    raise UsageError(f"{name} does not say how it wants mel frames: give a layout such as [batch, time, mel].")


def _chosen(answer: Any, output: str) -> Any:
    """A tensor, or one of several by its name or its number."""
    if isinstance(answer, Mapping):
        if output not in answer:
            raise UsageError(f"The module returns {', '.join(map(str, answer))}: name one of them as output.")
        return answer[output]
    if isinstance(answer, tuple | list):
        if (not output.isdecimal() and output) or int(output or 0) >= len(answer):
            raise UsageError(f"The module returns {len(answer)} tensors: give a number from 0 on as output.")
        return answer[int(output or 0)]
    return answer
