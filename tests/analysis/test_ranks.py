"""Ranks and their intervals: against a slow definition, in simulation, and where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from earmark.analysis import ranks
from earmark.analysis.matrix import from_table
from earmark.analysis.ranks import rank_intervals, rank_models, ranks_from_verdicts
from earmark.errors import InputError, UsageError


def told_apart(values: np.ndarray, line: int) -> list[int]:
    """One paired t-test after the other, the smallest p-value first, until Holm's procedure stops."""
    others = [other for other in range(len(values)) if other != line]
    tests = sorted((stats.ttest_rel(values[other], values[line]).pvalue, other) for other in others)
    stops = (place for place, (p_value, _) in enumerate(tests) if p_value > 0.05 / (len(others) - place))
    return [other for _, other in tests[: next(stops, len(tests))]]


def surely_ahead(values: np.ndarray, line: int) -> list[int]:
    return [other for other in told_apart(values, line) if values[other].mean() > values[line].mean()]


def slow_interval(values: np.ndarray, line: int) -> tuple[int, int]:
    ahead = len(surely_ahead(values, line))
    return 1 + ahead, len(values) - (len(told_apart(values, line)) - ahead)


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
    for name in ("rank", "low", "high", "tier"):
        assert (getattr(one, name)[order] == getattr(other, name)).all()


def test_a_gap_has_no_rank_and_equals_share_one() -> None:
    values = np.array([[0.9, 0.8, 0.7], [0.9, 0.8, 0.7], [0.5, 0.4, 0.3], [1.0, 1.0, np.nan]])
    found = rank_intervals(values)
    assert found.rank.tolist() == [1, 1, 3, 0]
    assert found.low.tolist() == [1, 1, 3, 0]
    assert found.high.tolist() == [2, 2, 3, 0]
    assert found.tier.tolist() == [1, 1, 2, 0]


def slow_tiers(values: np.ndarray) -> list[int]:
    """From the best line on: one below the last tier of whoever its own tests put surely ahead."""
    ahead = {line: surely_ahead(values, line) for line in range(len(values))}
    tiers: dict[int, int] = {}
    for line in np.argsort(-values.mean(axis=1)).tolist():
        tiers[line] = 1 + max((tiers[other] for other in ahead[line]), default=0)
    return [tiers[line] for line in range(len(values))]


@pytest.mark.parametrize("seed", range(4))
def test_tiers_are_chains_of_who_is_surely_ahead(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 0.6, (16, 1)) + rng.normal(0, 0.5, 9) + rng.normal(0, 0.1, (16, 9))
    found = rank_intervals(values)
    assert found.tier.tolist() == slow_tiers(values)
    assert found.tier.max() > 2
    assert ((found.tier == 1) == (found.low == 1)).all()
    assert found.tier[found.rank == 1].tolist() == [1]


@pytest.mark.parametrize(("spread", "datasets", "draw"), [
    (0.0, 5, "normal"), (0.03, 4, "normal"), (0.03, 15, "heavy"), (0.1, 15, "normal"), (0.1, 3, "heavy"),
])  # fmt: skip
def test_the_truly_best_is_in_the_first_tier(spread: float, datasets: int, draw: str) -> None:
    rng = np.random.default_rng(7)
    held, sizes = [], []
    for _ in range(300):
        skill = rng.normal(0, spread, 20)
        noise = rng.normal(size=(20, datasets)) if draw == "normal" else rng.standard_t(3, (20, datasets))
        found = rank_intervals(skill[:, None] + rng.normal(0, 0.2, datasets) + 0.05 * noise)
        held.append(found.tier[np.argmax(skill)] == 1)
        sizes.append((found.tier == 1).sum())
    assert np.mean(held) >= 0.95
    if spread == 0.1 and datasets == 15:
        assert np.mean(sizes) < 8  # and it says something


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
    assert not nothing.tier.any()
    assert (partly.tier[3], partly.tier[-1]) == (0, 1)
    assert nothing.source == ""


@pytest.mark.parametrize("liar", [0.405, 0.605])
def test_a_wide_error_of_its_own_lifts_nobody(liar: float) -> None:
    values = np.array([0.805, 0.705, 0.605, liar])[:, None] + np.array([[0.01, -0.01]])
    honest = rank_intervals(values[:3], np.full(3, 0.003))
    found = rank_intervals(values, np.array([0.003, 0.003, 0.003, 0.18]))
    assert honest.tier.tolist() == found.tier[:3].tolist() == [1, 2, 3]
    assert (found.rank[3], found.tier[3]) == (4 if liar < 0.6 else 3, 0)
    assert (found.low[3], found.high[3]) == (1, 4)  # nothing is known of it, and nothing is said
    assert (found.low <= found.rank).all()


@pytest.mark.parametrize("times", [2, 5, 20, 40])
def test_tiers_by_errors_follow_the_means_and_still_hold_the_best(times: int) -> None:
    """Two datasets, errors that differ, and at 40 times one honest system whose error is so much larger than all
    others: intervals hold, of that one too, and the best is in tier 1 or not told; few are not told."""
    rng = np.random.default_rng(2)
    held, best, wide, untold = [], [], [], []
    for _ in range(400):
        error = 0.01 * (rng.uniform(1, times, 12) if times < 40 else np.array([40.0, *[1.0] * 11]))
        true = rng.normal(0.6, 0.05, 12)
        found = rank_intervals(np.repeat((true + error * rng.normal(size=12))[:, None], 2, axis=1), error)
        order = np.argsort(found.rank)
        told = found.tier[order][found.tier[order] > 0]
        assert (np.diff(told) >= 0).all()
        rank = np.argsort(np.argsort(-true)) + 1
        holds = (found.low <= rank) & (rank <= found.high)
        held.append(holds.mean())
        wide.append(holds[np.argmax(error)])
        best.append(found.tier[np.argmax(true)] <= 1)
        untold.append((found.tier == 0).mean())
    assert np.mean(held) >= 0.95
    assert np.mean(wide) >= 0.95
    assert np.mean(best) >= 0.95
    assert np.mean(untold) < 0.15


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
    assert found.tier.tolist() == [2, 0, 1, 1, 3]
    assert found.told_apart == pytest.approx(6 / 12)


@pytest.mark.parametrize("spread", [0.0, 0.2, 2.0])
def test_few_pairs_give_the_verdicts_of_all_pairs(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    decided = 0
    for _ in range(150):
        lines = int(rng.integers(2, 70))
        values = rng.normal(size=(lines, int(rng.integers(1, 3)))).round(int(rng.integers(1, 5)))
        errors = 0.05 * np.exp(spread * rng.normal(size=lines))
        fast = ranks.rank_intervals(values, errors)
        limits = ranks._limits(lines - 1, 0, 0.95)
        decided += ranks._by_few_pairs(np.sort(values[:, 0])[::-1], errors**2, limits) is not None
        with monkeypatch.context() as patch:
            patch.setattr(ranks, "_by_few_pairs", lambda *_: None)
            slow = ranks.rank_intervals(values, errors)
        for part, whole in zip(fast, slow, strict=True):
            np.testing.assert_array_equal(part, whole)
    assert decided > 100
