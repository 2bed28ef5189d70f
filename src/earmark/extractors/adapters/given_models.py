"""Models of others that take one clip at a time: how it is given to them, and what is taken from their answer.

    clip --windows--> samples [--mel front end--> frames] --layout--> array --model--> array --> [T, D]

Everything a model may not say of itself is a field of `Setup`. ONNX and TorchScript files (`model_files`) and entries
of torch.hub (`torch_hub`) say how the model is opened and called, and nothing else.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, did_you_mean, strangers_code
from earmark.extractors.contract import ExtractorCard, Frames, Waveform
from earmark.extractors.mel_front_end import MelFrontEnd
from earmark.extractors.windows import SHORTEST, clip_by_clip, cover, trial_noise, windows

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


class GivenModel:
    """Clips through somebody's model. A format says how it is opened (`begin`) and called (`call`).

    Args:
        name: what it is called, on its card and in messages.
        setup: how clips are given to it; `begin` may complete it.
    """

    title: str
    card: ExtractorCard
    threads = 1
    frame_rate: float | None = None  # frames a second, where `settle` has found them out

    def __init__(self, name: str, setup: Setup) -> None:
        self.name, self.setup = name, setup
        self.layout, shape = self.begin()
        self.size = self._window(shape)
        hop = self.setup.hop
        self.hop = self.size if hop is None else max(1, round(hop * self.setup.rate))
        if hop is not None and self.size is None:
            raise UsageError(f"{self.name} hears clips whole: a hop needs seconds too.")
        if self.size is not None and self.hop is not None and self.hop > self.size:
            raise UsageError(f"With a hop of {hop} s, {self.name} would not hear what lies between its windows.")
        self.settle()
        self.card = self._described()

    def begin(self) -> tuple[tuple[str, ...], Shape]:
        """Open the model; the layout and the shape of its input."""
        raise NotImplementedError

    def call(self, given: Floats) -> NDArray[Any]:
        """The output for one input array."""
        raise NotImplementedError

    def settle(self) -> None:
        """What can be found out only by letting the model hear something; nothing for most."""

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
        return np.concatenate([self._time_first(self.call(self.given(piece))) for piece in pieces])

    def given(self, samples: Floats) -> Floats:
        """Samples as the model's input array."""
        mel = self.setup.front_end
        values = samples if mel is None else mel(samples)
        if mel is not None and [axis for axis in self.layout if axis in ("time", "mel")] == ["mel", "time"]:
            values = values.T
        single = tuple(number for number, axis in enumerate(self.layout) if axis in ("batch", "channel"))
        return np.array(np.expand_dims(values, single), order="C")  # a copy: windows are read-only views

    def _time_first(self, answer: NDArray[Any]) -> Floats:
        """An answer as [T, D]; without a layout axes of length 1 are dropped, and one that is left holds features."""
        name, axes = self.name, self.setup.output_layout
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
        rate, name = self.setup.rate, self.name
        samples = self.size or rate
        with strangers_code(f"{name} fails on {samples / rate:g} s of sound"):
            heard = self.frames(trial_noise(samples))
        whole = self.size is None and len(heard) == 1
        step = (self.hop or rate) / rate
        card = ExtractorCard(
            name=name,
            title=self.title,
            rate=rate,
            dimension=heard.shape[1],
            frame_rate=None if whole else self.frame_rate or len(heard) / step,
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
