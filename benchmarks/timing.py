"""How the benchmarks take time: the fastest of a few runs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

Work = Callable[[], object]


def best(work: Work, repeats: int = 3) -> float:
    """Seconds of the fastest of a few runs."""
    return fastest({"": work}, repeats, warm=False)[""]


def fastest(
    works: dict[str, Work], rounds: int, clock: Callable[[], float] = time.perf_counter, *, warm: bool = True
) -> dict[str, float]:
    """Seconds of each work's fastest run. They take turns, so that a busy moment hits all; the first round warms up."""
    seconds = dict.fromkeys(works, float("inf"))
    for number in range(rounds + warm):
        for name, work in works.items():
            started = clock()
            work()
            if number or not warm:
                seconds[name] = min(seconds[name], clock() - started)
    return seconds


_WATCHED = """
import json, sys, threading, time, psutil
sys.path.insert(0, {folder!r})
{prepare}
held = psutil.Process().memory_info
seen, stop = [held().rss], threading.Event()
def watch():
    while not stop.is_set():
        seen.append(held().rss); time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
{work}
stop.set(); print(json.dumps((max(seen) - seen[0]) / 2**20))
"""


def peak_growth(prepare: str, work: str) -> float:
    """Growth of the resident memory of a fresh process while it does `work`, sampled every 5 ms, in MB."""
    script = _WATCHED.format(folder=str(Path(__file__).parent), prepare=prepare, work=work)
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout.splitlines()[-1]))
