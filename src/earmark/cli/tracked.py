"""The flag --track: a command's scores in an experiment tracker."""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from earmark.cli import options
from earmark.errors import UsageError
from earmark.exchange import Tracking
from earmark.exchange._trackers import TRACKERS
from earmark.exchange.tracking import Target
from earmark.runs.config import RunSettings
from earmark.runs.folder import WORKING, measured_settings

_OF_THE_COMMAND = frozenset("action command html json out per_point quiet run table track unused".split())
"""Flags that say what is done with the scores, not how they are made."""


def add_track(parser: argparse._ActionsContainer) -> None:
    names = ", ".join(TRACKERS)
    options.add(
        parser, ("--track", "TRACKER[:PROJECT]", f"parameters, scores and report also to a tracker: {names}")
    )  # fmt: skip


def track_run(args: argparse.Namespace, config: RunSettings) -> AbstractContextManager[Tracking | None]:
    """A tracked run that lasts as long as the run of a config; continued where it lies in the same folder."""
    if args.track is None:
        return nullcontext()
    Target.parse(args.track)
    if args.shard is not None or args.slurm is not None:
        raise UsageError("--track is for the command that has the scores: give it with --merge, after all shards.")
    portable = config.portable()
    settings = {name: value for name, value in portable.model_dump(mode="json").items() if name not in WORKING}
    return Tracking(
        args.track, folder=config.into, parameters=settings, measured=measured_settings(portable.to_yaml())
    )  # fmt: skip


def track_command(args: argparse.Namespace, name: str) -> AbstractContextManager[Tracking | None]:
    """A tracked run for a command that has no folder: its parameters are the flags that were given."""
    if args.track is None:
        return nullcontext()
    given = {flag: value for flag, value in vars(args).items() if flag not in _OF_THE_COMMAND and value is not False}
    return Tracking(args.track, name=name, parameters=given)


def tell(args: argparse.Namespace, tracking: Tracking | None) -> None:
    """Say where the scores can be looked at."""
    if tracking is None or args.quiet or not tracking.working:
        return
    tracker, project = tracking.target
    looks = {
        "mlflow": "`mlflow ui` shows it", "wandb": "`wandb sync` sends it",
        "trackio": f"`trackio show --project {project}` shows it",
    }  # fmt: skip
    print(f"tracked as {tracker} run {tracking.identity} of {project}; {looks[tracker]}", file=sys.stderr)


def source_parameters(source: str, folder: Path | None) -> dict[str, Any]:
    """Parameters of scores that are there already: the config of their run, or where they come from."""
    from earmark.plain_yaml import load_yaml

    file = None if folder is None else folder / "config.yaml"
    if file is None or not file.is_file():
        return {"source": source}
    settings: dict[str, Any] = load_yaml(file.read_text("utf-8"), str(file))
    return {name: value for name, value in settings.items() if name not in WORKING}
