"""`earmark probe classify`: files in and out, folds from a column, and one sentence for whatever is wrong."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.verbs import runner

from earmark.cli import probe
from earmark.scores import read_scores

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return runner("probe", probe, capsys)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    rng = np.random.default_rng(1)
    mice = np.repeat(np.arange(10), 6)
    vectors = rng.standard_normal((60, 5))
    vectors[:, 0] += 4.0 * (mice % 2)
    np.save(tmp_path / "v.npy", vectors)
    with (tmp_path / "clips.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["strain", "mouse", "part", "halves"])
        for row, mouse in enumerate(mice):
            writer.writerow([("C57", "DBA")[mouse % 2], f"m{mouse}", row % 3, f"h{mouse // 5}"])
    return str(tmp_path / "v.npy"), str(tmp_path / "clips.csv")


def test_scores_answers_and_confusions_are_written(call: Call, files: tuple[str, str], tmp_path: Path) -> None:
    out, answers, confusion = (str(tmp_path / name) for name in ("s.csv", "a.csv", "c.csv"))
    code, printed, remarks = call(
        "classify", *files, "--label-column", "strain", "--groups", "mouse", "--classifier", "knn:k=1,knn:k=3",
        "--folds", "3", "--out", out, "--per-point", answers, "--confusion", confusion,
    )  # fmt: skip
    assert code == 0
    assert "knn:best group-stratified:3" in printed
    assert "group: mouse of" in remarks
    scores = read_scores(out)
    row = scores.row("accuracy", protocol="knn:k=3 group-stratified:3")
    with Path(answers).open() as stream:
        lines = list(csv.DictReader(stream))
    assert [line["group"] for line in lines[:7]] == ["m0"] * 6 + ["m1"]
    by_fold: dict[str, list[bool]] = {}
    for line in lines:
        by_fold.setdefault(line["fold"], []).append(line["label"] == line[row.protocol])
    assert row.value == pytest.approx(np.mean([np.mean(right) for right in by_fold.values()]))
    with Path(confusion).open() as stream:
        counts = [line for line in csv.DictReader(stream) if line["protocol"] == row.protocol]
    assert sum(int(line["clips"]) for line in counts) == 60
    right = sum(int(line["clips"]) for line in counts if line["label"] == line["answer"])
    assert right == sum(sum(part) for part in by_fold.values())


def test_a_column_of_folds_is_used_and_refused_where_it_leaks(call: Call, files: tuple[str, str]) -> None:
    asked = ("classify", *files, "--label-column", "strain", "--classifier", "knn:k=3", "--json")
    code, printed, _ = call(*asked, "--fold-column", "halves", "--groups", "mouse")
    rows = json.loads(printed)
    assert (code, rows[0]["protocol"], rows[0]["units"]) == (0, "knn:k=3 given:2", 10)
    code, _, sentence = call(*asked, "--fold-column", "part", "--groups", "mouse")
    assert code == 1
    assert sentence.startswith("earmark: 10 of 10 groups (m0, m1, m2 and 7 more) are trained on and tested on")
    code, printed, _ = call(*asked, "--fold-column", "part", "--groups", "mouse", "--allow-leaks")
    assert code == 0
    assert "leaks: 10 of 10 groups" in json.loads(printed)[0]["reason"]


def test_distances_stand_in_for_vectors(call: Call, files: tuple[str, str], tmp_path: Path) -> None:
    vectors = np.load(files[0])
    np.save(tmp_path / "d.npy", np.sqrt(np.square(vectors[:, None] - vectors).sum(-1)))
    asked = ("classify", "--distances", str(tmp_path / "d.npy"), files[1], "--label-column", "strain", "--json")
    code, printed, _ = call(*asked, "--groups", "mouse", "--distance-name", "apart", "--folds", "3")
    rows = json.loads(printed)
    assert (code, rows[0]["distance"], rows[0]["protocol"]) == (0, "apart", "knn:k=3 group-stratified:3")
    code, printed, _ = call(*asked, "--groups", "mouse", "--fold-column", "halves", "--classifier", "knn:k=1")
    assert (code, json.loads(printed)[0]["protocol"]) == (0, "knn:k=1 given:2")
    assert "forest needs vectors" in call(*asked, "--classifier", "forest")[2]
    assert "Euclidean" in call("classify", *files, "--distances", "cosine")[2]
    assert "one file of distances" in call("classify", *files, "--distances", str(tmp_path / "d.npy"))[2]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--per-point", "answers.txt"], "choose a name that ends in .csv or .parquet"),
        (["--fold-column", "nowhere"], 'no column "nowhere"'),
        (["--kind", "grouped"], "need groups"),
        (["--fold-column", "halves", "--kind", "stratified"], "Folds are given, and stratified ones are to be made"),
        (["--folds", "1"], "at least 2 are needed"),
        (["--classifier", "knn:k=x"], "k=x is no value"),
        (["--groups", "mouse", "--label-column", "mouse"], "the labels are the groups"),
    ],
)
def test_mistakes_are_one_sentence(call: Call, files: tuple[str, str], flags: list[str], sentence: str) -> None:
    code, printed, said = call("classify", *files, "--label-column", "strain", "--classifier", "knn:k=3", *flags)
    assert code in (1, 2)
    assert printed == ""
    assert sentence in said
    assert said.count("\n") == 1
