"""Clips to one vector each, with any extractor: what most tasks hear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.clips import Clip
from earmark.embedding.embed import embed
from earmark.embedding.pooling import parse
from earmark.errors import UsageError
from earmark.extractors.catalogue import open_extractor
from earmark.extractors.contract import Extractor, Frames, LayeredExtractor, Waveform
from earmark.probes._contract import Responses, TaskCard, align_widths
from earmark.probes._scoring import RESAMPLES, PairedClips
from earmark.progress import Progress

Floats = NDArray[np.float64]


class EncoderTask:
    """What tasks share that compare the vectors of an extractor, their own or any other.

    Args:
        model: a name, a spelling or an extractor; the card's own where nothing is given.
        bootstrap: how many draws are behind an interval.
        pool: how frames become a vector, where it is not to be the extractor's own way.
        options: go to the extractor.
    """

    card: TaskCard
    each_clip = True  # what is heard of a clip does not depend on the others

    def __init__(
        self, model: str | Extractor = "", *, bootstrap: int = RESAMPLES, pool: str = "", **options: Any
    ) -> None:
        self.bootstrap, self.pool = bootstrap, pool
        self.extractor = self.open_model(model or self.card.model, options)
        self.card = opened_card(self.card, self.extractor)

    def open_model(self, model: str | Extractor, options: Mapping[str, Any]) -> Extractor:
        """An extractor that is frozen: one that learns from the clips would learn the codec too."""
        extractor = open_extractor(model, **options) if isinstance(model, str) else model
        if hasattr(extractor, "fit") and not getattr(extractor, "fitted", False):
            raise UsageError(f"{extractor.card.name} learns from the clips it hears: choose a model with weights.")
        return extractor

    def listen(self, clips: Sequence[Clip], *, progress: Progress = False) -> Responses:
        return encode_clips(clips, self.extractor, self.pool, progress=progress)

    def vectors(self, pairs: PairedClips, clean: Responses, coded: Responses) -> tuple[Floats, Floats]:
        """What was heard of the paired clips, clean and coded, row by row, in float64."""
        if clean.vectors is None or coded.vectors is None:
            name = self.card.name
            raise UsageError(f"The task {name} compares vectors, and texts were heard: listen with `{name}`.")
        before, after = align_widths([clean, coded])
        return np.asarray(before[pairs.clean], np.float64), np.asarray(after[pairs.coded], np.float64)


def opened_card(card: TaskCard, extractor: Extractor) -> TaskCard:
    """The card of an opened task: its model is the one that hears, and its version names that model's."""
    own = extractor.card
    model = f"{own.name}:{own.checkpoint}" if own.checkpoint else own.name
    return replace(card, model=model, version=f"{card.version}; {own.version}")


def encode_clips(
    clips: Sequence[Clip], extractor: Extractor, pool: str = "", *, progress: Progress = False
) -> Responses:
    """A vector for each clip by the extractor's own pooling, or by `pool`; a clip that fails is told.

    Raises InputError when all of them fail.
    """
    pooling = parse(pool or extractor.card.pooling).pooling
    embedded = embed(clips, extractor, [pooling], progress=progress)
    return Responses(
        ids=embedded.ids,
        vectors=embedded.vectors[pooling],
        failures={failure.id: failure.reason for failure in embedded.failures},
        notes=tuple(note for note in embedded.notes() if "failed" not in note),
        model=f"{extractor.card.name} {pooling}",
        blocks=embedded.blocks[pooling],
    )


def codes_of(names: Sequence[str | None]) -> NDArray[np.int64]:
    """A number for each name, in alphabetical order; -1 for none."""
    codes = {name: code for code, name in enumerate(sorted({name for name in names if name is not None}))}
    return np.array([-1 if name is None else codes[name] for name in names], np.int64)


def unit_vectors(vectors: NDArray[Any]) -> Floats:
    """Vectors [N, D] of length 1; one without direction stays zero, and is like no other."""
    values = np.asarray(vectors, np.float64)
    norms = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(np.divide(values, norms, out=np.zeros_like(values), where=norms > 0))


class LayerMean:
    """A layered model whose frames are the plain mean of all its layers, the input of the first block included."""

    def __init__(self, model: LayeredExtractor) -> None:
        self._model = model
        self.card = model.card

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        layers = range(self._model.layers + 1)
        by_clip = {clip: _mean(frames) for clip, frames in self._model.extract_layers(waveforms, list(layers))}
        return [by_clip[clip] for clip in range(len(waveforms))]


def _mean(layers: Mapping[int, Frames]) -> Frames:
    values = np.stack([frames.values for frames in layers.values()])
    return Frames(np.asarray(values.mean(axis=0), np.float32), next(iter(layers.values())).valid)
