"""Spaces: what `prepare` makes of vectors, and that one product carries the distance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import brute
from tests.cases import CASES, DISTANCES, random

from earmark import evaluate
from earmark.errors import EarmarkError, UsageError
from earmark.geometry import kernels, spaces


def pair_distances(space):
    """[N, N] from the kernel that decides a single pair."""
    rows = range(space.n)
    return np.array(
        [
            [kernels.distance(space.raw, space.flat, a, b, space.halved, space.scale) if a != b else 0.0 for b in rows]
            for a in rows
        ]
    )


def product_distances(space, dtype):
    """[N, N] from the product and the epilogue."""
    keys = space.operands(dtype, slice(None)) @ space.columns(dtype).T
    q = np.maximum(keys.astype(np.float64) + space.squares[:, None], 0.0)
    found = q / 2 if space.halved else np.sqrt(q) * space.scale
    found[space.flat] = 1.0  # a flat row is at 1 from all; its keys only say that all are equally far
    np.fill_diagonal(found, 0.0)
    return found


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", CASES)
def test_the_distance_of_a_pair(name, distance):
    vectors = CASES[name]().vectors[:40]
    reference = brute.distance_matrix(vectors, distance)
    found = pair_distances(spaces.prepare(vectors.astype(np.float64), distance))
    # Nearby directions of an offset set carry the rounding of the unit vectors: 1e-16 in 1e-3.
    assert found == pytest.approx(reference, rel=1e-11, abs=1e-16)
    assert np.array_equal(found == 0, reference == 0)
    assert np.array_equal(found, found.T)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", CASES)
def test_one_product_carries_every_distance(name, distance):
    vectors = CASES[name]().vectors.astype(np.float64)
    reference = brute.distance_matrix(vectors, distance)
    found = product_distances(spaces.prepare(vectors, distance), np.float64)
    scale = reference.max()
    # q is accurate to 1e-13 of the norms; the root of a q that should be 0 is only half as accurate.
    assert found == pytest.approx(reference, abs=1e-6 * scale if distance == "euclidean" else 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", CASES)
def test_the_error_bound_holds(name, distance, dtype):
    """No key is farther from the true q - |z|^2 than the bound that certification rests on."""
    space = spaces.prepare(CASES[name]().vectors.astype(np.float64), distance)
    keys = (space.operands(dtype, slice(None)) @ space.columns(dtype).T).astype(np.longdouble)
    points = space.points.astype(np.longdouble)
    q = np.array([((points - row) ** 2).sum(axis=1) for row in points])
    q[:, space.flat] = 2.0
    wrong = np.abs(keys - (q - (points**2).sum(axis=1)[:, None]))[~space.flat]
    np.fill_diagonal(wrong, 0.0)
    assert (wrong <= space.error_bound(dtype)[~space.flat, None]).all()


@pytest.mark.parametrize("distance", DISTANCES)
def test_rows_are_taken_in_the_order_asked_for(distance):
    vectors = random(n=12, dims=9).vectors
    order = np.array([7, 2, 11, 0])
    space = spaces.prepare(vectors, distance, order=order)
    assert pair_distances(space) == pytest.approx(brute.distance_matrix(vectors[order], distance), rel=1e-12)


@pytest.mark.parametrize("ties", ["average", "ordinal"])
@pytest.mark.parametrize("seed", range(5))
def test_ranks_with_ties(seed, ties):
    vectors = np.random.default_rng(seed).integers(0, 4, (20, 30)).astype(float)
    found = pair_distances(spaces.prepare(vectors, "spearman", ties=ties))
    assert found == pytest.approx(brute.distance_matrix(vectors, "spearman", ties), abs=1e-14)


def test_minus_zero_ties_with_zero():
    vectors = np.array([[0.0, -0.0, 1.0], [-0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    assert pair_distances(spaces.prepare(vectors, "spearman")).tolist() == np.zeros((3, 3)).tolist()


@pytest.mark.parametrize(("distance", "kind"), [("cosine", 0.0), ("spearman", 0.0), ("spearman", 3.7)])
@pytest.mark.parametrize("ties", ["average", "ordinal"])
def test_vectors_without_direction_are_at_one_from_everything(distance, kind, ties):
    vectors = random(n=10, dims=6).vectors
    vectors[[2, 5]] = kind
    space = spaces.prepare(vectors, distance, ties=ties)
    assert np.flatnonzero(space.flat).tolist() == [2, 5]
    found = pair_distances(space)
    assert found[2, 5] == 1.0
    assert set(found[2, [0, 1, 3, 4]]) == {1.0}
    assert set(found[[0, 1, 3, 4], 5]) == {1.0}


def test_euclidean_has_no_vector_without_direction():
    assert not spaces.prepare(np.zeros((4, 3)), "euclidean").flat.any()


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-30, 1.0, 1e30, 1e150, 1e300])
@pytest.mark.parametrize("distance", DISTANCES)
def test_values_of_any_size_fit_float32_operands(scale, distance):
    vectors = random(n=20, dims=9).vectors * scale
    space = spaces.prepare(vectors, distance)
    with np.errstate(over="raise"):
        columns = space.columns(np.float32)
        assert np.isfinite(columns).all()
        assert np.isfinite(space.operands(np.float32, slice(None))).all()
    assert 0.05 < np.abs(columns).max() <= 4.0
    assert pair_distances(space) == pytest.approx(brute.distance_matrix(vectors, distance), rel=1e-11)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.usefixtures("several_threads")
def test_threads_change_nothing(distance, threads):
    vectors = random(n=200, dims=17).vectors
    one, many = spaces.prepare(vectors, distance), spaces.prepare(vectors, distance, threads=threads)
    assert np.array_equal(one.points, many.points)
    assert np.array_equal(one.squares, many.squares)


def test_the_vectors_given_are_not_touched():
    for dtype in (np.float32, np.float64):
        vectors = random(n=20, dims=9).vectors.astype(dtype)
        vectors[3] = 0.0
        before = vectors.copy()
        for distance in DISTANCES:
            spaces.prepare(vectors, distance)
            spaces.prepare(vectors, distance, order=np.arange(20), ties="ordinal")
        assert np.array_equal(vectors, before)


def test_an_offset_costs_no_digits():
    """Euclidean: adding a constant that float64 holds exactly leaves every distance as it was, to the bit."""
    vectors = np.round(random(n=30, dims=5).vectors * 1024) / 1024
    here = pair_distances(spaces.prepare(vectors, "euclidean"))
    for offset in (2.0**10, 2.0**20, 2.0**30):
        assert np.array_equal(pair_distances(spaces.prepare(vectors + offset, "euclidean")), here)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.sampled_from(DISTANCES))
def test_distances_are_distances(seed, dims, distance):
    vectors = np.random.default_rng(seed).normal(size=(8, dims))
    found = pair_distances(spaces.prepare(vectors, distance))
    assert (found >= 0).all()
    assert np.array_equal(found, found.T)
    if distance == "euclidean":
        assert (found[:, :, None] <= found[:, None, :] + found.T[None, :, :] + 1e-12).all()
    else:
        assert found.max() <= 2 + 1e-12


def test_unknown_names_are_refused():
    with pytest.raises(UsageError, match="choose from cosine, euclidean, spearman"):
        spaces.prepare(np.eye(3), "manhattan")
    with pytest.raises(UsageError, match="average or ordinal"):
        spaces.prepare(np.eye(3), "spearman", ties="dense")


def test_values_beyond_float64_squares_are_refused_not_scored():
    vectors = np.array([[1.7e308, 0.0], [-1.7e308, 0.0], [1.7e308, 1.7e308]])
    with pytest.raises(EarmarkError, match="too large"):
        spaces.prepare(vectors, "euclidean")


def test_a_value_that_makes_all_others_one_is_refused():
    """Next to 1e170 the squares of ordinary distances are 0: no two points would differ."""
    vectors = random(3, n=20, dims=4).vectors.astype(np.float64)
    far = vectors.copy()
    far[7, 1] = 1e170
    for call in (
        lambda: spaces.prepare(far, "euclidean"),
        lambda: spaces.prepare_pair(far, vectors, "euclidean"),
        lambda: spaces.prepare_pair(vectors, far, "euclidean"),
    ):
        with pytest.raises(EarmarkError, match="leave out the extreme vectors"):
            call()
    far[7, 1] = 1e140
    space, _ = spaces.prepare_pair(far, vectors, "euclidean")
    assert pair_distances(space)[0, 1] == pytest.approx(np.linalg.norm(vectors[0] - vectors[1]))
    spaces.prepare(np.repeat(far, 2, axis=0) * 1e-200, "euclidean")  # copies are no small difference


@pytest.mark.parametrize("value", [0.1, -1e9 / 3, 0.0, 1e-200])
def test_a_constant_coordinate_keeps_its_scale(value):
    points = np.random.default_rng(5).normal(size=(1003, 3))
    points[:, 1] = value
    mean, spread = spaces.mean_and_spread(points)
    assert spread[1] == 1.0
    assert mean[1] == pytest.approx(value)
    assert spread[[0, 2]] == pytest.approx(points.std(axis=0)[[0, 2]], rel=1e-12)


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
@pytest.mark.parametrize("share", [1e-4, 1e-6, 1e-8])
def test_points_near_the_centre_keep_their_sums_where_dimensions_are_many(share, distance):
    """Wide sets are rotated into fewer dimensions; what makes up for lost rank once moved GSR from .44 to .42."""
    rng = np.random.default_rng(9)
    vectors = rng.normal(size=(33, 100))
    vectors[:20] -= vectors[:20].mean(axis=0)
    vectors[20:] *= share
    if distance == "cosine":  # directions about a common one
        vectors = 0.01 * vectors + np.eye(100)[0]
    labels = [*("ab" * 10), *("cccddddeeeffe")]
    expected = brute.values(vectors.astype(np.longdouble), labels, distance)
    found = evaluate(vectors, labels, distance=distance, metrics=["GSR", "CS", "silhouette"])
    for name in ("GSR", "CS", "silhouette"):
        assert found.value(name) == pytest.approx(float(expected[name]), abs=2e-7 if distance == "cosine" else 1e-9)


def test_points_of_like_norms_are_still_rotated_into_fewer_dimensions():
    rng = np.random.default_rng(1)
    assert spaces.prepare(rng.normal(size=(30, 200)), "euclidean").points.shape == (30, 30)
    giants = rng.normal(size=(30, 200))
    giants[:2] *= 1e3 * np.array([[1.0], [-1.0]])
    giants[1] = -giants[0]
    assert spaces.prepare(giants, "euclidean").points.shape == (30, 200)
    assert spaces.prepare(np.repeat(rng.normal(size=(2, 200)), 15, axis=0), "euclidean").n == 30
