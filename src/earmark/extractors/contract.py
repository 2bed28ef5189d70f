"""What an extractor is: a card and one method. No base class is needed; anything of this shape will do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from earmark.cards import Adapter, Card
from earmark.errors import InputError, UsageError

Waveform = NDArray[np.float32]


class Frames(NamedTuple):
    """What a model says of one clip: values [T, D], of which the first `valid` rows heard sound, not padding.

    A clip-level model returns T = 1. The values may be a tensor that is still on its device, to be pooled there.
    """

    values: Any  # an array, or a tensor
    valid: int


@dataclass(frozen=True)
class ExtractorCard(Card):
    """Facts about an extractor that listing, planning and reports need without loading it."""

    name: str
    short_name: str = ""  # the code used in tables, e.g. M, EW, WLM
    title: str = ""
    rate: int = 16000
    dimension: int | None = None
    frame_rate: float | None = None  # frames per second; None for clip-level models
    context_seconds: float | None = None  # what the model hears at most; None: everything
    parameters: int | None = None
    licence: str = ""
    citation: str = ""
    pretraining: tuple[str, ...] = ()  # corpora the weights have seen
    learns_here: bool = False  # trained on the sounds it is measured with, without labels
    pooling: str = "mean_time"  # what to use when nothing is asked for
    extra: str = ""  # the optional dependency group it needs
    checkpoint: str = ""  # the weights that are opened when no others are named
    version: str = "1"  # part of the cache key: raise it when the output changes
    notes: str = ""


@runtime_checkable
class Extractor(Protocol):
    """Frozen model: waveforms (mono float32 at card.rate, peak-normalised) in, frames out, in the same order.

    An extractor that learns from the sounds of a subset (never from labels) also has
    `fit(clips, *, progress, checkpoint)`, called before `extract`: once per subset, or as its `trained_on` says
    (`subsets_named`).
    """

    card: ExtractorCard

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]: ...


@runtime_checkable
class LayeredExtractor(Extractor, Protocol):
    """An extractor whose hidden layers can be had, all of them from one forward pass.

    Layer 0 is what enters the first block, layer `layers` what leaves the model. Clips come in any order, each with
    its place among the waveforms, so that the frames of many layers need not all be held at once.
    """

    layers: int

    def extract_layers(
        self, waveforms: Sequence[Waveform], layers: Sequence[int]
    ) -> Iterator[tuple[int, Mapping[int, Frames]]]: ...


def is_layered(extractor: Extractor) -> TypeGuard[LayeredExtractor]:
    """Whether hidden layers can be had, also through an adapter: `isinstance` sees none from Python 3.12 on."""
    return hasattr(extractor, "layers") and hasattr(extractor, "extract_layers")


def subsets_named(trained_on: str | Sequence[str] | None) -> str | tuple[str, ...]:
    """`subset` or `all`, or the names of subsets: of a list, or of a text such as A+B."""
    if isinstance(trained_on, str):
        if trained_on in ("subset", "all"):
            return trained_on
        trained_on = trained_on.replace("+", ",").split(",")
    names = tuple(str(name).strip() for name in trained_on or ())
    if not names or not all(names):
        raise UsageError("trained_on is subset, all, or names of subsets, such as ES1+BS1.")
    return names


# --- what a stranger's model answers -------------------------------------------------------------------------


class Adapted(Adapter[ExtractorCard]):
    """A stranger's model in Earmark's shape: a card with defaults, and answers brought to `Frames`.

    Of the card only `rate` matters for the numbers; without one, 16 kHz is assumed (attributes `rate`,
    `sample_rate` and `sampling_rate` are looked for). Other attributes are the model's own.
    """

    card_type = ExtractorCard

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        return as_frames(self.model.extract(waveforms), len(waveforms))


def as_frames(answer: Any, clips: int, *, there: bool = False) -> list[Frames]:
    """Bring what a model returned for `clips` waveforms to a list of `Frames`.

    One item per clip, in a list or along the first axis of an array: Frames, (values, valid), [T, D], or [D]
    for one vector per clip. Tensors are brought to the CPU, unless `there` lets those of `Frames` stay where they are.
    Whatever else it is, the error says so.
    """
    is_array = isinstance(answer, np.ndarray) or hasattr(answer, "detach")
    items = list(as_array(answer)) if is_array else answer
    if not isinstance(items, Iterable) or isinstance(items, str | bytes | Mapping):
        raise InputError(f"extract returned {type(answer).__name__}, not a list with one item per waveform.")
    frames = [item if there and _stays(item) else _frames_of(item) for item in items]
    if len(frames) != clips:
        raise InputError(f"extract returned {len(frames)} items for {clips} waveforms.")
    return frames


def _stays(item: Any) -> bool:
    return isinstance(item, Frames) and hasattr(item.values, "detach") and item.values.dim() == 2


def _frames_of(item: Any) -> Frames:
    valid: Any = None
    if isinstance(item, tuple) and len(item) == 2 and not isinstance(item[1], Sequence):
        item, valid = item
    values = as_array(item)
    if values.ndim == 1 and values.dtype != object:
        values = values[None, :]
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise InputError(
            f"extract returned values of shape {values.shape} and type {values.dtype}, not [T, D] numbers."
        )
    return Frames(values, len(values) if valid is None else int(valid))


def as_array(thing: Any) -> Any:
    """An array of NumPy; a tensor is brought to the CPU, one of bfloat16, which NumPy lacks, as float32."""
    if hasattr(thing, "detach"):
        thing = thing.detach().cpu()
        thing = (thing.float() if str(thing.dtype) == "torch.bfloat16" else thing).numpy()
    return np.asarray(thing)
