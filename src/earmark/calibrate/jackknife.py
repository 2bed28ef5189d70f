"""Intervals and tests from the values of a metric without each unit (`deletions`).

    standard error   se^2 = (U - 1) / U * sum over units u of (theta(-u) - mean)^2
    interval         all values t that |theta - t| <= q se sqrt(v(t) / v(theta)) does not exclude, q from Student's t
                     with U - 1 degrees of freedom

v(t) = (t - low) (high - t) for a metric between `low` and `high`: near an end the error of a value shrinks with its
distance from it, so the interval bends and stays inside the range (Wilson's interval, with p (1 - p) / se^2 draws).
v = 1 for a metric without ends. At an end, where every deletion may give the same value, U units that all agree are
taken for U draws that all agree.

A clip is a query once and a candidate of everybody. Deleting it in both roles sees all of its influence; by the
Efron-Stein inequality the variance is then not too small on average. A difference of two systems on the same clips is
one more statistic, and its p-value is read off the same curve as its interval: they cannot contradict each other.

Efron & Stein, Annals of Statistics 9(3), 1981; Wilson, JASA 22(158), 1927; Kish, Survey Sampling, 1965.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from earmark.wording import counted

Floats = NDArray[np.float64]

LEVEL = 0.95
LEAST_UNITS = 5
EQUAL = 1e-12  # values of different deletions this close are the same
SMALLEST_P = sys.float_info.min  # smaller tails are no numbers in float64: a p-value is never 0


@dataclass(frozen=True)
class Interval:
    """An interval at LEVEL, or the reason why there is none."""

    low: float | None
    high: float | None
    units: int
    reason: str = ""


@dataclass(frozen=True)
class Difference:
    """One system minus another: value, interval and two-sided p-value."""

    value: float
    low: float | None
    high: float | None
    p_value: float | None
    units: int
    reason: str = ""


def interval(
    value: float, without: Floats, ends: tuple[float, float], unit: str = "clip", *, freedom: float | None = None,
    error: float | None = None, units: int | None = None,
) -> Interval:  # fmt: skip
    """The interval of a metric with range `ends` from its values without each unit.

    `freedom` are the degrees of freedom of the standard error, where units weigh differently; None is U - 1. `error` is
    a standard error that rests on more than these units; None is that of leaving them out. `units` says how many the
    value rests on, where most were left out of a sample.
    """
    reason = refusal(without, unit)
    units = len(without) if units is None else units
    if reason:
        return Interval(None, None, units, reason)
    error = standard_error(without) if error is None else error
    if error == 0.0 and not _at_end(value, ends):
        return Interval(None, None, units, f"no interval: no {unit} changes the value")
    low, high = _bounds(value, error, units, ends, _quantile(freedom or units - 1, 1))
    return Interval(low, high, units)


def difference(
    a: float, b: float, without_a: Floats, without_b: Floats, ends: tuple[float, float],
    *, unit: str = "clip", comparisons: int = 1, freedom: float | None = None, error: float | None = None,
    units: int | None = None,
) -> Difference:  # fmt: skip
    """`a` minus `b`, two systems on the same clips, with interval and p-value corrected for `comparisons`.

    Bonferroni's correction: the interval is at 1 - 0.05 / comparisons, the p-value times comparisons, so the interval
    excludes 0 exactly when p < 0.05.
    """
    value, without = a - b, without_a - without_b
    units = len(without) if units is None else units
    reason = refusal(without, unit)
    if reason:
        return Difference(value, None, None, None, units, reason)
    width = ends[1] - ends[0]
    error = standard_error(without) if error is None else error
    if error == 0.0 and abs(value) <= EQUAL:
        # Two systems at the same end of a range agree in every deletion and may differ elsewhere: that is no interval.
        return Difference(0.0, None, None, 1.0, units, f"no interval: the difference is 0 whichever {unit} is left out")
    if error == 0.0 and not _at_end(value, (-width, width)):
        return Difference(value, None, None, None, units, f"no interval: no {unit} changes the difference")
    freedom = freedom or units - 1
    low, high = _bounds(value, error, units, (-width, width), _quantile(freedom, comparisons))
    draws = _draws(value, error, units, (-width, width))
    statistic = abs(value) / width * math.sqrt(draws) if draws is not None else abs(value) / error
    p_value = max(SMALLEST_P, min(1.0, comparisons * 2.0 * float(stdtr(freedom, -statistic))))
    return Difference(value, low, high, p_value, units)


def p_value(
    value: float, without: Floats, ends: tuple[float, float], expected: float, *, freedom: float | None = None,
    error: float | None = None,
) -> float | None:  # fmt: skip
    """The two-sided p-value of a metric whose value would be `expected`; None where there is no interval.

    Read off the curve of `interval`: the interval excludes `expected` exactly when p < 0.05.
    """
    if refusal(without, "unit"):
        return None
    units, error = len(without), standard_error(without) if error is None else error
    if error == 0.0 and not _at_end(value, ends):
        return None
    draws = _draws(value, error, units, ends)
    if draws is None:
        statistic = abs(value - expected) / error
    else:
        width = ends[1] - ends[0]
        share = (expected - ends[0]) / width
        statistic = abs(value - expected) / width * math.sqrt(draws / (share * (1.0 - share)))
    return max(SMALLEST_P, float(2.0 * stdtr(freedom or units - 1, -statistic)))


def standard_error(without: Floats) -> float:
    """The delete-one standard error; 0 where all values are the same."""
    units = len(without)
    if float(np.ptp(without)) <= EQUAL:
        return 0.0
    return float(np.sqrt((units - 1) / units * np.square(without - without.mean()).sum()))


def refusal(without: Floats, unit: str) -> str:
    """Why there is no interval from the values without each unit; empty where there is."""
    if len(without) < LEAST_UNITS:
        return too_few(len(without), unit)
    lost = int((~np.isfinite(without)).sum())
    if lost:
        return f"no interval: without {'one' if lost == 1 else lost} of the {unit}s it cannot be measured"
    return ""


def too_few(units: int, unit: str) -> str:
    """Why there is no interval of so few units."""
    verb = "is" if units == 1 else "are"
    return f"no interval: {counted(units, unit)} {verb} too few, {LEAST_UNITS} are needed"


def freedom_of(sizes: Floats) -> float:
    """Degrees of freedom where units hold different numbers of trials: Kish's effective number of units less 1.

    (sum of sizes)^2 / sum of sizes^2 is U for equal sizes and near 1 where one unit holds nearly everything.
    """
    return max(1.0, float(sizes.sum()) ** 2 / float(np.square(sizes).sum()) - 1.0)


def _quantile(freedom: float, comparisons: int) -> float:
    return float(stdtrit(freedom, 1.0 - (1.0 - LEVEL) / (2.0 * comparisons)))


def _at_end(value: float, ends: tuple[float, float]) -> bool:
    return min(value - ends[0], ends[1] - value) <= EQUAL


def _draws(value: float, error: float, units: int, ends: tuple[float, float]) -> float | None:
    """As many independent draws of a share would have this error; None for a metric without ends."""
    width = ends[1] - ends[0]
    if not math.isfinite(width):
        return None
    share = (value - ends[0]) / width
    if _at_end(value, ends):
        share = (1.0 + units * min(max(share, 0.0), 1.0)) / (units + 2.0)
        return float(units) if error == 0.0 else min(float(units), share * (1.0 - share) * (width / error) ** 2)
    return share * (1.0 - share) * (width / error) ** 2


def _bounds(value: float, error: float, units: int, ends: tuple[float, float], q: float) -> tuple[float, float]:
    draws = _draws(value, error, units, ends)
    if draws is None:
        return max(ends[0], value - q * error), min(ends[1], value + q * error)
    width = ends[1] - ends[0]
    share = min(max((value - ends[0]) / width, 0.0), 1.0)
    low, high = wilson(share, draws, q)
    return ends[0] + low * width, ends[0] + high * width


def wilson(share: float, draws: float, q: float) -> tuple[float, float]:
    """The shares t for which |share - t| <= q sqrt(t (1 - t) / draws): they hold `share` and stay in [0, 1]."""
    bend = q * q / draws
    middle = (share + bend / 2.0) / (1.0 + bend)
    half = q / (1.0 + bend) * math.sqrt(share * (1.0 - share) / draws + bend / (4.0 * draws))
    return min(max(middle - half, 0.0), share), max(min(middle + half, 1.0), share)
