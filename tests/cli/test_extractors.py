from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.verbs import runner

from earmark.cli import check, extractors
from earmark.extractors.catalogue import EXTRACTORS


def test_the_table_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    code, stdout, stderr = runner("extractors", extractors, capsys)()
    lines = stdout.splitlines()
    assert (code, stderr) == (0, "")
    assert [line.split()[0] for line in lines] == ["name", *EXTRACTORS.names()]
    assert "earmark[torch]" in next(line for line in lines if line.startswith("vae"))


def test_json_and_names(capsys: pytest.CaptureFixture[str]) -> None:
    run = runner("extractors", extractors, capsys)
    cards = {card["name"]: card for card in json.loads(run("--json")[1])}
    assert cards["logmel"]["dimension"] == 128
    assert cards["logmel"]["pooling"] == "flatten"
    assert run("--quiet")[1].split() == EXTRACTORS.names()


def test_check_passes_our_own(capsys: pytest.CaptureFixture[str]) -> None:
    code, stdout, _ = runner("check", check, capsys)("logmel")
    assert code == 0
    assert "earmark check logmel: 13 pass" in stdout
    assert "| batch_independent  | pass   |" in stdout


def test_check_names_what_a_strangers_model_does_wrong(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "careless_model.py").write_text(
        "import numpy as np\n"
        "class Careless:\n"
        "    def extract(self, waveforms):\n"
        "        longest = max(map(len, waveforms))\n"
        "        padded = np.zeros((len(waveforms), longest // 400, 2))\n"
        "        return padded + np.mean([w.mean() for w in waveforms])\n"
    )
    monkeypatch.chdir(tmp_path)
    run = runner("check", check, capsys)
    code, stdout, _ = run("careless_model:Careless", "--json")
    found = {finding["name"]: finding["status"] for finding in json.loads(stdout)}
    assert code == 1
    assert found["batch_independent"] == found["short_clips"] == "fail"
    assert found["card"] == "warn"
    assert found["finite"] == "pass"
    quiet = run("careless_model:Careless", "--quiet")[1]
    assert "| pass " not in quiet


def test_check_of_nothing_is_usage(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, stderr = runner("check", check, capsys)("logmell")
    assert code == 2
    assert 'Did you mean "logmel"' in stderr
