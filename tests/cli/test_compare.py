"""`earmark compare`: files of vectors, and run folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.verbs import runner
from tests.representations import sounds

from earmark.cli import compare as module
from earmark.representations import run
from earmark.scores import load_scores

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return runner("compare", module, capsys)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    centres = rng.normal(size=(3, 6))
    ids = np.array([f"clip{n}" for n in range(60)])
    for name, strength in (("good", 1.5), ("fair", 0.8), ("poor", 0.0)):
        order = np.arange(60) if name == "good" else rng.permutation(60)
        vectors = strength * centres[labels] + rng.normal(size=(60, 6))
        np.savez(tmp_path / f"{name}.npz", ids=ids[order], vectors=vectors[order])
    lines = [f"{name},{label},{n // 6}" for n, (name, label) in enumerate(zip(ids, labels, strict=True))]
    (tmp_path / "clips.csv").write_text("id,label,speaker\n" + "\n".join(lines) + "\n")
    return {name: str(tmp_path / name) for name in ("good.npz", "fair.npz", "poor.npz", "clips.csv")}


def test_several_files_are_compared_pair_by_pair(command: Command, files: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "differences.csv"
    code, shown, _ = command(*files.values(), "--groups", "speaker", "--metrics", "GSR,P@1", "--out", out, "--quiet")
    assert code == 0
    rows = load_scores(out).select(metric="GSR:difference").rows
    assert len(rows) == 3
    assert {(row.unit, row.units, row.comparisons) for row in rows} == {("group", 10, 3)}
    assert rows[1].system == f"{files['good.npz']} - {files['poor.npz']}"
    assert rows[1].low is not None
    assert rows[1].low > 0
    assert "GSR:difference" in shown


def test_files_are_joined_by_id(command: Command, files: dict[str, str]) -> None:
    code, shown, _ = command(files["good.npz"], files["poor.npz"], files["clips.csv"], "--json", "--quiet")
    assert code == 0
    row = next(row for row in json.loads(shown) if row["metric"] == "P@1:difference")
    assert row["value"] > 0.3
    assert row["p_value"] < 0.01


def test_flags_of_version_0_1_0_still_pass(command: Command, files: dict[str, str]) -> None:
    words = (files["good.npz"], files["fair.npz"], files["clips.csv"], "--permutations", "100", "--bootstrap", "30")
    assert command(*words, "--quiet")[0] == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["good.npz"], "is one file"),
        (["good.npz", "good.npz", "clips.csv"], "given twice"),
        (["good.npz", "fair.npz", "clips.csv", "--systems", "a"], "for run folders"),
        (["good.npz", "fair.npz", "clips.csv", "--reference", "x"], "no system 'x'"),
    ],
)
def test_what_cannot_be_compared_is_said(command: Command, files: dict[str, str], words: list[str], sentence: str):
    code, _, err = command(*(files.get(word, word) for word in words))
    assert code == 2
    assert sentence in err


def make_run(folder: Path, tmp_path: Path, name: str, **more: object) -> Path:
    run({
        "corpus": str(folder), "extractors": [sounds.BANDS], "pooling": ["mean_time", "max_time"],
        "metrics": ["P@1", "GSR"],
        "into": str(tmp_path / name), "cache": {"url": str(tmp_path / "cache")},
        "steps": ["prepare", "embed", "evaluate"], **more,
    })  # fmt: skip
    return tmp_path / name


def test_the_systems_of_a_run_are_compared(command: Command, tmp_path: Path) -> None:
    place = make_run(sounds.make_folder(tmp_path / "sounds"), tmp_path, "first")
    code, shown, _ = command(place, "--metrics", "GSR", "--json", "--quiet")
    assert code == 0
    (row,) = json.loads(shown)
    assert row["metric"] == "GSR:difference"
    assert row["interval"] == "jackknife"
    first, second = row["system"].split(" - ")
    scores = load_scores(place / "scores.csv")
    assert row["value"] == pytest.approx(scores.value("GSR", system=first) - scores.value("GSR", system=second))


def test_systems_of_two_runs_are_compared(command: Command, tmp_path: Path) -> None:
    folder = sounds.make_folder(tmp_path / "sounds")
    first, second = (make_run(folder, tmp_path, name, pooling=["mean_time"]) for name in ("first", "second"))
    code, shown, err = command(first, second, "--metrics", "P@1", "--json", "--quiet")
    assert code == 0, err
    (row,) = json.loads(shown)
    assert row["system"].startswith("first/")
    assert row["value"] == 0
    assert row["p_value"] == 1


def test_folders_and_files_do_not_mix(command: Command, files: dict[str, str], tmp_path: Path) -> None:
    place = make_run(sounds.make_folder(tmp_path / "sounds"), tmp_path, "first")
    code, _, err = command(place, files["good.npz"])
    assert code == 2
    assert "run folders alone" in err
    code, _, err = command(place, "--groups", "speaker")
    assert code == 2
    assert "knows its labels and groups" in err


def test_a_folder_without_a_run_is_named(command: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, _, err = command(tmp_path / "empty")
    assert code == 1
    assert "run.json" in err


@pytest.fixture
def labelled(tmp_path: Path) -> Callable[..., str]:
    """A file of vectors with labels of its own."""
    rng = np.random.default_rng(4)
    labels = np.repeat(["owl", "wren", "seal"], 20)
    vectors = rng.normal(size=(60, 5)) + np.repeat(2 * rng.normal(size=(3, 5)), 20, axis=0)

    def write(name: str, noise: float = 0.0, order: np.ndarray | None = None, **more: np.ndarray) -> str:
        rows = np.arange(60) if order is None else order
        values = vectors + noise * rng.normal(size=vectors.shape)
        given = {key: np.asarray(value)[rows] for key, value in {"labels": labels, **more}.items()}
        np.savez(tmp_path / name, vectors=values[rows], **given)
        return str(tmp_path / name)

    return write


def test_files_whose_labels_differ_row_by_row_are_refused(command: Command, labelled: Callable[..., str]) -> None:
    # The same vectors in another order, without ids: the labels of the first file would make noise of the second.
    shuffled = np.random.default_rng(1).permutation(60)
    code, shown, told = command(labelled("a.npz"), labelled("b.npz", order=shuffled), "--quiet")
    assert code != 0
    assert "different labels" in shown + told
    ids = np.array([f"clip {n}" for n in range(60)])
    code, shown, _ = command(
        labelled("c.npz", ids=ids), labelled("d.npz", order=shuffled, ids=ids), "--metrics", "P@1", "--json", "--quiet"
    )
    assert code == 0
    assert json.loads(shown)[0]["value"] == 0.0


def test_three_files_with_labels_of_their_own_are_three_systems(command: Command, labelled: Callable[..., str]) -> None:
    three = [labelled(f"{name}.npz", noise) for name, noise in (("a", 0.0), ("b", 0.5), ("c", 1.0))]
    code, shown, _ = command(*three, "--metrics", "P@1", "--json", "--quiet")
    assert code == 0
    assert len(json.loads(shown)) == 3
    code, shown, _ = command(*three[:2], three[0], "--metrics", "P@1", "--json", "--quiet")
    assert code == 0
    assert len(json.loads(shown)) == 1


def test_groups_of_either_file_are_the_units(command: Command, labelled: Callable[..., str]) -> None:
    speakers = np.arange(60) % 10
    plain, grouped = labelled("a.npz"), labelled("b.npz", 0.5, groups=speakers)
    for files in ((plain, grouped), (grouped, plain)):
        code, shown, _ = command(*files, "--metrics", "GSR", "--json", "--quiet")
        assert code == 0
        assert (json.loads(shown)[0]["unit"], json.loads(shown)[0]["units"]) == ("group", 10)
    code, shown, told = command(grouped, labelled("c.npz", 0.5, groups=speakers[::-1] % 7), "--quiet")
    assert code != 0
    assert "different groups" in shown + told
