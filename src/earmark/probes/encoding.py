"""Clips to one vector each, with any extractor: what most tasks hear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.clips import Clip
from earmark.embed.embedding import embed
from earmark.embed.pooling import parse
from earmark.errors import UsageError
from earmark.extractors.catalogue import open_extractor
from earmark.extractors.contract import Extractor, Frames, LayeredExtractor, Waveform
from earmark.probes.contract import Heard, Pairs, TaskCard, brought_together
from earmark.progress import Progress

__all__ = ["LayerMean", "encode_clips", "heard_by", "open_encoder", "vectors_of"]

Floats = NDArray[np.float64]


def open_encoder(model: str | Extractor, **parameters: Any) -> Extractor:
    """An extractor that is frozen: one that learns from the clips would learn the codec too."""
    extractor = open_extractor(model, **parameters) if isinstance(model, str) else model
    if hasattr(extractor, "fit") and not getattr(extractor, "fitted", False):
        raise UsageError(f"{extractor.card.name} learns from the clips it hears: choose a model with weights.")
    return extractor


def heard_by(card: TaskCard, extractor: Extractor) -> TaskCard:
    """The card of an opened task: its model is the one that hears, and its version names that model's."""
    own = extractor.card
    model = f"{own.name}:{own.checkpoint}" if own.checkpoint else own.name
    return replace(card, model=model, version=f"{card.version}; {own.version}")


def encode_clips(clips: Sequence[Clip], extractor: Extractor, pool: str = "", *, progress: Progress = False) -> Heard:
    """A vector for each clip by the extractor's own pooling, or by `pool`; a clip that fails is told.

    Raises InputError when all of them fail.
    """
    pooling = parse(pool or extractor.card.pooling).pooling
    found = embed(clips, extractor, [pooling], progress=progress)
    return Heard(
        ids=found.ids,
        vectors=found.vectors[pooling],
        failures={failure.id: failure.reason for failure in found.failures},
        notes=tuple(note for note in found.notes() if "failed" not in note),
        model=f"{extractor.card.name} {pooling}",
        blocks=found.blocks[pooling],
    )


def vectors_of(pairs: Pairs, clean: Heard, coded: Heard, task: str) -> tuple[Floats, Floats]:
    """What was heard of the paired clips, clean and coded, row by row, in float64."""
    if clean.vectors is None or coded.vectors is None:
        raise UsageError(f"The task {task} compares vectors, and texts were heard: listen with `{task}`.")
    before, after = brought_together([clean, coded])
    return np.asarray(before[pairs.clean], np.float64), np.asarray(after[pairs.coded], np.float64)


class LayerMean:
    """A layered model whose frames are the plain mean of all its layers, the input of the first block included."""

    def __init__(self, model: LayeredExtractor) -> None:
        self._model = model
        self.card = model.card

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        layers = range(self._model.layers + 1)
        found: dict[int, Frames] = {}
        for place, frames in self._model.extract_layers(waveforms, list(layers)):
            found[place] = _mean(frames)
        return [found[place] for place in range(len(waveforms))]


def _mean(layers: Mapping[int, Frames]) -> Frames:
    values = np.stack([frames.values for frames in layers.values()])
    return Frames(np.asarray(values.mean(axis=0), np.float32), next(iter(layers.values())).valid)
