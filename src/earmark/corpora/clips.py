"""Clips and corpora: what is to be measured, before anything is decoded.

A clip is lazy: it knows where its sound comes from (a file, a span of one, samples in memory, or a function
that makes it) and decodes in the worker that needs it. A corpus is an ordered set of clips with a card.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from earmark.cards import Card
from earmark.displayed import Displayed
from earmark.errors import Changed, Unreachable, UsageError, no_exit
from earmark.places import is_remote, locate
from earmark.scores.spelling import refuse_reserved, with_sample
from earmark.vectors.class_samples import Draw, draw_sample, parse_sample, told
from earmark.vectors.texts import as_text, composed

Samples = NDArray[np.float32]
Status = Literal["public", "blind", "synthetic", "local"]


@dataclass(frozen=True)
class CorpusCard(Card):
    """What is known of a corpus: where it comes from, on what terms, and whether the world may hear it.

    >>> CorpusCard(name="wood", title="Robins of one wood", licence="CC BY 4.0")
    """

    name: str
    title: str = ""
    source: str = ""
    revision: str = ""
    licence: str = ""
    citation: str = ""
    domain: str = ""
    drawn_from: str = ""  # names of the public corpora its sounds come from, separated by ";"
    status: Status = "local"
    notes: str = ""
    language: str = ""  # as a tag, such as en-US, where one is spoken
    rate: str = ""  # of the recordings as they are stored, such as 8 kHz
    history: str = ""  # what was done to the sound before it came here, such as an earlier coding


@dataclass(frozen=True)
class Clip:
    """One labelled sound. Exactly one of `path`, `samples` (with `rate`) and `make` says where it comes from.

    `text` is what is spoken, word for word, where that is known and is not the label. `fold` is the part of the data
    that probes test together, as its makers chose it: a fold's name, or train, valid or test.
    `speed` is how fast the sound is played: at 0.1 a recording of 250 kHz is taken for one of 25 kHz, ten times as long
    and ten times as low, so that a model of audible sound hears ultrasound. `start` and `end` are in the file's time.
    `make` is a picklable function without arguments returning (samples, rate); `recipe` must then name
    everything the sound depends on, because it stands for the content in cache keys. A `make` that has a method
    `digest()` returning a hash of its content needs no recipe.
    `expected` is the digest that a run knows the clip by: a file with another one, on another machine or after a
    change, is not read.

    >>> Clip(id="a", label="wren", group="dawn", path="dawn.wav", start=1.5, end=2.0)
    """

    id: str
    label: str | None = None
    subset: str = ""
    group: str | None = None
    path: str | None = None
    start: float | None = None
    end: float | None = None
    samples: Samples | None = field(default=None, repr=False)
    rate: int | None = None
    make: Callable[[], tuple[Samples, int]] | None = field(default=None, repr=False)
    recipe: str = ""
    text: str | None = None
    fold: str | None = None
    speed: float = 1.0
    expected: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        check_speed(self.speed)
        # A table of another library may give 3.0, NaN or pandas.NA: one spelling, and None for what is missing.
        for name in ("label", "group", "fold"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, composed(given) if isinstance(given, str) else as_text(given))

    def read(self, rate: int | None = None) -> tuple[Samples, int]:
        """Mono float32 samples and their rate, resampled to `rate` when given; not peak-normalised."""
        from earmark import audio

        if self.path is not None:
            samples, native = audio.read(self.path, start=self.start, end=self.end)
            if self.expected and self.digest() != self.expected:  # asked afterwards: no change in between is missed
                raise Changed(
                    f"{self.path} is not the file that the run has hashed: it was changed, or this machine has another "
                    "copy; share one, and run it again."
                )
        elif self.make is not None:
            with no_exit():
                samples, native = self.make()
        elif self.samples is not None and self.rate is not None:
            samples, native = self.samples, self.rate
        else:
            raise ValueError(f"clip {self.id!r} has no sound")
        played = native * self.speed
        wanted = rate or _whole_rate(played)
        return audio.resample(samples, played if rate else wanted, wanted), wanted

    def native_rate(self) -> int:
        """Samples per second as the sound is stored, times its speed: what `read` without a rate returns."""
        from earmark import audio

        if self.path is not None:
            return _whole_rate(audio.probe(self.path).rate * self.speed)
        return _whole_rate(self.rate * self.speed) if self.samples is not None and self.rate else self.read()[1]

    def seconds(self) -> float:
        """How long the clip lasts: from the span or the file's header where that is enough, else by decoding."""
        from earmark import audio

        if self.path is not None:
            whole = audio.probe(self.path).duration
            return (min(self.end or whole, whole) - (self.start or 0.0)) / self.speed
        samples, rate = self.read()
        return len(samples) / rate

    def digest(self) -> str:
        """A SHA-256 of what the clip sounds like: file bytes and span, samples and rate, or recipe; for cache keys.

        A `make` with a method `digest()` is asked for the hash of its content; one with neither that nor a recipe is
        made and hashed.
        """
        from earmark import audio

        if self.path is not None:
            span = "" if self.start is None and self.end is None else f"{self.start or 0.0!r} {self.end!r}"
            content = f"file {audio.file_digest(self.path)} {span}"
        elif (own := getattr(self.make, "digest", None)) is not None:
            with no_exit():
                content = f"made {own()}"
        elif self.make is not None and self.recipe:
            content = f"recipe {self.recipe}"
        else:
            samples, rate = self.read()
            stored = np.ascontiguousarray(samples, dtype="<f4")
            content = f"samples {rate} {hashlib.sha256(stored.tobytes()).hexdigest()}"
        content += "" if self.speed == 1.0 else f" speed {self.speed!r}"
        return hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True, repr=False)
class Corpus(Displayed):
    """An ordered set of clips with a card. Subsets are scored one by one. `notes` says what a reader should know.

    `subset_cards` are for corpora whose subsets differ in source, terms or domain.

    >>> Corpus(CorpusCard(name="wood"), [Clip(id="a", label="wren", path="a.wav")]).plot()
    """

    card: CorpusCard
    clips: Sequence[Clip]
    notes: tuple[str, ...] = ()
    subset_cards: Mapping[str, CorpusCard] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for subset in dict.fromkeys(clip.subset for clip in self.clips):
            refuse_reserved(subset, self.card.name or "The corpus")

    @property
    def name(self) -> str:
        return self.card.name

    def at_speed(self, speed: float) -> Corpus:
        """The corpus with every clip played at this speed: 0.1 is ten times as slow and ten times as low."""
        check_speed(speed)
        return self if speed == 1.0 else replace(self, clips=[replace(clip, speed=float(speed)) for clip in self.clips])

    def sampled(self, sample: str, seed: int = 0) -> Corpus:
        """The corpus with some clips of some classes of every subset: "50x5" is 5 of each of the 50 most frequent.

        Subsets are then called `ES1~50x5`. Clips that are one sound count as several here; a run leaves copies out
        before it draws. UsageError where no class of any subset has as many clips.
        """
        wanted = parse_sample(sample)
        clips: list[Clip] = []
        names = {subset: with_sample(subset or self.name, wanted.drawn_with(seed)) for subset in self.subsets()}
        draws: dict[str, Draw] = {}
        for subset, of_subset in self.subsets().items():
            draw = draw_sample(labels_of(of_subset), [clip.id for clip in of_subset], wanted, seed)
            draws[names[subset]] = draw
            clips += [replace(of_subset[row], subset=names[subset]) for row in draw.rows]
        cards = {names[subset]: card for subset, card in self.subset_cards.items() if subset in names}
        return replace(self, clips=clips, notes=(*self.notes, *told(draws)), subset_cards=cards)

    def card_of(self, subset: str) -> CorpusCard:
        """The card of a subset: its own, or that of the whole corpus."""
        return self.subset_cards.get(subset, self.card)

    def __len__(self) -> int:
        return len(self.clips)

    def __iter__(self) -> Iterator[Clip]:
        return iter(self.clips)

    def refuse_into(self, folder: Path) -> None:
        """Refuse to write into the folder this corpus is read from: its recordings and manifest stay as they are."""
        inside = folder.resolve()
        files = {locate(clip.path) for clip in self.clips if clip.path is not None}
        same = [file for file in files if is_remote(file) == is_remote(inside)]
        if any(file.resolve().is_relative_to(inside) for file in same):
            raise UsageError(f"{folder} holds the corpus itself: give another folder with --into.")

    def subsets(self) -> dict[str, list[Clip]]:
        """Clips by subset, in order of first appearance."""
        found: dict[str, list[Clip]] = {}
        for clip in self.clips:
            found.setdefault(clip.subset, []).append(clip)
        return found


def check_speed(speed: object) -> None:
    """Refuse what is no speed."""
    number = isinstance(speed, int | float | np.integer | np.floating) and not isinstance(speed, bool)
    if not number or not math.isfinite(speed) or speed <= 0:  # type: ignore[arg-type,operator]
        raise UsageError(
            f"A speed of {speed!r} is not possible: give a number above 0, such as 0.1 for ten times as slow."
        )


def _whole_rate(rate: float) -> int:
    return max(1, round(rate))


def labels_of(clips: Sequence[Clip]) -> list[str | None]:
    return [clip.label for clip in clips]


def transcript_of(clip: Clip) -> str | None:
    """What is spoken in a clip: its text, else its label where that is a sentence of two words or more, else None.

    Names of classes are one word or joined by underscores.
    """
    if clip.text is not None:
        return clip.text
    return clip.label if len((clip.label or "").split()) > 1 else None


def groups_of(clips: Sequence[Clip]) -> list[str | None] | None:
    """Groups of the clips, or None when no clip has one."""
    groups: list[Any] = [clip.group for clip in clips]
    return groups if any(group is not None for group in groups) else None


def folds_of(clips: Sequence[Clip]) -> list[str | None] | None:
    """The folds that the makers of a corpus gave its clips, or None when no clip has one."""
    folds = [clip.fold for clip in clips]
    return folds if any(fold is not None for fold in folds) else None


def length_of(clip: Clip) -> float:
    """Seconds of a clip as its header or samples say; 0 where only decoding would tell."""
    if clip.samples is not None and clip.rate:
        return len(clip.samples) / clip.rate / clip.speed
    if clip.path is None:
        return 0.0
    if clip.start is not None and clip.end is not None:
        return max(0.0, clip.end - clip.start) / clip.speed
    try:
        return clip.seconds()
    except Unreachable:
        raise
    except Exception:  # decoding it will tell what is wrong
        return 0.0
