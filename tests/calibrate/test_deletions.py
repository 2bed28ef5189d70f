"""Values without each unit against the slow reference, which measures the rest of the points from nothing."""

from __future__ import annotations

import numpy as np
import pytest
from tests import brute
from tests.cases import CASES, DISTANCES

from earmark import evaluate
from earmark.calibrate.closed_forms import CLASS_SUMS
from earmark.calibrate.deletions import depth_needed, leave_out, units_of
from earmark.geometry import spaces
from earmark.geometry.layout import lay_out
from earmark.geometry.sweep import Wanted, sweep
from earmark.metrics.separation import EPSILON

METRICS = "GSR CSR CSR_pointwise CS CSCF silhouette hub_ratio antihub_rate hub_skew robin_hood".split()
KS = (1, 5)
HUB_K = 5
assert brute.EPSILON == EPSILON


def without_each(case, distance, *, grouped, metrics=METRICS, ks=KS, threads=2, memory=1 << 30):
    """{protocol: {metric: values}} of the fast way, and the kept rows with their units in the same order."""
    rows = brute.kept_rows(case.labels)
    codes = np.unique(case.labels[rows], return_inverse=True)[1]
    groups = np.unique(np.asarray(case.groups)[rows], return_inverse=True)[1] if grouped else None
    layout = lay_out(codes, groups)
    units = units_of(layout)
    space = spaces.prepare(np.asarray(case.vectors)[rows], distance, order=layout.order)
    wanted = Wanted(
        neighbours=depth_needed(max(*ks, HUB_K), units), farthest=True, class_sums=True, across_groups=grouped,
        units=units.of, keep_sums=bool(CLASS_SUMS & set(metrics)),
    )  # fmt: skip
    swept = sweep(space, layout, wanted, threads=threads, memory=memory)
    values = leave_out(space, layout, swept, units, metrics, ks, hub_k=HUB_K, threads=threads, memory=memory)
    if not grouped:
        values = {name: {m: layout.to_rows(v) for m, v in found.items()} for name, found in values.items()}
    return values, rows, (groups if grouped else np.arange(len(rows)))


def expected(distances, labels, groups, kept, across):
    barred = groups[kept] if across else None
    part = distances[np.ix_(kept, kept)]
    found = brute.label_values(part, labels[kept], barred, KS) if len(set(labels[kept])) > 1 else {}
    if len(kept) > HUB_K:
        found |= brute.hub_values(brute.occurrences(part, HUB_K, barred), HUB_K)
    return found


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", CASES)
def test_values_without_each_unit_are_those_of_the_rest(name, distance, grouped):
    check_every_unit(CASES[name](), distance, grouped, name)


@pytest.mark.parametrize("size", [20, 35, 50])
def test_lists_that_one_group_fills_nearly_alone(size):
    case = CASES["random"]()
    groups = np.where(np.arange(len(case.labels)) < size, 0, np.arange(len(case.labels)))
    check_every_unit(case._replace(groups=groups), "cosine", True)


def check_every_unit(case, distance, grouped, name=""):
    values, rows, unit_of = without_each(case, distance, grouped=grouped)
    distances = brute.distance_matrix(np.asarray(case.vectors)[rows], distance)
    labels = np.asarray(case.labels)[rows]
    chosen = np.unique(unit_of)
    if not grouped:
        chosen = np.random.default_rng(0).choice(chosen, min(6, len(chosen)), replace=False)
    for protocol in values:
        for unit in chosen:
            kept = np.flatnonzero(unit_of != unit)
            right = expected(distances, labels, unit_of, kept, protocol == "across_groups")
            for metric, of_each in values[protocol].items():
                got = of_each[unit]
                want = right.get(metric, np.nan)
                if metric == "CSCF" and name in ("one_hot", "two_places", "collapsed_class", "duplicates"):
                    continue  # means that are equal on paper: a strict < is decided by the reference's own rounding
                assert np.isclose(got, want, rtol=0, atol=1e-9, equal_nan=True), (protocol, unit, metric, got, want)


def test_without_the_only_unit_of_the_other_class_nothing_is_measured():
    generator = np.random.default_rng(3)
    groups = np.repeat(np.arange(7), 4)
    labels = np.where(groups == 2, "owl", "wren")
    scores = evaluate(generator.normal(size=(28, 5)), labels, groups=groups, per_unit=True, k=1)
    assert np.isnan(scores.per_unit["cosine", "none", "all", "P@1"]).tolist() == [unit == 2 for unit in range(7)]
    assert np.isfinite(scores.per_unit["cosine", "none", "all", "hub_skew"]).all()
    row = scores.row("P@1")
    assert row.low is None
    assert "without one of the groups it cannot be measured" in row.reason


@pytest.mark.parametrize("grouped", [False, True])
def test_rounding_has_no_say_where_the_points_that_are_left_coincide(grouped):
    # All clips but those of one unit are the same sound: what is left of the sums without it is rounding.
    generator = np.random.default_rng(5)
    labels = np.repeat(["a", "b", "c"], 6)
    groups = np.tile(np.arange(6), 3) if grouped else np.arange(18)
    vectors = np.tile(generator.normal(size=3), (18, 1))
    vectors[groups == 0] = generator.normal(size=(int((groups == 0).sum()), 3)) / 3.0
    given = {"distance": "euclidean", "metrics": ["CS", "CSCF", "silhouette", "GSR"], "min_class_size": 1}
    scores = evaluate(vectors, labels, groups=groups if grouped else None, per_unit=True, **given)
    rest = evaluate(vectors[groups != 0], labels[groups != 0], intervals="none", **given)
    for row in rest.rows:
        without = scores.per_unit["euclidean", "none", "all", row.metric]
        assert without[0] == pytest.approx(row.value, abs=1e-6), row.metric
