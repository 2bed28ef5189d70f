"""What correcting hubness costs, as ratios taken in one run: ICDM and GICDM against one plain search for neighbours.

    python benchmarks/icdm.py                                     the whole table, a minute
    python benchmarks/icdm.py --quick                             smaller sizes, to see that it runs
    python benchmarks/icdm.py --device cuda --n 50000 --d 1024    on a GPU, against the bare matrix product

"GICDM" is its geometry: the plain neighbours, ICDM at K = 10 and K = 100, and the queries' neighbours under the factors
of each. Each figure is the best of a few, after a first call that compiles. Peak memory is measured in a process of
its own. On a GPU times include moving the vectors there and deciding in float64.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import time
from collections.abc import Callable

import numpy as np
from timing import best, peak_growth

from earmark.geometry.icdm import icdm
from earmark.geometry.layout import one_class
from earmark.geometry.neighbours import nearest
from earmark.geometry.spaces import Space, prepare_pair
from earmark.geometry.sweep import Wanted, sweep
from earmark.workers import thread_count

SMALL, LARGE = 10, 100  # the two scales of GICDM for k = 5


def gaussian(n: int, dims: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, dims), dtype=np.float32)


def gicdm(base: Space, queries: Space, threads: int, device: str) -> None:
    """The searches of GICDM's fit and transform."""
    options = {"threads": threads, "device": device}
    plain = nearest(base, LARGE, **options)
    for k in (SMALL, LARGE):
        factors = icdm(base, k, start=plain, **options).factors
        nearest(base, k + 1, queries=queries, weights=factors, **options)


def search_growth(n: int, dims: int, work: str) -> float:
    """Growth of memory during the searches of `work`, icdm or gicdm, in MB."""
    call = "icdm(pair[0], bench.SMALL, threads=threads)" if work == "icdm" else "gicdm(*pair, threads, 'cpu')"
    pair = "pair = bench.prepare_pair(bench.gaussian({0}, {1}, 0), bench.gaussian({0}, {1}, 1), 'euclidean')\n"
    warm = f"threads = thread_count(None)\n{pair.format(500, 9)}bench.{call}\n"
    return peak_growth(
        f"import icdm as bench\nfrom earmark.workers import thread_count\n{warm}{pair.format(n, dims)}", f"bench.{call}"
    )


def bare_product(vectors: np.ndarray, device: str) -> Callable[[], None]:
    """The floor on a GPU: all float32 products, TF32 off, block by block and forgotten; vectors are there already."""
    import torch

    there = torch.from_numpy(vectors).to(device.removeprefix("torch:"))
    torch.set_float32_matmul_precision("highest")

    def work() -> None:
        for start in range(0, len(there), 4096):
            there[start : start + 4096] @ there.T
        if there.is_cuda:
            torch.cuda.synchronize()

    return work


def report(what: str, figure: str, ratio: str = "", target: str = "") -> None:
    print(f"{what:64} {figure:>18} {ratio:>8}   {target}", flush=True)


def on_cpu(n: int, dims: int, repeats: int) -> None:
    threads = thread_count(None)
    layout = one_class(n)
    base, queries = prepare_pair(gaussian(n, dims, 0), gaussian(n, dims, 1), "euclidean")
    small = prepare_pair(gaussian(500, 9, 0), gaussian(500, 9, 1), "euclidean")
    sweep(small[0], one_class(500), Wanted(SMALL))  # compile
    gicdm(*small, threads, "cpu")

    plain = best(lambda: sweep(base, layout, Wanted(SMALL), threads=threads), repeats)
    report(f"plain neighbour sweep, K = {SMALL}, {n} x {dims}", f"{plain:.2f} s", "1")
    for k in (SMALL, LARGE):
        spent = best(lambda k=k: nearest(base, k, threads=threads), repeats)
        report(f"label-free search, K = {k}", f"{spent:.2f} s", f"{spent / plain:.2f}", "sweeps")
        weights = icdm(base, k, threads=threads).factors
        spent = best(lambda k=k, w=weights: nearest(base, k, weights=w, threads=threads), repeats)
        report("  the same under weights", f"{spent:.2f} s", f"{spent / plain:.2f}", "sweeps")
        spent = best(lambda k=k: icdm(base, k, threads=threads), repeats)
        target = "<= 6 (sweeps)" if k == SMALL else "sweeps"
        report(f"ICDM, K = {k}, T = 10: 11 exact rankings", f"{spent:.2f} s", f"{spent / plain:.2f}", target)
    spent = best(lambda: gicdm(base, queries, threads, "cpu"), repeats)
    report(
        f"GICDM fit and transform, {n} against {n}", f"{spent:.2f} s", f"{spent / plain:.2f}", "<= 15 (sweeps)"
    )  # fmt: skip
    for work, name in (("icdm", "ICDM, K = 10"), ("gicdm", "GICDM")):
        report(f"peak memory growth, {name}", f"{search_growth(n, dims, work):.0f} MB", "", "< 500 MB")
    report(f"  one {n} x {n} float32 matrix would be", f"{n * n * 4 / 2**20:.0f} MB", "", "never built")


def on_gpu(n: int, dims: int, device: str, repeats: int) -> None:
    threads = thread_count(None)
    vectors = gaussian(n, dims, 0)
    small = prepare_pair(gaussian(2000, 64, 0), gaussian(2000, 64, 1), "euclidean")
    gicdm(*small, threads, device)  # compile, and start the device
    here, there = (icdm(small[0], SMALL, threads=threads, device=where) for where in ("cpu", device))
    same = np.array_equal(here.factors, there.factors) and np.array_equal(here.neighbours[1], there.neighbours[1])
    report("ICDM on the CPU and on the device, 2000 x 64", "same bits" if same else "DIFFERENT", "", "the same bits")

    work = bare_product(vectors, device)
    work()
    floor = best(work, repeats)
    report(f"bare float32 product, {n} x {n} x {dims}", f"{floor:.3f} s", "1")
    start = time.perf_counter()
    base, queries = prepare_pair(vectors, gaussian(n, dims, 1), "euclidean", threads=threads)
    report("preparing both sets (CPU)", f"{time.perf_counter() - start:.2f} s")
    for k in (SMALL, LARGE):
        spent = best(lambda k=k: nearest(base, k, threads=threads, device=device), repeats)
        report(f"search, K = {k}", f"{spent:.2f} s", f"{spent / floor:.2f}", "bare products")
        spent = best(lambda k=k: icdm(base, k, threads=threads, device=device), repeats)
        report(f"ICDM, K = {k}, T = 10", f"{spent:.2f} s", f"{spent / floor:.2f}", "bare products")
    spent = best(lambda: gicdm(base, queries, threads, device), repeats)
    report(f"GICDM fit and transform, {n} against {n}", f"{spent:.2f} s", f"{spent / floor:.2f}", "bare products")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of the points, once")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1 (default: cpu)")
    parser.add_argument("--n", type=int, default=10_000, help="points in each set (default: 10000)")
    parser.add_argument("--d", type=int, default=100, help="dimensions (default: 100)")
    parser.add_argument("--repeats", type=int, default=3, help="how often each figure is taken (default: 3)")
    args = parser.parse_args()
    n, repeats = (args.n // 5, 1) if args.quick else (args.n, args.repeats)
    print(f"{platform.machine()}, {thread_count(None)} threads, NumPy {np.__version__}, {datetime.date.today()}")
    print(f"{'what':64} {'measured':>18} {'ratio':>8}   target")
    if args.device == "cpu":
        on_cpu(n, args.d, repeats)
    else:
        on_gpu(n, args.d, args.device, repeats)


if __name__ == "__main__":
    main()
