"""Clips to frames, the one way there: decode ahead in threads, extract in batches of like lengths.

    clips ── windows (in the order given) ── decode (threads, one window ahead)
                                                └─ sorted by length ── batches ── extract ── Heard

A window is a few batches of clips cut from the order they were given in, so a resumed run forms the same windows as
an undisturbed one and gets the same numbers. Inside a window clips are extracted from the shortest to the longest:
a batch then holds clips of like lengths and pads little. Memory holds two windows of sound, and two batches of frames:
one is extracted in a thread of its own while the caller uses the one before it. On a GPU that thread only says what is
to be done, pooling included (`start`): the next batch is made ready, across windows too, while the card works.

An extractor is never called from two threads at once. A batch on which it raises is tried again clip by clip, so
that one bad clip costs only itself; errors of usage (a missing package, a model not fitted) end the run at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, cast

from earmark import audio
from earmark.corpora.clips import Clip, length_of
from earmark.errors import InputError, MissingExtra, Unreachable, UsageError, no_exit
from earmark.extractors.catalogue import as_frames
from earmark.extractors.contract import Extractor, Frames, Waveform, as_array
from earmark.progress import Progress, progress_bar
from earmark.wording import counted, listed
from earmark.workers import thread_count

__all__ = [
    "BATCH_CLIPS",
    "Heard",
    "Level",
    "Sound",
    "hear",
    "heard_clips",
    "length_of",
    "listen",
    "settle_rate",
    "windows",
]

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
    """One clip after extraction: its place in the window, the sound and what was made of its frames, or the error."""

    place: int
    sound: Sound | None
    answer: Any
    error: Exception | None


Level = Callable[[Waveform], Waveform]
"""What is done to samples before they are heard: without another, their peak becomes 1."""

Start = Callable[[Sequence[Frames]], Sequence[Callable[[], Any]]]
"""Begins what is to be made of the frames of a batch; the functions, one for each clip, wait for it and return it."""


def _start_bringing(answers: Sequence[Frames]) -> list[Callable[[], Frames]]:
    return [partial(lambda frames: Frames(as_array(frames.values), frames.valid), frames) for frames in answers]


def hear(
    parts: Iterable[Sequence[Clip]],
    extractor: Extractor,
    *,
    batch: int = BATCH_CLIPS,
    threads: int | None = None,
    start: Start = _start_bringing,
    level: Level = audio.peak_normalise,
) -> Iterator[Iterator[Heard]]:
    """Every clip's answer, what `start` makes of its frames: an iterator for each window of `parts`, to be used up
    before the next is asked for. `level` is what is done to the samples of a clip before the extractor hears them.

    Within a window clips come as they were extracted, batch by batch. Nothing is kept of a batch once the next is
    asked for: frames may be large.
    """
    if batch < 1:
        raise UsageError("A batch needs at least one clip.")
    rate = extractor.card.rate
    with ThreadPoolExecutor(thread_count(threads)) as pool, ThreadPoolExecutor(1) as model:

        def under_way(part: Sequence[Clip]) -> _Window:
            return _Window([pool.submit(listen, clip, rate, level) for clip in part], batch, rate, submit)

        def submit(waveforms: list[Waveform]) -> Future[list[Any]]:
            return model.submit(_extract, extractor, waveforms, start)

        coming: _Window | None = None
        try:
            for part in parts:
                ready, coming = coming, under_way(part)
                if ready is not None:
                    yield ready.heard(coming)
            if coming is not None:
                yield coming.heard(None)
        finally:
            model.shutdown(wait=False, cancel_futures=True)
            pool.shutdown(wait=False, cancel_futures=True)


class _Window:
    """Clips that are being decoded, and then extracted batch by batch: one ahead of the one whose answers are used."""

    def __init__(
        self,
        decoding: list[Future[Sound | Exception]],
        size: int,
        rate: int,
        submit: Callable[[list[Waveform]], Future[list[Any]]],
    ) -> None:
        self._decoding, self._size, self._rate, self._submit = decoding, size, rate, submit
        self._sounds: list[Sound | Exception] = []
        self._batches: Iterator[list[int]] | None = None
        self._ahead: tuple[list[int], Future[list[Any]]] | None = None

    def decoded(self) -> bool:
        return all(future.done() for future in self._decoding)

    def advance(self) -> None:
        """Have the next batch extracted, unless one waits already or none is left. Waits for what is not decoded."""
        if self._batches is None:
            self._sounds = [future.result() for future in self._decoding]
            self._decoding = []
            waveforms = {place: one.waveform for place, one in enumerate(self._sounds) if isinstance(one, Sound)}
            self._batches = _batches(waveforms, self._size, self._rate)
        if self._ahead is None and (places := next(self._batches, None)) is not None:
            sounds = [self._sounds[place] for place in places]
            self._ahead = places, self._submit([one.waveform for one in sounds if isinstance(one, Sound)])

    def heard(self, following: _Window | None) -> Iterator[Heard]:
        """The answers of this window. While its last batch is waited for, the `following` window may begin."""
        self.advance()
        for place, sound in enumerate(self._sounds):
            if isinstance(sound, Exception):
                yield Heard(place, None, None, sound)
        while self._ahead is not None:
            places, extracting = self._ahead
            self._ahead = None
            self.advance()
            if self._ahead is None and following is not None and following.decoded():
                following.advance()
            answers = extracting.result()
            for place in reversed(places):
                sound, answer, error = self._sounds[place], answers.pop(), None
                assert isinstance(sound, Sound)
                try:
                    answer = answer() if callable(answer) else answer
                except (MissingExtra, UsageError):
                    raise
                except Exception as reason:
                    error = reason
                if isinstance(answer, Exception):
                    error = answer
                yield Heard(place, sound, None if error is not None else answer, error)


def heard_clips(
    clips: Sequence[Clip], extractor: Extractor, start: Start, *, batch: int = BATCH_CLIPS, threads: int | None = None,
    progress: Progress = False, level: Level = audio.peak_normalise,
) -> Iterator[Iterator[tuple[int, Heard]]]:  # fmt: skip
    """The clips with their places and answers, window by window as `hear` gives them, under a bar."""
    cuts = windows([length_of(clip) for clip in clips], batch)
    parts = hear([clips[cut] for cut in cuts], extractor, batch=batch, threads=threads, start=start, level=level)
    with progress_bar(progress, len(clips), f"embed {extractor.card.name}", "clip") as tick:

        def placed(cut: slice, part: Iterator[Heard]) -> Iterator[tuple[int, Heard]]:
            for heard in part:
                yield cut.start + heard.place, heard
                tick()

        for cut, part in zip(cuts, parts, strict=True):
            yield placed(cut, part)


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


def listen(clip: Clip, rate: int, level: Level = audio.peak_normalise) -> Sound | Exception:
    """A clip decoded for an extractor, or whatever went wrong: the run goes on."""
    try:
        samples, given = clip.read(rate)
        if not len(samples):
            raise InputError(f"{clip.path or clip.id} holds no samples: replace it or leave it out.")
        native, channels = 0, 0
        if clip.path is not None:
            with suppress(Exception):  # it was decoded, which is what counts
                _, native, channels = audio.probe(clip.path)
        return Sound(level(samples), len(samples) / given, native, channels)
    except Unreachable:
        raise
    except Exception as error:
        return error


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


def _extract(extractor: Extractor, waveforms: list[Waveform], start: Start) -> list[Any]:
    """For each clip a function that gives its answer, or the error in its place."""
    try:
        with no_exit():
            return list(start(as_frames(extractor.extract(waveforms), len(waveforms), there=True)))
    except (MissingExtra, UsageError):  # the model is not usable at all
        raise
    except Exception as error:
        if len(waveforms) == 1:
            return [error]
        return [answer for waveform in waveforms for answer in _extract(extractor, [waveform], start)]
