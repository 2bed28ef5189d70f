"""Intervals of fidelity metrics: points are drawn again with replacement, balls and references stay as they are.

A metric is a function of means over generated or real points, so a resample costs one weighted mean. The interval says
how the value would move with other draws of the points that are *judged*. The balls that judge them are held, and so is
the reference of clipped_density: what another real set would change is not in it, so these intervals are too narrow
(`jackknife` has others). kernel_distance is resampled to first order, by each point's effect on the value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from earmark.calibrate import bootstrap as resampling
from earmark.generated.metrics import Judgement


class Draws(NamedTuple):
    """How often each real and each generated point is drawn, [resamples, points]; the two sets independently."""

    real: resampling.Counts
    generated: resampling.Counts


def draw(real: int, generated: int, resamples: int, seed: int) -> Draws:
    """The same draws for every metric of a pair of sets, so that differences between metrics are not noise."""
    # Even and odd streams: sets of equal size must not be drawn alike.
    return Draws(
        resampling.resample(np.arange(real), None, resamples, 2 * seed),
        resampling.resample(np.arange(generated), None, resamples, 2 * seed + 1),
    )


def interval(measured: Judgement, draws: Draws) -> tuple[float, float] | tuple[None, None]:
    """The 95 % percentile interval, or nothing for a metric that is no function of means."""
    if not measured.terms:
        return None, None
    means = [resampling.resampled_means(term.values, getattr(draws, term.points)) for term in measured.terms]
    return resampling.interval(np.asarray(measured.combine(*means), np.float64))
