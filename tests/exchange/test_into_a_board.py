"""Results of others on a board: a plain table and mteb's own files, through `earmark export` and `earmark submit`."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the board needs the extra board")

from tests.board.serving import Serving, serving

from earmark.cli import main

VALUES = {"lab/wren": {"dawn": 0.81, "dusk": 0.62}, "lab/owl": {"dawn": 0.35, "dusk": 0.9}}


def plain_table(folder: Path) -> Path:
    lines = [f"{model},{name},accuracy,{value}" for model, of in VALUES.items() for name, value in of.items()]
    file = folder / "long.csv"
    file.write_text("\n".join(["model,dataset,metric,value", *lines]) + "\n", encoding="utf-8")
    return file


def mteb_folder(folder: Path) -> Path:
    """Files as mteb saves them: MODEL/REVISION/TASK.json."""
    for model, of in VALUES.items():
        own = folder / "results" / model.replace("/", "__") / "main"
        own.mkdir(parents=True)
        meta = {"name": model, "revision": "main"}
        (own / "model_meta.json").write_text(json.dumps(meta), encoding="utf-8")
        for task, value in of.items():
            scores = {"accuracy": value, "main_score": value, "hf_subset": "default", "languages": ["zxx-Zxxx"]}
            result = {
                "task_name": task, "mteb_version": "2.0.0", "dataset_revision": "1", "evaluation_time": 1.0,
                "kg_co2_emissions": None, "scores": {"test": [scores]},
            }  # fmt: skip
            (own / f"{task}.json").write_text(json.dumps(result), encoding="utf-8")
    return folder / "results"


def answer(board: Serving, path: str, body: bytes | None = None) -> Any:
    headers = {"Authorization": f"Bearer {board.token()}", "Content-Type": "application/json"}
    request = urllib.request.Request(board.address.rstrip("/") + path, body, headers)
    with urllib.request.urlopen(request) as stream:
        return json.load(stream)


@pytest.mark.parametrize("source", [plain_table, mteb_folder])
def test_results_of_others_are_ranked(source: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "mine.csv"
    given = ["--metrics", "accuracy"] if source is mteb_folder else []
    words = ["export", str(source(tmp_path)), "--as", "scores", "--into", str(table), *given, "--quiet"]
    assert main(words) == 0, capsys.readouterr().err
    with serving(tmp_path / "data", "--empty") as board:
        sending = ["submit", str(table), "--board", "birds", "--to", board.address, "--token", board.token(), "--yes"]
        capsys.readouterr()
        assert main([*sending, "--quiet"]) == 0, capsys.readouterr().err
        number = capsys.readouterr().out.split()[0].rpartition("/")[2]
        answer(board, f"/v1/submissions/{number}/decision", b'{"accept": true}')
        rows = answer(board, "/v1/boards/birds/scores")["items"]
        lines = answer(board, "/v1/boards/birds/table?metric=accuracy")
    shown = {(row["system"], row["subset"]): row["value"] for row in rows if row["metric"] == "accuracy"}
    assert shown == {(model, name): value for model, of in VALUES.items() for name, value in of.items()}
    ranks = {line["system"]: line["rank"] for line in lines["items"]}
    assert ranks == {"lab/wren": 1, "lab/owl": 2}
