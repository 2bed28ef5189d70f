"""DTW re-ranking against dtaidistance's compiled code, on the same pairs, in one run.

    pip install dtaidistance && python benchmarks/dtw.py [--clips 100] [--frames 84]

Both use a Sakoe-Chiba band of radius 0.1 and Euclidean local costs on 64 dimensions. Sequences have one length, so
that the two bands are the same cells; dtaidistance does not divide by the length of the path, so ours is compared
with its cost through a recursion that returns both.
"""

from __future__ import annotations

import argparse
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from dtaidistance import dtw_ndim
from timing import fastest

from earmark.evaluation.dtw import dtw_distance, prepare, rerank
from earmark.workers import thread_count


def path_cost(a: np.ndarray, b: np.ndarray, radius: float) -> tuple[float, int]:
    """The cheapest alignment's cost and number of steps, by the recursion."""
    n = len(a)
    table = {(-1, -1): (0.0, 0)}
    for i in range(n):
        for j in range(n):
            if abs(i - j) <= radius * (n - 1):
                cost, steps = min(table[p] for p in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if p in table)
                table[i, j] = cost + float(np.linalg.norm(a[i] - b[j])), steps + 1
    return table[n - 1, n - 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=100)
    parser.add_argument("--frames", type=int, default=84, help="frames after the stride: 84 are 5 s of 50 a second")
    parser.add_argument("--radius", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=thread_count(None))
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    random = np.random.default_rng(0)
    clips = [np.cumsum(random.standard_normal((args.frames, 64)), axis=0) for _ in range(args.clips)]
    sequences = prepare(clips, components=None, stride=1)
    wide = [sequences[k].astype(np.float64) for k in range(args.clips)]
    window = math.floor(args.radius * (args.frames - 1)) + 1

    def theirs(pair: tuple[int, int]) -> float:
        return dtw_ndim.distance_fast(wide[pair[0]], wide[pair[1]], window=window, inner_dist="euclidean")

    cost, steps = path_cost(wide[0], wide[1], args.radius)
    print(f"cost: dtaidistance {theirs((0, 1)):.6f}, recursion {cost:.6f}")
    print(f"distance: earmark {dtw_distance(wide[0], wide[1], args.radius):.6f}, recursion {cost / steps:.6f}")
    others = np.array([np.delete(np.arange(args.clips), q) for q in range(args.clips)])
    pairs = [(a, b) for a in range(args.clips) for b in range(a + 1, args.clips)]
    rerank(others, sequences)

    def threaded() -> None:
        with ThreadPoolExecutor(args.threads) as pool:
            list(pool.map(theirs, pairs))

    works = {
        "dtaidistance, compiled": lambda: [theirs(pair) for pair in pairs],
        f"dtaidistance, compiled, {args.threads} threads": threaded,
        "earmark, 1 thread": lambda: rerank(others, sequences, radius=args.radius, threads=1),
        f"earmark, {args.threads} threads": lambda: rerank(others, sequences, radius=args.radius, threads=args.threads),
    }
    seconds = fastest(works, args.rounds, warm=False)
    for name, value in seconds.items():
        print(f"{name:36} {1e6 * value / len(pairs):8.1f} us per pair")
    names = list(seconds)
    mine = seconds[names[3]]
    print(f"ratio, one thread each: {seconds[names[0]] / seconds[names[2]]:.1f}")
    print(f"ratio to the fastest dtaidistance: {min(seconds[names[0]], seconds[names[1]]) / mine:.1f}")


if __name__ == "__main__":
    main()
