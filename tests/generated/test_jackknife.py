"""Intervals from smaller sets: what is left out, what the ends are, and what is said where there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from earmark.generated import _jackknife as jackknife
from earmark.generated import fidelity
from earmark.generated.sanity.coverage import DESIGNS, coverage
from earmark.scores import metric_facts

RNG = np.random.default_rng(13)
X, Y = RNG.normal(size=(60, 4)), 0.8 * RNG.normal(size=(50, 4)) + 0.3


def test_both_sets_lose_every_unit_equally_often() -> None:
    for sizes, parts in (((60, 50), 4), ((400, 231), 2)):
        dealt = jackknife.deal(sizes, seed=3)
        assert (dealt.parts, dealt.unit, dealt.units) == (parts, "clip", min(sizes))
        stayed = [np.zeros(size, int) for size in sizes]
        for rows in dealt.smaller():
            for count, kept in zip(stayed, rows, strict=True):
                count[kept] += 1
                assert abs(len(kept) - len(count) * (1 - 1 / parts)) <= 1
        for count in stayed:
            assert (count == jackknife.SETS * (parts - 1) / parts).all()


def test_groups_leave_whole_and_a_group_of_both_sets_leaves_both() -> None:
    real = [f"a{row // 3}" for row in range(60)]
    generated: list[str | None] = [f"a{row // 3}" if row < 30 else f"b{row // 4}" for row in range(50)]
    generated[49] = None
    dealt = jackknife.deal((60, 50), (real, generated), 0)
    assert (dealt.unit, dealt.units) == ("group", 17)
    for rows_real, rows_generated in dealt.smaller():
        kept_real = {real[row] for row in rows_real}
        kept = {generated[row] for row in rows_generated}
        assert len(rows_real) == 3 * len(kept_real)
        assert {name for name in kept if name and name[0] == "a"} == kept_real & {f"a{number}" for number in range(10)}


def test_a_missing_group_is_a_unit_by_itself() -> None:
    pandas = pytest.importorskip("pandas")
    for missing in (None, float("nan"), np.float32("nan"), pandas.NA, pandas.NaT, np.ma.masked):
        dealt = jackknife.deal((12, 12), (["a"] * 6 + [missing] * 6, None))
        assert len(np.unique(dealt.codes[0])) == 7
        assert dealt.unit == "group"


def test_groups_are_read_by_position_and_in_one_spelling() -> None:
    pandas = pytest.importorskip("pandas")
    # A column of a table that was sorted or filtered keeps the index of its rows: it is not their position.
    turned = pandas.Series([7.0, 7.0, 8.0, None], index=[3, 2, 1, 0])
    real, generated = jackknife.deal((4, 4), (turned, ["7", "7", "8", ""])).codes
    assert real[:3].tolist() == generated[:3].tolist()
    assert real[0] == real[1] != real[2]
    assert real[3] != generated[3]


def test_a_clip_and_its_coded_copy_leave_together() -> None:
    dealt = jackknife.deal((40, 40), (range(40), range(40)))
    assert (dealt.unit, dealt.units) == ("clip", 40)
    for real, generated in dealt.smaller():
        np.testing.assert_array_equal(real, generated)


def test_the_error_of_a_mean_is_its_standard_error() -> None:
    """For a metric that is a mean over each set the jackknife must give the textbook error."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=900), 2.0 * rng.normal(size=600)
    dealt = jackknife.deal((900, 600))
    smaller = np.array([first[a].mean() - second[b].mean() for a, b in dealt.smaller()])
    low, high, _ = jackknife.interval(first.mean() - second.mean(), smaller, dealt, (-math.inf, math.inf))
    assert low is not None
    assert high is not None
    assert (high - low) / 2 / 2.18 == pytest.approx(math.sqrt(1 / 900 + 4 / 600), rel=0.35)


def test_ends_stay_inside_the_range_and_hold_the_value() -> None:
    dealt = jackknife.deal((60, 50))
    for value in (0.0, 0.01, 0.5, 0.99, 1.0):
        smaller = np.clip(value + 0.1 * RNG.normal(size=jackknife.SETS), 0, 1)
        low, high, _ = jackknife.interval(value, smaller, dealt, (0.0, 1.0))
        assert low is not None
        assert high is not None
        assert 0.0 <= low <= value <= high <= 1.0
        assert low < high
    same = np.ones(jackknife.SETS)
    low, high, _ = jackknife.interval(1.0, same, dealt, (0.0, 1.0))
    assert high == 1.0
    assert low == pytest.approx(0.025 ** (1 / 50))  # Clopper and Pearson's of 50 of 50
    assert jackknife.interval(0.4, 0.4 * same, dealt, (0.0, 1.0)).reason == "no interval: no clip changes the value"
    low, high, _ = jackknife.interval(0.01, 0.01 + 0.02 * RNG.random(24), dealt, (0.0, math.inf))
    assert low is not None
    assert 0.0 <= low < 0.01


def test_a_cut_metric_that_always_meets_its_limit_is_not_said_to_be_surely_at_it() -> None:
    dealt = jackknife.deal((60, 50))
    over = 1.05 + 0.1 * np.random.default_rng(1).normal(size=24)
    low, high, _ = jackknife.interval(1.0, over, dealt, (0.0, math.inf), uncut=1.05)
    assert high == 1.0
    assert low is not None
    assert 0.7 < low < 0.97


def test_rows_say_what_the_interval_rests_on() -> None:
    scores = fidelity(X, Y, k=2, metrics=["precision", "recall", "clipped_density", "frechet_distance"])
    for row in scores:
        if row.value is None:
            continue
        assert (row.interval, row.unit, row.units) == ("jackknife", "clip", 50)
        least, most = metric_facts(row.metric).range
        assert row.low is not None
        assert row.high is not None
        assert least <= row.low <= row.value <= row.high <= most
        assert row.high > row.low
    again = fidelity(X, Y, k=2, metrics="recall")
    assert again.row("recall", correction="gicdm").low == scores.row("recall", correction="gicdm").low
    other = fidelity(X, Y, k=2, metrics="recall", seed=1)
    assert other.row("recall", correction="none").low != again.row("recall", correction="none").low
    assert other.row("recall", correction="none").inputs != again.row("recall", correction="none").inputs


def test_the_bootstrap_is_a_choice_and_says_what_it_is() -> None:
    for options in ({"bootstrap": 40}, {"intervals": "bootstrap"}):
        row = fidelity(X, Y, k=2, metrics="precision", correct="none", **options).rows[0]  # type: ignore[arg-type]
        assert (row.interval, row.unit, row.units) == ("bootstrap_points", "clip", 50)
    none = fidelity(X, Y, k=2, metrics="precision", correct="none", intervals="none").rows[0]
    assert (none.low, none.interval, none.units) == (None, "", None)
    assert none.inputs != row.inputs


def test_too_few_units_have_no_interval_and_the_row_says_so() -> None:
    row = fidelity(X[:8], Y[:30], k=1, metrics="precision", correct="none").rows[0]
    assert (row.low, row.interval) == (None, "")
    assert row.reason == "no interval: 8 clips are too few, 12 are needed"
    groups = [f"speaker {row % 6}" for row in range(50)]
    row = fidelity(X, Y, k=1, metrics="precision", correct="none", groups=groups).rows[0]
    assert row.reason == "no interval: 6 groups are too few, 12 are needed"
    row = fidelity(X[:20], Y, k=16, metrics="precision", correct="none").rows[0]
    assert row.reason == "no interval: on three quarters of the points it cannot always be measured"


def test_clips_of_a_few_groups_have_a_wider_interval_than_as_many_free_ones() -> None:
    drawn = DESIGNS["20 groups 8-D"].draw(np.random.default_rng(0))
    names = {"metrics": "p_precision", "correct": "none"}
    free = fidelity(drawn.real, drawn.generated, **names).rows[0]  # type: ignore[arg-type]
    grouped = fidelity(drawn.real, drawn.generated, groups=drawn.groups, real_groups=drawn.real_groups, **names).rows[0]  # type: ignore[arg-type]
    assert grouped.units == 20
    assert grouped.value == free.value
    assert grouped.high - grouped.low > 1.2 * (free.high - free.low)  # type: ignore[operator]


def test_intervals_hold_the_target_and_the_old_ones_did_not() -> None:
    """The short form of the simulation, with wide limits: 30 sets have a standard error of 4 %."""
    names = ["precision", "recall", "density", "coverage", "p_precision", "clipped_density"]
    table = coverage(names, designs=["very few 8-D"], correct=["none"], repeats=30, more=150)
    least = table.least(interval="jackknife")
    assert least is not None
    assert least.coverage >= 0.83
    old = table.least(interval="bootstrap")
    assert old is not None
    assert old.coverage <= 0.8
    mean = np.mean([cell.coverage for cell in table.select(interval="jackknife")])
    assert mean >= 0.92
    assert all(0.5 < cell.width < 2.0 for cell in table.select(interval="jackknife"))
    assert "clipped_density" in table.to_text()


def test_recall_under_gicdm_is_covered() -> None:
    """Its intervals held the target 70 times in 100."""
    table = coverage("recall", designs=["few 8-D"], correct=["gicdm"], repeats=16, more=60)
    (new,), (old,) = (table.select(interval=kind) for kind in ("jackknife", "bootstrap"))
    assert new.coverage >= 0.85
    assert old.coverage <= new.coverage
