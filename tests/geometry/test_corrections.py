"""Corrected distances stream: the sweep finds what the rewritten matrix holds, whatever the tiles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from tests import brute, corrected
from tests.cases import CASES, DISTANCES, Case, names, random

import earmark
from earmark.errors import InputError, UsageError
from earmark.geometry import pair_kernels, spaces
from earmark.geometry import sweep as sweeping
from earmark.geometry.corrections import (
    CORRECTIONS,
    Correction,
    Neighbourhoods,
    factors_of,
    on_sphere,
    parse,
    parse_all,
)
from earmark.geometry.layout import lay_out, one_class
from earmark.geometry.sweep import Wanted, sweep

RESCALING = ("ls", "nicdm", "icdm", "csls", "mp", "dsl")
SIGNED = ("csls", "dsl")
AWKWARD = ("duplicates", "collapsed_class", "one_hot", "zero_vectors", "offset_1000_float32", "outlier")


def swept(case, distance, text, *, neighbours=7, threads=1, memory=2 << 30):
    """Sweep a case under a correction: {protocol: {quantity: values by original row}}."""
    correction = parse(text)
    layout = lay_out(np.unique(case.labels, return_inverse=True)[1], np.unique(case.groups, return_inverse=True)[1])
    space = spaces.prepare(case.vectors, distance, order=layout.order)
    factors = factors_of(correction, Neighbourhoods(space, layout, [correction], threads=threads, memory=memory))
    wanted = Wanted(neighbours, not correction.signed, not correction.signed, across_groups=True)
    found = sweep(space, layout, wanted, factors=factors, threads=threads, memory=memory)
    results = {}
    for protocol, one in found.items():
        places = layout.to_rows(one.neighbours.places)
        results[protocol] = {"rows": np.where(places >= 0, layout.order[places], -1)} | {
            name: layout.to_rows(values)
            for name, values in (
                ("distances", one.neighbours.distances),
                ("nearest_other", one.nearest_other),
                ("own_mean", one.own_mean),
                ("farthest_same", one.farthest_same),
                ("other_mean", one.other_mean),
            )
        }
    return results


def assert_equal_to(matrix, case, found, groups, signed):
    """Neighbours by value (and by row where no other value is close), extremes and class means."""
    allowed = brute.pairs_allowed(len(matrix), groups)
    width = found["rows"].shape[1]
    size = 1.0 + np.abs(matrix[np.isfinite(matrix)]).max()
    for i, listed in enumerate(brute.neighbours(matrix, allowed)):
        expected = np.full(width, np.nan)
        expected[: len(listed[:width])] = matrix[i, listed[:width]]
        assert found["distances"][i] == pytest.approx(expected, rel=1e-9, abs=1e-9 * size, nan_ok=True)
        rows = found["rows"][i][found["rows"][i] >= 0]
        assert len(set(rows)) == len(rows) == len(listed[:width])
        assert allowed[i, rows].all()
        assert matrix[i, rows] == pytest.approx(expected[: len(rows)], rel=1e-9, abs=1e-9 * size)
        gaps = np.diff(matrix[i, listed[: width + 1]])
        if (gaps > 1e-9 * size).all():
            assert rows.tolist() == listed[:width].tolist()
    if signed:
        return
    parts = brute.point_parts(matrix, case.labels, groups)
    for name, expected in zip(("nearest_other", "own_mean", "farthest_same", "other_mean"), parts, strict=True):
        assert found[name] == pytest.approx(expected, rel=1e-9, abs=1e-9, nan_ok=True), name


# --- the rewritten matrix -------------------------------------------------------------------------


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("text", [*RESCALING, "icdm:k=4,iterations=2", "ls:k=1", "dsl:k=40"])
def test_streamed_equals_rewritten(text, distance):
    case, correction = random(60, n=150, dims=24, groups=30), parse(text)
    matrix = corrected.matrix(case.vectors, distance, correction.name, correction.k, correction.iterations)
    found = swept(case, distance, text)
    assert_equal_to(matrix, case, found["all"], None, correction.signed)
    assert_equal_to(matrix, case, found["across_groups"], case.groups, correction.signed)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("text", RESCALING)
def test_awkward_points(text, name, distance):
    """Duplicates, ties, collapsed classes, vectors without direction, offsets, outliers: never NaN or infinity."""
    case = CASES[name]()
    matrix = corrected.matrix(case.vectors, distance, text)
    found = swept(case, distance, text)["all"]
    assert np.isfinite(found["distances"]).all()
    assert_equal_to(matrix, case, found, None, text in SIGNED)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("text", ["icdm", "mp", "dsl"])
def test_more_dimensions_than_points(text, distance):
    """Such points are rotated into fewer dimensions first; close pairs must not feel it."""
    case = random(61, n=40, dims=300)
    vectors = case.vectors.copy()
    vectors[20:30] = vectors[:10] + 1e-7 * np.random.default_rng(0).normal(size=(10, 300))
    case = case._replace(vectors=vectors)
    found = swept(case, distance, text)["all"]
    assert_equal_to(corrected.matrix(vectors, distance, text), case, found, None, text in SIGNED)


def test_the_normal_tail_keeps_its_digits():
    z = np.concatenate([np.linspace(-35, 60, 400), [-1e3, 1e5]])
    found = np.array([pair_kernels.surprise(value) for value in z])
    # log SF of SciPy is -0.0 where SF rounds to 1: there the lower tail is the answer.
    expected = np.where(z < -5, norm.cdf(z), -norm.logsf(z))
    assert found == pytest.approx(expected, rel=1e-10)
    assert (np.diff(found[:400]) > 0).all()


# --- laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["ls", "nicdm", "icdm", "mp"])
def test_the_unit_of_the_vectors_does_not_matter(text):
    case = random(62, n=120, dims=30)
    here = swept(case, "euclidean", text)["all"]
    for unit in (2.0**-40, 3.7e5):
        there = swept(case._replace(vectors=case.vectors * unit), "euclidean", text)["all"]
        assert np.array_equal(here["rows"], there["rows"])


@pytest.mark.parametrize("text", RESCALING)
def test_labels_play_no_part_and_rows_may_come_in_any_order(text):
    case = random(63, n=90, dims=20)
    here = swept(case, "cosine", text)["all"]
    relabelled = case._replace(labels=names(np.random.default_rng(0).integers(0, 3, 90)))
    assert np.array_equal(here["rows"], swept(relabelled, "cosine", text)["all"]["rows"])
    order = np.random.default_rng(1).permutation(90)
    there = swept(Case(*(part[order] for part in case)), "cosine", text)["all"]
    assert np.array_equal(here["rows"][order], order[there["rows"]])


@pytest.mark.parametrize("text", SIGNED)
@pytest.mark.parametrize("off", [1e6, 1e8, 1e12])
def test_one_point_far_out_blurs_no_other(text, off):
    """Differences are ordered by what the two points make of them, in whatever order the rows come."""
    case = random(68, n=90, dims=20)
    alone = swept(case, "euclidean", text)["all"]["rows"]
    vectors = np.vstack([case.vectors, case.vectors[:1]]).astype(np.float64)
    vectors[90, 1] += off
    crowd = Case(vectors, np.append(case.labels, case.labels[:1]), np.append(case.groups, case.groups[:1]))
    found = swept(crowd, "euclidean", text, neighbours=8)["all"]["rows"]

    def without_it(lists):
        """The far point may be anybody's neighbour, and to itself the others are alike: only they keep an order."""
        return [[row for row in rows if row != 90][:7] for rows in lists[:90].tolist()]

    assert without_it(found) == alone.tolist()
    order = np.random.default_rng(3).permutation(91)
    there = swept(Case(*(part[order] for part in crowd)), "euclidean", text, neighbours=8)["all"]["rows"]
    assert without_it(order[there][np.argsort(order)]) == alone.tolist()


@pytest.mark.parametrize("text", SIGNED)
def test_points_of_all_sizes_are_ordered_by_their_difference(text):
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(60, 6)) * 10.0 ** rng.uniform(-20, 20, (60, 1))
    case = Case(vectors, names(np.arange(60) % 3), np.arange(60))
    found = swept(case, "euclidean", text)["all"]["rows"]
    d = np.array([[np.linalg.norm(a - b) for b in vectors] for a in vectors])
    near = np.argsort(d, axis=1)[:, 1:11]
    if text == "csls":
        plus, minus = 2 * d, np.take_along_axis(d, near, axis=1).mean(axis=1)
    else:
        plus, minus = d**2, ((vectors - vectors[near].mean(axis=1)) ** 2).sum(axis=1)
    key, blur = plus - minus, 1e-11 * (plus + minus)
    for i, rows in enumerate(found):
        low, high = key[i] - blur[i], key[i] + blur[i]
        assert (high[rows[1:]] >= low[rows[:-1]]).all()
        left_out = np.setdiff1d(np.arange(60), [*rows, i])
        assert (high[left_out] >= low[rows[-1]]).all()


def test_one_iteration_of_icdm_is_nicdm():
    case = random(64, n=80)
    one, other = (swept(case, "euclidean", text)["all"] for text in ("icdm:iterations=1", "nicdm"))
    assert np.array_equal(one["rows"], other["rows"])
    assert one["distances"] == pytest.approx(other["distances"], rel=1e-12)


def test_the_euclidean_sphere_has_the_neighbours_of_the_cosine():
    vectors = random(65, n=80).vectors * np.random.default_rng(0).lognormal(size=(80, 1))
    sphere = earmark.hubness(vectors, distance="euclidean", correct="sphere", per_point=True)
    cosine = earmark.hubness(vectors, distance="cosine", per_point=True)
    key = ("all", "hub_ratio")
    assert np.array_equal(sphere.per_point["euclidean", "sphere", *key], cosine.per_point["cosine", "none", *key])


def test_vectors_of_any_size_fall_on_the_sphere():
    lengths = np.linalg.norm(on_sphere(np.array([[3e200, 4e200], [3e-200, 4e-200], [-3.0, 4.0], [0.0, 0.0]])), axis=1)
    assert lengths == pytest.approx([1, 1, 1, 0])


def test_points_in_one_place_are_left_alone():
    """Every radius is 0: nothing is corrected, and no distance is NaN."""
    vectors = np.ones((30, 4))
    for correction in earmark.hubness(vectors, distance="euclidean", correct=CORRECTIONS).rows:
        assert correction.status == "ok", correction
        assert np.isfinite(correction.value)


def test_values_at_the_end_of_float64_are_refused():
    vectors = random(66, n=30, dims=3).vectors * 1e160
    assert earmark.hubness(vectors, distance="euclidean").rows[0].status == "ok"
    with pytest.raises(InputError, match="rescale"):
        earmark.hubness(vectors, distance="euclidean", correct="dsl")


# --- the same to the last bit ---------------------------------------------------------------------


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
@pytest.mark.parametrize("text", RESCALING)
@pytest.mark.usefixtures("several_threads")
def test_threads_memory_and_strips_change_nothing(text, distance, monkeypatch):
    case = random(67, n=300, dims=33, classes=5, groups=40)
    vectors = case.vectors.copy()
    vectors[100:150], vectors[[7, 8]] = vectors[:50], 0.0
    vectors[200:220] = vectors[200] * (1 + 1e-9 * np.arange(20))[:, None]
    case = case._replace(vectors=vectors)
    here = swept(case, distance, text)
    monkeypatch.setattr(sweeping, "ORDER_COLUMNS", (64, 64))
    there = swept(case, distance, text, threads=3, memory=1 << 20)
    for protocol, found in here.items():
        for name, values in found.items():
            assert np.array_equal(values, there[protocol][name], equal_nan=True), name


def test_a_near_tie_is_decided_by_its_pair():
    """Steps far below the precision of a product: the order of the exact distances is found all the same."""
    line = np.sort(np.random.default_rng(2).normal(size=120))[:, None] * [[1.0, 1e-9]]
    case = Case(line + 1e3, names(np.arange(120) % 3), np.arange(120) % 40)
    found = swept(case, "euclidean", "nicdm", neighbours=5)["all"]
    assert_equal_to(corrected.matrix(case.vectors, "euclidean", "nicdm"), case, found, None, signed=False)


def test_differences_have_no_sums():
    layout = one_class(30)
    space = spaces.prepare(random(n=30).vectors, "cosine", order=layout.order)
    factors = factors_of(Correction("csls"), Neighbourhoods(space, layout, [Correction("csls")]))
    with pytest.raises(UsageError, match="only neighbours"):
        sweep(space, layout, Wanted(3, class_sums=True), factors=factors)


# --- what corrections do to hubs (formula sheet, section 6d) ----------------------------------------


def mixture(dims, rng):
    """Ten clusters of unlike size and width."""
    which = rng.choice(10, 1500, p=np.arange(1, 11) / 55)
    centres, widths = rng.normal(size=(10, dims)), rng.uniform(0.5, 2.0, 10)
    return centres[which] + widths[which, None] * rng.normal(size=(1500, dims))


SHAPES = {
    "mixture in 100 dimensions": lambda rng: mixture(100, rng),
    "mixture in 300 dimensions": lambda rng: mixture(300, rng),
    "plain Gaussian": lambda rng: rng.normal(size=(1500, 100)),
    "radially scaled Gaussian": lambda rng: rng.normal(size=(1500, 100)) * rng.uniform(0.5, 2.0, (1500, 1)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_icdm_leaves_the_fewest_hubs(name):
    vectors = SHAPES[name](np.random.default_rng(0)).astype(np.float32)
    scores = earmark.hubness(vectors, distance="euclidean", correct=CORRECTIONS)
    ratio = {row.correction: row.value for row in scores.select(metric="hub_ratio")}
    assert min(ratio, key=ratio.get) == "icdm", ratio
    assert ratio["icdm"] < 2 < ratio["none"]
    assert max(ratio["ls"], ratio["nicdm"], ratio["csls"], ratio["mp"]) < ratio["none"]


# --- names ----------------------------------------------------------------------------------------


def test_spellings():
    assert parse("icdm") == Correction("icdm", 10, 10)
    assert parse(" ICDM:k=20, iterations=5 ") == Correction("icdm", 20, 5)
    assert [str(one) for one in parse_all("none,icdm:k=20,iterations=5,mp")] == ["none", "icdm:k=20,iterations=5", "mp"]
    assert [str(one) for one in parse_all(["ls:k=10", "ls", Correction("dsl", 3)])] == ["ls", "dsl:k=3"]
    for text in ("icdm:k=20", "icdm:iterations=5", "nicdm:k=3", "sphere"):
        assert str(parse(text)) == text


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("idcm", 'Did you mean "icdm"'),
        ("icdm:q=3", "it takes k and iterations"),
        ("icdm:k=0", "k of the correction icdm must be at least 1"),
        ("icdm:k", "no parameter"),
        ("mp:k=3", "takes no parameters"),
        ("", "No correction"),
        ([], "No correction"),
        (5, "name or a list"),
        ([5], "name or a list"),
    ],
)
def test_misspellings_are_one_sentence(given, words):
    with pytest.raises(UsageError, match=words) as caught:
        parse_all(given)
    assert "\n" not in str(caught.value)
