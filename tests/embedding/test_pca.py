"""PCA against scikit-learn's full SVD."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA as Reference

from earmark.embedding import pca
from earmark.errors import InputError, UsageError


def cloud(points: int, dimensions: int, seed: int = 0, offset: float = 3.0) -> np.ndarray:
    random = np.random.default_rng(seed)
    scales = np.linspace(3, 0.1, dimensions)
    return (random.standard_normal((points, dimensions)) * scales + offset).astype(np.float32)


@settings(max_examples=40, deadline=None)
@given(points=st.integers(2, 40), dimensions=st.integers(1, 40), wanted=st.integers(1, 40), seed=st.integers(0, 99))
def test_is_scikit_learns_on_any_shape(points: int, dimensions: int, wanted: int, seed: int) -> None:
    vectors = cloud(points, dimensions, seed)
    found = pca.fit(vectors, wanted)
    kept = min(points - 1, dimensions, wanted)
    assert found.components.shape == (kept, dimensions)
    reference = Reference(n_components=kept, svd_solver="full").fit(vectors.astype(np.float64))
    np.testing.assert_allclose(found.variances, reference.explained_variance_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.explained, reference.explained_variance_ratio_, rtol=1e-6, atol=1e-9)
    coordinates = reference.transform(vectors.astype(np.float64))
    signs = np.sign((coordinates * found.transform(vectors)).sum(axis=0))
    np.testing.assert_allclose(found.transform(vectors) * signs, coordinates, atol=2e-3)
    assert bool(found.note) == (kept < wanted)


@pytest.mark.parametrize("shape", [(300, 40), (40, 300)])
@pytest.mark.usefixtures("several_threads")
def test_blocks_and_threads_change_no_bit(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = cloud(*shape)
    monkeypatch.setattr(pca, "BLOCK_BYTES", 8 * 40 * 17)
    one, many = pca.reduce(vectors, 10, threads=1), pca.reduce(vectors, 10, threads=4)
    np.testing.assert_array_equal(one.vectors, many.vectors)
    monkeypatch.undo()
    np.testing.assert_allclose(pca.reduce(vectors, 10).vectors, one.vectors, atol=1e-4)


def test_the_largest_loading_is_positive() -> None:
    for shape in ((60, 8), (8, 60)):
        loadings = pca.fit(cloud(*shape), 5).components
        assert (loadings[np.arange(5), np.abs(loadings).argmax(axis=1)] > 0).all()


def test_a_far_offset_costs_no_digits() -> None:
    near, far = cloud(50, 6, offset=0.0), cloud(50, 6, offset=0.0).astype(np.float64) + 1e6
    np.testing.assert_allclose(pca.reduce(far, 3).vectors, pca.reduce(near, 3).vectors, atol=1e-4)


def test_directions_without_variance_are_exactly_zero() -> None:
    line = np.outer(np.arange(10.0), [1.0, 2.0, 2.0])
    for vectors in (line, np.hstack([line] * 10)):
        found = pca.reduce(vectors, 3)
        np.testing.assert_array_equal(found.vectors[:, 1:], 0.0)
        assert "only 1 of 3" in found.pca.note
    constant = pca.reduce(np.ones((5, 3)), 2, whiten=True)
    np.testing.assert_array_equal(constant.vectors, 0.0)
    np.testing.assert_array_equal(constant.pca.explained, 0.0)


def test_fewer_points_than_asked_say_so() -> None:
    found = pca.reduce(cloud(8, 50), 30)
    assert found.vectors.shape == (8, 7)
    assert found.pca.note == "PCA: 7 of 30 components, all that 8 points in 50 dimensions have"


def test_whitening_is_only_on_request() -> None:
    vectors = cloud(200, 5)
    assert pca.reduce(vectors, 3).vectors.std(axis=0)[0] > 2
    np.testing.assert_allclose(pca.reduce(vectors, 3, whiten=True).vectors.std(axis=0, ddof=1), 1.0, rtol=1e-5)


def test_moments_of_blocks_are_those_of_the_whole() -> None:
    vectors = cloud(101, 7, offset=1000.0)
    whole = pca.fit(vectors, 4)
    parts = pca.Moments().extend([vectors[:1], vectors[1:50], vectors[50:50], vectors[50:]]).fit(4)
    np.testing.assert_allclose(parts.components, whole.components, atol=1e-6)
    np.testing.assert_allclose(parts.variances, whole.variances, rtol=1e-6)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-9)


def test_a_memory_map_will_do(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", cloud(30, 4))
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    np.testing.assert_array_equal(pca.reduce(mapped, 2).vectors, pca.reduce(cloud(30, 4), 2).vectors)


def test_refusals() -> None:
    with pytest.raises(UsageError, match="at least 1 component"):
        pca.fit(cloud(5, 5), 0)
    with pytest.raises(InputError, match="at least 2 points"):
        pca.fit(cloud(1, 5), 1)
    with pytest.raises(InputError, match="shape"):
        pca.fit(np.ones(5), 1)
    with pytest.raises(InputError, match="for 5 dimensions"):
        pca.fit(cloud(9, 5), 2).transform(np.ones((2, 4)))
