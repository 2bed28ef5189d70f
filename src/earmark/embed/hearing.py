"""Clips to frames: decode in threads, extract in batches, yield clip by clip.

    clip 0 .. --(threads)--> waveforms --(one batch ahead)--> extractor --> Heard 0 ..

A few clips are decoded ahead and one batch is assembled ahead while the extractor works, so memory is bounded by
two batches whatever the number of clips. A batch on which the extractor raises is tried again clip by clip, so
that one bad clip costs only itself; errors of usage (a missing package, a model not fitted) end the run at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from earmark.corpora.clips import Clip
from earmark.errors import EarmarkError, InputError, MissingExtra, UsageError
from earmark.extractors.catalogue import as_frames
from earmark.extractors.contract import Extractor, Frames, Waveform
from earmark.workers import thread_count

__all__ = ["BATCH_SECONDS", "BATCH_SIZE", "Heard", "hear"]

BATCH_SIZE = 32
BATCH_SECONDS = 120.0
HOPELESS = 32  # an extractor that has failed on this many clips and managed none is broken, not unlucky

Item = TypeVar("Item")
Result = TypeVar("Result")


class Heard(NamedTuple):
    """One clip after extraction: its place among the clips, and frames or the reason why there are none."""

    place: int
    frames: Frames | None
    reason: str
    seconds: float


class _Sound(NamedTuple):
    """One clip after decoding: a waveform, or the reason why there is none."""

    place: int
    waveform: Waveform | None
    reason: str
    seconds: float


def hear(
    clips: Sequence[Clip],
    extractor: Extractor,
    *,
    batch_size: int = BATCH_SIZE,
    batch_seconds: float = BATCH_SECONDS,
    threads: int | None = None,
) -> Iterator[Heard]:
    """Frames of every clip, in order, or the reason why there are none. Nothing is kept once it is yielded.

    Clips are read as mono at the card's rate and peak-normalised. Raises InputError when the extractor fails on
    each of the first clips: then it is the extractor, not the clips.
    """
    if batch_size < 1 or not batch_seconds > 0:
        raise UsageError("A batch needs at least one clip and a positive number of seconds.")
    count = thread_count(threads)
    rate = extractor.card.rate
    managed = failed = 0
    with ThreadPoolExecutor(count) as decoders, ThreadPoolExecutor(1) as assembler:
        sounds = _ahead(decoders, lambda item: _decode(*item, rate), enumerate(clips), 2 * count)
        batches = _batches(sounds, batch_size, batch_seconds)
        for batch in _one_ahead(assembler, batches):
            for sound, heard in zip(batch, _extract_batch(extractor, batch), strict=True):
                managed += heard.frames is not None
                failed += heard.frames is None and sound.waveform is not None
                if failed >= HOPELESS and not managed:
                    raise InputError(
                        f"{extractor.card.name} failed on each of the first {failed} clips: {heard.reason}"
                    )
                yield heard


def _decode(place: int, clip: Clip, rate: int) -> _Sound:
    from earmark import audio

    try:
        samples, _ = clip.read(rate)
        if not len(samples):
            raise InputError("the clip holds no samples")
        return _Sound(place, audio.peak_normalise(samples), "", len(samples) / rate)
    except Exception as error:
        return _Sound(place, None, _sentence(error), 0.0)


def _batches(sounds: Iterable[_Sound], size: int, seconds: float) -> Iterator[list[_Sound]]:
    """Runs of sounds: at most `size`, and no further sound once `seconds` are reached."""
    batch: list[_Sound] = []
    held = 0.0
    for sound in sounds:
        batch.append(sound)
        held += sound.seconds
        if len(batch) >= size or held >= seconds:
            yield batch
            batch, held = [], 0.0
    if batch:
        yield batch


def _extract_batch(extractor: Extractor, batch: Sequence[_Sound]) -> Iterator[Heard]:
    """Every sound of a batch as Heard; what could not be decoded passes through."""
    waveforms = [sound.waveform for sound in batch if sound.waveform is not None]
    answers = iter(_extract(extractor, waveforms) if waveforms else [])
    for sound in batch:
        answer = sound.reason if sound.waveform is None else next(answers)
        frames, reason = (None, answer) if isinstance(answer, str) else (answer, "")
        yield Heard(sound.place, frames, reason, sound.seconds)


def _extract(extractor: Extractor, waveforms: list[Waveform]) -> list[Frames | str]:
    try:
        return list(as_frames(extractor.extract(waveforms), len(waveforms)))
    except (MissingExtra, UsageError):
        raise
    except Exception as error:
        if len(waveforms) == 1:
            return [_sentence(error)]
        return [answer for waveform in waveforms for answer in _extract(extractor, [waveform])]


def _sentence(error: Exception) -> str:
    """An error as a reason: our own say all; of others the type says more than the text."""
    text = " ".join(str(error).split())
    return text if isinstance(error, EarmarkError) else f"{type(error).__name__}: {text}"


def _ahead(pool: Executor, work: Callable[[Item], Result], items: Iterable[Item], depth: int) -> Iterator[Result]:
    """Results of `work` in order, with at most `depth` begun ahead of the one that is waited for."""
    waiting: deque[Future[Result]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > depth:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _one_ahead(pool: Executor, items: Iterator[Result]) -> Iterator[Result]:
    """The items, the next one being made in `pool` while the caller works on this one."""
    upcoming = pool.submit(next, items, None)
    while (item := upcoming.result()) is not None:
        upcoming = pool.submit(next, items, None)
        yield item
