"""What an extractor is: a card and one method. No base class is needed; anything of this shape will do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Waveform = NDArray[np.float32]


class Frames(NamedTuple):
    """What a model says of one clip: values [T, D], of which the first `valid` rows heard sound, not padding.

    A clip-level model returns T = 1.
    """

    values: NDArray[Any]
    valid: int


@dataclass(frozen=True)
class ExtractorCard:
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
    `fit(clips, *, progress, checkpoint)`, called once per subset before `extract`.
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


def heard_seconds(card: ExtractorCard, seconds: float) -> float:
    """How much of a clip of so many seconds the model hears: all of it, or its context."""
    return seconds if card.context_seconds is None else min(seconds, card.context_seconds)
