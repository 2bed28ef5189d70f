"""The definitions, word for word, on whole distance matrices: slow, and independent of the code under test."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from scipy.stats import rankdata

CLOSE = 1e-11  # distances that agree to so many digits are equal, as in the package


def vectors_of(x: Any, distance: str) -> Any:
    """Vectors whose Euclidean distance, or half its square, is the distance."""
    x = np.asarray(x, float)
    if distance == "spearman":
        x = np.apply_along_axis(rankdata, 1, x)
        x = x - x.mean(axis=1, keepdims=True)
    return x if distance == "euclidean" else x / np.linalg.norm(x, axis=1, keepdims=True)


def distances(x: Any, y: Any, distance: str = "euclidean") -> Any:
    x, y = vectors_of(x, distance), vectors_of(y, distance)
    squares = np.array([((row - y) ** 2).sum(axis=1) for row in x])
    return np.sqrt(squares) if distance == "euclidean" else squares / 2


def among(x: Any, distance: str = "euclidean") -> Any:
    """Distances inside a set; a point is no neighbour of its own."""
    found = distances(x, x, distance)
    np.fill_diagonal(found, np.inf)
    return found


def at_most(d: Any, r: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return (d <= r * (1 + CLOSE)) & np.isfinite(d)


def below(d: Any, r: Any) -> Any:
    return d < r * (1 - CLOSE)


def icdm(own: Any, k: int, iterations: int = 10) -> tuple[Any, float]:
    """Factors by rewriting the whole matrix, and the mean neighbour distance at the end."""
    factors = np.ones(len(own))
    current = own.copy()
    for _ in range(iterations):
        mu = np.sort(current, axis=1)[:, :k].mean(axis=1)
        step = np.sqrt(mu.mean() / mu)
        factors *= step
        current = current * step[:, None] * step[None, :]
    return factors, float(np.sort(current, axis=1)[:, :k].mean())


def gicdm(
    own: Any, across: Any, k: int, iterations: int = 10, quantile: float = 0.95, scales: Any = None
) -> dict[str, Any]:
    """Corrected distances inside the base and to the queries, and who is kept; `across` is [base, queries]."""
    kept, fitting = np.ones(across.shape[1], bool), np.ones(len(own), bool)
    result: dict[str, Any] = {}
    for place, size in enumerate(scales or (2 * k, 20 * k)):
        factors, mean = icdm(own, size, iterations)
        weighted = across * factors[:, None]
        order = np.argsort(weighted, axis=0, kind="stable")[: size + 1]
        query = mean / np.take_along_axis(weighted, order, axis=0).mean(axis=0)
        around = factors[order].mean(axis=0)
        rho = np.abs(query - around) / around
        corrected = own * factors[:, None] * factors[None, :]
        mine = factors[np.argsort(corrected, axis=1, kind="stable")[:, :size]].mean(axis=1)
        rho_base = np.abs(factors - mine) / mine
        threshold = np.quantile(rho_base, quantile)
        kept &= rho <= threshold
        fitting &= rho_base <= threshold
        if place == 0:
            result = {"factors": factors, "queries": query, "own": corrected}
            result["across"] = across * factors[:, None] * query[None, :]
    result["across"] = np.where(kept[None, :], result["across"], np.inf)
    return result | {"kept": kept, "fitting": fitting}


def filling_steps(k: int, n: int, m: int) -> list[Fraction]:
    """f(0), ..., f(m) as fractions: the share in a ball is Beta(k, n - k), counts in it are those of a Polya urn."""
    steps = []
    for count in range(m + 1):
        ways = [comb(k + j - 1, j) * comb(n - k + count - j - 1, count - j) for j in range(count + 1)]
        filled = sum(min(j, k) * way for j, way in enumerate(ways))
        steps.append(Fraction(filled, k * comb(n + count - 1, count)) if count >= k else Fraction(0))
    return steps


def clipped_coverage_share(c: float, k: int, n: int, m: int, c_reference: float = 1.0) -> float:
    share = Fraction(round(c * n * k), round(c_reference * n * k))
    return sum(step < share for step in filling_steps(k, n, m)) / (m + 1)


def all_metrics(
    real: Any, generated: Any, k: int, distance: str = "euclidean", *, correct: bool = False, literal: bool = False,
    scales: Any = None, cap: bool = True, cover: int = 3,
) -> dict[str, float]:  # fmt: skip
    """Every ball metric from its definition. With `correct`, GICDM with the owner of the balls as its base."""
    rr, gg, rg = among(real, distance), among(generated, distance), distances(real, generated, distance)
    n, m = rg.shape
    fitting = np.ones(n, bool)
    real_rr, real_rg, generated_gg, generated_rg = rr, rg, gg, rg
    if correct:
        by_real, by_generated = gicdm(rr, rg, k, scales=scales), gicdm(gg, rg.T, k, scales=scales)
        real_rr, real_rg, fitting = by_real["own"], by_real["across"], by_real["fitting"]
        generated_gg, generated_rg = by_generated["own"], by_generated["across"].T
    r = np.sort(real_rr, axis=1)[:, k - 1]
    s = np.sort(generated_gg, axis=1)[:, k - 1]
    in_real, in_generated = at_most(real_rg, r[:, None]), at_most(generated_rg, s[None, :])
    strict_real, strict_generated = below(real_rg, r[:, None]), below(generated_rg, s[None, :])
    found = {
        "precision": in_real.any(axis=0).mean(),
        "recall": in_generated.any(axis=1).mean(),
        "density": in_real.sum() / (k * m),
        "coverage": in_real.any(axis=1).mean(),
        "sym_precision": min(strict_real.any(axis=0).mean(), strict_generated.any(axis=0).mean()),
        "sym_recall": min(strict_generated.any(axis=1).mean(), strict_real.any(axis=1).mean()),
        "p_precision": (1 - np.minimum(real_rg / (1.2 * r.mean()), 1).prod(axis=0)).mean(),
        "p_recall": (1 - np.minimum(generated_rg / (1.2 * s.mean()), 1).prod(axis=1)).mean(),
    }
    if not correct:
        wide_r = np.sort(rr, axis=1)[:, 3 * cover - 2]
        wide_s = np.sort(gg, axis=1)[:, 3 * cover - 2]
        found["precision_cover"] = (at_most(rg, wide_s[None, :]).sum(axis=0) >= cover).mean()
        found["recall_cover"] = (at_most(rg, wide_r[:, None]).sum(axis=1) >= cover).mean()
    cut = np.minimum(r, np.median(r))
    own = np.minimum(at_most(real_rr, cut[:, None]).sum(axis=0) / k, 1)
    nearest = np.argsort(real_rr, axis=1, kind="stable")[:, :k]
    c_reference = 1.0
    if correct and not literal:
        own = np.where(fitting, own, 0.0)
        c_reference = fitting[nearest].mean()
    density = np.minimum(at_most(real_rg, cut[:, None]).sum(axis=0) / k, 1).mean() / own.mean()
    found["clipped_density"] = min(density, 1.0) if cap else density
    # The ablation: the same with every ball as wide as it is. A point is in as many balls as list it, with ties.
    wide_own = np.minimum(at_most(real_rr, r[:, None]).sum(axis=0) / k, 1)
    wide_own = np.where(fitting, wide_own, 0.0) if correct and not literal else wide_own
    wide = np.minimum(in_real.sum(axis=0) / k, 1).mean() / wide_own.mean()
    found["clipped_density_unclipped_radii"] = min(wide, 1.0) if cap else wide
    c = (np.minimum(strict_real.sum(axis=1), k) / k).mean()
    found["clipped_coverage"] = clipped_coverage_share(c, k, n, m, c_reference)
    return {name: float(value) for name, value in found.items()}
