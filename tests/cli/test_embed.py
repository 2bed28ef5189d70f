from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("soundfile")

from tests.cli.verbs import runner

from earmark import audio, vectors
from earmark.cli import embed as verb

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner("embed", verb, capsys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three classes of four clips, and one file that is not audio."""
    random = np.random.default_rng(0)
    for label in ("dove", "gull", "white owl"):
        (tmp_path / "in" / label).mkdir(parents=True)
        for k in range(4):
            samples = 0.3 * random.standard_normal(3000 + 500 * k)
            audio.write(tmp_path / "in" / label / f"{k}.wav", samples.astype(np.float32), 16000)
    (tmp_path / "in" / "dove" / "notes.wav").write_text("not audio")
    return tmp_path / "in"


def test_a_folder_becomes_vectors_that_evaluate_reads(folder: Path, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "vectors.npz"
    code, stdout, stderr = run(folder, "--extractor", "mfcc", "--out", out)
    assert code == 0
    assert stdout == f"{out}: 12 vectors of 80 (mfcc, mean_time); 1 clip failed\n"
    assert "notes.wav" in stderr
    assert "1 of 13 clips failed" in stderr
    found = vectors.read_vectors(out)
    assert found.values.shape == (12, 80)
    assert found.labels is not None
    assert sorted(set(found.labels), key=str) == ["dove", "gull", "white owl"]
    assert found.ids is not None
    assert len(set(found.ids)) == 12
    assert list(tmp_path.glob(".*")) == []


def test_several_poolings_pca_and_json(folder: Path, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "v.npz"
    code, stdout, stderr = run(folder, "--pool", "MTF,max_time", "--pca", 5, "--out", out, "--json", "--quiet")
    assert (code, stderr) == (0, "")
    summary: dict[str, Any] = json.loads(stdout)
    assert summary["vectors"] == {"mean_time+mean_feature": [12, 5], "max_time": [12, 5]}
    assert [Path(failure["id"]).name for failure in summary["failures"]] in (["notes.wav"], ["notes"])
    with np.load(out) as arrays:
        assert sorted(arrays) == ["ids", "labels", "max_time", "mean_time+mean_feature"]
    assert vectors.read_vectors(out, key="max_time").values.shape == (12, 5)


def test_a_manifest_needs_no_labels_and_names_its_columns(folder: Path, tmp_path: Path, run: Run) -> None:
    lines = [f"in/{name}/{k}.wav,{name},bird{k}" for name in ("dove", "gull") for k in range(4)]
    (tmp_path / "clips.csv").write_text("\n".join(["path,species,bird", *lines]) + "\n")
    bare, full = tmp_path / "bare.npz", tmp_path / "full.npz"
    code, _, said = run(tmp_path / "clips.csv", "--extractor", "mfcc", "--out", bare)
    assert code == 0
    assert "gives no labels" in said
    found = vectors.read_vectors(bare)
    assert found.labels is None
    assert "the column bird is taken for the group" in said
    assert found.ids is not None
    words = ["--label-column", "species", "--groups", "bird"]
    assert run(tmp_path / "clips.csv", "--extractor", "mfcc", *words, "--out", full, "--quiet")[0] == 0
    named = vectors.read_vectors(full)
    assert named.labels == ("dove",) * 4 + ("gull",) * 4
    assert named.groups == tuple(f"bird{k}" for k in range(4)) * 2
    joined = vectors.read_labelled(bare, tmp_path / "clips.csv", label_column="species")
    assert joined.labels == list(named.labels)
    code, _, said = run(tmp_path / "clips.csv", "--label-column", "spices", "--out", tmp_path / "no.npz", "--quiet")
    assert code == 1
    assert 'Did you mean "species"' in said


def test_a_single_file(folder: Path, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "one.npz"
    code, _, _ = run(folder / "gull" / "0.wav", "--pool", "mean_time", "--out", out, "--quiet")
    assert code == 0
    assert vectors.read_vectors(out).values.shape == (1, 128)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--out", "v.csv"], 2, "written as .npz"),
        (["--out", "v.npz", "--extractor", "logmell"], 2, 'Did you mean "logmel"'),
        (["--out", "v.npz", "--pool", "mean"], 2, "no pooling 'mean'"),
        (["--out", "nowhere/v.npz"], 1, "does not exist"),
        (["--out", "v.npz", "--pca", "0"], 2, "at least 1 component"),
    ],
)
def test_refusals(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found, _, stderr = run(folder, *words, "--quiet")
    assert found == code
    assert said in stderr
    assert not list(tmp_path.glob("*.npz"))
