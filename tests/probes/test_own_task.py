"""A stranger's task: one file under 30 lines, named on the command line, without touching our source."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from earmark.cli import main
from earmark.scores import read_scores

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "my_task.py"


def test_the_example_runs_beside_our_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(EXAMPLE, tmp_path)
    monkeypatch.chdir(tmp_path)
    words = "codec run --codecs pcm --corpus spoken:2x2 --category speech --metrics stft_distance --quiet --no-report"
    assert main([*words.split(), "--tasks", "my_task:Loudness", "--into", "run", "--cache", "off"]) == 0
    rows = [row for row in read_scores(tmp_path / "run" / "scores.csv").rows if row.metric == "loudness_change"]
    assert [(row.system, row.status, row.n) for row in rows] == [("pcm", "ok", 4)]
    assert rows[0].value == pytest.approx(0.0, abs=0.01)


def test_the_example_is_short_and_is_what_the_page_shows() -> None:
    text = EXAMPLE.read_text("utf-8")
    assert len(text.splitlines()) < 30
    page = (EXAMPLE.parents[1] / "docs" / "own.md").read_text("utf-8")
    assert text in page
