"""What a run does with copies: noise with every file twice must not look like a perfect model."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.representations import sounds

from earmark import cli
from earmark.errors import InputError, UsageError
from earmark.pipeline import load_config, make_config, plan, run
from earmark.representations import load_vectors


def noise_twice(root: Path, suffix: str, classes: int = 3, per_class: int = 6) -> Path:
    """White noise, each sound twice under its label: once as WAV, once in another file."""
    for kind in range(classes):
        (root / f"class{kind}").mkdir(parents=True)
        for number in range(per_class):
            sound = (3000 * np.random.default_rng([kind, number]).standard_normal(800)).astype(np.int16)
            soundfile.write(root / f"class{kind}" / f"{number}.wav", sound, sounds.RATE, subtype="PCM_16")
            soundfile.write(root / f"class{kind}" / f"{number} again{suffix}", sound, sounds.RATE, subtype="PCM_16")
    return root


def clips_of(place: Path) -> dict[str, dict[str, str]]:
    with (place / "run" / "clips.csv").open(newline="") as stream:
        return {line["id"]: line for line in csv.DictReader(stream)}


def given(corpus: Path, place: Path, **changes: Any) -> dict[str, Any]:
    return sounds.config(corpus, place, **changes)


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_copies_are_left_out_unless_asked_for(tmp_path: Path, suffix: str) -> None:
    corpus = noise_twice(tmp_path / "noise", suffix)
    dropped = run(given(corpus, tmp_path))
    row = dropped.scores.row("P@1")
    assert row.n == 18
    assert (row.value or 0.0) < 0.7
    assert "18 copies left out" in row.reason
    lines = clips_of(tmp_path)
    assert len(lines) == 36
    assert list(next(iter(lines.values())))[-1] == "copy_of"
    first, second = (line for id, line in lines.items() if id.startswith("class1/3"))
    assert (first["copy_of"], second["copy_of"]) == ("", first["id"])
    assert second["outcome"] == f"left out: a copy of {first['id']}"
    assert first["outcome"] == "used"
    record = json.loads((tmp_path / "run" / "run.json").read_text())["subsets"][0]
    assert record["clips"] == 18
    assert {name: record["copies"][name] for name in ("policy", "sounds", "clips", "left_out")} == {
        "policy": "drop", "sounds": 18, "clips": 36, "left_out": 18,
    }  # fmt: skip
    kept = run(given(corpus, tmp_path, copies="keep"))
    row = kept.scores.row("P@1")
    assert row.value == 1.0
    assert "36 clips kept that are copies of one another" in row.reason
    assert {line["outcome"] for line in clips_of(tmp_path).values()} == {"used"}
    assert sum(bool(line["copy_of"]) for line in clips_of(tmp_path).values()) == 18


def test_vectors_of_a_run_without_copies_are_those_of_the_clips_that_stay(tmp_path: Path) -> None:
    run(given(noise_twice(tmp_path / "noise", ".flac"), tmp_path))
    found = load_vectors(tmp_path / "run", "noise", "bands mean_time")
    assert len(found.values) == len(found.ids) == 18
    assert set(found.ids) == {id for id, line in clips_of(tmp_path).items() if line["outcome"] == "used"}


def test_of_a_sound_under_two_labels_no_clip_stays(tmp_path: Path) -> None:
    corpus = sounds.make_folder(tmp_path / "sounds")
    soundfile.write(corpus / "class0" / "x.wav", sounds.tone(500, 77), sounds.RATE)
    soundfile.write(corpus / "class1" / "y.wav", sounds.tone(500, 77), sounds.RATE)
    result = run(given(corpus, tmp_path))
    row = result.scores.row("P@1")
    assert row.n == 18
    assert "2 clips left out whose sound has more than one label" in row.reason
    said = {id: line["outcome"] for id, line in clips_of(tmp_path).items()}
    assert said["class0/x.wav"] == "left out: the same sound as class1/y.wav, under the labels class0 and class1"
    assert said["class1/y.wav"] == "left out: the same sound as class0/x.wav, under the labels class0 and class1"
    assert any("1 sound under more than one label" in note for note in result.notes)


def test_where_every_sound_has_two_labels_nothing_is_scored(tmp_path: Path) -> None:
    for label in "ab":
        (tmp_path / "sounds" / label).mkdir(parents=True)
        for number in range(3):
            soundfile.write(tmp_path / "sounds" / label / f"{number}.wav", sounds.tone(300, number), sounds.RATE)
    result = run(given(tmp_path / "sounds", tmp_path))
    row = result.scores.row("P@1")
    assert row.status == "failed"
    assert "no clip of sounds is left to score: 6 clips left out" in row.reason


def test_the_report_and_the_record_say_it_even_when_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = noise_twice(tmp_path / "noise", ".wav")
    words = ["run", "--corpus", str(corpus), "--extractor", sounds.BANDS, "--pool", "mean_time", "--metrics", "P@1",
             "--into", str(tmp_path / "run"), "--cache-dir", str(tmp_path / "cache"), "--quiet"]  # fmt: skip
    for policy in ("drop", "keep"):
        assert cli.main([*words, "--copies", policy]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        assert "copies" in captured.out
        page = (tmp_path / "run" / "report.html").read_text()
        assert "36 clips of noise are copies of 18 sounds" in page
        assert ("Copies left out." in page) == (policy == "drop")
        assert "class0/0 again.wav" in page
    assert cli.main([*words, "--copies", "refuse"]) == 1
    assert "36 clips are copies of one another: class0/0 again.wav = class0/0.wav" in capsys.readouterr().err


def test_refused_copies_cost_no_work_and_a_corpus_without_any_passes(tmp_path: Path) -> None:
    before = sounds.Bands.heard
    corpus = noise_twice(tmp_path / "noise", ".flac")
    for do in (run, plan):
        with pytest.raises(InputError, match="and 8 more sounds: remove them from the corpus, or run with --copies"):
            do(given(corpus, tmp_path, copies="refuse"))
    assert sounds.Bands.heard == before
    clean = run(given(sounds.make_folder(tmp_path / "sounds"), tmp_path, copies="refuse"))
    assert clean.scores.row("P@1").n == 18


def test_the_policy_has_one_name_everywhere(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("corpus: sounds/\nextractors: logmel\ncopies: keep\n")
    assert load_config(tmp_path / "run.yaml").copies == "keep"
    assert make_config({"corpus": "x", "extractors": "logmel"}).copies == "drop"
    with pytest.raises(UsageError, match="copies"):
        make_config({"corpus": "x", "extractors": "logmel", "copies": "some"})


def test_a_partial_run_after_copies_were_left_out_keeps_what_is_known(tmp_path: Path) -> None:
    config = given(noise_twice(tmp_path / "noise", ".flac"), tmp_path)
    run(config)
    run({**config, "steps": ["prepare"]})
    assert len(load_vectors(tmp_path / "run", "noise", "bands mean_time").ids) == 18
