"""Fidelity and coverage from ball counts, each with its record; how the counts are found is `earmark.generated.balls`.

N real points i, M generated points j, D_ij their distances. r_i is the distance from real i to its k-th other real
point, s_j the same among generated points. "Inside" is D <= r; where a metric says "strictly", D < r.

    precision         share of j inside the ball of some i                                 [0, 1]
    density           mean over j of (balls that j is inside) / k                          [0, N/k], about 1 when alike
    coverage          share of balls i with some j inside                                  [0, 1]
    recall            share of i inside the ball of some j                                 [0, 1]
    sym_precision     min of precision and the share of balls j with some i inside, strictly               [0, 1]
    sym_recall        min of recall and coverage, strictly                                 [0, 1]
    p_precision       mean over j of 1 - product over i of min(D_ij / R, 1), R = 1.2 mean r                [0, 1]
    p_recall          the same over i with R = 1.2 mean s                                  [0, 1]
    precision_cover   share of balls j with at least k real points inside, s_j to the (3k - 1)-th other    [0, 1]
    recall_cover      share of balls i with at least k generated points inside, r_i likewise               [0, 1]
    clipped_density   mean over j of min(balls / k, 1), r_i cut at the median r, over the same mean for the real
                      points themselves                                                    [0, 1] capped, else 0 and up
    clipped_coverage  the share c of filled places, k to a ball, strictly; then the share of M good points that
                      would be expected to fill as many                                    [0, 1]

clipped_density_unclipped_radii is clipped_density without the cut of the radii: an ablation, which shows what that cut
is good for (a lonely real point keeps its wide ball, and whatever lies in it is taken for real).

Higher is better for all. Ties: a point at exactly the radius is inside unless strictly is said. Sets of fewer than
k + 1 points have no such balls and are refused before. Precision, recall: Kynkäänniemi et al. 2019; density, coverage:
Naeem et al. 2020; symmetric: Khayatkhoei and AbdAlmageed 2023; P: Park and Kim 2023; cover: Cheema and Urner 2023;
clipped: Salvy et al. 2025.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError, did_you_mean
from earmark.scores.metrics import FRACTION, UNBOUNDED, Metric, family, metric, metric_facts, named, register

if TYPE_CHECKING:
    from earmark.generated.balls import Balls
    from earmark.geometry.neighbours import BallCounts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Reading = Literal["corrected", "literal"]

SPREAD = 1.2  # the `a` of P-precision and P-recall
UNCUT = 4  # how many times M the samples may be that clipped_coverage stands for, where it is not cut
COVER_K = 3  # the cover metrics count in threes: at least 3 others within the distance of the 8th neighbour
LITERAL = "_literal"  # the ending of the clipped pair under the literal reading
READ_TWICE = ("clipped_density", "clipped_coverage")  # the pair whose GICDM form has two readings
LITERALS = tuple(name + LITERAL for name in READ_TWICE)
NAMES = tuple(name for name in family("fidelity") if name not in LITERALS)


class Term(NamedTuple):
    """A value for each point of one set; a metric uses their mean."""

    points: Literal["real", "generated"]
    values: Floats


def itself(mean: Any) -> Any:
    return mean


@dataclass(frozen=True)
class Judgement:
    """A metric of two sets: `combine` of the means of its terms.

    `uncut_combine` is there for a metric that is cut at 1, and does the same without the cut. `told` are values of
    single points that are worth knowing and no part of it: by how much each raises a distance. `at_shares` are values
    of smaller sets that it was found from, each behind the share of the points.
    """

    terms: tuple[Term, ...]
    combine: Callable[..., Any] = itself
    reason: str = ""
    uncut_combine: Callable[..., Any] | None = None
    metric: str = ""
    told: tuple[Term, ...] = ()
    at_shares: tuple[tuple[float, float], ...] = ()

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


class Undefined(Exception):
    """A metric has no value for these points; the text is the reason."""


class Sides(Protocol):
    """What a metric of balls is given: the balls of both sets for its k, made when first asked for."""

    k: int
    reading: Reading
    cap: bool
    sizes: tuple[int, int]  # real and generated points

    @property
    def real(self) -> Balls: ...
    @property
    def generated(self) -> Balls: ...
    @property
    def cover_real(self) -> Balls: ...
    @property
    def cover_generated(self) -> Balls: ...


_share = partial(metric, range=FRACTION, percent=True)
_faithful = partial(_share, asks="fidelity")
_covering = partial(_share, asks="coverage")


@_faithful(gicdm=True, paper="Kynkäänniemi et al., NeurIPS 2019")
def precision(sides: Sides) -> Judgement:
    return Judgement((Term("generated", met(sides.real.inside.per_point)),))


@_covering(gicdm=True, paper="Kynkäänniemi et al., NeurIPS 2019")
def recall(sides: Sides) -> Judgement:
    return Judgement((Term("real", met(sides.generated.inside.per_point)),))


@metric(range=(0.0, math.inf), asks="fidelity", gicdm=True, paper="Naeem et al., ICML 2020")
def density(sides: Sides) -> Judgement:
    return Judgement((Term("generated", sides.real.inside.per_point / sides.k),))


@_covering(gicdm=True, paper="Naeem et al., ICML 2020")
def coverage(sides: Sides) -> Judgement:
    return Judgement((Term("real", met(sides.real.inside.per_centre)),))


# The symmetric pair compares strictly, as in the benchmark whose tables are reproduced (Räisä et al.); on data without
# exact ties it makes no difference.


@_faithful(gicdm=True, paper="Khayatkhoei and AbdAlmageed, ICML 2023")
def sym_precision(sides: Sides) -> Judgement:
    inside = Term("generated", met(sides.real.strictly_inside.per_point))
    return Judgement((inside, Term("generated", met(sides.generated.strictly_inside.per_centre))), np.minimum)


@_covering(gicdm=True, paper="Khayatkhoei and AbdAlmageed, ICML 2023")
def sym_recall(sides: Sides) -> Judgement:
    inside = Term("real", met(sides.generated.strictly_inside.per_point))
    return Judgement((inside, Term("real", met(sides.real.strictly_inside.per_centre))), np.minimum)


@_faithful(gicdm=True, paper="Park and Kim, ICCV 2023")
def p_precision(sides: Sides) -> Judgement:
    return Judgement((Term("generated", _closeness(sides.real)),))


@_covering(gicdm=True, paper="Park and Kim, ICCV 2023")
def p_recall(sides: Sides) -> Judgement:
    return Judgement((Term("real", _closeness(sides.generated)),))


def _closeness(balls: Balls) -> Floats:
    """1 - product of min(D / R, 1), from the sum of the logarithms; 1 where a distance is 0."""
    if balls.logs is None:
        raise Undefined("all balls have radius 0: every point has at least k exact copies")
    return np.asarray(0.0 - np.expm1(balls.logs))


@_faithful(paper="Cheema and Urner, AISTATS 2023")
def precision_cover(sides: Sides) -> Judgement:
    return Judgement((Term("generated", met(sides.cover_generated.inside.per_centre, sides.k)),))


@_covering(paper="Cheema and Urner, AISTATS 2023")
def recall_cover(sides: Sides) -> Judgement:
    return Judgement((Term("real", met(sides.cover_real.inside.per_centre, sides.k)),))


@metric("clipped_density", range=(0.0, math.inf), asks="fidelity", gicdm=True, paper="Salvy et al., 2025")
def judge_clipped_density(sides: Sides) -> Judgement:
    balls = sides.real
    return _clipped_density(sides, balls.clipped_inside, balls.clipped_among_themselves)


@metric(range=(0.0, math.inf), asks="fidelity", gicdm=True, paper="GICDM, arXiv 2602.16449, appendix E.3")
def clipped_density_unclipped_radii(sides: Sides) -> Judgement:
    balls = sides.real
    return _clipped_density(sides, balls.inside, balls.among_themselves)


def _clipped_density(sides: Sides, inside: BallCounts, among_themselves: BallCounts) -> Judgement:
    balls = sides.real
    own = filled(among_themselves.per_point, balls.k)
    if sides.reading == "corrected":
        # Real points that the filter would drop score 0, as generated ones do: else even perfect data stays below 1.
        own = np.where(balls.fitting, own, 0.0)
    reference = float(own.mean())
    if reference == 0.0:
        raise Undefined("no real point lies in another's ball: there is nothing to compare with")
    ratio = partial(clipped_density, reference=reference)
    return Judgement(
        (Term("generated", filled(inside.per_point, balls.k)),), partial(ratio, cap=sides.cap),
        uncut_combine=partial(ratio, cap=False) if sides.cap else None,
    )  # fmt: skip


@_covering("clipped_coverage", gicdm=True, paper="Salvy et al., 2025")
def judge_clipped_coverage(sides: Sides) -> Judgement:
    balls = sides.real
    reference = float(balls.fitting[balls.neighbours].mean()) if sides.reading == "corrected" else 1.0
    if reference == 0.0:
        raise Undefined("no real neighbour fits in with its own set: there is nothing to compare with")
    real, generated = sides.sizes
    combine = partial(clipped_coverage, k=balls.k, real=real, generated=generated, reference=reference)
    term = Term("real", filled(balls.strictly_inside.per_centre, balls.k))
    return Judgement((term,), combine, uncut_combine=partial(combine, beyond=UNCUT))


# What a network trained on the real points decides (`one_class`), and distances of distributions (`distributions`).
# 1 - 2 * area between two curves, summed over 30 steps, can end a little under 0; and the unbiased kernel distance of
# equal distributions is 0 on average, so it falls below 0 half of the time, as do the others that have no excess.
_ALAA = Metric("alpha_precision", (-0.05, 1.0), percent=True, asks="fidelity", needs=("network",))
register(replace(_ALAA, paper="Alaa et al., ICML 2022"))
register(replace(_ALAA, name="beta_recall", asks="coverage", paper="Alaa et al., ICML 2022"))
_APART = Metric("frechet_distance", (0.0, math.inf), higher_is_better=False, asks="distance", needs=("sets",))
register(replace(_APART, paper="Dowson and Landau, 1982; Heusel et al., NeurIPS 2017"))
register(replace(
    _APART, name="kernel_distance", range=UNBOUNDED, paper="Gretton et al., JMLR 13, 2012; Bińkowski et al., ICLR 2018",
))  # fmt: skip
register(replace(
    _APART, name="fad_inf", range=UNBOUNDED, paper="Chong and Forsyth, CVPR 2020; Gui et al., ICASSP 2024",
    words="the Fréchet distance without the excess of few points: extrapolated from halves of both sets to 1/n = 0",
))  # fmt: skip
register(replace(
    _APART, name="kad", range=UNBOUNDED, paper="Chung et al., KAD, 2025; Gretton et al., JMLR 13, 2012",
    words="100 times the unbiased squared discrepancy under a Gaussian kernel as wide as the median real distance",
))  # fmt: skip
for _name in READ_TWICE:
    register(replace(metric_facts(_name), name=_name + LITERAL))

METRICS: dict[str, Metric] = {name: metric_facts(name) for name in NAMES}
BALLS = tuple(name for name, record in METRICS.items() if record.needs == ("sides",))
NETWORK = tuple(name for name, record in METRICS.items() if record.needs == ("network",))
DISTANCES = tuple(name for name, record in METRICS.items() if record.needs == ("sets",))
ABLATIONS = ("clipped_density_unclipped_radii",)  # measured when they are named
USUAL_BALLS = tuple(name for name in BALLS if name not in ABLATIONS)
DEFAULT = tuple(name for name in METRICS if name not in (*NETWORK, *ABLATIONS, "fad_inf", "kad"))
ALIASES = {"fad": "frechet_distance", "fd": "frechet_distance", "frechet_audio_distance": "frechet_distance"}


def plan(metrics: str | Iterable[str] | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """The metrics asked for, each once, in catalogue order; `all` is every metric but ablations."""
    asked = [ALIASES.get(name, name) for name in named(default if metrics is None else metrics)]
    if not asked:
        raise UsageError("No metric was asked for: name at least one.")
    known = (*METRICS, *LITERALS)
    for name in asked:
        if name not in known and name != "all":
            raise UsageError(
                f"There is no fidelity metric {name!r}.{did_you_mean(name, known)} There are {', '.join(METRICS)}."
            )
    names = {*asked, *((name for name in METRICS if name not in ABLATIONS) if "all" in asked else ())}
    return tuple(name for name in known if name in names)


def facts(name: str) -> Metric:
    """The record of a metric, under either reading."""
    return METRICS[name.removesuffix(LITERAL)]


def neighbours_of(k: int | Mapping[str, int], names: Iterable[str]) -> dict[str, int]:
    """The k of every metric of balls: one number for all but the cover pair, or a number for each that is named."""
    from earmark.evaluation.options import whole  # which loads kernels: facts need none

    if not isinstance(k, Mapping):
        k = dict.fromkeys((name for name in BALLS if not name.endswith("_cover")), k)
    for name in k:
        if name not in METRICS:
            raise UsageError(f"k is given for {name!r}, which is no metric.{did_you_mean(str(name), METRICS)}")
    usual: dict[str, Any] = {name: COVER_K if name.endswith("_cover") else 5 for name in BALLS}
    asked = dict.fromkeys(facts(name).name for name in names)
    return {name: whole(f"k of {name}", (usual | dict(k))[name], 1) for name in asked if name in BALLS}


# --- pure functions of counts -------------------------------------------------------------------------------------


def met(counts: Ints, least: int = 1) -> Floats:
    """1 for every point inside, or ball around, at least `least`; else 0."""
    return (counts >= least).astype(np.float64)


def filled(counts: Ints, k: int) -> Floats:
    """Counts as a share of k, no more than 1."""
    return np.asarray(np.minimum(counts, k) / k)


def clipped_radii(radii: Floats) -> Floats:
    """Radii cut at their median: no outlier has a wide ball."""
    return np.minimum(radii, np.median(radii))


def clipped_density(mean: Floats, reference: float, *, cap: bool = True) -> Floats:
    """The mean filling of generated points over that of real points, cut at 1 unless `cap` is False."""
    ratio = np.asarray(mean / reference)
    return np.minimum(ratio, 1.0) if cap else ratio


def clipped_coverage(
    mean: Floats, k: int, real: int, generated: int, reference: float = 1.0, *, beyond: int = 1
) -> Floats:
    """The share of `generated` good points that would be expected to fill as many places as were filled.

    No more than 1, or with `beyond` about that many times as much: how far the filling is above what is needed for 1.

    `mean` and `reference` are means over the k places of each of `real` balls, so each is a whole number of places over
    k * `real`. They are compared with f(m) as such: where both are the very same fraction, no rounding may decide.
    """
    places = k * real
    of = round(reference * places)
    filled_places = np.rint(np.asarray(mean) * places).astype(np.int64)
    steps = [_steps_below(int(count), of, k, real, beyond * generated) for count in filled_places.ravel()]
    return np.reshape(np.asarray(steps) / (generated + 1), filled_places.shape)


@lru_cache(maxsize=4096)
def _steps_below(filled_places: int, of: int, k: int, real: int, most: int) -> int:
    """How many of f(0), ..., f(most) lie under the fraction filled_places / of."""
    share = Fraction(filled_places, of)
    return bisect_left(range(most + 1), share, key=lambda m: expected_filling(m, k, real))


def expected_filling(m: int, k: int, real: int) -> Fraction:
    """f(m): the expected share of filled places, k to a ball, when m good points are generated; exact.

    The share of the distribution inside the ball to the k-th of N - 1 others is Beta(k, N - k), so the number J of m
    points inside is beta-binomial, and f(m) = E[min(J, k)] / k = 1 - sum over j < k of (k - j) P(J = j) / k, with

        P(J = j) = C(m, j) k (k + 1) ... (k + j - 1) (N - 1) ... (N - k) / ((N + m - 1) ... (N + m - k - j))

    As its authors have it, f(m) = 0 for m < k. From there on it grows with m.
    """
    if m < k:
        return Fraction(0)
    missing, among = 0, prod(range(real - k, real))  # over (N + m - 1) ... (N + m - k - j), which grows with j
    for j in range(k):
        missing = missing * (real + m - k - j) + (k - j) * among
        among = among * (m - j) * (k + j) // (j + 1)
    return 1 - Fraction(missing, k * prod(range(real + m - 2 * k + 1, real + m)))
