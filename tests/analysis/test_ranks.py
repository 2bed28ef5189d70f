"""Ranks and their intervals: against a loop, and what they must do on matrices with a known answer."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.analysis.matrix import from_table
from earmark.analysis.ranks import rank_intervals
from earmark.errors import InputError, UsageError


def test_clear_differences_have_narrow_intervals() -> None:
    values = np.linspace(0.1, 0.9, 6)[:, None] + np.zeros((6, 8))
    found = rank_intervals(from_table(values, "abcdef", "stuvwxyz"))
    assert [row.model for row in found.rows] == list("fedcba")
    assert all((row.low, row.high) == (row.rank, row.rank) for row in found.rows)
    assert found.rows[0].leads == 1.0
    assert found.told_apart == 1.0


def test_intervals_are_those_of_a_loop_over_resamples() -> None:
    rng = np.random.default_rng(1)
    values = rng.uniform(size=(5, 7))
    found = rank_intervals(from_table(values, "abcde", "stuvwxy"), resamples=200, seed=3)
    draws = np.random.default_rng(3).multinomial(7, np.full(7, 1 / 7), size=200)
    places = []
    for draw in draws:
        mean = [sum(count * value for count, value in zip(draw, row, strict=True)) / 7 for row in values]
        places.append([1 + sum(other > mine for other in mean) for mine in mean])
    ordered = np.sort(np.array(places), axis=0)
    for row in found.rows:
        column = ordered[:, "abcde".index(row.model)]
        assert (row.low, row.high) == (column[4], column[194])  # the 2.5 % and 97.5 % places of 200
        assert row.score == pytest.approx(values["abcde".index(row.model)].mean())
    assert sum(row.leads for row in found.rows) == pytest.approx(1.0)


def test_equal_models_share_a_rank_and_are_not_told_apart() -> None:
    values = np.array([[0.5, 0.6, 0.7], [0.5, 0.6, 0.7], [0.1, 0.1, 0.1]])
    found = rank_intervals(from_table(values, "abc", "xyz"))
    assert [(row.model, row.rank) for row in found.rows] == [("a", 1), ("b", 1), ("c", 3)]
    assert found.told_apart == pytest.approx(2 / 3)


def test_win_rates_do_not_care_for_the_scale() -> None:
    values = np.array([[0.9, 0.1, 0.1], [0.1, 0.2, 0.2], [0.2, 0.15, 0.15], [0.05, 0.05, 0.05]])
    by_mean = rank_intervals(from_table(values, "abcd", "xyz"))
    by_wins = rank_intervals(from_table(values, "abcd", "xyz"), by="win_rate")
    assert by_mean.rows[0].model == "a"
    assert by_wins.rows[0].model == "c" or by_wins.rows[0].model == "b"


def test_models_with_gaps_have_no_place() -> None:
    values = np.array([[0.9, 0.8], [0.5, np.nan], [0.4, 0.3], [0.2, 0.1]])
    found = rank_intervals(from_table(values, "abcd", "xy"))
    assert [row.model for row in found.rows] == ["a", "c", "d"]
    assert found.left_out == ("b",)


def test_bad_calls_are_refused() -> None:
    matrix = from_table(np.ones((3, 2)), "abc", "xy")
    with pytest.raises(UsageError, match="by"):
        rank_intervals(matrix, by="median")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least 1"):
        rank_intervals(matrix, resamples=0)
    with pytest.raises(InputError, match="1 model"):
        rank_intervals(from_table(np.array([[0.1, 0.2]]), "a", "xy"))
