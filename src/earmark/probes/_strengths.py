"""Which strength of the penalty does best on validation clips: that of the optimum, without solving all to the end.

    strongest penalty ──> each strength roughly, from the two solutions before it ──> weakest
                               │
                               └── of those that may still be the best: solved until no validation answer can change

An answer is settled when ten times the last Newton step would not change it and the gradient is falling; the steps at
the end, with a float64 gradient and equations solved to 3 %, each leave far less than a tenth of the one before. So the
choice and the answers are those of the optimum. Of strengths with equally many right answers the strongest penalty
(smallest C) is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from earmark.probes._logistic import Array, Codes, Fit, Floats, Regression, undecided

ROUGH, FINE = 0.25, 0.03
"""To which share of the gradient the equations of a step are solved: on the way, and at the end."""
SAFETY = 10.0
ROUGH_STEPS, FINE_STEPS, TOLERANT_STEPS = 12, 30, 50
DOUBTFUL = 0.01
"""Share of validation answers that may be open where a strength is solved roughly."""
SMALLEST = 1e-9
"""Change of a logit, relative to the largest, under which a step changes nothing more."""


class ChosenStrength(NamedTuple):
    """The strength that was chosen, its score on the validation rows, and its logits for the test rows."""

    C: float
    score: float
    logits: Floats
    open: int = 0  # test answers that another step might change: those on a border, or of a fit that did not converge
    products: int = 0


class _Trial:
    """A strength: its fit so far, and how many validation answers are right, at least and at most."""

    def __init__(self, regression: Regression, C: float, fit: Fit, valid: Floats, codes: Codes) -> None:
        self.regression, self.C, self.fit = regression, C, fit
        self._valid, self._light, self._codes = valid, valid.astype(np.float32), codes
        self.finished = False
        self.right, self.least, self.most = 0, 0, len(codes)

    def solve_roughly(self, tolerance: float | None) -> None:
        """Until few answers are open, or to a tolerance of the gradient."""
        if tolerance is not None:
            self.fit = stop_at(self.regression, self.C, self.fit, tolerance)
            self._count()
            self._settle()
            return
        for count in range(ROUGH_STEPS):
            self.fit = self.regression.improve(self.C, self.fit, ROUGH)
            if count and self._count() <= DOUBTFUL * len(self._codes):
                break

    def go_on(self) -> None:
        """One exact step, after which no answer may be open any more."""
        self.fit = self.regression.improve(self.C, self.fit, FINE, exact=True)
        unsettled = self._count()
        if (self.fit.falling and (not unsettled or self._still)) or self.fit.exact_steps >= FINE_STEPS:
            self._settle()

    def may_beat(self, other: _Trial) -> bool:
        """Whether it would be chosen, if all of its open answers were right and those of the other one wrong."""
        return self.most > other.least or (self.most == other.least and self.C < other.C)

    def _settle(self) -> None:
        self.finished = True
        self.most = self.least = self.right

    def _count(self) -> int:
        """Count answers that are right, and those that are open, which it returns."""
        rows = self._valid if self.fit.exact_steps else self._light
        logits, change = (rows @ part.astype(rows.dtype) for part in self.fit[:2])
        self._still = is_still(logits, change)
        decide = self.regression.link.decide
        right = decide(logits).argmax(axis=1) == self._codes
        unsettled = undecided(decide(logits), decide(change), SAFETY)
        self.right, self.least = int(right.sum()), int((right & ~unsettled).sum())
        self.most = self.least + int(unsettled.sum())
        return int(unsettled.sum())


def choose_by_accuracy(
    regression: Regression, strengths: Sequence[float], valid: Floats, codes: Codes, test: Floats,
    tolerance: float | None = None,
) -> ChosenStrength:  # fmt: skip
    """The strength whose optimum answers most validation rows correctly, and its logits for the test rows.

    Args:
        regression: The training rows.
        strengths: Values of C, ascending; a single one needs no validation rows.
        valid: Validation rows, with a column of ones.
        codes: Their right answers; -1 is a class that was not learnt.
        test: Test rows, with a column of ones.
        tolerance: Stop at a gradient of the mean loss without a larger entry, in place of the optimum.
    """
    trials: list[_Trial] = []
    last = before = regression.start()
    for C in strengths:
        trial = _Trial(regression, C, regression.warm(C, last, before), valid, codes)
        trial.solve_roughly(tolerance)
        trials.append(trial)
        before, last = last, trial.fit
    while True:
        best = max(trials, key=lambda trial: (trial.least, trial.finished, -trial.C))
        rivals = [trial for trial in trials if not trial.finished and (trial is best or trial.may_beat(best))]
        if not rivals:
            break
        max(rivals, key=lambda trial: trial.most).go_on()
    score = best.right / len(codes) if len(codes) else 0.0
    products = sum(trial.fit.products for trial in trials)
    fit = best.fit if tolerance is not None else finish(regression, best.C, best.fit, np.concatenate([valid, test]))
    logits, change = (regression.link.decide(test @ part) for part in fit[:2])
    unsettled = 0 if tolerance is not None else int(undecided(logits, change, 1.0).sum()) if fit.falling else len(test)
    return ChosenStrength(best.C, score, logits, unsettled, products)


def choose_by_score(
    regression: Regression, strengths: Sequence[float], valid: Floats, score: Callable[[Floats], float], test: Floats,
    tolerance: float | None = None,
) -> ChosenStrength:  # fmt: skip
    """The strength with the highest score of its validation logits; every strength is solved to the end."""
    best: ChosenStrength | None = None
    last = before = regression.start()
    products = 0
    for C in strengths:
        start = regression.warm(C, last, before)
        fit = converge(regression, C, start) if tolerance is None else stop_at(regression, C, start, tolerance)
        products += fit.products
        before, last = last, fit
        value = score(valid @ fit.weights) if len(strengths) > 1 else 0.0
        if best is None or value > best.score:
            best = ChosenStrength(C, value, test @ fit.weights)
    if best is None:
        raise ValueError("no strengths")
    return best._replace(products=products)


def finish(regression: Regression, C: float, fit: Fit, rows: Floats) -> Fit:
    """Improve until no answer for these rows can change, or until steps change nothing more."""
    decide = regression.link.decide
    while fit.exact_steps < FINE_STEPS:
        if fit.exact_steps and fit.falling:
            logits, change = rows @ fit.weights, rows @ fit.step.astype(np.float64)
            if is_still(logits, change) or not undecided(decide(logits), decide(change), SAFETY).any():
                break
        fit = regression.improve(C, fit, FINE, exact=True)
    return fit


def converge(regression: Regression, C: float, fit: Fit) -> Fit:
    """Improve until steps change nothing more."""
    for _ in range(ROUGH_STEPS):
        former = fit.logits
        fit = regression.improve(C, fit, ROUGH)
        if np.abs(fit.logits - former).max() <= 1e-3 * (1 + np.abs(former).max()):
            break
    while fit.exact_steps < FINE_STEPS:
        fit = regression.improve(C, fit, FINE, exact=True)
        if fit.falling and is_still(fit.logits, regression.exact @ fit.step.astype(np.float64)):
            break
    return fit


def stop_at(regression: Regression, C: float, fit: Fit, tolerance: float) -> Fit:
    """Improve until no entry of the gradient of the mean loss is larger, as scikit-learn stops."""
    for _ in range(TOLERANT_STEPS):
        fit = regression.improve(C, fit, ROUGH, enough=tolerance)
        if fit.slope <= tolerance:
            break
    return fit


def is_still(logits: Array, change: Array) -> bool:
    """Whether a step was too small to change anything."""
    return bool(np.abs(change).max(initial=0) <= SMALLEST * (1 + np.abs(logits).max(initial=0)))
