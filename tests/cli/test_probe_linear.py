"""`earmark probe linear` as a user meets it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from earmark.cli import main
from earmark.probes.linear import linear
from earmark.scores import load_scores

N = 60


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with vectors.npz and clips.csv: labels, tags, folds, parts and speakers."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    codes = np.arange(N) % 3
    vectors = rng.normal(size=(N, 6)) + 2 * rng.normal(size=(3, 6))[codes]
    names = [f"clip{row:02d}" for row in range(N)]
    np.savez("vectors.npz", vectors=vectors, ids=names)
    rows = [
        (name, "abc"[code], row // 15, ("train", "train", "valid", "test")[row // 15], f"s{row // 5}",
         ";".join(tag for tag, value in zip("xy", vectors[row] > 0.5, strict=False) if value) or "z")
        for row, (name, code) in enumerate(zip(names, codes, strict=True))
    ]  # fmt: skip
    header = "id,label,fold,part,speaker,tags"
    Path("clips.csv").write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return tmp_path


def test_folds_scores_and_answers(capsys: pytest.CaptureFixture[str]) -> None:
    words = "probe linear vectors.npz clips.csv --folds fold --groups speaker --out s.csv --per-point p.csv"
    assert main(words.split()) == 0
    out = capsys.readouterr().out
    row = load_scores("s.csv").rows[0]
    loaded = np.load("vectors.npz")
    with Path("clips.csv").open() as file:
        clips = list(csv.DictReader(file))
    same = linear(
        loaded["vectors"], [clip["label"] for clip in clips], given=[clip["fold"] for clip in clips],
        groups=[clip["speaker"] for clip in clips], system="vectors.npz",
    )  # fmt: skip
    assert (row.value, row.low, row.inputs) == (same.rows[0].value, same.rows[0].low, same.rows[0].inputs)
    assert (row.protocol, row.unit, row.units, row.n) == ("linear given:4", "group", 12, N)
    assert [line.split()[0] for line in out.splitlines()[-4:]] == ["0", "1", "2", "3"]
    with Path("p.csv").open() as file:
        points = list(csv.DictReader(file))
    assert list(points[0]) == ["row", "id", "label", "group", "fold", "answer", "accuracy"]
    right = [point["label"] == point["answer"] for point in points]
    assert [float(point["accuracy"]) for point in points] == right
    assert np.mean(right) == pytest.approx(row.value)


def test_parts_several_labels_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("probe linear vectors.npz clips.csv --split part --label-column tags --json --C 0.1,1".split()) == 0
    captured = capsys.readouterr()
    (row,) = json.loads(captured.out)
    assert (row["metric"], row["protocol"], row["n"]) == ("mean_average_precision", "linear train/valid/test", 15)
    assert 'separated by ";"' in captured.err


def test_folds_are_made_of_whole_speakers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("probe linear vectors.npz clips.csv --folds 3 --groups speaker --refit --quiet".split()) == 0
    assert "linear refit group-stratified:3" in capsys.readouterr().out


def test_a_task_of_hear_with_vectors_and_with_an_extractor(capsys: pytest.CaptureFixture[str]) -> None:
    rate = 16000
    task = Path("task")
    facts = {"task_name": "tones", "embedding_type": "scene", "prediction_type": "multiclass"}
    for part in range(3):
        sounds = task / "48000" / f"fold0{part}"
        sounds.mkdir(parents=True)
        listing = {}
        for row in range(part * 6, part * 6 + 6):
            tone = np.sin(2 * np.pi * (200, 900)[row % 2] * np.arange(rate // 4) / rate * (1 + row / 100))
            soundfile.write(sounds / f"clip{row:02d}.wav", tone, rate)
            listing[f"clip{row:02d}.wav"] = [("low", "high")[row % 2]]
        (task / f"fold0{part}.json").write_text(json.dumps(listing))
    (task / "task_metadata.json").write_text(json.dumps(facts))
    (task / "labelvocabulary.csv").write_text("idx,label\n0,high\n1,low\n")
    assert main("probe linear --hear task --extractor mfcc --json --quiet".split()) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["subset"], row["system"], row["value"], row["status"]) == ("tones", "mfcc", 1.0, "ok")
    assert main("probe linear --hear task --vectors vectors.npz --json --quiet".split()) == 0
    assert json.loads(capsys.readouterr().out)[0]["n"] == 18
    loaded = np.load("vectors.npz")
    np.savez("some.npz", vectors=loaded["vectors"][1:], ids=loaded["ids"][1:])
    assert main("probe linear some.npz --hear task --json --quiet".split()) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["status"], row["n"]) == ("incomplete", 17)
    assert row["reason"].startswith("1 of 18 clips without a vector (clip00.wav)")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "Nothing says what to probe"),
        ("vectors.npz clips.csv --folds nope", 'no column "nope"'),
        ("vectors.npz clips.csv --split part --C 0.1,x", "C must be numbers"),
        ("vectors.npz clips.csv --extractor mfcc", "--extractor and --pool embed the sounds of a task"),
        ("vectors.npz --vectors vectors.npz --hear task", "Give vectors once"),
        ("--hear nowhere --vectors vectors.npz", "is not a folder"),
        ("vectors.npz clips.csv --hear task", "--hear brings labels and folds of its own"),
        ("vectors.npz clips.csv --folds 2", "2 folds leave no clips to learn from"),
        ("vectors.npz clips.csv --per-point p.txt", "csv"),
        ("vectors.npz clips.csv --split part --kind stratified", "Folds are given, and stratified ones are to be made"),
    ],
)
def test_errors_are_a_sentence(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "linear", *words.split()]) in (1, 2)
    assert message in capsys.readouterr().err
