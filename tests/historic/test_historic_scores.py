"""Score files of older versions still load, with the same numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from earmark.scores import COLUMNS, Row, read_scores, validate

HERE = Path(__file__).parent
FIRST = Row(
    suite="vocsim",
    subset="ES1",
    system="logmel",
    distance="cosine",
    metric="P@1",
    value=0.3175,
    low=0.2965,
    high=0.338,
    baseline=0.0199865,
    lift=0.2975135,
    p_value=1 / 1001,
    n=2000,
    seconds=1.25,
    version="0.1.0",
    inputs="5f2b",
)


@pytest.mark.parametrize("name", ["scores_v1.csv", "scores_v1.jsonl"])
def test_files_without_the_interval_of_the_null_load(name: str) -> None:
    scores = read_scores(HERE / name)
    assert len(scores) == 4
    assert scores.rows[0] == FIRST
    assert scores.value("P@1", protocol="across_groups") == 0.1705
    assert scores.row("CSCF").low is None
    assert scores.row("purity").value is None
    assert scores.row("purity").status == "not_applicable"
    assert validate(scores) == []


def test_files_that_do_not_say_what_an_interval_rests_on_load() -> None:
    scores = read_scores(HERE / "scores_v2.csv")
    assert scores.rows[0] == replace(FIRST, baseline_low=0.0145, baseline_high=0.026)
    assert {(row.interval, row.unit, row.units, row.shuffle, row.baseline_error) for row in scores} == {
        ("", "", None, "", None)
    }
    assert validate(scores) == []


def test_what_stood_inside_names_is_read_into_columns() -> None:
    scores = read_scores(HERE / "scores_v3.csv")
    assert scores.rows[0].units == 2000
    assert [(row.ablation, row.aggregate, row.statistic) for row in scores] == [
        ("", "", ""),
        ("noise0.05", "", ""),
        ("dtw", "", ""),
        ("", "", "difference"),
        ("", "mean:domain:birdsong", ""),
        ("tandem:3", "", ""),
        ("", "", "p1"),
        ("", "mean:speech", ""),
        ("loss:5", "", ""),
    ]
    assert validate(scores) == []


def test_both_formats_hold_the_same_table() -> None:
    assert read_scores(HERE / "scores_v1.csv") == read_scores(HERE / "scores_v1.jsonl")


def test_a_file_with_six_columns_loads_with_defaults() -> None:
    scores = read_scores(HERE / "scores_v0.csv")
    assert scores.value("P@1", distance="euclidean") == 0.3145
    row = scores.rows[0]
    assert (row.correction, row.protocol, row.status, row.suite, row.low) == ("none", "all", "ok", "", None)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json"])
def test_an_old_table_is_written_with_all_columns(tmp_path: Path, suffix: str) -> None:
    old = read_scores(HERE / "scores_v0.csv")
    new = tmp_path / f"scores{suffix}"
    old.write(new)
    assert read_scores(new) == old
    assert all(name in new.read_text() for name in COLUMNS)
