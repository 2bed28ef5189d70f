"""What a mean over tested clips is worth: value, deviation over folds, and an interval that knows folds and groups.

    value      mean over folds of the mean over the fold's test clips, as papers print it
    deviation  population standard deviation of the folds' means (NumPy's default), as papers print it
    interval   for the expected value: of a probe trained on as many clips, tested on new clips (or groups)

The clips that were tested vary, and so do those that were learnt from. The first is measured: each unit (a group where
there are groups, else a clip) is left out of the means, without training again, which gives the jackknife's error. The
second is not: training clips are taken for one more sample of the same kind, so that

    se^2 = jackknife se^2 * (1 + tested clips / clips that a fold learns from)

which is Nadeau and Bengio's correction (Machine Learning 52, 2003) of a variance over units in place of a variance over
five folds. Where units weigh differently in the value, the error rests on fewer of them: the degrees of freedom are
those of Kish's effective number of units. The interval bends at 0 and 1 (`calibrate.jackknife`). Coverage of 95 %
intervals by simulation: see `docs/individuals.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import jackknife
from earmark.errors import InputError
from earmark.probes.folds import Fold

Floats = NDArray[np.float64]

FRACTION = (0.0, 1.0)


class Estimate(NamedTuple):
    """A mean over folds with its interval, or the reason why it has none."""

    value: float
    by_fold: tuple[float, ...]
    n: int
    unit: str
    units: int
    low: float | None
    high: float | None
    reason: str = ""

    @property
    def deviation(self) -> float | None:
        """Standard deviation over folds (divided by their number); None for a single fold."""
        return float(np.std(self.by_fold)) if len(self.by_fold) > 1 else None

    @property
    def cells(self) -> dict[str, Any]:
        """The cells of a score row that hold it."""
        cells: dict[str, Any] = {"value": self.value, "n": self.n}
        if self.low is not None:
            cells |= {"low": self.low, "high": self.high}
            cells |= {"interval": "jackknife", "unit": self.unit, "units": self.units}
        return cells

    @property
    def remark(self) -> str:
        """Deviation over folds, and why there is no interval, for the reason of a score row."""
        spread = "" if self.deviation is None else f"sd over folds {self.deviation:.4f}"
        return "; ".join(filter(None, [spread, self.reason]))


def estimate(
    values: Floats, folds: Sequence[Fold], groups: Sequence[Any] | NDArray[Any] | None = None,
    *, ends: tuple[float, float] = FRACTION,
) -> Estimate:  # fmt: skip
    """The mean over folds of a value of each tested clip: right or wrong, or a score between `ends`.

    Args:
        values: One for each row; only rows that a fold tests are looked at.
        folds: Their test parts may not overlap.
        groups: The group of each row: the unit of the interval.
        ends: The range of the values.
    """
    tested = np.concatenate([fold.test for fold in folds])
    if len(np.unique(tested)) != len(tested):
        raise InputError("Folds test some clips twice: each clip may be in the test part of one fold.")
    by_fold = tuple(float(values[fold.test].mean()) for fold in folds)
    value = float(np.mean(by_fold))
    weights = weights_of(folds)
    unit, of = "clip", np.arange(len(tested))
    if groups is not None:
        unit, of = "group", np.unique(np.asarray(groups)[tested].astype(str), return_inverse=True)[1]
    shares, sums = (np.bincount(of, each).astype(np.float64) for each in (weights, weights * values[tested]))
    units = len(shares)
    outcome = jackknife.Interval(None, None, units, jackknife.too_few(units, unit))
    if units >= jackknife.LEAST_UNITS:
        without = (value - sums) / (1.0 - shares)
        outcome = interval(value, without, folds, shares, ends=ends, unit=unit)
    return Estimate(value, by_fold, len(tested), unit, units, outcome.low, outcome.high, outcome.reason)


def interval(
    value: float, without: Floats, folds: Sequence[Fold], shares: Floats,
    *, ends: tuple[float, float] = FRACTION, unit: str = "clip",
) -> jackknife.Interval:  # fmt: skip
    """The interval from a score's values without each unit, made wider for the clips that folds learn from.

    For scores that are no mean over clips, whose values without each unit the caller has. `shares` is how much each
    unit weighs in the score: the sum of `weights_of` over its clips.
    """
    if np.isfinite(without).all():
        without = without.mean() + (without - without.mean()) * np.sqrt(widening(folds))
    return jackknife.interval(value, without, ends, unit, freedom=jackknife.freedom_of(shares))


def weights_of(folds: Sequence[Fold]) -> Floats:
    """How much each tested clip weighs in a mean over folds, in the order of the folds' test parts."""
    return np.concatenate([np.full(len(fold.test), 1.0 / (len(folds) * len(fold.test))) for fold in folds])


def widening(folds: Sequence[Fold]) -> float:
    """By how much training adds to the variance: 1 + tested clips / clips that a fold learns from."""
    learnt = float(np.mean([len(fold.train) + len(fold.valid) for fold in folds]))
    return 1.0 + sum(len(fold.test) for fold in folds) / learnt
