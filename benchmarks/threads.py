"""How the sweep, the jackknife and the permutation null gain by cores, beside what the machine itself gains.

    python benchmarks/threads.py [--clips 20000] [--threads 1,2,4,8,16] [--permutations 64]

Vectors are Gaussian, 128 dimensions, 500 classes. `bare products` multiplies the same tiles with the same threads and
does nothing else: no way over tiles of this machine can gain more. Each time is the best of the repeats; the sweep's
result is compared with that of one thread, to the last bit.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from earmark.calibrate.deletions import depth_needed, leave_out, units_of
from earmark.calibrate.permutation import null_distributions
from earmark.geometry import spaces
from earmark.geometry.layout import lay_out
from earmark.geometry.sweep import ROWS, Wanted, sweep
from earmark.workers import Workers

DIMENSIONS, CLASSES = 128, 500
METRICS = ("GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette", "hub_skew")


def best(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - started)
    return min(times), found


def bare_products(space: spaces.Space, dtype: type, threads: int, width: int) -> None:
    columns = space.columns(dtype)

    def work(start: int) -> None:
        left = space.operands(dtype, slice(start, start + ROWS))
        out = np.empty((len(left), width), dtype)
        for c0 in range(0, space.n - width + 1, width):
            np.matmul(left, columns[c0 : c0 + width].T, out=out)

    with Workers(threads) as workers:
        for _ in workers.map(work, range(0, space.n, ROWS)):
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=20_000)
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--permutations", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=2)
    args = parser.parse_args()
    counts = [int(word) for word in args.threads.split(",")]
    print(f"{args.clips} x {DIMENSIONS}, {CLASSES} classes, {len(os.sched_getaffinity(0))} cores seen")
    print(f"{'':32}" + "".join(f"{count:>9}" for count in counts) + "   gain of the last")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, args.clips)
    centres = rng.normal(size=(CLASSES, DIMENSIONS))
    vectors = (0.3 * centres[labels] + rng.normal(size=(args.clips, DIMENSIONS))).astype(np.float32)
    layout = lay_out(labels)
    units = units_of(layout)
    wanted = Wanted(
        depth_needed(5, units), farthest=True, class_sums=True, units=units.of, keep_sums=True,
        visit_class=lambda *_: None,
    )  # fmt: skip

    def row(name: str, work: Callable[[int], Any], repeats: int = args.repeats) -> list[Any]:
        times, results = [], []
        for count in counts:
            seconds, found = best(lambda count=count: work(count), repeats)  # type: ignore[misc]
            times.append(seconds)
            results.append(found)
        gain = times[0] / times[-1] / counts[0]
        print(f"{name:32}" + "".join(f"{seconds:9.3f}" for seconds in times) + f"   {gain:.1f}", flush=True)
        return results

    for distance in ("cosine", "euclidean"):
        space = spaces.prepare(vectors, distance, order=layout.order, threads=counts[-1])
        dtype, width = (np.float32, 2048) if distance == "cosine" else (np.float64, 512)
        sweep(space, layout, wanted, threads=counts[-1])  # compiles
        row(f"{distance}: bare products", lambda count: bare_products(space, dtype, count, width))  # noqa: B023
        found = row(f"{distance}: sweep", lambda count: sweep(space, layout, wanted, threads=count))  # noqa: B023
        for other in found[1:]:
            for field in ("nearest_other", "farthest_same", "own_mean", "other_mean", "second_other"):
                assert np.array_equal(getattr(found[0]["all"], field), getattr(other["all"], field)), field
            assert np.array_equal(found[0]["all"].neighbours.places, other["all"].neighbours.places)
        swept = found[0]
        del found
        row(
            f"{distance}: jackknife",
            lambda count: leave_out(space, layout, swept, units, METRICS, (1, 5), hub_k=5, threads=count),  # noqa: B023
            repeats=1,
        )
        row(
            f"{distance}: {args.permutations} permutations",
            lambda count: null_distributions(
                space, layout, swept, frozenset({"GSR"}), (1, 5), args.permutations, threads=count  # noqa: B023
            ),
            repeats=1,
        )  # fmt: skip


if __name__ == "__main__":
    main()
