"""The synthetic suite: which subsets there are, how many clips, and which clip is which.

A clip is named by (seed, subset, class, index) and its sound depends on nothing else, so a larger suite
contains the smaller ones' renditions, and clips can be made in any order and on any worker. The same numpy
gives bit-identical samples; another numpy may draw other random numbers, so a clip's recipe names it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from earmark.corpora.clips import Clip, Corpus, CorpusCard, Samples
from earmark.corpora.synth import _species as species
from earmark.corpora.synth import _speech as speech
from earmark.corpora.synth._events import EVENTS, event
from earmark.corpora.synth._nuisances import draw_conditions, draw_speaker, recorded, speed
from earmark.corpora.synth._sources import RATE, Signal, stream, wobble
from earmark.errors import UsageError, did_you_mean

VERSION = 1  # of the sounds: raise it when any sample changes
SIZES = {"tiny": 54, "small": 300, "medium": 1700}  # clips per subset
_TINY_CLASSES = 6
_PLENTY = 1_000_000


@dataclass(frozen=True)
class Subset:
    """One kind of sound. `label`, `group` and `sound` take (seed, class number[, index in the class])."""

    name: str
    domain: str
    label: Callable[[int, int], str]
    group: Callable[[int, int], str]
    sound: Callable[[int, int, int], Signal]
    growth: float  # classes grow with clips to this power
    most_classes: int = _PLENTY
    harshness: float = 1.0
    margin: float = 0.02  # seconds of background before and after, at most

    def classes(self, clips: int) -> int:
        """How many classes a subset of so many clips has."""
        wanted = round(_TINY_CLASSES * math.pow(clips / SIZES["tiny"], self.growth))
        return max(1, min(self.most_classes, max(2, wanted), clips // 2))


# --- who and where: an index in a class, as a group -------------------------------------------------------

_TAKES = 3  # renditions of a syllable in one bout, clips of one recording of an event
_REPEATS = 2  # renditions of a call, phone, word or utterance by the same voice
_INDIVIDUALS = 12
_SPEAKERS = 24


def _bird(number: int) -> str:
    return f"bird{number // species.SYLLABLES_PER_BIRD:02d}"


def _individual(number: int, index: int) -> str:
    return f"individual{(index // _REPEATS + number) % _INDIVIDUALS:02d}"


def _recording(number: int, index: int) -> str:
    return f"{tuple(EVENTS)[number]}_take{index // _TAKES:02d}"


def _speaker(number: int, index: int) -> str:
    return f"speaker{(index // _REPEATS + 2 * number) % _SPEAKERS:02d}"


# --- what: a clip's sound before it is recorded -----------------------------------------------------------


def _syllable(seed: int, number: int, index: int) -> Signal:
    kind, bird = species.syllable(seed, number), species.throat(seed, _bird(number))
    return species.sing(kind, bird, stream(VERSION, seed, "SYN-BS", number, index))


def _call(seed: int, number: int, index: int) -> Signal:
    bird = species.throat(seed, "SYN-BC", _individual(number, index))
    return species.call(tuple(species.CALLS)[number], bird, stream(VERSION, seed, "SYN-BC", number, index))


def _event(seed: int, number: int, index: int) -> Signal:
    place = stream(VERSION, seed, "SYN-ES", _recording(number, index))
    moment = stream(VERSION, seed, "SYN-ES", number, index)
    made = event(tuple(EVENTS)[number], place, moment)
    return speed(made, wobble(moment, 0.03))


def _phone(seed: int, number: int, index: int) -> Signal:
    speaker = draw_speaker(seed, "SYN-HP", _speaker(number, index))
    name = tuple(speech.PHONES)[number]
    return speech.say_phone(name, speaker, stream(VERSION, seed, "SYN-HP", number, index))


def _word(seed: int, number: int, index: int) -> Signal:
    speaker = draw_speaker(seed, "SYN-HW", _speaker(number, index))
    return speech.say_word(speech.word(seed, number), speaker, stream(VERSION, seed, "SYN-HW", number, index))


def _utterance(seed: int, number: int, index: int) -> Signal:
    speaker = draw_speaker(seed, "SYN-HU", _speaker(number, index))
    words = [speech.word(seed, word) for word in speech.utterance(seed, number)]
    return speech.say_utterance(words, speaker, stream(VERSION, seed, "SYN-HU", number, index))


SUBSETS: dict[str, Subset] = {
    subset.name: subset
    for subset in (
        Subset("SYN-BS", "bird-like syllables",
               lambda seed, number: f"{_bird(number)}_syl{'ABCDE'[number % species.SYLLABLES_PER_BIRD]}",
               lambda number, index: f"{_bird(number)}_bout{index // _TAKES:02d}",
               _syllable, growth=0.75, harshness=1.5, margin=0.01),
        Subset("SYN-BC", "bird-like calls", lambda seed, number: tuple(species.CALLS)[number], _individual,
               _call, growth=0.5, most_classes=len(species.CALLS), margin=0.05),
        Subset("SYN-ES", "environmental events", lambda seed, number: tuple(EVENTS)[number], _recording,
               _event, growth=0.8, most_classes=len(EVENTS), harshness=1.2, margin=0.0),
        Subset("SYN-HP", "phone-like sounds", lambda seed, number: tuple(speech.PHONES)[number], _speaker,
               _phone, growth=0.8, most_classes=len(speech.PHONES), harshness=0.7, margin=0.0),
        Subset("SYN-HW", "word-like sounds", lambda seed, number: "-".join(speech.word(seed, number)), _speaker,
               _word, growth=0.8, harshness=1.0, margin=0.04),
        Subset("SYN-HU", "utterances of word-like sounds", lambda seed, number: f"utterance{number:03d}", _speaker,
               _utterance, growth=0.8, harshness=0.7, margin=0.08),
    )
}  # fmt: skip


def render(name: str, seed: int, number: int, index: int) -> tuple[Samples, int]:
    """The samples of one clip and their rate."""
    subset = SUBSETS[name]
    where = draw_conditions(seed, name, subset.group(number, index), harshness=subset.harshness)
    dry = subset.sound(seed, number, index)
    heard = recorded(dry, stream(VERSION, seed, name, "recorded", number, index), where, subset.margin)
    return heard.astype(np.float32), RATE


def _clips(subset: Subset, clips: int, seed: int) -> list[Clip]:
    """Earlier classes have more clips, as in real corpora; the sum is exact."""
    weights = np.linspace(1.3, 0.7, subset.classes(clips))
    edges = np.rint(np.cumsum(weights) / weights.sum() * clips).astype(int)
    made = f"earmark synth {VERSION}, numpy {np.__version__}, seed {seed}, {subset.name}"
    return [
        Clip(
            id=f"{subset.name}/{label}/{index:04d}",
            label=label,
            subset=subset.name,
            group=subset.group(number, index),
            make=partial(render, subset.name, seed, number, index),
            recipe=f"{made}, {number} {index}",
        )
        for number, count in enumerate(np.diff(edges, prepend=0).tolist())
        for label in (subset.label(seed, number),)
        for index in range(count)
    ]


def open_synth(size: str | int = "small", *, seed: int = 0, subsets: Sequence[str] | None = None) -> Corpus:
    """The embedded suite of SYNTHETIC sounds, lazily: nothing is rendered until a clip is read.

    `size` is tiny (54 clips per subset), small (300), medium (1700) or any number of clips per subset;
    `subsets` picks some of SYN-BS, SYN-BC, SYN-ES, SYN-HP, SYN-HW, SYN-HU. Clips are 16 kHz float32.
    """
    names = list(SUBSETS) if subsets is None else list(dict.fromkeys(subsets))
    for name in names:
        if name not in SUBSETS:
            raise UsageError(f"No synthetic subset is called {name!r}.{did_you_mean(name, SUBSETS)}")
    clips = _clips_per_subset(size)
    card = CorpusCard(
        name="synth",
        title="SYNTHETIC suite with the shape of VocSim (no recorded sound)",
        source="generated by earmark.corpora.synth",
        revision=f"{VERSION}, seed {seed}, size {size}",
        licence="CC0-1.0",
        domain="synthetic sounds",
        status="synthetic",
        notes="SYNTHETIC: every clip is computed from a seed. Scores show that the tools work and how "
        "representations bear nuisances (loudness, speed, noise, speaker, room, offset); they do not say "
        "how a model does on animals, places or people.",
    )
    return Corpus(
        card=card,
        clips=[clip for name in names for clip in _clips(SUBSETS[name], clips, seed)],
        subset_cards={name: replace(card, name=name, title="", domain=SUBSETS[name].domain) for name in names},
    )


def _clips_per_subset(size: str | int) -> int:
    if isinstance(size, str) and not size.isdecimal():
        if size not in SIZES:
            raise UsageError(f"No synthetic suite has the size {size!r}: choose {', '.join(SIZES)} or a number.")
        return SIZES[size]
    if int(size) < 1:
        raise UsageError(f"A synthetic subset needs at least one clip, not {int(size)}.")
    return int(size)
