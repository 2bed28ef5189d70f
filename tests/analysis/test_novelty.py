"""What a dataset adds: verdicts on matrices with a known answer, and R² against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.analysis.matrix import from_table
from earmark.analysis.novelty import _inner, addition, explained_shares, misses, novelty
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


def test_errors_are_those_of_scikit_learn() -> None:
    from sklearn.linear_model import Ridge

    values, families = benchmark(3)
    for split in grouped_splits(families)[:3]:
        together, alone, blind = misses(values, split)
        scaled = values / values[split.train].std(axis=0)
        train, test = scaled[split.train], scaled[split.test]
        correlations = np.abs(np.corrcoef(train.T)) - 2 * np.eye(6)
        for target in range(6):
            others = [place for place in range(6) if place != target]
            nearest = [int(correlations[target].argmax())]
            for features, alpha, mine in ((others, float(len(train)), together), (nearest, 1.0, alone)):
                model = Ridge(alpha=alpha).fit(train[:, features], train[:, target])
                wrong = ((model.predict(test[:, features]) - test[:, target]) ** 2).sum()
                assert mine[target] == pytest.approx(wrong)
            assert blind[target] == pytest.approx(((train[:, target].mean() - test[:, target]) ** 2).sum())


@pytest.mark.parametrize("families", [[f"f{i // 3}" for i in range(24)], [f"f{i // 12}" for i in range(24)]])
def test_held_out_models_have_no_say_in_what_predicts_them(families: list[str]) -> None:
    """One or all, as an inner split says: recomputed with the held-out scores out of reach."""
    values, _ = benchmark(4)
    splits = grouped_splits(families)
    wrong, blind = np.zeros(6), np.zeros(6)
    for split in splits:
        blinded = values.copy()
        blinded[split.test] = np.nan
        inner = _inner(split, splits)
        held = np.sort(np.concatenate([part.test for part in inner]))
        assert held.tolist() == split.train.tolist()
        assert not any(set(part.train) & set(part.test) for part in inner)
        if len(splits) > 2:
            assert not any({families[i] for i in part.train} & {families[i] for i in part.test} for part in inner)
        scores = np.sum([misses(blinded, part)[:2] for part in inner], axis=0)
        pair = misses(values, split)
        wrong += [pair[int(scores[1, j] < scores[0, j])][j] for j in range(6)]
        blind += pair[2]
    assert explained_shares(values, splits) == pytest.approx(1 - wrong / blind)


@pytest.mark.parametrize(("models", "datasets"), [(8, 50), (16, 30)])
def test_independent_noise_is_new_however_much_of_it_there_is(models: int, datasets: int) -> None:
    verdicts = []
    for seed in range(3):
        values = np.random.default_rng(seed).uniform(0.2, 0.8, (models, datasets))
        matrix = from_table(values, [f"m{i}" for i in range(models)], [f"d{j}" for j in range(datasets)])
        verdicts += [verdict.verdict for verdict in novelty(matrix)]
    assert np.mean([verdict == "new" for verdict in verdicts]) > 0.8


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
