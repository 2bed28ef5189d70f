"""What a paper cites, and what a run says of itself: versions, weights, command and methods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import earmark
from earmark.cli import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("cite") / "run"
    config = {
        "corpus": "synth:tiny", "subset": ["SYN-HW"], "extractors": ["logmel"], "metrics": ["P@1", "GSR"],
        "permutations": 20, "seed": 7, "steps": ["prepare", "embed", "evaluate"], "into": str(into),
        "cache": {"policy": "off"},
    }  # fmt: skip
    earmark.run(config)
    return into


def test_the_papers_are_cited(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cite"]) == 0
    text = capsys.readouterr().out
    assert text.count("@misc{") == 5
    assert "{{VocSim: a training-free benchmark" in text


def test_a_run_says_what_it_rests_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cite", str(folder), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert "54 clips of 6 classes" in answer["methods"]
    assert "20 permutations" in answer["methods"]
    assert "Seed 7" in answer["methods"]
    assert "leave out each group" in answer["methods"]
    assert any("VocSim" in line for line in answer["cite"])


def test_the_record_has_versions_of_what_was_loaded(folder: Path) -> None:
    record = json.loads((folder / "run.json").read_text())
    assert {"python", "numpy", "scipy", "numba"} <= set(record["versions"])
    assert record["command"] == ""  # a program asked for it
    assert len(record["systems"][0]["identity"]) == 64


def test_the_command_is_recorded_without_keys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from earmark.runs.folder import command_line

    monkeypatch.setattr(
        "sys.argv", ["/bin/earmark", "run", "--corpus", "my sounds", "--out", "https://x.org/a.csv?sig=pw"]
    )
    assert command_line().startswith("earmark run --corpus 'my sounds'")
    assert "pw" not in command_line()


def test_weights_inside_packages_are_named_by_their_hash(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("openwakeword")
    config = {
        "corpus": "synth:tiny", "subset": ["SYN-HW"], "extractors": ["speech_embedding"], "metrics": ["P@1"],
        "steps": ["prepare", "embed", "evaluate"], "into": str(tmp_path / "run"), "cache": {"policy": "off"},
    }  # fmt: skip
    earmark.run(config)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    files = dict(record["systems"][0]["files"])
    assert files["embedding_model.onnx"].startswith("ba754db3cd76")
    assert "embedding_model.onnx (SHA-256 ba754db3cd76…)" in record["methods"]


def test_the_citation_file_is_read_by_its_format() -> None:
    facts = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert facts["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license"} <= set(facts)


def test_no_run_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cite", str(tmp_path / "none")]) == 2
    assert "is no run folder" in capsys.readouterr().err
