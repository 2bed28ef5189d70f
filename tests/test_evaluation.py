"""`earmark.evaluate` as a user meets it: input checks, options, groups, per-point values, notes, determinism."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import brute
from tests.cases import CASES, DISTANCES, Case, names, random

import earmark
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.geometry import sweep as sweeping
from earmark.report._projection import project

DEFAULT = (
    "P@1", "P@5", "GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette",
    "hub_ratio", "antihub_rate", "hub_skew", "robin_hood",
)  # fmt: skip


@pytest.fixture
def case() -> Case:
    return random(90, n=40, dims=12)


def facts(scores):
    """Every row as a dictionary, without the time it took."""
    return [{name: value for name, value in row.as_dict().items() if name != "seconds"} for row in scores.rows]


def assert_sane(scores):
    """No NaN anywhere; a row has a value or a reason, never both missing, never a number without a value."""
    for row in scores.rows:
        numbers = (row.value, row.low, row.high, row.baseline, row.lift, row.p_value)
        assert all(number is None or math.isfinite(number) for number in numbers)
        if row.status == "ok":
            assert row.value is not None
        else:
            assert row.status in ("not_applicable", "failed")
            assert row.reason
            assert numbers == (None,) * 6


def answer(call):
    """The scores of a call, or the sentence it refuses with; any other error, and any warning, is a defect."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            scores = call()
        except EarmarkError as error:
            sentence = str(error)
        else:
            assert_sane(scores)
            return scores
    assert sentence
    assert "\n" not in sentence
    return sentence


# --- the table ------------------------------------------------------------------------------------


def test_every_metric_by_default(case):
    scores = earmark.evaluate(case.vectors, case.labels)
    assert {row.metric for row in scores.rows} == set(DEFAULT)
    assert len(scores.rows) == len(DEFAULT)
    for row in scores.rows:
        assert (row.distance, row.correction, row.protocol, row.status) == ("cosine", "none", "all", "ok")
        assert row.n == 40
        assert row.version == earmark.__version__
        assert row.seconds >= 0
        assert (row.interval, row.unit, row.units) == ("jackknife", "clip", 40)
        assert row.low <= row.value <= row.high
        assert (row.baseline, row.lift, row.p_value, row.baseline_error, row.shuffle) == (None, None, None, None, "")


def test_intervals_can_be_left_out(case):
    rows = earmark.evaluate(case.vectors, case.labels, intervals="none").rows
    assert {(row.low, row.high, row.interval, row.units) for row in rows} == {(None, None, "", None)}


def test_the_bootstrap_says_what_it_holds_fixed(case):
    by_name = earmark.evaluate(case.vectors, case.labels, metrics="P@1", intervals="bootstrap").row("P@1")
    by_number = earmark.evaluate(case.vectors, case.labels, metrics="P@1", bootstrap=300).row("P@1")
    assert (by_name.low, by_name.high) == (by_number.low, by_number.high)
    assert by_name.interval == "bootstrap_queries"
    with pytest.raises(UsageError, match="goes with"):
        earmark.evaluate(case.vectors, case.labels, intervals="jackknife", bootstrap=10)
    with pytest.raises(UsageError, match="jackknife, bootstrap, none"):
        earmark.evaluate(case.vectors, case.labels, intervals="jacknife")


def test_names_of_the_measurement_are_kept(case):
    scores = earmark.evaluate(case.vectors, case.labels, suite="s", subset="ES1", system="whisper", metrics="GSR")
    (row,) = scores.rows
    assert (row.suite, row.subset, row.system) == ("s", "ES1", "whisper")


def test_several_distances_make_one_table(case):
    together = earmark.evaluate(case.vectors, case.labels, distance=DISTANCES)
    for distance in DISTANCES:
        alone = earmark.evaluate(case.vectors, case.labels, distance=distance)
        assert facts(together.select(distance=distance)) == facts(alone)


def test_a_distance_asked_for_twice_is_measured_once(case):
    scores = earmark.evaluate(case.vectors, case.labels, distance=["cosine", "cosine"], metrics="GSR")
    assert isinstance(scores.value("GSR"), float)


@pytest.mark.parametrize("metric", [*DEFAULT, "P@3"])
def test_a_metric_alone_is_the_metric_in_company(case, metric):
    options = {"permutations": 4, "bootstrap": 4, "groups": case.groups, "across_groups": True}
    full = earmark.evaluate(case.vectors, case.labels, metrics=(*DEFAULT, "P@3"), **options)
    alone = earmark.evaluate(case.vectors, case.labels, metrics=metric, **options)
    assert {row.metric for row in alone.rows} == {metric}
    for row in alone.rows:
        other = full.row(metric, protocol=row.protocol)
        assert (row.value, row.low, row.high, row.n) == (other.value, other.low, other.high, other.n)
        assert row.baseline == (None if other.baseline is None else pytest.approx(other.baseline, abs=1e-9))
        assert row.p_value == (None if other.p_value is None else pytest.approx(other.p_value))


def test_metrics_by_name(case):
    def asked(metrics, **options):
        return [row.metric for row in earmark.evaluate(case.vectors, case.labels, metrics=metrics, **options).rows]

    assert asked("P@k", k=(5, 1, 5)) == ["P@1", "P@5"]
    assert asked(["P@7", "P@k"], k=2) == ["P@2", "P@7"]
    assert asked(["CS", "GSR", "CS"]) == ["GSR", "CS"]
    assert set(asked("all")) == {*DEFAULT, "NMI", "ARI", "kmeans_purity", "purity"}


def test_umap_purity_without_umap_says_what_to_install(case):
    row = earmark.evaluate(case.vectors, case.labels, metrics="purity").rows[0]
    if row.status == "not_applicable":
        assert "pip install" in row.reason
    else:
        assert 0 <= row.value <= 1


def test_maps_by_umap_keep_neighbours_and_repeat_themselves():  # here, where UMAP's code is compiled already
    pytest.importorskip("umap")
    rng = np.random.default_rng(0)
    vectors = 8.0 * rng.standard_normal((3, 12))[np.arange(60) % 3] + rng.standard_normal((60, 12))
    found = project(vectors, 0, method="umap")
    assert found.method == "UMAP"
    assert found.kept > 0.8
    np.testing.assert_array_equal(found.points, project(vectors, 0, method="umap").points)
    assert project(vectors[:12], method="umap").method == "PCA"


# --- what is left out -----------------------------------------------------------------------------


def test_unlabelled_rows_and_small_classes_are_dropped_and_counted(case):
    labels = list(case.labels)
    labels[0], labels[1], labels[2] = None, float("nan"), "  "
    labels[3] = labels[4] = "rare"
    scores = earmark.evaluate(case.vectors, labels, min_class_size=3)
    assert any("3 unlabelled rows" in note for note in scores.notes)
    assert any("2 rows in 1 class of" in note for note in scores.notes)
    kept = [row for row in range(40) if row > 4]
    rest = earmark.evaluate(case.vectors[kept], case.labels[kept], min_class_size=3)
    for a, b in zip(scores.rows, rest.rows, strict=True):
        assert (a.metric, a.n) == (b.metric, b.n)
        assert a.value == pytest.approx(b.value, abs=1e-12)
        assert "unlabelled" in a.reason


def test_a_class_of_one_is_excluded_as_a_query_and_counted(case):
    labels = np.array([*case.labels[:-2], "one", "another"])
    scores = earmark.evaluate(case.vectors, labels, min_class_size=1)
    for name in ("P@1", "GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette"):
        row = scores.row(name)
        assert row.n == 38, name
        assert "2 points without a same-class partner excluded" in row.reason
    assert scores.row("hub_ratio").n == 40


@pytest.mark.parametrize(("distance", "word"), [("cosine", "zero"), ("spearman", "constant")])
def test_vectors_without_direction_are_counted(case, distance, word):
    vectors = case.vectors.copy()
    vectors[:3] = 0.0
    for row in earmark.evaluate(vectors, case.labels, distance=distance).rows:
        assert f"3 {word} vectors" in row.reason
    assert earmark.evaluate(vectors, case.labels, distance="euclidean").rows[0].reason == ""


def test_labels_that_mean_the_same_are_the_same(case):
    codes = np.unique(case.labels, return_inverse=True)[1]
    plain = facts(earmark.evaluate(case.vectors, [str(code) for code in codes]))
    for labels in (
        codes,
        codes.astype(np.int8),
        codes.astype(float),
        codes.tolist(),
        [f" {code} " for code in codes],
    ):
        assert facts(earmark.evaluate(case.vectors, labels)) == plain


# --- groups ---------------------------------------------------------------------------------------


def test_both_protocols_in_one_table(case):
    scores = earmark.evaluate(case.vectors, case.labels, groups=case.groups, across_groups=True)
    assert {row.metric for row in scores.rows if row.protocol == "all"} == set(DEFAULT)
    assert {row.metric for row in scores.rows if row.protocol == "across_groups"} == set(DEFAULT)
    plain = earmark.evaluate(case.vectors, case.labels)
    for row in plain.rows:
        assert scores.row(row.metric, protocol="all").value == row.value


def test_groups_of_one_leave_nothing_out(case):
    for groups in (range(40), [f"alone {row}" for row in range(40)]):
        scores = earmark.evaluate(case.vectors, case.labels, groups=groups, across_groups=True)
        for name in DEFAULT:
            across, every = (scores.row(name, protocol=p) for p in ("across_groups", "all"))
            assert across.value == pytest.approx(every.value, abs=1e-12)
            assert across.n == every.n


def test_points_whose_class_lies_in_their_group_are_excluded_and_counted(case):
    groups = np.arange(40)
    groups[case.labels == case.labels[0]] = 999
    alone = int((groups == 999).sum())
    scores = earmark.evaluate(case.vectors, case.labels, groups=groups, across_groups=True)
    for name in ("P@1", "GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette"):
        row = scores.row(name, protocol="across_groups")
        assert row.n == 40 - alone, name
        assert f"{alone} points without a same-class partner excluded" in row.reason, name


@pytest.mark.parametrize("held", ["everything", "classes"])
def test_where_groups_leave_nothing_there_is_no_number(case, held):
    groups = np.zeros(40) if held == "everything" else case.labels
    scores = earmark.evaluate(case.vectors, case.labels, groups=groups, across_groups=True, permutations=3, bootstrap=3)
    assert_sane(scores)
    for row in scores.rows:
        if row.protocol == "across_groups" and (
            held == "everything" or not row.metric.startswith(("hub", "anti", "rob"))
        ):
            assert row.status == "not_applicable", row.metric


def test_queries_with_too_few_candidates_are_excluded_and_counted():
    case = CASES["one_big_group"]()
    row = earmark.evaluate(case.vectors, case.labels, groups=case.groups, across_groups=True).row(
        "P@5", protocol="across_groups"
    )
    points = brute.point_values(brute.distance_matrix(case.vectors, "cosine"), case.labels, case.groups)["P@5"]
    partnered = np.isfinite(brute.point_parts(np.ones((61, 61)), case.labels, case.groups)[1])
    assert row.n == np.isfinite(points).sum() < partnered.sum()
    assert re.search(rf"\b{partnered.sum() - row.n}\b", row.reason)  # beside those without a partner


# --- per point ------------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", DISTANCES)
def test_per_point_values_are_those_of_brute_force(distance):
    case = random(91)
    labels = list(case.labels)
    labels[7], labels[9] = None, "rare"
    kept = np.array([row for row in range(len(labels)) if row not in (7, 9)])
    scores = earmark.evaluate(
        case.vectors,
        labels,
        distance=distance,
        per_point=True,
        groups=case.groups,
        across_groups=True,
        k=(1, 3),
    )
    matrix = brute.distance_matrix(case.vectors[kept], distance)
    for protocol, groups in (("all", None), ("across_groups", case.groups[kept])):
        expected = brute.point_values(matrix, case.labels[kept], groups, (1, 3))
        expected["hub_ratio"] = brute.occurrences(matrix, 5, groups)
        nearest = [listed[0] for listed in brute.neighbours(matrix, brute.pairs_allowed(len(kept), groups))]
        expected["nearest_row"] = kept[nearest]
        for name, points in expected.items():
            values = scores.per_point[distance, "none", protocol, name]
            assert len(values) == len(labels)
            assert np.isnan(values[[7, 9]]).all()
            assert values[kept] == pytest.approx(points, abs=1e-9, nan_ok=True), name


def test_a_mean_is_the_mean_of_its_points(case):
    scores = earmark.evaluate(case.vectors, case.labels, per_point=True)
    for name in ("P@1", "P@5", "GSR", "CSR_pointwise", "silhouette"):
        points = scores.per_point["cosine", "none", "all", name]
        assert scores.value(name) == pytest.approx(np.nanmean(points), abs=1e-15)


def test_points_are_kept_on_request_only_and_carry_ids(case):
    ids = [f"clip{i}" for i in range(40)]
    assert not earmark.evaluate(case.vectors, case.labels, ids=ids).per_point
    assert earmark.evaluate(case.vectors, case.labels, ids=ids, per_point=True).point_ids == tuple(ids)


# --- determinism ----------------------------------------------------------------------------------


def awkward():
    case = random(92, n=300, dims=21, groups=35)
    vectors = case.vectors.copy()
    vectors[100:140] = vectors[:40]
    vectors[[5, 6]] = 0.0
    return case._replace(vectors=vectors)


def measure_everything(case, **options):
    return earmark.evaluate(
        case.vectors, case.labels, distance=DISTANCES, groups=case.groups, across_groups=True, permutations=15,
        bootstrap=10, per_point=True, **options,
    )  # fmt: skip


@pytest.mark.usefixtures("several_threads")
def test_results_are_identical_for_every_memory_budget_thread_count_and_strip(monkeypatch):
    case = awkward()
    here = measure_everything(case, threads=1)
    for threads, memory, strip in (
        (1, "2MB", (128, 2048)), (2, "2GB", (128, 2048)), (3, "5MB", (128, 2048)), (2, "2GB", (1, 1)),
        (3, "2GB", (77, 77)), (1, "2GB", (5000, 5000)),
    ):  # fmt: skip
        monkeypatch.setattr(sweeping, "ORDER_COLUMNS", strip)
        there = measure_everything(case, threads=threads, memory=memory)
        assert facts(there) == facts(here)
        for key, values in here.per_point.items():
            assert np.array_equal(values, there.per_point[key], equal_nan=True), key


def test_inputs_names_everything_a_value_depends_on(case):
    def digest(vectors=case.vectors, labels=case.labels, **options):
        return earmark.evaluate(vectors, labels, metrics="P@1", **options).rows[0].inputs

    plain = digest()
    assert len(plain) == 64
    assert digest() == plain
    for same in ({"threads": 2}, {"memory": "50MB"}, {"per_point": True}, {"labels": list(case.labels)}):
        assert digest(**same) == plain, same
    other_labels = case.labels.copy()
    other_labels[[0, 1]] = other_labels[[1, 0]]
    changed = [
        digest(vectors=case.vectors + 1e-12),
        digest(vectors=case.vectors[:, :5]),
        digest(labels=other_labels),
        digest(groups=case.groups),
        digest(groups=case.groups, across_groups=True),
        *(
            digest(**{name: value})
            for name, value in (
                ("distance", "euclidean"), ("seed", 1), ("permutations", 3), ("bootstrap", 3),
                ("min_class_size", 1), ("ties", "ordinal"), ("hub_k", 3), ("shuffle", "clips"),
            )
        ),
    ]  # fmt: skip
    assert len({plain, *changed}) == len(changed) + 1


def test_the_seed_decides_the_chance(case):
    def rows(seed):
        scores = earmark.evaluate(case.vectors, case.labels, metrics="GSR", permutations=20, bootstrap=20, seed=seed)
        return scores.rows[0].value, scores.rows[0].baseline, scores.rows[0].low

    assert rows(1) == rows(1)
    assert rows(1)[0] == rows(2)[0]
    assert rows(1)[1:] != rows(2)[1:]


@pytest.mark.parametrize("convert", [np.asfortranarray, lambda x: x[:, ::-1][:, ::-1], lambda x: x.astype(">f8"), list])
def test_the_layout_in_memory_does_not_matter(case, convert):
    plain = earmark.evaluate(case.vectors, case.labels)
    assert facts(earmark.evaluate(convert(case.vectors), case.labels)) == facts(plain)


def test_what_was_given_is_not_touched(case):
    vectors, labels, groups = case.vectors.copy(), case.labels.copy(), case.groups.copy()
    vectors.setflags(write=False)
    measure_everything(Case(vectors, labels, groups))
    assert np.array_equal(vectors, case.vectors)
    assert np.array_equal(labels, case.labels)
    assert np.array_equal(groups, case.groups)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint8, np.int64, np.uint64, bool])
def test_any_kind_of_real_numbers(dtype):
    vectors = (np.random.default_rng(0).uniform(0, 100, (40, 9)) // 7).astype(dtype)
    labels = names(np.arange(40) % 3)
    found = earmark.evaluate(vectors, labels, distance="euclidean")
    expected = brute.values(vectors.astype(float), labels, "euclidean")
    for name, value in expected.items():
        assert found.value(name) == pytest.approx(value, abs=1e-9), name


# --- bad input ------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(20, 6))
Y = [f"c{i % 4}" for i in range(20)]
GROUPS = [i % 7 for i in range(20)]

REFUSED = {
    "NaN": ({"vectors": np.where(X > 1.5, np.nan, X)}, InputError, "NaN or infinity in .* of 20 rows"),
    "infinity": ({"vectors": np.where(X > 1.5, -np.inf, X)}, InputError, "NaN or infinity"),
    "one dimension": ({"vectors": X[:, 0]}, InputError, "1 dimension"),
    "three dimensions": ({"vectors": X[None]}, InputError, "3 dimension"),
    "no dimensions": ({"vectors": 3.0}, InputError, "0 dimension"),
    "no rows": ({"vectors": np.zeros((0, 3)), "labels": []}, InputError, "empty"),
    "no columns": ({"vectors": np.zeros((20, 0))}, InputError, "empty"),
    "objects": ({"vectors": X.astype(object)}, InputError, "object"),
    "text": ({"vectors": X.astype(str)}, InputError, "not numbers"),
    "complex": ({"vectors": X * 1j}, InputError, "complex"),
    "None": ({"vectors": None}, InputError, "numbers"),
    "ragged": ({"vectors": [[1.0, 2.0], [3.0]] * 10}, InputError, ""),
    "fewer labels": ({"labels": Y[:7]}, InputError, "20 vectors and 7 labels"),
    "no label at all": ({"labels": [None] * 20}, InputError, "No row has a label"),
    "NaN labels": ({"labels": np.full(20, np.nan)}, InputError, "No row has a label"),
    "blank labels": ({"labels": [" "] * 20}, InputError, "No row has a label"),
    "labels in two columns": ({"labels": np.array([Y, Y]).T}, InputError, "2 dimensions"),
    "labels missing": ({"labels": None}, EarmarkError, ""),
    "labels a number": ({"labels": 5}, EarmarkError, ""),
    "one class": ({"labels": ["a"] * 20}, InputError, r"same label \('a'\)"),
    "classes of one": ({"labels": range(20)}, InputError, "no same-class pairs"),
    "one class left": ({"labels": ["a"] * 18 + ["b", "c"]}, InputError, "Only one class"),
    "no class large enough": ({"min_class_size": 6}, InputError, "fewer than 6"),
    "fewer groups": ({"groups": GROUPS[:3]}, InputError, "20 vectors and 3 groups"),
    "groups a number": ({"groups": 5}, EarmarkError, ""),
    "across no groups": ({"across_groups": True}, UsageError, "needs groups"),
    "k 0": ({"k": 0}, UsageError, "at least 1"),
    "k negative": ({"k": (1, -1)}, UsageError, "at least 1"),
    "k a fraction": ({"k": 1.5}, EarmarkError, ""),
    "k fractions": ({"k": [1.5]}, EarmarkError, ""),
    "k text": ({"k": "five"}, EarmarkError, ""),
    "k missing": ({"k": None}, EarmarkError, ""),
    "no k": ({"k": (), "metrics": "P@k"}, EarmarkError, ""),
    "permutations negative": ({"permutations": -1}, UsageError, "at least 0"),
    "permutations a fraction": ({"permutations": 1.5}, EarmarkError, ""),
    "permutations text": ({"permutations": "many"}, EarmarkError, ""),
    "bootstrap negative": ({"bootstrap": -5}, UsageError, "at least 0"),
    "bootstrap a fraction": ({"bootstrap": 2.5}, EarmarkError, ""),
    "min_class_size 0": ({"min_class_size": 0}, UsageError, "at least 1"),
    "min_class_size text": ({"min_class_size": "two"}, EarmarkError, ""),
    "hub_k 0": ({"hub_k": 0}, UsageError, "at least 1"),
    "hub_k a fraction": ({"hub_k": 1.5}, EarmarkError, ""),
    "seed negative": ({"seed": -1, "permutations": 2}, EarmarkError, ""),
    "seed missing": ({"seed": None, "permutations": 2}, EarmarkError, ""),
    "unknown metric": ({"metrics": "gsr"}, UsageError, "GSR"),
    "P@0": ({"metrics": "P@0"}, UsageError, "P@0"),
    "no metric": ({"metrics": []}, UsageError, "at least one"),
    "metric a number": ({"metrics": 5}, EarmarkError, ""),
    "metrics numbers": ({"metrics": [5]}, EarmarkError, ""),
    "unknown distance": ({"distance": "l2"}, UsageError, "cosine, euclidean, spearman"),
    "no distance": ({"distance": []}, UsageError, "distance"),
    "distance a number": ({"distance": 5}, EarmarkError, ""),
    "unknown ties": ({"ties": "dense"}, UsageError, "average or ordinal"),
    "little memory": ({"memory": "1KB"}, UsageError, "too small"),
    "no memory": ({"memory": None}, EarmarkError, ""),
    "odd memory": ({"memory": "lots"}, UsageError, "2GB"),
    "no threads": ({"threads": 0}, UsageError, "at least 1"),
    "threads text": ({"threads": "two"}, EarmarkError, ""),
    "unknown correction": ({"correct": "idcm"}, UsageError, "icdm"),
    "correction a number": ({"correct": 5}, UsageError, "name"),
    "unknown device": ({"device": "tpu"}, UsageError, "auto, cpu or cuda"),
    "fewer ids": ({"ids": ["a"]}, InputError, "20 vectors and 1 ids"),
    "ids a number": ({"ids": 5}, EarmarkError, ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_in_one_sentence(name):
    change, kind, words = REFUSED[name]
    call = {"vectors": X, "labels": Y, "distance": "euclidean"} | change
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(kind, match=words or None) as caught:
            earmark.evaluate(call.pop("vectors"), call.pop("labels"), **call)
    assert str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_first_bad_rows_are_named():
    vectors = X.copy()
    vectors[[2, 3, 5, 8, 13, 17], 1] = np.nan
    with pytest.raises(InputError, match=r"6 of 20 rows \(first: 2, 3, 5, 8, 13, \.\.\."):
        earmark.evaluate(vectors, Y)


ANSWERED = {
    "k as numpy's integer": {"k": np.int64(3)},
    "k as an array": {"k": np.array([1, 3])},
    "k beyond the set": {"k": (1, 20, 10**9)},
    "k of all others": {"k": 19, "permutations": 3, "bootstrap": 3},
    "hub_k beyond the set": {"hub_k": 25},
    "labels from a generator": {"labels": (label for label in Y)},
    "labels as fractions": {"labels": [i % 4 + 0.5 for i in range(20)]},
    "labels in bytes": {"labels": [label.encode() for label in Y]},
    "labels of mixed kinds": {"labels": [1, "b", None, 2.0, "é"] * 4},
    "one resample and one shuffle": {"permutations": 1, "bootstrap": 1},
    "numpy's integers": {"permutations": np.int64(3), "bootstrap": np.int64(3), "min_class_size": np.int8(2)},
    "a large seed": {"seed": 2**40, "permutations": 2},
    "memory in bytes": {"memory": 10_000_000},
    "the least memory": {"memory": "1MB"},
    "more threads than rows": {"threads": 64, "permutations": 3},
    "identical vectors": {"vectors": np.ones((20, 3)), "permutations": 5, "bootstrap": 5},
    "zero vectors": {"vectors": np.zeros((20, 3)), "permutations": 5, "bootstrap": 5},
    "two places": {"vectors": np.eye(2)[np.arange(20) % 2], "permutations": 5, "bootstrap": 5},
    "one dimension": {"vectors": X[:, :1], "permutations": 5, "bootstrap": 5},
    "classes of two": {"labels": [i // 2 for i in range(20)], "permutations": 5, "bootstrap": 5},
    "one pair among singles": {
        "labels": [*range(18), "a", "a"], "min_class_size": 1, "permutations": 5, "bootstrap": 5,
    },
    "all but one": {"labels": ["a"] * 19 + ["b"], "min_class_size": 1, "permutations": 5, "bootstrap": 5},
    "all but one, across groups": {
        "labels": ["a"] * 19 + ["b"], "min_class_size": 1, "permutations": 5, "bootstrap": 5,
        "groups": GROUPS, "across_groups": True,
    },
    "two points left out of a group": {
        "groups": [0] * 19 + [1], "across_groups": True, "permutations": 5, "bootstrap": 5,
    },
    "groups of one": {"groups": range(20), "across_groups": True, "permutations": 5, "bootstrap": 5},
    "subnormal": {"vectors": X * 1e-310, "permutations": 3},
    "huge": {"vectors": X * 1e300, "permutations": 3},
    "beyond squares": {"vectors": X / np.abs(X).max() * 1.7e308},
}  # fmt: skip


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", ANSWERED)
def test_odd_input_is_answered_without_a_warning(name, distance):
    call = {"vectors": X, "labels": list(Y), "distance": distance} | ANSWERED[name]
    if name == "labels from a generator":
        call["labels"] = (label for label in Y)
    found = answer(lambda: earmark.evaluate(call.pop("vectors"), call.pop("labels"), **call))
    if name != "beyond squares":
        assert not isinstance(found, str), found


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("smallest", [1, 2])
def test_tiny_sets(n, smallest):
    """Whatever the labels and groups of up to five points: a sentence, or rows that hold together."""
    vectors = np.random.default_rng(n).normal(size=(n, 3))
    for labels in ("aaaaa", "aabbb", "abcab", "abcde", "aaaab"):
        for groups in ((0, 0, 0, 0, 0), (0, 1, 2, 3, 4), (0, 0, 1, 1, 1), (0, 1, 0, 1, 0)):
            answer(
                lambda labels=labels, groups=groups: earmark.evaluate(
                    vectors, list(labels[:n]), distance=DISTANCES, groups=groups[:n], across_groups=True,
                    permutations=2, bootstrap=2, min_class_size=smallest, k=(1, 2), hub_k=1, per_point=True,
                )
            )  # fmt: skip


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(["a", "b", "c", None, float("nan"), 3, 3.0, ""]), min_size=5, max_size=25),
    st.sampled_from([0, 1, 1e-200, 1e200]),
    st.integers(1, 4),
    st.integers(0, 2**31),
)
def test_any_labels_and_small_integers_are_answered_or_refused(labels, scale, dims, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-1, 2, (len(labels), dims)) * float(scale)
    groups = rng.integers(0, 4, len(labels))
    for distance in DISTANCES:
        answer(
            lambda distance=distance: earmark.evaluate(
                vectors, labels, distance=distance, groups=groups, across_groups=True, permutations=2, bootstrap=2,
                min_class_size=int(1 + seed % 3),
            )
        )  # fmt: skip


def test_labels_that_go_with_groups_are_shuffled_as_groups() -> None:
    """Twelve speakers, one word each, vectors of the speaker alone: shuffled clips would call this significant."""
    rng = np.random.default_rng(2)
    speakers = np.repeat(np.arange(12), 10)
    vectors = rng.normal(size=(12, 16))[speakers] + 0.5 * rng.normal(size=(120, 16))
    words = (speakers % 3).astype(str)
    options = {"groups": speakers, "metrics": ["P@1", "GSR"], "permutations": 99}
    for row in earmark.evaluate(vectors, words, across_groups=True, **options).rows:
        assert row.shuffle == "whole_groups"
        assert row.p_value > 0.05
        assert row.baseline_error > 0 or row.metric == "P@1"
    mixed = np.tile(["a", "b"], 60)  # every speaker says both words
    row = earmark.evaluate(vectors, mixed, **options).row("P@1")
    assert (row.shuffle, row.p_value is None) == ("inside_groups", False)
    assert earmark.evaluate(vectors, mixed, metrics="P@1", permutations=9).row("P@1").shuffle == "clips"
    assert earmark.evaluate(vectors, mixed, metrics="P@1").row("P@1").shuffle == ""


def test_the_papers_shuffle_of_clips_ignores_groups_and_says_so() -> None:
    """Labels that mean nothing, on tapes that sound alike: a free shuffle calls that significant, groups do not."""
    rng = np.random.default_rng(0)
    tapes, labels = np.repeat(np.arange(15), 8), np.repeat(list("abcde"), 24)
    vectors = rng.normal(size=(120, 8)) + rng.normal(size=(15, 8))[tapes]
    options = {"metrics": ["P@1", "GSR", "CSR", "CS", "silhouette"], "permutations": 99}
    plain = earmark.evaluate(vectors, labels, **options)
    free = earmark.evaluate(vectors, labels, groups=tapes, across_groups=True, shuffle="clips", **options)
    allowed = earmark.evaluate(vectors, labels, groups=tapes, across_groups=True, **options)
    for row in plain:
        mine = free.row(row.metric, protocol="all")
        assert mine.shuffle == "clips_ignoring_groups"
        assert "p is too small" in mine.reason
        null = ("baseline", "baseline_low", "baseline_high", "p_value", "baseline_error")
        assert [getattr(mine, name) for name in null] == [getattr(row, name) for name in null]
        assert mine.p_value == 0.01 < 0.1 < allowed.row(row.metric, protocol="all").p_value
        across = (scores.row(row.metric, protocol="across_groups") for scores in (free, allowed))
        assert len({(row.shuffle, row.baseline, row.p_value) for row in across}) == 1
    assert {row.shuffle for row in earmark.evaluate(vectors, labels, shuffle="clips", **options)} == {"clips"}
    with pytest.raises(earmark.EarmarkError, match="choose auto or clips"):
        earmark.evaluate(vectors, labels, shuffle="groups")


def test_few_groups_are_enumerated_and_too_few_have_no_p_value() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(48, 6))

    def scored(count: int, labels: int) -> earmark.Scores:
        groups = np.repeat(np.arange(count), 48 // count)
        options = {"metrics": ["GSR", "hub_skew"], "permutations": 1000}
        return earmark.evaluate(vectors, groups % labels, groups=groups, **options)

    row = scored(8, 4).row("GSR")  # 8! / 2!^4 labellings, 105 once the names of classes do not count
    assert (row.shuffle, row.baseline_error, row.reason) == ("whole_groups", 0.0, "all 105 arrangements enumerated")
    assert 105 * row.p_value == pytest.approx(round(105 * row.p_value))
    few = scored(6, 3)
    assert few.row("GSR").p_value is None
    assert few.row("GSR").baseline is not None
    assert "15 arrangements, and fewer than 20" in few.row("GSR").reason
    assert few.row("hub_skew").reason == ""  # has no null
    only = scored(4, 4).row("GSR")
    assert (only.p_value, only.baseline, only.shuffle, only.baseline_error) == (None, None, "", None)
    assert "no other way" in only.reason


def test_a_row_says_when_eps_decides_its_value() -> None:
    """Under a large common offset cosine distances shrink to the size of eps, which pulls GSR to one half."""
    rng = np.random.default_rng(8)
    labels, vectors = np.arange(80) % 4, rng.normal(size=(80, 8))
    far = earmark.evaluate(vectors + 1e5, labels, metrics=["GSR", "CSR", "CSR_pointwise", "silhouette"])
    near = earmark.evaluate(vectors, labels, metrics=["GSR", "CSR"])
    assert all("eps = 1e-09" in far.row(metric).reason for metric in ("GSR", "CSR", "CSR_pointwise"))
    assert "eps" not in far.row("silhouette").reason
    assert not any("eps" in row.reason for row in near)


@pytest.mark.parametrize("name", ["permutations", "k", "hub_k", "bootstrap"])
def test_yes_is_not_a_count(name):
    with pytest.raises(UsageError, match="must be a whole number, not True"):
        earmark.evaluate(np.eye(6), list("aabbcc"), **{name: True})


def test_labels_and_groups_need_an_order_and_may_come_from_an_iterator():
    generator = np.random.default_rng(2)
    vectors, labels, groups = generator.normal(size=(24, 3)), list("abcd") * 6, [row // 4 for row in range(24)]
    with pytest.raises(InputError, match="Groups are a dict"):
        earmark.evaluate(vectors, labels, groups=dict(enumerate(groups)))
    with pytest.raises(InputError, match="Labels are a set"):
        earmark.evaluate(vectors, set(range(24)))
    listed = earmark.evaluate(vectors, labels, groups=groups)
    read_once = earmark.evaluate(vectors, iter(labels), groups=iter(groups))
    assert [row.inputs for row in listed.rows] == [row.inputs for row in read_once.rows]
    pair = earmark.compare(vectors, vectors + 1.0, iter(labels), groups=iter(groups))
    assert {row.unit for row in pair.rows if row.p_value is not None} == {"group"}


def test_too_few_groups_are_the_reason_for_every_metric(case):
    rows = earmark.evaluate(
        case.vectors, case.labels, metrics=["P@3", "GSR", "hub_skew"], groups=np.arange(40) % 3
    ).rows
    assert {row.metric for row in rows} == {"P@3", "GSR", "hub_skew"}
    assert all("3 groups are too few" in row.reason and row.low is None for row in rows)
