"""Checks on real embeddings: one set of clips is cut in halves, one half stands for a generator and is made worse.

Appendix F of the GICDM paper, after Salvy et al. (2026). N points in each half, k = 5, scores relative to the first:

    dropping    of G modes all but one fade until the first is all there is; N / G points in each set, so that the
                first mode has points enough to take the places of the others
                fidelity                 stays: every sample is a real one
    outliers    0 to 3 % of both halves are replaced by bad samples
                fidelity, coverage       stay: a few bad real points are no reason to believe bad samples
    replacing   0 to 100 % of the generated half are replaced by bad samples
                fidelity, coverage       fall in a straight line, as the share of good samples does

Clips of one group (recording, speaker) never lie in both halves. A mode is a label, or several labels dealt together
anew in each repeat, where there are more labels than modes. Bad samples are given (noise through the same model), or
are points of the half itself moved away from its mean by a factor of about ten.

A curve passes when its mean over the repeats stays near the ideal everywhere: within FLAT where it should stay, within
SLOPE where it should fall. The paper's verdicts were given by eye; these are ours. The error of the largest departure
comes from the repeats, which cut the same clips in other halves: it says nothing of other clips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark._version import __version__
from earmark.errors import UsageError, did_you_mean
from earmark.generated.metrics import BALLS
from earmark.generated.sanity._data import value_text
from earmark.generated.sanity._real_pairs import TESTS, Plan, RealSet, RealTest
from earmark.generated.sanity._scoring import score_set
from earmark.generated.sanity.columns import PRINTED, Column, choose
from earmark.generated.sanity.rules import Kind
from earmark.progress import progress_bar
from earmark.published import read
from earmark.runs.journal import Journal, Trial, TrialScore
from earmark.tables import csv_text
from earmark.workers import thread_count

__all__ = ["TESTS", "RealCell", "RealCurve", "RealSanity", "RealSet", "RealTest", "judge_curve", "sanity_on_real"]

Floats = NDArray[np.float64]
Outcome = Literal["T", "F"]

K = 5
REPEATS = 10
NOT_BAD = 0.5  # of the score of good samples
SURE = 2.0  # standard errors between a departure and its limit: nearer ones chance could turn
DEFAULT = tuple(name for name in PRINTED if name in BALLS)


class RealCell(NamedTuple):
    """What one check says of one column on one set.

    `departure` is the largest distance of the relative score from its ideal, `at` that value of the grid, and `error`
    is its standard error over repeats. `decided` is False where the error could turn the outcome. `start` is the score
    before anything was made worse. `outcome` is None where a score is missing, for the `reason`.
    """

    system: str
    test: str
    column: Column
    outcome: Outcome | None
    decided: bool
    departure: float | None
    at: float | None
    error: float | None
    start: float | None
    published: str
    reason: str = ""

    @property
    def agrees(self) -> bool | None:
        """Whether the outcome is the published one; None where one of the two is missing."""
        return None if self.outcome is None or not self.published else self.outcome == self.published

    def row(self) -> dict[str, Any]:
        return {
            "system": self.system, "test": self.test, "asks": self.column.kind, "metric": self.column.metric,
            "correction": self.column.correction, "outcome": self.outcome, "decided": self.decided,
            "departure": _rounded(self.departure), "at": self.at, "error": _rounded(self.error),
            "start": _rounded(self.start), "published": self.published or None, "reason": self.reason or None,
        }  # fmt: skip


class RealCurve(NamedTuple):
    """Scores over the grid [repeats, values]; NaN where there is none."""

    grid: Floats
    scores: Floats

    @property
    def relative(self) -> Floats:
        """The mean score over the repeats, in units of the mean at the start."""
        means = self.scores.mean(axis=0)
        return np.asarray(means / means[0] if means[0] > 0.0 else np.full(len(means), np.nan))


@dataclass(frozen=True)
class RealSanity:
    """Cells in the order of the published tables, the curves behind them by (system, test, column), and remarks."""

    cells: tuple[RealCell, ...]
    curves: Mapping[tuple[str, str, str], RealCurve]
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.system for cell in self.cells))

    def cell(self, system: str, test: str, column: str) -> RealCell:
        return next(c for c in self.cells if (c.system, c.test, c.column.name) == (system, test, column))

    def to_csv(self) -> str:
        """Every cell as a line."""
        return csv_text(list(self.cells[0].row()), [cell.row() for cell in self.cells]) if self.cells else ""


def sanity_on_real(
    sets: Mapping[str, RealSet] | RealSet, *, metrics: Sequence[str | Any] | None = None,
    correct: Sequence[str] = ("none", "gicdm"), tests: Sequence[str] | None = None, own_kind: Kind = "fidelity",
    k: int = K, distance: str = "euclidean", repeats: int = REPEATS, modes: int | None = None, seed: int = 0,
    into: str | Path | None = None, threads: int | None = None, device: str = "cpu", progress: bool = False,
) -> RealSanity:  # fmt: skip
    """Put metrics of fidelity and coverage to the checks of Appendix F, on embeddings of real clips.

    Args:
        sets: Embeddings by the name of their model, or one of them.
        metrics: Names, import paths of your own or functions, as in `earmark.sanity`; None is every metric of balls.
        correct: "none", "gicdm" or both, for metrics that have both.
        tests: Names of `TESTS`; None is all.
        own_kind: What a metric of your own measures when it returns one number.
        k: Neighbours that make a ball; the cover pair keeps its 3.
        distance: euclidean, cosine or spearman. Without bad samples of your own, only euclidean.
        repeats: How often the clips are cut in halves.
        modes: Into how many modes labels are put in `dropping`; None is as many as leave 200 points to a set, at most
            10 and no more than there are labels.
        seed: Seed of halves, modes and bad samples.
        into: A folder that keeps every score: a run that was killed continues there.
        threads: Threads at work; None is one for each core. No result depends on it.
        device: Where large searches run: cpu, cuda or auto.
        progress: Whether a bar on stderr shows how far the work is.
    """
    named = {"": sets} if isinstance(sets, RealSet) else dict(sets)
    columns = choose(DEFAULT if metrics is None else metrics, correct, own_kind=own_kind)
    for test in tests or ():
        if test not in TESTS:
            raise UsageError(f"There is no test {test!r}.{did_you_mean(test, TESTS)} Known: {', '.join(TESTS)}.")
    asked = [test for test in TESTS if tests is None or test in tests]
    if repeats < 2:
        raise UsageError(f"repeats must be at least 2, not {repeats}: errors come from other halves.")
    plans = {name: Plan.make(name, one, asked, k, distance, modes, seed) for name, one in named.items()}
    settings = {
        "k": k, "distance": distance, "seed": seed, "version": __version__,
        "sets": {name: plan.digest for name, plan in plans.items()},
    }  # fmt: skip
    how = {"threads": thread_count(threads), "device": device, "distance": distance, "k": k}
    with Journal(into, settings) as journal:
        total = sum(len(plan.tests[test]) for plan in plans.values() for test in plan.tests) * repeats
        with progress_bar(progress, total, "sanity", "pair") as tick:
            for name, plan in plans.items():
                for repeat in range(repeats):
                    for test, value, real, generated in plan.pairs(repeat):
                        judged = [column for column in columns if column.kind in TESTS[test].kinds]
                        trials = {c.key: Trial(c.key, test, name, value_text(value), repeat) for c in judged}
                        left = [column for column in judged if trials[column.key] not in journal.scores]
                        found = score_set(left, real, generated, **how) if left else {}
                        journal.add(TrialScore(trials[key], *score) for key, score in found.items())
                        tick(1)
        return _judged(plans, columns, journal, repeats)


# --- verdicts -------------------------------------------------------------------------------------------------------


def _judged(plans: Mapping[str, Plan], columns: Sequence[Column], journal: Journal, repeats: int) -> RealSanity:
    cells, curves = [], {}
    for name, plan in plans.items():
        for column in columns:
            for test, grid in plan.tests.items():
                if column.kind not in TESTS[test].kinds:
                    continue
                trials = [
                    [Trial(column.key, test, name, value_text(float(value)), repeat) for value in grid]
                    for repeat in range(repeats)
                ]
                scores = [[journal.scores[trial] for trial in line] for line in trials]
                curve = RealCurve(grid, np.array([[score.score for score in line] for line in scores]))
                curves[name, test, column.name] = curve
                reason = next((score.reason for line in scores for score in line if score.reason), "")
                cells.append(judge_curve(name, TESTS[test], column, curve, reason))
    notes = [note for plan in plans.values() for note in plan.notes]
    notes += [note for name in plans if (note := _not_bad(name, curves))]
    return RealSanity(tuple(cells), curves, tuple(columns), tuple(notes))


def _not_bad(system: str, curves: Mapping[tuple[str, str, str], RealCurve]) -> str:
    """A remark where bad samples alone score as real ones do: then they are none, for this model and these clips."""
    for metric in ("clipped_density", "precision", "density"):
        curve = curves.get((system, "replacing", metric))
        if curve is not None and np.isfinite(curve.relative[-1]):
            if curve.relative[-1] <= NOT_BAD:
                return ""
            return (
                f"{system or 'the vectors'}: with nothing but bad samples {metric} is {curve.relative[-1]:.2f} of what "
                "it is with good ones: to this model they are like some of the clips, and the checks say little; give "
                "others with --bad"
            )
    return ""


def judge_curve(system: str, test: RealTest, column: Column, curve: RealCurve, reason: str = "") -> RealCell:
    """The verdict on one curve."""
    published = _published().get((test.name, *column.printed), "")
    start = float(curve.scores[:, 0].mean())
    missing = (None, False, None, None, None, None if np.isnan(start) else start, published)
    if not np.isfinite(curve.scores).all():
        return RealCell(system, test.name, column, *missing, reason or "a score is missing")
    if start <= 0.0:
        return RealCell(system, test.name, column, *missing, "the score is 0 before anything is made worse")
    away = (curve.scores - test.ideal(curve.grid) * curve.scores[:, :1]) / start  # [repeats, values], 0 where ideal
    departures = np.abs(away.mean(axis=0))
    at = int(departures.argmax())
    departure = float(departures[at])
    error = float(away[:, at].std(ddof=1) / np.sqrt(len(away)))
    decided = abs(departure - test.limit) >= SURE * error
    outcome: Outcome = "T" if departure <= test.limit else "F"
    return RealCell(
        system, test.name, column, outcome, decided, departure, float(curve.grid[at]), error, start, published
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


@lru_cache(maxsize=1)
def _published() -> dict[tuple[str, str, str], str]:
    """Published verdicts by (test, printed metric, "0" or "1" for GICDM)."""
    return {(row["test"], row["metric"], row["gicdm"]): row["cell"] for row in read("gicdm_appendix_f")}
