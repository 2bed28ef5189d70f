"""Where hubs come from: points list those of higher density, so that a gradient of density makes hubs (Figures 2 to 4).

The paper's sizes and dimensions are lost in the text we hold: those here are our own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.errors import UsageError
from earmark.evaluation import study_hubness
from earmark.generated.sanity._data import Floats, generator, on_sphere
from earmark.geometry.hubness import k_occurrences
from earmark.progress import tracked

CORRECTIONS = ("none", "nicdm", "icdm")
BANDS = ((0.0, 0.0), (0.0, 0.5), (0.5, 1.0), (1.0, 2.0), (2.0, 5.0), (5.0, np.inf))
"""How many lists a point is in, in lists of an even share (k): above the first number, up to the second."""


class Gradient(NamedTuple):
    """How many lists of neighbours each point is in.

    `distance` [data, n] is the distance of a point from the centre over the mean of them, `occurrences` [data, n] the
    lists of k it is in; `points` [plane, n, 2] are sets in the plane, and `corrected` [plane, correction, n] the lists
    of `plane_k` their points are in: so many that single neighbours do not hide where they lie.
    """

    k: int
    plane_k: int
    data: tuple[str, ...]
    distance: Floats
    occurrences: NDArray[np.int64]
    plane: tuple[str, ...]
    points: Floats
    corrections: tuple[str, ...]
    corrected: NDArray[np.int64]


def gradient(
    *, n: int = 2000, few: int = 3, many: int = 500, k: int = 5, seed: int = 0, progress: bool = False
) -> Gradient:
    """Gaussians of few and many dimensions and a sphere; a Gaussian and a square in the plane under corrections."""
    if n < 40:
        raise UsageError(f"This study needs n of at least 40, not {n}.")
    rng = generator(seed, "gradient")
    sets = {
        f"Gaussian, d = {few}": rng.standard_normal((n, few)),
        f"Gaussian, d = {many}": rng.standard_normal((n, many)),
        f"sphere, d = {many}": on_sphere(many, n, rng),
    }
    plane = {"Gaussian": rng.standard_normal((n, 2)), "square": rng.uniform(-1, 1, (n, 2))}
    work = tracked([*sets.values(), *plane.values()], "study", progress=progress)
    wide = max(k, n // 20)
    found = [
        _occurrences(points, k, ["none"]) if points.shape[1] > 2
        else _occurrences(points, wide, ["none", *(f"{name}:k={wide}" for name in CORRECTIONS[1:])])
        for points in work
    ]  # fmt: skip
    norms = [np.linalg.norm(points, axis=1) for points in sets.values()]
    return Gradient(
        k, wide, tuple(sets), np.array([norm / norm.mean() for norm in norms]),
        np.array([counts[0] for counts in found[: len(sets)]]), tuple(plane), np.array(list(plane.values())),
        CORRECTIONS, np.array(found[len(sets) :]),
    )  # fmt: skip


def _occurrences(points: Floats, k: int, corrections: list[str]) -> NDArray[np.int64]:
    """Lists that each point is in [corrections, n]."""
    study = study_hubness(points, k=k, distance="euclidean", correct=corrections, device="cpu", threads=1)
    return np.array([k_occurrences(lists, k) for lists in study.lists.values()])


def shares(occurrences: NDArray[np.int64], k: int) -> Floats:
    """The percentage of points in each of `BANDS`, and behind them the most lists that one point is in, over k."""
    relative = occurrences / k
    inside = [(relative <= high) & ((relative > low) | (high == 0)) for low, high in BANDS]
    return np.array([*(100.0 * band.mean() for band in inside), relative.max()])
