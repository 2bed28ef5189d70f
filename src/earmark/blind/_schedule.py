"""In which order a set is heard: shuffled, with canaries among the clips and some things heard twice.

    clips 0 .. N-1, each once     some of them a second time     canaries, each twice
    ------------------------------ shuffled together ------------------------------
    cut at random places, where the model gets a new cell that has heard nothing

A model that answers by what it heard before (a counter, an average over the clips so far, the order) answers the second
time differently, above all where a new cell lies between. The order comes from a seed that the job alone has; the
canaries from the host's secret.

What remains. A model may keep what it heard inside one cell and bend its answers by less than the tolerance, or answer
known sounds from memory and adapt to all others: with the pairs on both sides of a new cell it must then be lucky, or
leave itself a note in the machine's cache of files, which cells share. What it could gain is what any model could that
learns from the unlabelled sounds of a set. Labels it cannot learn: none enter the cell, and the order that it sees is
independent of them.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Schedule", "canary", "make_schedule", "seed_of"]

CANARIES = 6
SHARE_AGAIN, LEAST_AGAIN, MOST_AGAIN = 0.02, 6, 60
CLIPS_A_CELL = 1500


class Schedule(NamedTuple):
    """What is heard one after the other: numbers below `clips` are clips, the others canaries."""

    order: tuple[int, ...]
    clips: int
    renewals: frozenset[int]  # places before which the cell is renewed


def seed_of(secret: bytes, *words: str) -> int:
    """A number that only who has the secret can know."""
    return int.from_bytes(hmac.new(secret, "\0".join(words).encode(), hashlib.sha256).digest(), "big")


def make_schedule(clips: int, seed: int) -> Schedule:
    """The order for a set of so many clips."""
    random = np.random.default_rng(seed)
    again = min(clips, MOST_AGAIN, max(LEAST_AGAIN, round(SHARE_AGAIN * clips)))
    repeated = random.choice(clips, again, replace=False)
    canaries = np.repeat(np.arange(clips, clips + CANARIES), 2)
    order = random.permutation(np.concatenate([np.arange(clips), repeated, canaries]))
    cuts = 1 + clips // CLIPS_A_CELL
    # One cut in each part, in its middle half: things heard twice then lie on both sides of one.
    width = len(order) / (cuts + 1)
    places = [round(width * (cut + random.uniform(-0.25, 0.25))) for cut in range(1, cuts + 1)]
    return Schedule(tuple(int(item) for item in order), clips, frozenset(places))


def canary(number: int, secret: bytes, name: str, rate: int) -> NDArray[np.float32]:
    """A sound that is in no set: a few gliding partials in noise, with syllables, peak 1."""
    random = np.random.default_rng(seed_of(secret, "canary", name, str(number)))
    seconds = random.uniform(0.3, 2.5)
    time = np.arange(max(1, round(seconds * rate))) / rate
    pitch = random.uniform(90, 300) * 2 ** (random.uniform(-0.5, 0.5) * time / seconds)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    tone = sum(random.uniform(0.2, 1) / part * np.sin(part * phase) for part in range(1, 8))
    syllables = 0.1 + np.abs(np.sin(np.pi * random.uniform(2, 6) * time + random.uniform(0, np.pi)))
    sound = tone * syllables + random.uniform(0.01, 0.1) * random.standard_normal(len(time))
    return np.asarray(sound / np.abs(sound).max(), np.float32)
