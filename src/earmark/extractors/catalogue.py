"""Which extractors there are, and how one is opened from a name or an import path.

The cards are data: listing them imports no model and no torch. A stranger's model needs no registration and no
card; `mypackage.mymodule:MyModel` is imported (from the current folder too) and given sensible defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import yaml

from earmark.errors import EarmarkError, InputError, UsageError, did_you_mean
from earmark.extractors.contract import Extractor, ExtractorCard, Frames, Waveform
from earmark.extractors.packaged_cards import PACKAGED, PACKAGED_PATHS
from earmark.extractors.pretrained_cards import PRETRAINED, PRETRAINED_PATHS
from earmark.registry import Registry

__all__ = ["CARDS", "EXTRACTORS", "Adapted", "Spec", "as_frames", "cards", "open_extractor", "parse_spec"]

_VOCSIM = "VocSim: training-free evaluation of audio representations"

CARDS: dict[str, ExtractorCard] = {
    card.name: card
    for card in (
        ExtractorCard(
            name="logmel",
            short_name="M",
            title="Log-mel spectrogram",
            dimension=128,
            frame_rate=62.5,
            parameters=0,
            licence="Apache-2.0",
            citation=_VOCSIM,
            pooling="flatten",
            notes="512-point FFT every 256 samples, 128 HTK bands to 8 kHz, decibels, floor 80 dB below the maximum",
        ),
        ExtractorCard(
            name="mfcc",
            short_name="MFCC",
            title="MFCC statistics",
            dimension=80,
            parameters=0,
            licence="Apache-2.0",
            citation="Davis & Mermelstein, IEEE TASSP 28(4), 1980",
            notes="mean and standard deviation over time of 20 coefficients and of their slopes",
        ),
        ExtractorCard(
            name="vae",
            short_name="VC",
            title="Variational autoencoder trained on the subset itself",
            dimension=32,
            frame_rate=62.5 / 64,
            learns_here=True,
            licence="Apache-2.0",
            citation="Goffinet et al., eLife 10:e67855, 2021",
            extra="torch",
            notes="latent means of 128 x 128 log-mel patches, half overlapping; learns from sounds, never from labels",
        ),
        ExtractorCard(
            name="ae",
            short_name="AC",
            title="Autoencoder trained on the subset itself",
            dimension=256,
            frame_rate=62.5 / 16,
            learns_here=True,
            licence="Apache-2.0",
            citation="Best et al., PLOS ONE 18(7):e0283396, 2023",
            extra="torch",
            notes="256-d bottleneck every 16 log-mel frames; learns from sounds, never from labels",
        ),
        *PACKAGED,
        *PRETRAINED,
    )
}

EXTRACTORS: Registry[Callable[..., Extractor]] = Registry(
    "extractor",
    "earmark.extractors",
    {
        "ae": "earmark.extractors.learned:Autoencoder",
        "logmel": "earmark.extractors.logmel:LogMel",
        "mfcc": "earmark.extractors.mfcc:MFCC",
        "vae": "earmark.extractors.learned:VariationalAutoencoder",
        **PACKAGED_PATHS,
        **PRETRAINED_PATHS,
    },
)


def cards() -> list[ExtractorCard]:
    """The card of every registered name. A plug-in's own card shows once it is opened; here it has its name."""
    return [CARDS.get(name, ExtractorCard(name=name, title="(plug-in)")) for name in EXTRACTORS]


class Spec(NamedTuple):
    """An extractor as it is spelled: a name or import path, what follows its colon, and parameters."""

    name: str
    argument: str | None
    parameters: dict[str, Any]

    @property
    def path(self) -> str:
        """The name with its argument, without the parameters."""
        return self.name if self.argument is None else f"{self.name}:{self.argument}"


def parse_spec(spec: str) -> Spec:
    """Take `name:argument?key=value&key=value` apart; values are read as YAML reads them (9, true, text).

    A question mark that begins no parameters belongs to the argument, as it may in a path.
    """
    path, mark, query = spec.rpartition("?")
    pairs = [pair.partition("=") for pair in query.split("&")] if mark else []
    if not pairs or not all(key.isidentifier() and equals for key, equals, _ in pairs):
        path, pairs = spec, []
    name, colon, argument = path.partition(":")
    return Spec(name, argument if colon else None, {key: _scalar(value) for key, _, value in pairs})


def _scalar(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def open_extractor(spec: str, **parameters: Any) -> Extractor:
    """Make the extractor that `spec` names.

        `logmel`                      a registered name
        `whisper:openai/whisper-tiny` a registered name with the argument its constructor takes first
        `wavlm?layer=9&device=cpu`    with parameters, on a command line; those given as keywords win
        `mypackage.mymodule:MyModel`  an import path: a class, a function that makes a model, or a model
        `mypackage.mymodule:embed`    a function of samples (and their rate) that returns a vector or frames

    Args:
        spec: How it is spelled, as above.
        parameters: Keywords for its constructor.
    """
    head, argument, given = parse_spec(spec)
    parameters = {**given, **parameters}
    if "." not in head and head in EXTRACTORS:
        made = _construct(EXTRACTORS.load(head), spec, () if argument is None else (argument,), parameters)
        return made if head in CARDS and isinstance(made, Extractor) else Adapted(made, name=head)
    if argument is None:
        EXTRACTORS.load(head)  # raises, with the nearest name
    thing = _imported(f"{head}:{argument}")
    if isinstance(thing, FunctionType):
        from earmark.extractors.adapters.function import Function, wants_sound

        if wants_sound(thing, parameters):
            return Adapted(Function(thing, parameters))
    return Adapted(_construct(thing, spec, (), parameters), name=str(argument).rpartition(".")[2])


def _imported(path: str) -> Any:
    """The object at an import path."""
    try:
        return EXTRACTORS.load(path)
    except InputError as error:
        near = did_you_mean(path.partition(":")[0], EXTRACTORS)
        raise InputError(f"{error}{near}") from error


def _construct(thing: Any, spec: str, arguments: tuple[str, ...], parameters: Mapping[str, Any]) -> Any:
    """Call a class or a factory; a model that is already made is taken as it is."""
    if not isinstance(thing, type) and hasattr(thing, "extract"):
        if parameters:
            raise UsageError(f"{spec} is a finished object and takes no parameters ({', '.join(parameters)}).")
        return thing
    if not callable(thing):
        raise UsageError(f"{spec} is neither a model with an `extract` method nor something that makes one.")
    try:
        made = thing(*arguments, **parameters)
    except EarmarkError:
        raise
    except TypeError as error:
        raise UsageError(f"{spec} cannot be made with these parameters: {error}.") from error
    except Exception as error:
        raise InputError(f"{spec} cannot be made: {type(error).__name__}: {error}.") from error
    if not callable(getattr(made, "extract", None)):
        raise UsageError(f"{spec} has no `extract` method: give it one that takes a list of waveforms.")
    return made


class Adapted:
    """A stranger's model in Earmark's shape: a card with defaults, and answers brought to `Frames`.

    Of the card only `rate` matters for the numbers; without one, 16 kHz is assumed (attributes `rate`,
    `sample_rate` and `sampling_rate` are looked for). Other attributes are the model's own.
    """

    def __init__(self, model: Any, name: str = "") -> None:
        self.model = model
        self.card = _card_of(model, name or type(model).__name__)
        self.has_own_card = getattr(model, "card", None) is not None

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return as_frames(self.model.extract(waveforms), len(waveforms))

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # while unpickling, before __init__
            raise AttributeError(name)
        return getattr(self.model, name)


def _card_of(model: Any, name: str) -> ExtractorCard:
    given = getattr(model, "card", None)
    if isinstance(given, ExtractorCard):
        return given
    known = {field.name for field in fields(ExtractorCard)}
    if isinstance(given, Mapping):
        unknown = sorted(set(given) - known)
        if unknown:
            raise UsageError(f"The card of {name} has unknown fields: {', '.join(unknown)}.")
        return replace(ExtractorCard(name=name), **given)
    found = {field: getattr(model, field) for field in known if isinstance(getattr(model, field, None), str | int)}
    for spelling in ("rate", "sample_rate", "sampling_rate"):
        stated = getattr(model, spelling, None)
        if "rate" not in found and isinstance(stated, int | float):
            found["rate"] = int(stated)
    return replace(ExtractorCard(name=name), **found)


def as_frames(answer: Any, clips: int) -> list[Frames]:
    """Bring what a model returned for `clips` waveforms to a list of `Frames`.

    One item per clip, in a list or along the first axis of an array: Frames, (values, valid), [T, D], or [D]
    for one vector per clip. Tensors are brought to the CPU. Whatever else it is, the error says so.
    """
    items = list(_array(answer)) if _is_arraylike(answer) else answer
    if not isinstance(items, Iterable) or isinstance(items, str | bytes | Mapping):
        raise InputError(f"extract returned {type(answer).__name__}, not a list with one item per waveform.")
    frames = [_one(item) for item in items]
    if len(frames) != clips:
        raise InputError(f"extract returned {len(frames)} items for {clips} waveforms.")
    return frames


def _one(item: Any) -> Frames:
    valid: Any = None
    if isinstance(item, tuple) and len(item) == 2 and not isinstance(item[1], Sequence):
        item, valid = item
    values = _array(item)
    if values.ndim == 1 and values.dtype != object:
        values = values[None, :]
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise InputError(
            f"extract returned values of shape {values.shape} and type {values.dtype}, not [T, D] numbers."
        )
    return Frames(values, len(values) if valid is None else int(valid))


def _is_arraylike(thing: Any) -> bool:
    return isinstance(thing, np.ndarray) or hasattr(thing, "detach")


def _array(thing: Any) -> Any:
    return np.asarray(thing.detach().cpu().numpy() if hasattr(thing, "detach") else thing)
