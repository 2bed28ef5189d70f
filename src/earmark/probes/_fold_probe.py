"""One fold of a linear probe: z-scores by its training part, the choice of C, and answers for its test part."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.probes._logistic import Floats, Link, Regression, Sigmoids, Softmax, rotate, rotation_of, with_ones
from earmark.probes._precision import mean_average_precision
from earmark.probes._probed_rows import ProbedRows
from earmark.probes._strengths import ChosenStrength, choose_by_accuracy, choose_by_score
from earmark.probes.folds import Fold

Bools = NDArray[np.bool_]


class Outcome(NamedTuple):
    """What a fold's test clips were answered, and with which C."""

    choice: ChosenStrength
    answers: NDArray[Any]  # codes of the test rows, or the logit of every label
    seconds: float
    unlearnt: int = 0  # labels that all training clips have, or none


class _Parts(NamedTuple):
    """Rows of a fold as the regression sees them; those that are answered have a last column of ones."""

    train: Floats
    valid: Floats
    test: Floats


class Probe:
    """A probe of these rows: `test` may be called for several folds at a time."""

    def __init__(
        self, data: ProbedRows, strengths: tuple[float, ...], tolerance: float | None = None, *, refit: bool = False
    ) -> None:
        self.data, self.strengths, self.tolerance, self.refit = data, strengths, tolerance, refit
        self._vectors = data.vectors[data.kept].astype(np.float64)
        self._rotation = rotation_of(self._vectors)

    def test(self, fold: Fold) -> Outcome:
        """Learn, choose and answer."""
        started = time.perf_counter()
        choose = self._choose_labels if self.data.several else self._choose_class
        if len(self.strengths) == 1:
            fold = _with_all(fold)
        choice, answers = choose(fold, self.strengths)
        if self.refit and len(fold.valid):
            fold = _with_all(fold)
            again, answers = choose(fold, (choice.C,))
            choice = again._replace(score=choice.score)
        unlearnt = int((~_learnable(self.data.targets[fold.train])).sum()) if self.data.several else 0
        return Outcome(choice, answers, time.perf_counter() - started, unlearnt)

    def _choose_class(self, fold: Fold, strengths: tuple[float, ...]) -> tuple[ChosenStrength, NDArray[Any]]:
        """For clips with one label each: the choice, and the code of each test answer."""
        targets, parts = self.data.targets, self._parts(fold)
        learnt, codes = np.unique(targets[fold.train], return_inverse=True)
        link: Link = Softmax(codes, len(learnt)) if len(learnt) > 2 else Sigmoids(codes[:, None] == 1)
        place = np.full(len(self.data.names), -1)
        place[learnt] = np.arange(len(learnt))
        choice = choose_by_accuracy(
            Regression(parts.train, link), strengths, parts.valid, place[targets[fold.valid]], parts.test,
            self.tolerance,
        )  # fmt: skip
        return choice, learnt[choice.logits.argmax(axis=1)]

    def _choose_labels(self, fold: Fold, strengths: tuple[float, ...]) -> tuple[ChosenStrength, NDArray[Any]]:
        """For clips with several labels each: the choice, and the logit of every label for each test row."""
        targets, parts = self.data.targets, self._parts(fold)
        learnt = _learnable(targets[fold.train])
        if not learnt.any():
            raise InputError(
                f'Fold "{fold.name}": every label is on all of the training clips, or on none; give other folds.'
            )

        def spread(logits: Floats) -> Floats:
            """Logits of all labels: one value for every clip where a label could not be learnt."""
            whole = np.zeros((len(logits), len(learnt)))
            whole[:, learnt] = logits
            return whole

        choice = choose_by_score(
            Regression(parts.train, Sigmoids(targets[fold.train][:, learnt])), strengths, parts.valid,
            lambda logits: mean_average_precision(spread(logits), targets[fold.valid]), parts.test, self.tolerance,
        )  # fmt: skip
        return choice, spread(choice.logits)

    def _parts(self, fold: Fold) -> _Parts:
        mean, scale = _moments(self._vectors[fold.train])
        rows = (self._vectors[fold.train] - mean) / scale
        turn = rotate(rows, self._rotation)
        answered = (with_ones(turn((self._vectors[part] - mean) / scale)) for part in (fold.valid, fold.test))
        return _Parts(turn(rows), *answered)


def _with_all(fold: Fold) -> Fold:
    """The fold with its validation clips among the training clips."""
    return Fold(fold.name, np.concatenate([fold.train, fold.valid]), fold.valid[:0], fold.test)


def _learnable(present: Bools) -> Bools:
    return np.asarray(present.any(axis=0) & ~present.all(axis=0))


def _moments(rows: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation of each column as scikit-learn's StandardScaler has them: a constant one is divided by 1."""
    mean = rows.mean(axis=0)
    variance = np.square(rows - mean).mean(axis=0)
    smallest = len(rows) * np.finfo(np.float64).eps
    constant = variance <= smallest * variance + np.square(smallest * mean)
    return mean, np.where(constant, 1.0, np.sqrt(variance))
