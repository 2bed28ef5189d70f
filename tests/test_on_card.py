"""Metrics of vectors on a device are those of `evaluate`, one set or several beside each other."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases import CASES, DISTANCES, random

import earmark
from earmark.errors import EarmarkError

torch = pytest.importorskip("torch", reason="torch is an extra")
on_card = pytest.importorskip("earmark.evaluation.on_card")

DEVICES = ["torch:cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def assert_same(found, case, distance, rel=1e-11):
    scores = earmark.evaluate(
        case.vectors, case.labels, distance=distance, intervals="none", min_class_size=1, device="cpu", threads=1
    )
    for metric, value in found.items():
        expected = scores.value(metric)
        expected = np.nan if expected is None else expected
        assert value == pytest.approx(expected, rel=rel, abs=1e-12, nan_ok=True), metric


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("distance", DISTANCES)
def test_every_case_beside_the_others(distance, device):
    """One set of each awkward kind, of one width, measured together; each has the values it has alone."""
    cases = {name: make() for name, make in CASES.items()}
    cases = {name: case for name, case in cases.items() if case.vectors.shape[1] == 160 and name != "tight_classes"}
    sets = on_card.LabelledSets([case.labels for case in cases.values()], device)
    vectors = torch.from_numpy(np.concatenate([case.vectors.astype(np.float64) for case in cases.values()]))
    assert len(cases) > 4
    for (name, case), found in zip(cases.items(), sets.measure(vectors, distance), strict=True):
        assert_same(found, case, distance, rel=1e-7 if name in ("offset", "outlier") else 1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ties", ["average", "ordinal"])
def test_float32_and_ties(ties, device):
    case = random(9, n=90, dims=30)
    case = case._replace(vectors=np.round(case.vectors, 1).astype(np.float32))
    found = on_card.LabelledSets([case.labels], device).measure(torch.from_numpy(case.vectors), "spearman", ties=ties)
    scores = earmark.evaluate(case.vectors, case.labels, distance="spearman", intervals="none", ties=ties, threads=1)
    for metric, value in found[0].items():
        assert value == pytest.approx(scores.value(metric), rel=1e-11), metric


@pytest.mark.parametrize("device", DEVICES)
def test_sets_too_small_for_a_metric(device):
    """Three points of two classes, one class, classes of one: NaN where `evaluate` has no value."""
    rng = np.random.default_rng(0)
    labels = [["a", "a", "b"], ["a"] * 6, list("abcdefg")]
    vectors = rng.normal(size=(16, 4))
    found = on_card.LabelledSets(labels, device).measure(vectors)
    assert np.isnan(found[0]["P@5"])
    assert np.isnan(found[0]["hub_ratio"])
    assert np.isfinite(found[0]["GSR"])
    assert np.isnan(found[1]["GSR"])
    assert found[1]["P@1"] == 1.0
    assert np.isnan(found[2]["P@1"])
    assert np.isnan(found[2]["CS"])
    assert np.isfinite(found[2]["hub_skew"])


def test_more_points_than_the_device_holds(monkeypatch):
    sets = on_card.LabelledSets([["a", "a", "b", "b"]], "torch:cpu")

    def none_left(*_):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(sets, "_measured", none_left)
    with pytest.raises(EarmarkError, match="fewer sets at once"):
        sets.measure(np.eye(4))


def test_what_cannot_be_measured():
    sets = on_card.LabelledSets([["a", "a", "b", "b"]], "torch:cpu")
    vectors = np.random.default_rng(0).normal(size=(4, 3))
    with pytest.raises(EarmarkError, match="4 labels"):
        sets.measure(vectors[:3])
    with pytest.raises(EarmarkError, match="Unknown distance"):
        sets.measure(vectors, "cosin")
    vectors[0, 0] = np.nan
    with pytest.raises(EarmarkError, match="not finite"):
        sets.measure(vectors)
    with pytest.raises(EarmarkError, match="at least two labels"):
        on_card.LabelledSets([["a"]], "torch:cpu")


@pytest.mark.parametrize("device", DEVICES)
def test_an_evaluation_is_the_same_on_a_device(device):
    """Values, intervals, baselines and lists, plain and corrected, all pairs and across groups."""
    case = random(11, n=150, dims=20)
    options = {
        "distance": ["cosine", "euclidean"], "correct": ["none", "ls"], "groups": case.groups, "across_groups": True,
        "permutations": 20, "per_point": True, "threads": 1,
    }  # fmt: skip
    here = earmark.evaluate(case.vectors, case.labels, device="cpu", **options)
    there = earmark.evaluate(case.vectors, case.labels, device=device, **options)
    assert len(here.rows) == len(there.rows)
    for one, other in zip(here.rows, there.rows, strict=True):
        one, other = one.as_dict() | {"seconds": 0}, other.as_dict() | {"seconds": 0}
        for name, value in one.items():
            assert other[name] == (pytest.approx(value, rel=1e-10) if isinstance(value, float) else value), name
    for key, values in here.per_point.items():
        assert there.per_point[key] == pytest.approx(values, rel=1e-11, nan_ok=True), key
