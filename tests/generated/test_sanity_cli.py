"""`earmark fidelity sanity` as a person types it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from earmark.cli import main

Run = Callable[..., tuple[int, str, str]]

OWN = """
import numpy as np

def closeness(real, generated):
    return float(np.exp(-np.linalg.norm(real.mean(axis=0) - generated.mean(axis=0))))
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("sanity_of_mine.py").write_text(OWN)

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["fidelity", "sanity", *words, "--quiet"])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_the_table_of_a_metric_of_ones_own(run: Run) -> None:
    code, said, _ = run(
        *"--metrics sanity_of_mine:closeness --checks mean,scaling,invention --repeats 2 --n 50 --jobs 1".split(),
        *"--out cells.csv --figure table.svg --into kept".split(),
    )
    assert code == 0
    lines = [line.split() for line in said.splitlines()]
    assert ["fidelity", "sanity_of_mine:closeness"] in lines
    assert ["mean", "T"] in lines
    assert ["scaling", "T"] in lines
    assert ["passed,", "Purpose", "1/2"] in lines
    assert "as published" not in said
    cells = list(csv.DictReader(Path("cells.csv").read_text().splitlines()))
    assert [(row["check"], row["outcome"], row["published"]) for row in cells if row["desideratum"] == "Purpose"] == [
        ("mean", "T", ""),
        ("invention", "F", ""),
    ]
    assert "not as published" in Path("table.svg").read_text()


def test_published_letters_stand_beside_those_that_differ(run: Run) -> None:
    code, said, _ = run(
        *"--metrics precision,recall --correct none --checks scaling,invention --repeats 1 --n 150 --jobs 1".split()
    )
    assert code == 0
    assert said.count("cells as published ") == 2
    lines = [line.split() for line in said.splitlines()]
    assert ["published", "1/1"] in lines
    assert ("not as published:" in said) == ("(" in said.split("not as published")[0])


def test_json_and_curves_of_one_check(run: Run) -> None:
    words = "--metrics sanity_of_mine:closeness --judge coverage --checks mode_collapse --repeats 1 --n 50 --jobs 1"
    code, said, _ = run(*words.split(), "--json", "--figure", "curves.png")
    rows = json.loads(said)
    assert code == 0
    assert [row["desideratum"] for row in rows] == ["Purpose", "Bounds"]
    assert rows[0]["metric"] == "sanity_of_mine:closeness"
    assert rows[0]["published"] is None
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_list_of_checks(run: Run) -> None:
    code, said, _ = run("--list")
    assert code == 0
    assert "one_disjoint" in said
    assert "One Disjoint Dim. + Many Identical Dim." in said


def test_a_study_from_the_command_line(run: Run) -> None:
    code, said, _ = run(*"--study crossover --figure crossover.png --out crossover.csv".split())
    assert code == 0
    assert said.startswith("crossover dimension\n")
    assert "30.3" in said
    assert len(Path("crossover.csv").read_text().splitlines()) == 41
    assert json.loads(run(*"--study crossover --json".split())[1])[0]["row"] == "k = 5"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--study spheres", "There is no study 'spheres'"),
        ("--checks torsu", 'Did you mean "torus"?'),
        ("--metrics nowhere:metric", "cannot be imported"),
        ("--out cells.txt --checks mean", "choose a name that ends in .csv or .json"),
        ("--figure nowhere/table.png", "does not exist; create it first"),
        ("--figure table.gif", "choose a name that ends in .png, .svg or .pdf"),
    ],
)  # fmt: skip
def test_errors_are_one_sentence(run: Run, words: str, message: str) -> None:
    code, said, complained = run(*words.split())
    assert code in (1, 2)
    assert said == ""
    assert message in complained
    assert complained.count("\n") == 1
