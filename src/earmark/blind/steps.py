"""Numbers on a grid: what is left of a measured value when nothing finer than a step may be known of it.

    value      the nearest multiple of the step, to the even one when it lies in the middle
    low, high  the rounded value less and plus one margin: a whole number of steps that holds the measured interval
    baseline   the nearest multiple of a tenth of the step, where whole sets of labels were shuffled; else of the step
    lift       rounded value less rounded baseline

Low and high are not rounded by themselves: three grids laid over one value at different places would together be one
grid of a third of the step. The margin changes only when the measured margin passes a multiple of the step.

Everything is done in decimal numbers, and a float leaves as the float nearest to a short decimal number. Two
measurements that round alike give the same bytes.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from earmark.errors import UsageError

__all__ = ["BASELINE_PARTS", "Interval", "around", "decimal_step", "on_grid", "rises_above", "step_for"]

BASELINE_PARTS = 10
"""The baseline is given to a tenth of the step. It is the mean over shuffled labels: it depends on the sizes of the
classes and on the vectors, not on which clip has which label."""
_FINEST = Decimal("0.0001")
_COARSEST = Decimal("0.5")


class Interval(NamedTuple):
    """Two ends that lie on the grid."""

    low: float
    high: float


def decimal_step(given: object, where: str = "A step") -> Decimal:
    """A step as a decimal number: 1, 2 or 5 times a power of ten, from 0.0001 to 0.1."""
    try:
        step = Decimal(str(given)).normalize()
    except ArithmeticError:
        step = Decimal(0)
    if isinstance(given, bool) or not step.is_finite() or not _FINEST <= step <= _COARSEST:
        raise UsageError(f"{where} is a number from {_FINEST} to {_COARSEST}, such as 0.02, not {given}.")
    if step.as_tuple().digits not in ((1,), (2,), (5,)):
        raise UsageError(f"{where} is 1, 2 or 5 times a power of ten, such as 0.01, 0.02 or 0.05, not {given}.")
    return step


def step_for(margin: float, clips: int, worth: int) -> Decimal:
    """The step of a figure from the margin (half of the 95 % interval) of a reference model on `clips` clips.

    The largest 1-2-5 number that is not above the margin: two systems within one step can rarely be told apart on the
    set. But never so small that fewer than `worth` clips could move a figure by a step: of the mean over all clips,
    whoever chooses the vectors decides how much each clip weighs, and a model's margin does not know that.
    """
    steps = [Decimal(digit).scaleb(power) for power in range(-4, 0) for digit in (1, 2, 5)]
    least = min((step for step in steps if step * clips >= worth), default=_COARSEST)
    return max(least, max((step for step in steps if step <= Decimal(margin)), default=_FINEST))


def on_grid(value: float, step: Decimal) -> float:
    """The multiple of the step that is nearest to a value."""
    return float(_steps(value, step) * step) + 0.0  # never -0.0


def around(value: float, low: float, high: float, step: Decimal, ends: tuple[float, float]) -> Interval:
    """The interval that is released with a value: on the grid, around the rounded value, and around the measured one.

    `ends` are the lowest and the highest value that the metric can have.
    """
    rounded = _steps(value, step) * step
    # Half a step is what rounding may have moved the value by: with it the margin holds wherever the value lay.
    widest = max(Decimal(value) - Decimal(low), Decimal(high) - Decimal(value), Decimal(0)) + step / 2
    margin = (widest / step).to_integral_value(ROUND_CEILING) * step
    return Interval(max(ends[0], float(rounded - margin) + 0.0), min(ends[1], float(rounded + margin) + 0.0))


def rises_above(value: float, earlier: float, step: Decimal) -> bool:
    """Whether a measured value is better than a released one by more than a step: the question of the Ladder."""
    return Decimal(value) > _steps(earlier, step) * step + step


def _steps(value: float, step: Decimal) -> Decimal:
    return (Decimal(value) / step).to_integral_value(ROUND_HALF_EVEN)
