"""What varies without changing what a sound is: the reasons why equal labels do not mean equal samples.

A nuisance is a named function from a signal to a signal. Clips of one recording share its `Conditions`
(room, microphone, noise, level), so a neighbour from the same recording is easier to find than one from
another: that is what the across-groups protocol takes away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from earmark.corpora.synth._sources import (
    RATE,
    Signal,
    between,
    convolve,
    decay,
    harmonics,
    low_pass,
    noise,
    octaves,
    samples_in,
    stream,
    tilt,
    wobble,
)


@dataclass(frozen=True)
class Conditions:
    """How one recording was made. `key` seeds what must be the same in all its clips, such as the room."""

    key: str
    reverberation: float  # seconds for 60 dB
    distance: float  # share of the room in what is heard, 0 to 1
    colour: float  # tilt of microphone and place, dB per octave
    noise_slope: float  # fall of the background, dB per octave
    hum: float  # share of mains hum in the background, 0 to 1
    snr: float  # dB
    level: float  # dB below full scale


@dataclass(frozen=True)
class Speaker:
    """Who speaks: pitch, size of the vocal tract, manner."""

    key: str
    pitch: float  # Hz
    melody: float  # spread of the pitch, as a share
    tract: float  # factor on all formants; above one for a shorter tract
    rate: float  # factor on speed
    breath: float  # noise in the voice, 0 to 1
    openness: float  # share of the cycle in which the folds are open
    brightness: float  # tilt of the voice, dB per octave


def draw_conditions(*keys: object, harshness: float = 1.0) -> Conditions:
    """The conditions of the recording that the keys name; `harshness` scales room, colour and noise."""
    rng = stream("conditions", *keys)
    return Conditions(
        key="/".join(map(str, keys)),
        reverberation=octaves(rng, 0.08, 0.35),
        distance=min(0.9, harshness * between(rng, 0.05, 0.5)),
        colour=harshness * between(rng, -2.5, 2.5),
        noise_slope=between(rng, 0.0, 6.0),
        hum=between(rng, 0.0, 0.6) if rng.uniform() < 0.3 else 0.0,
        snr=between(rng, 12.0, 34.0) / harshness,
        level=between(rng, -24.0, -3.0),
    )


def draw_speaker(*keys: object) -> Speaker:
    """The speaker that the keys name. Higher voices tend to have shorter tracts, with exceptions."""
    rng = stream("speaker", *keys)
    height = rng.standard_normal()
    return Speaker(
        key="/".join(map(str, keys)),
        pitch=float(np.clip(150.0 * np.exp(0.36 * height), 75.0, 330.0)) * wobble(rng, 0.06),
        melody=between(rng, 0.04, 0.16),
        tract=float(np.clip(np.exp(0.07 * height), 0.84, 1.22)) * wobble(rng, 0.03),
        rate=between(rng, 0.8, 1.25),
        breath=between(rng, 0.01, 0.2),
        openness=between(rng, 0.4, 0.65),
        brightness=between(rng, -3.0, 1.0),
    )


def loudness(signal: Signal, level: float) -> Signal:
    """Scale so that the peak lies `level` dB from full scale; silence stays silent."""
    peak = float(np.max(np.abs(signal), initial=0.0))
    return signal * (10 ** (level / 20) / peak) if peak > 0 else signal


def speed(signal: Signal, factor: float) -> Signal:
    """Play faster (factor above one) or slower, pitch included, as a tape does."""
    n = max(1, round(len(signal) / factor))
    soft = low_pass(signal, 0.45 * RATE / factor, 8.0) if factor > 1.0 else signal
    played: Signal = np.interp(np.arange(n) * factor, np.arange(len(soft)), soft)
    return played


def background(signal: Signal, rng: Generator, snr: float, slope: float = 3.0, hum: float = 0.0) -> Signal:
    """Add coloured noise, with some mains hum, `snr` dB below the power of the signal's louder half."""
    n = len(signal)
    power = float(np.partition(signal**2, n // 2)[n // 2 :].mean())
    bed = (1 - hum) * noise(rng, n, slope)
    if hum > 0:
        bed += hum * harmonics(np.full(n, 50.0), [1.0, 0.1, 0.6, 0.0, 0.3])
    return signal + bed * (math.sqrt(power) * 10 ** (-snr / 20))


def room(signal: Signal, key: str, reverberation: float, distance: float) -> Signal:
    """Put the sound in a small room: early echoes and a tail, the same for the same key; same length."""
    rng = stream("room", key)
    n = samples_in(min(reverberation, 0.4))
    tail = low_pass(rng.standard_normal(n), octaves(rng, 1500.0, 6000.0), 1.0) * decay(n, reverberation)
    echoes = rng.integers(samples_in(0.002), samples_in(0.03), 6)
    tail[np.minimum(echoes, n - 1)] += rng.uniform(-4.0, 4.0, 6)
    wet = convolve(signal, tail / np.sqrt(np.sum(tail**2)))
    return (1 - distance) * signal + distance * wet


def padding(signal: Signal, before: float, after: float) -> Signal:
    """Silence before and after, in seconds: where the sound lies in the clip is not what it is."""
    return np.concatenate([np.zeros(round(before * RATE)), signal, np.zeros(round(after * RATE))])


def recorded(signal: Signal, rng: Generator, where: Conditions, margin: float) -> Signal:
    """The sound as a recording holds it: offset, room, colour, background, level, in that order.

    `rng` draws what changes from clip to clip; up to `margin` seconds of background stand on either side.
    """
    placed = padding(signal, between(rng, 0.0, margin), between(rng, 0.0, margin))
    near = min(0.9, where.distance * wobble(rng, 0.25))  # whoever sounds moves about
    heard = room(placed, where.key, where.reverberation, near)
    heard = tilt(heard, where.colour + between(rng, -1.0, 1.0))
    heard = background(heard, rng, where.snr + between(rng, -5.0, 5.0), where.noise_slope, where.hum)
    return loudness(heard, min(-0.5, where.level + between(rng, -3.0, 3.0)))
