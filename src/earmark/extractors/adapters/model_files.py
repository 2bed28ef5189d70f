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

import hashlib
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from earmark.errors import EarmarkError, InputError, UsageError, did_you_mean, require
from earmark.extractors.contract import ExtractorCard, Frames, Waveform
from earmark.extractors.mel_front_end import MelFrontEnd
from earmark.extractors.torch_models import device_of
from earmark.extractors.windows import SHORTEST, clip_by_clip, cover, windows
from earmark.onnx_files import open_session
from earmark.plain_yaml import load_yaml
from earmark.workers import thread_count

INPUT_AXES = ("batch", "channel", "time", "mel")
OUTPUT_AXES = ("batch", "time", "feature")

Floats = NDArray[np.float32]
Shape = Sequence[int | str | None]


@dataclass(frozen=True)
class Setup:
    """How clips are given to a model file and what is taken from it."""

    rate: int = 16000
    seconds: float | None = None
    hop: float | None = None
    shortest: float = SHORTEST
    front_end: MelFrontEnd | None = None
    layout: tuple[str, ...] = ()
    output: str = ""
    output_layout: tuple[str, ...] = ()
    card: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        lengths = [length for length in (self.seconds, self.hop) if length is not None]
        if any(isinstance(number, bool) for number in (self.rate, self.shortest, *lengths)):
            raise UsageError("rate, seconds, hop and shortest of a model file are numbers, not yes or no.")
        if self.rate < 1 or any(not length > 0 for length in lengths) or not self.shortest >= 0:
            raise UsageError("rate, seconds and hop of a model file must be positive, and shortest at least 0.")
        for axes, known in ((self.layout, INPUT_AXES), (self.output_layout, OUTPUT_AXES)):
            wrong = [axis for axis in axes if axis not in known]
            if wrong or len(set(axes)) != len(axes):
                raise UsageError(f"A layout is made of {', '.join(known)}, each once at most, not of {list(axes)}.")


def read_setup(model: Path, given: Mapping[str, Any]) -> Setup:
    """The YAML file beside the model, with the keywords that were given in place of its values."""
    if not model.is_file():
        raise InputError(f"{model} does not exist; check the path.")
    beside = model.with_suffix(".yaml")
    values = _read(beside) if beside.is_file() else {}
    values |= {key: value for key, value in given.items() if value is not None}
    return setup_from(values, beside.name)


def setup_from(given: Mapping[str, Any], source: str) -> Setup:
    """A setup from plain values, as they stand in YAML; errors say where that is."""
    values = dict(given)
    known = [field.name for field in fields(Setup)]
    for key in values:
        if key not in known:
            raise UsageError(f"{source}: unknown key {key!r}.{did_you_mean(key, known)} Known: {', '.join(known)}.")
    for key in ("layout", "output_layout"):
        values[key] = tuple(values.get(key) or ())
    if isinstance(values.get("front_end"), Mapping):
        values["front_end"] = MelFrontEnd.of(values["front_end"], values.get("rate"))
        values.setdefault("rate", values["front_end"].rate)
    try:
        return Setup(**values)
    except TypeError as error:
        raise UsageError(f"{source}: a model file cannot be set up with {values}: {error}.") from error


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


class ModelFile:
    """Clips through a model file. A format says how it is opened (`begin`) and called (`call`).

    Args:
        path: the file; `model.yaml` beside `model.onnx` is read too.
        setup: the fields of `Setup`, which win over that file.
    """

    title: str
    card: ExtractorCard
    threads = 1

    def __init__(self, path: str, **setup: Any) -> None:
        self.file = Path(path).expanduser()
        self.setup = read_setup(self.file, setup)
        self.layout, shape = self.begin()
        self.size = self._window(shape)
        hop = self.setup.hop
        self.hop = self.size if hop is None else max(1, round(hop * self.setup.rate))
        if hop is not None and self.size is None:
            raise UsageError(f"{self.file.stem} hears clips whole: a hop needs seconds too.")
        if self.size is not None and self.hop is not None and self.hop > self.size:
            raise UsageError(f"With a hop of {hop} s, {self.file.stem} would not hear what lies between its windows.")
        self.card = self._described()

    def begin(self) -> tuple[tuple[str, ...], Shape]:
        """Open the file; the layout and the shape of its input."""
        raise NotImplementedError

    def call(self, given: Floats) -> NDArray[Any]:
        """The output for one input array."""
        raise NotImplementedError

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return clip_by_clip(self.frames, waveforms, self.threads)

    def _window(self, shape: Shape) -> int | None:
        """Samples in a window, as asked or as an input of fixed length needs it; None: clips are given whole."""
        setup = self.setup
        if setup.seconds is not None:
            return max(1, round(setup.seconds * setup.rate))
        length = shape[self.layout.index("time")] if "time" in self.layout and shape else None
        if not isinstance(length, int) or length < 1:
            return None
        mel = setup.front_end
        if mel is None:
            return length
        return (length - 1) * mel.hop + (mel.n_fft if mel.padding == "none" else 0) or mel.hop

    def frames(self, waveform: NDArray[Any]) -> Floats:
        """[T, D] of one clip."""
        samples = np.asarray(waveform, np.float32)
        if self.size is None:
            pieces: Any = [cover(samples, max(1, round(self.setup.shortest * self.setup.rate)), 1)]
        else:
            pieces = windows(samples, self.size, self.hop or self.size)
        return np.concatenate([self._time_first(self.call(self._given(piece))) for piece in pieces])

    def _given(self, samples: Floats) -> Floats:
        """Samples as the model's input array."""
        mel = self.setup.front_end
        values = samples if mel is None else mel(samples)
        if mel is not None and [axis for axis in self.layout if axis in ("time", "mel")] == ["mel", "time"]:
            values = values.T
        single = tuple(number for number, axis in enumerate(self.layout) if axis in ("batch", "channel"))
        return np.ascontiguousarray(np.expand_dims(values, single))

    def _time_first(self, answer: NDArray[Any]) -> Floats:
        """An answer as [T, D]; without a layout axes of length 1 are dropped, and one that is left holds features."""
        name, axes = self.file.stem, self.setup.output_layout
        values = np.asarray(answer)
        if axes:
            if values.ndim != len(axes):
                raise InputError(
                    f"{name} returned an array of shape {values.shape}; its output_layout is {list(axes)}."
                )
            if "batch" in axes:
                values = np.take(values, 0, axis=axes.index("batch"))
                axes = tuple(axis for axis in axes if axis != "batch")
            values = values.T if axes == ("feature", "time") else values
        else:
            values = np.squeeze(values)
        values = values[None, :] if values.ndim == 1 else values
        if values.ndim != 2:
            raise InputError(
                f"{name} returned an array of shape {np.shape(answer)}: say which axis is which, as in "
                "output_layout: [batch, time, feature]."
            )
        return np.asarray(values, np.float32)

    def _described(self) -> ExtractorCard:
        """What is known of the model after it has heard a second of noise; `card` of the setup says the rest."""
        rate, name = self.setup.rate, self.file.stem
        noise = (0.1 * np.random.default_rng(0).standard_normal(self.size or rate)).astype(np.float32)
        try:
            heard = self.frames(noise)
        except EarmarkError:
            raise
        except Exception as error:
            text = " ".join(str(error).split())
            raise InputError(
                f"{name} fails on {len(noise) / rate:g} s of sound: {type(error).__name__}: {text}"
            ) from error
        whole = self.size is None and len(heard) == 1
        step = (self.hop or rate) / rate
        card = ExtractorCard(
            name=name,
            title=self.title,
            rate=rate,
            dimension=heard.shape[1],
            frame_rate=None if whole else len(heard) / step,
            # The file's own content is part of every cache key; what stands beside it comes in through the version.
            version=f"1 {hashlib.sha256(repr(self.setup).encode()).hexdigest()[:16]}",
        )
        stated = self.setup.card or {}
        for key in stated:
            if key not in card.field_names():
                raise UsageError(f"A card has no {key!r}.{did_you_mean(str(key), card.field_names())}")
        if not math.isclose(stated.get("rate", rate), rate):
            raise UsageError(
                f"The card says {stated['rate']} Hz and the setup {rate}: state the rate outside the card."
            )
        return replace(card, **{**stated, "rate": rate})


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
            text = " ".join(str(error).split())[:200]
            raise InputError(f"{self.file} cannot be opened as a TorchScript file: {text}.") from error
        if not self.setup.layout and self.setup.front_end is not None:
            raise UsageError(
                f"{self.file.name} does not say how it wants mel frames: give a layout such as [batch, time, mel]."
            )
        return self.setup.layout or ("batch", "time"), ()

    def call(self, given: Floats) -> Any:
        with self._torch.inference_mode():
            answer = self._module(self._torch.from_numpy(given).to(self._device))
        return self._chosen(answer).detach().cpu().float().numpy()

    def _chosen(self, answer: Any) -> Any:
        """A tensor, or one of several by its name or its number."""
        output = self.setup.output
        if isinstance(answer, Mapping):
            if output not in answer:
                raise UsageError(f"The module returns {', '.join(map(str, answer))}: name one of them as output.")
            return answer[output]
        if isinstance(answer, tuple | list):
            if (not output.isdecimal() and output) or int(output or 0) >= len(answer):
                raise UsageError(f"The module returns {len(answer)} tensors: give a number from 0 on as output.")
            return answer[int(output or 0)]
        return answer
