"""Relations against six ordinary regressions for each pair."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from earmark.analysis.matrix import from_table
from earmark.analysis.stalk import KINDS, linkage, relations, stalk
from earmark.errors import InputError, UsageError


def r2(x: np.ndarray, y: np.ndarray) -> float:
    return float(LinearRegression().fit(x[:, None], y).score(x[:, None], y))


def six_fits(x: np.ndarray, y: np.ndarray) -> tuple[str, float]:
    """The paper's procedure, with log1p and square."""
    fits = {
        "LINEAR": max(r2(x, y), r2(y, x)),
        "EXPONENTIAL": max(r2(np.log1p(x), y), r2(np.log1p(y), x)),
        "POWER-LAW": max(r2(x**2, y), r2(y**2, x)),
    }
    name = max(fits, key=lambda kind: fits[kind])
    return (name if fits[name] >= 0.5 else "NONE"), fits[name]


def scores(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    skill = rng.random((15, 1))
    return np.clip(skill ** rng.uniform(0.5, 3, 8) + rng.normal(0, 0.12, (15, 8)), 0, 1)


@pytest.mark.parametrize("seed", range(3))
def test_every_pair_is_the_best_of_six_regressions(seed: int) -> None:
    values = scores(seed)
    values[[1, 4, 4], [0, 0, 5]] = np.nan
    found = relations(values)
    for i in range(8):
        for j in range(i):
            both = np.isfinite(values[:, i]) & np.isfinite(values[:, j])
            kind, best = six_fits(values[both, i], values[both, j])
            assert (KINDS[found.kind[i, j]], found.r2[i, j]) == (kind, pytest.approx(best))
    assert sum(found.counts.values()) == 28
    assert (found.kind == found.kind.T).all()


def test_known_relations() -> None:
    x = np.linspace(0.05, 1, 12)
    noise = np.random.default_rng(0).random(12)
    values = np.column_stack([x, 0.2 + 0.5 * x, np.log1p(x), x**2, noise])
    found = relations(values)
    assert [KINDS[found.kind[0, j]] for j in range(1, 5)] == ["LINEAR", "EXPONENTIAL", "POWER-LAW", "NONE"]
    assert found.r2[0, 1:4] == pytest.approx([1, 1, 1])


def test_the_classical_scheme() -> None:
    x = np.linspace(0.05, 1, 12)
    values = np.column_stack([x, np.exp(-3 * x), 0.4 * x**2.5, 0.3 + 0.2 * x])
    found = relations(values, scheme="loglog")
    assert [KINDS[found.kind[0, j]] for j in range(1, 4)] == ["EXPONENTIAL", "POWER-LAW", "LINEAR"]
    zeros = values.copy()
    zeros[:3, 0] = 0.0
    assert relations(zeros, scheme="loglog").r2[0] == pytest.approx(relations(values[3:], scheme="loglog").r2[0])


def test_a_constant_relates_to_nothing_and_two_points_to_neither() -> None:
    values = scores()
    values[:, 2] = 0.3
    values[2:, 3] = np.nan
    found = relations(values)
    for column in (2, 3):
        assert (np.delete(found.kind[column], column) == KINDS.index("NONE")).all()
        assert (np.delete(found.r2[column], column) == 0).all()


def test_datasets_and_models() -> None:
    values = scores()
    found = stalk(from_table(values, map(str, range(15)), "abcdefgh"))
    assert found.datasets.names == tuple("abcdefgh")
    assert found.datasets.counts == relations(values).counts
    assert sum(found.models.counts.values()) == 15 * 14 // 2
    assert six_fits(values[3], values[9])[1] == pytest.approx(found.models.r2[3, 9])


def test_the_dendrogram_joins_the_most_related_first() -> None:
    found = relations(scores())
    joined = linkage(found)
    above = np.triu(found.r2, 1)
    assert joined.shape == (7, 4)
    assert joined[0, 2] == pytest.approx(1 - above.max())
    assert {int(joined[0, 0]), int(joined[0, 1])} == set(map(int, np.argwhere(above == above.max())[0]))
    with pytest.raises(InputError, match="at least two"):
        linkage(relations(scores()[:, :1]))


def test_wrong_use() -> None:
    with pytest.raises(UsageError, match="scheme"):
        relations(scores(), scheme="log")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least 0"):
        relations(scores() - 0.5)
