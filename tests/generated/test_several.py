"""Several generated sets: one deal of units for all, paired differences, ranks that hold, and difficult company."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import earmark
from earmark.errors import InputError, UsageError
from earmark.generated import _jackknife as jackknife
from earmark.generated.balls import Reference
from earmark.generated.measure import measure
from earmark.generated.metrics import DEFAULT
from earmark.generated.several import GROW, RankedGenerators, rank_generators
from earmark.scores import validate

RNG = np.random.default_rng(5)
REAL = RNG.normal(size=(130, 6))
SETS = {"fair": RNG.normal(size=(110, 6)), "twin": RNG.normal(size=(110, 6)), "wild": 3.0 * RNG.normal(size=(110, 6))}
NAMES = ["precision", "density", "coverage", "recall", "clipped_density", "clipped_coverage", "frechet_distance"]


@pytest.fixture(scope="module")
def ranked() -> RankedGenerators:
    return rank_generators(REAL, SETS, metrics=NAMES, correct="none", threads=1, subset="toy")


def test_all_sets_lose_units_with_the_same_real_ones() -> None:
    groups = [[f"a{row // 2}" for row in range(60)], [f"p{row % 20}" for row in range(40)], None,
              [f"p{row % 20}" for row in range(40)]]  # fmt: skip
    dealt = jackknife.deal((60, 40, 30, 40), groups, seed=2)
    counts = [np.zeros(size, int) for size in (60, 40, 30, 40)]
    for rows in dealt.smaller():
        for count, kept in zip(counts, rows, strict=True):
            count[kept] += 1
        assert set(rows[1]) == set(rows[3])  # the same prompts leave both sets
        assert len(rows[1]) == 2 * len({row % 20 for row in rows[1]})
        assert abs(len(rows[2]) - 22.5) <= 1
    assert all((count == jackknife.SETS * 3 / 4).all() for count in counts)
    assert (dealt.of(2).unit, dealt.of(2).units, dealt.units) == ("group", 30, 20)


def test_rows_are_those_of_each_set_by_itself(ranked: RankedGenerators) -> None:
    for name, vectors in SETS.items():
        alone = earmark.fidelity(REAL, vectors, metrics=NAMES, correct="none", intervals="none", threads=1)
        for row in alone:
            mine = ranked.fidelities[name].row(row.metric)
            assert (mine.value, mine.system, mine.subset) == (row.value, name, "toy")
            assert mine.low is not None
    assert len(ranked.scores) == len(SETS) * len(NAMES)
    assert not validate([*ranked.scores, *ranked.pairs])


def test_the_bad_set_is_behind_and_the_twins_are_not_told_apart(ranked: RankedGenerators) -> None:
    for metric in ("precision", "density", "clipped_density", "clipped_coverage", "frechet_distance"):
        order = ranked.ranking(metric, "none")
        assert order[-1].system == "wild"
        assert (order[-1].rank, order[-1].low, order[-1].high, order[-1].may_lead) == (3, 3, 3, False)
        assert all((line.low, line.high, line.may_lead) == (1, 2, True) for line in order[:2])
    for row in ranked.pairs:
        assert row.comparisons == 3
        assert row.p_value is not None
        if row.system == "fair - twin":
            assert row.p_value > 0.05
        if row.low is not None and row.high is not None:
            assert (row.low > 0.0 or row.high < 0.0) == (row.p_value < 0.05)


def test_the_error_of_a_difference_leaves_out_what_the_real_set_does_to_both() -> None:
    """Two metrics of one real mean: their difference does not depend on it, and its error must not either."""
    rng = np.random.default_rng(1)
    real, first, second = 30.0 * rng.normal(size=300), rng.normal(size=400), rng.normal(size=400)
    values: list[list[float]] = [[], []]
    for rows in jackknife.deal((300, 400, 400)).smaller():
        for kept, points, column in zip(rows[1:], (first, second), values, strict=True):
            column.append(points[kept].mean() - real[rows[0]].mean())
    a, b = np.array(values)
    assert jackknife.error_of(a - b, 2) == pytest.approx(np.sqrt(2 / 400), rel=0.35)
    assert jackknife.error_of(a, 2) > 5 * jackknife.error_of(a - b, 2)


def test_a_set_and_its_copy_share_a_rank() -> None:
    found = rank_generators(
        REAL, {"one": SETS["fair"], "other": SETS["fair"]}, metrics=NAMES, correct="none", threads=1
    )
    for row in found.pairs:
        assert row.value == 0.0
        assert row.p_value is None or row.p_value > 0.05
    assert {(line.rank, line.may_lead) for line in found.ranks} == {(1, True)}


def test_sets_that_are_both_cut_at_1_are_equal() -> None:
    near, nearer = 0.3 * RNG.normal(size=(110, 6)), 0.5 * RNG.normal(size=(110, 6))
    found = rank_generators(REAL, {"a": near, "b": nearer}, metrics="clipped_density", correct="none", threads=1)
    (row,) = found.pairs
    assert (row.value, row.p_value, row.reason) == (0.0, 1.0, "both are cut at 1")
    assert [(line.value, line.rank, line.low, line.high) for line in found.ranks] == [(1.0, 1, 1, 2)] * 2


def test_equal_generators_are_told_apart_in_few_of_many_draws() -> None:
    """At most one comparison of twenty may be wrong after the correction for three pairs; so may a rank's interval."""
    wrong = dict.fromkeys(("precision", "density", "coverage"), 0)
    for seed in range(20):
        rng = np.random.default_rng([seed, 9])
        sets = {name: rng.normal(size=(60, 3)) for name in "abc"}
        found = rank_generators(
            rng.normal(size=(60, 3)), sets, metrics=list(wrong), k=3, correct="none", threads=1, seed=seed
        )
        for metric in wrong:
            wrong[metric] += any(line.low != 1 for line in found.ranking(metric, "none"))
    assert max(wrong.values()) <= 3, wrong


# --- difficult company ----------------------------------------------------------------------------------------------


def test_a_set_of_three_points_costs_the_others_nothing() -> None:
    found = rank_generators(
        REAL, {**SETS, "few": SETS["fair"][:3]}, metrics=["precision", "recall", "clipped_coverage"], correct="none",
        threads=1,
    )  # fmt: skip
    few = found.fidelities["few"]
    assert few.row("precision").value is not None
    assert few.row("precision").reason == "no interval: 3 clips are too few, 12 are needed"
    assert few.row("recall").status == "not_applicable"
    assert found.fidelities["fair"].row("precision").low is not None
    line = next(line for line in found.ranking("precision", "none") if line.system == "few")
    assert line.rank > 0
    assert (line.low, line.high) == (0, 0)
    by_pair = {row.system: row for row in found.pairs if row.metric == "recall:difference"}
    assert by_pair["fair - few"].status == "not_applicable"
    assert by_pair["fair - twin"].p_value is not None


def test_metrics_that_grow_with_the_number_of_samples_do_not_compare_unlike_sizes() -> None:
    sets = {"many": RNG.normal(size=(110, 6)), "half": RNG.normal(size=(55, 6))}
    found = rank_generators(REAL, sets, metrics=["precision", "coverage"], correct="none", threads=1)
    by_metric = {row.metric: row for row in found.pairs}
    assert by_metric["precision:difference"].p_value is not None
    assert by_metric["coverage:difference"].p_value is None
    assert "110 and 55 samples, and coverage changes" in by_metric["coverage:difference"].reason
    assert [line.low for line in found.ranking("coverage", "none")] == [0, 0]
    assert any("55 to 110 samples, and coverage changes with their number" in note for note in found.scores.notes)


def test_which_metrics_change_with_the_number_of_samples_is_so() -> None:
    """A generator that is a little off: a metric that is not listed must not know how many samples there are."""
    means: dict[int, dict[str, list[float]]] = {40: {}, 160: {}}
    for seed in range(25):
        rng = np.random.default_rng([seed, 3])
        real = Reference(rng.normal(size=(80, 4)))
        for size, found in means.items():
            generated = rng.normal(size=(size, 4)) + 0.5
            for name, value in measure(real, generated, metrics=DEFAULT, cap=False).items():
                found.setdefault(name, []).append(value)
    apart = {}
    for name in DEFAULT:
        few, many = (np.array(found[name]) for found in means.values())
        apart[name] = abs(few.mean() - many.mean()) / np.sqrt((few.var(ddof=1) + many.var(ddof=1)) / len(few))
    # What is left out changes too little to be seen in so few draws.
    seen = set(GROW) - {"recall", "p_recall", "beta_recall", "frechet_distance"}
    assert {name for name in DEFAULT if apart[name] > 4.0} == seen
    assert all(apart[name] < 2.5 for name in DEFAULT if name not in GROW), apart


@pytest.mark.parametrize(
    ("sets", "options", "said"),
    [
        ({"one": SETS["fair"]}, {}, "at least two generated sets"),
        ({**SETS, "nan": np.full((20, 6), np.nan)}, {}, "NaN"),
        ({**SETS, "wide": RNG.normal(size=(20, 7))}, {}, "6 dimensions and generated ones 7"),
        (SETS, {"groups": {"fare": ["x"] * 110}}, "fare, which is no generated set"),
        (SETS, {"groups": {"fair": ["x"] * 3}}, "110 generated vectors and 3 groups"),
        (SETS, {"metrics": "precison"}, 'Did you mean "precision"'),
    ],
)
def test_bad_input_is_one_sentence(sets: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises((InputError, UsageError), match=said) as caught:
        rank_generators(REAL, sets, **{"metrics": "precision", "threads": 1, **options})
    assert "\n" not in str(caught.value)


def test_without_the_jackknife_there_are_ranks_and_no_verdicts() -> None:
    found = rank_generators(REAL, SETS, metrics="precision", correct="none", intervals="none", threads=1)
    assert [line.rank for line in found.ranking("precision", "none")][-1] == 3
    assert {(line.low, line.high) for line in found.ranks} == {(0, 0)}
    assert all(row.p_value is None and "jackknife" in row.reason for row in found.pairs)
