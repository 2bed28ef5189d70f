"""What an analysis costs: time and memory of each stage, on a matrix like MMLU's and on a large one.

    python benchmarks/analysis.py            79 x 58, then 1,000 x 500
    python benchmarks/analysis.py --quick    79 x 58 alone

Matrices are synthetic: a few abilities of the models, loadings of the datasets, noise, families of ten models. `wall`
is what a clock on the wall says; `CPU` counts the seconds in which a core worked, also on a busy machine. Each matrix
runs in a process of its own, and the peak is that process's.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from unittest import mock

import numpy as np
import psutil

from earmark.analysis.beams import beam_orders
from earmark.analysis.cautions import warnings
from earmark.analysis.intervals import interval_coverage
from earmark.analysis.matrix import Matrix, from_table
from earmark.analysis.pounce import REGRESSORS, error_curve, noisy, pounce
from earmark.analysis.prowl import exact_coverage, greedy, prowl, random_orders
from earmark.analysis.similarities import NINE, similarity_matrix
from earmark.analysis.stalk import stalk
from earmark.workers import Workers

FAMILY = 10
SMALL = 100
"""Models up to which networks are tried."""


def synthetic(models: int, datasets: int) -> Matrix:
    rng = np.random.default_rng(0)
    ability = rng.normal(size=(models // FAMILY + 1, 4)).repeat(FAMILY, axis=0)[:models]
    ability += 0.3 * rng.normal(size=ability.shape)
    logits = ability @ rng.normal(size=(4, datasets)) / 2 + rng.normal(size=datasets)
    values = 1 / (1 + np.exp(-logits - 0.7 * rng.normal(size=(models, datasets))))
    names = [f"model {i}" for i in range(models)]
    families = [f"family {i // FAMILY}" for i in range(models)]
    return from_table(values, names, [f"dataset {j}" for j in range(datasets)], families=families)


def timed(name: str, work: Callable[[], object]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"  {name:44} {wall:8.2f} s wall {cpu:8.2f} s CPU", flush=True)


def peak() -> float:
    """The largest resident size of this process so far, in MiB."""
    memory = psutil.Process().memory_info()
    if hasattr(memory, "peak_wset"):  # Windows
        return float(memory.peak_wset) / 2**20
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def measure(models: int, datasets: int) -> None:
    print(f"{models} models x {datasets} datasets, {os.cpu_count()} cores")
    matrix = synthetic(models, datasets)
    values = matrix.normalised()
    prowl(matrix.take(range(5), range(4)), orders=1)  # imports scipy
    pounce(matrix.take(range(5), range(4)), split="random")  # and scikit-learn
    timed("warnings", lambda: warnings(matrix))
    timed("stalk", lambda: stalk(matrix))
    for name in NINE:
        timed(f"similarity {name}", lambda name=name: similarity_matrix(values, name))
    similarity = similarity_matrix(values, "manhattan")
    timed("one greedy order", lambda: greedy(similarity))
    timed("1000 random orders", lambda: random_orders(values, 1000))
    timed("prowl: all of these", lambda: prowl(matrix))
    timed("exact search, pairs", lambda: exact_coverage(values, 2))
    timed("pounce, random split", lambda: pounce(matrix, split="random"))
    timed("pounce, whole families held out", lambda: pounce(matrix, ("ridge", "mean"), split="grouped"))
    timed("5 folds of families", lambda: pounce(matrix, split="kfold", folds=5))
    timed("noise, 20 draws, random split", lambda: pounce(matrix, split="random", noise=0.05, draws=20))
    timed("beams of 1, 5, 10 and 20", lambda: beam_orders(matrix, (1, 5, 10, 20)))
    timed("intervals checked on held-out families", lambda: interval_coverage(matrix, 3))
    if models <= SMALL:
        network(matrix)
    print(f"  peak memory {peak():.0f} MiB")


def network(matrix: Matrix) -> None:
    """A network on noisy scores, with BLAS on one thread as `pounce` holds it, against BLAS as it comes."""
    values = noisy(matrix.normalised(), 0.05)
    half = len(values) // 2
    order = greedy(similarity_matrix(values[:half], "minkowski"))

    def curve() -> object:
        return error_curve(values[:half], values[half:], order, REGRESSORS["mlp12"])

    with Workers(1):
        curve()
    timed("a network on noisy scores", curve)
    with mock.patch("earmark.analysis.pounce.Workers", return_value=nullcontext()):
        timed("the same, BLAS with all its threads", curve)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the small matrix alone")
    parser.add_argument("--size", help="one matrix in this process, as MODELSxDATASETS")
    args = parser.parse_args()
    if args.size:
        measure(*(int(number) for number in args.size.split("x")))
        return
    for size in ("79x58",) if args.quick else ("79x58", "1000x500"):
        subprocess.run([sys.executable, __file__, "--size", size], check=True)


if __name__ == "__main__":
    main()
