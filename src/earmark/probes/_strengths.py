"""Which strength of the penalty does best on validation clips: that of the optimum, without solving all to the end.

    strongest penalty ──> each strength roughly, from the two solutions before it ──> weakest
                               │
                               └── of those that may still be the best: solved until no validation answer can change

An answer is settled when ten times the last Newton step would not change it; the steps at the end, with a float64
gradient and equations solved to 3 %, each leave far less than a tenth of the one before. So the choice and the answers
are those of the optimum. Of strengths with equally many right answers the strongest penalty (smallest C) is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from earmark.probes._logistic import Array, Codes, Fit, Floats, Regression, undecided

ROUGH, FINE = 0.1, 0.03
"""To which share of the gradient the equations of a step are solved: on the way, and at the end."""
SAFETY = 10.0
ROUGH_STEPS, FINE_STEPS = 12, 30
DOUBTFUL = 0.01
"""Share of validation answers that may be open where a strength is solved roughly."""
SMALLEST = 1e-9
"""Change of a logit, relative to the largest, under which a step changes nothing more."""


class Choice(NamedTuple):
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
        self._valid, self._codes = valid, codes
        self.finished = False
        self.least, self.most = 0, len(codes)

    def solve_roughly(self) -> None:
        rows = self._valid.astype(np.float32)
        for count in range(ROUGH_STEPS):
            self.fit = self.regression.improve(self.C, self.fit, ROUGH)
            if count and self._count(rows) <= DOUBTFUL * len(self._codes):
                break

    def finish(self) -> None:
        self.fit = finish(self.regression, self.C, self.fit, self._valid)
        self.finished = True
        self._count(self._valid)
        self.most = self.least = self.right

    def _count(self, rows: Array) -> int:
        """Count answers that are right, and those that are open, which it returns."""
        logits, change = (self.regression.link.decide(rows @ part.astype(rows.dtype)) for part in self.fit[:2])
        right = logits.argmax(axis=1) == self._codes
        unsettled = undecided(logits, change, SAFETY)
        self.right, self.least = int(right.sum()), int((right & ~unsettled).sum())
        self.most = self.least + int(unsettled.sum())
        return int(unsettled.sum())


def choose_by_accuracy(
    regression: Regression, strengths: Sequence[float], valid: Floats, codes: Codes, test: Floats
) -> Choice:
    """The strength whose optimum answers most validation rows correctly, and its logits for the test rows.

    Args:
        regression: The training rows.
        strengths: Values of C, ascending; a single one needs no validation rows.
        valid: Validation rows, with a column of ones.
        codes: Their right answers; -1 is a class that was not learnt.
        test: Test rows, with a column of ones.
    """
    trials: list[_Trial] = []
    last, before = regression.start(), None
    for C in strengths:
        trial = _Trial(regression, C, regression.warm(C, last, before), valid, codes)
        trial.solve_roughly()
        trials.append(trial)
        before, last = (last if len(trials) > 1 else None), trial.fit
    while True:
        bar = max(trial.least for trial in trials)
        rivals = [trial for trial in trials if trial.most >= bar and not trial.finished]
        if not rivals:
            break
        max(rivals, key=lambda trial: trial.most).finish()
    best = max(trials, key=lambda trial: (trial.finished, trial.least, -trial.C))
    fit = finish(regression, best.C, best.fit, np.concatenate([valid, test]))
    logits, change = (regression.link.decide(test @ part) for part in fit[:2])
    unsettled = undecided(logits, change, 1.0)
    score = best.right / len(codes) if len(codes) else 0.0
    return Choice(best.C, score, logits, int(unsettled.sum()), sum(trial.fit.products for trial in trials))


def choose_by_score(
    regression: Regression, strengths: Sequence[float], valid: Floats, score: Callable[[Floats], float], test: Floats
) -> Choice:
    """The strength with the highest score of its validation logits; every strength is solved to the end."""
    best: Choice | None = None
    last, before = regression.start(), None
    products = 0
    for place, C in enumerate(strengths):
        fit = converge(regression, C, regression.warm(C, last, before))
        products += fit.products
        before, last = (last if place else None), fit
        value = score(valid @ fit.weights) if len(strengths) > 1 else 0.0
        if best is None or value > best.score:
            best = Choice(C, value, test @ fit.weights)
    if best is None:
        raise ValueError("no strengths")
    return best._replace(products=products)


def finish(regression: Regression, C: float, fit: Fit, rows: Floats) -> Fit:
    """Improve until no answer for these rows can change, or until steps change nothing more."""
    decide = regression.link.decide
    for _ in range(FINE_STEPS):
        if fit.exact:
            logits, change = rows @ fit.weights, rows @ fit.step.astype(np.float64)
            if _still(logits, change) or not undecided(decide(logits), decide(change), SAFETY).any():
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
    for _ in range(FINE_STEPS):
        fit = regression.improve(C, fit, FINE, exact=True)
        if _still(fit.logits, regression.exact @ fit.step.astype(np.float64)):
            break
    return fit


def _still(logits: Array, change: Array) -> bool:
    return bool(np.abs(change).max(initial=0) <= SMALLEST * (1 + np.abs(logits).max(initial=0)))
