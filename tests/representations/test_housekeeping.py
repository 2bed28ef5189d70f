"""A folder that held another run, a report that needs no new drawing, and models that print, wait or are pipes."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

import earmark

TALKER = """
import os
import numpy as np

print("loading")

class Talker:
    rate = 16000

    def extract(self, waveforms):
        print("listening")
        os.system("echo a child speaks")
        os.write(1, b"past Python ")
        return [np.abs(np.fft.rfft(w[:1024], 1024)).reshape(1, -1) for w in waveforms]
"""


def settings(into: Path, extractor: str = "logmel", **more: object) -> dict[str, object]:
    base = {"corpus": "synth:tiny", "subset": ["SYN-HW"], "extractors": [extractor], "metrics": ["P@1"]}
    return {**base, "into": str(into), "cache": str(into.parent / "cache"), **more}


def test_results_of_another_run_are_set_aside_and_not_lost(tmp_path: Path) -> None:
    into = tmp_path / "run"
    quick = {"steps": ["prepare", "embed", "evaluate"]}
    earmark.run(settings(into, **quick))
    (into / "my notes.txt").write_text("mine")
    first = (into / "scores.csv").read_text()
    again = earmark.run(settings(into, **quick, threads=1))
    assert not (into / "earlier").exists()
    assert again.notes == ()
    other = earmark.run(settings(into, "mfcc", **quick))
    assert any("held another run: its results lie in" in note for note in other.notes)
    assert (into / "earlier" / "1" / "scores.csv").read_text() == first
    assert (into / "earlier" / "1" / "config.yaml").is_file()
    assert (into / "my notes.txt").read_text() == "mine"
    assert "mfcc" in (into / "scores.csv").read_text()
    earmark.run(settings(into, **quick))
    assert (into / "earlier" / "2" / "run.json").is_file()


def test_a_report_is_drawn_anew_only_when_something_changed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    into = tmp_path / "run"
    earmark.run(settings(into))
    page = into / "report.html"
    before = page.stat().st_mtime_ns
    earmark.run(settings(into))
    assert page.stat().st_mtime_ns == before
    record = json.loads((into / "run.json").read_text())
    record["drawn"] = "something else"
    (into / "run.json").write_text(json.dumps(record))
    earmark.run(settings(into))
    assert page.stat().st_mtime_ns > before
    page.unlink()
    assert earmark.run(settings(into)).report == page
    assert page.is_file()


def test_what_a_model_prints_does_not_break_json(tmp_path: Path) -> None:
    (tmp_path / "talking.py").write_text(TALKER)
    command = [
        sys.executable, "-m", "earmark", "run", "--corpus", "synth:tiny", "--subset", "SYN-HW", "--extractor",
        "talking:Talker", "--metrics", "P@1", "--steps", "prepare,embed,evaluate", "--json", "--quiet",
        "--cache", "off", "--into", "run",
    ]  # fmt: skip
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert [row["metric"] for row in json.loads(done.stdout)] == ["P@1"]
    for words in ("loading", "listening", "a child speaks", "past Python"):
        assert words in done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes on this system")
def test_a_pipe_with_the_name_of_a_sound_does_not_stop_a_run(tmp_path: Path) -> None:
    earmark.open_corpus("synth:tiny")  # loads what is slow before the clock runs
    (tmp_path / "sounds" / "a").mkdir(parents=True)
    os.mkfifo(tmp_path / "sounds" / "a" / "pipe.wav")
    with pytest.raises(earmark.EarmarkError, match="is not a regular file"):
        earmark.open_corpus(str(tmp_path / "sounds")).clips[0].read(16000)


def test_a_model_that_ends_the_program_is_a_failed_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leaving_early.py").write_text(
        "import sys\n\nclass Leaver:\n    rate = 16000\n\n    def extract(self, waveforms):\n        sys.exit(3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    quick = {"steps": ["prepare", "embed", "evaluate"]}
    result = earmark.run(settings(tmp_path / "run", "leaving_early:Leaver", **quick))
    row = result.scores.row("P@1")
    assert row.status == "failed"
    assert "it ended the program (exit status 3)" in row.reason


def test_carriage_returns_in_labels_are_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(6):
        soundfile.write(tmp_path / f"{number}.wav", 0.1 * rng.normal(size=4000), 16000)
    with (tmp_path / "clips.csv").open("w", newline="") as stream:
        lines = [[f"{number}.wav", "a\rb" if number % 2 else "c\r\nd"] for number in range(6)]
        csv.writer(stream).writerows([["path", "label"], *lines])
    config = settings(tmp_path / "run", corpus=str(tmp_path / "clips.csv"), subset=["clips"])
    result = earmark.run(config)
    assert result.scores.row("P@1").n == 6
    assert result.report is not None


def test_text_that_is_not_utf8_in_a_parquet_manifest_is_said(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    offsets = pyarrow.array([0, 2, 4], type=pyarrow.int32()).buffers()[1]
    broken = pyarrow.StringArray.from_buffers(2, offsets, pyarrow.py_buffer(b"\xff\xfeab"))
    table = pyarrow.table({"path": pyarrow.array(["a.wav", "b.wav"]), "label": broken})
    parquet.write_table(table, tmp_path / "clips.parquet")
    with pytest.raises(earmark.EarmarkError, match="the column 'label' holds text that is not UTF-8"):
        earmark.open_corpus(str(tmp_path / "clips.parquet"))
