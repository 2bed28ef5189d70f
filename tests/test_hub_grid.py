"""The best K of a grid for each correction: by hand, from other data sets, and as the GICDM paper prints it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

import earmark
from earmark.cli import main
from earmark.errors import UsageError
from earmark.evaluation.hub_grid import HubGrid, hubness_grid, published_grid
from earmark.published import check, read

RNG = np.random.default_rng(8)
SETS = {name: RNG.normal(size=(90, size)) * np.exp(0.3 * RNG.normal(size=(90, 1))) for name, size in
        (("low", 4), ("middle", 12), ("high", 40))}  # fmt: skip
GRID = (3, 8, 20)


@pytest.fixture(scope="module")
def grid() -> HubGrid:
    return hubness_grid(SETS, grid=GRID, distance="euclidean", correct=("none", "mp", "nicdm", "icdm"), threads=1)


def ratio(name: str, spelling: str) -> float:
    return float(earmark.hubness(SETS[name], distance="euclidean", correct=spelling, threads=1).value("hub_ratio"))


def test_the_best_is_the_lowest_of_all_that_were_tried(grid: HubGrid) -> None:
    assert [line.dataset for line in grid.best[::4]] == list(SETS)
    for line in grid.best:
        if line.correction in ("none", "mp"):
            assert (line.k, line.hub_ratio) == (None, ratio(line.dataset, line.correction))
            assert line.hub_ratio_elsewhere is None
            continue
        tried = [ratio(line.dataset, f"{line.correction}:k={size}") for size in GRID]
        assert line.hub_ratio == min(tried)
        assert line.hub_ratio == tried[GRID.index(line.k or 0)]
        # The K of others never saw this set, and cannot be better than the best.
        others = [name for name in SETS if name != line.dataset]
        means = [np.mean([ratio(name, f"{line.correction}:k={size}") for name in others]) for size in GRID]
        assert line.k_elsewhere == GRID[int(np.argmin(means))]
        assert line.hub_ratio_elsewhere == tried[int(np.argmin(means))] >= min(tried)


def test_mean_ranks_are_those_of_the_best(grid: HubGrid) -> None:
    values = np.array([[line.hub_ratio for line in grid.best if line.dataset == name] for name in SETS], float)
    expected = dict(zip(("none", "mp", "nicdm", "icdm"), rankdata(values, axis=1).mean(axis=0), strict=True))
    assert {line.correction: line.hub_rank for line in grid.mean_ranks()} == pytest.approx(expected)
    assert grid.mean_ranks()[0].correction == "icdm"


def test_the_printed_tables_in_the_same_form() -> None:
    printed = published_grid()
    assert len(printed.datasets) == 17
    table = {row["method"]: row for row in read("gicdm_hubness_tables") if row["table"] == "5"}
    methods = {"none": "Original", "mp": "MP^Gauss"}
    for line in printed.mean_ranks():
        row = table[methods.get(line.correction, line.correction.upper() if line.correction != "sphere" else "Sphere")]
        assert line.hub_ratio == pytest.approx(float(row["hub_ratio"]), abs=0.101)
        assert line.hub_rank == pytest.approx(float(row["hub_rank"]), abs=0.15)
        assert line.antihub_rank == pytest.approx(float(row["antihub_rank"]), abs=0.25)
    chosen = {line.k for line in printed.best if line.correction == "icdm"}
    assert chosen == {10, 20}
    (finding,) = (finding for finding in check() if "mean ranks" in finding.name)
    assert finding.as_known


def test_bad_grids_are_one_sentence() -> None:
    with pytest.raises(UsageError, match="whole numbers from 1 on"):
        hubness_grid(SETS, grid=(0, 5))
    with pytest.raises(UsageError, match="'icdm:k=5' is no correction without parameters"):
        hubness_grid(SETS, correct=["icdm:k=5"])


def test_a_grid_that_does_not_fit_is_a_reason() -> None:
    found = hubness_grid(
        {"few": RNG.normal(size=(12, 3)), "many": SETS["low"]}, grid=(30,), correct=["icdm"], threads=1
    )
    few, many = found.best
    assert few.hub_ratio is None
    assert "needs more than 30 points" in few.reason
    assert many.k == 30
    assert [line.hub_ratio for line in found.mean_ranks()] == [many.hub_ratio]


def test_several_files_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, values in SETS.items():
        np.save(f"{name}.npy", values)
    files = [f"{name}.npy" for name in SETS]
    common = "--distance euclidean --threads 1 --quiet".split()

    assert main(["hubness", *files, *common, "--correct", "none,icdm", "--out", "table.csv"]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].split() == ["hub", "ratio", "euclidean", "euclidean,", "icdm"]
    assert {row.system for row in earmark.load_scores("table.csv")} == set(SETS)

    assert main(["hubness", *files, *common, "--correct", "none,icdm", "--grid", "3,8", "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)
    assert {(line["dataset"], line["correction"]) for line in lines} == {(a, b) for a in SETS for b in ("none", "icdm")}
    assert main(["hubness", *files, *common, "--correct", "none,icdm", "--grid", "3,8"]) == 0
    assert "chosen by itself, and too good" in capsys.readouterr().out

    assert main(["hubness", "published:gicdm"]) == 0
    said = capsys.readouterr().out
    assert "15 of 16 printed ranks are among" in said
    assert "Not: csls by hub ratio, printed 3.7, where 3.53 to 3.65 is possible." in said
    lines = [line.split() for line in said.splitlines()]
    assert ["icdm", "1.0", "1.7", "1.0", "0.00", "1.0", "1.7", "1.0", "0.00"] in lines  # recomputed, then printed

    for words, told in (
        (["low.npy", "low.npy"], "a name of its own"),
        (["low.npy", "high.npy", "--figure", "f.png"], "--figure is for one file"),
        (["published:vocsim"], "give published:gicdm alone"),
        (["--grid", "3,8"], "Give files of vectors"),
    ):
        assert main(["hubness", *words, "--quiet"]) == 2
        assert told in capsys.readouterr().err
