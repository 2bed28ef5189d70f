"""Ranks and their intervals: against a slow definition, in simulation, and where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from earmark.analysis.matrix import from_table
from earmark.analysis.ranks import rank_intervals, rank_models, ranks_from_verdicts
from earmark.errors import InputError, UsageError


def slow_interval(values: np.ndarray, line: int) -> tuple[int, int]:
    """One paired t-test after the other, the smallest p-value first, until Holm's procedure stops."""
    others = [other for other in range(len(values)) if other != line]
    tests = sorted((stats.ttest_rel(values[other], values[line]).pvalue, other) for other in others)
    ahead = behind = 0
    for place, (p_value, other) in enumerate(tests):
        if p_value > 0.05 / (len(others) - place):
            break
        ahead += values[other].mean() > values[line].mean()
        behind += values[other].mean() < values[line].mean()
    return 1 + ahead, len(values) - behind


@pytest.mark.parametrize("seed", range(4))
def test_intervals_are_those_of_one_test_after_the_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 0.3, (14, 1)) + rng.normal(0, 0.5, 8) + rng.normal(0, 0.1, (14, 8))
    found = rank_intervals(values)
    assert found.rank.tolist() == stats.rankdata(-values.mean(axis=1), method="min").astype(int).tolist()
    assert [(low, high) for low, high in zip(found.low, found.high, strict=True)] == [
        slow_interval(values, line) for line in range(14)
    ]
    assert found.source == "datasets"
    assert 0 < found.told_apart < 1


@pytest.mark.parametrize(("spread", "models"), [(0.0, 12), (0.02, 12), (0.02, 30), (0.1, 30)])
def test_the_interval_holds_the_true_rank_as_often_as_it_says(spread: float, models: int) -> None:
    """Datasets are a sample: a model has a true mean, a dataset its difficulty, and both together a deviation of their
    own, sometimes a large one. Percentiles of resampled ranks held it in 0.2 to 0.95 of these cases."""
    rng = np.random.default_rng(1)
    held = []
    for _ in range(60):
        skill = rng.normal(0, spread, models)
        values = skill[:, None] + rng.normal(0, 0.2, 15) + 0.05 * rng.standard_t(4, (models, 15))
        found = rank_intervals(values)
        true = stats.rankdata(-skill, method="min")
        held.append((found.low <= true) & (true <= found.high))
    assert np.mean(held) >= 0.95
    assert np.mean([whole[0] for whole in held]) >= 0.9  # of one model by itself, with simulation error


def test_a_rank_lies_in_its_interval_and_order_and_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    from earmark.analysis import ranks

    values = np.random.default_rng(3).uniform(size=(25, 6)) + np.linspace(0, 1, 25)[:, None]
    one = rank_intervals(values)
    assert (one.low <= one.rank).all()
    assert (one.rank <= one.high).all()
    order = np.random.default_rng(4).permutation(25)
    monkeypatch.setattr(ranks, "_AT_ONCE", 70)
    other = rank_intervals(values[order])
    for name in ("rank", "low", "high"):
        assert (getattr(one, name)[order] == getattr(other, name)).all()


def test_a_gap_has_no_rank_and_equals_share_one() -> None:
    values = np.array([[0.9, 0.8, 0.7], [0.9, 0.8, 0.7], [0.5, 0.4, 0.3], [1.0, 1.0, np.nan]])
    found = rank_intervals(values)
    assert found.rank.tolist() == [1, 1, 3, 0]
    assert found.low.tolist() == [1, 1, 3, 0]
    assert found.high.tolist() == [2, 2, 3, 0]


def test_few_datasets_leave_the_errors_of_the_scores() -> None:
    values = np.linspace(0.3, 0.7, 20)[:, None]
    error = np.full(20, 0.05)
    found = rank_intervals(values, error)
    assert found.source == "errors"
    assert (found.low <= found.rank).all()
    assert (found.high - found.low).mean() > 2
    assert found.high.max() > found.low.max()
    error[3] = np.nan  # of which nothing is known
    partly = rank_intervals(values, error)
    assert (partly.low[3], partly.high[3]) == (0, 0)
    assert partly.rank[3] == found.rank[3]
    nothing = rank_intervals(values)
    assert nothing.rank.tolist() == list(range(20, 0, -1))
    assert not nothing.low.any()
    assert nothing.source == ""


# --- models of a matrix -------------------------------------------------------------------------------------------


def test_clear_differences_have_narrow_intervals() -> None:
    values = np.linspace(0.1, 0.9, 6)[:, None] + np.zeros((6, 8))
    found = rank_models(from_table(values, "abcdef", "stuvwxyz"))
    assert [row.model for row in found.rows] == list("fedcba")
    assert all((row.low, row.high) == (row.rank, row.rank) for row in found.rows)
    assert found.rows[0].leads == 1.0
    assert found.told_apart == 1.0


def test_equal_models_share_a_rank_and_are_not_told_apart() -> None:
    values = np.array([[0.5, 0.6, 0.7], [0.5, 0.6, 0.7], [0.1, 0.2, 0.3]])
    found = rank_models(from_table(values, "abc", "xyz"))
    assert [(row.model, row.rank) for row in found.rows] == [("a", 1), ("b", 1), ("c", 3)]
    assert found.told_apart == pytest.approx(2 / 3)


def test_means_are_plain_normalised_or_win_rates() -> None:
    values = np.array([[0.9, 0.1, 0.1], [0.1, 0.2, 0.2], [0.2, 0.15, 0.15], [0.05, 0.05, 0.05]])
    matrix = from_table(values, "abcd", "xyz", chance={"x": 0.5})
    by_mean = rank_models(matrix)
    assert (by_mean.rows[0].model, by_mean.rows[0].score) == ("a", pytest.approx(1.1 / 3))
    scaled = rank_models(matrix, by="normalised_mean")
    assert {row.model: row.score for row in scaled.rows}["a"] == pytest.approx((0.8 + 0.1 + 0.1) / 3)
    assert rank_models(matrix, by="win_rate").rows[0].model in "bc"


def test_models_with_gaps_have_no_rank_and_two_datasets_give_no_interval() -> None:
    values = np.array([[0.9, 0.8], [0.5, np.nan], [0.4, 0.3], [0.2, 0.1]])
    found = rank_models(from_table(values, "abcd", "xy"))
    assert [row.model for row in found.rows] == ["a", "c", "d"]
    assert {(row.low, row.high) for row in found.rows} == {(None, None)}
    assert found.left_out == ("b",)


def test_bad_calls_are_refused() -> None:
    matrix = from_table(np.ones((3, 2)), "abc", "xy")
    with pytest.raises(UsageError, match="by"):
        rank_models(matrix, by="median")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least 1"):
        rank_models(matrix, resamples=0)
    with pytest.raises(InputError, match="1 model"):
        rank_models(from_table(np.array([[0.1, 0.2]]), "a", "xy"))


def test_ranks_from_verdicts_count_who_is_told_apart() -> None:
    values = np.array([3.0, np.nan, 5.0, 5.0, 1.0])
    apart = np.zeros((5, 5), bool)
    for a, b in ((0, 2), (0, 4), (2, 4), (2, 3), (1, 4)):  # equal values and a missing one are told apart of nobody
        apart[a, b] = apart[b, a] = True
    found = ranks_from_verdicts(values, apart)
    assert found.rank.tolist() == [3, 0, 1, 1, 4]
    assert found.low.tolist() == [2, 0, 1, 1, 3]
    assert found.high.tolist() == [3, 0, 2, 4, 4]
    assert found.told_apart == pytest.approx(6 / 12)
