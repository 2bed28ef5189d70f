"""What trackers receive is read back with their own code; a resumed run is one run; their failures harm nothing."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import earmark
from earmark.cli import main
from earmark.exchange import Tracking, track
from earmark.exchange import _trackers as trackers
from earmark.exchange.tracking import metric_name, numbers_of
from earmark.scores import Row, Scores

RUN = "run --corpus synth:tiny --subset SYN-HW --extractor logmel --metrics P@1,hub_ratio --into run --quiet"
VALUE = "P_at_1/synth/SYN-HW/logmel_flatten/cosine"


class Kept(NamedTuple):
    """A tracked run, as its tracker tells it."""

    identity: str
    numbers: dict[str, float]
    parameters: dict[str, Any]
    files: set[str]
    state: str = ""


def read_mlflow(project: str) -> list[Kept]:
    from mlflow import MlflowClient

    client = MlflowClient()
    experiment = client.get_experiment_by_name(project)
    runs = client.search_runs([experiment.experiment_id])
    return [
        Kept(
            run.info.run_id,
            dict(run.data.metrics),
            {**run.data.params, **run.data.tags},
            {file.path for file in client.list_artifacts(run.info.run_id)},
            run.info.status,
        )
        for run in runs
    ]


def transactions(log: bytes) -> Iterator[bytes]:
    """The records of a transaction log of W&B: a head of 7 bytes, then LevelDB's log format in blocks of 32 kB."""
    assert log.startswith(b":W&B")
    at, block, record = 7, 32768, b""
    while at + 7 <= len(log):
        if block - at % block < 7:
            at += block - at % block
            continue
        length, kind = int.from_bytes(log[at + 4 : at + 6], "little"), log[at + 6]  # behind a checksum
        record += log[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


def read_wandb(project: str) -> list[Kept]:
    """Offline runs, by the messages of their transaction logs, which `wandb sync` sends: runs of one id are one there.

    wandb reads these logs with a program of its own that sends them, so the frame around the messages is read here.
    """
    from wandb.proto import wandb_internal_pb2

    kept: dict[str, Kept] = {}
    for log in sorted(Path("wandb").glob("offline-run-*/run-*.wandb")):
        for message in transactions(log.read_bytes()):
            record = wandb_internal_pb2.Record.FromString(message)
            if record.run.run_id and record.run.project == project:
                kept.setdefault(record.run.run_id, Kept(record.run.run_id, {}, {}, set()))
            if not kept:
                continue
            run = kept[list(kept)[-1]]
            for item in (*record.run.config.update, *record.config.update):
                run.parameters[item.key] = json.loads(item.value_json)
            for item in record.history.item:
                name = item.key or "/".join(item.nested_key)
                value = json.loads(item.value_json)
                if isinstance(value, float | int):
                    run.numbers[name] = value
            run.files.update(entry.path for entry in record.request.log_artifact.artifact.manifest.contents)
            run.files.update(entry.path for entry in record.artifact.manifest.contents)
    return list(kept.values())


def read_trackio(project: str) -> list[Kept]:
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    kept = []
    for run in trackio.Api().runs(project):
        numbers: dict[str, float] = {}
        for line in SQLiteStorage.get_logs(project, run.name):
            numbers |= {name: value for name, value in line.items() if isinstance(value, float)}
        files: set[str] = set()
        for stem in ("scores", "report", "run", "config"):
            trackio.init(project=project, name="reader", embed=False, auto_log_cpu=False, auto_log_gpu=False)
            folder = Path(trackio.use_artifact(f"{run.name}-{stem}:latest").download())
            files |= {file.name for file in folder.rglob("*") if file.is_file()}
            trackio.finish()
        kept.append(Kept(run.name, numbers, dict(run.config), files))
    return [run for run in kept if run.identity != "reader"]


READERS: dict[str, Callable[[str], list[Kept]]] = {
    "mlflow": read_mlflow,
    "trackio": read_trackio,
    "wandb": read_wandb,
}


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """An empty store of MLflow, whose tables take seconds to make."""
    if importlib.util.find_spec("mlflow") is None:
        return None
    from mlflow import MlflowClient

    file = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(f"sqlite:///{file}").search_experiments()
    return file


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_store: Path | None) -> Path:
    """A folder in which trackers keep all they have."""
    monkeypatch.chdir(tmp_path)
    if empty_store:
        shutil.copy(empty_store, tmp_path)
    for name in ("MLFLOW_TRACKING_URI", "WANDB_MODE", "TRACKIO_SPACE_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def trackio_folder(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trackio import sqlite_storage, utils

    monkeypatch.setenv("TRACKIO_DIR", str(lab / "trackio"))
    for module in (utils, sqlite_storage):
        if hasattr(module, "TRACKIO_DIR"):
            monkeypatch.setattr(module, "TRACKIO_DIR", lab / "trackio")


@pytest.mark.parametrize("tracker", READERS)
def test_a_run_is_read_back_by_its_tracker(
    tracker: str, lab: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    pytest.importorskip(tracker)
    if tracker == "trackio":
        request.getfixturevalue("trackio_folder")
    command = [*RUN.split(), "--json", "--track", f"{tracker}:birds"]
    assert main(command) == 0
    rows = json.loads(capsys.readouterr().out)  # what trackers print is not among the results
    assert main(command) == 0  # resumed: the same tracked run
    (kept,) = READERS[tracker]("birds")
    (p_at_1,) = [row for row in rows if row["metric"] == "P@1"]
    assert kept.numbers[VALUE] == p_at_1["value"]
    assert (kept.numbers[f"{VALUE}/low"], kept.numbers[f"{VALUE}/high"]) == (p_at_1["low"], p_at_1["high"])
    assert kept.parameters["extractors.0.spec"] == "logmel"
    assert {"scores.csv", "report.html", "config.yaml", "run.json"} <= kept.files
    about = kept.parameters.get("earmark")
    assert (about if tracker == "mlflow" else about["earmark"]) == earmark.__version__
    if tracker == "mlflow":
        assert kept.state == "FINISHED"
    (state,) = json.loads((lab / "run" / "tracked.json").read_text())
    assert (state["run"], state["times"]) == (kept.identity, 2)


def test_other_settings_are_another_tracked_run(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mlflow")
    assert main([*RUN.split(), "--track", "mlflow"]) == 0
    assert main([*RUN.split(), "--distance", "euclidean", "--track", "mlflow"]) == 0
    assert len({run.identity for run in read_mlflow("earmark")}) == 2
    assert main(["export", "run", "--track", "mlflow", "--quiet"]) == 0  # goes on with the second
    assert len(read_mlflow("earmark")) == 2


def test_a_killed_run_goes_on_in_its_tracked_run(lab: Path) -> None:
    pytest.importorskip("mlflow")
    script = (
        "import os\nfrom earmark.exchange import Tracking\n"
        "with Tracking('mlflow', folder='run', parameters={'a': 1}):\n    os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 9
    (begun,) = read_mlflow("earmark")
    assert begun.state == "RUNNING"
    with pytest.raises(ZeroDivisionError), Tracking("mlflow", folder="run", parameters={"a": 1}) as tracking:
        raise ZeroDivisionError
    (failed,) = read_mlflow("earmark")
    assert (failed.identity, failed.state) == (begun.identity, "FAILED")
    assert tracking.identity == begun.identity


def test_a_tracker_that_fails_costs_no_score(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mlflow")
    (lab / "file").write_text("no folder")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{lab}/file/x.db")
    assert main([*RUN.split(), "--track", "mlflow"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if line.startswith("warning: mlflow does not track this (")]
    assert (lab / "run" / "scores.csv").is_file()
    assert main(["export", "run", "--track", "mlflow", "--quiet"]) == 1


def test_a_tracker_that_fails_late_is_told_once(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def start(self, *words: object) -> str:
            return "abc"

        def log(self, *words: object) -> None:
            sys.exit("the disk is full.")

        end = log

    monkeypatch.setattr(trackers, "TRACKERS", {"mlflow": Broken})
    monkeypatch.setattr("earmark.exchange.tracking.TRACKERS", {"mlflow": Broken})
    told: list[str] = []
    track(Scores((Row(metric="P@1", value=0.5),)), "mlflow", warn=told.append)
    assert len(told) == 1
    assert "the disk is full" in told[0]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--track mlfow", 'Did you mean "mlflow"'),
        ("--track mlflow:", "a project belongs behind the colon"),
        ("--track mlflow --shard 1/2", "give it with --merge"),
    ],
)
def test_what_cannot_be_tracked_is_told_before_the_work(
    words: str, part: str, lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN.split(), *words.split()]) == 2
    assert part in capsys.readouterr().err
    assert not (lab / "run").exists()


def test_names_of_metrics_are_allowed_and_apart() -> None:
    pytest.importorskip("mlflow")
    from mlflow.utils.validation import _validate_metric_name

    systems = ["models/vögel v2.npy", "models/v_gel v2.npy", "鳥", "犬"]
    rows = [
        Row(suite="a b", subset="dawn (mean)", system=name, distance="cosine", metric=metric, value=0.5, low=0.1)
        for name in systems
        for metric in ("P@1", "triplet accuracy, %")
    ]
    numbers = numbers_of(rows)
    assert len(numbers) == 2 * len(rows)  # none lost; high is not known
    for name in numbers:
        _validate_metric_name(name)
    assert metric_name(rows[0]).startswith("P_at_1/a_b/dawn_mean/models_v_gel_v2.npy/cosine")


def test_evaluate_and_compare_are_tracked(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mlflow")
    import numpy as np

    values = np.random.default_rng(1).normal(size=(2, 12, 4))
    for name, vectors in zip("ab", values, strict=True):
        np.save(f"{name}.npy", vectors)
    Path("labels.txt").write_text("x\ny\nz\n" * 4)
    common = ["--metrics", "P@1", "--track", "mlflow:files", "--quiet"]
    assert main(["evaluate", "a.npy", "labels.txt", *common]) == 0
    assert main(["compare", "a.npy", "b.npy", "labels.txt", *common]) == 0
    kept = read_mlflow("files")
    assert len(kept) == 2
    assert {name.split("/")[0] for run in kept for name in run.numbers} > {"P_at_1"}
    assert any(run.parameters.get("vectors") == "a.npy" for run in kept)
