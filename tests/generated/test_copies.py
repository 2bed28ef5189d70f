"""Copies of real points: a verdict is a test, in any number of dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import earmark

Sets = tuple[Any, Any]


def verdicts(draw: Callable[[Any], Sets], times: int) -> int:
    found = 0
    for number in range(times):
        real, generated = draw(np.random.default_rng([number, 16]))
        scores = earmark.fidelity(real, generated, metrics="density", correct="none", intervals="none")
        said = any("memorises" in note and "does not" not in note for note in scores.notes)
        assert said == (("euclidean", "none", "all", "copy") in scores.per_sample)
        found += said
    return found


def cloud(rng: Any, n: int, dims: int) -> Any:
    return rng.normal(size=(n, dims))


def memorised(rng: Any, dims: int, share: float, noise: float, n: int = 150) -> Sets:
    """A share of the samples is a real point, moved by `noise` of its distance to its nearest other."""
    real, generated = cloud(rng, n, dims), cloud(rng, n, dims)
    picked = rng.integers(n, size=round(share * n))
    gaps = np.linalg.norm(real[:, None] - real[None], axis=2) + np.diag(np.full(n, np.inf))
    steps = cloud(rng, len(picked), dims)
    steps *= noise * gaps.min(axis=1)[picked, None] / np.linalg.norm(steps, axis=1, keepdims=True)
    generated[: len(picked)] = real[picked] + steps
    return real, generated


@pytest.mark.parametrize("dims", [1, 2, 3, 8])
def test_fresh_draws_are_no_copies_in_any_dimension(dims: int) -> None:
    """A quarter of fresh 2-D draws was called memorised; the binomial limit of 5 % in 40 is 5."""
    assert verdicts(lambda rng: (cloud(rng, 120, dims), cloud(rng, 120, dims)), 40) <= 5


@pytest.mark.parametrize(
    "generator",
    [
        lambda rng: np.repeat(cloud(rng, 1, 1), 120, axis=0),  # one sound again and again
        lambda rng: cloud(rng, 3, 1)[rng.integers(3, size=120)] + 1e-4 * cloud(rng, 120, 1),
        lambda rng: 0.3 * cloud(rng, 120, 1),
        lambda rng: cloud(rng, 120, 1) + 1.0,
    ],
)
def test_other_generators_that_draw_afresh_are_not_called_copyists(generator: Callable[[Any], Any]) -> None:
    assert verdicts(lambda rng: (cloud(rng, 120, 1), generator(rng)), 30) <= 4


def test_points_on_a_grid_meet_by_chance() -> None:
    assert verdicts(lambda rng: (np.round(2 * cloud(rng, 120, 3)), np.round(cloud(rng, 120, 3))), 15) <= 2


@pytest.mark.parametrize("dims", [2, 8])
@pytest.mark.parametrize(("share", "noise"), [(0.1, 0.0), (0.1, 0.05), (1.0, 0.02)])
def test_copies_with_little_noise_are_noticed(dims: int, share: float, noise: float) -> None:
    assert verdicts(lambda rng: memorised(rng, dims, share, noise), 10) >= 9


def test_few_sounds_played_back_again_and_again_are_noticed() -> None:
    def draw(rng: Any) -> Sets:
        real = cloud(rng, 120, 2)
        return real, real[rng.integers(10, size=120)]

    assert verdicts(draw, 5) == 5
