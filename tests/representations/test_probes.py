"""Probes as a step of a run: kept and found again, rows of the score table, a section of the report."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.representations import sounds

import earmark
from earmark.errors import UsageError
from earmark.pipeline import plan, run
from earmark.probes.linear import linear
from earmark.representations import load_vectors
from earmark.representations.config import RunConfig
from earmark.scores import validate


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """Clips of three classes with a fold for each, and a group that stays inside its fold."""
    folder = sounds.make_folder(tmp_path / "sounds")
    rows = []
    for label in sorted(path for path in folder.iterdir() if path.is_dir()):
        for number, clip in enumerate(sorted(label.glob("*.wav"))):
            rows.append([clip.relative_to(tmp_path).as_posix(), label.name, f"g{number % 3}", number % 3 + 1])
    target = tmp_path / "clips.csv"
    with target.open("w", newline="") as file:
        csv.writer(file).writerows([["path", "label", "group", "fold"], *rows])
    return target


@pytest.fixture
def triplets(tmp_path: Path, manifest: Path) -> Path:
    with manifest.open() as file:
        clips = list(csv.DictReader(file))
    rows = [
        [one["path"], other["path"], third["path"]]
        for one in clips[:6]
        for other in clips
        if other["label"] == one["label"] and other is not one
        for third in clips[-2:]
    ]
    target = tmp_path / "triplets.csv"
    with target.open("w", newline="") as file:
        csv.writer(file).writerows([["anchor", "positive", "negative"], *rows])
    return target


def probed(corpus: Path, place: Path, *probes: str, steps: str = "prepare,embed,evaluate,probe") -> dict[str, Any]:
    return sounds.config(corpus, place, probes=list(probes), steps=steps)


def counts(result: Any) -> tuple[float, float]:
    found = result.counts["probe"]
    return found["computed"], found["cached"]


def test_probes_are_measured_once_and_stand_in_table_and_report(manifest: Path, triplets: Path, tmp_path: Path) -> None:
    steps = "prepare,embed,evaluate,probe,report"
    config = probed(manifest, tmp_path, "linear", "classify?classifiers=knn:k=3", f"perception:{triplets}", steps=steps)
    first = run(config)
    assert counts(first) == (3, 0)
    rows = {(row.protocol, row.metric): row for row in first.scores if row.probed and row.status == "ok"}
    assert {("linear given:3", "accuracy"), ("knn:k=3 given:3", "accuracy")} <= set(rows)
    assert ("triplets", "triplet_accuracy") in rows
    assert validate(first.scores.rows) == []
    kept = load_vectors(tmp_path / "run", "clips", first.scores.rows[0].system)
    with manifest.open() as file:
        folds = {line["path"]: line["fold"] for line in csv.DictReader(file)}
    alone = linear(kept.values, kept.labels, groups=kept.groups, given=[folds[name] for name in kept.ids])
    assert rows["linear given:3", "accuracy"].value == alone.value("accuracy")
    again = run(config)
    assert counts(again) == (0, 3)
    assert again.scores == first.scores
    if first.report is not None:  # figures need an extra
        assert 'id="probes"' in first.report.read_text("utf-8")


def test_what_a_probe_depends_on_is_measured_anew(manifest: Path, tmp_path: Path) -> None:
    config = probed(manifest, tmp_path, "linear", steps="prepare,embed,probe")
    assert counts(run(config)) == (1, 0)
    manifest.write_text(manifest.read_text().replace(",1\n", ",9\n"))  # another name of a fold
    changed = run(config)
    assert counts(changed) == (1, 0)
    assert {row.metric for row in changed.scores} == {"accuracy"}
    assert counts(run({**config, "probes": ["linear?folds=3"]})) == (1, 0)


def test_a_plan_counts_probes(manifest: Path, tmp_path: Path) -> None:
    steps, _ = plan(probed(manifest, tmp_path, "linear", "classify?classifiers=knn:k=3"))
    (step,) = [step for step in steps if step.step == "probe"]
    assert (step.todo, step.total) == (2, 2)


def test_a_probe_that_cannot_be_had_is_a_row_with_a_reason(manifest: Path, tmp_path: Path) -> None:
    """Every group is in every fold: what was learnt from is tested."""
    lines = manifest.read_text().splitlines()
    manifest.write_text(
        "\n".join([lines[0], *(line.rpartition(",g")[0] + f",same,{n % 3}" for n, line in enumerate(lines[1:]))])
    )
    result = run(probed(manifest, tmp_path, "linear"))
    (row,) = [row for row in result.scores if row.metric == "accuracy"]
    assert (row.status, row.value) == ("not_applicable", None)
    assert "trained on and tested on" in row.reason
    assert result.scores.value("P@1", protocol="all") > 0  # nothing measured is lost


@pytest.mark.parametrize(
    ("probe", "reason"),
    [
        ("linaer", "linear"),
        ("linear?fold=3", 'Did you mean "folds"'),
        ("perception", "needs a file of judgements"),
        ("linear:file.csv", "takes no file"),
    ],
)
def test_mistakes_are_named(probe: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        RunConfig.make({"corpus": "sounds/", "extractors": ["logmel"], "probes": [probe]})


def test_probes_survive_yaml_and_files_lie_beside_it(triplets: Path, manifest: Path, tmp_path: Path) -> None:
    text = yaml.safe_dump({"corpus": manifest.name, "extractors": ["logmel"],
                           "probes": ["linear", {"probe": "perception", "judgements": triplets.name}]})  # fmt: skip
    (tmp_path / "run.yaml").write_text(text)
    config = RunConfig.load(tmp_path / "run.yaml")
    assert config.probes[1].file == str(triplets)
    (tmp_path / "again.yaml").write_text(config.to_yaml())
    assert RunConfig.load(tmp_path / "again.yaml") == config
    assert "probe" in config.steps
    assert "probe" not in earmark.RunConfig.make({"corpus": "s/", "extractors": ["logmel"]}).steps
