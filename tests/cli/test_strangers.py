"""The examples of a stranger's model, codec and metric: short files that run without touching Earmark's source."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from earmark.cli import main
from earmark.codecs import open_codec
from earmark.errors import InputError
from earmark.extractors.catalogue import open_extractor

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with both files below it and a few sounds, as somebody else would have them."""
    (tmp_path / "mine").mkdir()
    for name in ("my_extractor.py", "my_codec.py", "my_metric.py", "my_tokenizer.py"):
        shutil.copy(EXAMPLES / name, tmp_path / "mine" / name)
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    monkeypatch.chdir(tmp_path)
    # Other tests of this process may have left a folder with files of these names on the path.
    path = [entry for entry in sys.path if entry and not (Path(entry) / "my_extractor.py").exists()]
    monkeypatch.setattr(sys, "path", path)
    random = np.random.default_rng(0)
    for label in ("tone", "noise"):
        (tmp_path / "sounds" / label).mkdir(parents=True)
        for number in range(3):
            tone = np.sin(2 * np.pi * (200 + 5 * number) * np.arange(8000) / 8000)
            samples = 0.5 * tone if label == "tone" else 0.1 * random.standard_normal(8000)
            soundfile.write(tmp_path / "sounds" / label / f"{number}.wav", samples, 8000)
    return tmp_path


@pytest.mark.parametrize("name", ["my_extractor.py", "my_codec.py", "my_metric.py", "my_tokenizer.py"])
def test_an_example_is_short(name: str) -> None:
    assert len((EXAMPLES / name).read_text("utf-8").splitlines()) < 30


@pytest.mark.parametrize(
    "spec", ["mine/my_extractor.py:BandEnergies", "mine/my_codec.py:EightBits", "mine/my_tokenizer.py:LoudBands"]
)
def test_an_example_passes_every_check(folder: Path, spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", spec, "--json"]) == 0
    assert {result["status"] for result in json.loads(capsys.readouterr().out)} == {"pass"}


def test_a_model_runs_from_its_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--corpus", "sounds", "--metrics", "P@1", "--into", "run", "--quiet"]
    assert main(["run", "--extractor", "mine/my_extractor.py:BandEnergies", *words]) == 0
    with (folder / "run" / "scores.csv").open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["metric"] == "P@1" and row["subset"] != "mean"]
    assert {float(row["value"]) for row in rows} == {1.0}


def test_a_codec_runs_from_its_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--corpus", "sounds", "--category", "audio", "--metrics", "si_sdr", "--into", "run", "--quiet"]
    assert main(["codec", "run", "--codecs", "mine/my_codec.py:EightBits", *words]) == 0
    assert "eight_bits@64" in capsys.readouterr().out


def test_a_tokenizer_runs_from_its_file_as_codec_and_as_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--corpus",
        "sounds",
        "--category",
        "audio",
        "--metrics",
        "si_sdr",
        "--into",
        "codec",
        "--quiet",
        "--no-report",
    ]
    assert main(["codec", "run", "--codecs", "mine/my_tokenizer.py:LoudBands", *words]) == 0
    assert "loud_bands@0.45" in capsys.readouterr().out
    words = ["--corpus", "sounds", "--metrics", "P@1", "--into", "run", "--quiet"]
    assert main(["run", "--extractor", "mine/my_tokenizer.py:LoudBands", *words]) == 0
    with (folder / "run" / "scores.csv").open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["metric"] == "P@1" and row["subset"] != "mean"]
    assert {float(row["value"]) for row in rows} == {1.0}


def test_a_file_that_another_module_hides_is_told(folder: Path) -> None:
    (folder / "mine" / "json.py").write_text("class Mine:\n    pass\n")
    with pytest.raises(InputError, match="another module is called json; rename it"):
        open_extractor("mine/json.py:Mine")
    with pytest.raises(InputError, match="cannot be imported"):
        open_codec("mine/nothing.py:Mine")


def test_a_metric_is_measured_from_its_file(folder: Path) -> None:
    words = ["--corpus", "sounds", "--into", "run", "--quiet", "--metrics"]
    assert main(["run", "--extractor", "logmel", *words, "P@1,mine/my_metric.py:both_agree"]) == 0
    words[3] = "coded"
    assert (
        main(["codec", "run", "--codecs", "opus@12", "--category", "audio", *words, "mine/my_metric.py:level_change"])
        == 0
    )
    for place, name in (("run", "both_agree"), ("coded", "level_change")):
        with (folder / place / "scores.csv").open(newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row["metric"] == name]
        assert rows
        assert {row["status"] for row in rows} == {"ok"}
