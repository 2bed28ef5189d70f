"""Rates and scores together: the curve of a family, and what a rate saves against another family.

Points are (kbps, score). Rates are compared on a logarithmic scale: from 6 to 12 kbps is as far as from 12 to 24.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator

from earmark.analysis.pareto import pareto_front
from earmark.codecs.contract import Measured
from earmark.errors import InputError

Floats = NDArray[np.float64]

FEWEST = 2
LEAST_SHARED = 0.1
"""The part of the narrower curve's scores that two curves must share."""


class Point(NamedTuple):
    """One setting of a codec: what it sends and what it scores."""

    system: str
    family: str
    kbps: float
    value: float


class Curve(NamedTuple):
    """The settings of one family, lowest rate first."""

    family: str
    points: tuple[Point, ...]

    @property
    def kbps(self) -> Floats:
        return np.array([point.kbps for point in self.points])

    @property
    def values(self) -> Floats:
        return np.array([point.value for point in self.points])


class Step(NamedTuple):
    """Two neighbouring settings of a family, the one with more bits second."""

    low: Point
    high: Point

    @property
    def gain(self) -> float:
        return self.high.value - self.low.value

    def __str__(self) -> str:
        return (
            f"{self.low.system} ({self.low.kbps:.3g} kbps) {self.low.value:.4g}, "
            f"{self.high.system} ({self.high.kbps:.3g} kbps) {self.high.value:.4g}"
        )


class Monotonicity(NamedTuple):
    """How many steps to a higher rate improve the score, and those that do not."""

    metric: str
    kept: int
    total: int
    exceptions: tuple[Step, ...]


def curves(points: Iterable[Point]) -> dict[str, Curve]:
    """Points by family, each family in the order of its rates."""
    families: dict[str, list[Point]] = {}
    for point in points:
        families.setdefault(point.family, []).append(point)
    return {
        family: Curve(family, tuple(sorted(mine, key=lambda point: (point.kbps, point.system))))
        for family, mine in families.items()
    }


def monotonicity(
    families: Mapping[str, Curve], metric: str, *, higher_is_better: bool, tolerance: float = 0.0
) -> Monotonicity:
    """Does more rate give a better score inside each family? Every step that loses more than `tolerance` is listed."""
    sign = 1.0 if higher_is_better else -1.0
    steps = [Step(a, b) for curve in families.values() for a, b in zip(curve.points, curve.points[1:], strict=False)]
    exceptions = tuple(step for step in steps if sign * step.gain < -tolerance)
    return Monotonicity(metric, len(steps) - len(exceptions), len(steps), exceptions)


def bd_rate(rates_a: ArrayLike, scores_a: ArrayLike, rates_b: ArrayLike, scores_b: ArrayLike) -> Measured:
    """Bjøntegaard's delta rate: how much more rate B needs than A for the same score, on average; -0.2 is 20 % less.

        exp( mean over the scores both reach of  ln rate_B(score) - ln rate_A(score) ) - 1

    ln rate is a piecewise cubic (PCHIP) of the score, which keeps a monotone curve monotone; two points make it a
    straight line. Not applicable when a curve has fewer than two points, does not move one way with the rate, or
    shares with the other less than a tenth of the narrower one's scores, which says nothing of the rest. Whether
    higher is better plays no part. Bjøntegaard, VCEG-M33, 2001.
    """
    logs = []
    for name, rates, scores in (("first", rates_a, scores_a), ("second", rates_b, scores_b)):
        curve = _log_rate_of_score(name, np.asarray(rates, np.float64), np.asarray(scores, np.float64))
        if isinstance(curve, Measured):
            return curve
        logs.append(curve)
    low, high = shared_range(scores_a, scores_b)
    if not low < high:
        return Measured.not_applicable("the two curves share no range of scores")
    narrower = min(float(curve.x[-1] - curve.x[0]) for curve in logs)
    if high - low < LEAST_SHARED * narrower:
        return Measured.not_applicable(
            f"the two curves share only the scores from {low:.4g} to {high:.4g}, less than {LEAST_SHARED:.0%} of the "
            "narrower one"
        )
    mean_a, mean_b = (float(curve.integrate(low, high)) / (high - low) for curve in logs)
    return Measured(float(np.expm1(mean_b - mean_a)))


def shared_range(scores_a: ArrayLike, scores_b: ArrayLike) -> tuple[float, float]:
    """The scores that both curves reach, over which a BD-rate is taken: none where the first is not the lower."""
    a, b = np.asarray(scores_a, np.float64), np.asarray(scores_b, np.float64)
    return float(max(a.min(), b.min())), float(min(a.max(), b.max()))


def pareto(rates: ArrayLike, scores: ArrayLike, higher_is_better: bool) -> NDArray[np.bool_]:
    """Which points no other beats with at most their rate and at least their score, one of the two being better."""
    return pareto_front([rates, scores], [False, higher_is_better])


def _log_rate_of_score(name: str, rates: Floats, scores: Floats) -> PchipInterpolator | Measured:
    if rates.shape != scores.shape or rates.ndim != 1:
        raise InputError(f"Rates and scores must be lists of one length, not {rates.shape} and {scores.shape}.")
    if not (np.isfinite(rates).all() and np.isfinite(scores).all() and (rates > 0).all()):
        raise InputError("Rates must be positive and scores finite: leave settings without a value out.")
    if len(rates) < FEWEST:
        return Measured.not_applicable(f"the {name} curve has fewer than {FEWEST} points")
    order = np.argsort(rates, kind="stable")
    rates, scores = rates[order], scores[order]
    steps = np.diff(scores)
    if (np.diff(rates) == 0).any():
        return Measured.not_applicable(f"the {name} curve has two points with the same rate")
    if not ((steps > 0).all() or (steps < 0).all()):
        direction = 1.0 if steps.sum() >= 0 else -1.0
        wrong = int(np.flatnonzero(direction * steps <= 0)[0])  # the first step against that of the whole curve
        return Measured.not_applicable(
            f"the {name} curve is not monotone: {scores[wrong]:.4g} at {rates[wrong]:.3g} kbps and "
            f"{scores[wrong + 1]:.4g} at {rates[wrong + 1]:.3g} kbps"
        )
    up = slice(None) if steps[0] > 0 else slice(None, None, -1)
    return PchipInterpolator(scores[up], np.log(rates[up]))
