"""The step from clips to vectors: decode ahead in threads, extract batch by batch, pack what comes out.

    clips ── decode, peak-normalise (threads, a few batches ahead) ── extract (one batch at a time) ── pool ── pack

An extractor is never called from two threads at once. Batches are cut from the subset's own order, so a resumed
run forms the same batches as an undisturbed one and gets the same numbers. Frames are dropped as soon as they are
pooled: beside the pack being filled, memory holds a few batches of sound.
"""

from __future__ import annotations

import logging
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark import audio
from earmark.atomic import write_whole
from earmark.corpora.clips import Clip
from earmark.embed import pooling
from earmark.embed.embedding import fit_extractor
from earmark.errors import InputError, MissingExtra, UsageError
from earmark.extractors.contract import Extractor, Frames
from earmark.pipeline import frames as raw
from earmark.pipeline.cache import Cache, default_url
from earmark.pipeline.models import Model
from earmark.pipeline.packs import Facts, Index, Packer
from earmark.pipeline.prepare import Failure, Subset

log = logging.getLogger("earmark.pipeline")

AHEAD = 2
"""Batches that are decoded while one is extracted."""

HOPELESS = 64
"""A model that has failed on this many clips and managed none is not tried on the others."""

FEATURE_POOLINGS = frozenset(name for name, one in pooling.POOLINGS.items() if not one.follows_time)

Tick = Callable[[int], object]


class Sound(NamedTuple):
    samples: NDArray[np.float32]
    facts: Facts


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
    """Clips whose parts are not in the cache, in batches, and the parts that are wanted of them."""

    batches: list[list[tuple[Clip, str]]]
    parts: tuple[str, ...]
    cached: int

    @property
    def clips(self) -> int:
        return sum(len(batch) for batch in self.batches)


def missing(subset: Subset, index: Index, parts: Sequence[str], batch: int) -> Todo:
    """What is to be computed: batches cut from the subset's order, less what the cache holds."""
    readable = subset.readable
    wanted = tuple(index.missing((digest for _, digest in readable), parts))
    batches: list[list[tuple[Clip, str]]] = []
    seen: set[str] = set()
    for start in range(0, len(readable), batch):
        todo = []
        for clip, digest in readable[start : start + batch]:
            if digest not in seen and index.lacks(digest, wanted):
                todo.append((clip, digest))
            seen.add(digest)
        if todo:
            batches.append(todo)
    return Todo(batches, wanted, len(seen) - sum(map(len, batches)))


def embed(
    subset: Subset,
    model: Model,
    todo: Todo,
    *,
    cache: Cache,
    index: Index,
    workers: int,
    tick: Tick = lambda _: None,
    progress: bool = False,
) -> Outcome:
    """Compute what is missing of one subset and store it pack by pack; failed clips are noted and passed over."""
    outcome = Outcome(cached=todo.cached, dimension=_known_dimension(index, todo.parts))
    if not todo.batches:
        return outcome
    cache.check_writable()
    extractor = model.open()
    key = model.key(subset)
    if model.learns:
        _learn(extractor, subset, key, cache, progress)
    packer = Packer(cache, key, index)
    done = 0
    with ThreadPoolExecutor(workers) as pool:
        for batch, sounds in _decoded(pool, todo.batches, model.card.rate):
            _embed_batch(subset, model, extractor, batch, sounds, todo.parts, packer, outcome)
            packer.flush_if_full()
            tick(len(batch))
            done += 1
            if outcome.refused >= HOPELESS and not outcome.computed and not todo.cached:
                break
    packer.flush()
    for clip, digest in [pair for batch in todo.batches[done:] for pair in batch]:
        reason = InputError("not tried, because the model failed on every clip before it")
        outcome.fail(digest, subset.failure(clip, "embed", model.name, reason))
        tick(1)
    _fail_twins(subset, model, outcome)
    return outcome


def _fail_twins(subset: Subset, model: Model, outcome: Outcome) -> None:
    """A sound is tried once; every other clip that is the same sound failed with it, and is told so."""
    told = {failure.id for failure in outcome.failures}
    for clip, digest in subset.readable:
        first = outcome.failed.get(digest)
        if first is not None and clip.id not in told:
            reason = InputError(f"the same sound as {first.id}, which failed: {first.reason}")
            outcome.failures.append(subset.failure(clip, "embed", model.name, reason))


def _known_dimension(index: Index, parts: Sequence[str]) -> int | None:
    """How many features the model gave before, where a pooling that keeps them one by one was stored."""
    for part in parts:
        if part in FEATURE_POOLINGS:
            for clip in index.places.get(part, {}):
                return index.length(part, clip)
    return None


def _embed_batch(
    subset: Subset,
    model: Model,
    extractor: Extractor,
    batch: Sequence[tuple[Clip, str]],
    sounds: Sequence[Sound | Exception],
    parts: Sequence[str],
    packer: Packer,
    outcome: Outcome,
) -> None:
    """One batch: what was heard goes through the model into the pack, what fails is noted."""
    heard = []
    for (clip, digest), sound in zip(batch, sounds, strict=True):
        if isinstance(sound, Exception):
            outcome.fail(digest, subset.failure(clip, "embed", model.name, sound))
        else:
            heard.append((clip, digest, sound))
    for (clip, digest, sound), vectors in zip(heard, _extracted(extractor, heard, parts, outcome), strict=True):
        if isinstance(vectors, Exception):
            outcome.refused += 1
            outcome.fail(digest, subset.failure(clip, "embed", model.name, vectors))
        else:
            packer.add(digest, sound.facts, dict(zip(parts, vectors, strict=True)))
            outcome.computed += 1


# --- decoding ------------------------------------------------------------------------------------------------


def _decoded(
    pool: ThreadPoolExecutor, batches: Sequence[list[tuple[Clip, str]]], rate: int
) -> Iterator[tuple[list[tuple[Clip, str]], list[Sound | Exception]]]:
    """Batches with their sounds, in order, a few of them decoded ahead."""
    waiting: deque[tuple[list[tuple[Clip, str]], list[Future[Sound | Exception]]]] = deque()
    for batch in batches:
        waiting.append((batch, [pool.submit(hear, clip, rate) for clip, _ in batch]))
        if len(waiting) > AHEAD:
            ready, futures = waiting.popleft()
            yield ready, [future.result() for future in futures]
            del futures
    while waiting:
        ready, futures = waiting.popleft()
        yield ready, [future.result() for future in futures]


def hear(clip: Clip, rate: int) -> Sound | Exception:
    """A clip as extractors want it: mono, at their rate, peak 1."""
    try:
        samples, given = clip.read(rate)
        if not len(samples):
            raise InputError(f"{clip.path or clip.id} holds no samples: replace it or leave it out.")
        return Sound(audio.peak_normalise(samples), _facts(clip, len(samples) / given))
    except Exception as error:  # whatever a decoder does, the run goes on
        return error


def _facts(clip: Clip, seconds: float) -> Facts:
    if clip.path is None:
        return Facts(seconds)
    try:
        probed = audio.probe(clip.path)
    except Exception:  # it was decoded, which is what counts
        return Facts(seconds)
    return Facts(seconds, probed.rate, probed.channels)


# --- extracting ----------------------------------------------------------------------------------------------


def _extracted(
    extractor: Extractor, heard: Sequence[tuple[Clip, str, Sound]], parts: Sequence[str], outcome: Outcome
) -> list[list[NDArray[np.float32]] | Exception]:
    """The parts of each clip; when a batch fails its clips are tried one by one, so that only the culprit is lost."""
    if not heard:
        return []
    try:
        found = extractor.extract([sound.samples for _, _, sound in heard])
        if len(found) != len(heard):
            raise InputError(f"the model returned {len(found)} answers for {len(heard)} clips")
    except (MissingExtra, UsageError):  # the model is not usable at all
        raise
    except Exception as error:
        if len(heard) == 1:
            return [error]
        return [one for single in heard for one in _extracted(extractor, [single], parts, outcome)]
    return [_pooled(frames, parts, outcome) for frames in found]


def _pooled(frames: Frames, parts: Sequence[str], outcome: Outcome) -> list[NDArray[np.float32]] | Exception:
    try:
        features = np.shape(frames.values)[-1]
        if outcome.dimension is not None and features != outcome.dimension:
            raise InputError(f"the model returned {features} features, and {outcome.dimension} for the clips before")
        outcome.dimension = features
        plain = pooling.pool(frames, [part for part in parts if not raw.is_raw(part)])
        vectors = iter(plain)
        return [raw.take(frames, part) if raw.is_raw(part) else next(vectors) for part in parts]
    except Exception as error:
        return error


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
