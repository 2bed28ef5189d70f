"""`earmark.evaluate` and its sisters under hubness corrections, against metrics of the rewritten matrix."""

from __future__ import annotations

import numpy as np
import pytest
from tests import brute, corrected
from tests.cases import random

import earmark
from earmark.errors import UsageError

METRICS = ("P@k", "GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette", "hub_ratio", "antihub_rate", "hub_skew")
RATIOS = {"GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette"}
SEED, SHUFFLES, DRAWS = 5, 8, 8


def scored(case, distance, text):
    return earmark.evaluate(
        case.vectors, case.labels, groups=case.groups, across_groups=True, distance=distance, correct=text,
        metrics=METRICS, k=(1, 3), permutations=SHUFFLES, bootstrap=DRAWS, seed=SEED,
    )  # fmt: skip


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
@pytest.mark.parametrize("name", ["sphere", "ls", "nicdm", "icdm", "csls", "mp", "dsl"])
def test_every_metric_with_its_null_and_interval(name, distance):
    """Values, baselines and bootstrap intervals of both protocols: what brute force makes of the corrected matrix."""
    case = random(80, n=48, dims=40, groups=12)
    scores = scored(case, distance, name)
    matrix = corrected.matrix(case.vectors, distance, name)
    for protocol, barred in (("all", None), ("across_groups", case.groups)):
        expected = brute.label_values(matrix, case.labels, barred, (1, 3))
        expected |= brute.hub_values(brute.occurrences(matrix, 5, barred), 5)
        across = protocol == "across_groups"
        nulls = brute.null_values(matrix, case.labels, SHUFFLES, SEED, case.groups, (1, 3), across=across)
        draws = brute.resampled_values(matrix, case.labels, DRAWS, SEED, case.groups, across, (1, 3))
        for row in scores.select(protocol=protocol):
            assert row.correction == name
            if name in ("csls", "dsl") and row.metric in RATIOS:
                assert (row.status, row.value) == ("not_applicable", None)
                assert "differences" in row.reason
                continue
            assert row.value == pytest.approx(expected[row.metric], abs=1e-9), row.metric
            if row.metric in nulls:
                assert row.baseline == pytest.approx(nulls[row.metric].mean(), abs=1e-9), row.metric
                low, high = brute.interval(draws[row.metric])
                assert (row.low, row.high) == pytest.approx((low, high), abs=1e-9), row.metric
    assert len(scores.rows) == 2 * 11


def test_corrections_side_by_side():
    """One call gives the rows of each correction, and those of `none` are what they are alone, to the last bit."""
    case = random(81, n=60)
    alone = earmark.evaluate(case.vectors, case.labels, distance=["cosine", "euclidean"])
    several = earmark.evaluate(
        case.vectors, case.labels, distance=["cosine", "euclidean"], correct="none,icdm:k=5,iterations=3,sphere"
    )
    assert list(dict.fromkeys(row.correction for row in several)) == ["none", "icdm:k=5,iterations=3", "sphere"]
    for row in several.select(correction="none"):
        twin = alone.row(row.metric, distance=row.distance)
        assert (row.value, row.n, row.reason, row.inputs) == (twin.value, twin.n, twin.reason, twin.inputs)
    hashes = {(row.distance, row.correction): row.inputs for row in several}
    assert len(set(hashes.values())) == 6


def test_clusters_need_points():
    """No points lie at corrected distances, so k-means has nothing to cluster; on the sphere it has."""
    case = random(82, n=60)
    scores = earmark.evaluate(case.vectors, case.labels, correct="icdm", metrics=["NMI", "ARI", "purity"])
    assert [row.metric for row in scores] == ["NMI", "ARI", "purity"]
    for row in scores:
        assert (row.status, "moves no points" in row.reason) == ("not_applicable", True)
    assert earmark.evaluate(case.vectors, case.labels, correct="sphere", metrics=["NMI"]).row("NMI").status == "ok"


def test_points_and_neighbours_are_kept_by_correction():
    case = random(83, n=60)
    scores = earmark.evaluate(case.vectors, case.labels, correct=["none", "mp"], metrics=["P@1"], per_point=True)
    matrix = corrected.matrix(case.vectors, "cosine", "mp")
    np.fill_diagonal(matrix, np.inf)
    assert scores.per_point["cosine", "mp", "all", "nearest_row"].tolist() == matrix.argmin(axis=1).tolist()
    assert ("cosine", "none", "all", "P@1") in scores.per_point


def test_too_few_points_say_which_k_fits():
    case = random(84, n=9, classes=2)
    scores = earmark.evaluate(case.vectors, case.labels, correct="none,icdm,ls:k=8,csls:k=9", across_groups=False)
    for text in ("icdm", "csls:k=9"):
        rows = scores.select(correction=text).rows
        assert {row.status for row in rows} == {"not_applicable"}
        assert "largest k that fits is 8" in rows[0].reason
        assert len(rows) == len(scores.select(correction="none"))
    assert scores.row("P@1", correction="ls:k=8").status == "ok"


def test_compare_takes_one_correction():
    case = random(86, n=60)
    noisy = case.vectors + np.random.default_rng(0).normal(size=case.vectors.shape)
    scores = earmark.compare(case.vectors, noisy, case.labels, correct="icdm", bootstrap=20, permutations=20)
    one, other = (earmark.evaluate(x, case.labels, correct="icdm") for x in (case.vectors, noisy))
    row = scores.row("P@1:difference", correction="icdm")
    assert row.value == pytest.approx(one.value("P@1") - other.value("P@1"))
    with pytest.raises(UsageError, match="one correction"):
        earmark.compare(case.vectors, noisy, case.labels, correct="none,icdm")


def test_hubness_before_and_after():
    vectors = np.random.default_rng(0).normal(size=(300, 60))
    scores = earmark.hubness(vectors, distance="euclidean", correct=("none", "icdm"), per_point=True)
    for name in ("none", "icdm"):
        counts = brute.occurrences(corrected.matrix(vectors, "euclidean", name), 5)
        assert np.array_equal(scores.per_point["euclidean", name, "all", "hub_ratio"], counts)
    assert scores.value("hub_ratio", correction="icdm") < scores.value("hub_ratio", correction="none") / 2
