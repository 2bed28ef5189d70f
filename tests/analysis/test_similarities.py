"""The nine similarities against scipy, pair by pair, with and without gaps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import jensenshannon

from earmark.analysis.similarities import NINE, similarity_matrix
from earmark.errors import InputError, UsageError

Pair = Callable[[np.ndarray, np.ndarray], float]


def scores(models: int = 14, datasets: int = 6, seed: int = 0) -> np.ndarray:
    """Rounded, so that there are ties, and clipped, so that there are zeros."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(0.4, 0.2, (models, 1))
    return np.maximum(0, np.round(skill + rng.normal(0, 0.2, (models, datasets)), 1))


def reference(name: str, values: np.ndarray) -> np.ndarray:
    """All pairs by scipy on the models that both datasets have."""
    m, d = values.shape
    pairs: dict[str, Pair] = {
        "pearson": lambda x, y: stats.pearsonr(x, y)[0],
        "spearman": lambda x, y: stats.spearmanr(x, y)[0],
        "kendall": lambda x, y: stats.kendalltau(x, y)[0],
        "cosine": lambda x, y: x @ y / np.sqrt((x @ x) * (y @ y)),
        "manhattan": lambda x, y: np.exp(-m / len(x) * np.abs(x - y).sum()),
        "euclidean": lambda x, y: np.exp(-((m / len(x)) ** (1 / 2)) * np.linalg.norm(x - y)),
        "minkowski": lambda x, y: np.exp(-((m / len(x)) ** (1 / 3)) * np.linalg.norm(x - y, 3)),
        "wasserstein": stats.wasserstein_distance,
        "jensen_shannon": lambda x, y: 1 - jensenshannon(x, y),
    }
    out = np.ones((d, d))
    for i in range(d):
        for j in range(d):
            both = np.isfinite(values[:, i]) & np.isfinite(values[:, j])
            out[i, j] = pairs[name](values[both, i], values[both, j])
    return np.exp(-out / out.max()) if name == "wasserstein" else out


@pytest.mark.parametrize("name", NINE)
@pytest.mark.parametrize("gaps", [0, 9], ids=["complete", "gaps"])
def test_every_pair_agrees_with_scipy(name: str, gaps: int) -> None:
    values = scores()
    values.flat[np.random.default_rng(1).choice(values.size, gaps, replace=False)] = np.nan
    found = similarity_matrix(values, name)
    assert found == pytest.approx(reference(name, values), abs=1e-12)
    assert (found == found.T).all()
    assert (np.diag(found) == 1).all()


def test_a_negative_correlation_stays_negative() -> None:
    values = np.array([[0.1, 0.9], [0.5, 0.4], [0.8, 0.2]])
    assert similarity_matrix(values, "spearman")[0, 1] == pytest.approx(-1)


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall"])
def test_a_constant_dataset_is_like_nothing(name: str) -> None:
    values = scores()
    values[:, 2] = 0.3  # 0.3 - mean(0.3) is not 0 in floating point
    found = similarity_matrix(values, name)
    assert (np.delete(found[2], 2) == 0).all()
    assert np.isfinite(found).all()


@pytest.mark.parametrize("name", ["cosine", "jensen_shannon"])
def test_a_dataset_of_zeros_is_like_nothing(name: str) -> None:
    values = scores()
    values[:, 2] = 0.0
    found = similarity_matrix(values, name)
    assert (np.delete(found[2], 2) == 0).all()
    assert found == pytest.approx(found.T)


@pytest.mark.parametrize("name", NINE)
def test_equal_datasets_have_similarity_1(name: str) -> None:
    values = scores()
    values[:, 1] = values[:, 0]
    assert similarity_matrix(values, name)[0, 1] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", NINE)
def test_datasets_without_common_models_are_unlike(name: str) -> None:
    values = scores()
    values[:7, 0] = np.nan
    values[7:, 1] = np.nan
    assert similarity_matrix(values, name)[0, 1] == 0


def test_a_similarity_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match=r'no similarity "perason".*Did you mean "pearson"'):
        similarity_matrix(scores(), "perason")


def test_jensen_shannon_refuses_what_is_no_distribution() -> None:
    with pytest.raises(InputError, match="at least 0"):
        similarity_matrix(scores() - 0.5, "jensen_shannon")
