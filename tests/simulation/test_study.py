"""A short form of the bench: few repeats, wide limits, so that a method that does not hold is still caught."""

from __future__ import annotations

import json

import numpy as np
import pytest

from earmark.cli import main
from earmark.errors import UsageError
from earmark.simulation import DESIGNS, draw, study, to_csv
from earmark.simulation.study import Line


@pytest.fixture(scope="module")
def lines():
    settings = {"repeats": 50, "permutations": 39, "metrics": ("P@1", "P@5", "GSR", "CS", "silhouette")}
    grouped = study(["15-groups", "6-groups", "labels-with-groups"], former=False, **settings)
    return study(["clips"], **settings) + grouped


def test_intervals_cover(lines):
    assert all(line.coverage >= 0.85 for line in lines), [line for line in lines if line.coverage < 0.85]
    assert np.mean([line.coverage for line in lines]) > 0.93


def test_equal_systems_are_rarely_told_apart(lines):
    assert all(line.equal_rejected <= 0.15 for line in lines)
    assert np.mean([line.equal_rejected for line in lines]) < 0.06


def test_meaningless_labels_rarely_look_significant(lines):
    known = [line.null_rejected for line in lines if line.null_rejected is not None]
    assert len(known) == len(lines)
    assert max(known) <= 0.16
    assert np.mean(known) < 0.08


def test_a_worse_system_is_found_more_often_than_an_equal_one(lines):
    clips = [line for line in lines if line.design == "clips" and line.metric in ("CS", "silhouette")]
    assert all(line.found > 0.5 for line in clips)


def test_what_version_0_1_0_said_did_not_hold(lines):
    """The bench can tell: the former intervals and tests fail it."""
    clips = {line.metric: line for line in lines if line.design == "clips"}
    assert clips["GSR"].former_coverage < 0.9
    assert clips["CS"].former_coverage < 0.85
    assert clips["GSR"].former_equal_rejected > 0.15


@pytest.mark.parametrize("name", DESIGNS)
def test_designs_are_as_they_say(name):
    design = DESIGNS[name]
    sample = draw(design, 0, 3)
    assert sample.a.shape == sample.b.shape == (design.clips, 12)
    assert len(np.unique(sample.labels)) == design.classes
    assert (sample.groups is None) == (design.groups == 0)
    if sample.groups is not None:
        assert len(np.unique(sample.groups)) == design.groups
        pairs = np.unique(np.column_stack([sample.groups, sample.labels]), axis=0)
        labels_of_a_group = np.bincount(pairs[:, 0])
        kinds = {"labels-with-groups": 1, "30-groups-one-label": 1, "two-labels": 2, "15-groups": 5, "6-groups": 5}
        if name in kinds:
            assert set(labels_of_a_group) == {kinds[name]}
    assert not np.array_equal(sample.a, draw(design, 0, 4).a)
    assert np.array_equal(sample.a, draw(design, 0, 3, separation_b=0.1).a)


def test_a_killed_study_continues(tmp_path):
    settings = {"metrics": ("P@1",), "permutations": 0, "former": False}
    whole = study(["clips"], repeats=6, into=tmp_path / "whole", **settings)
    study(["clips"], repeats=3, into=tmp_path / "part", **settings)
    with (tmp_path / "part" / "scores.csv").open("a") as stream:
        stream.write("P@1,clips,all,val")  # a line that was cut
    assert study(["clips"], repeats=6, into=tmp_path / "part", **settings) == whole


def test_unknown_designs_are_named():
    with pytest.raises(UsageError, match="Did you mean"):
        study(["clip"], repeats=2)


def test_a_line_that_falls_short_says_so():
    cells = dict.fromkeys(Line.__dataclass_fields__)
    cells |= {"design": "clips", "protocol": "all", "metric": "P@1", "units": 150, "repeats": 400, "no_interval": 0.0}
    assert Line(**cells | {"coverage": 0.95, "equal_rejected": 0.05}).holds is True
    assert Line(**cells | {"coverage": 0.80, "equal_rejected": 0.05}).holds is False
    assert Line(**cells | {"coverage": 0.95, "equal_rejected": 0.20}).holds is False
    assert Line(**cells | {"coverage": 0.95, "units": 6}).holds is None


def test_the_command_prints_a_table_and_writes_files(tmp_path, capsys):
    out = tmp_path / "lines.csv"
    words = "calibrate --designs few-clips --metrics P@1,GSR --repeats 4 --permutations 0 --jobs 1 --quiet".split()
    assert main([*words, "--out", str(out)]) == 0
    assert "few-clips: 24 independent clips of 4 classes; all pairs; 4 data sets" in capsys.readouterr().out
    assert out.read_text().startswith("design,protocol,metric,units,repeats,")
    assert main([*words, "--json"]) == 0
    assert {line["metric"] for line in json.loads(capsys.readouterr().out)} == {"P@1", "GSR"}


def test_csv_has_a_line_for_each(lines):
    assert len(to_csv(lines).splitlines()) == len(lines) + 1
