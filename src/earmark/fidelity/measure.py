"""Every metric of a pair of sets from shared searches: as plain numbers, or with what each point contributes.

Each metric is a function of a few means over points ("terms"), so that one resampling of the points serves all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, MissingExtra, UsageError
from earmark.evaluation.data import check_vectors
from earmark.evaluation.options import byte_count
from earmark.fidelity import catalogue, distributions, metrics
from earmark.fidelity.balls import Balls, Pair, Reference, Side, TooFew
from earmark.fidelity.catalogue import Reading
from earmark.fidelity.gicdm import Work, refuse_identical, scales_of
from earmark.fidelity.one_class import Supports, one_class
from earmark.geometry import spaces
from earmark.wording import counted
from earmark.workers import thread_count

Array = NDArray[Any]
Floats = NDArray[np.float64]

MEMORY = 2 << 30
COVER_SPAN = 3  # k' of the cover pair is 3k
UNCUT = 4  # how many times M the samples may be that clipped_coverage stands for, where it is not cut


class Term(NamedTuple):
    """A value for each point of one set; a metric uses their mean."""

    points: Literal["real", "generated"]
    values: Floats


@dataclass(frozen=True)
class Measured:
    """A metric: `combine` of the means of its terms. `shown` is the term that per-point listings give, if any.

    `uncut_combine` is there for a metric that is cut at 1, and does the same without the cut.
    """

    metric: str
    terms: tuple[Term, ...]
    combine: Callable[..., Any]
    reason: str = ""
    uncut_combine: Callable[..., Any] | None = None

    @property
    def value(self) -> float:
        return float(self.combine(*(term.values.mean() for term in self.terms)))

    @property
    def uncut(self) -> float | None:
        """The value before it was cut at 1; None for a metric that is not."""
        if self.uncut_combine is None:
            return None
        return float(self.uncut_combine(*(term.values.mean() for term in self.terms)))

    @property
    def shown(self) -> Term | None:
        """The term that decides the value: of several over one set, the one with the lowest mean."""
        if not self.terms or len({term.points for term in self.terms}) > 1:
            return None
        return min(self.terms, key=lambda term: float(term.values.mean()))

    @property
    def points(self) -> int | None:
        """How many points the value is a mean over."""
        sizes = {len(term.values) for term in self.terms}
        return sizes.pop() if len(sizes) == 1 else None


@dataclass(frozen=True)
class Missing:
    """A metric that could not be measured, and why."""

    metric: str
    reason: str


def measure(
    real: Any,
    generated: Any,
    *,
    metrics: str | Iterable[str] | None = None,
    k: int | Mapping[str, int] = 5,
    gicdm: bool = False,
    reading: Reading = "corrected",
    distance: str = "euclidean",
    ties: spaces.Ties = "average",
    threads: int | None = 1,
    memory: str | int = MEMORY,
    device: str = "cpu",
    cap: bool = True,
    shrink: bool = False,
    seed: int = 0,
) -> dict[str, float]:
    """The metrics of `generated` [M, D] against `real` [N, D] as plain numbers, without rows and intervals.

    `real` may be a `Reference`, which remembers its own neighbourhoods from one call to the next.
    `metrics` defaults to all metrics of balls. `k` is one number (the cover pair keeps its 3) or a number for each
    metric by name. With `gicdm`, distances are corrected first; metrics without a corrected form are refused. `reading`
    chooses the form of the clipped pair under GICDM. `cap` cuts clipped_density at 1. `shrink` lets GICDM use
    neighbourhoods as wide as the sets allow where 20k do not fit, instead of refusing. A value that is not defined for
    these points (balls that all have radius 0) is NaN; `earmark.fidelity` gives a row and a reason instead.
    """
    names = catalogue.plan(
        metrics, tuple(name for name in catalogue.BALLS if catalogue.METRICS[name].gicdm or not gicdm)
    )
    sets = check_sets(real, generated)
    work = Work(thread_count(threads), byte_count(memory), device)
    meter = Meter(*sets, names, k, distance, work, correct=gicdm, ties=ties, cap=cap, shrink=shrink, seed=seed)
    found = {}
    for name in names:
        one = meter.measured(name, corrected=gicdm, reading=reading, strict=True)
        found[name] = one.value if isinstance(one, Measured) else float("nan")
    return found


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
        self,
        real: Reference,
        generated: Array,
        names: Iterable[str],
        k: int | Mapping[str, int],
        distance: str,
        work: Work,
        *,
        correct: bool,
        ties: spaces.Ties = "average",
        cap: bool = True,
        shrink: bool = False,
        seed: int = 0,
    ) -> None:
        names = tuple(names)
        self.k = catalogue.neighbours_of(k, names)
        self._sets = real.vectors, generated
        self._distance, self._work, self._cap, self._seed = distance, work, cap, seed
        self.pair = Pair(real, generated, distance, self._depth(names, correct), work, ties=ties, shrink=shrink)
        self._supports: Supports | MissingExtra | None = None

    def measured(
        self, name: str, *, corrected: bool = False, reading: Reading = "corrected", strict: bool = False
    ) -> Measured | Missing:
        """One metric. What cannot be had is Missing with its reason, or an error when `strict`."""
        facts = catalogue.facts(name)
        if corrected and not facts.gicdm:
            return _refused(name, f"GICDM is not defined for {facts.name}", strict)
        if name in catalogue.LITERALS:
            reading = "literal"
        try:
            if facts.balls:
                return self._from_balls(name, facts.name, corrected, reading)
            return self._supported(name) if name in catalogue.NETWORK else self._apart(name)
        except TooFew as error:
            return _refused(name, str(error), strict)

    def _depth(self, names: tuple[str, ...], correct: bool) -> int:
        """The deepest neighbour that any of the metrics looks at."""
        depths = [1]
        for name in names:
            facts = catalogue.facts(name)
            if facts.balls:
                k = self.k[facts.name]
                depths.append(_cover_depth(k) if name.endswith("_cover") else k)
                depths += [scales_of(k)[1]] if correct and facts.gicdm else []
        return max(depths)

    def _from_balls(self, name: str, plain: str, corrected: bool, reading: Reading) -> Measured | Missing:
        k = self.k[plain]
        real = partial(_balls, self.pair.real, corrected)
        generated = partial(_balls, self.pair.generated, corrected)
        made = partial(Measured, name)
        if plain == "precision":
            return made((Term("generated", metrics.met(real(k).inside.per_point)),), _itself)
        if plain == "density":
            return made((Term("generated", real(k).inside.per_point / k),), _itself)
        if plain == "coverage":
            return made((Term("real", metrics.met(real(k).inside.per_centre)),), _itself)
        if plain == "recall":
            return made((Term("real", metrics.met(generated(k).inside.per_point)),), _itself)
        # The symmetric pair compares strictly, as in the benchmark whose tables are reproduced (Räisä et al.); on data
        # without exact ties it makes no difference.
        if plain == "sym_precision":
            inside = Term("generated", metrics.met(real(k).strictly_inside.per_point))
            around = Term("generated", metrics.met(generated(k).strictly_inside.per_centre))
            return made((inside, around), np.minimum)
        if plain == "sym_recall":
            inside = Term("real", metrics.met(generated(k).strictly_inside.per_point))
            around = Term("real", metrics.met(real(k).strictly_inside.per_centre))
            return made((inside, around), np.minimum)
        if plain == "precision_cover":
            balls = _cover_balls(self.pair.generated, plain, k)
            return made((Term("generated", metrics.met(balls.inside.per_centre, k)),), _itself)
        if plain == "recall_cover":
            balls = _cover_balls(self.pair.real, plain, k)
            return made((Term("real", metrics.met(balls.inside.per_centre, k)),), _itself)
        if plain in ("p_precision", "p_recall"):
            balls = real(k) if plain == "p_precision" else generated(k)
            if balls.logs is None:
                return Missing(name, "all balls have radius 0: every point has at least k exact copies")
            return made(
                (Term("generated" if plain == "p_precision" else "real", metrics.closeness(balls.logs)),), _itself
            )
        if plain == "clipped_density":
            return _clipped_density(name, real(k), reading, self._cap)
        return _clipped_coverage(name, real(k), reading, self.pair.real)

    def _supported(self, name: str) -> Measured | Missing:
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
        return Measured(
            name, (), lambda: value, f"a network trained on the real points decides, with seed {self._seed}"
        )

    def _apart(self, name: str) -> Measured | Missing:
        if self._distance != "euclidean":
            return Missing(name, f"it compares the vectors as they are: ask for euclidean, not {self._distance}")
        real, generated = self._sets
        with np.errstate(over="ignore", invalid="ignore"):
            if name == "kernel_distance":
                found = distributions.kernel_distance(real, generated, threads=self._work.threads)
                value = found.value
                terms = (Term("real", found.real), Term("generated", found.generated))
                one = Measured(name, terms, lambda x, y: x + y - value)
            else:
                value = distributions.frechet_distance(real, generated)
                one = Measured(name, (), lambda: value, _rank_lost(real, generated))
        if not np.isfinite(value):
            return Missing(name, "the vectors' values are too large for it: rescale them first")
        return one


def _balls(side: Side, corrected: bool, k: int) -> Balls:
    return side.corrected(k) if corrected else side.balls(k)


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
    raise TooFew(
        f"k = {k} of the cover pair looks at {depth} others (3k - 1), and there are "
        f"{counted(n, f'{side.name} point')}: {remedy}."
    )


def _itself(mean: Any) -> Any:
    return mean


def _clipped_density(name: str, balls: Balls, reading: Reading, cap: bool) -> Measured | Missing:
    own = metrics.filled(balls.clipped_among_themselves.per_point, balls.k)
    if reading == "corrected":
        # Real points that the filter would drop score 0, as generated ones do: else even perfect data stays below 1.
        own = np.where(balls.fitting, own, 0.0)
    reference = float(own.mean())
    if reference == 0.0:
        return Missing(name, "no real point lies in another's ball: there is nothing to compare with")
    term = Term("generated", metrics.filled(balls.clipped_inside.per_point, balls.k))
    ratio = partial(metrics.clipped_density, reference=reference)
    return Measured(name, (term,), partial(ratio, cap=cap), uncut_combine=partial(ratio, cap=False) if cap else None)


def _clipped_coverage(name: str, balls: Balls, reading: Reading, side: Side) -> Measured | Missing:
    reference = float(balls.fitting[balls.neighbours].mean()) if reading == "corrected" else 1.0
    if reference == 0.0:
        return Missing(name, "no real neighbour fits in with its own set: there is nothing to compare with")
    term = Term("real", metrics.filled(balls.strictly_inside.per_centre, balls.k))
    combine = partial(
        metrics.clipped_coverage, k=balls.k, real=side.base.n, generated=side.other.n, reference=reference
    )
    return Measured(name, (term,), combine, uncut_combine=partial(combine, beyond=UNCUT))


def _rank_lost(real: Array, generated: Array) -> str:
    dims, n = real.shape[1], min(len(real), len(generated))
    if n > dims:
        return ""
    return f"{counted(n, 'point')} in {dims} dimensions: the covariances have lost rank and the value is mostly bias"


def _refused(name: str, reason: str, strict: bool) -> Missing:
    if strict:
        raise UsageError(reason if reason.endswith(".") else f"{reason}: leave it out.")
    return Missing(name, reason.removesuffix("."))
