"""The lite suite: what is stored is what the printed results give, and the search is a search of everything."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from earmark.analysis import suite
from earmark.analysis.matrix import from_table
from earmark.analysis.prowl import coverage_curve
from earmark.corpora.vocsim import PUBLISHED
from earmark.errors import InputError, UsageError


def test_the_stored_list_is_what_the_printed_results_give() -> None:
    found = suite.choose_vocsim(with_repeats=True)
    assert found.chosen.members == suite.LITE["vocsim"]
    assert found.chosen.coverage >= 0.95
    assert found.chosen.error <= suite.ERROR_SHARE
    assert found.chosen.seconds < 0.06 * found.whole.seconds
    assert found.chosen in found.front
    # Nothing on the curve before it would do.
    for entry in found.front[: found.front.index(found.chosen)]:
        assert entry.coverage < 0.95 or entry.error > suite.ERROR_SHARE


def test_the_stored_list_does_as_well_without_rows_that_repeat_others() -> None:
    lite = suite.vocsim_combination(suite.LITE["vocsim"])
    assert lite.coverage >= 0.95
    assert lite.error <= suite.ERROR_SHARE
    whole = suite.choose_vocsim(with_repeats=True)
    again = suite.vocsim_combination(suite.LITE["vocsim"], with_repeats=True)
    assert again[1:] == pytest.approx(whole.chosen[1:])
    # A cheaper one would do now; the list stays, so that earlier lite runs can be compared with later ones.
    cheapest = suite.choose_vocsim().chosen
    assert 0.95 * lite.seconds < cheapest.seconds < lite.seconds


def test_the_curve_only_rises() -> None:
    front = suite.choose_vocsim().front
    assert all(a.seconds <= b.seconds and a.coverage < b.coverage for a, b in pairwise(front))


def test_seconds_are_clips_times_duration_of_the_corpus_cards() -> None:
    for name, seconds in suite.vocsim_seconds().items():
        assert seconds == pytest.approx(PUBLISHED[name].clips * PUBLISHED[name].seconds)


def noisy_matrix(models: int = 14, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    skill = rng.uniform(0.2, 0.8, (models, 1))
    noise = np.array([0.02, 0.05, 0.1, 0.2, 0.3])
    return np.clip(skill + noise * rng.normal(size=(models, 5)), 0, 1), [f"f{i // 2}" for i in range(models)]


def test_coverage_of_all_combinations_is_that_of_the_coverage_curve() -> None:
    values, families = noisy_matrix()
    matrix = from_table(values, [f"m{i}" for i in range(14)], "abcde", families=families)
    members = suite.combinations(5)
    assert len(members) == 31
    assert {tuple(np.flatnonzero(row)) for row in members} == {
        chosen for size in range(1, 6) for chosen in combinations(range(5), size)
    }
    found = suite.worst_coverage(matrix, range(5), members)
    for row, mine in zip(members, found, strict=True):
        chosen = list(np.flatnonzero(row))
        worst = [coverage_curve(values, [*chosen])[-1]]
        for family in dict.fromkeys(families):
            kept = np.array(families) != family
            worst.append(coverage_curve(values[kept], [*chosen])[-1])
        assert mine == pytest.approx(min(worst), abs=1e-12)


def test_the_error_is_a_share_of_the_training_means() -> None:
    from sklearn.linear_model import Ridge

    values, families = noisy_matrix()
    matrix = from_table(values, [f"m{i}" for i in range(14)], "abcde", families=families)
    wrong = blind = 0.0
    for family in dict.fromkeys(families):
        test = np.array(families) == family
        model = Ridge(alpha=1.0).fit(values[~test][:, [0, 2]], values[~test][:, [1, 3, 4]])
        wrong += ((model.predict(values[test][:, [0, 2]]) - values[test][:, [1, 3, 4]]) ** 2).sum()
        blind += ((values[~test][:, [1, 3, 4]].mean(axis=0) - values[test][:, [1, 3, 4]]) ** 2).sum()
    assert suite.error_of(matrix, [0, 2]) == pytest.approx(wrong / blind)
    assert suite.error_of(matrix, range(5)) == 0.0


def test_choose_takes_the_cheapest_and_says_when_there_is_none() -> None:
    values, families = noisy_matrix()
    matrix = from_table(values, [f"m{i}" for i in range(14)], "abcde", families=families)
    cost = dict(zip("abcde", (10.0, 1.0, 1.0, 1.0, 1.0), strict=True))
    dear = suite.choose([matrix], cost, "abcde", threshold=0.9, error_share=1.0)
    cheap = suite.choose([matrix], dict.fromkeys("abcde", 1.0), "abcde", threshold=0.9, error_share=1.0)
    assert "a" not in dear.chosen.members
    assert dear.chosen.seconds <= 4
    assert cheap.chosen.coverage >= 0.9
    assert set(suite.choose([matrix], cost, "bc", threshold=0.5, error_share=2.0).chosen.members) <= {"b", "c"}
    with pytest.raises(InputError, match="No combination"):
        suite.choose([matrix], cost, "e", threshold=0.999, error_share=0.1)
    with pytest.raises(UsageError, match="All combinations"):
        suite.choose([matrix], cost, "")
