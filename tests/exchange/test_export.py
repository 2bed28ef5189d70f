"""What other places receive is read by their own code, and says what was measured."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from earmark.cli import main
from earmark.scores import Row, Scores, load_scores

huggingface_hub = pytest.importorskip("huggingface_hub")
Export = Callable[..., tuple[int, str, str]]


@pytest.fixture
def export(capsys: pytest.CaptureFixture[str]) -> Export:
    def run(*words: object) -> tuple[int, str, str]:
        code = main(["export", *map(str, words)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def _row(system: str, subset: str, metric: str, value: float | None, **more: object) -> Row:
    return Row(suite="nest", subset=subset, system=system, distance="cosine", metric=metric, value=value, **more)  # type: ignore[arg-type]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    interval = {"low": 0.75, "high": 0.875, "n": 40, "interval": "jackknife", "unit": "group", "units": 8}
    rows = [
        _row("wren", "dawn", "P@1", 0.8125, **interval, baseline=0.25, p_value=0.01),
        _row("wren", "dawn", "hub_ratio", 2.5),
        _row("wren", "dusk", "P@1", 0.5),
        _row("wren", "dusk", "GSR", None, status="failed", reason="too few clips"),
        _row("wren", "(mean)", "P@1", 0.65, aggregate="mean"),
        _row("owl", "dawn", "P@1", 0.25),
    ]
    path = tmp_path / "scores.csv"
    Scores(tuple(rows)).write(path)
    return path


CARD = "---\r\n# mine\r\nlicense: mit\r\ntags:\r\n- birds\r\n---\r\n# Wren\r\n\r\nText --- with lines.\r\n"


def test_the_hub_reads_eval_results(table: Path, tmp_path: Path, export: Export) -> None:
    code, _, err = export(table, "--as", "hf", "--systems", "wren", "--dataset", "me/nest", "--into", tmp_path / "repo")
    assert code == 0, err
    assert "2 rows left behind" in err
    data = yaml.safe_load((tmp_path / "repo" / ".eval_results" / "me_nest.yaml").read_text())
    dawn, dusk = huggingface_hub.parse_eval_result_entries(data)
    assert (dawn.dataset_id, dawn.task_id, dawn.value) == ("me/nest", "dawn", 81.25)  # percent
    assert "95 % interval 75 to 87.5" in dawn.notes
    assert (dusk.task_id, dusk.value) == ("dusk", 50.0)


def test_a_model_card_keeps_all_but_its_results(table: Path, tmp_path: Path, export: Export) -> None:
    card = tmp_path / "README.md"
    card.write_bytes(CARD.encode())
    words = (table, "--as", "hf", "--systems", "wren", "--into", tmp_path, "--card", card)
    assert export(*words)[0] == 0
    text = card.read_bytes().decode()
    assert text.startswith("---\r\n# mine\r\nlicense: mit\r\ntags:\r\n- birds\r\nmodel-index:\r\n- name: wren\r\n")
    assert text.endswith("---\r\n# Wren\r\n\r\nText --- with lines.\r\n")
    data = huggingface_hub.ModelCard.load(card).data
    values = {(result.dataset_name, result.metric_type): result for result in data.eval_results}
    assert values["dawn", "P@1"].metric_value == 81.25
    assert values["dawn", "P@1"].metric_args == {
        "distance": "cosine",
        "low": 75.0,
        "high": 87.5,
        "level": 0.95,
        "n": 40,
        "baseline": 25.0,
        "p_value": 0.01,
    }
    assert values["dawn", "hub_ratio"].metric_value == 2.5
    assert len(values) == 3
    assert export(*words)[0] == 0
    assert card.read_bytes().decode() == text  # again: nothing is doubled


def test_earlier_results_that_an_export_has_no_more_are_named(table: Path, tmp_path: Path, export: Export) -> None:
    card = tmp_path / "README.md"
    words = (table, "--as", "hf", "--systems", "wren", "--into", tmp_path, "--card", card)
    assert "earlier result" not in export(*words)[2]
    assert (
        "README.md keeps 1 earlier result of Earmark that this export has not (hub_ratio, cosine on dawn)"
        in (export(*words, "--metrics", "P@1")[2])
    )


def test_results_of_others_stay_in_the_card(table: Path, tmp_path: Path, export: Export) -> None:
    other = huggingface_hub.EvalResult("asr", "speech", "Speech", "wer", 9.5)
    facts = huggingface_hub.ModelCardData(model_name="Bird", eval_results=[other], license="mit")
    card = tmp_path / "README.md"
    card.write_text(f"---\n{facts.to_yaml()}\n---\nText\n")
    assert export(table, "--as", "hf", "--systems", "owl", "--into", tmp_path, "--card", card)[0] == 0
    data = huggingface_hub.ModelCard.load(card).data
    assert data.model_name == "Bird"
    assert data.license == "mit"
    assert [(result.metric_type, result.metric_value) for result in data.eval_results] == [("wer", 9.5), ("P@1", 25.0)]


def test_a_repository_is_of_one_model(table: Path, tmp_path: Path, export: Export) -> None:
    code, _, err = export(table, "--as", "hf", "--dataset", "me/nest", "--into", tmp_path)
    assert (code, "choose one with --systems, of wren, owl" in err) == (2, True)
    code, _, err = export(table, "--as", "hf", "--systems", "owl", "--into", tmp_path)
    assert (code, "--dataset" in err) == (2, True)


def test_mteb_reads_its_results(table: Path, tmp_path: Path, export: Export) -> None:
    pytest.importorskip("mteb")
    from mteb.cache import ResultCache
    from mteb.results import TaskResult

    into = tmp_path / "results"
    code, out, err = export(table, "--as", "mteb", "--rename", "wren=me/wren", "--into", into)
    assert code == 0, err
    assert len(out.split()) == 3
    folder = into / "me__wren" / "no_revision_available"
    dawn, dusk = (TaskResult.from_disk(folder / f"{name}.json") for name in ("dawn", "dusk"))
    assert (dawn.task_name, dawn.get_score(), dusk.get_score()) == ("dawn", 0.8125, 0.5)
    (scores,) = dawn.scores["test"]
    assert (scores["cosine_P@1_low"], scores["cosine_P@1_high"], scores["cosine_hub_ratio"]) == (0.75, 0.875, 2.5)
    loaded = ResultCache(tmp_path).load_results(include_remote=False)
    assert {result.model_name: sorted(result.task_names) for result in loaded.model_results} == {
        "me/wren": ["dawn", "dusk"],
        "owl": ["dawn"],
    }


def test_what_mteb_would_rank_the_wrong_way_is_refused(table: Path, tmp_path: Path, export: Export) -> None:
    code, _, err = export(table, "--as", "mteb", "--metrics", "hub_ratio", "--into", tmp_path / "results")
    assert (code, "more is better" in err) == (2, True)
    assert not (tmp_path / "results").exists()


def test_two_distances_are_not_one_score(tmp_path: Path, export: Export) -> None:
    rows = [Row(suite="nest", subset="dawn", system="wren", distance=name, metric="P@1", value=0.5)
            for name in ("cosine", "euclidean")]  # fmt: skip
    Scores(tuple(rows)).write(tmp_path / "scores.csv")
    words = (tmp_path / "scores.csv", "--as", "mteb", "--into", tmp_path / "results")
    code, _, err = export(*words)
    assert (code, "choose one with --distance" in err) == (2, True)
    assert export(*words, "--distance", "euclidean")[0] == 0


def _validated(file: Path, folder: Path) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """What the database's own checks say of a file: errors and warnings."""
    from every_eval_ever.validate import validate_aggregate

    path = file.relative_to(folder).as_posix()
    report = validate_aggregate(file, repo_path=path, available_files={path}, run_semantic_checks=True)
    return report.errors, report.warnings


def test_every_eval_ever_has_intervals(table: Path, tmp_path: Path, export: Export) -> None:
    pytest.importorskip("every_eval_ever")
    words = (table, "--as", "eee", "--rename", "wren=me/wren", "--into", tmp_path / "data")
    code, _, err = export(*words)
    assert (code, "--organisation" in err) == (2, True)
    code, out, err = export(*words, "--organisation", "Nest", "--dataset", "me/nest")
    assert code == 0, err
    assert "owl states none" in err  # no developer
    files = [Path(line) for line in out.split()]
    assert _validated(files[0], tmp_path) == ([], [])
    errors, warnings = _validated(files[1], tmp_path)
    assert (errors, "developer is required" in warnings[0]["msg"]) == ([], True)
    assert files[0].parent == tmp_path / "data" / "nest" / "me" / "wren"
    dawn = json.loads(files[0].read_text())["evaluation_results"][0]
    assert dawn["score_details"]["score"] == 0.8125
    assert dawn["metric_config"]["max_score"] == 1
    assert dawn["score_details"]["uncertainty"] == {
        "confidence_interval": {
            "lower": 0.75,
            "upper": 0.875,
            "confidence_level": 0.95,
            "method": "jackknife over group",
        },
        "num_samples": 40,
    }
    assert dawn["source_data"]["hf_repo"] == "me/nest"
    ranges = {
        result["metric_config"]["metric_name"]: result["metric_config"]["max_score"]
        for result in json.loads(files[0].read_text())["evaluation_results"]
    }
    assert ranges == {"P@1": 1, "hub_ratio": "Infinity"}
    assert export(*words, "--organisation", "Nest", "--dataset", "me/nest")[1] == out  # the same files again


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (("score_details", "uncertainty", "confidence_interval", "lower"), "low"),
        (("score_details", "score"), 1.5),
        (("metric_config", "lower_is_better"), None),
    ],
)
def test_a_broken_record_would_be_noticed(
    table: Path, tmp_path: Path, export: Export, part: tuple[str, ...], value: object
) -> None:
    pytest.importorskip("every_eval_ever")
    words = (table, "--as", "eee", "--rename", "wren=me/wren", "--organisation", "Nest", "--into", tmp_path / "data")
    file = Path(export(*words, "--systems", "wren")[1].split()[0])
    record = json.loads(file.read_text())
    inside = record["evaluation_results"][0]
    for name in part[:-1]:
        inside = inside[name]
    inside[part[-1]] = value
    file.write_text(json.dumps(record))
    assert _validated(file, tmp_path)[0]


def test_croissant_is_read_by_its_library(tmp_path: Path, export: Export) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    folder = tmp_path / "sounds"
    assert main(["corpus", "export", "synth:tiny", "--into", str(folder), "--sample", "2x3", "--quiet"]) == 0
    code, _, err = export(folder, "--as", "croissant", "--into", folder)
    assert code == 0, err
    dataset = mlcroissant.Dataset(jsonld=folder / "croissant.json")
    assert not dataset.metadata.issues.errors
    assert dataset.metadata.license == ["CC0-1.0"]
    with (folder / "croissant-clips.csv").open(newline="") as file:
        clips = list(csv.DictReader(file))
    records = list(dataset.records("clips"))
    assert [record["clips/label"].decode() for record in records] == [clip["label"] for clip in clips]
    assert {record["clips/subset"].decode() for record in records} == {clip["subset"] for clip in clips}
    hashes = {file.content_url: file.sha256 for file in dataset.metadata.file_objects}
    assert {clip["path"] for clip in clips} == set(hashes) - {"croissant-clips.csv"}
    path = clips[0]["path"]
    assert hashes[path] == hashlib.sha256((folder / path).read_bytes()).hexdigest()


def test_croissant_wants_files_beside_it(tmp_path: Path, export: Export) -> None:
    code, _, err = export("synth:tiny", "--as", "croissant", "--into", tmp_path)
    assert (code, "earmark corpus export" in err) == (2, True)


def test_a_score_table_comes_out_as_it_was(table: Path, tmp_path: Path, export: Export) -> None:
    target = tmp_path / "measured.json"
    assert export(table, "--as", "scores", "--into", target)[0] == 0
    kept = [row for row in load_scores(table) if row.status == "ok" and not row.aggregate]
    assert list(load_scores(target)) == kept
