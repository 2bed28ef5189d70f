"""Intervals: against a plain loop over resamples, and against what is known of a mean."""

from __future__ import annotations

import numpy as np
import pytest

from earmark.generated._bootstrap import draw, interval
from earmark.generated._distributions import kernel_distance
from earmark.generated.api import fidelity
from earmark.generated.metrics import Judgement, Term

RNG = np.random.default_rng(0)


def test_an_interval_is_that_of_a_loop_over_resamples() -> None:
    inside, around = (RNG.random(80) < 0.6).astype(float), (RNG.random(80) < 0.7).astype(float)
    metric = Judgement((Term("generated", inside), Term("generated", around)), np.minimum)
    draws = draw(50, 80, 40, 3)
    values = []
    for counts in draws.generated:
        rows = np.repeat(np.arange(80), counts)
        assert len(rows) == 80
        values.append(min(inside[rows].mean(), around[rows].mean()))
    assert interval(metric, draws) == pytest.approx(np.percentile(values, [2.5, 97.5]), abs=1e-12)


def test_the_width_is_that_of_a_share() -> None:
    n = 400
    metric = Judgement((Term("generated", (np.arange(n) < 100).astype(float)),), lambda mean: mean)
    low, high = interval(metric, draw(10, n, 2000, 0))
    assert low is not None
    assert high is not None
    spread = 1.96 * np.sqrt(0.25 * 0.75 / n)
    assert (low, high) == pytest.approx((0.25 - spread, 0.25 + spread), abs=0.008)


def test_equal_sets_are_not_drawn_alike() -> None:
    draws = draw(60, 60, 5, 1)
    assert (draws.real != draws.generated).any(axis=1).all()
    assert (draw(60, 60, 5, 1).real == draws.real).all()
    assert (draw(60, 60, 5, 2).real != draws.real).any()


def test_the_interval_of_the_kernel_distance_is_near_that_of_whole_resamples() -> None:
    """To first order the spread of the value is that of the points' effects."""
    x, y = RNG.normal(size=(150, 3)), RNG.normal(size=(120, 3)) + 1.0
    found = fidelity(x, y, metrics="kernel_distance", correct="none", bootstrap=400).row("kernel_distance")
    whole = [
        kernel_distance(RNG.normal(size=(150, 3)), RNG.normal(size=(120, 3)) + 1.0).value for _ in range(60)
    ]  # fmt: skip
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high  # type: ignore[operator]
    assert (found.high - found.low) == pytest.approx(np.ptp(np.percentile(whole, [2.5, 97.5])), rel=0.5)


def test_intervals_hold_their_values_and_follow_the_seed() -> None:
    x, y = RNG.normal(size=(120, 6)), 1.1 * RNG.normal(size=(110, 6))
    one, same, other = (fidelity(x, y, k=3, bootstrap=60, seed=seed) for seed in (0, 0, 1))
    assert [row.low for row in one] == [row.low for row in same]
    assert [row.low for row in one] != [row.low for row in other]
    for row in one:
        if row.low is not None and row.high is not None and row.value is not None:
            assert row.low <= row.value + 1e-12
            # The least of two shares falls in resamples: its interval may lie a little below the value.
            assert row.value <= row.high + 0.02
    assert all(row.low is None for row in fidelity(x, y, k=3, bootstrap=0))
