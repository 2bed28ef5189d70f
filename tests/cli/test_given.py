"""`--distances FILE`: distances computed elsewhere, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

import earmark
from earmark.cli import main

N = 48
NAMES = [f"clip{i:02d}" for i in range(N)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """vectors.npy and the same as d.npy, condensed.npy and pairs.csv; labels by position, and by name in disorder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, N)
    vectors = rng.standard_normal((N, 6)) + rng.standard_normal((4, 6))[labels]
    condensed = pdist(vectors)
    matrix = squareform(condensed)
    np.save("vectors.npy", vectors)
    np.savez("named.npz", vectors=vectors, ids=NAMES)
    np.save("d.npy", matrix)
    np.save("condensed.npy", condensed)
    np.save("cosine.npy", squareform(pdist(vectors, "cosine")))
    Path("names.txt").write_text("\n".join(NAMES) + "\n")
    order = rng.permutation(N)
    pairs = [f"{NAMES[i]},{NAMES[j]},{matrix[i, j].item()!r}" for i in order for j in order if i < j]
    Path("pairs.csv").write_text("\n".join(["sound1,sound2,rating", *pairs]) + "\n")
    rows = [f"{NAMES[i]},call {labels[i]},bird{i % 6}" for i in order]
    Path("labels.csv").write_text("\n".join(["id,label,bird", *rows]) + "\n")
    Path("labels.txt").write_text("\n".join(f"call {label}" for label in labels) + "\n")
    return tmp_path


def rows_of(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    assert main([*words, "--json", "--quiet"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert isinstance(rows, list)
    return rows


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) in (1, 2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


FLAGS = "--metrics P@1,P@5,GSR,silhouette --permutations 20".split()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [
        ["--distances", "d.npy", "labels.txt"],
        ["labels.txt", "--distances", "condensed.npy"],
        ["--distances", "d.npy", "labels.csv", "--ids", "names.txt"],
        ["--distances", "pairs.csv", "labels.csv"],
        ["--distances", "pairs.csv", "labels.csv", "--pair-columns", "sound1,sound2,rating", "--ids", "names.txt"],
    ],
)
def test_every_form_gives_what_the_vectors_give(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    given = rows_of(capsys, "evaluate", *words, *FLAGS)
    wanted = rows_of(capsys, "evaluate", "vectors.npy", "labels.txt", "--distance", "euclidean", *FLAGS)
    for row, other in zip(given, wanted, strict=True):
        # Shuffles go by the order of the rows, which pairs without --ids do not have.
        ordered = words[1] != "pairs.csv" or "--ids" in words
        for name in ("value", "low", "high", *(["baseline", "p_value"] if ordered else [])):
            assert row[name] == pytest.approx(other[name], abs=1e-9)
        assert row["distance"] == "given"


@pytest.mark.usefixtures("folder")
def test_groups_names_and_points(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--distances d.npy labels.csv --ids names.txt --groups bird --across-groups --distance-name dtw".split()
    assert main(["evaluate", *words, "--metrics", "P@1,GSR", "--per-point", "points.csv"]) == 0
    captured = capsys.readouterr()
    assert "d.npy · dtw · across groups" in captured.out
    assert "d.npy: distances of 48 items; label: label of labels.csv; group: bird of labels.csv" in captured.err
    lines = Path("points.csv").read_text().splitlines()
    assert len(lines) == N + 1
    assert lines[1].startswith("0,clip00,call ")


@pytest.mark.usefixtures("folder")
def test_names_of_distances_are_still_another_spelling(capsys: pytest.CaptureFixture[str]) -> None:
    one = rows_of(capsys, "evaluate", "vectors.npy", "labels.txt", "--distances", "cosine,euclidean", *FLAGS)
    two = rows_of(capsys, "evaluate", "vectors.npy", "labels.txt", "--distance", "cosine,euclidean", *FLAGS)
    assert [row["inputs"] for row in one] == [row["inputs"] for row in two]
    assert rows_of(capsys, "hubness", "vectors.npy", "--distances", "euclidean", "--correct", "none")


@pytest.mark.usefixtures("folder")
def test_hubness(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--correct", "none,sphere,icdm", "--html", "hubs.html"]
    given = rows_of(capsys, "hubness", "--distances", "d.npy", "--ids", "names.txt", *words)
    wanted = rows_of(capsys, "hubness", "vectors.npy", "--distance", "euclidean", *words)
    for row, other in zip(given, wanted, strict=True):
        refused = row["correction"] == "sphere"
        assert row["status"] == ("not_applicable" if refused else "ok")
        assert refused or row["value"] == pytest.approx(other["value"])
    assert "clip" in Path("hubs.html").read_text()


@pytest.mark.usefixtures("folder")
def test_comparisons(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = rows_of(capsys, "compare", "--distances", "d.npy,cosine.npy", "labels.txt", "--metrics", "P@1")
    values = {
        name: earmark.evaluate(np.load("vectors.npy"), Path("labels.txt").read_text().split("\n")[:-1], distance=name)
        for name in ("euclidean", "cosine")
    }
    assert row["value"] == pytest.approx(values["euclidean"].value("P@1") - values["cosine"].value("P@1"))
    words = "--distances pairs.csv named.npz labels.csv --distance euclidean --metrics P@1,GSR".split()
    for row in rows_of(capsys, "compare", *words):
        assert row["value"] == pytest.approx(0.0, abs=1e-12)
        assert row["distance"] == "given - euclidean"
    words = "--distances d.npy,pairs.csv labels.csv --ids names.txt --metrics P@1".split()
    assert [row["value"] for row in rows_of(capsys, "compare", *words)] == [pytest.approx(0.0)]


@pytest.mark.usefixtures("folder")
def test_directions_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    matrix = np.load("d.npy")
    np.save("uneven.npy", matrix * np.where(np.triu(np.ones(matrix.shape)), 1.5, 0.5))
    assert "--symmetrise mean, min or max" in refusal(capsys, "evaluate", "--distances", "uneven.npy", "labels.txt")
    words = ["evaluate", "--distances", "uneven.npy", "labels.txt", "--symmetrise", "mean", "--metrics", "P@1"]
    assert main(words) == 0
    captured = capsys.readouterr()
    assert "the mean of both directions of a pair" in captured.out
    assert "note: uneven.npy is not symmetric" in captured.err


REFUSED = {
    "vectors as distances": ("--distances vectors.npy labels.txt", "not square"),
    "both": ("--distances d.npy vectors.npy labels.txt", "give the labels alone"),
    "no labels": ("--distances d.npy", "give a file of labels"),
    "nothing": ("", "Give a file of vectors, or distances"),
    "two matrices": ("--distances d.npy,cosine.npy labels.txt", "compare takes several"),
    "a distance too": ("--distances d.npy labels.txt --distance cosine", "leave one out"),
    "dimensions": ("--distances d.npy labels.txt --dimensions f*", "--dimensions chooses columns of vectors"),
    "ids without distances": ("vectors.npy labels.txt --ids names.txt", "--ids is for distances computed elsewhere"),
    "labels of others": ("--distances pairs.csv short.csv", "lacks 47 ids"),
    "another number of labels": ("--distances d.npy short.txt", "48 rows but short.txt has 2 labels"),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("case", REFUSED)
def test_refusals(capsys: pytest.CaptureFixture[str], case: str) -> None:
    Path("short.csv").write_text("id,label\nclip00,a\n")
    Path("short.txt").write_text("a\nb\n")
    words, message = REFUSED[case]
    assert message in refusal(capsys, "evaluate", *words.split())
