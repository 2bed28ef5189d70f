"""Speech-like sound: phones as targets of a formant synthesiser, words and utterances as paths through them.

A phone is one or more states (closure, burst, steady part). Each state sets targets for formants, voice,
breath and friction; the tracks between targets are blurred, formants more than loudness, which is what makes
neighbours colour each other. Words are invented: no language is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from earmark.corpora.synth._nuisances import Speaker
from earmark.corpora.synth._sources import (
    HOP,
    RATE,
    Signal,
    between,
    bump,
    drift,
    frame_count,
    frame_grid,
    glottal,
    moving,
    resonances,
    smooth,
    stream,
    swell,
    tilt,
    wobble,
)


@dataclass(frozen=True)
class State:
    """Targets held for a while. Formants in Hz for a tract of middle length; levels from 0 to 1."""

    seconds: float
    formants: tuple[float, ...] = (500.0, 1500.0, 2500.0)
    voice: float = 0.0
    breath: float = 0.0
    friction: float = 0.0
    centre: float = 4000.0  # of the friction, Hz
    width: float = 0.5  # of the friction, octaves
    nose: float = 0.0


def _vowel(first: float, second: float, third: float, seconds: float = 0.13) -> tuple[State, ...]:
    return (State(seconds, (first, second, third), voice=1.0),)


def _nasal(second: float, third: float) -> tuple[State, ...]:
    return (State(0.085, (270.0, second, third), voice=0.55, nose=1.0),)


def _liquid(first: float, second: float, third: float) -> tuple[State, ...]:
    return (State(0.08, (first, second, third), voice=0.7),)


def _fricative(second: float, level: float, centre: float, width: float, voice: float) -> tuple[State, ...]:
    seconds = 0.12 if voice == 0 else 0.09
    return (State(seconds, (330.0, second, 2600.0), voice, 0.0, level, centre, width),)


def _stop(second: float, third: float, centre: float, width: float, voiced: bool) -> tuple[State, ...]:
    locus = (300.0, second, third)
    closure = State(0.06, locus, voice=0.16 if voiced else 0.0)
    burst = State(0.016, locus, friction=0.5 if voiced else 0.8, centre=centre, width=width)
    after = State(0.035, locus, breath=0.5, friction=0.1, centre=centre, width=width)
    return (closure, burst) if voiced else (closure, burst, after)


PHONES: dict[str, tuple[State, ...]] = {
    "a": _vowel(780, 1250, 2550),
    "s": _fricative(1650, 0.7, 6000, 0.28, 0.0),
    "i": _vowel(290, 2280, 3000),
    "m": _nasal(1050, 2250),
    "t": _stop(1750, 2650, 4200, 0.5, False),
    "u": _vowel(320, 850, 2300),
    "n": _nasal(1600, 2600),
    "sh": _fricative(1850, 0.75, 3200, 0.4, 0.0),
    "e": _vowel(440, 2020, 2650),
    "l": _liquid(380, 1150, 2700),
    "o": _vowel(470, 900, 2450),
    "f": _fricative(1150, 0.22, 5200, 1.1, 0.0),
    "k": _stop(1900, 2300, 2100, 0.35, False),
    "ae": _vowel(700, 1750, 2500),
    "z": _fricative(1650, 0.4, 5800, 0.3, 0.4),
    "r": _liquid(420, 1250, 1650),
    "er": _vowel(490, 1350, 1700),
    "p": _stop(950, 2250, 900, 0.9, False),
    "y": _vowel(290, 1780, 2250),
    "v": _fricative(1150, 0.12, 5000, 1.1, 0.5),
    "h": (State(0.08, (600.0, 1500.0, 2500.0), breath=0.55),),
    "ng": _nasal(2050, 2500),
    "d": _stop(1750, 2650, 3800, 0.5, True),
    "uh": _vowel(620, 1180, 2450, 0.1),
    "w": _liquid(330, 720, 2250),
    "g": _stop(1900, 2300, 1900, 0.4, True),
    "j": _liquid(290, 2150, 2900),
    "zh": _fricative(1850, 0.45, 3000, 0.4, 0.4),
    "b": _stop(950, 2250, 800, 0.9, True),
    "th": _fricative(1400, 0.16, 6400, 0.9, 0.0),
    "x": _fricative(1700, 0.4, 1700, 0.45, 0.0),
    "ch": (
        *_stop(1850, 2600, 3400, 0.4, False)[:2],
        State(0.07, (330.0, 1850.0, 2600.0), friction=0.7, centre=3300.0),
    ),
}
VOWELS = tuple(name for name in PHONES if name[0] in "aeiouy")
CONSONANTS = tuple(name for name in PHONES if name not in VOWELS)
_SIDE_BY_SIDE = ("l", "m", "n", "s", "r", "sh", "ng")  # consonants that may close a syllable
_COMMON = 60  # words that utterances share


@dataclass(frozen=True)
class Spoken:
    """A sequence of phones as sound; `bounds` are the samples at which each phone starts, and the end."""

    samples: Signal
    bounds: tuple[int, ...]


def _accented(states: tuple[State, ...], speaker: Speaker, name: str) -> tuple[State, ...]:
    """A speaker's own way with a phone: formants and friction moved a little, always the same way."""
    rng = stream("accent", speaker.key, name)
    shifts = np.exp(0.035 * rng.standard_normal(3))
    hiss = wobble(rng, 0.06)
    return tuple(
        replace(
            state,
            formants=tuple(formant * float(shift) for formant, shift in zip(state.formants, shifts, strict=True)),
            centre=state.centre * hiss,
        )
        for state in states
    )


def speak(phones: Sequence[str], speaker: Speaker, rng: Generator) -> Spoken:
    """Say the phones in one breath. `rng` draws what differs when the same speaker says it again."""
    pace = speaker.rate * wobble(rng, 0.06)
    states: list[State] = []
    starts: list[int] = []
    for name in phones:
        starts.append(len(states))
        stretch = wobble(rng, 0.1) / pace
        targets = np.exp(0.025 * rng.standard_normal(3))
        for state in _accented(PHONES[name], speaker, name):
            formants = tuple((np.array(state.formants) * targets).tolist())
            states.append(replace(state, seconds=state.seconds * stretch, formants=formants))
    edges = np.concatenate([[0.0], np.cumsum([state.seconds for state in states])])
    n = round(float(edges[-1]) * RATE)
    bounds = (*(round(float(edges[start]) * RATE) for start in starts), n)
    return Spoken(_synthesise(_tracks(states, edges, frame_count(n)), n, speaker, rng), bounds)


class _Tracks(NamedTuple):
    """Targets as curves, one value per frame."""

    formants: Signal  # [T, 3]
    voice: Signal
    breath: Signal
    friction: Signal
    centre: Signal
    width: Signal
    nose: Signal


_BLUR = {"voice": 0.007, "breath": 0.007, "friction": 0.005, "centre": 0.012, "width": 0.012, "nose": 0.010}
"""Seconds over which each target blends into the next; formants take 0.022."""


def _tracks(states: Sequence[State], edges: Signal, frames: int) -> _Tracks:
    begun = np.searchsorted(edges, np.arange(frames) * HOP / RATE, side="right")
    at = np.clip(begun - 1, 0, len(states) - 1)

    def track(values: Sequence[float], seconds: float) -> Signal:
        return smooth(np.array(values)[at], seconds * RATE / HOP)

    formants = [track([state.formants[k] for state in states], 0.022) for k in range(3)]
    others = (track([getattr(state, name) for state in states], seconds) for name, seconds in _BLUR.items())
    return _Tracks(np.stack(formants, axis=1), *others)


def _melody(n: int, speaker: Speaker, rng: Generator) -> Signal:
    """Pitch of a phrase: a fall from start to end, accents, flutter."""
    fall = np.linspace(1.0 + speaker.melody, 1.0 - speaker.melody, n)
    accents = 1 + speaker.melody * drift(rng, n, 0.18)
    flutter = 1 + 0.008 * drift(rng, n, 0.012)
    return np.clip(speaker.pitch * wobble(rng, 0.05) * fall * accents * flutter, 60.0, 450.0)


def _synthesise(tracks: _Tracks, n: int, speaker: Speaker, rng: Generator) -> Signal:
    grid = frame_grid()
    upper = np.broadcast_to([3600.0, 4600.0], (len(tracks.voice), 2))
    centres = np.clip(np.concatenate([tracks.formants, upper], axis=1) * speaker.tract, 120.0, 7600.0)
    widths = 50.0 + 0.035 * centres + 90.0 * tracks.nose[:, None]
    mouth = resonances(grid, centres, widths) * (grid / 1000.0 + 0.15)  # the lips let high sounds out better
    dip = 1 - 0.85 * tracks.nose[:, None] * bump(grid, 900.0 * speaker.tract, 0.45)

    white = rng.standard_normal(n)
    folds = tilt(glottal(_melody(n, speaker, rng), speaker.openness), speaker.brightness)
    at, frames = np.arange(n) / HOP, np.arange(len(tracks.voice))
    source = (folds + speaker.breath * white) * np.interp(at, frames, tracks.voice)
    source += 0.3 * white * np.interp(at, frames, tracks.breath)
    voiced = moving(source, mouth * dip)

    octave = np.log2(np.maximum(grid, 40.0)[None, :] / (tracks.centre[:, None] * speaker.tract**0.6))
    hill = np.exp(-0.5 * (octave / tracks.width[:, None]) ** 2) * tracks.friction[:, None]
    hiss = moving(white, 0.5 * hill)
    return (voiced + hiss) * swell(n, 0.004, 0.012)


# --- words ------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _lexicon(seed: int, count: int) -> tuple[tuple[str, ...], ...]:
    rng = stream("lexicon", seed)
    words: list[tuple[str, ...]] = []
    known: set[tuple[str, ...]] = set()
    while len(words) < count:
        word: list[str] = []
        for syllable in range(int(rng.choice([1, 2, 2]))):
            if syllable or rng.uniform() < 0.9:
                word.append(str(rng.choice(CONSONANTS)))
            word.append(str(rng.choice(VOWELS)))
        if rng.uniform() < 0.4 or len(word) < 3:
            word.append(str(rng.choice(_SIDE_BY_SIDE)))
        if tuple(word) not in known:
            known.add(tuple(word))
            words.append(tuple(word))
    return tuple(words)


def word(seed: int, number: int) -> tuple[str, ...]:
    """Phones of an invented word. Words are all different, and the same however many are asked for."""
    return _lexicon(seed, 1 << max(6, number.bit_length()))[number]


def utterance(seed: int, number: int) -> tuple[int, ...]:
    """Word numbers of an invented utterance: common words, then one that no other utterance has."""
    rng = stream("utterance", seed, number)
    last = _COMMON + number
    words: list[int] = []
    while sum(len(word(seed, index)) for index in (*words, last)) < 13:
        words.append(int(rng.integers(_COMMON)))
    return (*words, last)


# --- clips ------------------------------------------------------------------------------------------------


def say_phone(name: str, speaker: Speaker, rng: Generator) -> Signal:
    """One phone cut out of running speech, with the colour of its neighbours: 60 to 250 ms."""
    sides = VOWELS if name in CONSONANTS else CONSONANTS
    before, after = (str(side) for side in rng.choice(sides, 2))
    spoken = speak((before, name, after), speaker, rng)
    start, end = spoken.bounds[1], spoken.bounds[2]
    least, most = round(0.06 * RATE), round(0.25 * RATE)
    lack = max(0, least - (end - start))
    cut = spoken.samples[max(0, start - lack // 2) : min(end + lack - lack // 2, start + most)]
    return cut * swell(len(cut), 0.003, 0.003)


def say_word(phones: Sequence[str], speaker: Speaker, rng: Generator) -> Signal:
    """One word on its own, a little slower than in a sentence: 0.25 to 0.9 s."""
    return speak(phones, replace(speaker, rate=0.88 * speaker.rate), rng).samples


def say_utterance(words: Sequence[Sequence[str]], speaker: Speaker, rng: Generator) -> Signal:
    """Words in a row with short pauses; the pitch falls over each breath group."""
    parts: list[Signal] = []
    for phones in words:
        quicker = replace(speaker, rate=speaker.rate * 1.15)
        parts.append(speak(phones, quicker, rng).samples * wobble(rng, 0.15))
        parts.append(np.zeros(round(between(rng, 0.0, 0.05) * RATE)))
    return np.concatenate(parts[:-1])
