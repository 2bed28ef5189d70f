"""How clips of one class vary: the softest and the loudest, the least and the most dynamic, the shortest and longest.

From the clips of the largest class, up to `MOST` of them drawn at random. Level is the root mean square in dB of full
scale, dynamic range the index of `earmark corpus describe`, which is low for noise that never pauses.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark import audio
from earmark.corpora.describe import RATE, dynamic_range_index
from earmark.errors import EarmarkError, InputError
from earmark.report.content import CloseUp
from earmark.tables import NumberFormat
from earmark.wording import counted

MOST = 60
_FLOOR = 1e-10
_SHORT = NumberFormat(3, significant=True)


class Excerpt(NamedTuple):
    """A clip, and what is said of it."""

    title: str
    samples: NDArray[Any]
    rate: int


class Excerpts(NamedTuple):
    """Three pairs of clips of one class."""

    label: str
    subset: str
    clips: int
    pairs: tuple[tuple[Excerpt, Excerpt], ...]


class _Measured(NamedTuple):
    samples: NDArray[Any]
    rate: int
    level: float
    range: float
    seconds: float


def find_excerpts(item: CloseUp, seed: int = 0) -> Excerpts:
    """The pairs of the largest class that can be read; InputError where the sounds cannot be had."""
    if item.fetch is None:
        raise InputError(f"The recordings of {item.subset} cannot be opened from here: there is nothing to draw.")
    sizes = Counter(label for label in item.labels if label)
    if not sizes:
        raise InputError(f"No clip of {item.subset} has a label: there is no class to look at.")
    (label, count), *_ = sizes.most_common(1)
    rows = np.flatnonzero([own == label for own in item.labels])
    if len(rows) > MOST:
        rows = np.sort(np.random.default_rng(seed).choice(rows, MOST, replace=False))
    heard = [one for row in rows.tolist() if (one := _measure(item, row)) is not None]
    if len(heard) < 2:
        raise InputError(f"Fewer than two clips of {label!r} in {item.subset} can be read: nothing can be compared.")
    pairs = []
    for name, low, high, unit in (
        ("level", "softest", "loudest", "dB"),
        ("range", "least dynamic", "most dynamic", "dB"),
        ("seconds", "shortest", "longest", "s"),
    ):
        ends = min(heard, key=lambda one: getattr(one, name)), max(heard, key=lambda one: getattr(one, name))
        made = [
            Excerpt(f"{word} ({_SHORT.text(getattr(one, name))} {unit})", one.samples, one.rate)
            for word, one in zip((low, high), ends, strict=True)
        ]
        pairs.append((made[0], made[1]))
    return Excerpts(label, item.subset or item.suite, count, tuple(pairs))


def _measure(item: CloseUp, row: int) -> _Measured | None:
    assert item.fetch is not None
    try:
        samples, rate = item.fetch(row)
    except (EarmarkError, KeyError, OSError):
        return None
    mono = np.asarray(samples, np.float64).ravel()
    if not len(mono):
        return None
    level = 10.0 * np.log10(float(np.mean(mono**2)) + _FLOOR)
    own = audio.resample(mono.astype(np.float32), rate, RATE)
    return _Measured(mono, rate, level, dynamic_range_index(own), len(mono) / rate)


def excerpt_sentences(found: Excerpts) -> list[str]:
    """What the figure shows."""
    return [
        f"How clips of one class vary: {found.label} of {found.subset}, {counted(found.clips, 'clip')}. Spectrograms "
        "of 70 dB, those of a row on one time axis (black: the clip has ended); the dynamic range is that of `earmark "
        "corpus describe`."
    ]
