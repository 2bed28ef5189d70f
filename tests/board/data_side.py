"""The side of the recordings, for tests: a synthetic blind set, its host's file, and workers that can be killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path

import yaml
from tests.blind.examples import write_recordings

from earmark.blind.ledger import Ledger
from earmark.blind.policy import Policy, SetTerms
from earmark.blind.sets import read_sets
from earmark.blind.worker import Worker
from earmark.submissions.client import BoardClient

ALLOWED = frozenset({"not-root"})
"""Tests may run as root; every other part of the sandbox must be there."""
STEPS = {"P@1": "0.05", "P@5": "0.05", "GSR": "0.05"}
CLIPS, CLASSES = 6, 4


def write_sets(folder: Path, board: str = "field", names: tuple[str, ...] = ("HX1",), **policy: object) -> Path:
    """Recordings of four kinds of tones, and the file of a host who releases at once."""
    sets = {name: {"corpus": f"recordings/{name}", "title": f"Synthetic {name}"} for name in names}
    for name in names:
        write_recordings(folder / "recordings" / name, CLASSES, CLIPS)
    terms = {name: SetTerms(name, CLIPS * CLASSES, CLASSES, STEPS) for name in names}
    rules = {"sign_off": "after", "slot_minutes": 1, "quota": 1000, "entries": 1000, "entries_overall": 1000}
    rules |= {"releases_per_day": 1000, "least_clips": 20, "least_classes": 2, "clips_per_step": 1}
    made = Policy(sets=terms, **{**rules, **policy})  # type: ignore[arg-type]
    file = folder / "sets.yaml"
    file.write_text(yaml.safe_dump({"board": board, "sets": sets, "policy": made.plain}), "utf-8")
    return file


class Eager(Worker):
    """A worker that does not wait for a slot: what it sends, it sends as of two minutes later."""

    def send_due(self) -> int:
        now, self.clock = self.clock, lambda: now() + timedelta(minutes=2)
        try:
            return super().send_due()
        finally:
            self.clock = now


def make_worker(sets: Path, address: str, token: str, ledger: str, folder: Path) -> Worker:
    return Eager(read_sets(sets), BoardClient(address, token, patience=60), Ledger(ledger), folder, ALLOWED)


def start_worker(sets: Path, address: str, token: str, ledger: str, folder: Path) -> BaseProcess:
    """A worker in a process of its own, forked: everything is imported already, so that a kill meets the work."""

    def work() -> None:
        make_worker(sets, address, token, ledger, folder).run(0.1)

    process = multiprocessing.get_context("fork").Process(target=work, daemon=True)
    process.start()
    return process


def kill(process: BaseProcess) -> None:
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
