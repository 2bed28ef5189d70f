"""`earmark fidelity` with several generated sets, and `fidelity sanity --real`, as a person types them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

import earmark
from earmark.cli import main

Run = Callable[..., tuple[int, str, str]]
RNG = np.random.default_rng(2)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["fidelity", *words, "--quiet"])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def files(run: Run) -> list[str]:
    Path("b").mkdir()
    np.save("real.npy", RNG.normal(size=(90, 5)))
    sizes = {"good.npy": 1.0, "b/good.npy": 1.0, "wild.npy": 3.0}
    for name, scale in sizes.items():
        np.save(name, scale * RNG.normal(size=(70, 5)))
    return ["real.npy", *sizes]


FEW = "--metrics precision,coverage,density --correct none --threads 1".split()


def test_ranks_pairs_figure_and_page(run: Run, files: list[str]) -> None:
    written = "--ranks r.csv --pairs p.jsonl --out s.csv --figure f.svg --html p.html".split()
    code, said, _ = run(*files, *FEW, "--system", "A,B,C", *written)
    assert code == 0
    lines = said.splitlines()
    assert lines[0] == "3 generated sets against real.npy · 70 generated points each · 90 real points · euclidean"
    assert "C is surely behind (2 of 3 pairs told apart; corrected for their number)." in said
    assert any(line.split()[:3] == ["C", "3", "[3]"] for line in lines)
    ranks = list(csv.DictReader(Path("r.csv").read_text().splitlines()))
    assert {(row["system"], row["rank_low"]) for row in ranks if row["metric"] == "precision"} == {
        ("A", "1"), ("B", "1"), ("C", "3"),
    }  # fmt: skip
    pairs = earmark.load_scores("p.jsonl")
    assert {row.system for row in pairs} == {"A - B", "A - C", "B - C"}
    assert {row.metric for row in pairs} == {f"{name}:difference" for name in ("precision", "coverage", "density")}
    assert len(earmark.load_scores("s.csv")) == 9
    assert all(name in Path("f.svg").read_text() for name in ("A", "B", "C", "coverage", "density"))
    page = Path("p.html").read_text()
    assert "C is surely behind" in page
    assert page.count("<table") >= 4


def test_judgements(run: Run, files: list[str]) -> None:
    Path("h.csv").write_text("System,fooled\nA,.4\nB,.5\nC,.1\nD,.3\n")
    words = [*files, *FEW, "--system", "A,B,C", "--human", "h.csv"]
    code, said, _ = run(*words, "--correlations", "c.json", "--html", "p.html", "--figure", "f.svg")
    assert code == 0
    drawn = Path("f.svg").read_text()
    assert "judgement" in drawn
    assert "without GICDM: r = " in drawn
    assert run(*words, "--metrics", "density", "--figure", "g.svg")[0] == 0
    assert "coverage" not in Path("g.svg").read_text()
    assert "note: 1 judged system not measured: D" in said
    warning = "note: 3 systems: too few to conclude from r (intervals and p need 5)"
    assert -1 < said.find(warning) < said.find("agreement with the judgements")
    page = Path("p.html").read_text()
    assert -1 < page.find(warning.removeprefix("note: ")) < page.find("Pearson")
    found = {item["metric"]: item for item in json.loads(Path("c.json").read_text())}
    turned = run(*words, "--human-better", "lower", "--correlations", "t.csv")
    assert turned[0] == 0
    for row in csv.DictReader(Path("t.csv").read_text().splitlines()):
        assert float(row["pearson"]) == pytest.approx(-found[row["metric"]]["pearson"])
    assert found["precision"]["pearson_p"] is None
    assert "Agreement with the judgements" in Path("p.html").read_text()


@pytest.mark.parametrize(
    ("words", "text", "told"),
    [
        (["--human", "h.csv"], "name,value\na,1\n", "has no column system"),
        (["--human", "h.csv"], "system,value\na,1\na,2\n", "names a twice"),
        (["--human", "h.csv"], "system,value\na,high\n", "has the value 'high': give a number"),
        (["--human", "h.csv"], "system,x,y\na,1,2\n", "2 other columns of numbers: call the one to use value"),
        (["--human", "h.csv"], "system,value\nelse,1\n", "No judged system is among those measured"),
        (["--correlations", "c.csv"], "", "needs judgements"),
        (["--per-sample", "s.csv"], "", "--per-sample is a file of one generated set"),
        (["--system", "A,B"], "", "--system gives 2 names for 3 generated sets"),
        (["--system", "A,A,B"], "", "A names more than one generated set"),
        (["--ranks", "r.txt"], "", "ends in .csv or .json"),
    ],
)
def test_what_is_wrong_is_one_sentence(run: Run, files: list[str], words: list[str], text: str, told: str) -> None:
    Path("h.csv").write_text(text)
    code, said, error = run(*files, *FEW, "--intervals", "none", *words)
    assert (code > 0, said) == (True, "")
    assert told in error
    assert len(error.strip().splitlines()) == 1


def test_names_that_clash_become_paths_and_one_set_has_no_ranks(run: Run, files: list[str]) -> None:
    code, said, _ = run(*files, *FEW, "--intervals", "none", "--json")
    assert code == 0
    assert {row["system"] for row in json.loads(said)} == {"good.npy", "b/good.npy", "wild.npy"}
    assert run(files[0], files[1], files[1], *FEW)[0] == 2
    code, _, error = run(*files[:2], *FEW, "--ranks", "r.csv")
    assert (code, "--ranks is for several generated sets" in error) == (2, True)
    np.save("wide.npy", RNG.normal(size=(70, 6)))
    code, _, error = run(*files, "wide.npy", *FEW)
    assert "5 dimensions and generated ones 6" in error


def test_a_set_too_small_to_be_tested_does_not_lead(run: Run, files: list[str]) -> None:
    np.save("tiny.npy", np.load("real.npy")[:3])  # three real points: precision 1, and nothing to test it by
    code, said, _ = run(*files, "tiny.npy", "--metrics", "precision", "--correct", "none", "--threads", "1")
    assert code == 0
    assert "tiny.npy could not be tested" in said
    assert not any("tiny" in line.partition(" lead")[0] for line in said.splitlines() if " lead" in line)


# --- checks on real embeddings ----------------------------------------------------------------------------------------


def test_checks_on_files_of_vectors(run: Run) -> None:
    labels = [f"c{row % 3}" for row in range(90)]
    for name in ("one", "two"):
        np.savez(f"{name}.npz", vectors=RNG.normal(size=(90, 4)), labels=labels)
        np.savez(f"bad-{name}.npz", vectors=RNG.normal(size=(60, 4)) + 50.0)
    common = ["sanity", "--real", "one.npz,two.npz", "--metrics", "precision,coverage", "--repeats", "2", "--jobs", "1"]
    code, said, _ = run(
        *common, "--bad", "bad-one.npz,bad-two.npz", "--out", "c.csv", "--figure", "f.svg", "--into", "kept"
    )
    assert code == 0
    lines = [line.split() for line in said.splitlines()]
    assert ["one", "·", "fidelity", "at", "the", "start", "dropping", "outliers", "replacing"] in lines
    assert ["two", "·", "coverage", "at", "the", "start", "outliers", "replacing"] in lines
    cells = list(csv.DictReader(Path("c.csv").read_text().splitlines()))
    assert len(cells) == 2 * (2 * 3 + 2 * 2)
    perfect = next(cell for cell in cells if (cell["metric"], cell["test"]) == ("precision", "replacing"))
    assert (perfect["outcome"], perfect["published"]) == ("T", "T")
    assert "without GICDM" in Path("f.svg").read_text()
    assert len(Path("kept/scores.csv").read_text().splitlines()) > 100
    for words, told in (
        (["--bad", "bad-one.npz"], "--bad names 1 files and --real 2"),
        (["--study", "crossover"], "--study is for synthetic sets"),
        (["--checks", "mean"], "There is no test 'mean'"),
    ):
        code, _, error = run(*common, *words)
        assert (code, told in error) == (2, True), error
    code, _, error = run("sanity", "--bad", "bad-one.npz", "--checks", "mean")
    assert (code, "--bad is for real embeddings" in error) == (2, True)


def test_checks_on_sounds_make_noise_of_their_own(run: Run) -> None:
    for number in range(24):
        folder = Path("sounds") / f"tone{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        time = np.arange(4000) / 16000
        tone = np.sin(2 * np.pi * (300 + 400 * (number % 2) + 5 * number) * time)
        soundfile.write(folder / f"{number}.flac", 0.3 * tone, 16000)
    words = (
        "sanity --real sounds --extractor mfcc --metrics precision --correct none --k 2 --repeats 2 --jobs 1".split()
    )
    code, said, _ = run(*words, "--checks", "replacing", "--json")
    assert code == 0
    (cell,) = json.loads(said)
    assert (cell["system"], cell["outcome"]) == ("mfcc", "T")
