"""What a model file does not say of itself, and how clips pass through it: shared by ONNX and TorchScript files.

    clip --windows--> samples [--mel front end--> frames] --layout--> array --model--> array --> [T, D]

A file `model.yaml` beside `model.onnx` says it, or keywords of the same names, which win:

    rate: 16000                 # samples a second that the model wants
    seconds: 1.5                # windows of this length; without it a clip is given whole
    hop: 0.75                   # from window to window; without it windows lie side by side
    shortest: 0.4               # shorter clips lie in the middle of so many seconds of silence (without it 0.05)
    front_end: {n_fft: 400, hop: 160, mels: 64, log: natural}     # without it the model takes samples
    layout: [batch, channel, time, mel]      # of the input, where its shape does not tell
    output: embedding           # which output; without it the first
    output_layout: [batch, feature, time]    # without it the last axis holds features
    card: {short_name: XY, licence: MIT}     # anything a card holds
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from earmark.errors import EarmarkError, InputError, UsageError, did_you_mean
from earmark.extractors.contract import ExtractorCard
from earmark.extractors.mel_front_end import MelFrontEnd
from earmark.extractors.windows import SHORTEST, cover, windows
from earmark.plain_yaml import load_yaml

__all__ = ["ModelFile", "Setup", "input_layout", "read_setup"]

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
    known = [field.name for field in fields(Setup)]
    for key in values:
        if key not in known:
            raise UsageError(
                f"{beside.name}: unknown key {key!r}.{did_you_mean(key, known)} Known: {', '.join(known)}."
            )
    for key in ("layout", "output_layout"):
        values[key] = tuple(values.get(key) or ())
    if isinstance(values.get("front_end"), Mapping):
        values["front_end"] = MelFrontEnd.of(values["front_end"], values.get("rate"))
        values.setdefault("rate", values["front_end"].rate)
    try:
        return Setup(**values)
    except TypeError as error:
        raise UsageError(f"{model.name} cannot be set up with {values}: {error}.") from error


def _read(file: Path) -> dict[str, Any]:
    try:
        found = load_yaml(file.read_text("utf-8"), str(file)) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{file} cannot be read ({' '.join(str(error).split())}).") from error
    if not isinstance(found, dict):
        raise UsageError(f"{file} must hold `key: value` lines such as `rate: 16000`.")
    return {str(key): value for key, value in found.items()}


def input_layout(shape: Shape, setup: Setup, name: str) -> tuple[str, ...]:
    """Which axis of an input is which: as the setup says, or as the shape alone allows."""
    if setup.layout:
        if len(setup.layout) != len(shape):
            raise UsageError(
                f"The input of {name} has {len(shape)} axes {_spelled(shape)}, its layout {len(setup.layout)}."
            )
        return setup.layout
    if setup.front_end is None:
        plain = {1: ("time",), 2: ("batch", "time")}.get(len(shape))
        if len(shape) == 3 and shape[1] == 1:
            plain = ("batch", "channel", "time")
        if plain is None:
            raise UsageError(
                f"{name} takes an array {_spelled(shape)}, not samples: describe its mel spectrogram as front_end."
            )
        return plain
    return _mel_layout(shape, setup.front_end.mels, name)


def _mel_layout(shape: Shape, mels: int, name: str) -> tuple[str, ...]:
    axes: list[str] = [""] * len(shape)
    bands = [place for place, size in enumerate(shape) if size == mels]
    if len(bands) == 1:
        axes[bands[0]] = "mel"
    if len(shape) > 2:
        axes[0] = axes[0] or "batch"
    ones = [place for place, size in enumerate(shape) if size == 1 and not axes[place]]
    if len(shape) == 4 and len(ones) == 1:
        axes[ones[0]] = "channel"
    if axes.count("") == 1 and "mel" in axes:
        axes[axes.index("")] = "time"
        return tuple(axes)
    raise UsageError(
        f"The input {_spelled(shape)} of {name} does not tell which axis is time and which holds {mels} mel bands: "
        "say it, as in layout: [batch, time, mel]."
    )


def _spelled(shape: Shape) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


class ModelFile:
    """Clips through a model file: `call` takes the input array and returns the output array."""

    def __init__(
        self, name: str, setup: Setup, layout: tuple[str, ...], shape: Shape, call: Callable[[Floats], NDArray[Any]]
    ) -> None:
        self.name, self.setup, self.layout, self._call = name, setup, layout, call
        self.size = self._window(shape)
        self.hop = self.size if setup.hop is None else max(1, round(setup.hop * setup.rate))
        if setup.hop is not None and self.size is None:
            raise UsageError(f"{name} hears clips whole: a hop needs seconds too.")
        if self.size is not None and self.hop is not None and self.hop > self.size:
            raise UsageError(f"With a hop of {setup.hop} s, {name} would not hear what lies between its windows.")

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
        return np.concatenate([self._time_first(self._call(self._given(piece))) for piece in pieces])

    def _given(self, samples: Floats) -> Floats:
        """Samples as the model's input array."""
        mel = self.setup.front_end
        values = samples if mel is None else mel(samples)
        present = [axis for axis in self.layout if axis in ("time", "mel")]
        if mel is not None and present == ["mel", "time"]:
            values = values.T
        single = tuple(place for place, axis in enumerate(self.layout) if axis in ("batch", "channel"))
        return np.ascontiguousarray(np.expand_dims(values, single))

    def _time_first(self, answer: NDArray[Any]) -> Floats:
        """An answer as [T, D]; without a layout axes of length 1 are dropped, and one that is left holds features."""
        axes = self.setup.output_layout
        values = np.asarray(answer)
        if axes:
            if values.ndim != len(axes):
                raise InputError(
                    f"{self.name} returned an array of shape {values.shape}; its output_layout is {list(axes)}."
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
                f"{self.name} returned an array of shape {np.shape(answer)}: say which axis is which, as in "
                "output_layout: [batch, time, feature]."
            )
        return np.asarray(values, np.float32)

    def card(self, title: str) -> ExtractorCard:
        """What is known of the model after it has heard a second of noise; `card` of the setup says the rest."""
        rate = self.setup.rate
        noise = (0.1 * np.random.default_rng(0).standard_normal(self.size or rate)).astype(np.float32)
        try:
            heard = self.frames(noise)
        except EarmarkError:
            raise
        except Exception as error:
            text = " ".join(str(error).split())
            raise InputError(
                f"{self.name} fails on {len(noise) / rate:g} s of sound: {type(error).__name__}: {text}"
            ) from error
        whole = self.size is None and len(heard) == 1
        step = (self.hop or rate) / rate
        card = ExtractorCard(
            name=self.name,
            title=title,
            rate=rate,
            dimension=heard.shape[1],
            frame_rate=None if whole else len(heard) / step,
            # The file's own content is part of every cache key; what stands beside it comes in through the version.
            version=f"1 {hashlib.sha256(repr(self.setup).encode()).hexdigest()[:16]}",
        )
        return _with_fields(card, self.setup.card or {})


def _with_fields(card: ExtractorCard, given: Mapping[str, Any]) -> ExtractorCard:
    known = [field.name for field in fields(ExtractorCard)]
    for key in given:
        if key not in known:
            raise UsageError(f"A card has no {key!r}.{did_you_mean(str(key), known)}")
    if math.isclose(given.get("rate", card.rate), card.rate):
        return replace(card, **{**given, "rate": card.rate})
    raise UsageError(f"The card says {given['rate']} Hz and the setup {card.rate}: state the rate outside the card.")
