"""GICDM: neighbourhoods of a base set made comparable, and query points judged by whether they fit in.

In high dimensions some points are near to everything. ICDM gives every base point i a factor delta_i so that
d_ij delta_i delta_j has no such hubs. A query g gets a factor from the base alone:

    w_i     = d(x_i, g) delta_i, and its K + 1 smallest: the neighbours of g (a base point and its K others are K + 1)
    delta_g = mu / mean of these w, mu the mean neighbour distance in the corrected base
    rho_g   = |delta_g - mean delta of these neighbours| / mean delta of these neighbours

A base point and a good query have nearly the factor of their neighbours. A query from elsewhere does not, whether it
is too far out or too far in, so rho has two sides. g fails a scale when rho_g is above the 0.95-quantile of rho over
the base, and is dropped when it fails either of two scales, K = 2k and 20k: its distances become infinite. Nothing
about g depends on other queries. A query on top of all its neighbours is one of them, and gets their mean factor.

Paper: GICDM, arXiv 2602.16449; ICDM: Jégou et al., IEEE TPAMI 32(1), 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError, UsageError, did_you_mean
from earmark.evaluation.data import check_vectors
from earmark.evaluation.options import byte_count, whole
from earmark.geometry import spaces
from earmark.geometry.icdm import icdm
from earmark.geometry.neighbours import nearest
from earmark.geometry.spaces import Space
from earmark.geometry.sweep import Neighbours
from earmark.workers import thread_count

Floats = NDArray[np.float64]

NARROW, WIDE = 2, 20  # the two scales, as multiples of the metric's k
ITERATIONS = 10
QUANTILE = 0.95


@dataclass(frozen=True)
class Work:
    """How to compute, which changes no result: threads, bytes for tiles, device."""

    threads: int = 1
    memory: int = 2 << 30
    device: str = "cpu"

    def options(self) -> dict[str, Any]:
        return {"threads": self.threads, "memory": self.memory, "device": self.device}


ALONE = Work()


class Scale(NamedTuple):
    """The base set at one neighbourhood size: factors, mean neighbour distance, and how well each point fits in."""

    k: int
    factors: Floats
    mean: float
    neighbours: Neighbours  # the k nearest others, with corrected distances
    discrepancies: Floats
    threshold: float


class Adjusted(NamedTuple):
    """Query points against a base: factors at the narrow scale, which are kept, discrepancies at every scale.

    `misfit` is the largest discrepancy in units of its threshold: over 1 is dropped.
    """

    factors: Floats
    kept: NDArray[np.bool_]
    discrepancies: tuple[Floats, ...]
    misfit: Floats


def scales_of(k: int) -> tuple[int, int]:
    """The two neighbourhood sizes that belong to a metric's k."""
    return NARROW * k, WIDE * k


class TooFew(UsageError):
    """A set has too few points for the neighbourhoods asked for; `largest` is the k that would fit, 0 for none."""

    def __init__(self, problem: str, remedy: str, largest: int = 0) -> None:
        super().__init__(f"{problem}: {remedy}.")
        self.problem, self.largest = problem, largest


def too_few(points: int, k: int, scales: Sequence[int], what: str) -> TooFew | None:
    """What is wrong when the wider neighbourhood does not fit into so many points."""
    widest = max(scales)
    if widest < points:
        return None
    largest = (points - 1) * k // widest
    remedy = f"the largest k that fits is {largest}" if largest else f"k = 1 needs {-(-widest // k) + 1}"
    problem = f"GICDM with k = {k} looks at {widest} neighbours, and there are {points} {what} points"
    return TooFew(problem, remedy, largest)


def refuse_identical(real: NDArray[Any]) -> None:
    """Points that all lie in one place have no neighbourhoods."""
    if len(real) > 1 and (real == real[0]).all():
        raise InputError(f"All {len(real)} real vectors are identical: there is no neighbourhood to compare with.")


def fit_scale(
    base: Space, k: int, *, iterations: int = ITERATIONS, quantile: float = QUANTILE, work: Work = ALONE,
    start: Neighbours | None = None,
) -> Scale:  # fmt: skip
    """Factors of the base for neighbourhoods of k, and the discrepancy that all but a few base points stay under."""
    nearby = icdm(base, k, iterations, start=start, **work.options())
    around = nearby.factors[nearby.neighbours.places[:, :k]].mean(axis=1)
    discrepancies = _discrepancy(nearby.factors, around)
    threshold = float(np.quantile(discrepancies, quantile))
    return Scale(k, nearby.factors, float(nearby.target), nearby.neighbours, discrepancies, threshold)


def passing(scales: Sequence[Scale]) -> NDArray[np.bool_]:
    """The base points that fit in at every scale."""
    return np.asarray(np.all([scale.discrepancies <= scale.threshold for scale in scales], axis=0))


def adjust(base: Space, queries: Space, scales: Sequence[Scale], *, work: Work = ALONE) -> Adjusted:
    """Factor and verdict of every query, each by itself; base and queries come from `prepare_pair`."""
    judged = [_judge(base, queries, scale, work) for scale in scales]
    verdicts = [rho <= scale.threshold for (_, rho), scale in zip(judged, scales, strict=True)]
    kept = np.asarray(np.all(verdicts, axis=0))
    misfits = [_in_units(rho, scale.threshold) for (_, rho), scale in zip(judged, scales, strict=True)]
    return Adjusted(judged[0][0], kept, tuple(rho for _, rho in judged), np.asarray(np.max(misfits, axis=0)))


def _judge(base: Space, queries: Space, scale: Scale, work: Work) -> tuple[Floats, Floats]:
    """delta_g and rho_g of every query at one scale."""
    nearby = nearest(base, scale.k + 1, queries=queries, weights=scale.factors, **work.options())
    around = scale.factors[nearby.places].mean(axis=1)
    reach = nearby.distances.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factors = np.where(reach > 0.0, scale.mean / reach, around)
    # So near to the base that the factor overflows: as far from fitting in as can be, and no number.
    factors = np.minimum(factors, np.finfo(np.float64).max)
    return factors, _discrepancy(factors, around)


def _in_units(rho: Floats, threshold: float) -> Floats:
    """Discrepancies over their threshold; where that is 0, what agrees with it is 0 and the rest as far as can be."""
    largest = np.finfo(np.float64).max
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.minimum(np.where(rho > 0.0, rho / threshold, 0.0), largest)


def _discrepancy(own: Floats, around: Floats) -> Floats:
    return np.asarray(np.abs(own - around) / around)


@dataclass(repr=False, eq=False)
class GICDM:
    """Generated points judged against real ones, in scikit-learn's manner.

    `k` is that of the metric to be corrected; `scales` are the two neighbourhood sizes, 2k and 20k unless given.
    After `fit`: `factors_` of the real points at the first scale, `scales_`, `thresholds_`, `discrepancies_` at each,
    and `kept_`, the real points that fit in themselves.

    >>> judged = GICDM(k=5).fit(real).transform(generated)
    >>> judged.kept  # the generated points that fit in with the real ones
    """

    k: int = 5
    scales: Sequence[int] | None = None
    iterations: int = ITERATIONS
    quantile: float = QUANTILE
    distance: str = "euclidean"
    device: str = "cpu"
    threads: int | None = None
    memory: str | int = "2GB"

    def fit(self, real: Any, y: Any = None) -> Self:
        """Learn the factors of the real points [N, D]; y is not used."""
        values = check_vectors(real, "The real vectors")
        refuse_identical(values)
        k = whole("k", self.k, 1)
        given = scales_of(k) if self.scales is None else tuple(self.scales)
        scales = tuple(whole("scales", scale, 1) for scale in given)
        if not scales:
            raise UsageError("GICDM needs at least one scale: leave scales out for 2k and 20k.")
        if not 0.0 < float(self.quantile) <= 1.0:
            raise UsageError(f"quantile must be above 0 and at most 1, not {self.quantile!r}.")
        iterations = whole("iterations", self.iterations, 1)
        if lacking := too_few(len(values), k, scales, "real"):
            raise lacking
        work = self._work()
        space = spaces.prepare(values, self.distance, threads=work.threads)
        start = nearest(space, max(scales), **work.options())
        fitted = [
            fit_scale(space, scale, iterations=iterations, quantile=self.quantile, work=work, start=start)
            for scale in scales
        ]
        self._real, self._distance, self._fitted = values, self.distance, tuple(fitted)
        self.scales_ = scales
        self.factors_ = fitted[0].factors
        self.thresholds_ = tuple(scale.threshold for scale in fitted)
        self.discrepancies_ = tuple(scale.discrepancies for scale in fitted)
        self.kept_ = passing(fitted)
        return self

    def transform(self, generated: Any) -> Adjusted:
        """Factor and verdict of every generated point, each judged by itself."""
        if not hasattr(self, "_fitted"):
            raise UsageError("This GICDM has seen no real points yet: call fit(real) before transform(generated).")
        values = check_vectors(generated, "The generated vectors")
        work = self._work()
        base, queries = spaces.prepare_pair(self._real, values, self._distance, threads=work.threads)
        return adjust(base, queries, self._fitted, work=work)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def set_params(self, **parameters: Any) -> Self:
        """Change arguments of the constructor; they count from the next `fit`."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise UsageError(f"GICDM has no parameter {name!r}.{did_you_mean(name, known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"GICDM(k={self.k!r}, scales={self.scales!r}, distance={self.distance!r})"

    def _work(self) -> Work:
        return Work(thread_count(self.threads), byte_count(self.memory), self.device)
