"""Bird-like voices: the syllables of individual birds, and the calls that all birds share.

A syllable type belongs to one bird and is drawn once; its renditions differ as a bird's do, by a few percent
in pitch and time. A call type is common to the species; each individual has its own pitch, timbre and length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import Generator

from earmark.corpora.synth._sources import (
    RATE,
    Signal,
    band,
    between,
    bump,
    contour,
    drift,
    harmonics,
    noise,
    octaves,
    samples_in,
    smooth,
    spectrum_of,
    stream,
    swell,
    through,
    tone,
    unit_power,
    wobble,
)

SYLLABLES_PER_BIRD = 5
KINDS = ("stack", "whistle", "sweep", "trill", "rasp", "double")


@dataclass(frozen=True)
class Throat:
    """What all sounds of one bird share: pitch, and the filter of its throat and beak."""

    pitch: float
    formants: tuple[float, float]
    sharpness: float  # width of the formants, octaves
    tempo: float


@dataclass(frozen=True)
class Syllable:
    """One entry of a bird's repertoire."""

    kind: str
    seconds: float
    pitches: tuple[float, ...]  # Hz, evenly spaced in time
    loudness: tuple[float, ...]
    rate: float  # of the trill or rasp, Hz
    depth: float
    noisiness: float


@lru_cache(maxsize=512)
def throat(*keys: object) -> Throat:
    """The voice of the bird that the keys name."""
    rng = stream("throat", *keys)
    return Throat(
        pitch=octaves(rng, 0.75, 1.35),
        formants=(octaves(rng, 1800, 3200), octaves(rng, 3600, 6400)),
        sharpness=between(rng, 0.3, 0.7),
        tempo=octaves(rng, 0.8, 1.25),
    )


@lru_cache(maxsize=4096)
def syllable(*keys: object) -> Syllable:
    """The syllable type that the keys name."""
    rng = stream("syllable", *keys)
    kind = KINDS[int(rng.integers(len(KINDS)))]
    deep = {"stack": (380.0, 950.0), "rasp": (300.0, 800.0), "double": (900.0, 2600.0)}
    low, high = deep.get(kind, (1900.0, 5200.0))
    start = octaves(rng, low, high)
    reach = {"stack": 0.12, "rasp": 0.15, "trill": 0.25, "sweep": 0.75}.get(kind, 0.3)
    steps = np.cumsum(rng.normal(0.0, reach, 4))
    if kind == "sweep":
        steps = np.linspace(0.0, float(rng.choice([-1.0, 1.0])) * between(rng, 0.6, 1.1), 4) + 0.06 * steps
    pitches = np.clip(start * 2 ** (steps - steps.mean()), 250.0, 7000.0)
    return Syllable(
        kind=kind,
        seconds=octaves(rng, 0.045, 0.19),
        pitches=tuple(float(pitch) for pitch in pitches),
        loudness=tuple(float(level) for level in rng.uniform(0.35, 1.0, 4)),
        rate=octaves(rng, 30.0, 110.0),
        depth=between(rng, 0.08, 0.3),
        noisiness=between(rng, 0.02, 0.12) if kind != "rasp" else between(rng, 0.5, 0.9),
    )


def through_throat(signal: Signal, bird: Throat) -> Signal:
    """Two broad formants over a floor."""
    frequency = spectrum_of(len(signal))
    first, second = bird.formants
    hills = bump(frequency, first, bird.sharpness) + 0.7 * bump(frequency, second, bird.sharpness)
    return through(signal, 0.08 + hills)


def sing(kind: Syllable, bird: Throat, rng: Generator) -> Signal:
    """One rendition of a syllable: 30 to 250 ms."""
    seconds = float(np.clip(kind.seconds * bird.tempo * wobble(rng, 0.1), 0.03, 0.25))
    n = samples_in(seconds)
    points = np.array(kind.pitches) * wobble(rng, 0.04) * np.exp(0.03 * rng.standard_normal(4))
    pitch = contour(points * (bird.pitch if kind.kind in ("stack", "rasp") else bird.pitch**0.5), n)
    pitch = pitch * (1 + 0.004 * drift(rng, n, 0.01))
    time = np.arange(n) / RATE
    beat = 2 * np.pi * kind.rate * wobble(rng, 0.05) * time + rng.uniform(0, 2 * np.pi)
    if kind.kind == "stack":
        voice = through_throat(harmonics(pitch, 1 / np.arange(1, 21) ** 0.4), bird)
    elif kind.kind == "rasp":
        rough = noise(rng, n) * kind.noisiness + (1 - kind.noisiness) * harmonics(pitch, np.ones(20))
        voice = through_throat(rough * (1 + 0.8 * np.sin(beat)), bird)
    elif kind.kind == "trill":
        voice = harmonics(pitch * 2 ** (kind.depth * np.sin(beat)), [1.0, 0.12, 0.03])
    elif kind.kind == "double":
        voice = harmonics(pitch, [1.0, 0.5, 0.2]) + 0.7 * harmonics(pitch * (1.5 + kind.depth), [1.0, 0.3])
    else:
        voice = harmonics(pitch, [1.0, 0.1 + kind.depth / 3, 0.04])
    level = contour(np.array(kind.loudness) * np.exp(0.3 * rng.standard_normal(4)), n)
    breath = 0.3 * kind.noisiness * band(noise(rng, n), float(np.median(pitch)), 0.8)
    return (unit_power(voice) + breath) * level * swell(n, 0.006, 0.015)


# --- calls ------------------------------------------------------------------------------------------------
# A call is a function of the individual's throat and of what changes from time to time.

Call = Callable[[Throat, Generator], Signal]


def _span(bird: Throat, rng: Generator, seconds: float, spread: float = 0.15) -> int:
    return samples_in(float(np.clip(seconds * bird.tempo * wobble(rng, spread), 0.08, 1.0)))


def _pitch(bird: Throat, rng: Generator, points: Sequence[float], n: int, spread: float = 0.04) -> Signal:
    curve = contour(np.array(points) * bird.pitch * wobble(rng, spread), n)
    return curve * (1 + 0.006 * drift(rng, n, 0.015))


def _series(bird: Throat, rng: Generator, count: int, gap: float, one: Callable[[], Signal]) -> Signal:
    parts: list[Signal] = []
    for _ in range(count):
        parts += [one() * wobble(rng, 0.15), np.zeros(samples_in(gap * bird.tempo * wobble(rng, 0.12)))]
    return np.concatenate(parts[:-1])[: samples_in(1.0)]


@dataclass(frozen=True)
class Note:
    """A single voiced call: its length, its pitch in Hz evenly spaced in time, its harmonics, and its ends."""

    seconds: float
    pitches: Sequence[float]
    weights: Sequence[float] | Signal
    attack: float
    release: float
    throat: bool = True  # whether the formants of the throat shape it
    spread: float = 0.04  # of the pitch from time to time

    def __call__(self, bird: Throat, rng: Generator) -> Signal:
        n = _span(bird, rng, self.seconds)
        voice = harmonics(_pitch(bird, rng, self.pitches, n, self.spread), self.weights)
        return (through_throat(voice, bird) if self.throat else voice) * swell(n, self.attack, self.release)


NOTES = {
    "distance": Note(0.26, [560, 640, 600, 420], np.ones(16), 0.02, 0.06),
    "tet": Note(0.1, [430, 500, 440], np.ones(12), 0.02, 0.04),
    "thuk": Note(0.09, [900, 480, 330], np.ones(10), 0.004, 0.06),
    "chirp_down": Note(0.16, [5200, 4300, 3000, 2100], [1.0, 0.2, 0.1], 0.008, 0.05, throat=False),
    "chirp_up": Note(0.16, [2100, 2700, 3900, 5000], [1.0, 0.2, 0.1], 0.02, 0.02, throat=False),
    "whine": Note(0.6, [1300, 1700, 1450, 1600, 1200], [1.0, 0.6, 0.3, 0.15], 0.08, 0.15, throat=False, spread=0.06),
    "peep": Note(0.11, [3400, 4600, 3900, 3000], [1.0, 0.25], 0.01, 0.03, throat=False),
}


def tet_series(bird: Throat, rng: Generator) -> Signal:
    return _series(bird, rng, int(rng.integers(3, 6)), 0.07, lambda: NOTES["tet"](bird, rng))


def begging(bird: Throat, rng: Generator) -> Signal:
    return _series(bird, rng, int(rng.integers(2, 5)), 0.08, lambda: NOTES["peep"](bird, rng))


def wsst(bird: Throat, rng: Generator) -> Signal:
    n = _span(bird, rng, 0.35)
    beat = 1 + 0.5 * np.sin(2 * np.pi * 38 * bird.tempo * np.arange(n) / RATE)
    return through_throat(noise(rng, n), bird) * beat * swell(n, 0.05, 0.15)


def rasp(bird: Throat, rng: Generator) -> Signal:
    n = _span(bird, rng, 0.3)
    rough = harmonics(_pitch(bird, rng, [310, 340, 290], n), np.ones(22)) + 2.0 * noise(rng, n)
    return through_throat(rough, bird) * swell(n, 0.03, 0.08)


def whistle(bird: Throat, rng: Generator) -> Signal:
    n = _span(bird, rng, 0.5)
    return tone(_pitch(bird, rng, [3300, 3350, 3300], n)) * swell(n, 0.05, 0.1)


def distress(bird: Throat, rng: Generator) -> Signal:
    n = _span(bird, rng, 0.45)
    shake = 1 + 0.06 * np.sin(2 * np.pi * 55 * np.arange(n) / RATE)
    scream = harmonics(_pitch(bird, rng, [1500, 2300, 2500, 1700], n) * shake, [1.0, 0.9, 0.7, 0.4])
    return through_throat(scream + 0.3 * noise(rng, n), bird) * swell(n, 0.02, 0.08)


def nest_call(bird: Throat, rng: Generator) -> Signal:
    def knock() -> Signal:
        n = _span(bird, rng, 0.08)
        return band(noise(rng, n), 900 * bird.pitch, 0.35) * swell(n, 0.01, 0.04) ** 2

    return _series(bird, rng, int(rng.integers(4, 8)), 0.05, knock)


def chatter(bird: Throat, rng: Generator) -> Signal:
    n = _span(bird, rng, 0.7)
    pulse = np.sin(np.pi * 13 * bird.tempo * wobble(rng, 0.06) * np.arange(n) / RATE) ** 6
    return band(noise(rng, n), 3600 * bird.pitch, 0.5) * smooth(pulse, 20) * swell(n, 0.03, 0.05)


CALLS: dict[str, Call] = {
    "distance": NOTES["distance"],
    "begging": begging,
    "wsst": wsst,
    "thuk": NOTES["thuk"],
    "whine": NOTES["whine"],
    "chirp_down": NOTES["chirp_down"],
    "tet": NOTES["tet"],
    "rasp": rasp,
    "whistle": whistle,
    "distress": distress,
    "chirp_up": NOTES["chirp_up"],
    "nest": nest_call,
    "tet_series": tet_series,
    "chatter": chatter,
}


def call(name: str, bird: Throat, rng: Generator) -> Signal:
    """One call of an individual: 0.1 to 1 s."""
    return unit_power(CALLS[name](bird, rng))
