"""Long tables and mteb's results are read as the tables they are, and what could be read twice is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from earmark.analysis.sources import open_matrix, open_scores
from earmark.cli import main
from earmark.errors import InputError, UsageError
from earmark.scores import load_scores

LONG = """model,dataset,metric,value,family
wren,dawn,accuracy,0.5,small
wren,dusk,accuracy,75%,small
owl,dawn,accuracy,0.25,large
wren,dawn,ndcg_at_10,0.125,small
owl,dusk,ndcg_at_10,1,large
"""


@pytest.fixture
def long(tmp_path: Path) -> Path:
    path = tmp_path / "long.csv"
    path.write_text(LONG)
    return path


def test_a_long_table_is_a_matrix_of_one_metric(long: Path) -> None:
    source = open_matrix(long, metric="accuracy")
    assert source.matrix.models == ("wren", "owl")
    assert source.matrix.datasets == ("dawn", "dusk")
    np.testing.assert_array_equal(source.matrix.values, [[0.5, 0.75], [0.25, np.nan]])
    other = open_matrix(long, metric="ndcg_at_10")  # Earmark does not know it, and need not
    np.testing.assert_array_equal(other.matrix.values, [[0.125, np.nan], [np.nan, 1.0]])


def test_the_metric_of_a_long_table_is_chosen(long: Path) -> None:
    with pytest.raises(UsageError, match=r"2 metrics \(accuracy, ndcg_at_10\); choose one with --metric"):
        open_matrix(long)
    with pytest.raises(UsageError, match=r'no metric "acuracy".*accuracy'):
        open_matrix(long, metric="acuracy")


def test_a_long_table_is_a_score_table(long: Path) -> None:
    scores, families = open_scores(long, "accuracy")
    assert [(row.system, row.subset, row.value) for row in scores] == [
        ("wren", "dawn", 0.5), ("wren", "dusk", 0.75), ("owl", "dawn", 0.25),
    ]  # fmt: skip
    assert families == {"wren": "small", "owl": "large"}
    with pytest.raises(InputError, match="There is no metric"):
        open_scores(long)  # ndcg_at_10 has no direction or range here


def test_all_metrics_of_a_long_table_come(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("system,task,metric,score\nwren,dawn,P@1,0.5\nwren,dawn,GSR,0.25\n")
    assert main(["export", str(path), "--as", "scores", "--into", str(tmp_path / "scores.csv"), "--quiet"]) == 0
    rows = load_scores(tmp_path / "scores.csv")
    assert [(row.metric, row.value) for row in rows] == [("P@1", 0.5), ("GSR", 0.25)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model,dataset,value\nwren,dawn,1\nwren,dawn,1\n", 'two values of "wren" on "dawn"'),
        ("model,dataset,value,score\nwren,dawn,1,2\n", '"value" and "score" could each hold the value'),
        ("model,system,dataset,value\nwren,a,dawn,1\n", '"model" and "system" could each hold the model'),
        ("model,task,score\nwren,1,2\nowl,3,4\n", '"task" has only numbers'),
        ("model,dataset,value\nwren,dawn,loud\n", "is not a number"),
    ],
)
def test_what_could_mean_two_things_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        open_matrix(path)


# --- mteb -----------------------------------------------------------------------------------------------------------


def _save(path: Path, task: str, *subsets: dict[str, object], split: str = "test") -> None:
    """A file as mteb itself writes it."""
    results = pytest.importorskip("mteb").results
    entries = [
        {"hf_subset": f"s{number}", "languages": ["zxx-Zxxx"], **scores} for number, scores in enumerate(subsets)
    ]
    result = results.TaskResult(
        dataset_revision="1", task_name=task, mteb_version="2.26.24", scores={split: entries}, evaluation_time=1.0
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    result.to_disk(path)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    _save(folder / "me__wren" / "r1" / "Dawn.json", "Dawn", {"main_score": 0.5, "accuracy": 0.25},
          {"main_score": 0.75, "accuracy": 0.5})  # fmt: skip
    _save(folder / "me__wren" / "r1" / "Dusk.json", "Dusk", {"main_score": 0.125, "lists": [1, 2]})
    _save(folder / "owl" / "r7" / "Dawn.json", "Dawn", {"main_score": 1.0, "accuracy": 0.75})
    (folder / "owl" / "r7" / "model_meta.json").write_text(json.dumps({"name": "you/owl", "revision": "r7"}))
    return folder


def test_main_scores_of_mteb_are_a_matrix(results: Path) -> None:
    source = open_matrix(results)
    assert (source.matrix.models, source.matrix.datasets) == (("me/wren", "you/owl"), ("Dawn", "Dusk"))
    np.testing.assert_array_equal(source.matrix.values, [[0.625, 0.125], [1.0, np.nan]])
    mteb = pytest.importorskip("mteb")
    own = mteb.results.TaskResult.from_disk(results / "me__wren" / "r1" / "Dawn.json")
    assert own.get_score() == 0.625  # mteb takes the same mean


def test_other_scores_of_mteb_are_named(results: Path, tmp_path: Path) -> None:
    into = tmp_path / "scores.csv"
    assert main(["export", str(results), "--as", "scores", "--metrics", "accuracy", "--into", str(into)]) == 0
    assert [(row.system, row.subset, row.value) for row in load_scores(into)] == [
        ("me/wren", "Dawn", 0.375), ("you/owl", "Dawn", 0.75),
    ]  # fmt: skip
    with pytest.raises(UsageError, match='no score "recall"; mteb names them accuracy, main_score'):
        open_matrix(results, metric="recall")


def test_one_file_of_mteb_says_whose_it_is(results: Path) -> None:
    assert open_matrix(results / "owl" / "r7" / "Dawn.json").matrix.models == ("you/owl",)
    with pytest.raises(InputError, match="does not say which model"):
        open_matrix(results / "me__wren" / "r1" / "Dawn.json")


def test_two_revisions_of_a_model_are_refused(results: Path) -> None:
    _save(results / "me__wren" / "r2" / "Dawn.json", "Dawn", {"main_score": 0.5})
    with pytest.raises(InputError, match="keep one revision"):
        open_matrix(results)


def test_a_saved_model_result_is_read(tmp_path: Path, results: Path) -> None:
    mteb = pytest.importorskip("mteb")
    task = mteb.results.TaskResult.from_disk(results / "owl" / "r7" / "Dawn.json")
    model = mteb.results.ModelResult(model_name="you/owl", model_revision="r7", task_results=[task])
    (tmp_path / "owl.json").write_text(model.model_dump_json())
    np.testing.assert_array_equal(open_matrix(tmp_path / "owl.json").matrix.values, [[1.0]])


def test_what_earmark_exports_for_mteb_comes_back(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("subset,system,metric,value\ndawn,wren,P@1,0.8125\ndusk,wren,P@1,0.5\n")
    assert main(["export", str(tmp_path / "scores.csv"), "--as", "mteb", "--into", str(tmp_path / "m")]) == 0
    np.testing.assert_array_equal(open_matrix(tmp_path / "m").matrix.values, [[0.8125, 0.5]])
