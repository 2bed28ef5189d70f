"""Bootstrap intervals: queries or groups drawn with replacement, neighbours fixed; every metric by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from tests import brute
from tests.cases import CASES, DISTANCES, random

import earmark
from earmark.calibrate import bootstrap

RESAMPLES = 12
METRICS = ("P@k", "GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette")
RUNS = [
    (name, distance)
    for name in ("random", "duplicates", "classes_of_two", "imbalance", "zero_vectors", "groups_are_classes",
                 "one_big_group", "collapsed_class")
    for distance in DISTANCES
]  # fmt: skip


# --- draws ----------------------------------------------------------------------------------------


def test_draws_are_over_the_rows_given():
    order = np.random.default_rng(0).permutation(30)
    counts = bootstrap.resample(order, None, 5, 7)
    assert np.array_equal(counts, brute.drawn(30, 5, 7)[:, order])
    assert (counts.sum(axis=1) == 30).all()


def test_groups_are_drawn_whole():
    groups = np.array([0, 0, 0, 1, 2, 2])
    counts = bootstrap.resample(np.arange(6), groups, 50, 0)
    assert np.array_equal(counts, brute.drawn(6, 50, 0, groups))
    for group in range(3):
        mine = counts[:, groups == group]
        assert (mine == mine[:, :1]).all()
    assert (counts[:, [0, 3, 4]].sum(axis=1) == 3).all()  # one member of each: three groups are drawn


def test_a_seed_repeats_and_more_resamples_continue():
    short, long = (bootstrap.resample(np.arange(20), None, size, 4) for size in (3, 9))
    assert np.array_equal(short, long[:3])
    assert not np.array_equal(short, bootstrap.resample(np.arange(20), None, 3, 5))


def test_means_leave_out_missing_points():
    points = np.array([1.0, np.nan, 3.0])
    counts = np.array([[1, 1, 1], [3, 0, 0], [0, 3, 0], [1, 0, 2]], np.uint16)
    assert bootstrap.resampled_means(points, counts) == pytest.approx([2.0, 1.0, np.nan, 7 / 3], nan_ok=True)


def test_the_interval_is_the_middle_95_percent():
    values = np.append(np.arange(1001.0), np.nan)
    assert bootstrap.interval(values) == (pytest.approx(25.0), pytest.approx(975.0))


# --- every metric ---------------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True], ids=["queries", "groups"])
@pytest.mark.parametrize(("name", "distance"), RUNS)
def test_intervals_equal_brute_force(name, distance, grouped):
    case = CASES[name]()
    groups = case.groups if grouped else None
    scores = earmark.evaluate(
        case.vectors, case.labels, distance=distance, metrics=METRICS, groups=groups,
        across_groups=grouped, bootstrap=RESAMPLES, seed=2, threads=2,
    )  # fmt: skip
    matrix = brute.distance_matrix(case.vectors, distance)
    for protocol in ("all", "across_groups") if grouped else ("all",):
        across = protocol == "across_groups"
        reference = brute.resampled_values(matrix, case.labels, RESAMPLES, 2, groups, across)
        for metric, values in reference.items():
            row = scores.row(metric, protocol=protocol)
            if np.isnan(values).all():
                assert (row.low, row.high) == (None, None), metric
            else:
                low, high = brute.interval(values)
                assert row.low == pytest.approx(low, abs=1e-9), metric
                assert row.high == pytest.approx(high, abs=1e-9), metric


def test_draws_are_over_the_rows_kept():
    """Rows without a label or in a class too small take no part: the interval is that of the rest alone."""
    case = random(70)
    labels = list(case.labels)
    labels[5] = None
    labels[9] = "alone"
    kept = np.array([row not in (5, 9) for row in range(len(labels))])
    for groups in (None, case.groups):
        options = {"metrics": METRICS, "bootstrap": 20}
        some = earmark.evaluate(case.vectors, labels, groups=groups, **options)
        rest = earmark.evaluate(
            case.vectors[kept], case.labels[kept], groups=None if groups is None else groups[kept], **options
        )
        for a, b in zip(some.rows, rest.rows, strict=True):
            assert (a.value, a.low, a.high, a.n) == (b.value, b.low, b.high, b.n)


def test_metrics_that_are_no_mean_over_queries_have_no_interval():
    case = random(71)
    for name in ("hub_ratio", "antihub_rate", "hub_skew", "robin_hood", "NMI", "ARI", "kmeans_purity"):
        scores = earmark.evaluate(case.vectors, case.labels, bootstrap=5, metrics=["P@1", name])
        assert (scores.row(name).low, scores.row(name).high) == (None, None)


@pytest.mark.parametrize("metric", ["P@1", "GSR", "silhouette", "CSR_pointwise"])
def test_the_interval_surrounds_the_value(metric):
    case = random(72, n=200)
    row = earmark.evaluate(case.vectors, case.labels, metrics=metric, bootstrap=200).rows[0]
    assert row.low < row.value < row.high
    # A mean over 200 queries: about four standard errors wide.
    scores = earmark.evaluate(case.vectors, case.labels, metrics=metric, per_point=True)
    (points,) = (values for key, values in scores.per_point.items() if key[3] == metric)
    assert row.high - row.low == pytest.approx(3.92 * np.nanstd(points) / np.sqrt(200), rel=0.25)


def test_groups_widen_the_interval_when_their_clips_agree():
    rng = np.random.default_rng(73)
    groups = np.repeat(np.arange(20), 10)
    labels = np.repeat(np.arange(20) % 4, 10)
    vectors = rng.normal(size=(20, 6))[groups] + 0.1 * rng.normal(size=(200, 6))
    width = [
        row.high - row.low
        for row in (
            earmark.evaluate(vectors, labels, metrics="GSR", bootstrap=200, groups=given).rows[0]
            for given in (None, groups)
        )
    ]
    assert width[1] > 1.5 * width[0]
