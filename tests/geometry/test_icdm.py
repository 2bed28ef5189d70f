"""ICDM is exact whatever its schedule, and shows the figures of the formula sheet (section 6)."""

from __future__ import annotations

import numpy as np
import pytest
from tests import brute
from tests.cases import CASES, DISTANCES, random

from earmark.errors import UsageError
from earmark.geometry import icdm as module
from earmark.geometry.hubness import antihub_rate, hub_ratio, k_occurrences
from earmark.geometry.icdm import icdm
from earmark.geometry.neighbours import nearest
from earmark.geometry.spaces import prepare


def dense(distances, k, iterations):
    """ICDM as it is defined: the matrix is rewritten and searched again at every step."""
    current = distances.copy()
    np.fill_diagonal(current, np.inf)
    factors = np.ones(len(current))
    for step in range(iterations + 1):
        means = np.sort(current, axis=1)[:, :k].mean(axis=1)
        scaled = means > 0
        target = means[scaled].mean() if scaled.any() else 0.0
        if step < iterations:
            step_factors = np.where(scaled, np.sqrt(target / np.where(scaled, means, 1.0)), 1.0)
            current = current * step_factors[:, None] * step_factors
            factors = factors * step_factors
    return factors, means, target, current


def heteroscedastic(n, dims, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 10, n)
    centres, widths = rng.normal(size=(10, dims)), rng.uniform(0.5, 2.0, 10)
    return centres[codes] + widths[codes, None] * rng.normal(size=(n, dims))


def radial(n, dims, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dims)) * np.exp(0.5 * rng.normal(size=(n, 1)))


# --- exact ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", ["random", "float32", "outlier", "zero_vectors", "duplicates", "two_places"])
def test_factors_equal_those_of_a_rewritten_matrix(name, distance):
    vectors = CASES[name]().vectors
    found = icdm(prepare(vectors, distance), 5, 7)
    factors, means, target, current = dense(brute.distance_matrix(vectors, distance), 5, 7)
    assert found.factors == pytest.approx(factors, rel=1e-9)
    assert found.mean == pytest.approx(means, rel=1e-9, abs=1e-14)
    assert found.target == pytest.approx(target, rel=1e-9)
    order = np.sort(current, axis=1)[:, :5]
    assert found.neighbours.distances == pytest.approx(order, rel=1e-9, abs=1e-14)
    listed = np.take_along_axis(current, found.neighbours.places, axis=1)
    assert listed == pytest.approx(order, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("make", [heteroscedastic, radial])
@pytest.mark.parametrize("k", [3, 40])
def test_exact_where_factors_differ(make, k):
    """Hundreds of points, so that lists are short beside them and rows have to prove what they know."""
    vectors = make(600, 30)
    found = icdm(prepare(vectors, "euclidean"), k)
    factors, means, target, current = dense(brute.distance_matrix(vectors, "euclidean"), k, 10)
    assert found.factors == pytest.approx(factors, rel=1e-9)
    assert found.mean == pytest.approx(means, rel=1e-9)
    assert found.target == pytest.approx(target, rel=1e-9)
    order = np.argsort(current, axis=1, kind="stable")[:, :k]
    assert np.array_equal(found.neighbours.places, order)


def same(one, other):
    return all(
        np.array_equal(a, b)
        for a, b in (
            (one.factors, other.factors),
            (one.mean, other.mean),
            (one.target, other.target),
            (one.neighbours.places, other.neighbours.places),
            (one.neighbours.distances, other.neighbours.distances),
            (one.spread, other.spread),
        )
    )


@pytest.mark.parametrize("distance", DISTANCES)
def test_no_schedule_changes_a_bit(distance, monkeypatch):
    """Short lists, no rehearsal, visits for all or for none: rows are proven, visit, are searched or listed anew."""
    vectors = radial(600, 20)
    vectors[50:90] = vectors[50]  # more duplicates than a short list holds
    space = prepare(vectors, distance)
    here = icdm(space, 8)
    for threads, memory in ((2, 1 << 30), (3, 1 << 16)):
        assert same(here, icdm(space, 8, threads=threads, memory=memory))
    assert same(here, icdm(space, 8, start=nearest(space, 11)))
    for settings in (
        {"LONGER": 1, "EXTRA": 3, "ROOM": 1},
        {"LONGER": 1, "EXTRA": 40, "ROOM": 0},
        {"LONGER": 1, "EXTRA": 20, "REHEARSALS": 0},
        {"REHEARSALS": 6, "EXTRA": 5},
        {"ALONE": 1e-9, "EXTRA": 5},
        {"ALONE": 1e9, "EXTRA": 5},
        {"EXTRA": 1000},
    ):
        with monkeypatch.context() as patch:
            for name, value in settings.items():
                patch.setattr(module, name, value)
            assert same(here, icdm(space, 8)), settings


def test_start_spares_the_first_search_and_nothing_else():
    space = prepare(random(2, n=200, dims=12).vectors, "cosine")
    with pytest.raises(UsageError, match="9 are needed"):
        icdm(space, 9, start=nearest(space, 8))
    assert same(icdm(space, 9), icdm(space, 9, start=nearest(space, 9)))


# --- properties -----------------------------------------------------------------------------------


def test_scale_and_order_of_the_vectors_do_not_matter():
    vectors = heteroscedastic(300, 15)
    here = icdm(prepare(vectors, "euclidean"), 6)
    there = icdm(prepare(1024.0 * vectors, "euclidean"), 6)
    assert np.array_equal(here.factors, there.factors)
    assert here.target * 1024.0 == there.target
    order = np.random.default_rng(0).permutation(300)
    shuffled = icdm(prepare(vectors[order], "euclidean"), 6)
    assert shuffled.factors == pytest.approx(here.factors[order], rel=1e-12)


def test_points_without_a_scale_keep_their_factor():
    """Six copies of a point: its five nearest are at 0, and no factor could bring them to the others' mean."""
    vectors = np.vstack([random(3, n=60, dims=10).vectors, np.ones((6, 10))])
    for scale in (1.0, 2.0**-30):
        found = icdm(prepare(scale * vectors, "euclidean"), 5)
        assert found.factors[60:].tolist() == [1.0] * 6
        assert found.mean[60:].tolist() == [0.0] * 6
        assert found.mean[:60] == pytest.approx(found.target, rel=0.01)
        assert np.isfinite(found.factors).all()
        if scale == 1.0:
            here = found.factors
    assert np.array_equal(here, found.factors)


@pytest.mark.parametrize(("distance", "target"), [("euclidean", 0.0), ("cosine", 0.0), ("spearman", 1.0)])
def test_all_points_in_one_place(distance, target):
    """Nothing to correct; under spearman constant vectors are all at 1 from each other."""
    found = icdm(prepare(np.ones((30, 4)), distance), 5)
    assert found.factors.tolist() == [1.0] * 30
    assert found.target == target
    assert not np.any(found.spread)


def test_more_points_than_k_are_needed():
    space = prepare(np.eye(9), "euclidean")
    with pytest.raises(UsageError, match="largest that fits is 8"):
        icdm(space, 9)
    with pytest.raises(UsageError, match="iterations"):
        icdm(space, 3, 0)
    # The corners of a simplex are alike: nothing is to be corrected.
    assert icdm(space, 8).factors == pytest.approx(1.0, rel=1e-12)


def test_progress_counts_every_step():
    seen = []
    icdm(prepare(random(4).vectors, "cosine"), 5, 4, progress=seen.append)
    assert sum(seen) == 5 * 61


# --- the figures of the sheet -----------------------------------------------------------------------


def test_deviation_after_ten_steps():
    """Section 6b at N = 2000: deviations of a few percent after one step, under a thousandth after ten."""
    gauss = np.random.default_rng(0).normal(size=(2000, 512)).astype(np.float32)
    for vectors in (gauss, heteroscedastic(2000, 512).astype(np.float32)):
        space = prepare(vectors, "euclidean")
        low, high = icdm(space, 10).spread
        assert 0.01 < max(-low[0], high[0]) < 0.2
        assert max(-low[4], high[4]) < 0.006
        assert max(-low[9], high[9]) < 0.001
        # Every step brings the extremes closer.
        assert (np.diff(np.maximum(-low, high)) < 0).all()


@pytest.mark.parametrize(
    ("dims", "ratio", "antihubs"),
    [(1, 1.84, 0.001), (10, 2.96, 0.063), (50, 13.7, 0.284), (100, 20.0, 0.363), (1000, 34.0, 0.518)],
)
def test_hubs_of_a_gaussian(dims, ratio, antihubs):
    """Section 6a, N = 5000, k = 5, one sample: within a fifth. ICDM takes nearly all of it away."""
    vectors = np.random.default_rng(1).normal(size=(5000, dims)).astype(np.float32)
    space = prepare(vectors, "euclidean")
    plain = k_occurrences(nearest(space, 5).places, 5)
    assert hub_ratio(plain, 5) == pytest.approx(ratio, rel=0.2)
    assert antihub_rate(plain) == pytest.approx(antihubs, rel=0.1, abs=0.003)
    if dims == 100:
        corrected = icdm(space, 10).neighbours
        assert hub_ratio(k_occurrences(corrected.places, 5), 5) < 2.0
