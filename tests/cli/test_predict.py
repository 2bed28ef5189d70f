"""`earmark predict`: a partial table in, a filled one out, predicted cells marked wherever they are shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.verbs import runner

from earmark import published
from earmark.analysis.suite import LITE
from earmark.cli import predict
from earmark.scores import Row, Scores, load_scores

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return runner("predict", predict, capsys)


@pytest.fixture
def partial(tmp_path: Path) -> Path:
    rows = [
        Row(suite="vocsim", subset=row.subset, system="mine", distance="cosine", metric=row.metric, value=row.value)
        for row in published.load("vocsim").select(system="CLP", distance="cosine", metric=["P@1", "GSR"])
        if row.subset in LITE["vocsim"]
    ]
    path = tmp_path / "partial.csv"
    Scores(tuple(rows)).write(path)
    return path


def test_a_filled_table(call: Call, partial: Path, tmp_path: Path) -> None:
    code, out, err = call(partial, "--metric", "P@1", "--out", tmp_path / "filled.csv")
    assert code == 0
    assert "P@1 (%), higher is better; ~ was predicted, not measured" in out
    assert out.count("~") == 18 + 1 + 2  # eighteen cells, the heading, footnotes of subsets and of means
    assert "GSR" not in out
    assert "scores written" in err
    found = load_scores(tmp_path / "filled.csv")
    assert sum(row.status == "predicted" for row in found) == 18
    assert sum(row.status == "ok" for row in found) == 3


def test_json_has_the_rows(call: Call, partial: Path) -> None:
    code, out, err = call(partial, "--json", "--quiet", "--level", "0.8")
    assert (code, err) == (0, "")
    rows = json.loads(out)
    assert {row["status"] for row in rows} == {"ok", "predicted"}
    assert all("80 % interval" in row["reason"] for row in rows if row["status"] == "predicted")


def test_a_report_marks_predicted_cells(call: Call, partial: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    code, _, _ = call(partial, "--report", tmp_path / "filled.html", "--quiet")
    assert code == 0
    page = (tmp_path / "filled.html").read_text("utf-8")
    section = page[page.index('id="predicted"') :]
    assert section.count(">predicted</small>") == 18
    assert "Predicted, not measured" in page
    assert "1 representation · 3 subsets" in page  # what was predicted is not counted as measured


def test_without_a_history_it_says_so_and_fails(call: Call, partial: Path) -> None:
    code, out, err = call(partial, "--no-published")
    assert code == 1
    assert "~ was" in out
    assert "give tables with --history" in err


def test_percentages_are_refused(call: Call, tmp_path: Path) -> None:
    rows = [Row(suite="vocsim", subset=s, system="mine", metric="P@1", value=v) for s, v in (("BS4", 84), ("HS1", 71))]
    Scores(tuple(rows)).write(tmp_path / "percent.csv")
    code, out, err = call(tmp_path / "percent.csv")
    assert (code, out) == (1, "")
    assert "write fractions: divide by 100." in err


def test_a_plain_table_needs_its_metric(call: Call, partial: Path, tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text("model,BS4,HS1,HW2\nmine,84%,.71,.08\n")
    code, out, _ = call(tmp_path / "plain.csv", "--metric", "P@1")
    assert code == 0
    assert "HU3" in out
    code, _, err = call(tmp_path / "plain.csv")
    assert code == 2
    assert "plain table of models and datasets: say with one --metric" in err
    assert "plain table" in call(partial, "--history", tmp_path / "plain.csv")[2]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--metric", "P@2"], 2, 'has no metric "P@2"; it has P@1, GSR.'),
        (["--level", "3"], 2, "between 0 and 1"),
        (["--history", "nothing.csv"], 1, "nothing.csv does not exist"),
        (["--report", "page.pdf"], 2, "is an HTML file"),
        (["--out", "no/such/folder/x.csv"], 1, "does not exist; create it first"),
    ],
)
def test_wrong_calls_are_one_sentence(words: list[str], code: int, message: str, call: Call, partial: Path) -> None:
    found = call(partial, *words, "--quiet")
    assert found[0] == code
    assert message in found[2]
    assert len(found[2].strip().splitlines()) == 1
