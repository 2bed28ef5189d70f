"""Two embeddings of the same clips: the difference, its interval and its p-value."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tests import brute
from tests.cases import DISTANCES, random

import earmark
from earmark.calibrate import bootstrap
from earmark.calibrate.paired import paired_difference
from earmark.errors import EarmarkError, InputError, UsageError

PAIRED = ("P@1", "P@5", "GSR", "CSR_pointwise", "silhouette")


def once(n, groups=None):
    return bootstrap.resample(np.arange(n), groups, 50, 0)


def exact_p(difference):
    """Over all 2^n swaps: the share whose mean is at least as far from 0."""
    signs = np.array(list(product([-1, 1], repeat=len(difference))))
    return (np.abs(signs @ difference) >= abs(difference.sum()) - 1e-12).mean()


# --- one difference -------------------------------------------------------------------------------


def test_the_value_is_the_mean_over_queries_measured_in_both():
    a, b = np.array([1.0, 0.5, np.nan, 0.0]), np.array([0.0, 0.5, 1.0, np.nan])
    found = paired_difference(a, b, once(4), None, 10, 0)
    assert (found.value, found.n) == (0.5, 2)


def test_the_interval_resamples_both_together():
    rng = np.random.default_rng(0)
    a, b = rng.random(40), rng.random(40)
    a[3] = np.nan
    draws = brute.drawn(40, 50)
    means = [brute.weighted_mean(a - b, w) for w in draws]
    found = paired_difference(a, b, once(40), None, 10, 0)
    assert (found.low, found.high) == pytest.approx(brute.interval(np.array(means)))


@pytest.mark.parametrize("seed", range(4))
def test_p_estimates_the_exact_swap_test(seed):
    rng = np.random.default_rng(seed)
    difference = rng.normal(0.3, 1, 11)
    exact = exact_p(difference)
    found = paired_difference(difference, np.zeros(11), once(11), None, 20_000, seed).p_value
    assert found == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4)


def test_p_swaps_whole_groups():
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(8), [1, 2, 3, 4, 5, 1, 2, 3])
    difference = rng.normal(0.4, 1, len(groups))
    exact = exact_p(np.bincount(groups, difference))
    counts = once(len(groups), groups)
    found = paired_difference(difference, np.zeros(len(groups)), counts, groups, 20_000, 0).p_value
    assert found == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4)


def test_p_is_never_zero_and_one_when_nothing_differs():
    a = np.random.default_rng(0).random(30)
    assert paired_difference(a, a, once(30), None, 99, 0).p_value == 1.0
    assert paired_difference(a + 5, a, once(30), None, 99, 0).p_value == pytest.approx(0.01)


def test_nothing_in_common():
    a, b = np.array([1.0, np.nan]), np.array([np.nan, 1.0])
    assert paired_difference(a, b, once(2), None, 9, 0) is None


def test_p_values_of_exchangeable_embeddings_are_uniform():
    rng = np.random.default_rng(6)
    found = [
        paired_difference(rng.normal(size=30), rng.normal(size=30), once(30), None, 99, s).p_value for s in range(200)
    ]
    assert 0.4 < np.mean(found) < 0.6
    assert 2 <= sum(p <= 0.05 for p in found) <= 24


# --- compare --------------------------------------------------------------------------------------


def two(seed=80, n=80):
    case = random(seed, n=n)
    return case, case.vectors + 2.0 * np.random.default_rng(seed).normal(size=case.vectors.shape)


@pytest.mark.parametrize("distance", DISTANCES)
def test_differences_are_those_of_the_two_evaluations(distance):
    case, noisy = two()
    options = {"distance": distance, "groups": case.groups, "across_groups": True}
    found = earmark.compare(case.vectors, noisy, case.labels, bootstrap=20, permutations=20, **options)
    first = earmark.evaluate(case.vectors, case.labels, metrics=PAIRED, **options)
    second = earmark.evaluate(noisy, case.labels, metrics=PAIRED, **options)
    assert len(found.rows) == 2 * len(PAIRED)
    for row in found.rows:
        name = row.metric.removesuffix(":difference")
        a, b = (scores.row(name, protocol=row.protocol) for scores in (first, second))
        assert row.value == pytest.approx(a.value - b.value, abs=1e-12)
        assert row.n == a.n
        assert row.low <= row.high
        assert 0 < row.p_value <= 1


@pytest.mark.parametrize("grouped", [False, True])
def test_intervals_equal_brute_force(grouped):
    case, noisy = two(81)
    groups = case.groups if grouped else None
    found = earmark.compare(case.vectors, noisy, case.labels, groups=groups, bootstrap=25, permutations=1, seed=3)
    points = [brute.point_values(brute.distance_matrix(x, "cosine"), case.labels) for x in (case.vectors, noisy)]
    for name in PAIRED:
        difference = points[0][name] - points[1][name]
        means = [brute.weighted_mean(difference, w) for w in brute.drawn(80, 25, 3, groups)]
        row = found.row(f"{name}:difference")
        assert (row.low, row.high) == pytest.approx(brute.interval(np.array(means)), abs=1e-9), name


def test_swapping_the_embeddings_flips_the_signs():
    case, noisy = two(82)
    here = earmark.compare(case.vectors, noisy, case.labels, names=("good", "noisy"))
    there = earmark.compare(noisy, case.vectors, case.labels, names=("noisy", "good"))
    assert {row.system for row in here.rows} == {"good - noisy"}
    for a, b in zip(here.rows, there.rows, strict=True):
        assert (a.metric, a.value, a.p_value) == (b.metric, pytest.approx(-b.value), b.p_value)
        assert (a.low, a.high) == (pytest.approx(-b.high), pytest.approx(-b.low))


def test_noise_is_found_out_and_copies_are_not():
    case, noisy = two(83, n=200)
    worse = earmark.compare(case.vectors, noisy, case.labels, k=1)
    assert worse.row("GSR:difference").low > 0
    assert worse.row("GSR:difference").p_value == pytest.approx(1 / 1001)
    same = earmark.compare(case.vectors, case.vectors.copy(), case.labels, k=1)
    assert {(row.value, row.p_value) for row in same.rows} == {(0.0, 1.0)}


def test_the_two_may_differ_in_dimensions_and_type():
    case, _ = two(84)
    found = earmark.compare(case.vectors, case.vectors[:, :9].astype(np.float32), case.labels)
    assert {row.status for row in found.rows} == {"ok"}


def test_unlabelled_rows_are_left_out():
    case, noisy = two(85)
    labels = list(case.labels)
    labels[4] = None
    found = earmark.compare(case.vectors, noisy, labels)
    assert found.row("P@1:difference").n == 79
    assert any("1 unlabelled" in note for note in found.notes)


def test_what_cannot_be_measured_says_why():
    case, noisy = two(86)
    found = earmark.compare(case.vectors, noisy, case.labels, groups=np.zeros(80), across_groups=True, k=(1, 80))
    for row in found.rows:
        if row.protocol == "across_groups" or row.metric == "P@80:difference":
            assert (row.status, row.value) == ("not_applicable", None)
            assert row.reason
        else:
            assert row.status == "ok"


def test_the_same_call_gives_the_same_rows():
    case, noisy = two(87)
    rows = [
        [(r.metric, r.value, r.low, r.high, r.p_value, r.inputs) for r in found.rows]
        for found in (
            earmark.compare(case.vectors, noisy, case.labels, threads=threads, memory=memory)
            for threads, memory in ((1, "2GB"), (2, "2GB"), (3, "4MB"))
        )
    ]
    assert rows[0] == rows[1] == rows[2]


def test_resamples_may_miss_every_measured_query():
    """Few labelled rows among many: a resample may hold none of them; the comparison still answers."""
    rng = np.random.default_rng(0)
    vectors, labels = rng.normal(size=(2, 100, 3)), ["a", "a", "b", "b"] + [None] * 96
    for seed in range(40, 45):  # the one resample of seed 42 draws none of the first four rows
        found = earmark.compare(*vectors, labels, k=1, bootstrap=1, permutations=3, seed=seed)
        assert {row.status for row in found.rows} == {"ok"}


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"b": np.zeros((5, 2))}, InputError, "20 vectors and B has 5"),
        ({"b": np.full((20, 2), np.nan)}, InputError, "NaN or infinity"),
        ({"labels": ["a"] * 20}, InputError, "same label"),
        ({"labels": ["a"] * 3}, InputError, "3 labels"),
        ({"bootstrap": 0}, UsageError, "at least 1"),
        ({"permutations": 0}, UsageError, "at least 1"),
        ({"groups": [1, 2]}, InputError, "2 groups"),
        ({"across_groups": True}, UsageError, "needs groups"),
        ({"k": 0}, UsageError, "at least 1"),
        ({"distance": "l1"}, UsageError, "Unknown distance"),
    ],
)
def test_bad_input_is_one_sentence(change, kind, words):
    rng = np.random.default_rng(0)
    given = {
        "a": rng.normal(size=(20, 3)),
        "b": rng.normal(size=(20, 3)),
        "labels": list("abcd" * 5),
    } | change
    with pytest.raises(kind, match=words) as caught:
        earmark.compare(given.pop("a"), given.pop("b"), given.pop("labels"), **given)
    assert isinstance(caught.value, EarmarkError)
    assert "\n" not in str(caught.value)
