"""How to evaluate: everything that is not data. One object serves Python, flags and config files."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from earmark.errors import UsageError
from earmark.geometry import spaces
from earmark.geometry.corrections import Correction

HUB_K = 5
INTERVALS = ("jackknife", "bootstrap", "none")
RESAMPLES = 300
LEAST = {"permutations": 0, "bootstrap": 0, "min_class_size": 1, "hub_k": 1, "seed": 0, "threads": 1}


@dataclass(frozen=True)
class Options:
    """Everything about an evaluation that is not data."""

    distance: tuple[str, ...] = ("cosine",)
    correct: tuple[Correction, ...] = (Correction(),)
    metrics: tuple[str, ...] | None = None
    k: tuple[int, ...] = (1, 5)
    hub_k: int = HUB_K
    permutations: int = 0
    intervals: str = "jackknife"
    bootstrap: int = 0
    across_groups: bool = False
    min_class_size: int = 2
    ties: spaces.Ties = "average"
    seed: int = 0
    memory: int = 2 << 30
    threads: int = 1
    device: str = "cpu"
    per_point: bool = False
    per_unit: bool = False
    progress: bool = False

    def __post_init__(self) -> None:
        for distance in self.distance:
            if distance not in spaces.DISTANCES:
                raise UsageError(f"Unknown distance {distance!r}: choose from {', '.join(spaces.DISTANCES)}.")
        if not self.distance:
            raise UsageError(f"No distance was asked for: choose from {', '.join(spaces.DISTANCES)}.")
        if self.intervals not in INTERVALS:
            raise UsageError(f"Unknown kind of intervals {self.intervals!r}: choose {', '.join(INTERVALS)}.")
        if self.ties not in ("average", "ordinal"):
            raise UsageError(f"Unknown way with ties {self.ties!r}: choose average or ordinal.")
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", str(self.device)):
            raise UsageError(f"Unknown device {self.device!r}: choose auto, cpu or cuda.")
        for name, least in LEAST.items():
            object.__setattr__(self, name, whole(name, getattr(self, name), least))

    def fingerprint(self) -> str:
        """What of the options a value depends on: not threads, memory, device or progress, which change no result."""
        skipped = {
            "memory",
            "threads",
            "device",
            "progress",
            "per_point",
            "per_unit",
            "distance",
            "correct",
            "metrics",
            "k",
        }
        return repr(sorted((name, value) for name, value in vars(self).items() if name not in skipped))


def kind_of_intervals(intervals: str | None, bootstrap: int) -> tuple[str, int]:
    """The kind of intervals asked for, and the number of resamples: naming a number of resamples asks for them."""
    bootstrap = whole("bootstrap", bootstrap, 0)
    if intervals is None:
        intervals = "bootstrap" if bootstrap else "jackknife"
    if intervals == "bootstrap":
        return intervals, bootstrap or RESAMPLES
    if bootstrap:
        raise UsageError(f'bootstrap={bootstrap} goes with intervals="bootstrap", not with {intervals!r}.')
    return intervals, 0


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`, whatever kind of integer it is; True and False are none."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise UsageError(f"{name} must be a whole number, not {value!r}.") from None
    if number < least:
        raise UsageError(f"{name} must be at least {least}, not {number}.")
    return number


def as_names(given: Any, what: str = "names") -> tuple[str, ...]:
    """One name or several, each once."""
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [None]
    if not all(isinstance(name, str) for name in names):
        raise UsageError(f"{what} must be a name or a list of names, not {given!r}.")
    return tuple(dict.fromkeys(names))


def as_counts(given: Any, what: str) -> tuple[int, ...]:
    """One whole number or several, each at least 1."""
    numbers = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if not numbers:
        raise UsageError(f"{what} is empty: give at least one number.")
    return tuple(dict.fromkeys(whole(what, number, 1) for number in numbers))


def byte_count(memory: Any) -> int:
    """A memory budget in bytes: 2GB, 500MB, 1.5GiB or a number of bytes."""
    if not isinstance(memory, str):
        amount = whole("memory", memory, 0)
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", memory.lower())
        if not match:
            raise UsageError(f"Memory {memory!r} is not understood: write it like 2GB or 500MB.")
        amount = int(float(match[1]) * (1024 if match[3] else 1000) ** " kmgt".index(match[2] or " "))
    if amount < 1_000_000:
        raise UsageError(f"A memory budget of {amount} bytes is too small: give at least 1MB.")
    return amount
