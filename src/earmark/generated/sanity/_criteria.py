"""What a curve of scores must look like: tests of shape and of value, and how their outcomes become one cell.

A test looks at a mean curve y over a grid and gives an outcome with its slack: how much worse the deciding number could
be before the test failed, negative when it has failed. Slack is in units of the score.

    T passed    F failed    L passed as a low, density-based coverage    H passed as a high, support-based one

All comparisons are non-strict. A score that is missing where a test looks (NaN) is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Outcome = Literal["T", "F", "L", "H"]

TOLERANCE = 0.05  # of a value, and of a flat curve
RISE = 0.2  # from the low end of a curve to its high one
STRAY = 0.1  # how far a curve may be beyond its end or its reference
MID_RISE = 0.1

PASSED = ("T", "L", "H")


class Curve(NamedTuple):
    """Mean scores over a grid, both sorted by grid value."""

    grid: Floats
    values: Floats


class Verdict(NamedTuple):
    outcome: Outcome
    slack: float


class Criterion(NamedTuple):
    """A named judgement of a curve."""

    name: str
    judge: Callable[[Curve], Verdict]


def merge(outcomes: Iterable[Outcome]) -> Outcome:
    """One cell from all its lines and sub-cases: any failure is F, L beside H is F, else the letter that occurs."""
    found = set(outcomes)
    if not found:
        raise ValueError("a cell needs at least one outcome")
    if "F" in found or {"L", "H"} <= found:
        return "F"
    return "L" if "L" in found else "H" if "H" in found else "T"


# --- slacks: at least 0 where the condition holds -------------------------------------------------------


def _one(value: float) -> float:
    return min(value - (1.0 - TOLERANCE), (1.0 + TOLERANCE) - value)


def _near(value: float, target: float) -> float:
    return TOLERANCE - abs(value - target)


def _zero(value: float) -> float:
    return _near(value, 0.0)


def _bell(curve: Curve, x0: float) -> float:
    """High at x0, lower by RISE at both ends, and at least one end near the minimum."""
    y = curve.values
    top = at(curve, x0)
    ends = max(STRAY - float(y[0] - y.min()), STRAY - float(y[-1] - y.min()))
    return _least(top - float(y[0]) - RISE, top - float(y[-1]) - RISE, STRAY - float(y.max() - top), ends)


def _up(curve: Curve) -> float:
    y = curve.values
    return _least(float(y[-1] - y[0]) - RISE, STRAY - float(y[0] - y.min()), STRAY - float(y.max() - y[-1]))


def _down(curve: Curve) -> float:
    return _up(Curve(curve.grid, curve.values[::-1]))


def _flat(values: Floats) -> float:
    return TOLERANCE - float(values.max() - values.min())


def _least(*slacks: float) -> float:
    """The smallest slack; NaN when one is missing, which Python's min would hide."""
    return float(np.min(slacks))


def at(curve: Curve, x: float) -> float:
    """The score at the grid value nearest to x, the smaller of two: grids made by sums miss 1 by a last digit."""
    return float(curve.values[int(np.argmin(np.abs(curve.grid - x)))])


def quantile_value(curve: Curve, p: float) -> float:
    """The score at the grid value nearest to the grid's p-quantile."""
    return at(curve, float(np.quantile(curve.grid, p)))


def _passes(slack: float) -> Verdict:
    return Verdict("T" if slack >= 0.0 else "F", slack)


def _low_or_high(low: float, high: float) -> Verdict:
    """L if the low reading holds, H if the high one does; no curve satisfies both of any pair used here."""
    if low >= 0.0 and high >= 0.0:
        raise ValueError("a curve cannot be low and high at once")
    if low >= 0.0:
        return Verdict("L", low)
    if high >= 0.0:
        return Verdict("H", high)
    return Verdict("F", float(np.fmax(low, high)))


# --- tests of shape ---------------------------------------------------------------------------------------


def bell(x0: float) -> Criterion:
    return Criterion(f"bell at {x0:g}", lambda curve: _passes(_bell(curve, x0)))


UP = Criterion("up", lambda curve: _passes(_up(curve)))
DOWN = Criterion("down", lambda curve: _passes(_down(curve)))
FLAT = Criterion("flat", lambda curve: _passes(_flat(curve.values)))


def down_from(p: float) -> Criterion:
    """Down, and already lower by MID_RISE at the p-quantile of the grid."""

    def judge(curve: Curve) -> Verdict:
        middle = float(curve.values[0]) - quantile_value(curve, p) - MID_RISE
        return _passes(_least(_down(curve), middle))

    return Criterion(f"down, and lower at the {p:g}-quantile", judge)


def _settle(curve: Curve) -> Verdict:
    return _passes(_flat(curve.values[curve.grid >= np.median(curve.grid)]))


SETTLE = Criterion("flat from the median of the grid on", _settle)


def bell_or_up(x0: float) -> Criterion:
    return Criterion(f"bell at {x0:g} (L) or up (H)", lambda curve: _low_or_high(_bell(curve, x0), _up(curve)))


DOWN_OR_FLAT = Criterion("down (L) or flat (H)", lambda curve: _low_or_high(_down(curve), _flat(curve.values)))


# --- tests of value ---------------------------------------------------------------------------------------


def one_at(x: float) -> Criterion:
    return Criterion(f"1 at {x:g}", lambda curve: _passes(_one(at(curve, x))))


def near_at_end(target: float) -> Criterion:
    return Criterion(f"{target:g} at the right end", lambda curve: _passes(_near(float(curve.values[-1]), target)))


ONE_LEFT = Criterion("1 at the left end", lambda curve: _passes(_one(float(curve.values[0]))))
ONE_RIGHT = Criterion("1 at the right end", lambda curve: _passes(_one(float(curve.values[-1]))))
ZERO_LEFT = Criterion("0 at the left end", lambda curve: _passes(_zero(float(curve.values[0]))))
ZERO_RIGHT = Criterion("0 at the right end", lambda curve: _passes(_zero(float(curve.values[-1]))))
WIDE_LEFT = Criterion(
    "0 (L) or 1 (H) at the left end",
    lambda curve: _low_or_high(_zero(float(curve.values[0])), _one(float(curve.values[0]))),
)
WIDE_RIGHT = Criterion(
    "0 (L) or 1 (H) at the right end",
    lambda curve: _low_or_high(_zero(float(curve.values[-1])), _one(float(curve.values[-1]))),
)
