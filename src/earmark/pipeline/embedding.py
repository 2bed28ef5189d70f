"""The step from clips to vectors: what is missing is heard window by window, pooled, and packed into the cache.

    clips ── less what the cache holds ── earmark.embedding.hearing ── pool ── pack

Frames are dropped as soon as they are pooled: beside the pack being filled, memory holds two windows of sound.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.atomic import write_whole
from earmark.corpora.clips import Clip
from earmark.embedding import hearing, pooling
from earmark.embedding.embed import fit_extractor
from earmark.embedding.hearing import Heard
from earmark.errors import InputError
from earmark.extractors.catalogue import as_frames
from earmark.extractors.contract import Extractor, Frames, Waveform
from earmark.pipeline import frames as raw
from earmark.pipeline import identity, layers, steadiness
from earmark.pipeline.cache import Cache, default_url
from earmark.pipeline.identity import watching
from earmark.pipeline.models import Model
from earmark.pipeline.packs import Facts, Index, Packer
from earmark.pipeline.prepare import Failure, Subset

log = logging.getLogger("earmark.pipeline")

HOPELESS = 64
"""A model that has failed on this many clips and managed none is not tried on the others."""

Tick = Callable[[int], object]


@dataclass
class Outcome:
    """What embedding a subset with a model came to."""

    computed: int = 0
    cached: int = 0
    failures: list[Failure] = field(default_factory=list)
    failed: dict[str, Failure] = field(default_factory=dict)  # by the hash of the sound
    refused: int = 0  # clips that decoded and that the model failed on
    dimension: int | None = None  # features of the model's frames, once one is known

    def fail(self, digest: str, failure: Failure) -> None:
        log.warning("%s/%s %s: %s", failure.suite, failure.subset, failure.id, failure.reason)
        self.failures.append(failure)
        self.failed[digest] = failure


class Todo(NamedTuple):
    """Clips whose parts are not in the cache, in windows, and the parts that are wanted of them."""

    windows: list[list[tuple[Clip, str]]]
    parts: tuple[str, ...]
    cached: int

    @property
    def clips(self) -> int:
        return sum(map(len, self.windows))


def missing(subset: Subset, index: Index, parts: Sequence[str], batch: int) -> Todo:
    """What is to be computed: windows cut from the subset's order, less what the cache holds."""
    readable = subset.readable
    wanted = tuple(index.missing((digest for _, digest in readable), parts))
    windows: list[list[tuple[Clip, str]]] = []
    seen: set[str] = set()
    for cut in hearing.windows(subset.seconds, batch):
        todo = []
        for clip, digest in readable[cut]:
            if digest not in seen and index.lacks(digest, wanted):
                todo.append((clip, digest))
            seen.add(digest)
        if todo:
            windows.append(todo)
    return Todo(windows, wanted, len(seen) - sum(map(len, windows)))


def embed(
    subset: Subset,
    model: Model,
    todo: Todo,
    *,
    cache: Cache,
    index: Index,
    batch: int,
    workers: int,
    tick: Tick = lambda _: None,
    progress: bool = False,
) -> Outcome:
    """Compute what is missing of one subset and store it pack by pack; failed clips are noted and passed over."""
    outcome = Outcome(cached=todo.cached, dimension=next(iter(index.features.values()), None))
    if not todo.windows:
        return outcome
    cache.check_writable()
    extractor = layers.swept(model.open(), todo.parts)
    key = model.key(subset)
    if model.learns:
        _learn(extractor, subset, key, cache, progress)
    packer = Packer(cache, key, index)
    later = identity.Later(cache, model.identity, model.reads)
    watched = _Watched(extractor, later.seen, first=not index.clips)
    done = 0
    clips = [[clip for clip, _ in window] for window in todo.windows]
    # Frames of many layers are held at once: fewer clips then.
    batch = max(batch, getattr(extractor, "clips_at_once", 0))
    together = max(1, batch // max(1, len(layers.layers_of(todo.parts)) // 4))
    answers = hearing.hear(clips, watched, batch=together, threads=workers)
    for window, heard in zip(todo.windows, answers, strict=True):
        for one in heard:
            _keep(subset, model, *window[one.place], one, todo.parts, packer, outcome)
            tick(1)
        later.keep()
        packer.remark = watched.remark
        packer.flush_if_full()
        done += 1
        if outcome.refused >= HOPELESS and not outcome.computed and not todo.cached:
            break
    packer.flush()
    for clip, digest in [pair for window in todo.windows[done:] for pair in window]:
        reason = InputError("not tried, because the model failed on every clip before it")
        outcome.fail(digest, subset.failure(clip, "embed", model.name, reason))
        tick(1)
    _fail_twins(subset, model, outcome)
    return outcome


class _Watched:
    """A model as it is heard: what it opens is noted, and the first batch that it manages is heard twice."""

    def __init__(self, extractor: Extractor, seen: watching.Seen, *, first: bool) -> None:
        self.card, self.remark = extractor.card, ""
        self._extractor, self._seen, self._first = extractor, seen, first

    def extract(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        chosen = steadiness.choose(waveforms) if self._first else {}
        answers = self._heard(waveforms)
        if self._first:
            self._first = False
            self.remark = steadiness.remark_on(self._heard, chosen, answers)
        return answers

    def _heard(self, waveforms: Sequence[Waveform]) -> list[Frames]:
        with watching.watching(self._seen):
            return as_frames(self._extractor.extract(waveforms), len(waveforms))


def _fail_twins(subset: Subset, model: Model, outcome: Outcome) -> None:
    """A sound is tried once; every other clip that is the same sound failed with it, and is told so."""
    told = {failure.id for failure in outcome.failures}
    for clip, digest in subset.readable:
        first = outcome.failed.get(digest)
        if first is not None and clip.id not in told:
            reason = InputError(f"the same sound as {first.id}, which failed: {first.reason}")
            outcome.failures.append(subset.failure(clip, "embed", model.name, reason))


def _keep(
    subset: Subset,
    model: Model,
    clip: Clip,
    digest: str,
    heard: Heard,
    parts: Sequence[str],
    packer: Packer,
    outcome: Outcome,
) -> None:
    """What was heard of a clip goes into the pack; what failed is noted."""
    vectors = heard.error or _pooled(heard.frames, parts, outcome)
    if isinstance(vectors, Exception):
        outcome.refused += heard.sound is not None
        outcome.fail(digest, subset.failure(clip, "embed", model.name, vectors))
        return
    assert heard.sound is not None
    assert outcome.dimension is not None
    facts = Facts(heard.sound.seconds, heard.sound.rate, heard.sound.channels)
    packer.add(digest, facts, dict(zip(parts, vectors, strict=True)), outcome.dimension)
    outcome.computed += 1


def _pooled(frames: Frames | None, parts: Sequence[str], outcome: Outcome) -> list[NDArray[np.float32]] | Exception:
    try:
        assert frames is not None
        kept = layers.layers_of(parts)
        features = np.shape(frames.values)[-1] // len(kept)
        if outcome.dimension is not None and features != outcome.dimension:
            raise InputError(f"the model returned {features} features, and {outcome.dimension} for the clips before")
        outcome.dimension = features
        found: dict[str, NDArray[np.float32]] = {}
        for layer in kept:
            found |= _parts(frames, layer, kept, parts)
        return [found[part] for part in parts]
    except Exception as error:
        return error


def _parts(
    frames: Frames, layer: int | None, kept: Sequence[int | None], parts: Sequence[str]
) -> dict[str, NDArray[np.float32]]:
    """What is to be kept of one layer."""
    own = layers.columns(frames, layer, kept)
    wanted = {part: layers.split(part)[1] for part in parts if layers.split(part)[0] == layer}
    pooled = [part for part, name in wanted.items() if not raw.is_raw(name)]
    found = dict(zip(pooled, pooling.pool(own, [wanted[part] for part in pooled]), strict=True))
    return found | {part: raw.take(own, name) for part, name in wanted.items() if raw.is_raw(name)}


def _learn(extractor: Extractor, subset: Subset, key: str, cache: Cache, progress: bool) -> None:
    """Let a model learn from the sounds of the subset; its checkpoint lies on this machine, named by content."""
    place = _learnt(cache, key)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if cache.policy == "refresh":
            place.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"{place.parent} cannot be written ({error.strerror}): give another place for the cache."
        ) from error
    clips = [clip for clip, _ in subset.readable]
    fit_extractor(extractor, clips, progress=progress, checkpoint=place)
    _draw(extractor, picture_of(cache, key))


def _learnt(cache: Cache, key: str) -> Path:
    return (cache.folder() or Path(default_url()).expanduser()) / "learnt" / f"{key}.checkpoint"


def picture_of(cache: Cache, key: str) -> Path:
    """Where the picture of what a model has learnt lies, if it draws one: beside its checkpoint."""
    return _learnt(cache, key).with_suffix(".png")


def _draw(extractor: Extractor, place: Path) -> None:
    """Keep a model's picture of what it has learnt; one that cannot be drawn costs no vectors."""
    draw = getattr(extractor, "reconstruction_figure", None)
    if draw is None:
        return
    try:
        with tempfile.TemporaryDirectory(prefix="earmark-") as folder:
            drawn = Path(folder) / "picture.png"
            draw(drawn)
            write_whole(place, drawn.read_bytes())
    except Exception as error:  # matplotlib is not there, or the disk is full
        log.warning("there is no picture of what %s learnt: %s", extractor.card.name, error)
