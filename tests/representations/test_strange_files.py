"""A folder as folders are: the run finishes and says exactly what happened to each file."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import soundfile
from tests.representations import sounds

from earmark.pipeline import plan, read_clips, run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = sounds.make_folder(tmp_path / "strange", classes=2, per_class=4)
    good = (root / "class0" / "clip0.wav").read_bytes()
    (root / "class0" / "corrupt.flac").write_bytes(b"fLaC" + bytes(range(200)))
    (root / "class0" / "torn.wav").write_bytes(good[: len(good) // 2])
    (root / "class0" / "empty.wav").write_bytes(b"")
    (root / "class0" / "text.wav").write_text("this is no sound\n")
    soundfile.write(root / "class1" / "ein Käfer – 甲虫 .wav", sounds.tone(600, 70), sounds.RATE)
    stereo = np.stack([sounds.tone(600, 71, 0.1, 96000), sounds.tone(600, 72, 0.1, 96000)], axis=1)
    soundfile.write(root / "class1" / "stereo96k.wav", stereo, 96000, subtype="PCM_24")
    soundfile.write(root / "class1" / "eight bits.wav", sounds.tone(600, 73), sounds.RATE, subtype="PCM_U8")
    soundfile.write(root / "class1" / "ten ms.wav", sounds.tone(600, 74, 0.01), sounds.RATE)
    (root / "lonely").mkdir()
    soundfile.write(root / "lonely" / "only.wav", sounds.tone(900, 75), sounds.RATE)
    soundfile.write(root / "loose.wav", sounds.tone(900, 76), sounds.RATE)
    (root / "notes.txt").write_text("not audio by its name")
    return root


@pytest.mark.parametrize("extractor", ["logmel", sounds.BANDS])
def test_every_file_is_accounted_for(folder: Path, tmp_path: Path, extractor: str) -> None:
    models = [{"name": "model", "spec": extractor}]
    result = run(sounds.config(folder, tmp_path, extractors=models))
    with (tmp_path / "run" / "clips.csv").open(encoding="utf-8", newline="") as stream:
        lines = {line["id"]: line for line in csv.DictReader(stream)}
    said = {name: line["outcome"] for name, line in lines.items()}
    words = {"corrupt.flac": "failed", "torn.wav": "cut short", "empty.wav": "empty", "text.wav": "not"}
    for name, word in words.items():
        assert said[f"class0/{name}"].startswith("failed"), name
        assert word in said[f"class0/{name}"]
        assert name in said[f"class0/{name}"]
    for name in ("ein Käfer – 甲虫 .wav", "stereo96k.wav", "eight bits.wav", "ten ms.wav"):
        assert said[f"class1/{name}"] == "used"
    assert said["lonely/only.wav"] == "not scored: 1 usable clip in its class, fewer than 2"
    assert said["loose.wav"] == "not scored: no label"
    stereo = lines["class1/stereo96k.wav"]
    assert (stereo["rate"], stereo["channels"]) == ("96000", "2")
    assert float(lines["class1/ten ms.wav"]["seconds"]) == pytest.approx(0.01, abs=1e-3)
    assert {Path(failure.id).name for failure in result.failures} == {
        "corrupt.flac", "torn.wav", "empty.wav", "text.wav",
    }  # fmt: skip
    row = result.scores.row("P@1")
    assert row.n == 12
    assert "4 clips failed and are left out" in row.reason
    assert "1 unlabelled row dropped" in row.reason
    assert "1 row in 1 class of fewer than 2 dropped" in row.reason
    assert any("notes.txt" in note or ".txt" in note for note in result.notes)


def test_the_report_says_so_too(folder: Path, tmp_path: Path) -> None:
    given = sounds.config(folder, tmp_path, extractors=["mfcc"], pooling=[], distances=["cosine", "euclidean"])
    result = run({**given, "steps": ["prepare", "embed", "evaluate", "report"]})
    assert result.report == tmp_path / "run" / "report.html"
    page = result.report.read_text("utf-8")
    for name in ("corrupt.flac", "torn.wav", "empty.wav", "text.wav", "only.wav", "loose.wav", "stereo96k.wav"):
        assert name in page, name
    assert "2 channels at 96000 Hz" in page
    again = run({**given, "steps": ["report"]})
    assert again.report == result.report


def test_a_plan_knows_what_failed_before(folder: Path, tmp_path: Path) -> None:
    given = sounds.config(folder, tmp_path, pca=["none", 3])
    run(given)
    lines, _ = plan(given)
    # Torn and corrupt files are tried again each time, in case they were repaired; nothing else is to be done.
    assert [(line.step, line.todo) for line in lines] == [("embed", 0), ("evaluate", 0), ("pca", 0), ("evaluate", 0)]
    assert len(lines[0].again) == 3


def test_many_unreadable_files_first_do_not_cost_the_good_ones(tmp_path: Path) -> None:
    corpus = tmp_path / "sounds"
    for label in ("aaa", "bbb", "ccc"):
        (corpus / label).mkdir(parents=True)
    for number in range(70):
        (corpus / "aaa" / f"text{number}.wav").write_text(f"not a sound {number}")
    for label, frequency in (("bbb", 400), ("ccc", 1200)):
        for number in range(4):
            tone = np.sin(2 * np.pi * (frequency + 10 * number) * np.arange(4000) / 16000)
            soundfile.write(corpus / label / f"{number}.wav", tone, 16000)
    result = run({"corpus": str(corpus), "extractors": ["mfcc"], "metrics": ["P@1"], "into": str(tmp_path / "run"),
                  "cache": {"url": str(tmp_path / "cache")}, "steps": ["prepare", "embed", "evaluate"]})  # fmt: skip
    assert result.scores.value("P@1") == 1.0
    assert len(result.failures) == 70


def test_every_copy_of_a_bad_file_is_told(tmp_path: Path) -> None:
    corpus = tmp_path / "sounds"
    for label, frequency in (("one", 400), ("two", 1200)):
        (corpus / label).mkdir(parents=True)
        for number in range(3):
            tone = np.sin(2 * np.pi * (frequency + 10 * number) * np.arange(4000) / 16000)
            soundfile.write(corpus / label / f"{number}.wav", tone, 16000)
        for copy in ("x", "y", "z"):
            (corpus / label / f"{copy}.wav").write_text("the same text")
    result = run({"corpus": str(corpus), "extractors": ["mfcc"], "metrics": ["P@1"], "into": str(tmp_path / "run"),
                  "cache": {"url": str(tmp_path / "cache")}, "steps": ["prepare", "embed", "evaluate"]})  # fmt: skip
    outcomes = {line["id"]: line["outcome"] for line in read_clips(tmp_path / "run")}
    assert len(result.failures) == 6
    assert sum(outcome.startswith("failed") for outcome in outcomes.values()) == 6


def test_features_that_change_from_clip_to_clip_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = tmp_path / "sounds"
    for label in ("one", "two"):
        (corpus / label).mkdir(parents=True)
        for number in range(3):
            samples = np.random.default_rng([number, len(label), ord(label[0])]).normal(size=4000 + 800 * (not number))
            soundfile.write(corpus / label / f"{number}.wav", 0.1 * samples, 16000)
    (tmp_path / "wrong_way.py").write_text(
        "import numpy as np\nclass Model:\n    rate = 16000\n    def extract(self, waves):\n"
        "        return [np.abs(np.fft.rfft(wave))[None, :] for wave in waves]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    result = run({"corpus": str(corpus), "extractors": ["wrong_way:Model"], "metrics": ["P@1"],
                  "pooling": ["mean_time"],
                  "into": str(tmp_path / "run"), "cache": {"url": str(tmp_path / "cache")},
                  "steps": ["prepare", "embed", "evaluate"]})  # fmt: skip
    assert len(result.failures) == 4
    assert all("features" in failure.reason for failure in result.failures)
