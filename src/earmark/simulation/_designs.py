"""Synthetic data sets whose truth is known: how clips, classes and groups go together, and what varies between sets.

A vector is a point of its class, shifted by its group, with noise:

    x = separation * centre[class] + spread * shift[group] + width[class] * noise

Centres and widths belong to the design; shifts and noise are drawn anew for every data set, so that a metric's
expectation over data sets is what an interval should cover. Two systems hear the same clips: half of the variance of
their shifts and noise is common. They are equal in distribution when they have the same separation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError, did_you_mean

Floats = NDArray[np.float64]

DIMENSIONS = 12
WIDTHS = (0.6, 1.4)  # of the narrowest and the widest class: without such differences no two classes are confused
COMMON = 0.5  # share of the variance that two systems have in common


@dataclass(frozen=True)
class Design:
    """How labels and groups are laid over the clips of a data set. `groups` is 0 where clips are independent."""

    name: str
    words: str
    clips: int
    classes: int
    groups: int
    lay_out: Callable[[Design, np.random.Generator], tuple[NDArray[np.int64], NDArray[np.int64] | None]]
    separation: float = 0.5
    spread: float = 0.6

    @property
    def units(self) -> int:
        return self.groups or self.clips


@dataclass(frozen=True)
class Sample:
    """One data set: the vectors of two systems on the same clips, labels and groups."""

    a: Floats
    b: Floats
    labels: NDArray[np.int64]
    groups: NDArray[np.int64] | None


def _independent(design: Design, rng: np.random.Generator) -> tuple[NDArray[np.int64], None]:
    return np.arange(design.clips) % design.classes, None


def _crossed(design: Design, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every group has clips of every class."""
    clips = np.arange(design.clips)
    return clips // design.groups % design.classes, clips % design.groups


def _nested(design: Design, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All clips of a group have its one label."""
    groups = np.arange(design.clips) % design.groups
    return groups % design.classes, groups


def _two_each(design: Design, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every group has clips of two classes."""
    clips = np.arange(design.clips)
    groups = clips % design.groups
    return (groups + clips // design.groups % 2) % design.classes, groups


def _unequal(design: Design, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Groups of very different sizes, with clips of all classes."""
    shares = np.arange(1, design.groups + 1)
    bounds = np.cumsum(shares) / shares.sum() * design.clips
    groups = np.searchsorted(bounds, np.arange(design.clips), side="right")
    return np.arange(design.clips) % design.classes, np.minimum(groups, design.groups - 1)


DESIGNS: dict[str, Design] = {
    design.name: design
    for design in (
        Design("clips", "150 independent clips of 5 classes", 150, 5, 0, _independent),
        Design("15-groups", "15 groups, every group with all 5 classes", 150, 5, 15, _crossed),
        Design("6-groups", "6 groups, every group with all 5 classes", 150, 5, 6, _crossed),
        Design("labels-with-groups", "15 groups, each with one of 5 classes", 150, 5, 15, _nested),
        Design("30-groups-one-label", "30 groups, each with one of 5 classes", 150, 5, 30, _nested),
        Design("two-labels", "15 groups, each with 2 of 5 classes", 150, 5, 15, _two_each),
        Design("unequal", "15 groups of 1 to 19 clips, all 5 classes", 150, 5, 15, _unequal),
        Design("few-clips", "24 independent clips of 4 classes", 24, 4, 0, _independent, separation=1.2),
        Design("near-perfect", "150 independent clips of 5 well separated classes", 150, 5, 0, _independent, 2.0),
    )
}


def design_named(name: str) -> Design:
    try:
        return DESIGNS[name]
    except KeyError:
        raise UsageError(
            f"There is no design {name!r}.{did_you_mean(name, DESIGNS)} There are {', '.join(DESIGNS)}."
        ) from None


def draw(design: Design, seed: int, repeat: int, *, separation_b: float | None = None, null: bool = False) -> Sample:
    """Data set number `repeat` of a design; `null`: labels that say nothing about the vectors."""
    centres = np.random.default_rng([seed, 1]).standard_normal((design.classes, DIMENSIONS))
    widths = np.linspace(*WIDTHS, design.classes)
    rng = np.random.default_rng([seed, 2, repeat])
    labels, groups = design.lay_out(design, rng)
    values: dict[str, Any] = {}
    common = rng.standard_normal((design.clips, DIMENSIONS))
    common_shift = rng.standard_normal((max(design.groups, 1), DIMENSIONS))
    if null:
        centres, widths = np.zeros_like(centres), np.ones_like(widths)
    for name, separation in (("a", design.separation), ("b", separation_b)):
        strength = design.separation if separation is None else separation
        noise = _mixed(common, rng)
        shift = _mixed(common_shift, rng)
        values[name] = strength * centres[labels] + widths[labels][:, None] * noise
        if groups is not None:
            values[name] += design.spread * shift[groups]
    return Sample(values["a"], values["b"], labels, groups)


def _mixed(common: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(np.sqrt(COMMON) * common + np.sqrt(1.0 - COMMON) * rng.standard_normal(common.shape))
