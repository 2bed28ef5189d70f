"""`earmark run`: flags and files, plan, output and exit codes."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import pytest
from tests.representations import sounds

from earmark.cli import run as command
from earmark.errors import UsageError
from earmark.scores import load_scores


def call(*words: str) -> int:
    """The command without the dispatcher, whose errors are tested elsewhere."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(words))


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    folder = sounds.make_folder(tmp_path / "sounds")
    return [
        "--corpus", str(folder), "--extractor", sounds.BANDS, "--pool", "mean_time", "--metrics", "P@1,GSR",
        "--into", str(tmp_path / "run"), "--cache-dir", str(tmp_path / "cache"), "--steps", "prepare,embed,evaluate",
    ]  # fmt: skip


def test_flags_alone(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "scores.jsonl"
    more = ["--pca", "none,3", "--distance", "cosine,spearman", "--permutations", "20", "--out", str(out)]
    assert call(*words, *more) == 0
    said = capsys.readouterr()
    assert "P@1 (%)" in said.out
    assert "embed: 18 computed, 0 from the cache" in said.err
    assert f"results in {tmp_path / 'run'}" in said.err
    assert load_scores(out) == load_scores(tmp_path / "run" / "scores.csv")
    assert all(row.baseline is not None for row in load_scores(out))


def test_json_on_stdout_and_silence_elsewhere(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*words, "--json", "--quiet") == 0
    said = capsys.readouterr()
    assert {row["metric"] for row in json.loads(said.out)} == {"P@1", "GSR"}
    assert said.err == ""


def test_the_plan_computes_nothing(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*words, "--plan", "--quiet") == 0
    assert "18 of 18 clips" in capsys.readouterr().out
    assert not (tmp_path / "run").exists()
    call(*words, "--quiet")
    capsys.readouterr()
    assert call(*words, "--plan", "--json", "--quiet") == 0
    assert [line["todo"] for line in json.loads(capsys.readouterr().out)] == [0, 0]


def test_a_file_and_flags_in_its_place(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(*words, "--quiet")
    capsys.readouterr()
    config = str(tmp_path / "run" / "config.yaml")
    assert call(config, "--distance", "euclidean", "--quiet", "--json") == 0
    assert {row["distance"] for row in json.loads(capsys.readouterr().out)} == {"euclidean"}


def test_every_clip_under_every_system(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points = tmp_path / "points.csv"
    assert (
        call(*words, "--distance", "cosine,euclidean", "--metrics", "P@1", "--per-point", str(points), "--quiet") == 0
    )
    with points.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len({(row["subset"], row["system"], row["id"]) for row in rows}) == 18
    assert {row["label"] == row["cosine nearest_label"] for row in rows if row["cosine P@1"] == "1.0"} == {True}
    assert all(row["euclidean P@1"] in ("0.0", "1.0") for row in rows)


def test_refresh_computes_again(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    call(*words, "--quiet")
    call(*words, "--cache", "refresh")
    assert "embed: 18 computed" in capsys.readouterr().err


def test_a_clip_that_fails_for_two_models_is_one_clip(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sounds" / "class0" / "text.wav").write_text("not a sound, and long enough to be read as one")
    two = [f"{sounds.BANDS},{sounds.FUSSY}" if word == sounds.BANDS else word for word in words]
    assert call(*two) == 0
    failures = (tmp_path / "run" / "failures.csv").read_text().splitlines()
    assert len(failures) == 3
    assert f"1 clip failed; {tmp_path / 'run' / 'failures.csv'} says why" in capsys.readouterr().err


def test_nothing_measured_is_exit_code_1(tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    one = sounds.make_folder(tmp_path / "one", classes=1)
    alone = [str(one) if word == words[1] else word for word in words]
    assert call(*alone, "--quiet") == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "--corpus"),
        (["--corpus", "x"], "--extractor"),
        (["--corpus", "x", "--extractor", "logmel", "--distance", "cosin"], 'Did you mean "cosine"'),
        (["--corpus", "x", "--extractor", "logmel", "--executor", "dask"], "needs a cluster: give --scheduler"),
        (["--corpus", "x", "--extractor", "logmel", "--executor", "shard"], "give --shard 1/10, or --merge"),
        (["--corpus", "x", "--extractor", "logmel", "--shard", "4/3"], "is no share of a run"),
        (["--corpus", "x", "--extractor", "logmel", "--shard", "1/3", "--merge"], "give one of them"),
        (["--corpus", "x", "--extractor", "logmel", "--shard", "1/3", "--cache", "off"], "leave --cache off out"),
        (["--corpus", "x", "--extractor", "logmel", "--slurm", "--shards", "0"], "at least 1"),
    ],
)
def test_wrong_usage(given: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        call(*given)


def test_dtw_may_say_how_many_and_stand_before_the_config(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("corpus: sounds\nextractors: logmel\nsample: 5x3\n")
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    for words, wanted in (
        (["--dtw", str(file)], 200), ([str(file), "--dtw"], 200), ([str(file), "--dtw", "7"], 7),
        (["--dtw", "all", str(file)], "all"),
    ):  # fmt: skip
        config = command.config_of(parser.parse_args([*words, "--pca", "none,8w"]))
        assert config.dtw is not None
        assert (config.dtw.candidates, config.sample, config.pca) == (wanted, "5x3", [None, "8w"])
