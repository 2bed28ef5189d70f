"""`earmark blind new` and `earmark blind check`, as participants type them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.blind.examples import CODE, code_package

from earmark.cli import main


@pytest.mark.parametrize("kind", ["onnx", "code"])
def test_an_example_is_taken_as_it_is(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["blind", "new", "mine", "--kind", kind]) == 0
    written = capsys.readouterr().out.split()
    assert "mine/submission.yaml" in written
    assert main(["blind", "check", "mine", "--json", "--quiet", "--memory", "3GB"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["taken"]
    assert told["package"]["entry"] == "my-model"
    assert all(finding["name"] == "sandbox" for finding in told["findings"])  # what this machine lacks


def test_an_example_never_overwrites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/notes").write_text("mine")
    assert main(["blind", "new", str(tmp_path / "a")]) == 1
    assert "not empty" in capsys.readouterr().err
    assert (tmp_path / "a/notes").read_text() == "mine"


def test_everything_that_would_be_refused_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = code_package(tmp_path / "a", distance="cosinus", pooling="mean")
    (folder / "weights.pt").write_bytes(b"")
    (folder / "native.so").write_bytes(b"")
    assert main(["blind", "check", str(folder)]) == 1
    out = capsys.readouterr().out
    assert "2 fail" in out
    assert "safetensors or .npy" in out
    assert "would be refused" in out
    (folder / "weights.pt").unlink()
    (folder / "native.so").unlink()
    assert main(["blind", "check", str(folder), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["taken"]
    assert len(told["findings"]) == 2


def test_a_model_that_fails_shows_its_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = CODE.replace("padded = np.pad", "padded = np.pud")
    assert main(["blind", "check", str(code_package(tmp_path / "a", broken)), "--quiet"]) == 1
    out = capsys.readouterr().out
    assert "np.pud" in out
    assert "AttributeError" in out


def test_wrong_usage_is_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["blind", "check", str(tmp_path / "nothing")]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert main(["blind", "check"]) == 2
    assert main(["blind", "check", str(code_package(tmp_path / "a")), "--memory", "lots"]) == 2
