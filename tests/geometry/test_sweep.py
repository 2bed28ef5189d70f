"""The sweep finds what the full matrix holds, whatever the tiles, and the same to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import brute
from tests.cases import CASES, DISTANCES, WIDE, Case, names, random

from earmark.errors import UsageError
from earmark.geometry import spaces
from earmark.geometry import sweep as sweeping
from earmark.geometry.layout import lay_out, one_class
from earmark.geometry.sweep import Wanted, sweep
from earmark.workers import Workers, thread_count

FIELDS = ("nearest_other", "farthest_same", "own_mean", "own_count", "other_mean")


def swept(case, distance, *, neighbours=7, across=True, threads=1, memory=2 << 30, weights=None, sums=True):
    """Sweep a case; results by original row: {protocol: {field: array}}, and class means by protocol and class."""
    codes = np.unique(case.labels, return_inverse=True)[1]
    groups = np.unique(case.groups, return_inverse=True)[1]
    layout = lay_out(codes, groups)
    space = spaces.prepare(case.vectors, distance, order=layout.order)
    means = {}
    wanted = Wanted(
        neighbours, farthest=True, class_sums=sums, across_groups=across,
        weights=None if weights is None else weights[:, layout.order].astype(np.uint16),
        visit_class=(lambda protocol, code, found: means.__setitem__((protocol, code), found)) if sums else None,
    )  # fmt: skip
    results = {}
    for protocol, found in sweep(space, layout, wanted, threads=threads, memory=memory).items():
        places = layout.to_rows(found.neighbours.places)
        results[protocol] = {name: layout.to_rows(getattr(found, name)) for name in FIELDS} | {
            "rows": np.where(places >= 0, layout.order[places], -1),
            "distances": layout.to_rows(found.neighbours.distances),
        }
    return results, means


def reference(case, distance, protocol, neighbours=7):
    groups = case.groups if protocol == "across_groups" else None
    distances = brute.distance_matrix(case.vectors, distance)
    allowed = brute.pairs_allowed(len(case.labels), groups)
    lists = [listed[:neighbours] for listed in brute.neighbours(distances, allowed)]
    near, average, farthest, other = brute.point_parts(distances, case.labels, groups)
    width = min(neighbours, len(case.labels) - 1)
    rows, values = np.full((len(lists), width), -1), np.full((len(lists), width), np.nan)
    for i, listed in enumerate(lists):
        rows[i, : len(listed)], values[i, : len(listed)] = listed, distances[i, listed]
    count = (allowed & (case.labels[:, None] == case.labels[None, :])).sum(axis=1)
    return {
        "nearest_other": near, "farthest_same": farthest, "own_mean": average, "own_count": count,
        "other_mean": other, "rows": rows, "distances": values,
    }  # fmt: skip


def assert_same(found, expected, rel=1e-9):
    for name, values in expected.items():
        assert found[name] == pytest.approx(values, rel=rel, abs=1e-14, nan_ok=True), name


# --- against the full matrix ----------------------------------------------------------------------


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", [name for name in CASES if name != "tight_classes"])
def test_everything_equals_the_full_matrix(name, distance):
    case = CASES[name]()
    found, means = swept(case, distance)
    for protocol in ("all", "across_groups"):
        assert_same(found[protocol], reference(case, distance, protocol))
        groups = case.groups if protocol == "across_groups" else None
        full = brute.class_pair_means(brute.distance_matrix(case.vectors, distance), case.labels, groups)
        got = np.array([means[protocol, code][0] for code in range(len(full))])
        assert got == pytest.approx(full, rel=1e-9, abs=1e-14, nan_ok=True)


def test_the_last_tile_may_hold_a_single_row():
    """One row left over: its counts under across_groups are its own, not the class sizes of everyone."""
    case = random(40, n=129, dims=64, classes=3, groups=30)
    found, _ = swept(case, "euclidean")
    assert_same(found["across_groups"], reference(case, "euclidean", "across_groups"))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 63, 64, 65, 127, 128, 129, 130, 256, 257, 300])
def test_any_number_of_rows(n):
    case = random(n, n=max(n, 8), dims=12, classes=3)
    case = Case(case.vectors[:n], case.labels[:n], case.groups[:n])
    found, _ = swept(case, "euclidean", across=True)
    for protocol in found:
        assert_same(found[protocol], reference(case, "euclidean", protocol))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 10**6), st.integers(2, 150), st.integers(1, 9), st.integers(1, 5), st.integers(1, 20),
    st.integers(1, 30),
)  # fmt: skip
def test_any_grid_of_ties(seed, n, dims, classes, groups, neighbours):
    """Small integer coordinates: most distances tie, many are 0, and (distance, row) decides."""
    rng = np.random.default_rng(seed)
    case = Case(
        rng.integers(0, 3, (n, dims)).astype(float),
        names(rng.integers(0, classes, n)),
        rng.integers(0, groups, n),
    )
    found, _ = swept(case, "euclidean", neighbours=neighbours)
    for protocol in found:
        expected = reference(case, "euclidean", protocol, neighbours)
        assert np.array_equal(found[protocol]["rows"], expected["rows"])
        assert_same(found[protocol], expected)


@pytest.mark.parametrize("distance", DISTANCES)
def test_mass_duplicates_are_decided_pair_by_pair(distance):
    """More equal distances than a candidate list holds: neither float32 nor float64 keys can certify."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(3, WIDE))[rng.integers(0, 3, 160)]
    case = Case(vectors, names(rng.integers(0, 4, 160)), rng.integers(0, 20, 160))
    found, _ = swept(case, distance)
    for protocol in found:
        assert_same(found[protocol], reference(case, distance, protocol))


def test_orders_that_float32_cannot_see():
    """Steps of 1e-9 on an offset of 1: float32 keys tie, the answer may not."""
    line = 1.0 + 1e-9 * np.random.default_rng(1).permutation(200)[:, None] ** 1.5
    case = Case(line, names(np.arange(200) % 3), np.arange(200) % 40)
    found, _ = swept(case, "euclidean", sums=False)
    for protocol in found:
        expected = reference(case, "euclidean", protocol)
        assert np.array_equal(found[protocol]["rows"], expected["rows"])


def test_same_group_distances_leave_no_residue():
    """A sum minus its same-group part must not leave rounding where the rest is exactly zero."""
    rng = np.random.default_rng(2)
    spot, far = rng.normal(size=(1, 3)), 1e3 * rng.normal(size=(40, 3))
    vectors = np.vstack([np.repeat(spot, 12, axis=0), far])
    labels = np.array(list("ababababab") + ["a", "b"] + ["a", "b"] * 20)
    groups = np.array([0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4] + [0] * 40)
    for distance in ("euclidean", "cosine"):
        found, _ = swept(Case(vectors, labels, groups), distance)
        # Rows 0 to 3 meet only the spot across groups: every distance is 0.
        assert found["across_groups"]["own_mean"][:4].tolist() == [0.0] * 4
        assert found["across_groups"]["other_mean"][:4].tolist() == [0.0] * 4


def test_same_group_ranks_leave_no_residue():
    """The same with two dimensions under spearman, where every distance is 0 or 2: nothing contrived."""
    vectors = np.random.default_rng(0).normal(size=(8, 2))[[0, 1, 2, 3, 4, 6, 7]]
    case = Case(vectors, np.array(list("aabbaab")), np.array([0, 0, 1, 1, 1, 0, 0]))
    found, _ = swept(case, "spearman")
    expected = reference(case, "spearman", "across_groups")
    for name in ("own_mean", "other_mean"):
        assert np.array_equal(found["across_groups"][name] == 0, expected[name] == 0), name


def test_a_far_point_of_the_own_group_costs_the_others_no_digits():
    case = random(41, n=40, dims=20)
    vectors = case.vectors.copy()
    vectors[0] *= 1e9
    case = case._replace(vectors=vectors)
    found, _ = swept(case, "euclidean")
    assert_same(found["across_groups"], reference(case, "euclidean", "across_groups"))


@pytest.mark.parametrize("distance", DISTANCES)
def test_weights_give_class_means_of_resampled_rows(distance):
    case = random(42, n=140, dims=64)
    weights = np.random.default_rng(0).integers(0, 4, (5, 140))
    _, means = swept(case, distance, weights=weights)
    matrix = brute.distance_matrix(case.vectors, distance)
    for protocol, groups in (("all", None), ("across_groups", case.groups)):
        for b, row in enumerate([np.ones(140), *weights]):
            full = brute.class_pair_means(matrix, case.labels, groups, row)
            got = np.array([means[protocol, code][b] for code in range(len(full))])
            assert got == pytest.approx(full, rel=1e-9, nan_ok=True)


def test_points_without_labels():
    vectors = random(43, n=50, dims=9).vectors
    layout = one_class(50)
    found = sweep(spaces.prepare(vectors, "cosine", order=layout.order), layout, Wanted(5))["all"]
    lists = brute.neighbours(brute.distance_matrix(vectors, "cosine"), brute.pairs_allowed(50))
    assert found.neighbours.places.tolist() == [listed[:5].tolist() for listed in lists]


# --- the same to the last bit ---------------------------------------------------------------------


def everything(case, distance, **options):
    found, means = swept(case, distance, **options)
    flat = [found[protocol][name] for protocol in found for name in sorted(found[protocol])]
    return [*flat, *(means[key] for key in sorted(means))]


def awkward():
    """Three hundred rows with duplicates, zero vectors and near ties."""
    case = random(44, n=300, dims=33, classes=5, groups=40)
    vectors = case.vectors.copy()
    vectors[100:150] = vectors[:50]
    vectors[[7, 8]] = 0.0
    vectors[200:220] = vectors[200] * (1 + 1e-9 * np.arange(20))[:, None]
    return case._replace(vectors=vectors)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.usefixtures("several_threads")
def test_threads_and_memory_change_nothing(distance):
    case = awkward()
    here = everything(case, distance)
    for threads in (1, 2, 3):
        for memory in (1 << 20, 3 << 20, 1 << 34):
            there = everything(case, distance, threads=threads, memory=memory)
            assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(here, there, strict=True))


@pytest.mark.parametrize("width", [1, 7, 64, 100, 300, 4096])
@pytest.mark.parametrize("distance", DISTANCES)
def test_the_width_of_a_strip_changes_nothing(distance, width, monkeypatch):
    case = awkward()
    here = everything(case, distance), everything(case, distance, sums=False)
    monkeypatch.setattr(sweeping, "ORDER_COLUMNS", (width, width))
    there = everything(case, distance, threads=2), everything(case, distance, threads=2, sums=False)
    for a, b in zip(here, there, strict=True):
        assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("distance", DISTANCES)
def test_an_operand_made_strip_by_strip_changes_nothing(distance, monkeypatch):
    """Where there is no room for the right operand, its strips are made when they are needed."""
    case = awkward()
    here = everything(case, distance), everything(case, distance, sums=False)
    made = []
    monkeypatch.setattr(spaces.Strips, "__init__", lambda *given: made.append(given[0].__dict__.update(
        space=given[1], dtype=given[2])))  # fmt: skip
    there = (everything(case, distance, memory=200_000), everything(case, distance, memory=200_000, sums=False))
    assert len(made) >= 2
    for a, b in zip(here, there, strict=True):
        assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("distance", DISTANCES)
def test_what_else_is_wanted_changes_nothing(distance):
    """Neighbours and extremes are the same with and without sums, across groups or not, deep or shallow."""
    case = awkward()
    full = swept(case, distance)[0]["all"]
    for options in ({"sums": False}, {"across": False}, {"neighbours": 30}):
        other = swept(case, distance, **options)[0]["all"]
        assert np.array_equal(full["rows"], other["rows"][:, :7])
        assert np.array_equal(full["distances"], other["distances"][:, :7])
        assert np.array_equal(full["nearest_other"], other["nearest_other"], equal_nan=True)
        assert np.array_equal(full["farthest_same"], other["farthest_same"], equal_nan=True)


# --- some places ask, all may answer ---------------------------------------------------------------


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("distance", DISTANCES)
def test_a_place_that_asks_finds_what_it_finds_when_all_do(distance, across):
    case = awkward()
    layout = lay_out(*(np.unique(values, return_inverse=True)[1] for values in (case.labels, case.groups)))
    space = spaces.prepare(case.vectors, distance, order=layout.order)
    rows = np.random.default_rng(3).permutation(300)[:170]
    rows = rows[layout.codes[rows] != 2]
    means = {}
    wanted = Wanted(
        6, farthest=True, class_sums=True, across_groups=across, units=layout.groups, keep_sums=True,
        visit_class=lambda protocol, code, found: means.__setitem__((protocol, code), found[0]),
    )  # fmt: skip
    full = sweep(space, layout, replace(wanted, visit_class=None))
    some = sweep(space, layout, wanted, rows=rows, threads=2)
    rest = np.setdiff1d(np.arange(300), rows)
    for protocol, found in some.items():
        for name in ("nearest_other", "farthest_same", "second_other", "own_count", "nearest_unit"):
            assert np.array_equal(getattr(found, name)[rows], getattr(full[protocol], name)[rows], equal_nan=True)
        for mine, theirs in zip(found.neighbours, full[protocol].neighbours, strict=True):
            assert np.array_equal(mine[rows], theirs[rows], equal_nan=True)
        for name in ("own_mean", "other_mean"):
            expected = getattr(full[protocol], name)[rows]
            assert getattr(found, name)[rows] == pytest.approx(expected, rel=1e-12, nan_ok=True)
        assert found.class_sums == pytest.approx(full[protocol].class_sums[np.sort(rows)], rel=1e-12)
        assert (found.neighbours.places[rest] == -1).all()
        assert (found.nearest_unit[rest] == -1).all()
        for name in ("nearest_other", "farthest_same", "second_other", "own_mean", "own_count", "other_mean"):
            assert np.isnan(getattr(found, name)[rest]).all(), name
        matrix = brute.distance_matrix(case.vectors, distance)
        asked = np.zeros(300)
        asked[layout.order[rows]] = 1.0
        expected = brute.class_pair_means(matrix, case.labels, case.groups if protocol != "all" else None, asked)
        for code in range(layout.classes):
            if code == 2:
                assert (protocol, code) not in means
            else:
                assert means[protocol, code] == pytest.approx(expected[code], rel=1e-9, nan_ok=True)


def test_nobody_may_ask_and_nobody_from_elsewhere():
    layout = lay_out(np.array([0, 0, 1, 1]))
    space = spaces.prepare(np.eye(4), "cosine")
    found = sweep(space, layout, Wanted(1, class_sums=True), rows=np.array([], np.int64))["all"]
    assert (found.neighbours.places == -1).all()
    assert np.isnan(found.own_mean).all()
    with pytest.raises(UsageError, match="from 0 to 3"):
        sweep(space, layout, Wanted(1), rows=np.array([1, 4]))


# --- edges ----------------------------------------------------------------------------------------


def test_progress_counts_every_row_once():
    case, done = random(45, n=300, dims=9), []
    layout = lay_out(np.unique(case.labels, return_inverse=True)[1])
    space = spaces.prepare(case.vectors, "euclidean", order=layout.order)
    sweep(space, layout, Wanted(3, class_sums=True), threads=2, progress=done.append)
    assert sum(done) == 300


def test_across_groups_needs_groups():
    layout = lay_out(np.array([0, 0, 1, 1]))
    with pytest.raises(UsageError, match="across_groups"):
        sweep(spaces.prepare(np.eye(4), "cosine"), layout, Wanted(1, across_groups=True))


def test_workers_keep_the_order_of_their_items():
    for threads in (1, 2, 5):
        with Workers(threads) as workers:
            assert list(workers.map(lambda x: x * x, range(50))) == [x * x for x in range(50)]


def test_workers_pass_on_what_went_wrong():
    with Workers(2) as workers, pytest.raises(ZeroDivisionError):
        list(workers.map(lambda x: 1 // x, [1, 0, 1]))


def test_thread_counts():
    assert thread_count(3) == 3
    assert thread_count(None) >= 1
    with pytest.raises(UsageError, match="at least 1"):
        thread_count(0)
