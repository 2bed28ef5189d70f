"""Hubness measures against their definitions, and `earmark.hubness` end to end."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import skew
from tests import brute
from tests.cases import CASES, DISTANCES, random

import earmark
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.geometry import hubness

MEASURES = ("hub_ratio", "antihub_rate", "hub_skew", "robin_hood")


def test_measures_worked_out_by_hand():
    counts = np.array([0, 0, 1, 2, 7])
    assert hubness.hub_ratio(counts, 2) == 3.5  # the top ceil(1 %) is one point
    assert hubness.antihub_rate(counts) == 0.4
    assert hubness.hub_skew(counts) == pytest.approx(skew(counts))
    assert hubness.robin_hood(counts) == pytest.approx(0.5 * (2 + 2 + 1 + 0 + 5) / 10)


@pytest.mark.parametrize(("n", "top"), [(99, 1), (100, 1), (101, 2), (200, 2), (201, 3), (1000, 10), (1001, 11)])
def test_hub_ratio_averages_one_point_in_a_hundred_rounded_up(n, top):
    counts = np.arange(n)
    assert hubness.hub_ratio(counts, 5) == pytest.approx(np.mean(counts[-top:]) / 5)


def test_even_lists():
    counts = np.full(50, 5)
    assert hubness.hub_ratio(counts, 5) == 1.0
    assert (hubness.antihub_rate(counts), hubness.hub_skew(counts), hubness.robin_hood(counts)) == (
        0.0,
        0.0,
        0.0,
    )


def test_occurrences_count_lists_and_skip_missing_neighbours():
    places = np.array([[1, 2], [2, 0], [1, -1]])
    assert hubness.k_occurrences(places, 2).tolist() == [1, 2, 2]
    assert hubness.k_occurrences(places, 1).tolist() == [0, 2, 1]


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", [name for name in CASES if name != "tight_classes"])
def test_every_case_equals_brute_force(name, distance):
    vectors = CASES[name]().vectors
    scores = earmark.hubness(vectors, distance=distance, k=4)
    expected = brute.hub_values(brute.occurrences(brute.distance_matrix(vectors, distance), 4), 4)
    assert {row.metric: row.value for row in scores.rows} == pytest.approx(expected, abs=1e-9)
    assert {row.n for row in scores.rows} == {len(vectors)}


@pytest.mark.parametrize("k", [1, 5, 20, 299])
def test_occurrences_sum_to_k_per_point(k):
    vectors = random(n=300, dims=40).vectors
    scores = earmark.hubness(vectors, k=k, per_point=True)
    counts = scores.per_point["cosine", "none", "all", "hub_ratio"]
    assert counts.sum() == 300 * k
    assert np.array_equal(counts, brute.occurrences(brute.distance_matrix(vectors, "cosine"), k))


def test_high_dimensions_make_hubs():
    rng = np.random.default_rng(0)
    low, high = (earmark.hubness(rng.normal(size=(500, d)), distance="euclidean") for d in (2, 100))
    for name in MEASURES:
        assert high.value(name) > low.value(name)


def test_ids_come_back_with_the_points():
    ids = [f"clip {i}" for i in range(30)]
    scores = earmark.hubness(random(n=30).vectors, per_point=True, ids=ids)
    assert scores.point_ids == tuple(ids)


def test_lists_as_long_as_the_set_do_not_exist():
    for row in earmark.hubness(random(n=10).vectors, k=10).rows:
        assert (row.status, row.value) == ("not_applicable", None)
        assert "10" in row.reason


@pytest.mark.parametrize(
    ("vectors", "options", "kind", "words"),
    [
        (np.eye(2), {}, InputError, "at least 3"),
        (np.ones((5, 2)) * np.nan, {}, InputError, "NaN or infinity in 5 of 5"),
        (np.zeros((5, 2, 2)), {}, InputError, "3 dimension"),
        (np.eye(9), {"k": 0}, UsageError, "at least 1"),
        (np.eye(9), {"distance": "l1"}, UsageError, "Unknown distance"),
        (np.eye(9), {"correct": "idcm"}, UsageError, "icdm"),
        (np.eye(9), {"ids": ["a"]}, InputError, "1 ids"),
    ],
)
def test_bad_input_is_one_sentence(vectors, options, kind, words):
    with pytest.raises(kind, match=words) as caught:
        earmark.hubness(vectors, **options)
    assert isinstance(caught.value, EarmarkError)
    assert "\n" not in str(caught.value)
