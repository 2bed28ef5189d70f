"""Clips to frames, the one way there: decode ahead in threads, extract in batches of like lengths.

    clips ── windows (in the order given) ── decode (threads, one window ahead)
                                                └─ sorted by length ── batches ── extract ── Heard

A window is a few batches of clips cut from the order they were given in, so a resumed run forms the same windows as
an undisturbed one and gets the same numbers. Inside a window clips are extracted from the shortest to the longest:
a batch then holds clips of like lengths and pads little. Memory holds two windows of sound, and two batches of frames:
one is extracted in a thread of its own (on a GPU: the card works) while the caller pools the one before it.

An extractor is never called from two threads at once. A batch on which it raises is tried again clip by clip, so
that one bad clip costs only itself; errors of usage (a missing package, a model not fitted) end the run at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple, cast

from earmark import audio
from earmark.corpora.clips import Clip, length_of
from earmark.errors import InputError, MissingExtra, Unreachable, UsageError
from earmark.extractors.catalogue import as_frames
from earmark.extractors.contract import Extractor, Frames, Waveform
from earmark.wording import counted, listed
from earmark.workers import thread_count

__all__ = ["BATCH_CLIPS", "Heard", "Sound", "hear", "length_of", "listen", "settle_rate", "windows"]

BATCH_CLIPS = 16
BATCH_SECONDS = 240.0  # of padded sound given to an extractor at once, if it is more than one clip
WINDOW_BATCHES = 4
WINDOW_SECONDS = 600.0


class Sound(NamedTuple):
    """A clip as extractors want it (mono, at their rate, peak 1), and what its file was: 0 where it has none."""

    waveform: Waveform
    seconds: float
    rate: int = 0
    channels: int = 0


class Heard(NamedTuple):
    """One clip after extraction: its place in the window, the sound and its frames, or the error in their place."""

    place: int
    sound: Sound | None
    frames: Frames | None
    error: Exception | None


def hear(
    parts: Iterable[Sequence[Clip]],
    extractor: Extractor,
    *,
    batch: int = BATCH_CLIPS,
    threads: int | None = None,
) -> Iterator[Iterator[Heard]]:
    """Frames of every clip: an iterator for each window of `parts`, to be used up before the next is asked for.

    Within a window clips come as they were extracted, batch by batch. Nothing is kept of a batch once the next is
    asked for: frames may be large.
    """
    if batch < 1:
        raise UsageError("A batch needs at least one clip.")
    rate = extractor.card.rate
    with ThreadPoolExecutor(thread_count(threads)) as pool, ThreadPoolExecutor(1) as model:

        def decoding(part: Sequence[Clip]) -> list[Future[Sound | Exception]]:
            return [pool.submit(listen, clip, rate) for clip in part]

        coming: list[Future[Sound | Exception]] | None = None
        try:
            for part in parts:
                ready, coming = coming, decoding(part)
                if ready is not None:
                    yield _heard([future.result() for future in ready], extractor, batch, model)
            if coming is not None:
                yield _heard([future.result() for future in coming], extractor, batch, model)
        finally:
            model.shutdown(wait=False, cancel_futures=True)
            pool.shutdown(wait=False, cancel_futures=True)


def settle_rate(extractor: Extractor, clips: Sequence[Clip]) -> Extractor:
    """An extractor whose card has rate 0 takes the rate that the clips are stored with; others stay as they are.

    Of clips with several rates the same numbers would mean different frequencies, so they are refused.
    """
    if extractor.card.rate or not hasattr(extractor, "at_rate"):
        return extractor
    rates: Counter[int] = Counter()
    for clip in clips:
        with suppress(Exception):  # decoding it will tell what is wrong
            rates[clip.native_rate()] += 1
    if len(rates) > 1:
        shown = listed([f"{rate} Hz ({counted(count, 'clip')})" for rate, count in rates.most_common(3)])
        name = extractor.card.name
        raise InputError(
            f"The clips are stored at several rates: {shown}; at its native rate {name} would compare different "
            f"frequencies, so name one: {name}?rate={max(rates)}."
        )
    if not rates:
        raise InputError(f"No clip could be opened, so that {extractor.card.name} has no rate to work at.")
    return cast(Extractor, extractor.at_rate(next(iter(rates))))


def windows(seconds: Sequence[float], batch: int = BATCH_CLIPS) -> list[slice]:
    """Where to cut clips of these lengths (0: unknown): a few batches, and no more than ten minutes of sound."""
    cuts: list[slice] = []
    start, held = 0, 0.0
    for place, length in enumerate(seconds):
        if place > start and (place - start >= WINDOW_BATCHES * batch or held + length > WINDOW_SECONDS):
            cuts.append(slice(start, place))
            start, held = place, 0.0
        held += length
    if start < len(seconds):
        cuts.append(slice(start, len(seconds)))
    return cuts


def listen(clip: Clip, rate: int) -> Sound | Exception:
    """A clip decoded for an extractor, or whatever went wrong: the run goes on."""
    try:
        samples, given = clip.read(rate)
        if not len(samples):
            raise InputError(f"{clip.path or clip.id} holds no samples: replace it or leave it out.")
        native, channels = 0, 0
        if clip.path is not None:
            with suppress(Exception):  # it was decoded, which is what counts
                _, native, channels = audio.probe(clip.path)
        return Sound(audio.peak_normalise(samples), len(samples) / given, native, channels)
    except Unreachable:
        raise
    except Exception as error:
        return error


def _heard(
    sounds: list[Sound | Exception], extractor: Extractor, batch: int, model: ThreadPoolExecutor
) -> Iterator[Heard]:
    waveforms: dict[int, Waveform] = {}
    for place, sound in enumerate(sounds):
        if isinstance(sound, Exception):
            yield Heard(place, None, None, sound)
        else:
            waveforms[place] = sound.waveform
    coming: tuple[list[int], Future[list[Frames | Exception]]] | None = None
    for places in [*_batches(waveforms, batch, extractor.card.rate), None]:
        ready = coming
        if places is not None:
            coming = places, model.submit(_extract, extractor, [waveforms[place] for place in places])
        if ready is not None:
            answers = ready[1].result()
            for place in reversed(ready[0]):
                sound, answer = sounds[place], answers.pop()
                assert isinstance(sound, Sound)
                if isinstance(answer, Exception):
                    yield Heard(place, sound, None, answer)
                else:
                    yield Heard(place, sound, answer, None)


def _batches(waveforms: dict[int, Waveform], size: int, rate: int) -> Iterator[list[int]]:
    """Places from the shortest sound to the longest, at most `size` together and BATCH_SECONDS once padded."""
    held: list[int] = []
    for place in sorted(waveforms, key=lambda place: len(waveforms[place])):
        padded = (len(held) + 1) * len(waveforms[place])
        if held and (len(held) >= size or padded > BATCH_SECONDS * rate):
            yield held
            held = []
        held.append(place)
    if held:
        yield held


def _extract(extractor: Extractor, waveforms: list[Waveform]) -> list[Frames | Exception]:
    try:
        return list(as_frames(extractor.extract(waveforms), len(waveforms)))
    except (MissingExtra, UsageError):  # the model is not usable at all
        raise
    except Exception as error:
        if len(waveforms) == 1:
            return [error]
        return [answer for waveform in waveforms for answer in _extract(extractor, [waveform])]
