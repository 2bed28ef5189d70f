"""Predicted cells: the jackknife+ against its definition, and what the intervals hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from earmark import published
from earmark.analysis import intervals as iv
from earmark.analysis.matrix import Matrix, from_scores, from_table
from earmark.analysis.pounce import ridge
from earmark.errors import InputError, UsageError
from earmark.scores import Row, Scores


def families_of(count: int, each: int, datasets: int = 6, seed: int = 0, spread: float = 0.03) -> Matrix:
    """Families drawn alike, whose models differ a little."""
    rng = np.random.default_rng(seed)
    centres = 0.5 + 0.15 * rng.normal(size=(count, 1)) + 0.08 * rng.normal(size=(count, datasets))
    family = np.repeat(np.arange(count), each)
    values = centres[family] + spread * rng.normal(size=(count * each, datasets))
    return from_table(
        values,
        [f"m{i}" for i in range(len(values))],
        [f"d{j}" for j in range(datasets)],
        best=1.0,
        families=[f"f{f}" for f in family],
    )


def weighted_quantile(pairs: list[tuple[float, float]], level: float) -> float:
    reached = 0.0
    for value, weight in sorted(pairs):
        reached += weight
        if reached >= level - 1e-12:
            return value
    return max(value for value, _ in pairs)


def jackknife(history: Matrix, row: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Low and high by the definition: one family out, one target at a time."""
    known, hidden = np.flatnonzero(np.isfinite(row)), np.flatnonzero(np.isnan(row))
    families = np.array(history.families)
    count = len(set(families))
    low, high = row.copy(), row.copy()
    for target in hidden:
        above, below = [], []
        for name in set(families):
            out = families == name
            x, y = history.values[~out][:, known], history.values[~out][:, [target]]
            new = ridge(x, y, row[None, known])[0, 0]
            held = ridge(x, y, history.values[out][:, known])[:, 0]
            weight = 1 / (out.sum() * (count + 1))
            for missed in np.abs(held - history.values[out, target]):
                above.append((new + missed, weight))
                below.append((missed - new, weight))
        high[target], low[target] = weighted_quantile(above, level), -weighted_quantile(below, level)
    return low, high


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_intervals_are_the_jackknife_plus_over_families(level: float) -> None:
    history = families_of(9, 3).take(np.setdiff1d(np.arange(27), [4, 5, 20]))  # families of 1, 2 and 3 models
    row = np.array([0.5, np.nan, 0.62, np.nan, np.nan, 0.4])
    found = iv.predict_rows(history, row, level=level)
    low, high = jackknife(history, row, level)
    hidden = np.isnan(row)
    predicted = ridge(history.values[:, ~hidden], history.values[:, hidden], row[None, ~hidden])
    assert found.value[0, hidden] == pytest.approx(predicted[0])
    assert found.low[0, hidden] == pytest.approx(np.minimum(low[hidden], predicted[0]))
    assert found.high[0, hidden] == pytest.approx(np.maximum(high[hidden], predicted[0]))
    assert np.isnan(found.value[0, ~hidden]).all()
    assert found.supported[0, hidden] == pytest.approx(min(level, 0.9))


def test_intervals_hold_what_they_promise_for_new_families() -> None:
    """300 new families against a history of 19: at least the level, at most 1 / 20 more, but for the draw."""
    inside = []
    for seed in range(30):
        everyone = families_of(29, 4, seed=seed)
        history, fresh = everyone.take(np.arange(76)), everyone.take(np.arange(76, 116))
        rows = fresh.values.copy()
        rows[:, 2:] = np.nan
        found = iv.predict_rows(history, rows, level=0.9)
        inside.append(((fresh.values >= found.low) & (fresh.values <= found.high))[:, 2:].mean())
    assert 0.89 < np.mean(inside) < 0.96


def test_nine_versions_are_one_piece_of_evidence() -> None:
    """One odd family of nine models among ten of one: its errors weigh a tenth, not nine nineteenths."""
    rng = np.random.default_rng(1)
    x = rng.random(19)
    y = 0.3 + 0.4 * x + rng.normal(0, 0.01, 19)
    y[10:] += 0.3
    names = [f"m{i}" for i in range(19)]
    odd = ["odd" if i >= 10 else f"f{i}" for i in range(19)]
    rows = np.array([[0.5, np.nan]])
    widths = [
        float((found.high - found.low)[0, 1])
        for families in (odd, None)
        for found in [
            iv.predict_rows(from_table(np.column_stack([x, y]), names, "ab", families=families), rows, level=0.8)
        ]
    ]
    assert widths[0] != widths[1]
    quantile = iv._quantile(np.r_[np.zeros(10), np.ones(9)][:, None], np.r_[np.ones(10), np.ones(9) / 9] / 12, 0.8)
    assert quantile == 0.0


@pytest.mark.parametrize("level", [0.1, 0.5, 0.77, 0.9, 0.99])
def test_the_weighted_quantile(level: float) -> None:
    rng = np.random.default_rng(2)
    values = np.round(rng.random((25, 6)), 1)
    weights = rng.choice([0.01, 0.02, 0.05], 25)
    weights *= 0.95 / weights.sum()
    expected = [weighted_quantile(list(zip(values[:, j], weights, strict=True)), level) for j in range(6)]
    assert iv._quantile(values, weights, level) == pytest.approx(expected)


def test_few_families_say_what_their_interval_is_worth() -> None:
    found = iv.predict_rows(families_of(4, 2), np.array([0.5] + [np.nan] * 5), level=0.9)
    assert found.supported[0, 1:] == pytest.approx(0.8)
    assert np.isfinite(found.high[0, 1:]).all()


def test_lower_is_better_gives_the_same_intervals_turned_round() -> None:
    history = families_of(8, 2)
    row = np.array([0.4, 0.6] + [np.nan] * 4)
    up = iv.predict_rows(history, row)
    down = from_table(
        1 - history.values,
        history.models,
        history.datasets,
        lower_is_better=history.datasets,
        best=0.0,
        chance=1.0,
        families=history.families,
    )
    turned = iv.predict_rows(down, 1 - row)
    assert turned.low == pytest.approx(1 - up.high, nan_ok=True)
    assert turned.high == pytest.approx(1 - up.low, nan_ok=True)


def test_predictions_stay_in_the_range_of_the_metric() -> None:
    rng = np.random.default_rng(0)
    rows = [
        Row(system=f"m{i}", subset=name, metric="P@1", value=float(rng.choice([0.02, 0.98])))
        for i in range(9)
        for name in "abc"
    ]
    history = from_scores(Scores(tuple(rows)))
    assert history.bounds == history.take(datasets=[0]).bounds == (0, 1)
    found = iv.predict_rows(history, np.array([0.9, np.nan, np.nan]))
    free = iv.predict_rows(replace(history, bounds=(-np.inf, np.inf)), np.array([0.9, np.nan, np.nan]))
    assert (free.high[0, 1:] > 1).any()
    assert (free.low[0, 1:] < 0).any()
    assert found.low == pytest.approx(np.clip(free.low, 0, 1), nan_ok=True)
    assert found.high == pytest.approx(np.clip(free.high, 0, 1), nan_ok=True)


@pytest.mark.parametrize(
    ("centre", "scale", "ends"),
    [(0.5, 1000, {}), (-0.1, 1, {"chance": 0, "best": 1}), (0.1, -1, {"chance": 1, "best": 0})],
    ids=["no known end", "silhouette", "lower is better"],
)
def test_a_new_best_or_worst_may_lie_inside(centre: float, scale: float, ends: dict[str, float]) -> None:
    inside, above, below = [], [], []
    for seed in range(60):
        values = 0.12 * np.random.default_rng(seed).normal(size=(13, 5)) + centre
        values[:, 3:] = 0.5 * values[:, :1] + 0.5 * values[:, 3:]
        values *= scale
        down = "abcde" if scale < 0 else ""
        history = from_table(values[:12], [f"m{i}" for i in range(12)], "abcde", lower_is_better=down, **ends)
        row = np.r_[values[12, :3], np.nan, np.nan]
        found = iv.predict_rows(history, row)
        hit = ((values[12] >= found.low[0]) & (values[12] <= found.high[0]))[3:]
        inside += list(hit)
        above += list(hit[values[12, 3:] > values[:12, 3:].max(axis=0)])
        below += list(hit[values[12, 3:] < values[:12, 3:].min(axis=0)])
    assert 0.88 < np.mean(inside) < 0.98
    assert min(np.mean(above), np.mean(below)) > 0.2


def test_gaps_in_the_history() -> None:
    history = families_of(10, 2)
    values = history.values.copy()
    values[:6, 2] = np.nan  # target 2 is known to 7 families
    values[2:, 3] = np.nan  # target 3 to one
    values[19, 0] = np.nan  # one model lacks what the row knows
    with_gaps = from_table(values, history.models, history.datasets, best=1.0, families=history.families)
    row = np.array([0.5] + [np.nan] * 5)
    found = iv.predict_rows(with_gaps, row, level=0.8)
    some = iv.predict_rows(history.take(np.arange(6, 19)), row, level=0.8)
    most = iv.predict_rows(history.take(np.arange(19)), row, level=0.8)
    assert found.value[0, [2]] == pytest.approx(some.value[0, [2]])
    assert found.value[0, [1, 4, 5]] == pytest.approx(most.value[0, [1, 4, 5]])
    assert np.isnan([found.value[0, 3], found.low[0, 3], found.high[0, 3], found.supported[0, 3]]).all()


def test_many_families_are_left_out_in_groups() -> None:
    folds = list(iv._folds(np.repeat(np.arange(120), 2)))
    assert len(folds) == iv.MOST_FOLDS
    assert sum(fold.astype(int) for fold in folds).tolist() == [1] * 240
    assert all((fold[::2] == fold[1::2]).all() for fold in folds)


def vocsim(level: str = "method") -> Matrix:
    scores = published.load("vocsim", with_repeats=True)  # the figures of 0.1.0 are of the table as printed
    systems = {row.system for row in scores.rows}
    chance = {row["subset"]: 1 / int(row["n_classes"]) for row in published.read("vocsim_table1_subsets")}
    return from_scores(scores, "P@1", chance=chance, families=published.families("vocsim", systems, level))


@pytest.mark.parametrize("regressor", ["ridge", "knn"])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_nine_in_ten_cells_of_a_held_out_vocsim_family_lie_inside(regressor: str, size: int) -> None:
    found = iv.interval_coverage(vocsim(), size, regressor=regressor)
    assert len(found.by_family) == 20
    assert found.cells == 127 * (19 - size)
    assert 0.85 <= found.coverage <= 0.95
    assert 0.85 <= found.mean_family <= 0.95
    blind = iv.interval_coverage(vocsim(), size, regressor="mean")
    assert found.width < blind.width  # what the few measured subsets are worth
    assert found.rmse < blind.rmse


def test_with_twelve_models_as_families_the_promise_is_wider_and_kept() -> None:
    found = iv.interval_coverage(vocsim("model"), 3)
    assert len(found.by_family) == 12
    assert 0.9 <= found.mean_family <= 0.9 + 1 / 12


def test_coverage_is_the_share_of_cells_inside() -> None:
    history = families_of(6, 2)
    found = iv.interval_coverage(history, ["d1", "d4"], level=0.7)
    inside = []
    for f in range(6):
        out = np.array(history.families) == f"f{f}"
        rows = history.values[out].copy()
        rows[:, [0, 2, 3, 5]] = np.nan
        predicted = iv.predict_rows(history.take(np.flatnonzero(~out)), rows, level=0.7)
        truth = history.values[out]
        inside.append(((truth >= predicted.low) & (truth <= predicted.high))[:, [0, 2, 3, 5]].mean())
    assert list(found.by_family.values()) == pytest.approx(inside)
    assert found.coverage == pytest.approx(np.mean(inside))
    assert [row["family"] for row in found.rows()] == [f"f{f}" for f in range(6)]


def test_wrong_use() -> None:
    history = families_of(5, 2)
    with pytest.raises(UsageError, match="between 0 and 1"):
        iv.predict_rows(history, np.full(6, 0.5), level=90)
    with pytest.raises(UsageError, match="3 columns, the history 6"):
        iv.predict_rows(history, np.full(3, 0.5))
    with pytest.raises(InputError, match="without a single score"):
        iv.predict_rows(history, np.full(6, np.nan))
    with pytest.raises(UsageError, match='"d9" is not a dataset'):
        iv.interval_coverage(history, ["d9"])
    with pytest.raises(UsageError, match="From 1 to 5 of 6"):
        iv.interval_coverage(history, 6)
    with pytest.raises(InputError, match="at least three"):
        iv.interval_coverage(families_of(2, 4), 2)
