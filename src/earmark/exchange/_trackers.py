"""The three trackers behind one face: a run is started or continued, given numbers and files, and ended.

Each keeps what it is given on this machine unless its own settings name a server:

    mlflow   mlflow.db and mlartifacts in the current folder, or MLFLOW_TRACKING_URI
    wandb    folders in ./wandb, which `wandb sync` sends; WANDB_MODE=online sends at once
    trackio  its SQLite files (TRACKIO_DIR), or TRACKIO_SPACE_ID
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from earmark.errors import require

Numbers = Mapping[str, float]
Texts = Mapping[str, str]


class Tracker(Protocol):
    """A connection to one tracked run."""

    def start(self, project: str, name: str, identity: str, parameters: Texts, tags: Texts) -> str:
        """Continue the run `identity`, or make a new one where it is empty or gone; the identity of the run."""

    def log(self, numbers: Numbers, table: Sequence[Mapping[str, Any]], files: Sequence[Path], step: int) -> None:
        """Add numbers, the rows that they come from, and files."""

    def end(self, finished: bool) -> None:
        """Close the run, as finished or as failed."""


class Mlflow:
    """MLflow, by its client alone: the active run of a program that uses MLflow itself stays as it is."""

    def __init__(self) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        for noisy in ("mlflow", "alembic"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        self._module = require("mlflow", "Runs in MLflow", "mlflow")
        self._entities = require("mlflow.entities", "Runs in MLflow", "mlflow")
        self._run = ""

    def start(self, project: str, name: str, identity: str, parameters: Texts, tags: Texts) -> str:
        self._client = client = self._module.MlflowClient()
        known: Mapping[str, str] = {}
        if identity:
            try:
                known = client.get_run(identity).data.params
                client.update_run(identity, status="RUNNING")
            except self._module.exceptions.MlflowException:  # of another store, or deleted there
                identity = ""
        if not identity:
            experiment = client.get_experiment_by_name(project)
            place = experiment.experiment_id if experiment else client.create_experiment(project)
            identity = str(client.create_run(place, run_name=name).info.run_id)
        self._run = identity
        # The parameters of a run stay: MLflow refuses another value.
        new = [self._entities.Param(key, text[:6000]) for key, text in parameters.items() if key not in known]
        for some in _batches(new, 100):
            client.log_batch(identity, params=some)
        for key, text in tags.items():
            client.set_tag(identity, key, text[:5000])
        return identity

    def log(self, numbers: Numbers, table: Sequence[Mapping[str, Any]], files: Sequence[Path], step: int) -> None:
        now = int(time.time() * 1000)
        metrics = [self._entities.Metric(name, value, now, step) for name, value in numbers.items()]
        for some in _batches(metrics, 1000):
            self._client.log_batch(self._run, metrics=some)
        for file in files:
            self._client.log_artifact(self._run, str(file))

    def end(self, finished: bool) -> None:
        self._client.set_terminated(self._run, "FINISHED" if finished else "FAILED")


class Wandb:
    """Weights & Biases, offline unless WANDB_MODE says otherwise."""

    def __init__(self) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        self._module = require("wandb", "Runs in Weights & Biases", "wandb")

    def start(self, project: str, name: str, identity: str, parameters: Texts, tags: Texts) -> str:
        settings = self._module.Settings(silent=True, console="off", x_disable_stats=True, save_code=False)
        self._run = self._module.init(
            project=project, name=name, id=identity or uuid.uuid4().hex[:12], resume="allow",
            mode=os.environ.get("WANDB_MODE", "offline"), job_type="evaluation", settings=settings,
            config={**parameters, "earmark": dict(tags)}, reinit="create_new",
        )  # fmt: skip
        self._run.config.update({**parameters, "earmark": dict(tags)}, allow_val_change=True)
        return str(self._run.id)

    def log(self, numbers: Numbers, table: Sequence[Mapping[str, Any]], files: Sequence[Path], step: int) -> None:
        columns = list(table[0]) if table else []
        rows = [[row[column] for column in columns] for row in table]
        # One step: the numbers of a resumed run stand behind those of before.
        self._run.log({**numbers, "scores": self._module.Table(columns=columns, data=rows)})
        if files:
            artifact = self._module.Artifact(f"earmark-{self._run.id}", type="evaluation")
            for file in files:
                artifact.add_file(str(file), name=file.name)
            self._run.log_artifact(artifact)

    def end(self, finished: bool) -> None:
        self._run.finish(exit_code=0 if finished else 1)


class Trackio:
    """Trackio, on this machine unless TRACKIO_SPACE_ID or TRACKIO_SERVER_URL says otherwise."""

    def __init__(self) -> None:
        self._module = require("trackio", "Runs in Trackio", "trackio")

    def start(self, project: str, name: str, identity: str, parameters: Texts, tags: Texts) -> str:
        # A run is continued by its name, so the name is one of its own.
        identity = identity or f"{name}-{uuid.uuid4().hex[:8]}"
        self._name = identity
        self._run = self._module.init(
            project=project, name=identity, resume="allow", config={**parameters, "earmark": dict(tags)}, embed=False,
            auto_log_cpu=False, auto_log_gpu=False,
        )  # fmt: skip
        return identity

    def log(self, numbers: Numbers, table: Sequence[Mapping[str, Any]], files: Sequence[Path], step: int) -> None:
        self._run.log(dict(numbers), step=step)
        for file in files:
            self._run.log_artifact(str(file), name=f"{self._name}-{file.stem}", type="evaluation")

    def end(self, finished: bool) -> None:
        self._module.finish()


TRACKERS: Mapping[str, type[Mlflow | Wandb | Trackio]] = {"mlflow": Mlflow, "trackio": Trackio, "wandb": Wandb}


def _batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some
