"""Orders, coverage and exact searches against ten-line implementations of their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from earmark.analysis import prowl as p
from earmark.analysis.matrix import from_table
from earmark.analysis.similarities import similarity_matrix
from earmark.errors import InputError, UsageError


def scores(models: int = 13, datasets: int = 7, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.normal(0.4, 0.15, (models, 1)) + rng.normal(0, 0.15, (models, datasets))
    return np.clip(np.round(values, 2), 0, 1)


def delta(similarity: np.ndarray, subset: tuple[int, ...]) -> float:
    total = 0.0
    for i in range(len(similarity)):
        total += 1.0 if i in subset else max((similarity[i, j] for j in subset), default=0.0)
    return total / len(similarity)


def win_rates(values: np.ndarray) -> list[float]:
    """Mean win rates by loops; None of a model's gaps count."""
    means = []
    for a in range(len(values)):
        rates = []
        for j in range(values.shape[1]):
            if np.isnan(values[a, j]):
                continue
            others = [values[b, j] for b in range(len(values)) if b != a and not np.isnan(values[b, j])]
            rates.append(sum(values[a, j] > other for other in others) / len(others))
        means.append(sum(rates) / len(rates) if rates else np.nan)
    return means


def eta(values: np.ndarray, subset: tuple[int, ...]) -> float:
    full, part = np.array(win_rates(values)), np.array(win_rates(values[:, list(subset)]))
    both = ~np.isnan(full) & ~np.isnan(part)
    return float(np.corrcoef(full[both], part[both])[0, 1])


@pytest.mark.parametrize("name", ["pearson", "manhattan", "jensen_shannon"])
@pytest.mark.parametrize("seed", range(4))
def test_greedy_is_a_full_re_evaluation_at_every_step(name: str, seed: int) -> None:
    similarity = similarity_matrix(scores(seed=seed), name)
    order: tuple[int, ...] = ()
    while len(order) < len(similarity):
        rest = [j for j in range(len(similarity)) if j not in order]
        gains = [delta(similarity, (*order, j)) for j in rest]
        order = (*order, next(j for j, gain in zip(rest, gains, strict=True) if gain >= max(gains) - 1e-12))
    assert p.greedy(similarity) == order


def test_of_equal_datasets_the_first_is_taken() -> None:
    values = scores(datasets=4)
    similarity = similarity_matrix(values[:, [0, 1, 0, 1, 2, 3]], "pearson")
    order = p.greedy(similarity)
    assert order.index(0) < order.index(2)
    assert order.index(1) < order.index(3)


def test_negative_similarities_count_as_they_are() -> None:
    similarity = np.array([[1.0, -0.9, -0.8], [-0.9, 1.0, -0.5], [-0.8, -0.5, 1.0]])
    assert p.greedy(similarity)[0] == 2  # (1 - .8 - .5) / 3 is the largest of three negative means


def test_a_wide_beam_finds_an_order_at_least_as_good() -> None:
    for seed in range(6):
        similarity = similarity_matrix(scores(seed=seed), "cosine")
        wide = p.greedy(similarity, beam=50)
        assert sorted(wide) == list(range(7))
        ways = [sum(delta(similarity, order[: k + 1]) for k in range(7)) for order in (wide, p.greedy(similarity))]
        assert ways[0] >= ways[1] - 1e-12
    with pytest.raises(UsageError, match="beam"):
        p.greedy(similarity, beam=0)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_exact_search_looks_at_every_subset(size: int) -> None:
    values = scores()
    subsets = list(itertools.combinations(range(7), size))
    covered = p.exact_coverage(values, size)
    assert covered.value == pytest.approx(max(eta(values, subset) for subset in subsets), abs=1e-12)
    assert eta(values, covered.members) == pytest.approx(covered.value, abs=1e-12)


def test_the_exact_coverage_with_gaps() -> None:
    values = scores()
    values[[0, 3, 5], [1, 2, 2]] = np.nan
    found = p.exact_coverage(values, 2)
    assert found.value == pytest.approx(
        max(eta(values, pair) for pair in itertools.combinations(range(7), 2)), abs=1e-12
    )


def test_an_endless_search_is_refused() -> None:
    with pytest.raises(UsageError, match="47,129,212,243,960 subsets of 20 out of 50"):
        p.exact_coverage(np.tri(50), 20)
    with pytest.raises(UsageError, match="from 1 to 3 members"):
        p.exact_coverage(np.tri(3), 4)


@pytest.mark.parametrize("gaps", [0, 12], ids=["complete", "gaps"])
def test_coverage_is_the_correlation_of_mean_win_rates(gaps: int) -> None:
    values = scores()
    values.flat[np.random.default_rng(3).choice(values.size, gaps, replace=False)] = np.nan
    assert p.mean_win_rate(values) == pytest.approx(win_rates(values), nan_ok=True)
    order = (3, 0, 6, 1, 5, 2, 4)
    assert p.coverage_curve(values, order) == pytest.approx([eta(values, order[: k + 1]) for k in range(7)], abs=1e-12)
    assert p.coverage_curve(values, order)[-1] == pytest.approx(1)


def test_a_dataset_on_which_all_tie_covers_nothing() -> None:
    values = scores()
    values[:, 4] = 0.5
    curve = p.coverage_curve(values, (4, 0, 1))
    assert curve[0] == 0
    assert curve[1] == pytest.approx(eta(values, (0,)))


def test_models_that_nobody_can_rank_are_an_error() -> None:
    with pytest.raises(InputError, match="No model beats another"):
        p.coverage_curve(np.full((4, 3), 0.5), (0, 1, 2))


def test_sizes_and_areas_of_a_curve_that_falls_again() -> None:
    curve = np.array([0.9, 0.96, 0.94, 0.97, 1.0])
    assert p.first_size(curve) == 2
    assert p.stable_size(curve) == 4
    assert p.area(curve) == pytest.approx((0.45 + 0.96 + 0.94 + 0.97 + 0.5) / 4)
    assert p.area(-curve) == pytest.approx(-p.area(curve))
    assert (p.first_size(np.ones(3)), p.stable_size(np.ones(3))) == (1, 1)
    assert p.first_size(curve, threshold=1.0) == 5


def test_baselines_go_by_the_mean_score() -> None:
    values = np.array([[0.5, 0.1, 0.9, 0.1], [0.5, 0.2, np.nan, 0.2], [0.5, 0.3, 0.7, 0.3]])
    found = p.prowl(from_table(values, "abc", "wxyz"), (), orders=0)
    assert found.selection("greedy_min").order == (1, 3, 0, 2)
    assert found.selection("greedy_max").order == (2, 0, 1, 3)


def test_prowl_compares_with_random_orders() -> None:
    values = scores(models=20, datasets=6)
    matrix = from_table(values, map(str, range(20)), "abcdef")
    found = p.prowl(matrix, ("pearson", "manhattan"), orders=200, seed=5)
    rows = found.rows()
    assert [row["similarity"] for row in rows] == ["random", "greedy_min", "greedy_max", "pearson", "manhattan"]
    assert rows[0]["scauc"] == pytest.approx(found.random.scauc.mean())
    assert rows[0]["size"] == pytest.approx(np.mean([p.first_size(curve) for curve in found.random.coverage]))
    for row in rows[1:]:
        assert sorted(row["order"]) == list("abcdef")
        selection = found.selection(row["similarity"])
        curve = p.coverage_curve(values, selection.order)
        assert selection.coverage == pytest.approx(curve)
        assert row["beats_random"] == np.mean([p.area(curve) >= p.area(c) - 1e-12 for c in found.random.coverage])
        early = max(2, row["size"])
        starts = [p.area(curve[:early]) >= p.area(c[:early]) - 1e-12 for c in found.random.coverage]
        assert row["beats_random_early"] == np.mean(starts)
    again = p.prowl(matrix, ("pearson",), orders=200, seed=5)
    assert (again.random.coverage == found.random.coverage).all()
    assert p.prowl(matrix, ("pearson",), orders=0).rows()[0]["similarity"] == "greedy_min"
    with pytest.raises(UsageError, match="was not computed"):
        again.selection("kendall")


@pytest.mark.parametrize(("shape", "said"), [((2, 5), "2 models.*at least 3"), ((5, 1), "1 dataset .*at least 2")])
def test_too_little_to_compare(shape: tuple[int, int], said: str) -> None:
    matrix = from_table(np.random.default_rng(0).random(shape), map(str, range(shape[0])), map(str, range(shape[1])))
    with pytest.raises(InputError, match=said):
        p.prowl(matrix)


def test_empty_rows_and_columns_do_not_count() -> None:
    values = np.full((6, 5), np.nan)
    values[:5, :4] = scores(5, 4)
    with_gaps = p.prowl(from_table(values, map(str, range(6)), "abcde"), orders=50)
    without = p.prowl(from_table(values[:5, :4], map(str, range(5)), "abcd"), orders=50)
    assert with_gaps.rows() == without.rows()


def test_a_constant_column_leaves_every_number_finite() -> None:
    values = scores()
    values[:, 3] = 0.4
    for row in p.prowl(from_table(values, map(str, range(13)), "abcdefg"), orders=20).rows():
        assert np.isfinite(row["scauc"])


@pytest.mark.parametrize("gaps", [0, 12], ids=["complete", "gaps"])
def test_pairs_that_a_subset_ranks_the_other_way_round_are_counted(gaps: int) -> None:
    values = scores(models=11)
    values.flat[np.random.default_rng(3).choice(values.size, gaps, replace=False)] = np.nan
    matrix = from_table(values, map(str, range(11)), "abcdefg")
    for selection in p.prowl(matrix, ("pearson", "cosine"), orders=0).selections:
        chosen = list(selection.order[: selection.size])
        full, some = np.array(win_rates(values)), np.array(win_rates(values[:, chosen]))
        there = [i for i in range(11) if not np.isnan(some[i])]
        signs = [
            np.sign(round(full[i] - full[j], 9)) * np.sign(round(some[i] - some[j], 9))
            for i, j in itertools.combinations(there, 2)
        ]
        assert selection.swapped == pytest.approx(np.mean(np.array(signs) < 0))
        leader = max(there, key=lambda i: full[i])
        assert selection.same_best == (some[leader] >= np.nanmax(some) - 1e-9)


def test_swapped_pairs_of_opposite_equal_and_single_lists() -> None:
    x = np.array([0.1, 0.2, 0.3, 0.4])
    assert (p.swapped_pairs(x, -x), p.swapped_pairs(x, x), p.swapped_pairs(x, np.zeros(4))) == (1, 0, 0)
    assert p.swapped_pairs(x, np.array([1.0, 1.0 + 1e-14, 1.0, 0.9])) == 0.5  # only the last is told apart
    assert p.swapped_pairs(x[:1], x[:1]) == 0
