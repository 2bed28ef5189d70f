"""Two and more systems on the same clips."""

from __future__ import annotations

import numpy as np
import pytest
from tests import brute
from tests.cases import random

import earmark
from earmark.calibrate.jackknife import difference
from earmark.errors import InputError, UsageError
from earmark.scores import metric_facts


@pytest.fixture(scope="module")
def clips():
    rng = np.random.default_rng(3)
    labels = np.arange(90) % 3
    centres = rng.normal(size=(3, 8))
    return {
        "labels": labels,
        "speakers": np.arange(90) // 9,
        "good": 1.2 * centres[labels] + rng.normal(size=(90, 8)),
        "fair": 0.9 * centres[labels] + rng.normal(size=(90, 8)),
        "poor": 0.1 * centres[labels] + rng.normal(size=(90, 8)),
    }


@pytest.mark.parametrize("grouped", [False, True])
def test_a_difference_rests_on_both_systems_without_each_unit(grouped):
    case = random(4, n=30, dims=6, classes=3, groups=6)
    other = case.vectors + np.random.default_rng(5).normal(size=case.vectors.shape)
    groups = case.groups if grouped else None
    scores = earmark.compare(case.vectors, other, case.labels, groups=groups, across_groups=grouped)
    units = case.groups if grouped else np.arange(30)
    first, second = (brute.distance_matrix(vectors, "cosine") for vectors in (case.vectors, other))
    for protocol in ("all", "across_groups") if grouped else ("all",):

        def values(distances, kept, protocol=protocol):
            barred = case.groups[kept] if protocol == "across_groups" else None
            return brute.label_values(distances[np.ix_(kept, kept)], case.labels[kept], barred)

        everything = np.arange(30)
        whole = [values(distances, everything) for distances in (first, second)]
        parts = [[values(d, everything[units != unit]) for unit in np.unique(units)] for d in (first, second)]
        for metric in ("P@1", "P@5", "GSR", "CSR", "CSR_pointwise", "CS", "silhouette"):
            row = scores.row(f"{metric}:difference", protocol=protocol)
            a, b = (np.array([part[metric] for part in of]) for of in parts)
            right = difference(whole[0][metric], whole[1][metric], a, b, metric_facts(metric).range)
            assert row.value == pytest.approx(right.value, abs=1e-9)
            assert (row.low, row.high, row.p_value) == pytest.approx((right.low, right.high, right.p_value), abs=1e-7)
            assert (row.interval, row.units, row.comparisons) == ("jackknife", len(np.unique(units)), 1)
            assert row.unit == ("group" if grouped else "clip")


def test_several_systems_are_compared_pair_by_pair_and_corrected(clips):
    systems = {name: clips[name] for name in ("good", "fair", "poor")}
    rows = earmark.compare(systems, clips["labels"]).select(metric="P@1:difference").rows
    assert [row.system for row in rows] == ["good - fair", "good - poor", "fair - poor"]
    assert {row.comparisons for row in rows} == {3}
    alone = earmark.compare(clips["good"], clips["fair"], clips["labels"]).row("P@1:difference")
    assert rows[0].p_value == pytest.approx(min(1.0, 3 * alone.p_value))
    assert rows[0].low < alone.low
    assert rows[0].high > alone.high
    assert rows[1].low > 0


def test_a_reference_is_compared_with_every_other_system(clips):
    systems = {name: clips[name] for name in ("good", "fair", "poor")}
    rows = earmark.compare(systems, clips["labels"], reference="fair", metrics="GSR").rows
    assert [row.system for row in rows] == ["good - fair", "poor - fair"]
    assert {row.comparisons for row in rows} == {2}


def test_groups_are_the_units(clips):
    rows = earmark.compare(clips["good"], clips["fair"], clips["labels"], groups=clips["speakers"]).rows
    assert {(row.unit, row.units) for row in rows if row.p_value is not None} == {("group", 10)}


def test_few_groups_get_words_instead_of_a_verdict(clips):
    four = np.arange(90) % 4
    row = earmark.compare(clips["good"], clips["poor"], clips["labels"], groups=four).row("P@1:difference")
    assert row.value is not None
    assert (row.low, row.p_value, row.units) == (None, None, None)
    assert "4 groups are too few" in row.reason


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: earmark.compare({"a": c["good"]}, c["labels"]), "at least two systems"),
        (lambda c: earmark.compare(c["good"], c["fair"]), "needs the labels"),
        (lambda c: earmark.compare(c["good"], c["fair"], c["labels"], names=("x", "x")), "different names"),
        (lambda c: earmark.compare({"good": c["good"], "b": c["fair"]}, c["labels"], reference="goot"), "Did you mean"),
        (lambda c: earmark.compare(c["good"], c["fair"], c["labels"], correct="ls,icdm"), "one correction at a time"),
    ],
)
def test_what_cannot_be_compared_is_said(clips, call, words):
    with pytest.raises(UsageError, match=words):
        call(clips)


def test_embeddings_of_different_clips_are_refused(clips):
    with pytest.raises(InputError, match="compare embeddings of the same clips"):
        earmark.compare(clips["good"], clips["fair"][:-1], clips["labels"])


def test_a_difference_without_an_interval_names_the_unit_that_was_left_out():
    generator = np.random.default_rng(11)
    groups = np.repeat(np.arange(6), 5)
    labels = np.where(groups == 4, "owl", "wren")  # without group 4 one class is left
    row = earmark.compare(generator.normal(size=(30, 4)), generator.normal(size=(30, 4)), labels, groups=groups).row(
        "GSR:difference"
    )
    assert row.p_value is None
    assert "without one of the groups it cannot be measured" in row.reason
    same = np.ones((30, 4))
    row = earmark.compare(same, 2 * same, np.tile(["a", "b", "c"], 10), groups=groups, distance="euclidean").row(
        "silhouette:difference"
    )
    assert (row.unit, row.units, row.p_value) == ("group", 6, 1.0)


def test_a_k_that_no_query_has_candidates_for_is_the_reason_given():
    generator = np.random.default_rng(12)
    groups, labels = np.tile(np.arange(3), 4), np.repeat(["a", "b"], 6)
    scores = earmark.evaluate(generator.normal(size=(12, 3)), labels, groups=groups, across_groups=True, k=10)
    row = scores.row("P@10", protocol="across_groups")
    assert row.status == "not_applicable"
    assert "fewer than 10 candidates outside their group" in row.reason


def test_two_systems_that_agree_have_a_p_value_and_no_interval(clips):
    row = earmark.compare({"a": clips["good"], "b": clips["good"].copy()}, clips["labels"]).row("GSR:difference")
    assert (row.value, row.p_value, row.units, row.low, row.interval) == (0.0, 1.0, 90, None, "")
