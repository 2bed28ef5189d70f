"""`earmark corpus`: what is printed where, what is written, which exit code."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import numpy as np
import pytest

from earmark import audio, cli
from earmark.cli import corpus


@pytest.fixture(autouse=True)
def verb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli.VERBS, "corpus", ("earmark.cli.corpus", "corpora"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The mixed bag: odd names, odd formats, damaged files, a class of one."""
    root = tmp_path / "rec"
    rng = np.random.default_rng(0)
    for label, count in (("Kohlmeise ♀", 6), ("two words", 6), ("single", 1)):
        (root / label).mkdir(parents=True)
        for k in range(count):
            audio.write(root / label / f"{k}.wav", 0.1 * rng.standard_normal(4000), 16_000)
    import soundfile

    soundfile.write(root / "single" / "stereo.wav", 0.1 * rng.standard_normal((9600, 2)), 96_000)
    soundfile.write(root / "two words" / "8bit.wav", 0.1 * rng.standard_normal(800), 8000, subtype="PCM_U8")
    soundfile.write(root / "two words" / "10 ms.wav", 0.1 * rng.standard_normal(160), 16_000)
    (root / "two words" / "empty.wav").touch()
    (root / "two words" / "text.wav").write_text("words\n" * 50)
    (root / "readme.md").write_text("x")
    return root


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["corpus", "list"]) == 0
    out = capsys.readouterr().out
    assert "vocsim:HW3" in out
    assert "codec_superb:opensinger" in out
    assert "synth" in out
    assert cli.main(["corpus", "list", "vocsim", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 19
    assert rows[0]["clips"] == 3321
    assert cli.main(["corpus", "list", "none"]) == 2


def test_describe(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["corpus", "describe", str(folder), "--out", str(tmp_path / "t.csv")]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[1].startswith("(all)")
    assert "18" in said.out
    assert "2 clips could not be read" in said.err
    assert "empty.wav is empty" in said.err
    assert "text.wav is not readable audio" in said.err
    assert "1 .md" in said.err
    with (tmp_path / "t.csv").open() as handle:
        assert next(csv.DictReader(handle))["unreadable"] == "2"
    assert cli.main(["corpus", "describe", str(folder), "--json", "--no-dri", "--quiet"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    shown = json.loads(said.out)
    assert shown["subsets"][0]["clips"] == 18
    assert [row["id"] for row in shown["unreadable"]] == ["two words/empty.wav", "two words/text.wav"]


def test_describe_tells_of_broken_files_and_lengths_on_its_result(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["corpus", "describe", str(folder), "--no-dri", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "2 clips cannot be read, and a run would leave out: two words/empty.wav, two words/text.wav\n" in out
    assert "labels: 3 (two words: 8, Kohlmeise ♀: 6, single: 2)" in out
    assert "median 0.25 s, shortest 0.01 s, longest 0.25 s" in out


def test_subset_chooses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["synth:tiny", "--subset", "SYN-BC", "--quiet"]
    assert cli.main(["corpus", "describe", *words, "--no-dri"]) == 0
    out = capsys.readouterr().out
    assert "SYN-BC" in out
    assert "SYN-HW" not in out
    assert cli.main(["corpus", "export", *words, "--into", str(tmp_path / "calls")]) == 0
    assert "54 clips" in capsys.readouterr().out
    assert cli.main(["corpus", "describe", "synth:tiny", "--subset", "SYN-BX"]) == 2
    assert 'Did you mean "SYN-B' in capsys.readouterr().err


def test_describe_draws(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="draws figures")
    assert (
        cli.main(["corpus", "describe", str(folder), "--no-dri", "--quiet", "--figure", str(tmp_path / "f.png")]) == 0
    )
    assert (tmp_path / "f.png").stat().st_size > 5000


def test_prepare(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    into = tmp_path / "out"
    assert cli.main(["corpus", "prepare", str(folder), "--into", str(into), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "of 18 clips kept" in out
    assert "2 dropped at read" in out
    assert "dropped.csv" in out
    assert (into / "manifest.csv").is_file()
    assert cli.main(["corpus", "prepare", str(folder), "--into", str(into), "--subset-rule", "BS9", "--quiet"]) == 2
    assert "There is no subset rule 'BS9'" in capsys.readouterr().err


def test_export(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    into = tmp_path / "out"
    for written in (16, 0):
        assert cli.main(["corpus", "export", str(folder), "--into", str(into), "--rate", "16000", "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert (shown["clips"], shown["written"], shown["failed"]) == (16, written, 2)
    assert cli.main(["corpus", "describe", str(into), "--quiet"]) == 0


def test_refusals(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for words, code, said in (
        (["describe", str(tmp_path / "none")], 1, "does not exist"),
        (["describe", "sinth"], 2, 'Did you mean "synth"?'),
        (["describe", "vocsim:HU3"], 1, "cannot be loaded"),
        (["describe", str(folder), "--out", "t.xlsx"], 2, ".csv or .json"),
        (["export", str(folder), "--into", str(tmp_path / "file")], 1, "is a file"),
        (["export", str(folder), "--into", str(tmp_path / "out"), "--rate", "0"], 2, "positive"),
        (["export", str(folder)], 2, "--into"),
        ([], 2, "ACTION"),
    ):
        assert cli.main(["corpus", *words]) == code
        assert said in capsys.readouterr().err


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["corpus", "--help"]) == 0
    assert "earmark corpus describe recordings/" in capsys.readouterr().out
    corpus.add_arguments(argparse.ArgumentParser())


def test_a_sample_is_described_and_exported_under_its_name(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["corpus", "describe", str(folder), "--sample", "2x4", "--no-dri", "--json"]) == 0
    out, err = capsys.readouterr()
    (subset,) = json.loads(out)["subsets"]
    assert (subset["subset"], subset["clips"], subset["classes"]) == ("rec~2x4", 8, 2)
    assert "rec~2x4: 8 of 18 clips, 4 of each of the 2 most frequent classes (sample 2x4, seed 0)" in err
    words = ["corpus", "export", str(folder), "--sample", "allx4", "--seed", "3", "--into", str(tmp_path / "small")]
    assert cli.main([*words, "--quiet"]) == 0
    with (tmp_path / "small" / "manifest.csv").open(newline="", encoding="utf-8") as stream:
        assert {line["subset"] for line in csv.DictReader(stream)} == {"rec~allx4:seed3"}
    assert cli.main(["corpus", "describe", str(folder), "--sample", "2x40"]) == 2
    assert "the largest has 10" in capsys.readouterr().err
