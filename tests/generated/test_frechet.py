"""Fréchet and kernel distances against closed forms, scipy's matrix square root, double loops and deletions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.spatial.distance import cdist, pdist

from earmark.generated import _distributions as distributions
from earmark.generated._distributions import frechet_distance, frechet_effects, gaussian, kad, kernel_distance
from earmark.generated._excess import Line, excess, fad_inf
from earmark.workers import Workers


def test_frechet_is_the_formula_with_a_matrix_square_root(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(12, 12))
    x, y = rng.normal(size=(300, 12)) @ mix, 0.7 * rng.normal(size=(250, 12)) + 0.5
    a, b = np.cov(x.T), np.cov(y.T)
    expected = ((x.mean(axis=0) - y.mean(axis=0)) ** 2).sum() + np.trace(a + b - 2 * sqrtm(a @ b).real)
    assert frechet_distance(x, y) == pytest.approx(expected, rel=1e-9)
    assert frechet_distance(y, x) == pytest.approx(expected, rel=1e-9)
    monkeypatch.setattr(distributions, "FOLD", 1)  # points are folded in 24 at a time
    assert frechet_distance(x, y) == pytest.approx(expected, rel=1e-9)
    monkeypatch.setattr(distributions, "WELL", 2.0)  # never well enough for Cholesky
    assert frechet_distance(x, y) == pytest.approx(expected, rel=1e-9)
    far = 1e6 * np.ones(12)
    assert frechet_distance(x + far, y + far) == pytest.approx(expected, rel=1e-7)


def test_nearly_empty_dimensions_cost_no_digits() -> None:
    """Deviations from 1 to 1e-9 of known sets: a covariance would know nothing of those under 1e-8."""
    rng = np.random.default_rng(11)
    base = rng.normal(size=(400, 10))
    base = (base - base.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(base.T))).T  # covariance 1, exactly
    small = 10.0 ** -np.arange(10)
    for scale in (small, 1e-3 * np.ones(10)):
        assert frechet_distance(base * scale, 3.0 * base * scale) == pytest.approx(4 * (scale**2).sum(), rel=1e-11)


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


@pytest.mark.parametrize(("points", "dims", "near"), [(150, 6, 0.997), (40, 6, 0.97), (30, 50, 0.8)])
def test_the_effect_of_a_point_is_what_leaving_it_out_does(points: int, dims: int, near: float) -> None:
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(90, dims)), 1.3 * rng.normal(size=(points, dims)) + 0.4
    x[:, 0], y[:, 0] = 2.0, 2.0  # a dead unit: its column has no variance
    y[3] += 5.0
    seen = gaussian(x), gaussian(y)
    whole = frechet_distance(*seen)
    for values, of, other in ((y, seen[1], seen[0]), (x, seen[0], seen[1])):
        found = frechet_effects(values, of, other)
        without = [frechet_distance(np.delete(values, row, axis=0), other) for row in range(len(values))]
        assert np.corrcoef(found, whole - np.array(without))[0, 1] > near
    assert frechet_effects(y, seen[1], seen[0]).argmax() == 3


# --- what few points add ------------------------------------------------------------------------------------------


def units(real: int, generated: int, each: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Clips by number, each of so many points."""
    return np.arange(real) // each, real + np.arange(generated) // each


def test_the_excess_of_frechet_falls_with_n_and_kernel_has_none() -> None:
    rng = np.random.default_rng(5)
    found = {n: np.mean([frechet_distance(*rng.normal(size=(2, n, 20))) for _ in range(20)]) for n in (50, 200, 800)}
    assert found[50] > 3 * found[200] > 9 * found[800] > 0
    kernel = np.array([kernel_distance(*rng.normal(size=(2, 50, 20))).value for _ in range(80)])
    assert abs(kernel.mean()) < 4 * kernel.std() / np.sqrt(80)
    assert (kernel < 0).any()
    for real, generated in ((200, 200), (800, 50), (50, 800)):
        told = np.mean([excess(rng.normal(size=(real, 20)), generated, np.arange(real), seed=n) for n in range(6)])
        sets = [(rng.normal(size=(real, 20)), rng.normal(size=(generated, 20))) for _ in range(10)]
        assert told == pytest.approx(np.mean([frechet_distance(*pair) for pair in sets]), rel=0.15)
    assert np.isnan(excess(rng.normal(size=(3, 20)), 3, np.arange(3)))


def test_fad_inf_is_what_endless_sets_would_have() -> None:
    """Means 1 apart, deviations 1 and 1.3: 1 + 16 * 0.09. Of the excess of 200 points, 1.1, next to nothing is left."""
    rng = np.random.default_rng(6)
    shift = np.eye(16)[0]
    lines = []
    for seed in range(24):
        x, y = rng.normal(size=(200, 16)), 1.3 * rng.normal(size=(200, 16)) + shift
        lines.append(fad_inf(x, y, units(200, 200), seed=seed))
    values = np.array([line.value for line in lines])
    assert np.mean([line.whole for line in lines]) > 2.44 + 0.9
    assert values.mean() == pytest.approx(2.44, abs=4 * values.std() / np.sqrt(24))
    assert abs(np.mean([line.bend for line in lines])) < 0.05


def test_halves_are_halves_of_clips() -> None:
    """Ten equal frames to a clip: half of the frames of every clip would be as good as all of them."""
    rng = np.random.default_rng(7)
    x, y = (np.repeat(rng.normal(size=(60, 4)), 10, axis=0) for _ in range(2))
    by_clip = fad_inf(x, y, units(600, 600, each=10))
    by_frame = fad_inf(x, y, units(600, 600))
    assert by_clip.halves - by_clip.whole > 5 * (by_frame.halves - by_frame.whole)
    assert abs(by_clip.value) < 0.3 * by_clip.whole
    brief = fad_inf(x, y, units(600, 600, each=10), brief=True)
    assert (brief.whole, np.isnan(brief.quarters)) == (by_clip.whole, True)
    assert Line(1.0, 2.0, 3.0, 5.0).bend == 0.0
    assert np.isnan(Line(1.0, 2.0, 2.0, 3.0).bend)


# --- kernels ------------------------------------------------------------------------------------------------------


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
    assert kad(x, y, threads=3).value == kad(x, y).value


def slow_kad(x: np.ndarray, y: np.ndarray, width: float | None = None) -> float:
    distances = np.sort(pdist(x))
    width = distances[(len(distances) - 1) // 2] if width is None else width
    like = lambda found: np.exp(-(found**2) / (2 * width**2))  # noqa: E731
    return float(100 * (like(pdist(x)).mean() + like(pdist(y)).mean() - 2 * like(cdist(x, y)).mean()))


def test_kad_is_the_double_sum_under_the_median_distance() -> None:
    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(41, 5)), 1.4 * rng.normal(size=(30, 5)) + 0.5
    found = kad(x, y)
    assert found.value == pytest.approx(slow_kad(x, y), rel=1e-10)
    assert kad(x, y, bandwidth=0.7).value == pytest.approx(slow_kad(x, y, 0.7), rel=1e-10)
    assert kad(3 * x, 3 * y).value == pytest.approx(found.value, rel=1e-10)  # it has no unit
    assert kad(x + 1e6, y + 1e6).value == pytest.approx(found.value, rel=1e-6)
    for row in (0, 7):
        raised = found.value - slow_kad(x, np.delete(y, row, axis=0))
        assert found.generated_effects[row] == pytest.approx(raised, rel=1e-8)
    width = np.sort(pdist(x))[(41 * 40 // 2 - 1) // 2]
    raised = found.value - slow_kad(np.delete(x, 3, axis=0), y, width)
    assert found.real_effects[3] == pytest.approx(raised, rel=1e-8)
    assert np.isnan(kad(x, y[:2]).generated_effects).all()


def test_the_median_distance_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "TILE", 64)
    rng = np.random.default_rng(10)
    smooth, stepped = rng.normal(size=(300, 3)), rng.integers(0, 3, size=(301, 2)).astype(float)
    copies = np.repeat(rng.normal(size=(4, 3)), 60, axis=0)
    with Workers(1) as workers:
        for points in (smooth, stepped, copies):
            distances = np.sort(pdist(points))
            middle = distances[(len(distances) - 1) // 2]
            assert distributions.median_distance(points, workers) == pytest.approx(middle, rel=1e-12)
        crowd = np.concatenate([np.repeat(1e3 + smooth[:1], 250, axis=0), smooth])  # most pairs are copies: exactly 0
        crowd -= crowd.mean(axis=0)
        assert distributions.median_distance(np.repeat(crowd[:1], 9, axis=0) / 3.0, workers) == 0.0
        assert distributions.median_distance(crowd[:260], workers) == 0.0
        expected = distributions.median_distance(smooth, workers)
        monkeypatch.setattr(distributions, "_bracket", lambda points: (9.0, 9.1))  # a sample that misled
        assert distributions.median_distance(smooth, workers) == expected
