"""Clips to vectors: every pooling asked for from one forward pass; frames are never kept.

clips --> frames (earmark.embedding.hearing) --> every pooling asked for --> vectors
             |                                    |
             +-- cannot be read, model raises     +-- NaN, no frames
                          recorded as failures; the run goes on
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.clips import Clip, Corpus, groups_of
from earmark.embedding import pooling
from earmark.embedding.hearing import BATCH_CLIPS, Heard, heard_clips, settle_rate
from earmark.embedding.pca import Reduction, parse_reduction, reduce
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.extractors.catalogue import open_on
from earmark.extractors.contract import Extractor, Frames, subsets_named
from earmark.extractors.torch_models import on_device
from earmark.progress import Progress
from earmark.runs.engine import reason_of

Matrix = NDArray[np.float32]

HOPELESS = 32  # an extractor that has failed on this many clips and managed none is broken, not unlucky


class Failure(NamedTuple):
    """A clip that has no vector, and why, in one sentence."""

    id: str
    reason: str


@dataclass(frozen=True, eq=False)
class Embedded:
    """Vectors by pooling, as it was asked for; rows in the order of `ids`, failed clips left out."""

    vectors: dict[str, Matrix]
    blocks: dict[str, tuple[pooling.Block, ...]]  # how the columns of each pooling are made up
    ids: tuple[str, ...]
    labels: tuple[str | None, ...]
    groups: tuple[str | None, ...] | None
    failures: tuple[Failure, ...]
    truncated: int  # clips longer than the model's context
    seconds: float  # of sound, all embedded clips together
    seconds_unheard: float  # of these, beyond the context

    def notes(self) -> tuple[str, ...]:
        """What a reader should know: failures and truncation, one sentence each."""
        found = []
        if self.failures:
            first = self.failures[0]
            total = len(self.failures) + len(self.ids)
            found.append(f"{len(self.failures)} of {total} clips failed; first {first.id}: {first.reason}")
        if self.truncated:
            found.append(
                f"{self.truncated} clips are longer than the model hears; {self.seconds_unheard:.1f} s were cut off"
            )
        return tuple(found)


class Embedding(NamedTuple):
    """What `earmark.embed` returns: one matrix, and what belongs to its rows."""

    vectors: Matrix
    ids: tuple[str, ...]
    labels: tuple[str | None, ...]
    groups: tuple[str | None, ...] | None
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]


def embed_audio(
    audio: str | PathLike[str] | Corpus | Sequence[Clip],
    extractor: str | Extractor = "logmel",
    pool: str | None = None,
    pca: int | str | None = None,
    *,
    whiten: bool = False,
    speed: float = 1.0,
    device: str = "auto",
    threads: int | None = None,
    progress: Progress = False,
) -> Embedding:
    """Vectors of a file, a folder, a manifest, a corpus or clips; this is `earmark.embed`.

    Args:
        audio: What to listen to: a path, the name of a corpus, a Corpus, or clips.
        extractor: A registered name, an import path, or an extractor; one that learns from sounds is fitted on these
            first.
        pool: A pooling, a concatenation `a+b` or a code, which may carry the components (`MTF D100`); None is the
            extractor's own.
        pca: Number of principal components, fitted on these clips; "100w" scales each to variance 1.
        whiten: The same for a number.
        speed: How fast sounds are played to the model: 0.1 is ten times as slow and as low, and brings ultrasound of
            60 kHz to 6 kHz. Nothing is lost: a recording of 250 kHz is taken for one of 25 kHz.
        device: Where a model that is named runs, if it takes a device: auto (a GPU if there is one), cpu, cuda, cuda:1
            or mps.
        threads: Threads that decode; None is one for each core.
        progress: Whether a bar on stderr shows how far the work is; or a function that is called with (done, total).

    Returns:
        Vectors with ids, labels and groups of the clips, and the clips that failed.

    >>> earmark.embed("sounds/", "mfcc").vectors.shape
    """
    model = open_on(device, extractor) if isinstance(extractor, str) else extractor
    variant = pooling.parse(pool or model.card.pooling)
    reduction = settle_reduction(variant, pca, whiten=whiten)
    if isinstance(audio, str | PathLike):
        from earmark.corpora.source import open_corpus

        audio = open_corpus(str(audio))
    clips = audio.clips if isinstance(audio, Corpus) else list(audio)
    if any(not isinstance(clip, Clip) for clip in clips):
        kind = type(next(clip for clip in clips if not isinstance(clip, Clip))).__name__
        raise UsageError(f"A {kind} is no clip: give a folder, a manifest, one file, a Corpus, or clips.")
    if speed != 1.0:
        clips = [replace(clip, speed=speed) for clip in clips]
    found = embed(clips, model, [variant.pooling], threads=threads, progress=progress)
    vectors, notes = found.vectors[variant.pooling], list(found.notes())
    if reduction is not None:
        vectors, fitted = reduce(vectors, reduction.components, whiten=reduction.whiten, threads=threads)
        notes += [fitted.note] if fitted.note else []
    return Embedding(vectors, found.ids, found.labels, found.groups, found.failures, tuple(notes))


def settle_reduction(variant: pooling.Variant, pca: int | str | None, *, whiten: bool = False) -> Reduction | None:
    """What a pooling (`MTF D100`), a number of components and a switch ask for together; UsageError if they differ."""
    asked, named = parse_reduction(pca), None
    if variant.pca is not None:
        named = Reduction(variant.pca, variant.whiten)
    reduction = asked or named
    if asked and named and asked.components != named.components:
        raise UsageError(
            f"The pooling asks for {named.components} components and pca for {asked.components}: give one of them."
        )
    if whiten and reduction is None:
        raise UsageError("There are no components to whiten: say how many with pca.")
    if reduction is None:
        return None
    return Reduction(reduction.components, whiten or any(one.whiten for one in (asked, named) if one))


def embed(
    clips: Sequence[Clip],
    extractor: Extractor,
    poolings: Sequence[str],
    *,
    batch: int = BATCH_CLIPS,
    threads: int | None = None,
    progress: Progress = False,
    checkpoint: str | PathLike[str] | None = None,
) -> Embedded:
    """Every pooling of every clip from one forward pass.

    Clips are read as mono at the card's rate and peak-normalised; a batch holds at most `batch` of them, of like
    lengths. What follows time is padded with zeros in time to the longest of these clips (see
    `earmark.embedding.pooling`). Raises InputError when no clip at all succeeds, and early when the extractor fails on
    each of the first ones.
    An extractor with `fit` that is not fitted yet is fitted on these clips, with `checkpoint`.
    """
    names = list(dict.fromkeys(atom for text in poolings for atom in pooling.atoms(text)))
    if not names:
        raise UsageError("No pooling was asked for.")
    extractor = settle_rate(extractor, clips)
    fit_extractor(extractor, clips, progress=progress, checkpoint=checkpoint)
    vectors: dict[int, list[pooling.Vector]] = {}
    failed: dict[int, Failure] = {}
    lengths: dict[int, float] = {}
    dimension: int | None = None
    refused = 0

    def start(frames: Sequence[Frames]) -> list[Callable[[], _Pooled]]:
        started = pooling.start_pooling([(one, names) for one in frames])
        features = [int(one.values.shape[1]) for one in frames]
        return [partial(_gather, *both) for both in zip(started, features, strict=True)]

    hearing = on_device(extractor)
    for part in heard_clips(clips, hearing, start, batch=batch, threads=threads, progress=progress):
        for place, heard in part:
            try:
                vectors[place], dimension = _checked(heard, dimension)
                lengths[place] = heard.sound.seconds if heard.sound is not None else 0.0
            except InputError as error:
                failed[place] = Failure(clips[place].id, str(error))
                refused += heard.sound is not None
        if refused >= HOPELESS and not vectors:
            raise InputError(f"{extractor.card.name} failed on each of the first {refused} clips: {failed[0].reason}")
    kept = sorted(vectors)
    failures = [failed[place] for place in sorted(failed)]
    context = extractor.card.context_seconds or np.inf
    if not kept:
        first = failures[0] if failures else Failure("", "there are no clips")
        raise InputError(f"None of {len(clips)} clips could be embedded; first {first.id}: {first.reason}")
    features = dimension or 1
    matrices = {
        name: pooling.stack([vectors[place][column] for place in kept], pooling.rows_of(name, features))
        for column, name in enumerate(names)
    }
    blocks = {
        text: tuple(
            pooling.Block(rows, matrices[name].shape[1] // rows)
            for name in pooling.atoms(text)
            for rows in (pooling.rows_of(name, features),)
        )
        for text in poolings
    }
    embedded = [clips[place] for place in kept]
    return Embedded(
        vectors={text: pooling.join(text, matrices) for text in poolings},
        blocks=blocks,
        ids=tuple(clip.id for clip in embedded),
        labels=tuple(clip.label for clip in embedded),
        groups=None if (groups := groups_of(embedded)) is None else tuple(groups),
        failures=tuple(failures),
        truncated=sum(length > context for length in lengths.values()),
        seconds=sum(lengths.values()),
        seconds_unheard=sum(max(0.0, length - context) for length in lengths.values()),
    )


def fit_extractor(
    extractor: Extractor,
    clips: Sequence[Clip],
    *,
    progress: Progress = False,
    checkpoint: str | PathLike[str] | None = None,
) -> None:
    """Let an extractor that learns from sounds do so, unless it has already (`fitted`). Others are left alone.

    It learns from all the clips, or from those of the subsets that its `trained_on` names.
    """
    learn = getattr(extractor, "fit", None)
    if learn is None or getattr(extractor, "fitted", False):
        return
    names = subsets_named(getattr(extractor, "trained_on", "all"))
    if not isinstance(names, str):
        known = list(dict.fromkeys(clip.subset for clip in clips))
        for name in names:
            if name not in known:
                there = ", ".join(filter(None, known)) or "none that has a name"
                raise UsageError(
                    f"{extractor.card.name} is to learn from {name!r}, and the subsets here are {there}."
                    f"{did_you_mean(name, known)}"
                )
        clips = [clip for clip in clips if clip.subset in names]
    learn(clips, progress=progress, checkpoint=checkpoint)


class _Pooled(NamedTuple):
    """A clip's vectors, and how many features its frames have."""

    vectors: list[pooling.Vector]
    features: int


def _gather(vectors: Callable[[], list[pooling.Vector]], features: int) -> _Pooled:
    return _Pooled(vectors(), features)


def _checked(heard: Heard, dimension: int | None) -> _Pooled:
    """What was pooled of a clip: it has as many features as the clips before."""
    if heard.error is not None:
        raise InputError(reason_of(heard.error)) from heard.error
    pooled: _Pooled = heard.answer
    if dimension is not None and pooled.features != dimension:
        raise InputError(f"the model returned {pooled.features} features, and {dimension} for the clips before")
    return pooled
