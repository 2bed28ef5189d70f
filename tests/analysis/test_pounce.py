"""Regressors against scikit-learn, splits and curves against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor

from earmark.analysis import pounce as p
from earmark.analysis.matrix import Matrix, from_table
from earmark.analysis.prowl import greedy
from earmark.analysis.similarities import similarity_matrix
from earmark.errors import InputError, UsageError


def scores(models: int = 24, datasets: int = 7, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.clip(
        rng.normal(0.5, 0.2, (models, 2)) @ rng.random((2, datasets)) + rng.normal(0, 0.05, (models, datasets)), 0, 1
    )


def matrix(families: int = 6) -> Matrix:
    values = scores()
    names = [f"m{i}" for i in range(len(values))]
    groups = [f"f{i % families}" for i in range(len(values))]
    return from_table(values, names, map(str, range(values.shape[1])), families=groups)


@pytest.mark.parametrize(("models", "known"), [(20, 3), (6, 9)], ids=["tall", "wide"])
def test_ridge_is_scikit_learns(models: int, known: int) -> None:
    rng = np.random.default_rng(0)
    x, y, new = rng.random((models, known)), rng.random((models, 4)), rng.random((5, known))
    assert p.ridge(x, y, new) == pytest.approx(Ridge(alpha=1).fit(x, y).predict(new))


@pytest.mark.parametrize("models", [20, 3])
def test_knn_is_scikit_learns_with_five_neighbours_or_fewer(models: int) -> None:
    rng = np.random.default_rng(1)
    x, y, new = rng.random((models, 3)), rng.random((models, 4)), rng.random((5, 3))
    theirs = KNeighborsRegressor(min(5, models)).fit(x, y).predict(new)
    assert p.knn(x, y, new) == pytest.approx(theirs)


def test_equally_near_models_are_taken_in_order() -> None:
    x, y = np.full((8, 2), 0.3), np.arange(8.0)[:, None]
    assert p.knn(x, y, np.array([[0.1, 0.7]])) == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["mlp12", "mlp12_12"])
def test_the_networks_learn_what_a_line_cannot(name: str) -> None:
    rng = np.random.default_rng(2)
    x, new = rng.random((80, 3)), rng.random((20, 3))
    y, truth = ((side[:, :1] - 0.5) ** 2 for side in (x, new))
    network = p.REGRESSORS[name]
    found = network(x, y, new)
    assert found.shape == (20, 1)
    assert np.mean((found - truth) ** 2) < 0.1 * np.mean((p.ridge(x, y, new) - truth) ** 2)
    assert (network(x, y, new) == found).all()


def test_splits() -> None:
    (only,) = p.random_split(29)
    train, test = train_test_split(np.arange(29), test_size=0.2, random_state=42)
    assert (only.train == train).all()
    assert (only.test == test).all()
    families = ["a", "b", "a", "c", "b"]
    grouped = p.grouped_splits(families)
    assert [(split.name, list(split.test), list(split.train)) for split in grouped] == [
        ("a", [0, 2], [1, 3, 4]),
        ("b", [1, 4], [0, 2, 3]),
        ("c", [3], [0, 1, 2, 4]),
    ]
    folds = p.kfold_splits(11, 4)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(11))
    assert all(set(fold.train) == set(range(11)) - set(fold.test) for fold in folds)
    with pytest.raises(InputError, match="one family"):
        p.grouped_splits(["a", "a"])
    with pytest.raises(UsageError, match="2 to 5 folds"):
        p.kfold_splits(5, 6)


def test_the_curve_is_the_error_of_one_regression_for_each_size() -> None:
    values = scores()
    train, test = values[:18], values[18:]
    order = greedy(similarity_matrix(train, "minkowski"))
    expected = []
    for size in range(1, 7):
        known, rest = list(order[:size]), list(order[size:])
        predicted = Ridge(alpha=1).fit(train[:, known], train[:, rest]).predict(test[:, known])
        expected.append(np.mean((predicted.reshape(6, -1) - test[:, rest]) ** 2))
    curve = p.error_curve(train, test, order, p.ridge)
    assert curve == pytest.approx(expected)
    assert p.area(curve) == pytest.approx(np.trapezoid(expected, np.linspace(0, 1, 6)))


def test_many_datasets_are_measured_at_a_hundred_sizes() -> None:
    values = scores(models=12, datasets=150)
    calls: list[int] = []

    def counted(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
        calls.append(x.shape[1])
        return p.mean(x, y, new)

    order = tuple(range(150))
    curve = p.error_curve(values[:9], values[9:], order, counted)
    assert (len(curve), len(calls), calls[0], calls[-1]) == (149, 100, 1, 149)
    for size in calls[:20]:
        exact = np.mean((values[:9, size:].mean(axis=0) - values[9:, size:]) ** 2)
        assert curve[size - 1] == pytest.approx(exact)


def test_a_family_is_never_on_both_sides() -> None:
    given = matrix()
    found = p.pounce(given, ("ridge", "mean"), split="grouped")
    forecast = found.forecast("ridge")
    values = given.normalised()
    for name in ("f0", "f4"):
        out = np.array(given.families) == name
        order = greedy(similarity_matrix(values[~out], "minkowski"))
        assert forecast.by_split[name] == pytest.approx(
            p.area(p.error_curve(values[~out], values[out], order, p.ridge))
        )
    areas = list(forecast.by_split.values())
    assert forecast.auc_mse == pytest.approx(np.mean(areas))
    assert forecast.deviation == pytest.approx(np.std(areas, ddof=1))
    assert [row["regressor"] for row in found.rows()] == ["ridge", "mean"]
    assert forecast.auc_mse < found.forecast("mean").auc_mse


def test_near_duplicates_leak_across_a_random_split() -> None:
    rng = np.random.default_rng(4)
    families = np.repeat(np.arange(10), 8)
    values = np.clip(rng.random((10, 6))[families] + rng.normal(0, 0.01, (80, 6)), 0, 1)
    given = from_table(values, map(str, range(80)), "abcdef", families=[f"f{f}" for f in families])
    random = p.pounce(given, ("knn",), split="random").forecast("knn").auc_mse
    grouped = p.pounce(given, ("knn",), split="grouped").forecast("knn").auc_mse
    assert random < 0.05 * grouped


def test_noise_has_the_variance_asked_for() -> None:
    values = np.zeros((200, 200))
    assert p.noisy(values, 0.05).var() == pytest.approx(0.05, rel=0.03)
    assert p.noisy(values, 0.0) is values
    given = matrix()
    clean, noise = (p.pounce(given, ("knn",), split="random", noise=v).forecast("knn") for v in (0.0, 0.1))
    assert noise.auc_mse > clean.auc_mse
    drawn = p.pounce(given, ("knn",), split="random", noise=0.1, draws=5).forecast("knn")
    assert (drawn.draws, len(drawn.by_split)) == (5, 1)


def test_wrong_use() -> None:
    with pytest.raises(UsageError, match=r'no regressor "rigde".*Did you mean "ridge"'):
        p.pounce(matrix(), ("rigde",))
    with pytest.raises(UsageError, match="split is"):
        p.pounce(matrix(), split="loo")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="was not computed"):
        p.pounce(matrix()).forecast("mlp12")
    values = scores()
    values[0, 0] = np.nan
    with pytest.raises(InputError, match=r"complete\(\) first"):
        p.pounce(from_table(values, map(str, range(24)), "abcdefg"))


# --- folds and noise ----------------------------------------------------------------------------------------------


def test_folds_of_families_cut_none_and_are_of_like_size() -> None:
    families = [f"f{i}" for i in range(9) for _ in range(1 + i % 4)]
    folds = p.kfold_splits(len(families), 4, 3, families)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(len(families)))
    for fold in folds:
        assert not {families[i] for i in fold.test} & {families[i] for i in fold.train}
        assert len(fold.test) + len(fold.train) == len(families)
    assert max(len(fold.test) for fold in folds) - min(len(fold.test) for fold in folds) <= 4
    again = p.kfold_splits(len(families), 4, 4, families)
    assert any((a.test.tolist() != b.test.tolist()) for a, b in zip(folds, again, strict=True))
    with pytest.raises(UsageError, match="9 families can be cut into 2 to 9 folds, not 10"):
        p.kfold_splits(len(families), 10, 0, families)
    with pytest.raises(InputError, match="one family"):
        p.kfold_splits(4, 2, 0, ["a"] * 4)


def test_a_fold_is_one_regression_on_the_models_outside_it() -> None:
    given = matrix()
    found = p.pounce(given, ("ridge",), split="kfold", folds=3, seed=5).forecast("ridge")
    values = given.normalised()
    for k, fold in enumerate(p.kfold_splits(24, 3, 5, given.families)):
        order = greedy(similarity_matrix(values[fold.train], "minkowski"))
        curve = p.error_curve(values[fold.train], values[fold.test], order, p.ridge)
        assert found.curves[k] == pytest.approx(curve)
        assert found.by_split[fold.name] == pytest.approx(p.area(curve))
    assert found.curve == pytest.approx(found.curves.mean(axis=0))
    assert found.deviation == pytest.approx(np.std(list(found.by_split.values()), ddof=1))
    assert found.error is None


def test_the_error_over_draws_is_the_monte_carlo_error() -> None:
    """Over many seeds, results scatter around their mean as far as each of them says."""
    given = matrix()
    runs = [
        p.pounce(given, ("knn",), split="random", noise=0.1, draws=6, noise_seed=seed).forecast("knn")
        for seed in range(120)
    ]
    scatter = np.std([run.auc_mse for run in runs], ddof=1)
    said = np.sqrt(np.mean([(run.error or 0) ** 2 for run in runs]))
    assert said == pytest.approx(scatter, rel=0.25)  # 120 runs know a deviation to about 7 %
    grouped = p.pounce(given, ("knn",), noise=0.1, draws=6).forecast("knn")
    assert (grouped.draws, len(grouped.by_split)) == (6, 6)
    assert grouped.error is not None
    assert grouped.error < said  # six families, six times as much noise to average


def test_a_network_gets_fewer_draws_and_says_so() -> None:
    values = scores(models=8, datasets=3)
    given = from_table(values, map(str, range(8)), "abc")
    found = p.pounce(given, ("mlp12", "mean"), split="random", noise=0.05, draws=5)
    assert [forecast.draws for forecast in found.forecasts] == [p.NETWORK_DRAWS, 5]
    assert found.noise == 0.05


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf])
def test_noise_that_is_no_variance_is_refused(noise: float) -> None:
    with pytest.raises(UsageError, match="variance"):
        p.pounce(matrix(), ("mean",), noise=noise)
    with pytest.raises(UsageError, match="draws"):
        p.pounce(matrix(), ("mean",), noise=0.1, draws=0)


def test_the_spread_of_folds_is_no_interval_where_folds_cut_families() -> None:
    """Twelve families of four near-duplicates, 80 matrices: what an interval made of the spread would hold.

    The truth is the mean error on families not seen before. Folds of whole families come near to 95 %; folds that cut
    families are both too kind and far too sure.
    """
    from dataclasses import replace

    from scipy.stats import t

    loadings = np.array([[1, 0.8, 0.6, 0.4, 0.2, 0], [0, 0.3, 0.5, 0.7, 0.9, 1]])
    results: dict[str, list[tuple[float, float]]] = {"whole": [], "cut": []}
    for seed in range(80):
        rng = np.random.default_rng(seed)
        ability = rng.normal(size=(12, 2)).repeat(4, axis=0) + 0.1 * rng.normal(size=(48, 2))
        luck = 0.5 * rng.normal(size=(12, 6)).repeat(4, axis=0) + 0.05 * rng.normal(size=(48, 6))
        values = 1 / (1 + np.exp(-ability @ loadings - luck))
        given = from_table(values, map(str, range(48)), "abcdef", families=[f"f{i // 4}" for i in range(48)])
        for name, each in (("whole", given), ("cut", replace(given, families=given.models))):
            forecast = p.pounce(each, ("ridge",), split="kfold", folds=5, seed=seed).forecast("ridge")
            results[name].append((forecast.auc_mse, forecast.deviation or 0.0))
    truth = np.mean([value for value, _ in results["whole"]])
    reach = t.ppf(0.975, 4) / np.sqrt(5)
    held = {
        name: np.mean([abs(value - truth) <= reach * spread for value, spread in runs])
        for name, runs in results.items()
    }
    assert held["whole"] > 0.85
    assert held["cut"] < 0.4
