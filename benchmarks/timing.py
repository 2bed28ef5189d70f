"""How the benchmarks take time: the fastest of a few runs."""

from __future__ import annotations

import time
from collections.abc import Callable

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
