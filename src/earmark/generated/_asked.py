"""What is asked of generated sets, checked: metrics, k, corrections, distances, intervals; everything but the sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError, did_you_mean
from earmark.evaluation.options import as_names, byte_count, whole
from earmark.generated import metrics as rules
from earmark.generated._apart import check_bandwidth
from earmark.generated._gicdm import Work
from earmark.generated.balls import Reference
from earmark.generated.measure import Meter
from earmark.geometry import spaces
from earmark.workers import thread_count

Array = NDArray[Any]
Ints = NDArray[np.int64]

CORRECTIONS = ("none", "gicdm")
READINGS = ("both", "corrected", "literal")
INTERVALS = ("jackknife", "bootstrap", "none")
RESAMPLES = 300


@dataclass(frozen=True)
class Asked:
    """What was asked for, checked: everything but the sets."""

    names: tuple[str, ...]
    k: int | Mapping[str, int]
    corrections: tuple[str, ...]
    reading: str
    distances: tuple[str, ...]
    kind: str  # of intervals
    bootstrap: int
    seed: int
    cap: bool
    ties: spaces.Ties
    bandwidth: float | str
    work: Work

    @staticmethod
    def make(
        *, metrics: str | Sequence[str] | None, k: int | Mapping[str, int], correct: str | Sequence[str], reading: str,
        distance: str | Sequence[str], intervals: str | None, bootstrap: int | None, seed: int, cap: bool,
        ties: spaces.Ties, device: str, memory: str | int, threads: int | None, bandwidth: float | str = "real",
    ) -> Asked:  # fmt: skip
        names = rules.plan(metrics, rules.DEFAULT)
        corrections = _chosen(as_names(correct, "correct"), CORRECTIONS, "correction")
        (reading,) = _chosen((reading,), READINGS, "reading")
        spaces_asked = _chosen(as_names(distance, "distance"), spaces.DISTANCES, "distance")
        kind, bootstrap = _kind_of(intervals, bootstrap)
        work = Work(thread_count(threads), byte_count(memory), device)
        seed = whole("seed", seed, 0)
        bandwidth = check_bandwidth(bandwidth)
        return Asked(names, k, corrections, reading, spaces_asked, kind, bootstrap, seed, cap, ties, bandwidth, work)

    @property
    def wanted(self) -> list[tuple[str, str]]:
        return [(which, name) for which in self.corrections for name in _names(self.names, which, self.reading)]

    def meter(
        self, real: Reference, generated: Array, space: str, units: tuple[Ints, ...], *, shrink: bool = False
    ) -> Meter:
        """Every metric of a pair of sets; `units` are the clips or groups of their points."""
        return Meter(
            real, generated, self.names, self.k, space, self.work, correct="gicdm" in self.corrections, ties=self.ties,
            cap=self.cap, seed=self.seed, shrink=shrink, units=(units[0], units[1]), bandwidth=self.bandwidth,
        )  # fmt: skip


def _chosen(given: tuple[str, ...], known: tuple[str, ...], what: str) -> tuple[str, ...]:
    if not given:
        raise UsageError(f"No {what} was asked for: choose from {', '.join(known)}.")
    for name in given:
        if name not in known:
            raise UsageError(
                f"Unknown {what} {name!r}: choose from {', '.join(known)}.{did_you_mean(str(name), known)}"
            )
    return given


def _names(names: tuple[str, ...], correction: str, reading: str) -> list[str]:
    """The rows of one correction. The clipped pair has a second reading only where something is corrected."""
    plain = [name for name in names if name not in rules.LITERALS]
    if correction == "none":
        return plain or [name.removesuffix(rules.LITERAL) for name in names]
    made = []
    for name in plain:
        twice = name in rules.READ_TWICE
        made += [name] if not twice or reading != "literal" else []
        made += [name + rules.LITERAL] if twice and reading != "corrected" else []
    return list(dict.fromkeys([*made, *(name for name in names if name in rules.LITERALS)]))


def _kind_of(intervals: str | None, bootstrap: int | None) -> tuple[str, int]:
    """Which intervals, and how many resamples if they are bootstrapped."""
    if bootstrap is not None:
        bootstrap = whole("bootstrap", bootstrap, 0)
    if intervals is None:
        kind = "jackknife" if bootstrap is None else "bootstrap" if bootstrap else "none"
    else:
        (kind,) = _chosen((intervals,), INTERVALS, "kind of intervals")
    return kind, (RESAMPLES if bootstrap is None else bootstrap) if kind == "bootstrap" else 0
