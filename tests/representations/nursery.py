"""A process that has loaded everything and forks a child for each run, so that a test can kill many runs quickly.

Reads one JSON list from each line of stdin: the runs to do at once, [{"config": {...}, "kill_after": seconds or null,
"file_limit": bytes or null}]. Answers with one JSON list: what became of each child.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from typing import Any

import numpy as np

from earmark.evaluation import evaluate
from earmark.pipeline import make_config
from earmark.representations import run
from earmark.runs import packs

packs.PACK_ITEMS = 8  # several packs even in a tiny corpus


def load() -> None:
    """Load compiled kernels before the first fork; no thread is left running."""
    values = np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32)
    evaluate(values, list("aabbccaabbcc"), distance=["cosine", "euclidean"], metrics=["P@1", "GSR"], threads=1)


def child(task: dict[str, Any]) -> None:
    try:
        if task.get("file_limit"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (task["file_limit"], task["file_limit"]))
        run(make_config(task["config"]))
        os._exit(0)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(3)


def start(task: dict[str, Any]) -> tuple[int, float]:
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        child(task)
    return pid, time.monotonic()


def outcome(pid: int, started: float, kill_after: float | None) -> dict[str, Any]:
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return {"code": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - started}
        if kill_after is not None and time.monotonic() - started > kill_after:
            os.kill(pid, signal.SIGKILL)
            kill_after = None
        time.sleep(0.002)


def main() -> None:
    load()
    for line in sys.stdin:
        tasks = json.loads(line)
        children = [start(task) for task in tasks]
        answers = [
            outcome(pid, started, task.get("kill_after")) for (pid, started), task in zip(children, tasks, strict=True)
        ]
        print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    main()
