"""Every metric of a pair of sets from shared searches: as plain numbers, or with what each point contributes.

Each metric is a function of a few means over points ("terms"), so that one resampling of the points serves all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, MissingExtra, UsageError
from earmark.evaluation.data import check_vectors
from earmark.evaluation.options import byte_count
from earmark.generated import metrics as rules
from earmark.generated._apart import Apart
from earmark.generated._gicdm import TooFew, Work, refuse_identical, scales_of
from earmark.generated._one_class import Supports, one_class
from earmark.generated.balls import Balls, Pair, Reference, Side
from earmark.generated.metrics import Judgement, Reading, Undefined
from earmark.geometry import spaces
from earmark.scores.metrics import Metric
from earmark.wording import counted
from earmark.workers import thread_count

Array = NDArray[Any]
Ints = NDArray[np.int64]

MEMORY = 2 << 30
COVER_SPAN = 3  # k' of the cover pair is 3k


@dataclass(frozen=True)
class Missing:
    """A metric that could not be measured, and why; `too_few` where a smaller k would do."""

    metric: str
    reason: str
    too_few: TooFew | None = None


def measure(
    real: Any, generated: Any, *, metrics: str | Iterable[str] | None = None, k: int | Mapping[str, int] = 5,
    gicdm: bool = False, reading: Reading = "corrected", distance: str = "euclidean", ties: spaces.Ties = "average",
    threads: int | None = 1, memory: str | int = MEMORY, device: str = "cpu", cap: bool = True, shrink: bool = False,
    seed: int = 0,
) -> dict[str, float]:  # fmt: skip
    """The metrics of `generated` [M, D] against `real` [N, D] as plain numbers, without rows and intervals.

    `real` may be a `Reference`, which remembers its own neighbourhoods from one call to the next.
    `metrics` defaults to all metrics of balls but ablations. `k` is one number (the cover pair keeps its 3) or a number
    for each metric by name. With `gicdm`, distances are corrected first; metrics without a corrected form are refused.
    `reading` chooses the form of the clipped pair under GICDM. `cap` cuts clipped_density at 1. `shrink` lets GICDM use
    neighbourhoods as wide as the sets allow where 20k do not fit, instead of refusing. A value that is not defined for
    these points (balls that all have radius 0) is NaN; `earmark.fidelity` gives a row and a reason instead.
    """
    usual = tuple(name for name in rules.USUAL_BALLS if rules.METRICS[name].gicdm or not gicdm)
    names = rules.plan(metrics, usual)
    sets = check_sets(real, generated)
    work = Work(thread_count(threads), byte_count(memory), device)
    meter = Meter(*sets, names, k, distance, work, correct=gicdm, ties=ties, cap=cap, shrink=shrink, seed=seed)
    values = {}
    for name in names:
        judgement = meter.measured(name, corrected=gicdm, reading=reading, strict=True)
        values[name] = judgement.value if isinstance(judgement, Judgement) else float("nan")
    return values


def check_sets(real: Any, generated: Any) -> tuple[Reference, Array]:
    """Two finite matrices of one width with at least two rows each, the real ones not all of one point."""
    reference = real if isinstance(real, Reference) else Reference(real)
    first, second = reference.vectors, check_vectors(generated, "The generated vectors")
    if first.shape[1] != second.shape[1]:
        raise InputError(
            f"Real vectors have {counted(first.shape[1], 'dimension')} and generated ones {second.shape[1]}: "
            "take both from the same model and pooling."
        )
    for values, name in ((first, "real"), (second, "generated")):
        if len(values) < 2:
            raise InputError(f"There is {counted(len(values), f'{name} vector')}: a neighbourhood needs at least 2.")
    refuse_identical(first)
    return reference, second


class Meter:
    """One pair of sets under one distance, and every metric of it; searches are shared and made when first needed."""

    def __init__(
        self, real: Reference, generated: Array, names: Iterable[str], k: int | Mapping[str, int], distance: str,
        work: Work, *, correct: bool, ties: spaces.Ties = "average", cap: bool = True, shrink: bool = False,
        seed: int = 0, units: tuple[Ints, Ints] | None = None, bandwidth: float | str = "real",
    ) -> None:  # fmt: skip
        names = tuple(names)
        self.k = rules.neighbours_of(k, names)
        self._sets = real.vectors, generated
        self._distance, self._work, self._cap, self._seed = distance, work, cap, seed
        self.pair = Pair(real, generated, distance, self._depth(names, correct), work, ties=ties, shrink=shrink)
        self._supports: Supports | MissingExtra | None = None
        alone = np.arange(len(self._sets[0])), len(self._sets[0]) + np.arange(len(generated))
        self._apart_from = Apart(*self._sets, units or alone, work.threads, seed, bandwidth, shrink)

    def measured(
        self, name: str, *, corrected: bool = False, reading: Reading = "corrected", strict: bool = False
    ) -> Judgement | Missing:
        """One metric. What cannot be had is Missing with its reason, or an error when `strict`."""
        record = rules.facts(name)
        if corrected and not record.gicdm:
            if strict:
                raise UsageError(f"GICDM is not defined for {record.name}: leave it out.")
            return Missing(name, f"GICDM is not defined for {record.name}")
        if name in rules.LITERALS:
            reading = "literal"
        try:
            if record.name in rules.BALLS:
                return self._from_balls(name, record, corrected, reading)
            return self._supported(name) if name in rules.NETWORK else self._apart(name)
        except TooFew as error:
            if strict:
                raise
            return Missing(name, str(error).removesuffix("."), error if error.largest else None)

    def _depth(self, names: tuple[str, ...], correct: bool) -> int:
        """The deepest neighbour that any of the metrics looks at."""
        depths = [1]
        for name in names:
            record = rules.facts(name)
            if record.name in rules.BALLS:
                k = self.k[record.name]
                depths.append(_cover_depth(k) if name.endswith("_cover") else k)
                depths += [scales_of(k)[1]] if correct and record.gicdm else []
        return max(depths)

    def _from_balls(self, name: str, record: Metric, corrected: bool, reading: Reading) -> Judgement | Missing:
        try:
            judged: Judgement = record.compute(
                _Sides(self.pair, record.name, self.k[record.name], corrected, reading, self._cap)
            )
        except Undefined as error:
            return Missing(name, str(error))
        return replace(judged, metric=name)

    def _supported(self, name: str) -> Judgement | Missing:
        if self._distance != "euclidean":
            return Missing(name, f"the network compares its outputs under euclidean, not {self._distance}")
        if self._supports is None:
            try:
                self._supports = one_class(*self._sets, seed=self._seed, work=self._work)
            except MissingExtra as error:
                self._supports = error
        if isinstance(self._supports, MissingExtra):
            return Missing(name, str(self._supports))
        value = self._supports.alpha_precision if name == "alpha_precision" else self._supports.beta_recall
        reason = f"a network trained on the real points decides, with seed {self._seed}"
        return Judgement((), lambda: value, reason, metric=name)

    def _apart(self, name: str) -> Judgement | Missing:
        if self._distance != "euclidean":
            return Missing(name, f"it compares the vectors as they are: ask for euclidean, not {self._distance}")
        try:
            return self._apart_from.judge(name)
        except Undefined as error:
            return Missing(name, str(error))


class _Sides:
    """The balls that a metric looks at, found when it does."""

    def __init__(self, pair: Pair, metric: str, k: int, corrected: bool, reading: Reading, cap: bool) -> None:
        self._pair, self._metric, self._corrected = pair, metric, corrected
        self.k, self.reading, self.cap = k, reading, cap
        self.sizes = pair.real.base.n, pair.real.other.n

    @property
    def real(self) -> Balls:
        return self._pair.real.corrected(self.k) if self._corrected else self._pair.real.balls(self.k)

    @property
    def generated(self) -> Balls:
        return self._pair.generated.corrected(self.k) if self._corrected else self._pair.generated.balls(self.k)

    @property
    def cover_real(self) -> Balls:
        return _cover_balls(self._pair.real, self._metric, self.k)

    @property
    def cover_generated(self) -> Balls:
        return _cover_balls(self._pair.generated, self._metric, self.k)


def _cover_depth(k: int) -> int:
    """k' = 3k counts the point itself, as in the authors' code: the radius is that of the (3k - 1)-th other."""
    return COVER_SPAN * k - 1


def _cover_balls(side: Side, name: str, k: int) -> Balls:
    """Balls of the cover pair; where they cannot be had, the k to ask for is not the neighbour they reach to."""
    depth, n = _cover_depth(k), side.base.n
    if depth < n:
        return side.balls(depth)
    largest = n // COVER_SPAN  # the largest k with 3k - 1 < n
    remedy = f"use --k {name}={largest}" if largest else f"it needs at least {COVER_SPAN}"
    there = counted(n, f"{side.name} point")
    raise TooFew(f"k = {k} of the cover pair looks at {depth} others (3k - 1), and there are {there}", remedy)
