"""Label-free searches find what the full matrix holds, in one set and between two, under any weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import brute
from tests.cases import CASES, DISTANCES, random

from earmark.errors import InputError, UsageError
from earmark.geometry import spaces
from earmark.geometry import sweep as sweeping
from earmark.geometry.layout import one_class
from earmark.geometry.neighbours import ball_counts, log_closeness, nearest
from earmark.geometry.spaces import prepare_pair
from earmark.geometry.sweep import Wanted, sweep


def split(vectors, at, distance):
    """The first rows as base, the others as queries: two spaces, and the distances query x base and base x base."""
    full = brute.distance_matrix(vectors, distance)
    base, queries = prepare_pair(vectors[:at], vectors[at:], distance)
    return base, queries, full[at:, :at], full[:at, :at]


def smallest(values, k):
    """Rows and values of the k smallest of each row; ties (12 digits) by row."""
    order = np.array([np.lexsort((np.arange(len(row)), tied(row)))[:k] for row in values])
    return order, np.take_along_axis(values, order, axis=1)


def tied(row):
    """Values rounded so that those which differ by float64 rounding alone are equal."""
    return np.array([float(f"{value:.11e}") for value in row])


def without_self(distances):
    distances = distances.copy()
    np.fill_diagonal(distances, np.inf)
    return distances


def steps(seed, n):
    """Weights that are powers of two: equal distances stay equal or move far apart."""
    return 2.0 ** np.random.default_rng(seed).integers(-2, 3, n)


# --- nearest --------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", [name for name in CASES if name != "tight_classes"])
def test_nearest_equals_the_full_matrix(name, distance):
    vectors = CASES[name]().vectors
    at = len(vectors) * 2 // 3
    base, queries, across, inside = split(vectors, at, distance)
    weights = steps(1, at)
    for found, values in (
        (nearest(base, 6, queries=queries, weights=weights), across * weights),
        (nearest(base, 6, weights=weights), without_self(inside * weights)),
        (nearest(base, at - 1), without_self(inside)),
    ):
        rows, distances = smallest(values, found.places.shape[1])
        assert np.array_equal(found.places, rows)
        assert found.distances == pytest.approx(distances, rel=1e-9, abs=1e-14)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6), st.integers(2, 150), st.integers(1, 40), st.integers(1, 9), st.integers(1, 30))
def test_any_grid_of_ties(seed, n, m, dims, k):
    rng = np.random.default_rng(seed)
    vectors = rng.integers(0, 3, (n + m, dims)).astype(float)
    base, queries, across, inside = split(vectors, n, "euclidean")
    weights, k = steps(seed, n), min(k, n - 1)
    assert np.array_equal(nearest(base, k, queries=queries, weights=weights).places, smallest(across * weights, k)[0])
    assert np.array_equal(nearest(base, k).places, smallest(without_self(inside), k)[0])


def test_any_weights():
    """Weights over fifteen orders of magnitude: float32 keys cannot hold them together."""
    vectors = random(3, n=260, dims=20).vectors
    base, queries, across, _ = split(vectors, 200, "euclidean")
    weights = 10.0 ** np.random.default_rng(0).uniform(-12, 3, 200)
    found = nearest(base, 9, queries=queries, weights=weights)
    assert np.array_equal(found.places, smallest(across * weights, 9)[0])
    wide = 10.0 ** np.random.default_rng(0).uniform(-30, 30, 200)
    assert np.array_equal(nearest(base, 9, queries=queries, weights=wide).places, smallest(across * wide, 9)[0])


@pytest.mark.parametrize("distance", DISTANCES)
def test_plain_neighbours_are_those_of_the_sweep(distance):
    vectors = random(4, n=300, dims=64).vectors.astype(np.float32)
    space, layout = spaces.prepare(vectors, distance), one_class(300)
    swept = sweep(space, layout, Wanted(12))["all"].neighbours
    found = nearest(space, 12)
    assert np.array_equal(found.places, swept.places)
    assert np.array_equal(found.distances, swept.distances)


@pytest.mark.parametrize("distance", DISTANCES)
def test_more_duplicates_than_a_list_holds(distance):
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(3, 40))[rng.integers(0, 3, 200)]
    base, queries, across, inside = split(vectors, 150, distance)
    assert np.array_equal(nearest(base, 5, queries=queries).places, smallest(across, 5)[0])
    assert np.array_equal(nearest(base, 5).places, smallest(without_self(inside), 5)[0])


def test_orders_that_float32_cannot_see():
    line = 1.0 + 1e-9 * np.random.default_rng(1).permutation(300)[:, None] ** 1.5
    base, queries, across, _ = split(line, 200, "euclidean")
    assert np.array_equal(nearest(base, 7, queries=queries).places, smallest(across, 7)[0])


def awkward():
    vectors = random(44, n=500, dims=33).vectors
    vectors[100:150] = vectors[:50]
    vectors[[7, 8, 450]] = 0.0
    vectors[200:240] = vectors[200] * (1 + 1e-9 * np.arange(40))[:, None]
    return vectors


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.usefixtures("several_threads")
def test_threads_memory_and_strips_change_nothing(distance, monkeypatch):
    base, queries = prepare_pair(awkward()[:350], awkward()[350:], distance)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 350)
    radii = nearest(base, 5).distances[:, -1]

    def everything(**options):
        found = nearest(base, 20, queries=queries, weights=weights, **options)
        counts = ball_counts(base, radii, queries, centre_weights=weights, **options)
        closeness = log_closeness(base, float(radii.mean()) or 1.0, queries, centre_weights=weights, **options)
        return *found, *counts, closeness

    here = everything()
    for options in ({"threads": 2}, {"threads": 3, "memory": 1 << 20}, {"memory": 1 << 16}):
        assert all(np.array_equal(a, b) for a, b in zip(here, everything(**options), strict=True))
    for width in (1, 7, 64, 100):
        monkeypatch.setattr(sweeping, "ORDER_COLUMNS", (width, width))
        assert all(np.array_equal(a, b) for a, b in zip(here, everything(), strict=True))


def test_a_query_does_not_see_its_companions():
    """Distances to the base are the same, to the last bit, alone and among others."""
    vectors = random(6, n=120, dims=24).vectors
    far = np.vstack([vectors[80:], 1e6 * vectors[:40]])
    for distance in DISTANCES:
        base, queries = prepare_pair(vectors[:80], far, distance)
        together = nearest(base, 10, queries=queries)
        for row in (0, 17, 39):
            base, alone = prepare_pair(vectors[:80], far[row : row + 1], distance)
            found = nearest(base, 10, queries=alone)
            assert np.array_equal(found.places[0], together.places[row])
            assert np.array_equal(found.distances[0], together.distances[row])


def test_progress_counts_every_row_once():
    base, queries = prepare_pair(*np.split(random(7, n=600, dims=9).vectors, [200]), "euclidean")
    for work, rows in (
        (lambda seen: nearest(base, 3, queries=queries, threads=2, progress=seen), 400),
        (lambda seen: ball_counts(base, np.ones(200), queries, progress=seen), 200),
        (lambda seen: log_closeness(base, 1.0, queries, progress=seen), 400),
    ):
        seen = []
        work(seen.append)
        assert sum(seen) == rows


# --- balls ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", ["random", "duplicates", "one_hot", "zero_vectors", "float32"])
def test_ball_counts_equal_the_full_matrix(name, distance, strict):
    vectors = CASES[name]().vectors if name in CASES else random(8).vectors
    at = len(vectors) * 2 // 3
    base, queries, across, inside = split(vectors, at, distance)
    centres, points = steps(2, at), steps(3, len(vectors) - at)
    points[3] = np.inf
    # Radii at which points lie: the k-th neighbour of each centre.
    radii = np.sort(inside * centres[:, None], axis=1)[:, 4]
    radii[1] = np.nan

    def inside_ball(values):
        values, limits = np.array([tied(row) for row in values]), tied(radii)[:, None]
        return values < limits if strict else values <= limits

    found = ball_counts(base, radii, queries, centre_weights=centres, point_weights=points, strict=strict)
    finite = np.where(np.isinf(points), 1.0, points)
    member = inside_ball(across.T * centres[:, None] * finite) & np.isfinite(points)
    assert np.array_equal(found.per_point, member.sum(axis=0))
    assert np.array_equal(found.per_centre, member.sum(axis=1))
    found = ball_counts(base, radii, base, centre_weights=centres, strict=strict, exclude_same_row=True)
    member = inside_ball(inside * centres[:, None]) & ~np.eye(at, dtype=bool)
    assert np.array_equal(found.per_point, member.sum(axis=0))
    assert np.array_equal(found.per_centre, member.sum(axis=1))


def test_the_kth_neighbour_lies_in_its_ball():
    """Radii that come from a search hold exactly k points: what is computed twice is the same to the last bit."""
    space = spaces.prepare(random(9, n=400, dims=30).vectors, "cosine")
    weights = np.random.default_rng(1).uniform(0.2, 5.0, 400)
    radii = nearest(space, 7, weights=weights).distances[:, -1] * weights
    options = {"centre_weights": weights, "point_weights": weights, "exclude_same_row": True}
    assert set(ball_counts(space, radii, space, **options).per_centre) == {7}
    assert set(ball_counts(space, radii, space, strict=True, **options).per_centre) == {6}


def test_empty_and_endless_balls():
    base, queries = prepare_pair(*np.split(random(10, n=50, dims=5).vectors, [30]), "euclidean")
    for radius, held in ((np.nan, 0), (-1.0, 0), (0.0, 0), (np.inf, 20)):
        assert set(ball_counts(base, np.full(30, radius), queries).per_centre) == {held}
    assert ball_counts(base, np.zeros(30), base).per_centre.tolist() == [1] * 30  # each its own centre
    gone = np.full(20, np.inf)
    assert not ball_counts(base, np.full(30, np.inf), queries, point_weights=gone).per_centre.any()
    assert log_closeness(base, 1.0, queries, point_weights=gone).tolist() == [0.0] * 20


# --- closeness ------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", ["random", "duplicates", "zero_vectors", "tight_classes", "outlier"])
def test_log_closeness_equals_the_full_matrix(name, distance):
    vectors = CASES[name]().vectors if name in CASES else random(11, n=900, dims=20).vectors
    at = len(vectors) * 2 // 3
    base, queries, across, _ = split(vectors, at, distance)
    rng = np.random.default_rng(2)
    centres, points = rng.uniform(0.5, 2.0, at), rng.uniform(0.5, 2.0, len(vectors) - at)
    points[2] = np.inf
    for radius in (0.7 * np.median(across), 5 * np.median(across)):
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.log(np.minimum(across * centres * points[:, None] / radius, 1.0))
        terms[2] = 0.0
        found = log_closeness(base, radius, queries, centre_weights=centres, point_weights=points)
        assert found == pytest.approx(terms.sum(axis=1), rel=1e-9, abs=1e-12)


def test_closeness_of_a_point_on_a_centre():
    vectors = random(12, n=40, dims=6).vectors
    vectors[0] = 0.0
    near = np.zeros((3, 6))
    near[1:, 0] = 1e-40, 1e-140
    base, queries = prepare_pair(vectors, near, "euclidean")
    found = log_closeness(base, 1e-3, queries)
    assert found[0] == -np.inf
    assert found[1:] == pytest.approx(np.log([1e-37, 1e-137]))


def far_from_the_centre(seed=13):
    """Two heaps far from the middle and very narrow: a product cannot tell the points of a heap apart."""
    rng = np.random.default_rng(seed)
    side = np.where(np.arange(90) % 2, 1.0, -1.0)[:, None]
    vectors = side + 1e-8 * rng.normal(size=(90, 9))
    vectors[80:] = vectors[:10]
    return vectors


@pytest.mark.parametrize("device", ["cpu", "torch:cpu"])
def test_a_reach_below_the_rounding_of_a_product(device):
    if device != "cpu":
        pytest.importorskip("torch", reason="torch is an extra")
    vectors = far_from_the_centre()
    base, queries, across, inside = split(vectors, 50, "euclidean")
    radius = float(np.sort(inside, axis=1)[:, 5].mean())
    with np.errstate(divide="ignore"):
        terms = np.log(np.minimum(across / radius, 1.0)).sum(axis=1)
    found = log_closeness(base, radius, queries, device=device)
    assert (found[30:] == -np.inf).all()
    assert (terms[:30] < -1).any()
    assert found == pytest.approx(terms, rel=1e-9)


@pytest.mark.parametrize("device", ["cpu", "torch:cpu"])
@pytest.mark.parametrize(("radius", "weight"), [(1e-200, 1.0), (1e-250, 1e100), (1e120, 1e-100)])
def test_reaches_whose_squares_are_no_numbers(radius, weight, device):
    if device != "cpu":
        pytest.importorskip("torch", reason="torch is an extra")
    vectors = random(14, n=30, dims=5).vectors.astype(np.float64)
    vectors[20] = vectors[0]
    base, queries, across, _ = split(vectors, 20, "euclidean")
    with np.errstate(divide="ignore"):
        terms = np.minimum(np.log(across) + np.log(weight) - np.log(radius), 0.0).sum(axis=1)
    found = log_closeness(base, radius, queries, point_weights=np.full(10, weight), device=device)
    assert found[0] == -np.inf
    assert found == pytest.approx(terms, rel=1e-9)


# --- what is refused ------------------------------------------------------------------------------


def test_refusals():
    vectors = random(13, n=30, dims=8).vectors
    base, queries = prepare_pair(vectors[:20], vectors[20:], "cosine")
    with pytest.raises(InputError, match="8 and 7"):
        prepare_pair(vectors, vectors[:, :7], "cosine")
    with pytest.raises(UsageError, match="Unknown distance"):
        prepare_pair(vectors, vectors, "cosinus")
    with pytest.raises(InputError, match="too large"):
        prepare_pair(np.full((2, 3), -1.7e308), np.full((1, 3), 1.7e308), "euclidean")
    with pytest.raises(UsageError, match="largest that fits is 19"):
        nearest(base, 20)
    assert nearest(base, 20, queries=queries).places.shape == (10, 20)
    with pytest.raises(UsageError, match="largest that fits is 20"):
        nearest(base, 21, queries=queries)
    with pytest.raises(UsageError, match="at least 1"):
        nearest(base, 0)
    with pytest.raises(UsageError, match="prepare_pair"):
        nearest(base, 3, queries=spaces.prepare(vectors[20:], "cosine"))
    with pytest.raises(UsageError, match="prepare_pair"):
        nearest(base, 3, queries=prepare_pair(vectors[:20], vectors[20:], "euclidean")[1])
    for bad in (np.ones(19), np.zeros(20), np.full(20, np.inf), np.full(20, np.nan), -np.ones(20)):
        with pytest.raises(UsageError, match="weights must"):
            nearest(base, 3, weights=bad)
    with pytest.raises(UsageError, match="radii must"):
        ball_counts(base, np.ones(3), queries)
    with pytest.raises(UsageError, match="as many centres as points"):
        ball_counts(base, np.ones(20), queries, exclude_same_row=True)
    for radius in (0.0, np.nan, np.inf):
        with pytest.raises(InputError, match="radius above 0"):
            log_closeness(base, radius, queries)
    for device in ("gpu", "cuda:x", "mps"):
        with pytest.raises(UsageError, match=r"Unknown device|mps does not have"):
            nearest(base, 3, device=device)
