"""The studies behind GICDM, on synthetic sets: each a function that returns arrays, with a figure of the same name.

    hypersphere    disjoint spheres: what every metric says of them, by dimension, without and with GICDM  (Figure 1)
    components     precision there as GICDM is put together: factors, filter, second scale                 (Figure 6)
    dimension      hubness of a Gaussian and of a sphere against the dimension                            (Figure 7)
    convergence    how evenly ICDM spaces neighbours, iteration by iteration                              (Figure 8)
    crossover      the dimension where neighbours are as far as the centre                                (Figure 5)
    corrections    hubness under every correction, published means beside a mixture of ours               (Table 5)
    gradient       who is in whose lists: hubs follow the gradient of density                        (Figures 2 to 4)

The paper's radii, sizes and mixtures are lost in the text we hold: those here are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.evaluation.hub_grid import hubness_grid
from earmark.generated._gicdm import Work, adjust, fit_scale, scales_of
from earmark.generated.balls import Balls, Pair, Reference
from earmark.generated.measure import measure
from earmark.generated.metrics import METRICS, USUAL_BALLS
from earmark.generated.sanity._data import Floats, generator, on_sphere
from earmark.generated.sanity.gradient import gradient as gradient
from earmark.geometry import spaces
from earmark.geometry.hubness import antihub_rate, hub_ratio, k_occurrences
from earmark.geometry.icdm import icdm
from earmark.geometry.neighbours import nearest
from earmark.progress import tracked
from earmark.published import read

Strings = tuple[str, ...]
Item = TypeVar("Item")

SPHERE_DIMENSIONS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
HUB_DIMENSIONS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
CENTRES_APART = 10.0
PRINTED_CORRECTIONS = {
    "none": "Original",
    "sphere": "Sphere",
    "mp": "MP^Gauss",
    "ls": "LS",
    "csls": "CSLS",
    "dsl": "DSL",
    "nicdm": "NICDM",
    "icdm": "ICDM",
}
STAGES = ("uncorrected", "factors of generated points", "and filtered", "and at two scales")
MIXTURE_MODES = 20


class Hypersphere(NamedTuple):
    """Scores [metrics, dimensions] of disjoint sets: all should be 0. NaN where a metric has no form with GICDM."""

    dimensions: NDArray[np.int64]
    metrics: Strings
    plain: Floats
    corrected: Floats


class Components(NamedTuple):
    """Precision [stages, dimensions] on the disjoint spheres; it should be 0."""

    dimensions: NDArray[np.int64]
    stages: Strings
    precision: Floats


class Dimension(NamedTuple):
    """Hub ratio and antihub rate [data, dimensions]."""

    dimensions: NDArray[np.int64]
    data: Strings
    hub_ratio: Floats
    antihub_rate: Floats


class Convergence(NamedTuple):
    """Lowest and highest mu_i / mean - 1 [cases, iterations] of a point's mean distance to its neighbours."""

    cases: Strings
    low: Floats
    high: Floats


class Crossover(NamedTuple):
    """Crossover dimension [k, n]."""

    n: NDArray[np.int64]
    k: NDArray[np.int64]
    dimension: Floats


class Corrections(NamedTuple):
    """Hub ratio and antihub rate of each correction: the published mean over 17 embeddings, and a mixture of ours."""

    corrections: Strings
    published_hub_ratio: Floats
    published_antihub_rate: Floats
    hub_ratio: Floats
    antihub_rate: Floats
    k: NDArray[np.int64]  # the neighbourhood with the lowest hub ratio; 0 where there is none to choose


def disjoint_spheres(
    d: int, n: int, rng: np.random.Generator, radii: tuple[float, float] = (0.5, 1.5)
) -> tuple[Floats, Floats]:
    """Real points on two unit spheres; generated ones inside the first (a smaller sphere) and around the second."""
    offset = np.zeros(d)
    offset[0] = CENTRES_APART
    first = n // 2
    real = on_sphere(d, n, rng)
    generated = on_sphere(d, n, rng)
    generated[:first] *= radii[0]
    generated[first:] *= radii[1]
    real[first:] += offset
    generated[first:] += offset
    return real, generated


def hypersphere(
    dimensions: Sequence[int] = SPHERE_DIMENSIONS, *, n: int = 1000, k: int = 5, seed: int = 0, progress: bool = False
) -> Hypersphere:
    """Every metric of balls on disjoint spheres, without and with GICDM."""
    _enough(n, 20 * k + 1)
    corrected_names = [name for name in USUAL_BALLS if METRICS[name].gicdm]
    plain, corrected = (np.full((len(USUAL_BALLS), len(dimensions)), np.nan) for _ in range(2))
    for at, d in enumerate(tracked(dimensions, "study", progress=progress)):
        real, generated = disjoint_spheres(d, n, generator(seed, "hypersphere", str(d)))
        values = measure(real, generated, metrics=USUAL_BALLS, k=k)
        plain[:, at] = [values[name] for name in USUAL_BALLS]
        values = measure(real, generated, metrics=corrected_names, k=k, gicdm=True)
        corrected[:, at] = [values.get(name, np.nan) for name in USUAL_BALLS]
    return Hypersphere(np.array(dimensions), USUAL_BALLS, plain, corrected)


def components(
    dimensions: Sequence[int] = SPHERE_DIMENSIONS, *, n: int = 1000, k: int = 5, seed: int = 0, progress: bool = False
) -> Components:
    """Precision on disjoint spheres: uncorrected, with ICDM's factors alone, with one filter, with both."""
    _enough(n, 20 * k + 1)
    found = np.empty((len(STAGES), len(dimensions)))
    for at, d in enumerate(tracked(dimensions, "study", progress=progress)):
        real, generated = disjoint_spheres(d, n, generator(seed, "hypersphere", str(d)))
        side = Pair(Reference(real), generated, "euclidean", scales_of(k)[1], Work()).real
        fitted = tuple(fit_scale(side.base, scale, start=side.neighbours) for scale in scales_of(k))
        adjusted = adjust(side.base, side.other, fitted)
        first = adjusted.discrepancies[0] <= fitted[0].threshold
        found[0, at] = _precision(side.balls(k))
        for stage, kept in enumerate((np.ones(len(first), bool), first, adjusted.kept), start=1):
            balls = Balls(side, k, fitted[0].neighbours, fitted, adjusted._replace(kept=kept))
            found[stage, at] = _precision(balls)
    return Components(np.array(dimensions), STAGES, found)


def dimension(
    dimensions: Sequence[int] = HUB_DIMENSIONS, *, n: int = 5000, k: int = 5, seed: int = 0, progress: bool = False
) -> Dimension:
    """Hubness of N(0, I) and of points spread evenly on a sphere, which has no centre to be near to."""
    _enough(n, k + 1)
    ratio, rate = (np.empty((2, len(dimensions))) for _ in range(2))
    for at, d in enumerate(tracked(dimensions, "study", progress=progress)):
        rng = generator(seed, "dimension", str(d))
        # On the sphere of R^1 there are two points: there, and on the line, the sphere says nothing.
        for row, points in enumerate((rng.standard_normal((n, d)), on_sphere(d, n, rng) if d > 1 else None)):
            ratio[row, at], rate[row, at] = (np.nan, np.nan) if points is None else hubness_of(points, k)
    return Dimension(np.array(dimensions), ("Gaussian", "sphere"), ratio, rate)


def hubness_of(points: Floats, k: int = 5) -> tuple[float, float]:
    """Hub ratio and antihub rate under Euclidean distance."""
    occurrences = k_occurrences(nearest(spaces.prepare(points, "euclidean"), k).places, k)
    return hub_ratio(occurrences, k), antihub_rate(occurrences)


def convergence(
    *, n: int = 1000, d: int = 512, scales: Sequence[int] = (10, 100), iterations: int = 20, seed: int = 0,
    progress: bool = False,
) -> Convergence:  # fmt: skip
    """How far a point's mean distance to its neighbours strays from the mean of all, after each iteration of ICDM."""
    _enough(n, max(scales) + 1)
    rng = generator(seed, "convergence")
    data = {"Gaussian": rng.standard_normal((n, d)), "mixture": mixture(n, d, rng)}
    cases, low, high = [], [], []
    for name, scale in tracked([(name, scale) for name in data for scale in scales], "study", progress=progress):
        spread = icdm(spaces.prepare(data[name], "euclidean"), scale, iterations).spread
        cases.append(f"{name}, K = {scale}")
        low.append(spread[0])
        high.append(spread[1])
    return Convergence(tuple(cases), np.array(low), np.array(high))


def crossover(
    n: Sequence[int] = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000),
    k: Sequence[int] = (5, 10, 20, 100),
    *,
    progress: bool = False,
) -> Crossover:
    """The crossover dimension for sets of n standard normal points and neighbourhoods of k."""
    found = [
        [crossover_dimension(size, each) if each < size - 1 else np.nan for size in n]
        for each in tracked(k, "study", progress=progress)
    ]
    return Crossover(np.array(n), np.array(k), np.array(found))


def crossover_dimension(n: int, k: int) -> float:
    """The d at which the median squared distance to the k-th of n - 1 others is d, the mean squared norm (Prop. 5.3).

    A point of squared norm s sees another within squared distance d with probability F(d), F the noncentral chi-square
    of d degrees and noncentrality s; at least k of n - 1 do so with a binomial probability, averaged over s ~ chi2(d).
    """
    from scipy.optimize import brentq
    from scipy.special import betainc, chndtr, gammaincinv

    nodes, weights = np.polynomial.legendre.leggauss(64)

    def chance(d: float) -> float:
        squares = 2.0 * gammaincinv(d / 2.0, (nodes + 1.0) / 2.0)  # quantiles of chi2(d)
        return float(weights @ betainc(k, n - k, chndtr(d, d, squares)) / 2.0)

    if not 1 <= k < n - 1:
        raise UsageError(f"The crossover dimension needs 1 <= k < n - 1, not k = {k} and n = {n}.")
    if chance(0.05) <= 0.5:
        return 0.0
    return float(brentq(lambda d: chance(d) - 0.5, 0.05, 10_000.0, xtol=1e-6))


def corrections(
    *, n: int = 1000, d: int = 300, k: Sequence[int] = (5, 10, 20, 50), seed: int = 0, progress: bool = False
) -> Corrections:
    """Hubness of a mixture under every correction, at the neighbourhood that serves it best, beside Table 5."""
    _enough(n, max(k) + 1)
    points = mixture(n, d, generator(seed, "corrections"))
    printed = {row["method"]: row for row in read("gicdm_hubness_tables") if row["table"] == "5"}
    tried = hubness_grid(
        {"mixture": points}, grid=k, distance="euclidean", correct=tuple(PRINTED_CORRECTIONS), device="cpu", threads=1,
        progress=progress,
    )  # fmt: skip
    best = {line.correction: line for line in tried.best}
    found = [best[name] for name in PRINTED_CORRECTIONS]
    published = [printed[name] for name in PRINTED_CORRECTIONS.values()]
    return Corrections(
        tuple(PRINTED_CORRECTIONS),
        np.array([float(row["hub_ratio"]) for row in published]),
        np.array([float(row["antihub_rate"]) for row in published]),
        np.array([line.hub_ratio for line in found]),
        np.array([line.antihub_rate for line in found]),
        np.array([line.k or 0 for line in found]),
    )


def mixture(n: int, d: int, rng: np.random.Generator, modes: int = MIXTURE_MODES) -> Floats:
    """Gaussian modes of unlike spread around centres as far apart as an embedding's classes."""
    mode = rng.integers(0, modes, n)
    centres = rng.standard_normal((modes, d))
    spread = np.exp(0.25 * rng.standard_normal(modes))
    return np.asarray(centres[mode] + spread[mode, None] * rng.standard_normal((n, d)), np.float64)


def _precision(balls: Balls) -> float:
    return float((balls.inside.per_point > 0).mean())


def _enough(n: int, least: int) -> None:
    if n < least:
        raise UsageError(f"This study needs n of at least {least}, not {n}.")
