"""Distances that were computed elsewhere give what the vectors behind them give, in every metric and every column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import rankdata
from tests import brute, cases

import earmark
from earmark.errors import InputError, UsageError
from earmark.evaluation import compare, evaluate, hubness, study_hubness
from earmark.scores import Scores
from earmark.vectors import _arranging, given_distances, read_distances
from earmark.vectors.distances import Distances

NUMBERS = (
    "value", "low", "high", "baseline", "baseline_low", "baseline_high", "baseline_error", "lift", "p_value", "n",
    "units",
)  # fmt: skip
WORDS = ("metric", "protocol", "correction", "status", "interval", "unit", "shuffle", "distance")
CORRECTIONS = "none,ls,nicdm,icdm,csls,mp"


def scipy_matrix(vectors: Any, distance: str) -> Any:
    """The matrix as a user would make it, with scipy."""
    if distance == "spearman":
        return squareform(pdist(rankdata(vectors, axis=1), "correlation"))
    return squareform(pdist(np.asarray(vectors, float), distance))


def same(given: Scores, wanted: Scores, tolerance: float = 1e-9) -> None:
    """All rows, values of points and of units agree, and neighbours are the same ones."""
    assert len(given.rows) == len(wanted.rows)
    for row, other in zip(given.rows, wanted.rows, strict=True):
        where = f"{other.correction} {other.protocol} {other.metric}"
        for name in WORDS:
            assert getattr(row, name) == getattr(other, name), f"{where}: {name}"
        for name in NUMBERS:
            one, two = getattr(row, name), getattr(other, name)
            assert (one is None) == (two is None), f"{where}: {name}"
            assert one is None or one == pytest.approx(two, abs=tolerance, rel=tolerance), f"{where}: {name}"
    for table, reference in ((given.per_point, wanted.per_point), (given.per_unit, wanted.per_unit)):
        assert table.keys() == reference.keys()
        for key, values in table.items():
            if key[-1] == "nearest_row":
                np.testing.assert_array_equal(values, reference[key], err_msg=str(key))
            else:
                np.testing.assert_allclose(values, reference[key], atol=tolerance, rtol=tolerance, err_msg=str(key))


def both(vectors: Any, labels: Any, distance: str, matrix: Any = None, **options: Any) -> tuple[Scores, Scores]:
    matrix = scipy_matrix(vectors, distance) if matrix is None else matrix
    given = evaluate(distances=matrix, labels=labels, distance_name=distance, threads=1, **options)
    return given, evaluate(vectors, labels, distance=distance, threads=1, **options)


CASE = cases.random(0, dims=12)
LAYOUTS: dict[str, Any] = {
    "clips": None,
    "mixed groups": CASE.groups,
    "groups of one label": np.unique(np.stack([CASE.labels, CASE.groups.astype(str)]), axis=1, return_inverse=True)[1],
    "one big group": np.where(np.arange(len(CASE.labels)) < 50, 0, np.arange(len(CASE.labels))),
}


@pytest.mark.parametrize("distance", cases.DISTANCES)
def test_every_metric_under_every_correction_and_protocol(distance: str) -> None:
    options = {"correct": CORRECTIONS, "groups": CASE.groups, "across_groups": True, "k": (1, 3, 5)}
    same(*both(CASE.vectors, CASE.labels, distance, per_point=True, per_unit=True, **options))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("distance", cases.DISTANCES)
def test_permutations_of_every_scheme(distance: str, layout: str) -> None:
    groups = LAYOUTS[layout]
    options = {"groups": groups, "across_groups": groups is not None, "permutations": 25, "seed": 3}
    same(*both(CASE.vectors, CASE.labels, distance, correct="none,nicdm", **options))


@pytest.mark.parametrize("groups", [None, CASE.groups])
def test_intervals_of_both_kinds(groups: Any) -> None:
    for distance in cases.DISTANCES:
        same(*both(CASE.vectors, CASE.labels, distance, groups=groups, correct="none,ls", per_unit=True))
        same(*both(CASE.vectors, CASE.labels, distance, groups=groups, correct="none,mp", bootstrap=30))


@pytest.mark.parametrize(("number", "name"), list(enumerate(sorted(set(cases.CASES) - {"random"}))))
def test_awkward_data(number: int, name: str) -> None:
    case, distance = cases.CASES[name](), cases.DISTANCES[number % 3]
    matrix = brute.distance_matrix(case.vectors, distance)
    options = {"groups": case.groups, "across_groups": True, "permutations": 5, "correct": "none,icdm"}
    same(*both(case.vectors, case.labels, distance, matrix, **options), tolerance=2e-9)


def test_distances_of_no_vectors_against_loops() -> None:
    rng = np.random.default_rng(5)
    matrix = rng.exponential(size=(40, 40)) ** 2  # no triangle holds here
    matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    labels, groups = np.arange(40) % 3, np.arange(40) % 7
    scores = evaluate(distances=matrix, labels=labels, groups=groups, across_groups=True)
    for protocol, apart in (("all", None), ("across_groups", groups)):
        wanted = brute.label_values(matrix, labels, apart)
        wanted |= brute.hub_values(brute.occurrences(matrix, 5, apart), 5)
        for metric, value in wanted.items():
            assert scores.row(metric, protocol=protocol).value == pytest.approx(value, abs=1e-12), metric


def test_unlabelled_rows_and_small_classes_are_dropped_from_the_matrix() -> None:
    labels = [None if i % 9 == 0 else "rare" if i == 7 else str(label) for i, label in enumerate(CASE.labels)]
    for memory in ("2GB", 1_000_000):
        given, wanted = both(CASE.vectors, labels, "euclidean", per_point=True, permutations=10, memory=memory)
        same(given, wanted)
        assert given.notes == wanted.notes
        assert "unlabelled rows dropped" in given.row("P@1").reason


def test_distances_come_out_as_given_to_the_last_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bits.py").write_text(
        "SEEN = []\n"
        "def bits(neighbours, neighbour_distances, own_mean, farthest_same):\n"
        "    SEEN.append((neighbours, neighbour_distances, farthest_same))\n"
        "    return 0.0\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    matrix = scipy_matrix(CASE.vectors, "euclidean") / 3
    for kept in (matrix, matrix.astype(np.float32), np.round(matrix * 100).astype(np.int32)):
        evaluate(distances=kept, labels=CASE.labels, metrics="bits:bits,CSR")
        import bits  # type: ignore[import-not-found]

        neighbours, distances, farthest = bits.SEEN.pop()
        assert np.array_equal(distances, np.take_along_axis(kept.astype(float), neighbours, axis=1))
        alike = CASE.labels[:, None] == CASE.labels[None, :]
        assert np.array_equal(farthest, np.where(alike, kept.astype(float), -1.0).max(axis=1))


@pytest.mark.parametrize("scale", [1e-90, 1e-20, 2.0**40, 1e90])
def test_distances_of_any_size(scale: float) -> None:
    matrix = scipy_matrix(CASE.vectors, "euclidean")
    metrics = "P@1,P@5,CS,CSCF,silhouette,hub_ratio,hub_skew"
    options = {"labels": CASE.labels, "metrics": metrics, "correct": "none,ls,icdm,mp", "permutations": 5}
    same(evaluate(distances=matrix * scale, **options), evaluate(distances=matrix, **options))


@pytest.mark.parametrize("scale", [1e-200, 1e150])
def test_distances_out_of_range_are_refused(scale: float) -> None:
    with pytest.raises(InputError, match=r"too (small|large) to compute with"):
        evaluate(distances=scipy_matrix(CASE.vectors, "euclidean") * scale, labels=CASE.labels)


# --- where the matrix lies ---------------------------------------------------------------------------------------


def test_a_matrix_larger_than_memory_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    labels, points = rng.integers(0, 5, 300), rng.normal(size=(300, 4))
    matrix = scipy_matrix(points + labels[:, None], "euclidean")
    np.save(tmp_path / "d.npy", matrix)
    options = {"groups": np.arange(300) % 40, "across_groups": True, "permutations": 10, "correct": "none,icdm,mp"}
    wanted = evaluate(distances=matrix, labels=labels, **options)
    mapped = read_distances(tmp_path / "d.npy")
    assert isinstance(mapped.values, np.memmap)
    written = []
    monkeypatch.setattr(_arranging, "_check_disk", written.append)
    same(evaluate(mapped, labels, memory=1_000_000, **options), wanted, tolerance=0.0)
    # One matrix in the order of the classes; the order in which factors are found is that of the file.
    assert written == [300 * 300 * 8]


def test_a_matrix_in_order_is_not_copied() -> None:
    matrix = scipy_matrix(CASE.vectors, "euclidean")
    given = given_distances(matrix)
    values, largest, _ = _arranging.arranged(given, np.arange(given.n), 1 << 30)
    assert np.shares_memory(values, matrix)
    np.testing.assert_array_equal(largest, matrix.max(axis=1))
    order = np.array([5, 2, 40, 3])
    for kept in (given, given_distances(squareform(matrix)), given_distances(np.asfortranarray(matrix))):
        for memory in (1 << 30, 16):
            values, largest, release = _arranging.arranged(kept, order, memory)
            np.testing.assert_array_equal(values, matrix[np.ix_(order, order)])
            np.testing.assert_array_equal(largest, values.max(axis=1))
            release()
            np.testing.assert_array_equal(values, matrix[np.ix_(order, order)])


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_arranging, "SPARE", 1 << 62)
    with pytest.raises(InputError, match=r"take 0\.0 GB, and .* free: allow more with --memory, or set TMPDIR"):
        _arranging.arranged(given_distances(scipy_matrix(CASE.vectors, "cosine")), np.array([1, 0]), 1)


@pytest.mark.usefixtures("several_threads")
def test_no_result_depends_on_threads() -> None:
    matrix = scipy_matrix(CASE.vectors, "euclidean")
    options = {"labels": CASE.labels, "groups": CASE.groups, "across_groups": True, "permutations": 10}
    same(evaluate(distances=matrix, threads=3, **options), evaluate(distances=matrix, threads=1, **options), 0.0)


# --- what needs vectors, and what is said ------------------------------------------------------------------------


def test_what_needs_vectors_says_so_and_costs_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "longest.py").write_text("def longest(vectors):\n    return float(vectors.max())\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    matrix = scipy_matrix(CASE.vectors, "euclidean")
    scores = evaluate(distances=matrix, labels=CASE.labels, metrics="all,longest:longest", correct="none,sphere,dsl")
    for row in scores:
        needs = row.correction != "none" or row.metric in ("NMI", "ARI", "kmeans_purity", "purity", "longest")
        assert row.status == ("not_applicable" if needs else "ok"), row
        assert not needs or "distances were given without" in row.reason
    assert scores.value("P@1", correction="none") == evaluate(distances=matrix, labels=CASE.labels).value("P@1")


def test_directions_that_differ_are_told_in_every_row() -> None:
    matrix = scipy_matrix(CASE.vectors, "euclidean")
    uneven = matrix * np.where(np.triu(np.ones(matrix.shape)), 1.5, 0.5)
    with pytest.raises(InputError, match="not symmetric"):
        evaluate(distances=uneven, labels=CASE.labels)
    given = evaluate(given_distances(uneven, symmetrise="mean"), CASE.labels, per_point=True)
    same(given, evaluate(distances=matrix, labels=CASE.labels, per_point=True))
    assert all("the mean of both directions of a pair" in row.reason for row in given if row.status == "ok")
    assert any("not symmetric" in note for note in given.notes)


def test_inputs_are_those_of_the_values_whatever_the_form(tmp_path: Path) -> None:
    matrix = scipy_matrix(CASE.vectors, "euclidean")
    wanted = evaluate(distances=matrix, labels=CASE.labels).row("P@1")
    pairs = [f"{i},{j},{matrix[i, j].item()!r}" for i in range(len(matrix)) for j in range(i)]
    (tmp_path / "p.csv").write_text("\n".join(["a,b,distance", *pairs]))
    ids = [str(i) for i in range(len(matrix))]
    for given in (squareform(matrix), np.asfortranarray(matrix), read_distances(tmp_path / "p.csv", ids=ids)):
        assert evaluate(distances=given, labels=CASE.labels).row("P@1").inputs == wanted.inputs
    other = matrix.copy()
    other[3, 4] = other[4, 3] = other[3, 4] + 1e-9
    assert evaluate(distances=other, labels=CASE.labels).row("P@1").inputs != wanted.inputs
    assert evaluate(distances=matrix, labels=CASE.labels, distance_name="dtw").row("P@1").distance == "dtw"


def test_hubness_of_distances() -> None:
    matrix = scipy_matrix(CASE.vectors, "cosine")
    ids = [f"clip {i}" for i in range(len(matrix))]
    given = study_hubness(distances=given_distances(matrix, ids=ids), correct=CORRECTIONS, per_point=True)
    wanted = study_hubness(CASE.vectors, correct=CORRECTIONS, per_point=True)
    for (_, correction), lists in given.lists.items():
        np.testing.assert_array_equal(lists, wanted.lists["cosine", correction])
    assert [row.value for row in given.scores] == pytest.approx([row.value for row in wanted.scores])
    assert given.scores.point_ids == tuple(ids)
    assert hubness(distances=matrix).value("hub_ratio") == wanted.scores.value("hub_ratio", correction="none")


def test_comparisons_of_distances_and_vectors() -> None:
    euclidean, cosine = (scipy_matrix(CASE.vectors, name) for name in ("euclidean", "cosine"))
    given = {"e": given_distances(euclidean), "c": given_distances(cosine)}
    wanted = {
        name: evaluate(CASE.vectors, CASE.labels, distance=distance, metrics="P@1", system=name)
        for name, distance in (("e", "euclidean"), ("c", "cosine"))
    }
    scores = compare(given, CASE.labels, metrics="P@1,GSR")
    difference = wanted["e"].value("P@1") - wanted["c"].value("P@1")
    assert scores.row("P@1:difference").value == pytest.approx(difference)
    assert scores.row("P@1:difference").distance == "given"
    mixed = compare({"d": given["e"], "v": CASE.vectors}, CASE.labels, distance="euclidean", distance_name="dtw")
    assert all(row.value == pytest.approx(0.0, abs=1e-12) for row in mixed)
    assert {row.distance for row in mixed} == {"dtw - euclidean"}
    with pytest.raises(UsageError, match="compare it with one distance"):
        compare({"d": given["e"], "v": CASE.vectors}, CASE.labels, distance="euclidean,cosine")
    with pytest.raises(InputError, match="same clips"):
        compare({"d": given["e"], "v": CASE.vectors[1:]}, CASE.labels)


def test_few_items_and_items_that_are_all_alike() -> None:
    same(*both(CASE.vectors[:4], ["a", "a", "b", "b"], "euclidean"))
    alike = np.ones((12, 12)) - np.eye(12)
    same(*both(np.eye(12), list("aabbccddeeff"), "cosine", alike, permutations=10, correct=CORRECTIONS))
    nowhere = np.zeros((12, 12))
    same(*both(np.zeros((12, 3)), list("aabbccddeeff"), "euclidean", nowhere, permutations=10, correct="none,ls,mp"))
    with pytest.raises(InputError, match="at least 3"):
        hubness(distances=np.ones((2, 2)) - np.eye(2))


def test_calls_that_cannot_be_meant() -> None:
    matrix = scipy_matrix(CASE.vectors, "euclidean")
    with pytest.raises(UsageError, match="Both vectors and distances"):
        evaluate(CASE.vectors, CASE.labels, distances=matrix)
    with pytest.raises(InputError, match="nothing to measure"):
        evaluate(labels=CASE.labels)
    with pytest.raises(UsageError, match="needs the labels"):
        evaluate(distances=matrix)
    with pytest.raises(UsageError, match="leave out distance='euclidean'"):
        evaluate(distances=matrix, labels=CASE.labels, distance="euclidean")
    with pytest.raises(UsageError, match="distance_name"):
        evaluate(distances=matrix, labels=CASE.labels, distance_name="a,b")
    with pytest.raises(InputError, match="61 items and 3 labels"):
        evaluate(distances=matrix, labels=CASE.labels[:3])
    assert isinstance(earmark.evaluate(given_distances(matrix), CASE.labels), Scores)
    assert isinstance(given_distances(matrix), Distances)
