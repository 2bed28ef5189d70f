"""`earmark tables`: any scores in; text, Markdown, LaTeX, CSV, Parquet and JSON out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.verbs import runner

from earmark.cli import tables
from earmark.report.tabulation import Choice, tabulate
from earmark.scores import Row, Scores

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return runner("tables", tables, capsys)


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    rows = [
        Row(system=system, subset=subset, metric=metric, value=value / place, distance="cosine")
        for place, (system, value) in enumerate((("plain & simple", 0.8), ("deep_model", 0.6)), start=1)
        for subset in ("HU3", "HU4", "BC")
        for metric in ("P@1", "GSR")
    ]
    Scores(tuple(rows)).write(tmp_path / "scores.csv")
    return tmp_path / "scores.csv"


def test_every_choice_is_a_flag_and_means_the_same(call: Call, scores: Path) -> None:
    _, out, _ = call(
        scores, "--metrics", "GSR,P@1", "--set", "blind=HU3,HU4", "--set", "rest=*", "--averages", "rest,blind,all",
        "--sort", "P@1 blind", "--top", 1, "--rename", "plain & simple=Plain", "--digits", 2, "--no-best", "--second",
        "--interval", "none", "--missing", "skip", "--distance", "cosine", "--one-per-system", "--p-below", ".01",
        "--no-lift", "--subsets", "HU3,HU4,BC", "--systems", "all", "--protocols", "all", "--corrections", "none",
    )  # fmt: skip
    same = tabulate(
        scores, metrics=["GSR", "P@1"], sets={"blind": ["HU3", "HU4"], "rest": ["*"]}, averages="rest,blind,all",
        sort="P@1 blind", top=1, rename={"plain & simple": "Plain"}, digits=2, best=False, second=True,
        interval="none", missing="skip", distances="cosine", one_per_system=True, p_below=0.01, lift=False,
        subsets="HU3,HU4,BC", systems="all", protocols="all", corrections="none",
    )  # fmt: skip
    assert out == same.to_text()
    assert "rest GSR ↑" in out
    assert len(out.strip().splitlines()) == 5
    given = {"sets": "--set", "distances": "--distance", "best": "--no-best", "lift": "--no-lift"}
    usage = call("--help")[1]
    for name in Choice.model_fields:
        assert given.get(name, f"--{name.replace('_', '-')}") in usage


def test_files_by_their_ending(call: Call, scores: Path, tmp_path: Path) -> None:
    made = tabulate(scores, "main,full", metrics="P@1")
    texts = {
        ".txt": made.to_text(),
        ".md": made.to_markdown(),
        ".tex": made.to_latex(label="tab:a"),
        ".csv": made.to_csv(),
    }
    for ending, text in texts.items():
        path = tmp_path / f"tables{ending}"
        code, out, err = call(scores, "--kind", "main,full", "--metrics", "P@1", "--out", path, "--label", "tab:a")
        assert (code, path.read_text()) == (0, text)
        assert (out, err) == (made.to_text(), f"2 tables written to {path}\n")
    stacked = list(csv.DictReader(io.StringIO(texts[".csv"])))
    assert [row["table"].partition(".")[0] for row in stacked] == ["Means over 1 public and 2 blind subsets"] * 2 + [
        "P@1 by subset"
    ] * 2
    assert float(stacked[0]["blind P@1"]) == pytest.approx(0.8)
    assert r"\label{tab:a-1}" in texts[".tex"]
    assert r"plain \& simple" in texts[".tex"]
    code, out, err = call(scores, "--json", "--quiet", "--out", tmp_path / "tables.json")
    assert json.loads(out) == json.loads((tmp_path / "tables.json").read_text())
    assert json.loads(out)["tables"][0]["rows"][0]["public P@1"] == 0.8
    assert err == ""
    parquet = pytest.importorskip("pyarrow.parquet")
    call(scores, "--out", tmp_path / "tables.parquet")
    assert parquet.read_table(tmp_path / "tables.parquet").column("blind GSR").to_pylist() == pytest.approx([0.8, 0.3])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "tables.doc"], "choose a name that ends in .txt, .md, .tex, .csv, .parquet or .json"),
        (["--out", "nowhere/tables.tex"], "does not exist; create it first"),
        (["--page", "wide"], "is not WIDTHxHEIGHT in points, such as 345x550"),
        (["--page", "1x1"], "is not WIDTHxHEIGHT in points"),
        (["--kind", "mian"], 'Did you mean "main"?'),
        (["--digits", "x"], "argument --digits: invalid int value"),
    ],
)
def test_wrong_words(call: Call, scores: Path, words: list[str], message: str) -> None:
    code, _, err = call(scores, *words)
    assert code in (1, 2)
    assert message in err


def test_the_page_decides_on_the_layout(call: Call, scores: Path) -> None:
    narrow, wide = (call(scores, "--format", "latex", "--quiet", "--page", page)[1] for page in ("150x300", "600x800"))
    assert "sidewaystable" in narrow
    assert "sidewaystable" not in wide


def test_a_choice_of_rows_is_told_from_the_paper_s_own(call: Call) -> None:
    """--top looks at every printed configuration; Table 2 has ten of them."""
    for words, expected in ((["--top", 3], "chosen among all configurations"), ([], "those of the paper's Table 2")):
        code, _, notes = call("published:vocsim", "--metrics", "P@1", "--with-repeats", *words)
        assert code == 0
        assert expected in notes
