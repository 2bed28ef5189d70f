"""A sample of queries estimates what all clips would give: against enumeration, the slow reference, and simulation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from tests import brute
from tests.cases import CASES, DISTANCES, random

from earmark import compare, evaluate
from earmark.calibrate import sample as sampling
from earmark.calibrate.deletions import depth_needed, units_of
from earmark.calibrate.sampled_deletions import leave_out
from earmark.calibrate.sampled_pairs import estimated_means, exact_means, share_metrics
from earmark.errors import InputError, UsageError
from earmark.geometry import hubness, spaces
from earmark.geometry.class_means import ClassMeans
from earmark.geometry.layout import lay_out
from earmark.geometry.sweep import Wanted, sweep
from earmark.metrics import separation
from earmark.submissions._documents import Document
from earmark.submissions.rules import check

MEANS = ("P@1", "P@5", "GSR", "CSR_pointwise", "silhouette")
ABSENT = ("hub_ratio", "antihub_rate", "robin_hood")


def clips(seed, n=200, classes=8, dims=5, groups=0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes)
    vectors = np.random.default_rng(1).normal(size=(classes, dims))[labels] + rng.normal(size=(n, dims))
    if not groups:
        return vectors, labels, None
    of = rng.permutation(np.arange(n) % groups)
    return vectors + 0.6 * rng.normal(size=(groups, dims))[of], labels, of


# --- the draw ---------------------------------------------------------------------------------------------


def test_a_draw_is_blind_to_labels_and_tops_up_small_classes():
    codes = np.repeat([0, 1, 2], [180, 15, 5])
    layout, other = lay_out(codes), lay_out(np.roll(codes, 60))
    sample = sampling.draw(layout, 40, 0)
    assert sample.size == 40
    assert np.array_equal(np.sort(layout.order[sample.base]), np.sort(other.order[sampling.draw(other, 40, 0).base]))
    assert (sample.asked >= 2).all()
    assert sample.covers_classes
    assert set(np.flatnonzero(sample.base)) <= set(sample.rows)
    assert not np.array_equal(sample.base, sampling.draw(layout, 40, 1).base)
    assert np.array_equal(sampling.draw(layout, 40, 0, by_class=False).rows, np.flatnonzero(sample.base))
    assert sampling.draw(layout, 200, 0) is None
    assert sampling.draw(layout, 0, 0) is None


def test_every_clip_is_drawn_as_often_as_any_other():
    layout = lay_out(np.repeat([0, 1, 2], [3, 5, 12]))
    drawn = np.mean([sampling.draw(layout, 6, seed).base for seed in range(3000)], axis=0)
    assert drawn == pytest.approx(0.3, abs=0.035)


def test_more_queries_than_clips_are_all_of_them():
    vectors, labels, _ = clips(0, 60)
    exact, all_ask = evaluate(vectors, labels), evaluate(vectors, labels, queries=60)
    assert [(row.value, row.low, row.high, row.reason) for row in exact] == [
        (row.value, row.low, row.high, row.reason) for row in all_ask
    ]
    assert all(
        row.inputs == other.inputs for row, other in zip(exact, evaluate(vectors, labels, queries=0), strict=True)
    )


# --- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", DISTANCES)
def test_means_are_means_over_the_clips_drawn(distance):
    vectors, labels, groups = clips(3, 120, groups=15)
    options = {"groups": groups, "across_groups": True, "distance": distance, "per_point": True}
    exact = evaluate(vectors, labels, **options)
    found = evaluate(vectors, labels, queries=50, seed=4, **options)
    for protocol in ("all", "across_groups"):
        for metric in MEANS:
            key = (distance, "none", protocol, metric)
            asked = np.isfinite(found.per_point[key])
            row = found.row(metric, protocol=protocol)
            assert asked.sum() == row.n == 50
            assert found.per_point[key][asked] == pytest.approx(exact.per_point[key][asked], rel=1e-12)
            assert row.value == pytest.approx(exact.per_point[key][asked].mean(), rel=1e-12)
            assert "50 of 120 clips drawn as queries (seed 4)" in row.reason


def test_moments_of_hubness_are_unbiased_over_all_samples():
    n, k = 8, 2
    rng = np.random.default_rng(0)
    lists = np.array([rng.permutation(np.delete(np.arange(n), i))[:k] for i in range(n)])
    lists[~(lists == 3).any(axis=1) & (np.arange(n) != 3), 0] = 3  # a hub
    true = hubness.k_occurrences(lists, k)
    found = []
    for chosen in combinations(range(n), 4):
        seen = np.bincount(lists[list(chosen)].ravel(), minlength=n).astype(float)
        sums = seen.sum(), (seen * (seen - 1)).sum(), (seen * (seen - 1) * (seen - 2)).sum()
        found.append(hubness.sampled_moments(*sums, 4.0, 8.0))
    deviation = true - true.mean()
    assert np.mean(found, axis=0) == pytest.approx([2.0, (deviation**2).mean(), (deviation**3).mean()])
    assert hubness.sampled_skew(lists, n) == pytest.approx(hubness.hub_skew(true))
    assert np.isnan(hubness.sampled_skew(lists[:2], n))


@pytest.mark.parametrize("distance", ["cosine", "spearman"])
@pytest.mark.parametrize(
    "name", ["random", "duplicates", "collapsed_class", "zero_vectors", "imbalance", "offset_1000"]
)
def test_means_of_classes_need_no_pairs(name, distance):
    case = CASES[name]()
    codes = np.unique(case.labels, return_inverse=True)[1]
    layout = lay_out(codes)
    means = ClassMeans.of(spaces.prepare(case.vectors, distance, order=layout.order), layout)
    expected = brute.class_pair_means(brute.distance_matrix(case.vectors, distance), case.labels)
    assert means.intra == pytest.approx(np.diag(expected), rel=1e-7, abs=1e-13, nan_ok=True)
    inter = means.inter(np.arange(layout.classes))
    np.fill_diagonal(expected, np.nan)
    assert inter == pytest.approx(expected, rel=1e-9, abs=1e-13, nan_ok=True)


def test_cs_and_cscf_are_exact_where_means_of_vectors_decide():
    vectors, labels, _ = clips(5)
    exact, found = evaluate(vectors, labels), evaluate(vectors, labels, queries=60)
    for metric in ("CS", "CSCF"):
        assert found.value(metric) == pytest.approx(exact.value(metric), rel=1e-10)
        assert found.row(metric).n == 200
        assert "exact" in found.row(metric).reason


def test_estimates_of_class_means_lose_their_bias():
    """Over many draws of one collection the mean estimate is the exact value, to its Monte-Carlo error."""
    vectors, labels, groups = clips(6, 150, classes=6, groups=15)
    options = {"distance": "euclidean", "groups": groups, "across_groups": True, "metrics": "CSR,CS,GSR,P@1"}
    exact = evaluate(vectors, labels, intervals="none", **options)
    draws = [
        evaluate(vectors, labels, intervals="none", queries=24, seed=seed, threads=1, **options) for seed in range(150)
    ]
    for row in exact:
        estimates = np.array([draw.value(row.metric, protocol=row.protocol) for draw in draws])
        error = estimates.std(ddof=1) / len(draws) ** 0.5
        assert abs(estimates.mean() - row.value) < 3.7 * error, (row.protocol, row.metric)
        assert error < 0.01


def test_csr_of_a_whole_class_is_csr():
    vectors, labels, _ = clips(7, 90)
    distances = brute.distance_matrix(vectors, "euclidean")
    near, _, far, _ = brute.point_parts(distances, labels)
    sizes = np.bincount(labels).astype(float)
    expected = evaluate(vectors, labels, distance="euclidean").value("CSR")
    assert separation.sampled_csr(near, far, labels, sizes, sizes) == pytest.approx(expected)
    assert np.isnan(separation.sampled_csr(near * np.nan, far, labels, sizes, sizes))


# --- values without each unit -----------------------------------------------------------------------------


def swept_sample(case, distance, grouped, queries):
    codes = np.unique(case.labels, return_inverse=True)[1]
    groups = np.unique(case.groups, return_inverse=True)[1] if grouped else None
    layout = lay_out(codes, groups)
    units = units_of(layout)
    space = spaces.prepare(case.vectors, distance, order=layout.order)
    sample = sampling.draw(layout, queries, 0)
    wanted = Wanted(
        depth_needed(5, units), farthest=True, class_sums=True, across_groups=grouped, units=units.of, keep_sums=True
    )
    return space, layout, units, sample, sweep(space, layout, wanted, rows=sample.rows)


def slow_values(distances, codes, base, asking, kept, groups):
    """The metrics of a sample from the matrix, of the rows kept."""
    part = distances[np.ix_(kept, kept)]
    labels, base, asking = codes[kept], base[kept], asking[kept]
    barred = None if groups is None else groups[kept]
    points = brute.point_values(part, labels, barred)
    found = {metric: np.nanmean(np.asarray(points[metric])[base]) for metric in MEANS}
    near, _, far, _ = brute.point_parts(part, labels, barred)
    total = weight = 0.0
    for code in np.unique(labels):
        mine = (labels == code) & asking
        valid = mine & np.isfinite(near) & np.isfinite(far)
        if valid.any():
            size = (labels == code).sum() * valid.sum() / mine.sum()
            total += size * brute.balance(near[valid].mean(), far[valid].mean())
            weight += size
    found["CSR"] = total / weight
    lists = brute.neighbours(part, brute.pairs_allowed(len(kept), barred))
    listed = np.array([[*row[:5], *[-1] * 5][:5] for row in lists])
    found["hub_skew"] = hubness.sampled_skew(listed[base], len(kept), sure=0.0)
    return found


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
@pytest.mark.parametrize("name", ["random", "duplicates", "classes_of_two", "zero_vectors", "imbalance"])
def test_values_without_each_unit_are_those_of_the_rest(name, distance, grouped):
    case = CASES[name]()
    keep = brute.kept_rows(case.labels)
    case = case._replace(vectors=case.vectors[keep], labels=case.labels[keep], groups=np.asarray(case.groups)[keep])
    space, layout, units, sample, swept = swept_sample(case, distance, grouped, max(12, len(keep) // 2))
    metrics = ("GSR", "CSR", "CSR_pointwise", "silhouette", "hub_skew")
    found = leave_out(space, layout, swept, sample, units, metrics, (1, 5), hub_k=5, threads=2)
    distances = brute.distance_matrix(case.vectors, distance)
    codes, base, of, places = (layout.to_rows(v) for v in (layout.codes, sample.base, units.of, np.arange(layout.n)))
    asking = np.isin(places, sample.rows)
    groups = layout.to_rows(layout.groups) if grouped else None
    chosen = np.random.default_rng(1).choice(len(units), min(8, len(units)), replace=False)
    for protocol, values in found.items():
        assert set(values) == {*metrics, "P@1", "P@5"}
        for unit in chosen:
            kept = np.flatnonzero(of != unit)
            if len(set(codes[kept])) < 2 or not base[kept].any():
                continue
            expected = slow_values(distances, codes, base, asking, kept, groups if protocol != "all" else None)
            for metric, without in values.items():
                want = expected[metric]
                assert without[unit] == pytest.approx(want, rel=1e-7, abs=1e-9, nan_ok=True), (protocol, metric)


def pair_means(distances, codes, asking, groups=None):
    """Mean distances inside and between classes, those between from the queries of both."""
    classes = codes.max() + 1
    allowed = brute.pairs_allowed(len(codes), groups) & asking[:, None]
    totals, counts = np.zeros((classes, classes)), np.zeros((classes, classes))
    for a in range(classes):
        for b in range(classes):
            pairs = allowed & (codes[:, None] == a) & (codes[None, :] == b)
            totals[a, b], counts[a, b] = distances[pairs].sum(), pairs.sum()
    intra = np.diag(totals) / np.diag(counts)
    means = (totals + totals.T) / (counts + counts.T)
    np.fill_diagonal(means, intra)
    return means


@pytest.mark.parametrize("grouped", [False, True])
def test_cs_of_a_sample_and_what_each_query_changes(grouped):
    case = random(8, n=60, dims=6, classes=4, groups=12)
    _, layout, _, sample, swept = swept_sample(case, "euclidean", grouped, 30)
    protocol = "across_groups" if grouped else "all"
    means = estimated_means(layout, swept[protocol], sample, protocol)
    found = share_metrics(layout, sample, means, threads=1, jackknife=True)["CS"]
    distances = brute.distance_matrix(case.vectors[layout.order], "euclidean")
    asking = np.isin(np.arange(60), sample.rows)
    value = brute.cs_and_cscf(pair_means(distances, layout.codes, asking, layout.groups))[0]
    without = []
    for row in sample.rows:
        rest = asking.copy()
        rest[row] = False
        without.append(brute.cs_and_cscf(pair_means(distances, layout.codes, rest, layout.groups))[0])
    codes, sizes = layout.codes[sample.rows], layout.sizes
    bias = sum(
        (1 - sample.asked[code] / sizes[code])
        * (sample.asked[code] - 1)
        * (np.mean([value_ for value_, c in zip(without, codes, strict=True) if c == code]) - value)
        for code in range(4)
    )
    assert found.value == pytest.approx(value - bias, rel=1e-9)
    assert np.isfinite(found.without).all()
    assert (found.without[~asking] == found.value).all()


def test_every_clip_as_a_query_gives_the_error_of_the_exact_jackknife():
    vectors, labels, _ = clips(9, 120)
    layout = lay_out(labels)
    everyone = sampling.Sample(layout, np.ones(120, bool), np.arange(120))
    for distance in ("cosine", "euclidean"):
        space = spaces.prepare(vectors, distance, order=layout.order)
        if distance == "cosine":
            means = exact_means(space, layout)
        else:
            swept = sweep(space, layout, Wanted(1, class_sums=True, keep_sums=True))["all"]
            means = estimated_means(layout, swept, everyone, "all")
        found = share_metrics(layout, everyone, means, threads=2, jackknife=True)
        exact = evaluate(vectors, labels, distance=distance, per_unit=True)
        for metric in ("CS", "CSCF") if distance == "cosine" else ("CS",):
            without = layout.to_rows(found[metric].without)
            expected = exact.per_unit[distance, "none", "all", metric]
            slack = 1e-10 if distance == "cosine" else 2e-5
            assert without - without.mean() == pytest.approx(expected - expected.mean(), abs=slack)


# --- intervals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [0, 16])
def test_intervals_hold_the_value_of_all_clips_and_that_of_other_clips(groups):
    """Short form of the tables of docs/large.md, with wide limits."""
    sets, metrics = 40, "P@1,P@5,GSR,CSR,CS,silhouette"
    options = {"distance": "euclidean", "metrics": metrics, "threads": 1}
    full, rows = [], []
    for seed in range(sets):
        vectors, labels, of = clips(seed, 200, groups=groups)
        full.append(evaluate(vectors, labels, groups=of, intervals="none", **options))
        rows.append(evaluate(vectors, labels, groups=of, queries=60, seed=seed, **options))
    for metric in metrics.split(","):
        exact = np.array([scores.value(metric) for scores in full])
        found = [scores.row(metric) for scores in rows]
        if metric == "CS" and groups:
            assert all(row.low is None and "leaving out a group" in row.reason for row in found)
            continue
        low, high = (np.array([getattr(row, end) for row in found]) for end in ("low", "high"))
        assert ((low <= exact) & (exact <= high)).mean() >= 0.85, metric
        assert ((low <= exact.mean()) & (exact.mean() <= high)).mean() >= 0.85, metric
        assert {row.units for row in found} == {groups or 60}


def test_all_right_is_not_certain_of_more_clips_than_asked():
    vectors = np.repeat(np.eye(6), 50, axis=0) + 0.01 * np.random.default_rng(0).normal(size=(300, 6))
    labels = np.repeat(np.arange(6), 50)
    few, many = (evaluate(vectors, labels, queries=queries, metrics="P@1").row("P@1") for queries in (20, 200))
    assert few.value == many.value == few.high == 1.0
    assert few.low < 0.9 < many.low


def test_differences_of_systems_under_a_sample():
    sets, rejected = 40, []
    for seed in range(sets):
        vectors, labels, _ = clips(seed, 160)
        rng = np.random.default_rng(seed)
        equal = {name: vectors + 0.5 * rng.normal(size=vectors.shape) for name in "ab"}
        rows = compare(equal, labels, metrics="P@5,GSR,CS", distance="euclidean", queries=60, seed=seed, threads=1)
        rejected.append([row.p_value < 0.05 for row in rows])
    assert (np.mean(rejected, axis=0) <= 0.12).all()
    vectors, labels, _ = clips(0, 160)
    better = compare(vectors, np.random.default_rng(0).normal(size=vectors.shape), labels, queries=80)
    assert better.row("P@5:difference").p_value < 0.01
    assert better.row("P@5:difference").units == 80


def test_the_baseline_is_that_of_the_queries():
    vectors, labels, _ = clips(11)
    exact = evaluate(vectors, labels, permutations=60)
    found = evaluate(vectors, labels, permutations=60, queries=80)
    for metric in MEANS:
        row = found.row(metric)
        assert row.baseline == pytest.approx(exact.row(metric).baseline, abs=0.02)
        assert row.p_value == pytest.approx(1 / 61)
    for metric in ("CSR", "CS"):
        assert found.row(metric).baseline is None
        assert "no baseline" in found.row(metric).reason
    shuffled = [
        evaluate(vectors, np.random.default_rng(s).permutation(labels), permutations=19, queries=40, metrics="P@5,GSR")
        for s in range(60)
    ]
    for metric in ("P@5", "GSR"):
        assert np.mean([scores.row(metric).p_value <= 0.05 for scores in shuffled]) <= 0.15


# --- what a sample cannot give, and odd input -------------------------------------------------------------


def test_what_a_sample_cannot_give_says_so():
    vectors, labels, _ = clips(12)
    found = evaluate(vectors, labels, distance="euclidean", queries=50)
    for metric in ABSENT:
        assert found.row(metric).status == "not_applicable"
        assert "50 of 200" in found.row(metric).reason
    assert "without bias" in found.row("CSCF").reason
    few = evaluate(vectors, labels, distance="euclidean", queries=10)
    for metric in ("CSR", "CS", "CSCF"):
        assert "draw at least 16" in few.row(metric).reason
    assert evaluate(vectors, labels, queries=10).row("CS").status == "ok"
    small = evaluate(vectors, labels, distance="euclidean", queries=50, memory="1MB")
    assert small.row("CS").status == "ok"
    assert few.row("P@1").n == 10


def test_class_sums_that_do_not_fit_are_not_kept():
    vectors, labels, _ = clips(12, 1200, classes=150)
    found = evaluate(vectors, labels, distance="euclidean", queries=400, memory="1MB", metrics="CS,silhouette,CSR")
    assert "do not fit" in found.row("CS").reason
    assert "do not fit" in found.row("silhouette").reason
    assert found.row("silhouette").value is not None
    assert found.row("CSR").low is not None


@pytest.mark.parametrize("given", [-1, 2.5, "many", True])
def test_a_number_of_queries_is_a_whole_one(given):
    vectors, labels, _ = clips(0, 30)
    with pytest.raises(UsageError, match="queries must be"):
        evaluate(vectors, labels, queries=given)


def test_a_bootstrap_draws_its_own_queries():
    vectors, labels, _ = clips(0, 30)
    with pytest.raises(UsageError, match="queries goes with"):
        evaluate(vectors, labels, queries=10, bootstrap=100)


@pytest.mark.parametrize("queries", [1, 2, 3, 5])
def test_few_queries(queries):
    vectors, labels, groups = clips(13, 40, groups=8)
    for of in (None, groups):
        for distance in ("cosine", "euclidean"):
            rows = evaluate(
                vectors, labels, groups=of, across_groups=of is not None, distance=distance, queries=queries,
                permutations=5,
            )  # fmt: skip
            for row in rows:
                assert row.value is None or np.isfinite(row.value)
                assert row.low is None or row.low <= row.value <= row.high
            assert rows.row("P@1", protocol="all").n == queries


@pytest.mark.parametrize(
    "name", ["two_classes", "duplicates", "one_hot", "zero_vectors", "one_big_group", "two_places"]
)
@pytest.mark.parametrize("correct", ["none", "nicdm"])
def test_odd_collections(name, correct):
    case = CASES[name]()
    for distance in ("cosine", "euclidean"):
        try:
            rows = evaluate(
                case.vectors, case.labels, groups=case.groups, across_groups=True, distance=distance, correct=correct,
                queries=20,
            )  # fmt: skip
        except InputError:
            continue
        for row in rows:
            assert row.value is None or np.isfinite(row.value), row
            assert row.value is not None or row.reason


def test_hubness_of_too_few_lists_is_no_number():
    """Divided by a variance that came out near nothing, it was 6045 where 15.7 is the largest there can be."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 8, 249)
    vectors = rng.normal(size=(8, 5))[labels] + rng.normal(size=(249, 5))
    rows = [
        evaluate(vectors, labels, metrics="hub_skew", queries=queries, seed=seed, threads=1).row("hub_skew")
        for queries in (20, 40, 120)
        for seed in range(8)
    ]
    assert {row.status for row in rows} == {"ok", "not_applicable"}
    assert all("draw more" in row.reason for row in rows if row.status == "not_applicable")
    assert all(abs(row.value) < 247 / 248**0.5 for row in rows if row.status == "ok")


def test_a_board_takes_no_score_of_a_sample():
    rng = np.random.default_rng(0)
    scores = evaluate(
        rng.normal(size=(60, 4)), rng.integers(0, 3, 60), metrics="P@1", queries=20, system="a", subset="b"
    )
    problems = check(Document.of(scores, board="mine")).problems
    assert [problem.code for problem in problems] == ["sampled"]
    assert "another seed" in problems[0].message
