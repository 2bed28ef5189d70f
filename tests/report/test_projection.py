"""Maps of vectors: deterministic, honest about what they keep, unharmed by odd input."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.errors import InputError
from earmark.report._projection import MOST, principal_components, project, truth_of


def blobs(count: int, dims: int, classes: int = 3) -> np.ndarray:
    rng = np.random.default_rng(0)
    middles = 8.0 * rng.standard_normal((classes, dims))
    return middles[np.arange(count) % classes] + rng.standard_normal((count, dims))


def test_the_same_vectors_give_the_same_map() -> None:
    vectors = blobs(60, 12)
    first, second = project(vectors, 0), project(vectors, 0)
    assert first.method == "t-SNE"
    np.testing.assert_array_equal(first.points, second.points)
    np.testing.assert_array_equal(first.rows, np.arange(60))


def test_classes_that_are_apart_stay_apart() -> None:
    found = project(blobs(60, 12), 0)
    middles = np.array([found.points[np.arange(60) % 3 == group].mean(axis=0) for group in range(3)])
    widths = [found.points[np.arange(60) % 3 == group].std() for group in range(3)]
    gaps = [np.linalg.norm(middles[a] - middles[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert min(gaps) > max(widths)
    assert found.kept is not None
    assert found.kept > 0.8


def test_few_vectors_get_their_principal_components() -> None:
    assert project(blobs(12, 5)).method == "PCA"
    assert project(blobs(60, 5), method="pca").method == "PCA"


def test_too_many_vectors_are_sampled_and_the_note_says_so() -> None:
    found = project(blobs(90, 4), 3, method="pca", most=40)
    assert found.points.shape == (40, 2)
    assert found.note == "40 of 90 clips, drawn at random"
    assert (np.diff(found.rows) > 0).all()
    np.testing.assert_array_equal(found.rows, project(blobs(90, 4), 3, method="pca", most=40).rows)
    assert MOST == 2000


@pytest.mark.parametrize("shape", [(1, 4), (2, 4), (3, 1), (40, 1), (5, 300)])
def test_any_shape_gives_two_finite_columns(shape: tuple[int, int]) -> None:
    found = project(np.random.default_rng(0).standard_normal(shape), method="pca")
    assert found.points.shape == (shape[0], 2)
    assert np.isfinite(found.points).all()


@pytest.mark.parametrize("distance", ["cosine", "euclidean", "spearman"])
def test_identical_vectors_lie_on_one_another(distance: str) -> None:
    found = project(np.ones((40, 6)), distance=distance)
    assert np.ptp(found.points) < 1e-9


def test_vectors_that_are_no_table_are_refused() -> None:
    with pytest.raises(InputError, match="shape"):
        project(np.zeros(4))


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
def test_components_are_those_of_a_singular_value_decomposition(shape: tuple[int, int]) -> None:
    vectors = np.random.default_rng(1).standard_normal(shape)
    centred = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    found = principal_components(vectors, 5)
    np.testing.assert_allclose(np.abs(found), np.abs((left * sizes)[:, :5]), atol=1e-9)
    assert (found[np.abs(found).argmax(axis=0), np.arange(5)] > 0).all()


def test_a_true_map_keeps_every_neighbour() -> None:
    flat = np.random.default_rng(2).standard_normal((50, 2))
    truth = truth_of(flat, flat)
    assert truth is not None
    assert truth.kept == 1.0
    assert truth_of(flat[:10], flat[:10]) is None
