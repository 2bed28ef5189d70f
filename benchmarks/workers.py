"""Two workers against one, for embedding: how much of a second core a run turns into speed.

    python benchmarks/workers.py [--jobs 2] [--seconds 40] [--extractors logmel,mfcc,moonshine,resemblyzer]

A bare loop in as many processes is timed beside each: no program can do better than what the machine itself gives, and
one that shares its cores gives less. Clips are noise of one to three seconds; their number is chosen so that one worker
takes about --seconds. Every run is a process of its own, as a user starts it, held to as many cores as it has jobs
(where the system allows it: libraries take all they see), with a fresh cache; counted is what its run.json says
embedding took, with the start of worker processes and without that of Python. The vectors must be the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import soundfile

from earmark.representations import load_vectors

RATE = 16000
LOOP = "sum(number * number for number in range(30_000_000))"


def make_clips(folder: Path, count: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        path = folder / f"{number:06}.wav"
        if not path.exists():
            generator = np.random.default_rng(number)
            length = int(RATE * generator.uniform(1, 3))
            soundfile.write(path, 0.1 * generator.standard_normal(length), RATE)
    for path in sorted(folder.glob("*.wav"))[count:]:
        path.unlink()


def bare_loop(processes: int) -> float:
    """Seconds of a loop in each of so many processes at once."""
    started = time.perf_counter()
    children = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(processes)]
    for child in children:
        child.wait()
    return time.perf_counter() - started


def embed(clips: Path, place: Path, extractor: str, jobs: int) -> tuple[float, str]:
    """Seconds that embedding took, and the hash of the vectors."""
    into = place / f"{extractor}-{jobs}"
    words = ["--corpus", clips, "--extractor", extractor, "--pool", "mean_time", "--steps", "prepare,embed,evaluate"]
    places = [
        "--cache-dir",
        into / "cache",
        "--into",
        into,
        "--copies",
        "keep",
        "--metrics",
        "P@1",
        "--intervals",
        "none",
    ]
    command = [sys.executable, "-m", "earmark", "run", *words, *places, "--jobs", jobs, "--quiet"]
    held = ["taskset", "-c", f"0-{jobs - 1}"] if shutil.which("taskset") else []
    subprocess.run([*held, *map(str, command)], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    record = json.loads((into / "run.json").read_text())
    entry = record["vectors"][0]
    values = load_vectors(into, entry["subset"], entry["system"], entry["suite"]).values
    return record["steps"]["embed"]["seconds"], hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--extractors", default="logmel,mfcc,moonshine,resemblyzer")
    args = parser.parse_args()
    print(
        f"{'extractor':<14}{'clips':>7}{'1 job':>9}{f'{args.jobs} jobs':>9}{'ratio':>7}{'bare loop':>11}  same vectors"
    )
    with tempfile.TemporaryDirectory() as folder:
        clips, place = Path(folder) / "clips", Path(folder)
        for extractor in args.extractors.split(","):
            make_clips(clips, 256)
            pace = embed(clips, place / "trial", extractor, 1)[0] / 256
            count = max(640, min(60_000, round(args.seconds / pace)))
            make_clips(clips, count)
            loops = [bare_loop(1), bare_loop(args.jobs)]
            one, ours = embed(clips, place, extractor, 1)
            two, theirs = embed(clips, place, extractor, args.jobs)
            loops += [bare_loop(1), bare_loop(args.jobs)]
            bare = args.jobs * (loops[0] + loops[2]) / (loops[1] + loops[3])
            print(
                f"{extractor:<14}{count:>7}{one:>8.1f}s{two:>8.1f}s{one / two:>7.2f}{bare:>11.2f}  {ours == theirs}",
                flush=True,
            )


if __name__ == "__main__":
    main()
