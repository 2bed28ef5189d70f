"""The commands as a user meets them: results on stdout, one sentence on stderr, an exit code."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import earmark
from earmark.cli import main
from earmark.scores import COLUMNS, load_scores


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with vectors.npy, labels.csv (label, speaker, id) and labels.txt."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 120)
    vectors = rng.standard_normal((120, 8)) + 2 * rng.standard_normal((6, 8))[labels]
    np.save("vectors.npy", vectors)
    lines = [f"clip{i},call {label},bird{i % 10}" for i, label in enumerate(labels)]
    Path("labels.csv").write_text("id,label,speaker\n" + "\n".join(lines) + "\n")
    Path("labels.txt").write_text("\n".join(f"call {label}" for label in labels) + "\n")
    return tmp_path


def failure(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Run a command that must fail: nothing on stdout, one sentence on stderr."""
    code = main(list(words))
    captured = capsys.readouterr()
    assert code in (1, 2)
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return code, captured.err


@pytest.mark.usefixtures("folder")
def test_scores_of_the_command_are_those_of_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--distance cosine,euclidean --permutations 50 --bootstrap 20 --k 1,3 --quiet".split()
    assert main(["evaluate", "vectors.npy", "labels.txt", *flags, "--json", "--out", "scores.csv"]) == 0
    rows = json.loads(capsys.readouterr().out)
    labels = Path("labels.txt").read_text().split("\n")[:-1]
    direct = earmark.evaluate(
        np.load("vectors.npy"),
        labels,
        distance=["cosine", "euclidean"],
        permutations=50,
        bootstrap=20,
        k=(1, 3),
        system="vectors.npy",
    )
    kept = [name for name in COLUMNS if name != "seconds"]
    assert [[row[name] for name in kept] for row in rows] == [[getattr(row, name) for name in kept] for row in direct]
    assert load_scores("scores.csv").value("P@3", distance="euclidean") == direct.value("P@3", distance="euclidean")


@pytest.mark.usefixtures("folder")
def test_the_table_is_readable_and_clean(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "vectors.npy", "labels.txt", "--permutations", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "P@1" in out
    assert "lift" in out
    assert "nan" not in out.lower()


@pytest.mark.usefixtures("folder")
def test_groups_and_points(capsys: pytest.CaptureFixture[str]) -> None:
    words = "evaluate vectors.npy labels.csv --groups speaker --across-groups --per-point points.csv --json --quiet"
    assert main(words.split()) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["protocol"] for row in rows} == {"all", "across_groups"}
    with Path("points.csv").open() as file:
        points = list(csv.DictReader(file))
    assert len(points) == 120
    assert {"row", "label", "group", "cosine P@1", "cosine nearest_row", "cosine nearest_label"} <= set(points[0])
    mean = np.mean([float(point["cosine P@1"]) for point in points])
    wanted = next(row["value"] for row in rows if row["metric"] == "P@1" and row["protocol"] == "all")
    assert mean == pytest.approx(wanted, abs=1e-12)
    for point in points:
        assert (float(point["cosine P@1"]) == 1.0) == (point["cosine nearest_label"] == point["label"])


@pytest.mark.usefixtures("folder")
def test_join_by_id_undoes_a_shuffle(capsys: pytest.CaptureFixture[str]) -> None:
    vectors, order = np.load("vectors.npy"), np.random.default_rng(1).permutation(120)
    np.savez("shuffled.npz", vectors=vectors[order], ids=np.array([f"clip{i}" for i in order]))
    assert main("evaluate shuffled.npz labels.csv --label-column label --metrics P@1,GSR --json --quiet".split()) == 0
    joined = {row["metric"]: row["value"] for row in json.loads(capsys.readouterr().out)}
    assert main("evaluate vectors.npy labels.txt --metrics P@1,GSR --json --quiet".split()) == 0
    plain = {row["metric"]: row["value"] for row in json.loads(capsys.readouterr().out)}
    assert joined == pytest.approx(plain, abs=1e-12)


@pytest.mark.usefixtures("folder")
def test_compare_and_hubness(capsys: pytest.CaptureFixture[str]) -> None:
    vectors = np.load("vectors.npy")
    np.save("noise.npy", np.random.default_rng(2).standard_normal(vectors.shape))
    assert main("compare vectors.npy noise.npy labels.txt --json --quiet".split()) == 0
    found = {row["metric"]: row for row in json.loads(capsys.readouterr().out)}
    assert found["P@1:difference"]["low"] > 0
    assert found["P@1:difference"]["p_value"] < 0.01
    assert main("hubness vectors.npy --k 3 --distance cosine,spearman --quiet".split()) == 0
    assert "top hubs, spearman" in capsys.readouterr().out


BAD_VECTORS = {
    "nan.npy": lambda: np.where(np.arange(120)[:, None] == 7, np.nan, np.load("vectors.npy")),
    "inf.npy": lambda: np.where(np.arange(120)[:, None] % 50 == 3, np.inf, np.load("vectors.npy")),
    "short.npy": lambda: np.load("vectors.npy")[:50],
    "flat.npy": lambda: np.load("vectors.npy").ravel(),
    "deep.npy": lambda: np.zeros((120, 2, 2)),
    "empty.npy": lambda: np.zeros((0, 4)),
    "text.npy": lambda: np.array([["a", "b"]] * 120),
    "complex.npy": lambda: np.zeros((120, 3), complex),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", BAD_VECTORS)
def test_bad_vectors_are_one_sentence(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(name, BAD_VECTORS[name]())
    failure(capsys, "evaluate", name, "labels.txt")


@pytest.mark.usefixtures("folder")
def test_nan_error_names_rows_and_count(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("inf.npy", BAD_VECTORS["inf.npy"]())
    _, message = failure(capsys, "evaluate", "inf.npy", "labels.txt")
    assert "3 of 120 rows" in message
    assert "3, 53, 103" in message


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ("", "empty"),
        ("same\n" * 120, "same label"),
        ("\n".join(f"only{i}" for i in range(120)), "same-class pairs"),
        ("\n" * 120, "label"),
        ("a\nb\n", "120"),
    ],
)
def test_bad_labels_are_one_sentence(content: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.txt").write_text(content)
    _, message = failure(capsys, "evaluate", "vectors.npy", "bad.txt")
    assert hint in message


@pytest.mark.usefixtures("folder")
def test_bad_files_are_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    Path("words.csv").write_text("a,b\n1,two\n")
    Path("broken.npy").write_bytes(Path("vectors.npy").read_bytes()[:200])
    Path("nothing.npy").write_bytes(b"")
    Path("half.csv").write_text("id,label\nclip0,a\n")
    np.savez("ids.npz", vectors=np.load("vectors.npy"), ids=np.array([f"clip{i}" for i in range(120)]))
    for words in (
        "words.csv labels.txt",
        "broken.npy labels.txt",
        "nothing.npy labels.txt",
        "absent.npy labels.txt",
        "vectors.npy absent.txt",
        "vectors.npy labels.csv --label-column species",
        "vectors.npy labels.csv --label-column label --groups room",
        "ids.npz half.csv",
        "vectors.npy labels.txt --out absent/scores.csv",
        "vectors.npy labels.txt --distance cosin",
        "vectors.npy labels.txt --metrics P@0",
        "vectors.npy labels.txt --metrics GSRR",
        "vectors.npy labels.txt --across-groups",
        "vectors.npy labels.txt --correct idcm",
        "vectors.npy labels.txt --correct icdm:q=3",
        "vectors.npy labels.txt --device tpu",
        "vectors.npy labels.txt --memory lots",
        "vectors.npy labels.txt --permutations -3",
        "vectors.npy labels.txt --threads 0",
        ". labels.txt",
    ):
        failure(capsys, "evaluate", *words.split())


@pytest.mark.usefixtures("folder")
def test_unlabelled_rows_are_dropped_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    labels = Path("labels.txt").read_text().split("\n")[:-1]
    labels[4] = labels[70] = ""
    Path("holes.csv").write_text("label\n" + "\n".join(f'"{label}"' for label in labels) + "\n")
    assert main("evaluate vectors.npy holes.csv --metrics P@1 --json --quiet".split()) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["n"] == 118
    assert "2 unlabelled rows dropped" in row["reason"]


def test_help_teaches_and_costs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "evaluate" in capsys.readouterr().out
    assert main(["evaluate", "--help"]) == 0
    out = capsys.readouterr().out
    assert "examples:" in out
    assert "--permutations" in out
    assert main([]) == 2
    assert main(["--version"]) == 0
    assert main(["evalute"]) == 2
    assert 'Did you mean "evaluate"' in capsys.readouterr().err


def test_a_closed_pipe_is_no_traceback(folder: Path) -> None:
    command = f"{sys.executable} -m earmark evaluate vectors.npy labels.txt --metrics P@1 --quiet | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=folder)
    assert done.stderr == ""
