"""The embedded example, as `make demo` runs it, in its smallest size."""

from __future__ import annotations

from pathlib import Path

import pytest

from earmark.cli import main
from earmark.cli.demo import PRETRAINED
from earmark.extractors.catalogue import CARDS, is_ready
from earmark.scores import load_scores


def test_the_demo_ends_with_a_table_a_report_and_the_next_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "demo"
    assert main(["demo", "--size", "24", "--into", str(into), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "SYN-BS" in out
    assert "synthetic" in out
    assert "run --corpus path/to/sounds" in out
    assert (into / "report.html").stat().st_size > 100_000
    scores = load_scores(into / "scores.csv")
    assert {row.distance for row in scores} == {"cosine", "euclidean", "spearman"}
    lifts = [row.lift for row in scores.select(metric="P@1", protocol="all") if row.lift is not None]
    pretrained = sum(is_ready(CARDS[name]) for name in PRETRAINED)
    assert len({row.system for row in scores}) == 3 + pretrained
    assert len(lifts) == 6 * 3 * (3 + pretrained)
    assert min(lifts) > 0
    assert main(["report", str(into)]) == 0
    said = capsys.readouterr()
    assert said.out.strip() == str(into / "report.html")
    assert "drawing" in said.err
    assert main(["report", str(into), "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_a_report_of_no_run_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 1
    assert "run.json" in capsys.readouterr().err
