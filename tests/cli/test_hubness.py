"""`earmark hubness` and `--correct` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import earmark
from earmark.cli import main
from earmark.geometry.corrections import CORRECTIONS
from earmark.scores import load_scores


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with vectors.npz (ids, labels), the same as vectors.npy, and labels.txt."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(80, 60))
    labels = rng.choice(["bark", "hum"], 80)
    np.savez("vectors.npz", vectors=vectors, ids=[f"clip{n:02d}" for n in range(80)], labels=labels)
    np.save("vectors.npy", vectors)
    Path("labels.txt").write_text("\n".join(labels) + "\n")
    return tmp_path


def test_every_correction_and_the_hubs_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("hubness vectors.npz --distance euclidean --top 3 --quiet --out hubs.csv".split()) == 0
    out = capsys.readouterr().out
    table, distribution, hubs = out.split("\n\n")[-3:]
    assert [line.split()[0] for line in table.splitlines()[2:]] == list(CORRECTIONS)
    assert distribution.startswith("points by the number of lists of 5 they are in, euclidean")
    lines = hubs.splitlines()
    assert lines[0] == "top hubs, euclidean (lists of 5 they appear in)"
    scores = earmark.hubness(np.load("vectors.npy"), distance="euclidean", correct="none,icdm", per_point=True)
    counts = {name: scores.per_point["euclidean", name, "all", "hub_ratio"] for name in ("none", "icdm")}
    busiest = int(counts["none"].argmax())
    name, label, *numbers = lines[2].split()
    assert name == f"clip{busiest:02d}"
    assert label.strip("()") == Path("labels.txt").read_text().split()[busiest]
    assert [int(number) for number in numbers][:5:4] == [counts["none"][busiest], counts["icdm"][busiest]]
    assert len(lines) == 2 + 3
    written = load_scores("hubs.csv")
    assert written.value("hub_ratio", correction="icdm") == scores.value("hub_ratio", correction="icdm")


def test_figure_and_page(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert main("hubness vectors.npz --correct none,icdm:k=5 --figure hubs.svg --html hubs.html --json".split()) == 0
    captured = capsys.readouterr()
    assert {row["correction"] for row in json.loads(captured.out)} == {"none", "icdm:k=5"}
    assert "hubs.html" in captured.err
    assert "<svg" in Path("hubs.svg").read_text()
    assert "Under icdm:k=5 the same point stands in" in Path("hubs.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("hubness vectors.npy --figure hubs.jpg", ".png, .svg or .pdf"),
        ("hubness vectors.npy --html nowhere/hubs.html", "does not exist"),
        ("hubness vectors.npy --correct icdm:rounds=3", "k and iterations"),
        ("hubness vectors.npy --k 0", "--k must be at least 1, not 0"),
        ("hubness vectors.npy --correct none,icdm:k=0", "must be at least 1, not 0"),
        ("hubness vectors.npy --device tpu", "auto, cpu or cuda"),
        ("compare vectors.npy vectors.npz labels.txt --correct none,icdm", "one correction at a time"),
    ],
)
def test_mistakes_are_one_sentence(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) in (1, 2)
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_lists_longer_than_the_set_fail_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    files = "--figure hubs.png --html hubs.html"
    assert main(f"hubness vectors.npy --k 80 --correct none --quiet {files}".split()) == 1
    captured = capsys.readouterr()
    assert "k = 80 needs at least 81 points, there are 80" in captured.out
    assert "top hubs" not in captured.out
    for name in ("hubs.png", "hubs.html"):
        assert f"not written: {name}: there are no neighbour lists to draw, since k = 80 needs" in captured.err
        assert not Path(name).exists()


def test_evaluate_and_compare_under_a_correction(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "--metrics P@1,GSR --correct none,icdm:k=5,iterations=3 --json --quiet"
    assert main(f"evaluate vectors.npy labels.txt {asked}".split()) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["correction"] for row in rows] == ["none"] * 2 + ["icdm:k=5,iterations=3"] * 2
    assert main("compare vectors.npy vectors.npz labels.txt --correct csls --json --quiet".split()) == 0
    rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)}
    assert (rows["P@1:difference"]["value"], rows["P@1:difference"]["correction"]) == (0.0, "csls")
    assert rows["GSR:difference"]["status"] == "not_applicable"


def test_help_says_what_a_gpu_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hubness", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "where distances are computed" in out
    assert "--correct none,icdm:k=20,mp" in out
