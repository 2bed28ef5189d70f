"""ONNX and TorchScript files as extractors: `onnx:model.onnx`, `torchscript:model.pt`.

    clip --windows--> samples [--mel front end--> frames] --layout--> array --model--> array --> [T, D]

What a model file does not say of itself, a file `model.yaml` beside it says, or keywords of the same names, which win:

    rate: 16000                 # samples a second that the model wants
    seconds: 1.5                # windows of this length; without it a clip is given whole
    hop: 0.75                   # from window to window; without it windows lie side by side
    shortest: 0.4               # shorter clips lie in the middle of so many seconds of silence (without it 0.05)
    front_end: {n_fft: 400, hop: 160, mels: 64, log: natural}     # without it the model takes samples
    layout: [batch, channel, time, mel]      # of the input, where its shape does not tell
    output: embedding           # which output; without it the first
    output_layout: [batch, feature, time]    # without it the last axis holds features
    card: {short_name: XY, licence: MIT}     # anything a card holds

The input of an ONNX file is known by its shape: [T], [B, T] or [B, 1, T] takes samples, anything else a mel
spectrogram, which front_end describes; an input of fixed length is given windows of that length. A TorchScript module
is called with float32 samples [1, T], or with mel frames in the given layout. Clips go through one by one, so none
depends on another.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from earmark.errors import InputError, UsageError, did_you_mean, require
from earmark.extractors.adapters.answers import chosen_output
from earmark.extractors.adapters.given_models import Floats, GivenModel, Setup, Shape, setup_from
from earmark.extractors.torch_models import device_of
from earmark.onnx_files import open_session
from earmark.plain_yaml import load_yaml
from earmark.wording import error_text
from earmark.workers import thread_count


def read_setup(model: Path, given: Mapping[str, Any]) -> Setup:
    """The YAML file beside the model, with the keywords that were given in place of its values."""
    if not model.is_file():
        raise InputError(f"{model} does not exist; check the path.")
    beside = model.with_suffix(".yaml")
    values = _read(beside) if beside.is_file() else {}
    values |= {key: value for key, value in given.items() if value is not None}
    return setup_from(values, beside.name)


def _read(file: Path) -> dict[str, Any]:
    try:
        values = load_yaml(file.read_text("utf-8"), str(file)) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{file} cannot be read ({' '.join(str(error).split())}).") from error
    if not isinstance(values, dict):
        raise UsageError(f"{file} must hold `key: value` lines such as `rate: 16000`.")
    return {str(key): value for key, value in values.items()}


def input_layout(shape: Shape, setup: Setup, name: str) -> tuple[str, ...]:
    """Which axis of an input is which: as the setup says, or as the shape alone allows."""
    spelled = f"[{', '.join('?' if size is None else str(size) for size in shape)}]"
    if setup.layout:
        if len(setup.layout) != len(shape):
            raise UsageError(f"The input of {name} has {len(shape)} axes {spelled}, its layout {len(setup.layout)}.")
        return setup.layout
    if setup.front_end is None:
        plain = {1: ("time",), 2: ("batch", "time")}.get(len(shape))
        if len(shape) == 3 and shape[1] == 1:
            plain = ("batch", "channel", "time")
        if plain is None:
            raise UsageError(
                f"{name} takes an array {spelled}, not samples: describe its mel spectrogram as front_end."
            )
        return plain
    mels = setup.front_end.mels
    axes: list[str] = [""] * len(shape)
    bands = [axis for axis, size in enumerate(shape) if size == mels]
    if len(bands) == 1:
        axes[bands[0]] = "mel"
    if len(shape) > 2:
        axes[0] = axes[0] or "batch"
    single = [axis for axis, size in enumerate(shape) if size == 1 and not axes[axis]]
    if len(shape) == 4 and len(single) == 1:
        axes[single[0]] = "channel"
    if axes.count("") == 1 and "mel" in axes:
        axes[axes.index("")] = "time"
        return tuple(axes)
    raise UsageError(
        f"The input {spelled} of {name} does not tell which axis is time and which holds {mels} mel bands: "
        "say it, as in layout: [batch, time, mel]."
    )


class ModelFile(GivenModel):
    """A model that is a file.

    Args:
        path: the file; `model.yaml` beside `model.onnx` is read too.
        setup: the fields of `Setup`, which win over that file.
    """

    def __init__(self, path: str, **setup: Any) -> None:
        self.file = Path(path).expanduser()
        super().__init__(self.file.stem, read_setup(self.file, setup))


_FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}


class OnnxModel(ModelFile):
    """Frames of an ONNX model, clips spread over threads. Every frame is valid."""

    title = "ONNX file"

    def __init__(self, path: str, *, threads: int | None = None, device: str = "cpu", **setup: Any) -> None:
        self.threads, self._device = thread_count(threads), device
        super().__init__(path, **setup)

    def begin(self) -> tuple[tuple[str, ...], Shape]:
        self._session = open_session(self.file, device=self._device)
        name, wanted = self.file.name, self.setup.output
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            raise UsageError(
                f"{name} has {len(inputs)} inputs ({', '.join(node.name for node in inputs)}): export it with one, "
                "or wrap it in a class with `extract`."
            )
        (self._input,) = inputs
        if self._input.type not in _FLOATS:
            raise UsageError(
                f"{name} takes {self._input.type}, not floating-point numbers: wrap it in a class with `extract`."
            )
        outputs = [node.name for node in self._session.get_outputs()]
        if wanted and wanted not in outputs:
            raise UsageError(
                f"{name} has no output {wanted!r}.{did_you_mean(wanted, outputs)} Its own: {', '.join(outputs)}."
            )
        self._output = wanted or str(outputs[0])
        return input_layout(self._input.shape, self.setup, name), self._input.shape

    def call(self, given: Floats) -> Any:
        return self._session.run([self._output], {self._input.name: given.astype(_FLOATS[self._input.type])})[0]


class TorchScriptModel(ModelFile):
    """Frames of a TorchScript module. Every frame is valid."""

    title = "TorchScript file"

    def __init__(self, path: str, *, device: str = "cpu", **setup: Any) -> None:
        self._device: Any = device
        super().__init__(path, **setup)

    def begin(self) -> tuple[tuple[str, ...], Shape]:
        self._torch = require("torch", "TorchScript files", "torch")
        self._device = device_of(self._torch, self._device)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # newer torch advises another format, which is of no use here
                self._module = self._torch.jit.load(str(self.file), map_location=self._device).eval()
        except Exception as error:
            raise InputError(f"{self.file} cannot be opened as a TorchScript file: {error_text(error)}.") from error
        if not self.setup.layout and self.setup.front_end is not None:
            raise UsageError(
                f"{self.file.name} does not say how it wants mel frames: give a layout such as [batch, time, mel]."
            )
        return self.setup.layout or ("batch", "time"), ()

    def call(self, given: Floats) -> Any:
        with self._torch.inference_mode():
            answer = self._module(self._torch.from_numpy(given).to(self._device))
        return chosen_output(answer, self.setup.output, "The module", first=True).detach().cpu().float().numpy()
