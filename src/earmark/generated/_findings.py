"""What is found of one generated set: its rows, the values of its single points, and remarks on what is unusual."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.generated._asked import CORRECTIONS
from earmark.generated._copies import Copies, near_copies
from earmark.generated._gicdm import TooFew
from earmark.generated.balls import Balls
from earmark.generated.measure import Meter, Missing
from earmark.generated.metrics import DISTANCES, Judgement
from earmark.geometry.neighbours import nearest
from earmark.scores import PointKey, Row, Scores
from earmark.wording import counted

Floats = NDArray[np.float64]
Outcomes = list[tuple[str, Judgement | Missing]]

HEADLINES = ("clipped_density", "density", "precision", "p_precision", "sym_precision", "precision_cover")
"""What samples are ordered by: the first of these that was measured, corrected if it was."""


@dataclass(frozen=True, slots=True, eq=False)
class Fidelity(Scores):
    """Scores of generated against real points, with the value of every point.

    `per_sample` maps (distance, correction, "all", metric) to a value for each generated point, `per_real` to one for
    each real point; of a distance of the sets, by how much the point raises it: the value less that without the point,
    of frechet_distance to first order. Beside the metrics, samples have `nearest_row` (the nearest real point) and
    `reach` (distance to a real point in radii of its ball, the smallest: over 1 is outside of all), and under GICDM
    `kept` (1 or 0), `misfit` (how little a sample fits in: over 1 is dropped, and has no reach) and `factor`. `copy` (1
    or 0) is there when more samples than chance brings are (near) copies of real points, by a test at the level of 5 %.
    `too_few` maps (distance, correction, metric) of what could not be measured to the k that would fit, `at_shares`
    fad_inf to the shares of the sets it was found from, each with the Fréchet distance of such sets.
    """

    per_sample: Mapping[PointKey, Floats] = field(default_factory=dict)
    per_real: Mapping[PointKey, Floats] = field(default_factory=dict)
    sample_ids: tuple[str, ...] | None = None
    real_ids: tuple[str, ...] | None = None
    too_few: Mapping[tuple[str, str, str], TooFew] = field(default_factory=dict)
    at_shares: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = [
            counted(len(next(iter(points.values()))), noun)
            for points, noun in ((self.per_sample, "sample"), (self.per_real, "real point"))
            if points
        ]
        return f"Fidelity({', '.join([counted(len(self.rows), 'row'), *sizes])})"

    def worst(self, count: int | None = None, *, distance: str | None = None) -> NDArray[np.int64]:
        """Rows of generated points, the least real first: by the leading metric, then by misfit, then by reach.

        Where only distances of the sets were measured, those that raise them most are first.
        """
        key = self.leading(distance)
        score = -self.per_sample[key] if key[3] in DISTANCES else self.per_sample[key]
        nothing = np.zeros(len(score))
        misfit = self.per_sample.get((*key[:3], "misfit"), nothing)
        reach = self.per_sample.get((key[0], "none", "all", "reach"), nothing)
        order = np.lexsort((np.arange(len(score)), -reach, -misfit, score))
        return np.asarray(order[:count], np.int64)

    def leading(self, distance: str | None = None) -> PointKey:
        """The per-sample score that samples are ordered by."""
        for correction in reversed(CORRECTIONS):
            for metric in (*HEADLINES, *DISTANCES):
                for key in self.per_sample:
                    if key[1] == correction and key[3] == metric and distance in (None, key[0]):
                        return key
        raise InputError(
            f"No score of single samples was measured: ask for one of {', '.join(HEADLINES)}, with a k that fits."
        )


class Sampled(NamedTuple):
    """A score before it is cut at 1, and what it was on each of the smaller sets; empty where none were measured."""

    value: float
    smaller: Floats


class IntervalCells(NamedTuple):
    """The cells of a row that tell its interval, and a remark for its reason."""

    values: dict[str, Any]
    reason: str = ""


class Findings:
    """What is found of one set over the distances."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self.samples: dict[PointKey, Floats] = {}
        self.reals: dict[PointKey, Floats] = {}
        self.too_few: dict[tuple[str, str, str], TooFew] = {}
        self.sampled: dict[tuple[str, str, str], Sampled] = {}
        self.at_shares: dict[str, tuple[tuple[float, float], ...]] = {}

    def fidelity(self, ids: tuple[str, ...] | None, real_ids: tuple[str, ...] | None) -> Fidelity:
        return Fidelity(
            rows=tuple(self.rows), notes=tuple(dict.fromkeys(self.notes)), per_sample=self.samples,
            per_real=self.reals, sample_ids=ids, real_ids=real_ids, too_few=self.too_few,
            at_shares=self.at_shares,
        )  # fmt: skip

    def take(
        self, outcomes: Outcomes, cells: Mapping[tuple[str, str], IntervalCells],
        smaller: Mapping[tuple[str, str], Floats], options: str, points: int, about: dict[str, Any],
    ) -> None:  # fmt: skip
        """The rows of one distance."""
        for which, score in outcomes:
            about["inputs"] = hashlib.sha256(f"{options} {which}".encode()).hexdigest()
            self.rows.append(_row(score, which, cells.get((which, score.metric)), points, about))
            if isinstance(score, Judgement):
                value = score.value if score.uncut is None else score.uncut
                found = smaller.get((which, score.metric), np.empty(0))
                self.sampled[about["distance"], which, score.metric] = Sampled(value, found)

    def points(self, meter: Meter, space: str, outcomes: Outcomes) -> None:
        """Values of single points, and notes on what is unusual about them."""
        side = meter.pair.real
        for owner in (side, meter.pair.generated):
            if owner.base.flat.any():
                flat = counted(int(owner.base.flat.sum()), f"{owner.name} vector")
                self.notes.append(f"{flat} without direction: distance 1 to all under {space}")
        for which, score in outcomes:
            if isinstance(score, Missing):
                self.too_few |= {} if score.too_few is None else {(space, which, score.metric): score.too_few}
                continue
            self.at_shares |= {score.metric: score.at_shares} if score.at_shares else {}
            for shown in (*filter(None, [score.shown]), *score.told):
                table = self.samples if shown.points == "generated" else self.reals
                table[(space, which, "all", score.metric)] = shown.values
        copies = None
        leading = [
            (which, name) for which in CORRECTIONS for name in HEADLINES if (space, which, "all", name) in self.samples
        ]  # fmt: skip
        if leading and not side.lacks(meter.k[leading[0][1]]):
            near = nearest(side.base, 1, queries=side.other, **side.work.options())
            self.samples[(space, "none", "all", "nearest_row")] = near.places[:, 0].astype(np.float64)
            copies = near_copies(side, near, seed=self.seed)
            self._plain(space, side.balls(meter.k[leading[0][1]]))
        corrected = next((name for which, name in leading if which == "gicdm"), None)
        if corrected is not None:
            self._corrected(space, side.corrected(meter.k[corrected]))
        if copies is not None:
            self._copied(space, copies)

    def _copied(self, space: str, copies: Copies) -> None:
        """A verdict where there are more (near) copies than chance brings; else samples at distance 0 are counted."""
        if copies.memorised:
            self.samples[(space, "none", "all", "copy")] = copies.near.astype(np.float64)
            kept = self.samples.get((space, "gicdm", "all", "kept"))
            dropped = "" if kept is None else f"; GICDM drops {int((copies.near & (kept == 0.0)).sum())} of them"
            self.notes.append(
                f"{_copies_of(int(copies.near.sum()), '(near) ')} ({space}), more than chance brings "
                f"(p = {copies.p_value:.3f}): a generator that memorises{dropped}"
            )
        elif copies.exact:
            their = "its distance 0" if copies.exact == 1 else "their number"
            self.notes.append(
                f"{_copies_of(copies.exact, '')} at distance 0 ({space}); {their} alone does not show that the "
                "generator memorises"
            )

    def _plain(self, space: str, balls: Balls) -> None:
        self.samples[(space, "none", "all", "reach")] = balls.reach
        copies = int((balls.radii == 0.0).sum())
        if copies:
            self.notes.append(
                f"{counted(copies, 'real point')} with at least {balls.k} exact copies ({space}): a ball of radius 0 "
                "holds nothing but more copies"
            )

    def _corrected(self, space: str, balls: Balls) -> None:
        judged = balls.adjusted
        assert judged is not None
        self.samples[(space, "gicdm", "all", "reach")] = np.where(judged.kept, balls.reach, np.nan)
        self.samples[(space, "gicdm", "all", "kept")] = judged.kept.astype(np.float64)
        self.samples[(space, "gicdm", "all", "misfit")] = judged.misfit
        self.samples[(space, "gicdm", "all", "factor")] = judged.factors
        lost, odd = int((~judged.kept).sum()), int((~balls.fitting).sum())
        self.notes.append(
            f"GICDM ({space}, k = {balls.k}): {lost} of {len(judged.kept)} generated points do not fit in with the "
            f"real ones; of the {len(balls.fitting)} real points {odd} do not"
        )


def _copies_of(count: int, near: str) -> str:
    if count == 1:
        return f"1 sample is a {near}copy of a real point"
    return f"{count} samples are {near}copies of real points"


def _row(
    score: Judgement | Missing, correction: str, cells: IntervalCells | None, points: int, about: dict[str, Any]
) -> Row:
    if isinstance(score, Missing):
        return Row(metric=score.metric, correction=correction, status="not_applicable", reason=score.reason, **about)
    values, reason = cells or IntervalCells({})
    return Row(
        metric=score.metric, correction=correction, value=score.value, n=score.points or points,
        reason="; ".join(filter(None, [score.reason, reason])), **values, **about,
    )  # fmt: skip
