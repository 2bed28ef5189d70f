"""Fréchet and kernel distance against closed forms, scipy's matrix square root and a double loop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from earmark.generated._distributions import frechet_distance, kernel_distance


def test_frechet_is_the_formula_with_a_matrix_square_root() -> None:
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(12, 12))
    x, y = rng.normal(size=(300, 12)) @ mix, 0.7 * rng.normal(size=(250, 12)) + 0.5
    a, b = np.cov(x.T), np.cov(y.T)
    expected = ((x.mean(axis=0) - y.mean(axis=0)) ** 2).sum() + np.trace(a + b - 2 * sqrtm(a @ b).real)
    assert frechet_distance(x, y) == pytest.approx(expected, rel=1e-9)
    assert frechet_distance(y, x) == pytest.approx(expected, rel=1e-9)


def test_frechet_of_a_shift_and_a_scale_is_known() -> None:
    x = np.random.default_rng(1).normal(size=(200, 5))
    assert frechet_distance(x, x) == pytest.approx(0.0, abs=1e-12)
    assert frechet_distance(x, x + np.array([3, 4, 0, 0, 0])) == pytest.approx(25.0)
    spread = np.trace(np.cov(x.T))
    centred = x - x.mean(axis=0)
    assert frechet_distance(centred, 3 * centred) == pytest.approx(4 * spread)


def test_lost_rank_costs_no_digits() -> None:
    """Ten points in 400 dimensions: the root of rounding noise would be 1e-8 for each lost dimension."""
    x = np.random.default_rng(2).normal(size=(10, 400))
    assert frechet_distance(x, x) == pytest.approx(0.0, abs=1e-10)
    turned = np.linalg.qr(np.random.default_rng(3).normal(size=(400, 400)))[0]
    y = np.random.default_rng(4).normal(size=(12, 400))
    assert frechet_distance(x @ turned, y @ turned) == pytest.approx(frechet_distance(x, y), rel=1e-10)


def test_the_excess_of_frechet_falls_with_n_and_kernel_has_none() -> None:
    rng = np.random.default_rng(5)
    excess = {n: np.mean([frechet_distance(*rng.normal(size=(2, n, 20))) for _ in range(20)]) for n in (50, 200, 800)}
    assert excess[50] > 3 * excess[200] > 9 * excess[800] > 0
    kernel = np.array([kernel_distance(*rng.normal(size=(2, 50, 20))).value for _ in range(80)])
    assert abs(kernel.mean()) < 4 * kernel.std() / np.sqrt(80)
    assert (kernel < 0).any()


def test_kernel_is_the_unbiased_double_sum() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(23, 4)), 1.5 * rng.normal(size=(31, 4)) + 0.3
    k = lambda a, b: (a @ b / 4 + 1) ** 3  # noqa: E731
    own_x = np.mean([k(x[i], x[j]) for i in range(23) for j in range(23) if i != j])
    own_y = np.mean([k(y[i], y[j]) for i in range(31) for j in range(31) if i != j])
    across = np.mean([k(a, b) for a in x for b in y])
    found = kernel_distance(x, y)
    assert found.value == pytest.approx(own_x + own_y - 2 * across, rel=1e-10)
    assert found.real.mean() + found.generated.mean() == pytest.approx(2 * found.value)


@pytest.mark.usefixtures("several_threads")
def test_kernel_does_not_depend_on_blocks_or_threads() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(1300, 3)).astype(np.float32), rng.normal(size=(2100, 3)).astype(np.float32)
    gram = lambda a, b: (a.astype(float) @ b.T.astype(float) / 3 + 1) ** 3  # noqa: E731
    own_x, own_y = gram(x, x), gram(y, y)
    expected = (own_x.sum() - np.trace(own_x)) / (1300 * 1299) + (own_y.sum() - np.trace(own_y)) / (2100 * 2099)
    expected -= 2 * gram(x, y).mean()
    assert kernel_distance(x, y).value == pytest.approx(expected, rel=1e-9)
    assert kernel_distance(x, y, threads=3).value == kernel_distance(x, y).value
