"""Environmental events. Each is a function of the place, of the moment, and of a length in samples.

`place` draws what stays the same throughout a recording (which engine, which dog, how heavy the rain);
`moment` draws what differs between two clips cut from it. Both streams are fresh for every clip.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from earmark.corpora.synth._sources import (
    RATE,
    Signal,
    arrivals,
    band,
    beats,
    between,
    contour,
    decay,
    drift,
    glottal,
    harmonics,
    low_pass,
    modes,
    noise,
    octaves,
    resonances,
    samples_in,
    smooth,
    spectrum_of,
    strikes,
    swell,
    through,
    tone,
    unit_power,
    wobble,
)

Event = Callable[[Generator, Generator, int], Signal]


def _gains(rng: Generator, count: int, spread: float) -> Signal:
    return np.exp(spread * rng.standard_normal(count))


def _click(rng: Generator, seconds: float, centre: float, width: float) -> Signal:
    n = samples_in(seconds)
    return unit_power(band(rng.standard_normal(n), centre, width)) * decay(n, seconds)


def _repeated(rng: Generator, n: int, period: float, jitter: float, spread: float, sound: Signal) -> Signal:
    """A sound on every beat, each time with another gain."""
    at = beats(rng, n, period, jitter)
    return strikes(n, at, _gains(rng, len(at), spread), sound)


# --- weather, water, fire ---------------------------------------------------------------------------------


def rain(place: Generator, moment: Generator, n: int) -> Signal:
    density, drop = octaves(place, 60, 900), octaves(place, 1800, 5000)
    at = arrivals(moment, n, density)
    drops = strikes(n, at, _gains(moment, len(at), 0.8), _click(place, 0.008, drop, 0.5))
    return unit_power(drops) + between(place, 0.2, 0.8) * noise(moment, n, between(place, 0, 3))


def wind(place: Generator, moment: Generator, n: int) -> Signal:
    gusts: Signal = np.exp(between(place, 0.4, 0.9) * drift(moment, n, octaves(place, 0.2, 0.7)))
    body = low_pass(noise(moment, n, 3.0), octaves(place, 200, 700), 2.0)
    howl = band(noise(moment, n), octaves(place, 350, 900), 0.12)
    return unit_power(body) * gusts + between(place, 0.05, 0.5) * unit_power(howl) * gusts**2


def waves(place: Generator, moment: Generator, n: int) -> Signal:
    period = octaves(place, 0.9, 2.2)
    turn = 2 * np.pi * (np.arange(n) / (RATE * period) + moment.uniform())
    surf = (0.5 + 0.5 * np.sin(turn)) ** 2
    return (0.1 + surf) * noise(moment, n, between(place, 2.5, 5.0)) + 0.35 * surf**3 * noise(moment, n)


def brook(place: Generator, moment: Generator, n: int) -> Signal:
    low, high = octaves(place, 350, 700), octaves(place, 1200, 2600)
    total = 0.12 * noise(moment, n, 4.0)
    for _ in range(5):
        at = arrivals(moment, n, octaves(place, 9, 22))
        size, pitch = samples_in(0.045), octaves(moment, low, high)
        bubble = tone(contour([pitch, pitch * 1.3], size)) * decay(size, 0.05)
        total += strikes(n, at, _gains(moment, len(at), 0.6), bubble)
    return total


def thunder(place: Generator, moment: Generator, n: int) -> Signal:
    rumble = low_pass(noise(moment, n, 6.0), octaves(place, 90, 260), 2.0)
    rumble *= np.exp(0.8 * drift(moment, n, 0.12))
    crack = noise(moment, n, 3.0) * decay(n, between(place, 0.4, 1.4))
    return unit_power(rumble) * swell(n, 0.05, 0.8) + between(place, 0.1, 0.7) * unit_power(crack)


def fire(place: Generator, moment: Generator, n: int) -> Signal:
    total = between(place, 0.05, 0.2) * noise(moment, n, 5.0)
    for _ in range(4):
        at = arrivals(moment, n, octaves(place, 4, 16))
        snap = _click(moment, octaves(moment, 0.004, 0.03), octaves(moment, 1200, 5500), 0.6)
        total += strikes(n, at, _gains(moment, len(at), 1.0), snap)
    return total


# --- machines ---------------------------------------------------------------------------------------------


def engine(place: Generator, moment: Generator, n: int) -> Signal:
    speed = octaves(place, 22, 70) * (1 + 0.03 * drift(moment, n, 0.4)) * wobble(moment, 0.05)
    firing = harmonics(speed, place.uniform(0.2, 1.0, 40) / np.arange(1, 41) ** 0.6)
    return unit_power(low_pass(firing, octaves(place, 500, 1600), 1.0)) + 0.25 * noise(moment, n, 4.0)


def aeroplane(place: Generator, moment: Generator, n: int) -> Signal:
    whine = np.full(n, octaves(place, 900, 2600)) * contour([1.03, 0.97], n) * wobble(moment, 0.02)
    roar = low_pass(noise(moment, n, 3.0), octaves(place, 600, 1800), 1.0)
    return unit_power(roar) * np.exp(0.15 * drift(moment, n, 0.3)) + between(place, 0.1, 0.5) * tone(whine)


def vacuum(place: Generator, moment: Generator, n: int) -> Signal:
    motor = harmonics(np.full(n, octaves(place, 190, 420)) * wobble(moment, 0.01), place.uniform(0, 1, 14))
    air = band(noise(moment, n), octaves(place, 1400, 3800), 1.2)
    return unit_power(air) + between(place, 0.2, 0.9) * unit_power(motor)


def saw(place: Generator, moment: Generator, n: int) -> Signal:
    period = octaves(place, 0.28, 0.6)
    turn = np.arange(n) / (RATE * period * wobble(moment, 0.05)) + moment.uniform()
    back = between(place, 0.3, 0.7)
    stroke = smooth(np.abs(np.sin(np.pi * turn)) * np.where(np.mod(turn, 2) < 1, 1.0, back), 80)
    teeth = 1 + 0.7 * np.sin(2 * np.pi * np.cumsum(octaves(place, 60, 160) * (0.4 + stroke)) / RATE)
    return band(noise(moment, n), octaves(place, 2000, 4500), 0.6) * stroke * teeth


def siren(place: Generator, moment: Generator, n: int) -> Signal:
    low, reach, period = octaves(place, 450, 750), between(place, 0.6, 1.1), octaves(place, 0.5, 2.5)
    turn = 2 * np.pi * (np.arange(n) / (RATE * period) + moment.uniform())
    sweep = 0.5 - 0.5 * np.cos(turn) if place.uniform() < 0.6 else (np.sin(turn) > 0).astype(np.float64)
    return harmonics(low * 2 ** (reach * smooth(sweep, 60)), [1.0, 0.5, 0.35, 0.2, 0.1])


def alarm(place: Generator, moment: Generator, n: int) -> Signal:
    pitch, period = octaves(place, 1400, 3400), octaves(place, 0.18, 0.6)
    turn = np.mod(np.arange(n) / (RATE * period) + moment.uniform(), 1.0)
    gate = smooth((turn < between(place, 0.35, 0.65)).astype(np.float64), 25)
    return harmonics(np.full(n, pitch), [1.0, 0.05, 0.3]) * gate


def telephone(place: Generator, moment: Generator, n: int) -> Signal:
    rate, pitch = octaves(place, 15, 28), octaves(place, 900, 1700)
    at = beats(moment, n, 1 / rate, 0.03)
    ring = modes(samples_in(0.15), [pitch, pitch * 1.52, pitch * 2.7], [0.12, 0.1, 0.05], [1.0, 0.7, 0.5])
    turn = np.mod(np.arange(n) / (RATE * between(place, 1.0, 1.6)) + moment.uniform(), 1.0)
    return strikes(n, at, _gains(moment, len(at), 0.1), ring) * smooth((turn < 0.6).astype(np.float64), 200)


def horn(place: Generator, moment: Generator, n: int) -> Signal:
    root = octaves(place, 220, 480)
    pitch = np.full(n, root) * (1 + 0.003 * drift(moment, n, 0.2))
    ratios = (1.0, 1.26, 1.5)[: 2 + (root > 300)]
    chord = sum(harmonics(pitch * ratio, 1 / np.arange(1, 9) ** 0.7) for ratio in ratios)
    sounding = swell(n, 0.03, 0.1) * np.where(np.arange(n) < n * between(moment, 0.5, 0.95), 1.0, 0.0)
    return chord * smooth(sounding, 150)


# --- animals ----------------------------------------------------------------------------------------------


def bark(place: Generator, moment: Generator, n: int) -> Signal:
    pitch, first, second = octaves(place, 280, 620), octaves(place, 550, 1000), octaves(place, 1300, 2400)
    seconds, period = between(place, 0.12, 0.22), between(place, 0.35, 0.7)
    size = samples_in(seconds * 1.2)
    curve = contour(np.array([0.75, 1.1, 1.0, 0.7]) * pitch * wobble(moment, 0.05), size)
    rough = glottal(curve, 0.55) + 0.35 * noise(moment, size)
    centres, widths = np.array([[first, second, 3400.0]]), np.array([[160.0, 260.0, 500.0]])
    mouth = resonances(spectrum_of(size), centres, widths)[0]
    one = unit_power(through(rough, mouth)) * swell(size, 0.015, 0.09)
    return _repeated(moment, n, period, 0.12, 0.2, one)


def crow(place: Generator, moment: Generator, n: int) -> Signal:
    pitch, centre, period = octaves(place, 330, 560), octaves(place, 1200, 2000), between(place, 0.5, 0.9)
    size = samples_in(between(place, 0.25, 0.4))
    curve = contour(np.array([0.85, 1.05, 1.0, 0.8]) * pitch * wobble(moment, 0.04), size)
    caw = harmonics(curve, np.ones(18)) * (1 + 0.5 * noise(moment, size, 3.0))
    one = unit_power(band(caw, centre, 0.5)) * swell(size, 0.03, 0.08)
    return _repeated(moment, n, period, 0.08, 0.15, one)


def cricket(place: Generator, moment: Generator, n: int) -> Signal:
    pitch, period = octaves(place, 3400, 5600), between(place, 0.3, 0.8)
    pulses, rate = int(place.integers(2, 6)), octaves(place, 25, 45)
    size = samples_in(pulses / rate)
    chirp = tone(np.full(size, pitch * wobble(moment, 0.005)))
    chirp *= np.sin(np.pi * rate * np.arange(size) / RATE) ** 2
    return _repeated(moment, n, period, 0.04, 0.15, chirp) + 0.02 * noise(moment, n)


def fly(place: Generator, moment: Generator, n: int) -> Signal:
    wings = octaves(place, 140, 320) * (1 + 0.06 * drift(moment, n, 0.15))
    near = np.exp(between(place, 0.3, 0.8) * drift(moment, n, 0.35))
    return harmonics(wings, 1 / np.arange(1, 25) ** between(place, 0.5, 1.0)) * near


def frog(place: Generator, moment: Generator, n: int) -> Signal:
    rate, centre, period = octaves(place, 28, 60), octaves(place, 500, 1500), between(place, 0.4, 0.9)
    size = samples_in(between(place, 0.18, 0.35))
    pulse = modes(samples_in(0.03), [centre, centre * 2.1], [0.03, 0.02], [1.0, 0.5])
    croak = _repeated(moment, size, 1 / rate, 0.02, 0.1, pulse) * swell(size, 0.08, 0.05)
    return _repeated(moment, n, period, 0.06, 0.2, croak)


# --- things -----------------------------------------------------------------------------------------------


def clock(place: Generator, moment: Generator, n: int) -> Signal:
    pitch, period = octaves(place, 1800, 4500), float(place.choice([0.2, 0.25, 0.5]))
    size = samples_in(0.06)
    tick = modes(size, [pitch, pitch * 1.63, pitch * 0.4], [0.025, 0.015, 0.05], [1.0, 0.6, 0.4])
    at = beats(moment, n, period, 0.004)
    return strikes(n, at, np.where(np.arange(len(at)) % 2, 1.0, between(place, 0.5, 0.9)), tick)


def footsteps(place: Generator, moment: Generator, n: int) -> Signal:
    floor, crunch, period = octaves(place, 90, 240), between(place, 0.05, 0.9), between(place, 0.38, 0.65)
    size = samples_in(0.16)
    heel = modes(size, [floor, floor * 2.3], [0.09, 0.05], [1.0, 0.4])
    sole = unit_power(band(noise(moment, size), octaves(place, 900, 3500), 0.8)) * swell(size, 0.03, 0.09)
    return _repeated(moment, n, period, 0.05, 0.25, heel + 0.4 * crunch * sole)


def knock(place: Generator, moment: Generator, n: int) -> Signal:
    wood, period = octaves(place, 130, 380), between(place, 0.14, 0.3)
    size = samples_in(0.18)
    pitches = [wood, wood * 1.8, wood * 3.1, wood * 4.7]
    body = modes(size, pitches, [0.12, 0.08, 0.05, 0.03], [1.0, 0.7, 0.5, 0.3])
    start = samples_in(between(moment, 0.02, 0.35))
    count = int(moment.integers(3, 6))
    at = start + (np.arange(count) * period * RATE * wobble(moment, 0.06)).astype(np.int64)
    gains = _gains(moment, count, 0.15)
    tap = _click(moment, 0.006, 2500.0, 0.9)
    body[: len(tap)] += 0.3 * tap
    return strikes(n, at, gains, body)


def glass(place: Generator, moment: Generator, n: int) -> Signal:
    total = np.zeros(n)
    hit = samples_in(between(moment, 0.02, 0.3))
    crash = noise(moment, n - hit) * decay(n - hit, between(place, 0.15, 0.4))
    total[hit:] += 0.5 * band(crash, 4500, 0.8)
    low = octaves(place, 1800, 3200)
    for _ in range(9):
        pitch = octaves(moment, low, 7400)
        fading = [between(moment, 0.08, 0.3), 0.1]
        shard = modes(samples_in(0.25), [pitch, min(7600.0, pitch * 1.37)], fading, [1.0, 0.6])
        at = hit + (moment.exponential(0.22, 4) * RATE).astype(np.int64)
        total += strikes(n, at, 0.5 * _gains(moment, 4, 0.6), shard)
    return total


def bell(place: Generator, moment: Generator, n: int) -> Signal:
    pitch, ring = octaves(place, 320, 1100), between(place, 0.8, 2.5)
    ratios = np.array([0.5, 1.0, 1.19, 1.5, 2.0, 2.66, 3.9]) * np.exp(0.01 * place.standard_normal(7))
    body = modes(n, list(pitch * ratios), list(ring / np.sqrt(ratios)), list(place.uniform(0.3, 1.0, 7)))
    return _repeated(moment, n, between(place, 0.6, 1.4), 0.03, 0.15, body)


def typing(place: Generator, moment: Generator, n: int) -> Signal:
    rate, centre = octaves(place, 5, 11), octaves(place, 1500, 4000)
    at = arrivals(moment, n, rate)
    press = _click(place, 0.018, centre, 0.5)
    release = at + samples_in(between(place, 0.05, 0.1))
    return strikes(n, at, _gains(moment, len(at), 0.3), press) + strikes(
        n, release, 0.4 * _gains(moment, len(at), 0.3), press
    )


def clapping(place: Generator, moment: Generator, n: int) -> Signal:
    period, centre = between(place, 0.22, 0.45), octaves(place, 900, 2200)
    total = np.zeros(n)
    for _ in range(int(place.integers(1, 5))):
        at = beats(moment, n, period * wobble(moment, 0.04), 0.05)
        clap = _click(moment, octaves(moment, 0.03, 0.08), centre * wobble(moment, 0.15), 0.6)
        total += strikes(n, at, _gains(moment, len(at), 0.25), clap)
    return total


EVENTS: dict[str, Event] = {
    "rain": rain, "engine": engine, "wind": wind, "footsteps": footsteps, "waves": waves, "door_knock": knock,
    "dog_bark": bark, "clock_tick": clock, "siren": siren, "cricket": cricket, "glass_break": glass, "fire": fire,
    "bell": bell, "crow": crow, "vacuum_cleaner": vacuum, "typing": typing, "frog": frog, "alarm": alarm,
    "thunder": thunder, "aeroplane": aeroplane, "clapping": clapping, "brook": brook, "telephone": telephone,
    "hand_saw": saw, "horn": horn, "fly": fly,
}  # fmt: skip
"""By label; the order is that of the class numbers."""


def event(name: str, place: Generator, moment: Generator) -> Signal:
    """One clip of 1 to 2 s cut from the recording that `place` describes."""
    n = samples_in(between(place, 1.0, 1.8) * wobble(moment, 0.04))
    return unit_power(EVENTS[name](place, moment, n))
