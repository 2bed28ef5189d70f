"""The interval of an accuracy over folds: its parts by hand, and its coverage by simulation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from earmark.calibrate import jackknife
from earmark.calibrate.jackknife import standard_error
from earmark.errors import InputError
from earmark.probes._accuracy import estimate, interval, widening
from earmark.probes.folds import Fold, make_folds

Data = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64] | None]


def test_value_and_deviation_are_over_folds_and_clips_are_left_out_of_the_mean() -> None:
    right = np.array([1, 1, 0, 1, 0, 1, 1, 1, 1.0])
    folds = make_folds(np.zeros(9), kind="given", given=list("112222333"))
    found = estimate(right, folds)
    means = [1.0, 0.5, 1.0]
    assert found.by_fold == tuple(means)
    assert found.value == pytest.approx(np.mean(means))
    assert found.deviation == pytest.approx(np.std(means))
    weights = np.array([1 / 6] * 2 + [1 / 12] * 4 + [1 / 9] * 3)
    without = [(weights * right)[np.arange(9) != row].sum() / weights[np.arange(9) != row].sum() for row in range(9)]
    expected = interval(found.value, np.array(without), folds, weights)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.cells == {
        "value": found.value, "n": 9, "low": found.low, "high": found.high,
        "interval": "jackknife", "unit": "clip", "units": 9,
    }  # fmt: skip
    assert found.remark == "sd over folds 0.2357"


def test_training_clips_widen_the_error_like_a_second_sample() -> None:
    folds = make_folds(np.zeros(50), kind="given", given=[str(row % 5) for row in range(50)])
    assert widening(folds) == pytest.approx(1 + 50 / 40)
    one = make_folds(np.zeros(50), kind="given", given=["train"] * 25 + ["valid"] * 15 + ["test"] * 10)
    assert widening(one) == pytest.approx(1 + 10 / 40)
    without = np.linspace(-1.0, 1.0, 41)
    found = interval(0.0, without, folds, np.ones(41), ends=(-np.inf, np.inf))
    assert found.high is not None
    assert found.high == pytest.approx(2.0210753903 * standard_error(without) * np.sqrt(1 + 50 / 40))


def test_groups_are_the_unit_and_few_of_them_have_no_interval() -> None:
    groups = np.repeat(list("abcd"), 5)
    folds = make_folds(["x", "y"] * 10, kind="grouped", count=2, groups=groups)
    found = estimate(np.tile([1.0, 0.0], 10), folds, groups)
    assert (found.low, found.high, found.unit, found.units) == (None, None, "group", 4)
    assert "4 groups are too few, 5 are needed" in found.remark
    assert found.cells == {"value": found.value, "n": 20}


def test_one_group_has_no_interval_and_no_warning() -> None:
    fold = Fold("test", np.arange(4), np.zeros(0, np.int64), np.arange(4, 8))
    assert "1 group is too few" in estimate(np.ones(8), [fold], ["a"] * 4 + ["b"] * 4).reason


def test_all_right_is_no_certainty() -> None:
    folds = make_folds(["x", "y"] * 10, kind="stratified", count=5)
    found = estimate(np.ones(20), folds)
    assert found.value == found.high == 1.0
    assert found.low is not None
    assert 0.75 < found.low < 0.9


def test_clips_that_are_tested_twice_are_refused() -> None:
    rows = np.arange(6)
    with pytest.raises(InputError, match="twice"):
        estimate(np.ones(6), [Fold("1", rows[:3], rows[:0], rows[3:]), Fold("2", rows[3:], rows[:0], rows[2:4])])


def _independent(rng: np.random.Generator) -> Data:
    labels = np.repeat([0, 1], 30)
    vectors = rng.standard_normal((60, 8))
    vectors[:, 0] += 1.5 * labels
    return vectors, labels, None


def _one_label_each(rng: np.random.Generator) -> Data:
    groups = np.repeat(np.arange(10), 8)
    labels = groups % 2
    vectors = rng.standard_normal((80, 8)) + 0.8 * rng.standard_normal((10, 8))[groups]
    vectors[:, 0] += 2.0 * labels
    return vectors, labels, groups


def _nearest_three(
    train: NDArray[np.float64], labels: NDArray[np.int64], test: NDArray[np.float64]
) -> NDArray[np.bool_]:
    nearest = np.argsort(((test[:, None] - train) ** 2).sum(-1), axis=1)[:, :3]
    return np.asarray(labels[nearest].sum(axis=1) >= 2)


def _two_large_groups(rng: np.random.Generator) -> Data:
    groups = np.repeat(np.arange(8), [100, 100, 2, 2, 2, 2, 2, 2])
    labels = rng.permutation(np.arange(8) % 2)[groups]
    vectors = rng.standard_normal((len(groups), 4)) + rng.standard_normal((8, 4))[groups]
    vectors[:, 0] += labels
    return vectors, labels, groups


@pytest.mark.parametrize(("draw", "count"), [(_independent, 5), (_one_label_each, 5), (_two_large_groups, 2)])
def test_intervals_hold_the_expected_accuracy_of_new_data(
    draw: Callable[[np.random.Generator], Data], count: int
) -> None:
    """A short form of the simulation of docs/individuals.md, with wide limits."""
    found = []
    for repeat in range(150):
        vectors, labels, groups = draw(np.random.default_rng([3, repeat]))
        kind = "stratified" if groups is None else "group-stratified"
        folds = make_folds(labels, kind=kind, count=count, groups=groups, seed=repeat)
        if any(len(np.unique(labels[fold.train])) < 2 for fold in folds):
            continue  # the probes refuse such folds
        right = np.zeros(len(labels))
        for fold in folds:
            answers = _nearest_three(vectors[fold.train], labels[fold.train], vectors[fold.test])
            right[fold.test] = answers == labels[fold.test]
        found.append(estimate(right, folds, groups))
    truth = np.mean([item.value for item in found])
    covered = np.mean([item.low <= truth <= item.high for item in found if item.low is not None and item.high])
    assert 0.91 <= covered <= 1.0
    widths = [item.high - item.low for item in found if item.low is not None and item.high]
    assert np.mean(widths) < 7 * np.std([item.value for item in found])


def test_groups_of_unequal_size_leave_fewer_degrees_of_freedom() -> None:
    """Kish's effective number of groups less 1, by hand; equal groups keep their number less 1."""
    right = np.random.default_rng(0).integers(0, 2, 60).astype(float)
    for sizes in ([10] * 6, [40, 8, 3, 3, 3, 3]):
        groups = np.repeat(np.arange(6), sizes)
        fold = Fold("test", np.arange(60), np.zeros(0, np.int64), np.arange(60))
        found = estimate(right, [fold], groups)
        without = np.array([right[groups != group].mean() for group in range(6)])
        wider = without.mean() + (without - without.mean()) * np.sqrt(2)
        freedom = 60**2 / np.square(sizes).sum() - 1
        expected = jackknife.interval(right.mean(), wider, (0.0, 1.0), "group", freedom=freedom)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
