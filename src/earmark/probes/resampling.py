"""Intervals of tasks: clips, or whole groups of clips where there are groups, drawn with replacement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate.bootstrap import interval, resample
from earmark.corpora.clips import Clip, groups_of

__all__ = ["Floats", "draws_of", "group_codes", "mean_interval", "ratio_interval"]

Floats = NDArray[np.float64]


def group_codes(clips: Sequence[Clip]) -> NDArray[np.int64] | None:
    """A number for each clip's group; None when no clip has one. Clips without a group are groups of their own."""
    groups = groups_of(clips)
    if groups is None:
        return None
    names = [f"clip {place}" if group is None else f"group {group}" for place, group in enumerate(groups)]
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def draws_of(clips: Sequence[Clip], resamples: int, seed: int) -> NDArray[Any]:
    """How often each clip is drawn, [resamples, clips]."""
    return resample(np.arange(len(clips)), group_codes(clips), resamples, seed)


def ratio_interval(above: Floats, below: Floats, draws: NDArray[Any]) -> tuple[float, float] | tuple[None, None]:
    """The interval of sum(above) / sum(below) when clips are drawn: errors over words, say."""
    weights = draws.astype(np.float64)
    totals = weights @ below
    with np.errstate(invalid="ignore", divide="ignore"):
        return interval(np.where(totals > 0, (weights @ above) / totals, np.nan))


def mean_interval(values: Floats, draws: NDArray[Any]) -> tuple[float, float] | tuple[None, None]:
    """The interval of a mean over clips."""
    return ratio_interval(values, np.ones(len(values)), draws)
