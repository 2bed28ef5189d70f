"""What a dataset adds: verdicts on matrices with a known answer, and R² against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.analysis.matrix import from_table
from earmark.analysis.novelty import addition, explained_shares, novelty
from earmark.analysis.pounce import grouped_splits
from earmark.errors import InputError, UsageError


def benchmark(seed: int = 0) -> tuple[np.ndarray, list[str]]:
    """Four datasets that follow one skill, a copy of the first with little noise, and one of pure noise."""
    rng = np.random.default_rng(seed)
    skill = rng.uniform(0.2, 0.8, (24, 1))
    follow = skill + 0.05 * rng.normal(size=(24, 4))
    copy = follow[:, :1] + 0.002 * rng.normal(size=(24, 1))
    alone = rng.uniform(0.2, 0.8, (24, 1))
    return np.hstack([follow, copy, alone]), [f"f{i // 3}" for i in range(24)]


def test_a_copy_is_redundant_and_noise_is_new() -> None:
    values, families = benchmark()
    matrix = from_table(values, [f"m{i}" for i in range(24)], ["a", "b", "c", "d", "copy", "alone"], families=families)
    found = {verdict.dataset: verdict for verdict in novelty(matrix)}
    assert found["copy"].verdict == "redundant"
    assert found["copy"].closest == "a"
    assert found["alone"].verdict == "new"
    assert found["alone"].predictable < 0.3
    assert found["alone"].shift == max(verdict.shift for verdict in found.values())
    assert next(iter(found)) == "alone"  # least predictable first
    assert {verdict.rank for verdict in found.values()} == set(range(1, 7))
    assert "R²" in found["copy"].sentence


def test_only_the_dataset_asked_for() -> None:
    values, families = benchmark()
    matrix = from_table(values, [f"m{i}" for i in range(24)], "abcdef", families=families)
    (verdict,) = novelty(matrix, ["e"])
    assert verdict.dataset == "e"
    with pytest.raises(UsageError, match='no dataset "q"'):
        novelty(matrix, ["q"])


def test_a_constant_dataset_tells_nothing() -> None:
    values, _ = benchmark()
    values[:, 2] = 0.5
    matrix = from_table(values, [f"m{i}" for i in range(24)], "abcdef")
    (verdict,) = novelty(matrix, ["c"])
    assert verdict.verdict == "constant"


def test_explained_shares_are_those_of_scikit_learn() -> None:
    from sklearn.linear_model import Ridge

    values, families = benchmark(3)
    splits = grouped_splits(families)
    together, alone = explained_shares(values, splits)
    for target in range(6):
        others = [place for place in range(6) if place != target]
        for features, alpha, mine in [(others, None, together[target])] + [
            ([one], 1.0, alone[one, target]) for one in others
        ]:
            wrong = blind = 0.0
            for split in splits:
                scaled = values / values[split.train].std(axis=0)
                x, y = scaled[split.train][:, features], scaled[split.train][:, target]
                model = Ridge(alpha=float(len(x)) if alpha is None else alpha).fit(x, y)
                truth = scaled[split.test][:, target]
                wrong += ((model.predict(scaled[split.test][:, features]) - truth) ** 2).sum()
                blind += ((y.mean() - truth) ** 2).sum()
            assert mine == pytest.approx(1 - wrong / blind)


def test_what_a_group_adds() -> None:
    values, families = benchmark()
    matrix = from_table(values, [f"m{i}" for i in range(24)], "abcdef", families=families)
    follows = addition(matrix, ["c", "d"])
    apart = addition(matrix, ["f"])
    assert follows.agreement > apart.agreement
    assert min(follows.predictable.values()) > 0.6 > apart.predictable["f"]
    assert apart.coverage < 1
    assert apart.best_group == f"m{values[:, 5].argmax()}"
    assert apart.best_rest == f"m{values[:, :5].mean(axis=1).argmax()}"
    assert 1 <= apart.best_group_place <= 24
    with pytest.raises(InputError, match="A group of datasets"):
        addition(matrix, "abcdef")


def test_too_little_is_refused() -> None:
    values, _ = benchmark()
    with pytest.raises(InputError, match="4 models"):
        novelty(from_table(values[:4], "wxyz", "abcdef"))
    with pytest.raises(InputError, match="2 datasets"):
        novelty(from_table(values[:, :2], [f"m{i}" for i in range(24)], "ab"))
