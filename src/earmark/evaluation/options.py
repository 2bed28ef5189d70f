"""How to evaluate: everything that is not data. One object serves Python, flags and config files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from earmark.errors import UsageError
from earmark.geometry import spaces

HUB_K = 5


@dataclass(frozen=True)
class Options:
    """Everything about an evaluation that is not data."""

    distance: tuple[str, ...] = ("cosine",)
    metrics: tuple[str, ...] | None = None
    k: tuple[int, ...] = (1, 5)
    hub_k: int = HUB_K
    permutations: int = 0
    bootstrap: int = 0
    across_groups: bool = False
    min_class_size: int = 2
    ties: spaces.Ties = "average"
    seed: int = 0
    memory: int = 2 << 30
    threads: int = 1
    per_point: bool = False
    progress: bool = False

    def __post_init__(self) -> None:
        for distance in self.distance:
            if distance not in spaces.DISTANCES:
                raise UsageError(f"Unknown distance {distance!r}: choose from {', '.join(spaces.DISTANCES)}.")
        if not self.distance:
            raise UsageError(f"No distance was asked for: choose from {', '.join(spaces.DISTANCES)}.")
        if self.ties not in ("average", "ordinal"):
            raise UsageError(f"Unknown way with ties {self.ties!r}: choose average or ordinal.")
        for name in ("permutations", "bootstrap"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} cannot be negative, as {getattr(self, name)} is.")
        for name in ("min_class_size", "hub_k"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}.")

    def fingerprint(self) -> str:
        """What of the options a value depends on: not threads, memory or progress, which change no result."""
        skipped = {"memory", "threads", "progress", "per_point", "distance", "metrics", "k"}
        return repr(sorted((name, value) for name, value in vars(self).items() if name not in skipped))


def as_names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def refuse_unbuilt(correct: str | Sequence[str], device: str) -> None:
    """Say plainly what this version does not do."""
    for name in as_names(correct):
        if name != "none":
            raise UsageError(f"Hubness correction {name!r} is not in this version of Earmark: use none.")
    if device not in ("auto", "cpu"):
        raise UsageError(f"Device {device!r} is not in this version of Earmark: use auto or cpu.")


def byte_count(memory: str | int) -> int:
    """A memory budget in bytes: 2GB, 500MB, 1.5GiB or a number of bytes."""
    if isinstance(memory, int):
        amount = memory
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", memory.lower())
        if not match:
            raise UsageError(f"Memory {memory!r} is not understood: write it like 2GB or 500MB.")
        amount = int(float(match[1]) * (1024 if match[3] else 1000) ** " kmgt".index(match[2] or " "))
    if amount < 1 << 20:
        raise UsageError(f"A memory budget of {amount} bytes is too small: give at least 1MB.")
    return amount
