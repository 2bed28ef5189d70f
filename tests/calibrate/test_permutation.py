"""The null of every calibrated metric: each shuffle's value is the plain metric of the shuffled labels."""

from __future__ import annotations

import numpy as np
import pytest
from tests import brute
from tests.cases import CASES, DISTANCES, Case, names, random

import earmark
from earmark.calibrate import permutation
from earmark.calibrate._arrangements import scheme_of
from earmark.calibrate.permutation import CALIBRATED, against_null, null_distributions
from earmark.geometry import spaces
from earmark.geometry.layout import lay_out
from earmark.geometry.sweep import Wanted, sweep
from earmark.metrics import catalogue

PERMUTATIONS = 7
KS = (1, 5)
# Where chance alone makes spearman distances tie, P@k rests on how ties are broken: see test_metrics.
TIED = {("one_hot", "spearman"), ("tight_classes", "spearman")}


def nulls(case, distance, metrics=CALIBRATED, *, across=True, permutations=PERMUTATIONS, seed=3, **options):
    codes = np.unique(case.labels, return_inverse=True)[1]
    groups = None if case.groups is None else np.unique(case.groups.astype(str), return_inverse=True)[1]
    layout = lay_out(codes, groups)
    space = spaces.prepare(case.vectors.astype(float), distance, order=layout.order)
    wanted = Wanted(max(16, *KS), farthest=True, class_sums=True, across_groups=across and groups is not None)
    swept = sweep(space, layout, wanted)
    return null_distributions(space, layout, swept, frozenset(metrics), KS, permutations, seed=seed, **options)


def expected(case, distance, protocol, permutations=PERMUTATIONS, seed=3):
    matrix = brute.distance_matrix(case.vectors, distance)
    across = protocol == "across_groups"
    return brute.null_values(matrix, case.labels, permutations, seed, case.groups, KS, across=across)


def assert_same(found, reference, only=None):
    for name in reference if only is None else only:
        assert found[name] == pytest.approx(reference[name], abs=1e-9, nan_ok=True), name


# --- the shuffles ---------------------------------------------------------------------------------


def test_shuffles_move_the_labels_as_the_reference_does():
    case = random(50)
    codes = np.unique(case.labels, return_inverse=True)[1]
    for groups in (None, case.groups % 9, np.arange(len(codes)) % 2 + 2 * codes):
        layout = lay_out(codes, groups)
        scheme = scheme_of(layout)
        for p in range(4):
            moved = brute.shuffled_labels(case.labels, p, 9, groups)
            by_row = layout.to_rows(scheme.labels(9, p, exact=False)[scheme.units])
            assert np.array_equal(np.unique(case.labels)[by_row], moved)
            assert len(set(moved)) == len(set(case.labels))


# --- every metric, every shuffle ------------------------------------------------------------------


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", CASES)
def test_each_shuffle_is_the_plain_metric_of_shuffled_labels(name, distance):
    case = CASES[name]()
    found = nulls(case, distance, threads=2)
    if name == "groups_are_classes":  # labels cannot move
        assert found == {"all": {}, "across_groups": {}}
        return
    for protocol in ("all", "across_groups"):
        reference = expected(case, distance, protocol)
        assert set(found[protocol]) == set(reference)
        only = [key for key in reference if not key.startswith("P@")] if (name, distance) in TIED else None
        assert_same(found[protocol], reference, only)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", CASES)
def test_each_shuffle_of_clips_without_groups(name, distance):
    case = CASES[name]()._replace(groups=None)
    found, reference = nulls(case, distance, threads=2)["all"], expected(case, distance, "all")
    assert set(found) == set(reference)
    only = [key for key in reference if not key.startswith("P@")] if (name, distance) in TIED else None
    assert_same(found, reference, only)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize(
    "metrics",
    [{"GSR"}, {"CS"}, {"CSCF", "GSR"}, {"silhouette"}, {"CSR"}, set()],
    ids=lambda names: "+".join(sorted(names)) or "none",
)
@pytest.mark.parametrize("dims", [3, 160])
def test_any_choice_of_metrics(metrics, distance, dims):
    """The way to a null depends on what is asked for and on the shape of the data; the null does not."""
    case = random(51, n=130, dims=dims)
    found = nulls(case, distance, metrics, permutations=4)
    for protocol in ("all", "across_groups"):
        only = metrics if distance == "spearman" and dims < 100 else {*metrics, "P@1", "P@5"}
        assert_same(found[protocol], expected(case, distance, protocol, 4), only)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("metrics", [CALIBRATED, {"CS", "CSCF", "silhouette", "GSR"}], ids=["all", "some"])
def test_shuffled_classes_that_collapse(distance, metrics):
    """Few places, many points: shuffled classes fall into one place, where a closed form is all cancellation."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        places = rng.normal(size=(4, 6))
        case = Case(places[rng.integers(0, 4, 60)], names(rng.permutation(60) // 2), np.arange(60) % 11)
        found = nulls(case, distance, metrics)
        for protocol in ("all", "across_groups"):
            assert_same(found[protocol], expected(case, distance, protocol), metrics)


@pytest.mark.parametrize("distance", DISTANCES)
def test_vectors_without_direction(distance):
    case = random(53, n=90, dims=4)
    vectors = case.vectors.copy()
    vectors[::3] = 0.0
    case = case._replace(vectors=vectors)
    found = nulls(case, distance, {"CS", "CSCF", "silhouette", "GSR"})
    for protocol in ("all", "across_groups"):
        reference = expected(case, distance, protocol)
        assert_same(found[protocol], reference, ("CS", "CSCF", "silhouette", "GSR"))


@pytest.mark.parametrize("distance", DISTANCES)
def test_a_class_of_one_has_no_query_under_any_shuffle(distance):
    case = random(54, n=50)
    codes = np.r_[np.zeros(30, int), np.ones(16, int), 2, 3, 4, 5]
    case = case._replace(labels=names(np.random.default_rng(1).permutation(codes)))
    found = nulls(case, distance)
    for protocol in ("all", "across_groups"):
        assert_same(found[protocol], expected(case, distance, protocol))


def test_queries_with_too_few_candidates_are_left_out_of_the_null_too():
    """Across groups, a query that cannot have five neighbours has no P@5, whatever its shuffled label."""
    case = CASES["one_big_group"]()
    found = nulls(case, "euclidean", set())["across_groups"]
    assert_same(found, expected(case, "euclidean", "across_groups"), ("P@1", "P@5"))


# --- as groups allow ------------------------------------------------------------------------------


def grouped(name, seed=70):
    """Labels and groups of one design, vectors with an effect of the group."""
    rng = np.random.default_rng(seed)
    of_groups = rng.integers(0, 3, 14)
    of_groups[:6] = [0, 1, 2, 0, 1, 2]
    sizes = {"whole_groups": np.full(14, 6), "unequal": np.arange(1, 15), "strata": np.arange(14) % 2 * 4 + 3}
    groups = np.repeat(np.arange(14), sizes.get(name, np.full(14, 7)))
    codes = of_groups[groups]
    if name == "inside_groups":
        codes = rng.integers(0, 3, len(groups))
    elif name == "blocks":
        codes = np.where(groups < 5, rng.integers(0, 3, len(groups)), codes)
    vectors = rng.normal(size=(14, 9))[groups] + rng.normal(size=(len(groups), 9))
    order = rng.permutation(len(groups))
    return Case(vectors[order], names(codes)[order], groups[order])


DESIGNS = ("whole_groups", "unequal", "strata", "inside_groups", "blocks")


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", DESIGNS)
def test_each_shuffle_of_a_design_with_groups(name, distance):
    case = grouped(name)
    found = nulls(case, distance, threads=2)
    for protocol in ("all", "across_groups"):
        assert_same(found[protocol], expected(case, distance, protocol))


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.usefixtures("several_threads")
def test_threads_memory_and_batches_change_nothing_with_groups(name, distance):
    case = grouped(name)
    here = nulls(case, distance, permutations=20)
    there = nulls(case, distance, permutations=20, threads=3, memory=1 << 14)
    for protocol, found in here.items():
        for metric, values in found.items():
            assert np.array_equal(values, there[protocol][metric], equal_nan=True), (protocol, metric)


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_every_other_arrangement_once(distance):
    """Few groups: nothing is drawn, and names of classes do not count."""
    rng = np.random.default_rng(71)
    groups = np.repeat(np.arange(6), [4, 4, 5, 4, 5, 4])
    codes = np.array([0, 1, 0, 1, 2, 2])[groups]
    codes[groups == 5] = [2, 1, 2, 2]
    case = Case(rng.normal(size=(26, 8)), names(codes), groups)
    found = nulls(case, distance, permutations=1000)
    matrix = brute.distance_matrix(case.vectors, distance)
    moved = brute.other_arrangements(case.labels, groups)
    for protocol in ("all", "across_groups"):
        barred = groups if protocol == "across_groups" else None
        rounds = [brute.label_values(matrix, labels, barred, KS) for labels in moved]
        for name, values in found[protocol].items():
            assert np.sort(values) == pytest.approx(np.sort([one[name] for one in rounds]), abs=1e-9), name


# --- the same to the last bit ---------------------------------------------------------------------


@pytest.mark.parametrize("metrics", [CALIBRATED, {"GSR", "CS", "silhouette"}], ids=["all", "some"])
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.usefixtures("several_threads")
def test_threads_memory_and_batches_change_nothing(distance, metrics):
    case = random(55, n=150, dims=5)
    here = nulls(case, distance, metrics, permutations=20)
    for threads, memory in ((2, 2 << 30), (3, 1 << 20), (1, 1 << 14)):
        there = nulls(case, distance, metrics, permutations=20, threads=threads, memory=memory)
        for protocol, found in here.items():
            for name, values in found.items():
                assert np.array_equal(values, there[protocol][name], equal_nan=True), (protocol, name)


def test_more_permutations_continue_the_same_sequence():
    case = random(56)
    short, long = nulls(case, "cosine", permutations=5), nulls(case, "cosine", permutations=12)
    for name, values in short["all"].items():
        assert np.array_equal(values, long["all"][name][:5]), name


def test_another_seed_is_another_null():
    case = random(57)
    assert not np.array_equal(nulls(case, "cosine", seed=1)["all"]["GSR"], nulls(case, "cosine")["all"]["GSR"])


def test_progress_reaches_the_end():
    case, done = random(58), []
    nulls(case, "euclidean", progress=done.append)
    assert sum(done) in (pytest.approx(1.0), PERMUTATIONS)


# --- from a null to a row -------------------------------------------------------------------------


def test_an_observed_value_against_its_null():
    shuffled = np.array([0.1, 0.2, 0.3, 0.4])
    null = against_null(0.3, shuffled)
    assert null.baseline == pytest.approx(0.25)
    assert null.lift == pytest.approx(0.05)
    assert null.p_value == pytest.approx((2 + 1) / 5)
    assert (null.low, null.high) == pytest.approx(tuple(np.percentile(shuffled, [2.5, 97.5])))
    assert against_null(0.3, shuffled, higher_is_better=False).p_value == pytest.approx((3 + 1) / 5)
    assert against_null(9.0, shuffled).p_value == pytest.approx(1 / 5)  # never 0


def test_rounding_does_not_make_a_shuffle_miss_the_observed_value():
    assert against_null(0.3, np.array([0.1 + 0.2 - 1e-16] * 3)).p_value == 1.0


def test_the_error_of_a_baseline():
    shuffled = np.array([0.1, 0.2, 0.3, 0.4])
    assert against_null(0.3, shuffled).error == pytest.approx(shuffled.std(ddof=1) / 2)
    exact = against_null(0.5, shuffled, exact=True)  # the observed arrangement is the fifth
    assert (exact.error, exact.baseline, exact.p_value) == (0.0, pytest.approx(0.3), pytest.approx(1 / 5))


def test_shuffles_without_a_value_are_left_out():
    null = against_null(0.5, np.array([0.1, np.nan, 0.7, np.nan]))
    assert (null.baseline, null.p_value) == (pytest.approx(0.4), pytest.approx(2 / 3))


@pytest.mark.parametrize("distance", DISTANCES)
def test_rows_carry_baseline_interval_lift_and_p(distance):
    case = random(59)
    scores = earmark.evaluate(
        case.vectors, case.labels, distance=distance, groups=case.groups, across_groups=True,
        permutations=19, seed=5, metrics=("P@k", *sorted(CALIBRATED)),
    )  # fmt: skip
    for protocol in ("all", "across_groups"):
        groups = case.groups if protocol == "across_groups" else None
        reference = expected(case, distance, protocol, 19, 5)
        observed = brute.label_values(brute.distance_matrix(case.vectors, distance), case.labels, groups)
        for name, shuffled in reference.items():
            row = scores.row(name, protocol=protocol)
            lower = name in ("CS", "CSCF")
            reached = shuffled <= observed[name] + 1e-9 if lower else shuffled >= observed[name] - 1e-9
            assert row.baseline == pytest.approx(shuffled.mean(), abs=1e-9), name
            assert row.lift == pytest.approx(observed[name] - shuffled.mean(), abs=1e-9), name
            low, high = brute.interval(shuffled)
            assert (row.baseline_low, row.baseline_high) == (
                pytest.approx(low, abs=1e-9),
                pytest.approx(high, abs=1e-9),
            )
            assert row.p_value == pytest.approx((reached.sum() + 1) / 20), name


def test_metrics_without_labels_have_no_null():
    case = random(60)
    scores = earmark.evaluate(
        case.vectors, case.labels, permutations=5, metrics=["P@k", *catalogue.HUBNESS, *catalogue.CLUSTERING]
    )
    for name in ("hub_ratio", "antihub_rate", "hub_skew", "robin_hood", "NMI", "ARI", "kmeans_purity"):
        row = scores.row(name)
        assert (row.baseline, row.lift, row.p_value) == (None, None, None)


def test_p_values_of_labels_without_meaning_are_uniform():
    """Random labels: about one p in five is under 0.2."""
    rng = np.random.default_rng(61)
    found = [
        earmark.evaluate(
            rng.normal(size=(40, 8)), rng.permutation(np.arange(40) % 4), metrics="GSR", permutations=49, seed=s
        ).rows[0].p_value
        for s in range(60)
    ]  # fmt: skip
    assert 3 <= sum(p <= 0.2 for p in found) <= 24  # binomial(60, 0.2) leaves this range once in 10,000
    assert 0.35 < np.mean(found) < 0.65


def test_true_classes_stand_out():
    case = random(62, n=100)
    scores = earmark.evaluate(case.vectors, case.labels, permutations=99)
    for name in ("P@1", "P@5", "GSR", "CSR", "CS", "silhouette"):
        assert scores.row(name).p_value == pytest.approx(0.01), name


def test_neighbour_lists_are_long_enough_for_a_large_class():
    even, uneven = lay_out(np.arange(100) % 10), lay_out(np.r_[np.zeros(95, int), np.ones(5, int)])
    assert permutation.neighbours_needed(even) <= permutation.neighbours_needed(uneven) <= 64
