"""Tables of groups and classes: the order, the sentences at every number, files."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import earmark
from earmark.errors import InputError, UsageError
from earmark.report.parts import parts_of


def made(hits: str, groups: str, labels: str = "", by: str = "group") -> str:
    values = {"P@1": np.array([float(hit) for hit in hits])}
    said = parts_of(values, list(labels or "a" * len(hits)), list(groups), by).sentences()  # type: ignore[arg-type]
    return " ".join(said).replace("\N{NO-BREAK SPACE}", " ")


def test_sentences_fit_the_number_of_groups() -> None:
    assert made("1010", "xxxx") == "There is one group alone: it cannot stand out."
    assert made("1010", "xyxy", "abab").startswith("No class is in two groups")
    assert made("1111", "xxyy") == "Nothing tells groups apart: the clips that could are all right, or all wrong."
    two = made("10" * 10, "x" * 10 + "y" * 10)
    assert two.startswith("None of 2 groups stands out: dealing out the clips of each class at random explains")
    assert "A group of 10 clips, the usual number, stands out as low at 20.0 % or less." in two
    assert "With 1 clip, the usual number, no group could stand out" in made("10", "xy")
    both = made("0" * 20 + "1" * 20, "x" * 20 + "y" * 20)
    assert both.startswith("2 of 2 groups stand out in P@1 beyond what dealing out the clips of each class at random")
    assert "(lower: x; higher: y)" in both
    one = made("0" * 12 + "10" * 10 + "1" * 4 + "10" * 12, "x" * 12 + "y" * 24 + "z" * 24)
    assert one.startswith("1 of 3 groups stands out")


def test_the_one_group_that_can_be_judged() -> None:
    # x shares its class with y, whose other clips nobody shares; z is by itself.
    said = made("1010" + "11", "xxyy" + "zz", "aaaa" + "bb")
    assert said.startswith("None of 2 groups stands out")


def test_classes_are_compared_with_each_other() -> None:
    said = made("0" * 15 + "1" * 15, "xyz" * 10, "a" * 15 + "b" * 15, by="class")
    assert said.startswith("2 of 2 classes stand out in P@1 beyond what dealing out clips at random explains")


def test_what_cannot_be_had_is_said() -> None:
    with pytest.raises(InputError, match="no groups"):
        parts_of({"P@1": np.ones(2)}, ["a", "b"])
    with pytest.raises(InputError, match="P@1, GSR, P@5"):
        parts_of({"CSR": np.ones(2)}, ["a", "b"], ["x", "y"])
    with pytest.raises(UsageError, match="group or class"):
        parts_of({"P@1": np.ones(2)}, ["a", "b"], ["x", "y"], "speaker")  # type: ignore[arg-type]
    scores = earmark.evaluate(np.eye(6), list("aabbcc"), metrics="P@1")
    with pytest.raises(InputError, match="per_point=True"):
        scores.by_group()


def test_scores_give_their_groups_and_classes() -> None:
    rng = np.random.default_rng(1)
    labels, groups = np.repeat(list("abc"), 20), np.tile(["x", "y", "z", "w", None], 12)
    vectors = np.eye(3)[np.repeat([0, 1, 2], 20)] + 0.4 * rng.normal(size=(60, 3))
    scores = earmark.evaluate(
        vectors, labels, groups=groups, per_point=True, distance=["cosine", "euclidean"], across_groups=True
    )
    parts = scores.by_group(distance="euclidean")
    assert parts.title == "euclidean, across groups"
    assert [line.n for line in parts.lines] == [12, 12, 12, 12]
    values = [line.scores["P@1"].value for line in parts.lines]
    assert values == sorted(values)
    whole = scores.value("P@1", distance="euclidean", protocol="across_groups")
    assert np.mean(values) == pytest.approx(whole)
    assert np.mean([line.scores["GSR"].value for line in parts.lines]) == pytest.approx(
        scores.value("GSR", distance="euclidean", protocol="across_groups")
    )
    rows = list(csv.DictReader(io.StringIO(parts.table().to_csv())))
    assert float(rows[0]["P@1"]) == values[0]
    assert float(rows[0]["P@1 low"]) < values[0] < float(rows[0]["P@1 high"])
    assert rows[0]["GSR"]
    assert "GSR low" not in rows[0]
    assert "elsewhere (%)" in repr(parts)
    assert "<table" in parts._repr_html_()
    assert len(scores.by_class()) == 3
    with pytest.raises(UsageError, match="No distance 'cosin'"):
        scores.by_group(distance="cosin")


def test_classes_that_were_dropped_are_not_counted_among_those_of_a_group() -> None:
    values = {"P@1": np.array([1.0, 0.0, 1.0, 0.0, np.nan])}
    parts = parts_of(values, ["wren", "wren", "owl", "owl", "typo"], ["dawn", "dusk", "dawn", "dusk", "dusk"])
    assert {line.name: (line.n, line.spread) for line in parts.lines} == {"dawn": (2, 2), "dusk": (2, 2)}
