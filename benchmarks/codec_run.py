"""A codec run with one and with two worker processes: clips per second, and what the second run costs.

    python benchmarks/codec_run.py [--clips 24] [--seconds 3] [--codecs opus@12,mp3@32,mulaw@64]

The first run of a size is thrown away: it compiles kernels and fills the page cache. Beside each pair of runs stands
what the machine itself gives at that moment: a loop in one process and in two at once. Two cores that others use too,
or that share a clock, give less than two.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import earmark
from earmark.corpora.clips import Clip, Corpus, CorpusCard

RATE = 16000


def sound(seed: int, seconds: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    t = np.arange(int(RATE * seconds)) / RATE
    pitch = 130 + 40 * np.sin(2 * np.pi * (0.4 + 0.05 * (seed % 7)) * t)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    voiced = sum(np.sin(k * phase) / k for k in range(1, 20)) * (0.2 + np.sin(2 * np.pi * 2.5 * t + seed) ** 2)
    return (0.2 * voiced / np.abs(voiced).max() + 0.003 * rng.standard_normal(len(t))).astype(np.float32)


LOOP = """
import time
started = time.perf_counter()
total = 0
for number in range(12_000_000):
    total += number & 3
print(time.perf_counter() - started)
"""


def bare_ratio() -> float:
    """How many times the work of one process two do at once, by a loop that shares nothing."""

    def seconds(count: int) -> float:
        processes = [subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE) for _ in range(count)]
        return max(float(process.communicate()[0]) for process in processes)

    alone = (seconds(1) + seconds(1)) / 2
    return 2 * alone / seconds(2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--codecs", default="opus@12,mp3@32,mulaw@64")
    parser.add_argument("--repeats", type=int, default=1)
    args = parser.parse_args()
    codecs = args.codecs.split(",")
    clips = [Clip(f"c{n}", samples=sound(n, args.seconds), rate=RATE) for n in range(args.clips)]
    corpus = Corpus(CorpusCard("tones"), clips)
    print(f"{args.clips} clips of {args.seconds:g} s, {len(codecs)} codecs, core metrics")
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"category": "speech", "report": False, "bootstrap": 0}

        def coded(jobs: int) -> float:
            place = Path(folder) / f"jobs{jobs}"
            cache = {"url": str(place / "cache"), "policy": "refresh"}
            started = time.perf_counter()
            earmark.codec(codecs, corpus, cache=cache, jobs=jobs, into=place / "run", **options)
            took = time.perf_counter() - started
            print(f"{jobs} worker(s): {took:6.2f} s, {args.clips * len(codecs) / took:6.2f} clips/s", flush=True)
            return took

        coded(1)  # thrown away
        for _ in range(args.repeats):
            before, one, two, after = bare_ratio(), coded(1), coded(2), bare_ratio()
            ratio, machine = one / two, (before + after) / 2
            print(f"two workers: {ratio:.2f} times one; a bare loop {machine:.2f}; of that {ratio / machine:.0%}")
        options |= {"jobs": 2, "into": Path(folder) / "jobs2" / "run"}
        started = time.perf_counter()
        earmark.codec(codecs, corpus, cache={"url": str(Path(folder) / "jobs2" / "cache")}, **options)
        print(f"again from the cache: {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()
