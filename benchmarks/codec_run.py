"""A codec run with one and with two worker processes: clips per second, and what the second run costs.

    python benchmarks/codec_run.py [--clips 24] [--seconds 3] [--codecs opus@12,mp3@32,mulaw@64]

The first run of a size is thrown away: it compiles kernels and fills the page cache.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--codecs", default="opus@12,mp3@32,mulaw@64")
    args = parser.parse_args()
    codecs = args.codecs.split(",")
    clips = [Clip(f"c{n}", samples=sound(n, args.seconds), rate=RATE) for n in range(args.clips)]
    corpus = Corpus(CorpusCard("tones"), clips)
    print(f"{args.clips} clips of {args.seconds:g} s, {len(codecs)} codecs, core metrics")
    with tempfile.TemporaryDirectory() as folder:
        paces = {}
        for jobs in (1, 1, 2):  # the first is thrown away
            place = Path(folder) / f"jobs{jobs}"
            options = {"category": "speech", "jobs": jobs, "report": False, "bootstrap": 0, "into": place / "run"}
            started = time.perf_counter()
            earmark.codec(codecs, corpus, cache={"url": str(place / "cache"), "policy": "refresh"}, **options)
            took = time.perf_counter() - started
            paces[jobs] = args.clips * len(codecs) / took
            print(f"{jobs} worker(s): {took:6.2f} s, {paces[jobs]:6.2f} clips/s")
        print(f"two workers: {paces[2] / paces[1]:.2f} times the clips per second of one")
        started = time.perf_counter()
        earmark.codec(codecs, corpus, cache={"url": str(Path(folder) / "jobs2" / "cache")}, **options)
        print(f"again from the cache: {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()
