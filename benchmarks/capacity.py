"""What each stage costs and how that grows: the figures of docs/capacity.md.

    python benchmarks/capacity.py                          every part, some minutes
    python benchmarks/capacity.py growth --device cuda     stages at a base size, and with each size doubled
    python benchmarks/capacity.py grid --device cuda       the 19 shapes of VocSim, all metrics, 1000 permutations
    python benchmarks/capacity.py clips                    files to vectors, clip by clip

Vectors are synthetic. Each figure is the best of two, after a first call that compiles. A stage's time is what it adds
to a plain evaluation of the same vectors in the same round. On a CPU seconds are those of all its cores together, so
that a machine that is busy with other work gives the same; on a GPU they are those of the clock.
"""

from __future__ import annotations

import argparse
import datetime
import math
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import soundfile
from geometry import clips
from timing import fastest

from earmark import evaluate
from earmark.corpora.vocsim import PUBLISHED
from earmark.metrics.catalogue import DEFAULT
from earmark.representations import run
from earmark.workers import thread_count

BASE = {"clips": 8000, "dimensions": 128, "classes": 100, "permutations": 500}
METRICS = list(DEFAULT)
THREE = ["P@1", "P@5", "GSR"]
PAIRS = 330
"""Representations times distances in the paper's tables, about."""


def clock_of(device: str) -> Callable[[], float]:
    return time.process_time if device == "cpu" else time.perf_counter


def stage_seconds(size: dict[str, int], distance: str, device: str) -> dict[str, float]:
    """Seconds of each stage: the sweep, and what intervals and permutations add to it."""
    vectors, labels = clips(size["clips"], size["dimensions"], size["classes"])

    def work(options: dict[str, object], metrics: list[str]) -> object:
        given = {"permutations": size["permutations"], **options}
        return evaluate(vectors, labels, distance=distance, metrics=metrics, device=device, progress=False, **given)

    plain = {"intervals": "none", "permutations": 0}
    works = {
        "sweep": lambda: work(plain, METRICS),
        "with intervals": lambda: work({"permutations": 0}, METRICS),
        "three": lambda: work(plain, THREE),
        "three with a null": lambda: work({"intervals": "none"}, THREE),
    }
    seconds = fastest(works, 2, clock_of(device))
    return {
        "sweep": seconds["sweep"],
        "intervals": seconds["with intervals"] - seconds["sweep"],
        "null of P@k and GSR": seconds["three with a null"] - seconds["three"],
    }


def growth(device: str, scale: float) -> None:
    base = {name: max(2, int(number * scale)) if name == "clips" else number for name, number in BASE.items()}
    print(
        f"\n| {', '.join(f'{v:,} {k}' for k, v in base.items())} | seconds | twice the {' | twice the '.join(base)} |"
    )
    print("|---" * (2 + len(base)) + "|")
    for distance in ("cosine", "euclidean"):
        first = stage_seconds(base, distance, device)
        doubled = {name: stage_seconds({**base, name: 2 * base[name]}, distance, device) for name in base}
        for stage, seconds in first.items():
            ratios = [f"× {times[stage] / seconds:.1f}" for times in doubled.values()]
            print(f"| {distance}: {stage} | {seconds:.3f} | {' | '.join(ratios)} |", flush=True)


def grid(device: str, scale: float) -> None:
    """All 19 shapes once, with everything that a table of the paper needs."""
    print("\n| 19 shapes of VocSim, 100 dimensions, one distance | seconds | the whole grid of 330 pairs |")
    print("|---|---|---|")
    every = [
        clips(max(2 * shape.classes, int(shape.clips * scale)), 100, shape.classes) for shape in PUBLISHED.values()
    ]
    for name, options in {
        "all metrics": {"intervals": "none", "permutations": 0},
        "all metrics with intervals": {"permutations": 0},
        "P@1, P@5 and GSR with 1000 permutations": {
            "intervals": "none", "permutations": 1000, "metrics": THREE
        },
    }.items():  # fmt: skip

        def work(options: dict[str, object] = options) -> None:
            for vectors, labels in every:
                evaluate(vectors, labels, device=device, progress=False, **{"metrics": METRICS, **options})

        seconds = fastest({"": work}, 1, clock_of(device))[""]
        print(f"| {name} | {seconds:.2f} | {seconds * PAIRS / 60:.1f} min |", flush=True)


def files(scale: float) -> None:
    """Files to vectors, step by step, log-mel averaged over time; each clip lasts two seconds."""
    count = max(20, int(1000 * scale))
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            place = Path(folder) / "clips" / str(number % 20)
            place.mkdir(parents=True, exist_ok=True)
            soundfile.write(place / f"{number}.wav", 0.1 * rng.standard_normal(32000), 16000)
        started = time.perf_counter()
        result = run({
            "corpus": f"{folder}/clips", "extractors": "logmel", "into": f"{folder}/run", "intervals": "none",
            "cache": {"url": f"{folder}/cache"},
        })  # fmt: skip
        seconds = time.perf_counter() - started
    print(f"\n{count} clips of 2 s, log-mel, from files to a report: {seconds:.1f} s")
    for step, counts in result.counts.items():
        print(f"- {step}: {1000 * counts.get('seconds', math.nan) / count:.2f} ms for each clip")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["growth", "grid", "clips"], metavar="growth|grid|clips")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the clips, to see that it runs")
    asked = parser.parse_args()
    print(f"{datetime.date.today()}  {platform.machine()}  {thread_count(None)} threads, device {asked.device}")
    for part in asked.parts:
        if part == "clips":
            files(asked.scale)
        else:
            {"growth": growth, "grid": grid}[part](asked.device, asked.scale)


if __name__ == "__main__":
    main()
