"""`earmark analyze` and `earmark published`: output, files, exit codes, and one sentence for whatever is wrong."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.verbs import runner

from earmark.cli import analyze, published

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return runner("analyze", analyze, capsys)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Call:
    return runner("published", published, capsys)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    values = np.clip(np.linspace(0.2, 0.8, 12)[:, None] + 0.05 * rng.normal(size=(12, 5)), 0, 1)
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["model", *"abcde", "average"])
        writer.writerows([f"m{i}", *row, row.mean()] for i, row in enumerate(values))
    return path


def test_sentences_on_stdout_and_warnings_on_stderr(call: Call, table: Path) -> None:
    code, out, err = call(table, "--random-orders", 20)
    assert code == 0
    assert "12 models × 6 datasets" in out
    assert "Which to run first (prowl)\n  Run " in out
    assert 'warning: The dataset "average" is the average of the others' in err
    code, out, err = call(table, "--random-orders", 20, "--without", "average", "--quiet")
    assert (code, err) == (0, "")
    assert "12 models × 5 datasets" in out


def test_remarks_are_no_warnings(call: Call, tmp_path: Path) -> None:
    rows = "".join(f"m{i},{0.55 + 0.03 * i},{0.3 + 0.05 * (i * 7 % 11)},{0.1 + 0.07 * i}\n" for i in range(11))
    (tmp_path / "table.csv").write_text("model,BoolQ,b,WER\n" + rows)
    code, _, err = call(tmp_path / "table.csv", "--random-orders", 5, "--best", "b=0.1")
    assert code == 0
    assert "note: Chance is known for 1 dataset" in err
    assert 'warning: The dataset "WER" sounds like an error' in err
    assert "--lower-is-better WER." in err
    assert 'warning: Scores pass the best possible value of "b"' in err


def test_json_is_the_designs_shape_and_what_else_was_found(call: Call, table: Path) -> None:
    code, out, _ = call(table, "--json", "--random-orders", 10, "--quiet")
    found = json.loads(out)
    assert code == 0
    assert list(found)[:6] == ["stalk", "prowl", "pounce", "novelty", "ranks", "warnings"]
    assert {row["verdict"] for row in found["novelty"]} <= {"new", "partly new", "redundant"}
    assert len(found["ranks"]) == 12
    assert any("average of the others" in sentence for sentence in found["warnings"])
    assert {row["similarity"] for row in found["prowl"]} >= {"pearson", "wasserstein", "jensen_shannon", "random"}


def test_into_writes_a_page_and_every_table(call: Call, table: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    code, _, err = call(table, "--into", tmp_path / "deep" / "folder", "--random-orders", 10, "--tables")
    folder = tmp_path / "deep" / "folder"
    assert code == 0
    assert f"analysis written to {folder / 'analysis.html'}" in err
    page = (folder / "analysis.html").read_text("utf-8")
    assert page.count("<svg") >= 4
    assert 'src="http' not in page
    assert {path.name for path in (folder / "paper").iterdir()} == {
        f"simba_table{n}.{ending}" for n in (1, 2, 3, 4, 6) for ending in ("csv", "md", "tex")
    }
    names = {path.stem for path in folder.glob("*.csv")}
    assert names >= {"matrix", "novelty", "ranks", "representative_subsets", "prediction_errors", "coverage_curves"}
    with (folder / "novelty.csv").open() as stream:
        assert {row["dataset"] for row in csv.DictReader(stream)} == {*"abcde", "average"}
    again = call(folder / "matrix.csv", "--random-orders", 10, "--json", "--quiet")
    assert again[0] == 0  # its own matrix is a table it reads, families and all


def test_options_reach_the_analysis(call: Call, table: Path, tmp_path: Path) -> None:
    (tmp_path / "families.csv").write_text("model,family\n" + "".join(f"m{i},f{i // 3}\n" for i in range(12)))
    common = [table, "--json", "--quiet", "--random-orders", 5, "--without", "average"]
    plain = json.loads(call(*common)[1])
    grouped = json.loads(call(*common, "--families", tmp_path / "families.csv")[1])
    assert plain["pounce"] != grouped["pounce"]
    turned = json.loads(call(*common, "--lower-is-better", "a")[1])
    assert turned["stalk"] != plain["stalk"] or turned["prowl"] != plain["prowl"]
    more = json.loads(call(*common, "--regressors", "ridge,mlp12,mean", "--chance", "a=0.1,b=0.2")[1])
    assert [row["regressor"] for row in more["pounce"]] == ["ridge", "mlp12", "mean"]


def test_noise_folds_and_beams_from_the_command_line(call: Call, table: Path, tmp_path: Path) -> None:
    common = [table, "--quiet", "--random-orders", 10, "--without", "average"]
    asked = ["--noise", "0.05,0.1", "--draws", 2, "--folds", 3, "--beam", "1,5,50"]
    found = json.loads(call(*common, *asked, "--json")[1])
    assert [(row["regressor"], row["variance"]) for row in found["noise"][::3]] == [("ridge", 0.05), ("ridge", 0.1)]
    assert {row["folds"] for row in found["folds"]} == {3}
    assert {row["beam"] for row in found["beams"]} == {1, 5, 50}
    other = json.loads(call(*common, *asked, "--json", "--seed", 3)[1])
    assert other["noise"] != found["noise"]
    assert other["pounce"] == found["pounce"]  # the paper's split stays
    drawn = tmp_path / "drawn"
    code, out, err = call(table, "--random-orders", 10, "--noise", 0.05, "--draws", 2, "--tables", "markdown",
                          "--figures", drawn, "--format", "svg")  # fmt: skip
    assert code == 0
    assert out.count("| :-- |") == 6
    written = {path.name for path in drawn.iterdir()}
    assert written >= {"coverage_curves.svg", "noise_curves.svg", "relations_of_datasets.svg"}
    assert f"{len(written)} figures written to {drawn}" in err
    code, out, err = call(table, "--random-orders", 0, "--tables")
    assert "note: simba_table5 is not there: no noise was asked for" in err
    assert "Table 3." in out
    assert "Table 6." not in out


def test_the_verdict_on_one_dataset(call: Call, table: Path) -> None:
    code, out, _ = call(table, "--judge", "average", "--quiet")
    assert code == 0
    assert out.startswith("average: redundant. ")
    assert json.loads(call(table, "--judge", "a", "--json", "--quiet")[1])["dataset"] == "a"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--metric", "P@q"], 1, 'no metric "P@q"'),
        (["--distance", "cosine"], 2, "no distances to choose from"),
        (["--chance", "zz=0.5"], 2, '--chance names "zz"'),
        (["--chance", "a=x"], 2, "is not NAME=VALUE"),
        (["--lower-is-better", "q"], 2, '--lower-is-better names "q"'),
        (["--without", "q"], 2, 'no dataset "q" to leave out'),
        (["--families", "nothing.csv"], 1, "nothing.csv does not exist"),
        (["--judge", "q"], 2, 'no dataset "q" to judge'),
        (["--regressors", "rigde"], 2, 'Did you mean "ridge"'),
        (["--random-orders", "-1"], 2, "random_orders"),
        (["--noise", "-1"], 2, "noise is a finite number of 0 or more, not -1"),
        (["--noise", "nan"], 2, "noise is a finite number of 0 or more, not nan"),
        (["--noise", "much"], 2, "not a list of numbers such as 0.05,0.1"),
        (["--noise", "0.1", "--draws", "0"], 2, "draws must be at least 1"),
        (["--folds", "40"], 2, "choose from 2 to 9 folds, not 40"),
        (["--beam", "0"], 2, "beam must be at least 1"),
        (["--beam", "wide"], 2, "not a list of whole numbers"),
        (["--format", "gif"], 2, 'not "gif"'),
        (["--tables", "word"], 2, "invalid choice"),
    ],
)
def test_wrong_calls_are_one_sentence(words: list[str], code: int, message: str, call: Call, table: Path) -> None:
    found = call(table, *words, "--quiet")
    assert found[0] == code
    assert message in found[2]
    assert found[1] == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("model,a,b,c\nm1,.1,.2,.3\nm2,.2,.3,.4\n", "2 models with scores; this needs at least 3"),
        ("model,a\nm1,.1\nm2,.2\nm3,.3\n", "1 dataset with scores"),
        ("model,a,b\nm1,.1,.2\nm2,.1,x\nm3,.2,.3\n", 'has "x" in the column "b"'),
        ("model,a,b\nm1,,\nm2,,\nm3,,\n", "0 models with scores"),
        ("model,a,a\nm1,.1,.2\nm2,.1,.3\nm3,.2,.3\n", "appears twice"),
        ("model,a,b\nm1,.1,.1\nm2,.1,.1\nm3,.1,.1\n", "No model beats another"),
    ],
)
def test_bad_tables_are_one_sentence(text: str, message: str, call: Call, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    code, out, err = call(path, "--quiet")
    assert (code, out) == (1, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_percentages_among_fractions_are_warned_of_by_name(call: Call, tmp_path: Path) -> None:
    rows = "".join(f"m{i},{0.1 + 0.07 * i},{10 + 7.5 * i},{0.2 + 0.05 * (i * 7 % 11)}\n" for i in range(11))
    (tmp_path / "mixed.csv").write_text("model,a,b,c\n" + rows)
    code, _, err = call(tmp_path / "mixed.csv", "--random-orders", 5)
    assert code == 0
    assert 'warning: The dataset "b" is not on the scale of fractions' in err


# --- the printed results --------------------------------------------------------------------------------------------


def test_the_papers_numbers_check_out(printed: Call) -> None:
    code, out, err = printed("check")
    assert code == 0
    assert "882 of 882     VocSim, Tables 19–25: Avg\n" in out
    assert "57 of 57" in out
    assert "note: VocSim, Table 2" in err
    found = json.loads(printed("check", "--json", "--quiet")[1])
    assert all(entry["reproduced"] == entry["expected"] for entry in found)


def test_list_and_show(printed: Call, tmp_path: Path) -> None:
    assert "vocsim_table1_subsets" in printed("list")[1]
    assert {"sets", "tables"} == set(json.loads(printed("list", "--json")[1]))
    code, out, err = printed("show", "simba_table3")
    assert code == 0
    assert "MANHATTAN          0.985" in out
    assert "SimBA, Table 3." in err
    code, out, _ = printed("show", "vocsim-clustering", "--metric", "NMI", "--quiet")
    assert "64.7" in out
    assert printed("show", "vocsim_table1_subsets", "--out", tmp_path / "t.csv", "--quiet")[0] == 0
    assert (tmp_path / "t.csv").read_text().startswith("subset,domain")
    assert printed("show", "codec-superb", "--out", tmp_path / "c.jsonl", "--quiet")[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "vocsin"], 'Did you mean "vocsim"'),
        (["show", "vocsim", "--metric", "P@11"], 'Did you mean "P@1"'),
        (["show", "simba_table3", "--metric", "P@1"], "leave out --metric"),
        (["show", "simba_table3", "--out", "x.parquet"], "is written as .csv"),
    ],
)
def test_wrong_names_are_one_sentence(words: list[str], message: str, printed: Call) -> None:
    code, _, err = printed(*words)
    assert code == 2
    assert message in err
