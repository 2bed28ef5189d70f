"""Does the pipeline's memory grow with the number of clips? Peak memory and time per step at two sizes.

    python benchmarks/pipeline.py [1000 20000]

Clips of a quarter of a second are made on the fly; log-mel frames are averaged over time (128 numbers per clip), so
that the vectors themselves are small beside everything else that could grow. Every size and stage runs in a process
of its own, because a process never gives its peak back.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from functools import partial

import numpy as np
from numpy.typing import NDArray

from earmark.corpora.clips import Clip, Corpus, CorpusCard
from earmark.representations import run

RATE = 16000
SECONDS = 0.25
PER_CLASS = 50
DIMENSION = 128


def chirp(kind: int, number: int) -> tuple[NDArray[np.float32], int]:
    time = np.arange(int(SECONDS * RATE)) / RATE
    noise = np.random.default_rng([kind, number]).standard_normal(len(time))
    pitch = 200.0 + 17.0 * (kind % 400)
    return (np.sin(2 * np.pi * pitch * time * (1 + time)) + 0.3 * noise).astype(np.float32), RATE


def corpus(clips: int) -> Corpus:
    made = [
        Clip(
            id=str(number), label=str(number // PER_CLASS), make=partial(chirp, number // PER_CLASS, number),
            recipe=f"chirp 1 {number // PER_CLASS} {number}",
        )
        for number in range(clips)
    ]  # fmt: skip
    return Corpus(CorpusCard("chirps", status="synthetic"), made)


def peak() -> float:
    """Megabytes of memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def stage(clips: int, steps: list[str], place: str) -> None:
    """One stage, in this process; prints what it took."""
    config = {
        "corpus": "chirps", "extractors": "logmel", "pooling": "mean_time", "metrics": ["P@1", "P@5", "GSR"],
        "steps": steps, "into": f"{place}/run", "cache": {"url": f"{place}/cache"}, "memory": "64MB",
    }  # fmt: skip
    prepared = corpus(clips)
    before = peak()
    result = run(config, corpora=[prepared])
    print(json.dumps({"before": before, "peak": peak(), "counts": result.counts}))


def main(sizes: list[int]) -> None:
    peaks: dict[str, list[float]] = {"embed": [], "evaluate": []}
    print(f"{'clips':>8} {'stage':<10} {'seconds':>8} {'clips MB':>8} {'peak MB':>8} {'vectors MB':>10}")
    for clips in sizes:
        with tempfile.TemporaryDirectory() as place:
            for name, steps in (("embed", ["prepare", "embed"]), ("evaluate", ["evaluate"])):
                words = [sys.executable, __file__, "--stage", str(clips), ",".join(steps), place]
                found = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1])
                peaks[name].append(found["peak"])
                seconds, size = found["counts"][name]["seconds"], clips * DIMENSION * 4 / 1e6
                numbers = f"{seconds:>8.1f} {found['before']:>8.0f} {found['peak']:>8.0f} {size:>10.1f}"
                print(f"{clips:>8} {name:<10} {numbers}", flush=True)
    grown = {name: found[-1] - found[0] for name, found in peaks.items()}
    more = (sizes[-1] - sizes[0]) * DIMENSION * 4 / 1e6
    print(f"from {sizes[0]} to {sizes[-1]} clips the vectors take {more:.0f} MB more, and")
    for name, megabytes in grown.items():
        print(f"  {name} {megabytes:.0f} MB more, the list of clips included")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--stage"]:
        stage(int(sys.argv[2]), sys.argv[3].split(","), sys.argv[4])
    else:
        main([int(word) for word in sys.argv[1:]] or [1000, 20000])
