"""What the labelled sweep costs on a GPU, beside bare matrix products and the CPU, and whether it finds the same.

    python benchmarks/gpu.py                    all of it, on a data-centre GPU: about two minutes
    python benchmarks/gpu.py --device torch:cpu --quick     small sizes on CPU torch, to see that it runs
    python benchmarks/gpu.py --only shapes,grid

shapes   the 19 subsets of VocSim (clips and classes as published, 100 dimensions), vectors on the card, every metric of
         a default evaluation, all subsets at once; each value against `evaluate` on the CPU in the same run
grid     330 representations and distances (110 of each distance) of all 19 subsets
million  10^6 x 128, 1,000 classes: exact P@5, GSR and hubness (and the rest), against one float32 product of all pairs
same     `sweep` on the device against `sweep` on the CPU: places and distances to the last bit, sums to rounding
even     `sweep` of a set of N vectors on CPU and GPU, from NumPy to NumPy: where "auto" should change over

Times are medians after a first call that compiles; those of products are of float32 with TF32 off.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

import earmark
from earmark.evaluation import on_card
from earmark.evaluation.on_card import LabelledSets
from earmark.geometry import devices, spaces
from earmark.geometry.corrections import Neighbourhoods, factors_of, parse_all
from earmark.geometry.layout import lay_out
from earmark.geometry.sweep import Wanted, sweep
from earmark.published import read as published
from earmark.workers import thread_count

DIMS = 100
DISTANCES = ("cosine", "euclidean", "spearman")
PAIRS = 330


def shapes(shrink: int) -> list[tuple[int, int]]:
    """Clips and classes of each subset."""
    rows = published("vocsim_table1_subsets")
    return [
        (max(8, int(row["n_samples"]) // shrink), max(2, int(row["n_classes"]) // shrink)) for row in rows
    ]  # fmt: skip


def clips(n: int, classes: int, seed: int, dims: int = DIMS) -> tuple[np.ndarray, np.ndarray]:
    """Loose clusters, each class twice at least."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(classes), np.arange(classes), rng.integers(0, classes, n)])[:n]
    vectors = 0.5 * rng.standard_normal((classes, dims), dtype=np.float32)[codes]
    return vectors + rng.standard_normal((n, dims), dtype=np.float32), codes


def seconds(work: Callable[[], object], device: str, repeats: int = 5, *, warm: bool = True) -> float:
    """The median of a few runs, each until the device is done."""
    wait = torch.cuda.synchronize if device.startswith("cuda") else (lambda: None)
    if warm:
        work()
    taken = []
    for _ in range(repeats):
        wait()
        started = time.perf_counter()
        work()
        wait()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def report(what: str, value: str, beside: str = "") -> None:
    print(f"{what:<72} {value:>14}   {beside}", flush=True)


def product_seconds(parts: list[torch.Tensor], device: str) -> float:
    torch.set_float32_matmul_precision("highest")
    return seconds(lambda: [part @ part.T for part in parts], device)


def measure_shapes(device: str, shrink: int, *, compare: bool) -> float:
    """All 19 subsets, each distance; return the milliseconds of their bare products."""
    sets = [clips(n, classes, seed) for seed, (n, classes) in enumerate(shapes(shrink))]
    there = [torch.from_numpy(vectors).to(device) for vectors, _ in sets]
    floor = 1e3 * product_seconds(there, device)
    wide = 1e3 * product_seconds([part.double() for part in there], device)
    report("19 subsets: bare float32 products", f"{floor:.2f} ms", f"float64 {wide:.2f} ms")
    together = torch.cat(there)
    labelled = LabelledSets([codes for _, codes in sets], f"torch:{device}")
    for distance in DISTANCES:
        first = seconds(lambda d=distance: labelled.measure(together, d), device, 1, warm=False)
        spent = 1e3 * seconds(lambda d=distance: labelled.measure(together, d), device, 20)
        report(
            f"19 subsets, every metric, {distance}", f"{spent:.2f} ms",
            f"{spent / floor:.2f} of the products; the first call {first:.1f} s",
        )  # fmt: skip
        if compare:
            compare_with_cpu(labelled.measure(together, distance), sets, distance)
    return floor


def compare_with_cpu(found: list[dict[str, float]], sets: list[tuple[np.ndarray, np.ndarray]], distance: str) -> None:
    """The largest difference of any metric of any subset from `evaluate` on the CPU, and the CPU's time."""
    started, worst, values = time.perf_counter(), 0.0, 0
    for own, (vectors, codes) in zip(found, sets, strict=True):
        scores = earmark.evaluate(vectors, codes, distance=distance, intervals="none", device="cpu")
        for metric, value in own.items():
            expected = scores.value(metric)
            worst = max(worst, abs(value - expected))
            values += 1
    taken = time.perf_counter() - started
    report(
        f"  the largest difference of {values} values from the CPU's", f"{worst:.1e}",
        f"CPU with {thread_count(None)} threads: {taken:.1f} s",
    )  # fmt: skip


def measure_parts(device: str, shrink: int) -> None:
    """Where the time of the 19 subsets goes."""
    from earmark.geometry import torch_card, torch_spaces, torch_sums

    sets = [clips(n, classes, seed) for seed, (n, classes) in enumerate(shapes(shrink))]
    together = torch.cat([torch.from_numpy(vectors).to(device) for vectors, _ in sets])
    labelled = LabelledSets([codes for _, codes in sets], f"torch:{device}")
    asked, ordered = torch_card.Asked(5, far=True), together[labelled.order]
    how = on_card._How("cosine", (1, 5), 5, "average")
    for distance in DISTANCES:
        points = torch_spaces.prepare(ordered, distance, labelled.sets)
        found = torch_card.propose_and_decide(points, labelled.sets, asked)
        summed = torch_sums.class_sums(points, labelled.sets)
        works = {
            "order": lambda: together[labelled.order],
            "prepare": lambda d=distance: torch_spaces.prepare(ordered, d, labelled.sets),
            "neighbours": lambda p=points: torch_card.propose_and_decide(p, labelled.sets, asked),
            "class sums": lambda p=points: torch_sums.class_sums(p, labelled.sets),
            "metrics": lambda p=points, f=found, s=summed: labelled._reduce(p, f, s, how),
        }
        times = {name: 1e3 * seconds(work, device) for name, work in works.items()}
        report(f"  {distance}", f"{sum(times.values()):.2f} ms", ", ".join(f"{n} {t:.2f}" for n, t in times.items()))


def measure_grid(device: str, shrink: int, pairs: int) -> None:
    sets = [clips(n, classes, seed) for seed, (n, classes) in enumerate(shapes(shrink))]
    labelled = LabelledSets([codes for _, codes in sets], f"torch:{device}")
    n = labelled.sets.n
    representations = [torch.randn(n, DIMS, device=device) for _ in range(6)]
    for distance in DISTANCES:
        labelled.measure(representations[0], distance)

    def grid() -> None:
        for number in range(pairs):
            labelled.measure(representations[number % 6], DISTANCES[number % 3])

    report(f"{pairs} representations and distances x 19 subsets", f"{seconds(grid, device, 1, warm=False):.2f} s")


def measure_million(device: str, n: int) -> None:
    dims, classes = 128, 1000
    vectors = torch.randn(n, dims, device=device)
    codes = np.arange(n) % classes
    vectors += 0.3 * torch.randn(classes, dims, device=device)[torch.from_numpy(codes).to(device)]
    torch.set_float32_matmul_precision("highest")
    height = min(n, 8192)
    bare = seconds(lambda: vectors[:height] @ vectors.T, device, 3) * n / height
    report(f"{n} x {dims}: one float32 product of all pairs, in blocks", f"{bare:.2f} s")
    labelled = LabelledSets([codes], f"torch:{device}")
    for distance in ("cosine", "euclidean") if n < 10**5 else ("cosine",):
        spent = seconds(lambda d=distance: labelled.measure(vectors, d), device, 2, warm=True)
        found = labelled.measure(vectors, distance)[0]
        report(
            f"{n} x {dims}: exact P@5, GSR, hubness and the rest, {distance}", f"{spent:.2f} s",
            f"{spent / bare:.2f} products; P@5 {found['P@5']:.4f}, GSR {found['GSR']:.4f}, "
            f"hub_skew {found['hub_skew']:.2f}",
        )  # fmt: skip
    # A sample of queries by plain float64 products, an independent way to the same.
    picked = torch.randperm(n, device=device)[: min(n, 512)]
    points = vectors.double() / vectors.double().norm(dim=1, keepdim=True)
    similar = points[picked] @ points.T
    similar[torch.arange(len(picked), device=device), picked] = -2.0
    labels = torch.from_numpy(codes).to(device)
    hits = (labels[similar.topk(5).indices] == labels[picked][:, None]).double().mean(1)
    error = float(hits.std() / len(hits) ** 0.5)
    report("  P@5 of 512 queries by float64 products", f"{float(hits.mean()):.4f}", f"standard error {error:.4f}")


def same_as_cpu(device: str, quick: bool) -> None:
    """`sweep` on both, every distance, correction and protocol."""
    cases = [("cosine", "none", 17041, 1366), ("euclidean", "none", 3497, 215), ("spearman", "none", 1703, 183)]
    cases += [("euclidean", correct, 1703, 183) for correct in ("ls", "nicdm", "mp", "csls", "dsl")]
    for distance, correct, n, classes in cases:
        n, classes = (n // 10, classes // 10) if quick else (n, classes)
        vectors, codes = clips(n, classes, 1)
        vectors[n // 2 : n // 2 + 60] = vectors[:60]  # copies, in other classes too
        groups = np.random.default_rng(2).integers(0, n // 4, n)
        layout = lay_out(codes, np.unique(groups, return_inverse=True)[1])
        space = spaces.prepare(vectors, distance, order=layout.order)
        (correction,) = parse_all(correct)
        factors = None if correct == "none" else factors_of(correction, Neighbourhoods(space, layout, (correction,)))
        plain = factors is None or not factors.signed
        wanted = Wanted(
            6, farthest=plain, class_sums=plain, across_groups=True, units=layout.groups, keep_sums=plain
        )  # fmt: skip
        options = {"factors": factors, "threads": thread_count(None)}
        here = sweep(space, layout, wanted, **options)
        there = sweep(space, layout, wanted, device=f"torch:{device}", **options)
        cpu = seconds(partial(sweep, space, layout, wanted, **options), device, 1, warm=False)
        spent = seconds(partial(sweep, space, layout, wanted, device=f"torch:{device}", **options), device, 3)
        equal, largest = True, 0.0
        for name, one in here.items():
            other = there[name]
            for field in ("nearest_other", "farthest_same", "second_other", "own_count"):
                equal &= np.array_equal(getattr(one, field), getattr(other, field), equal_nan=True)
            equal &= np.array_equal(one.neighbours.places, other.neighbours.places)
            equal &= np.array_equal(one.neighbours.distances, other.neighbours.distances, equal_nan=True)
            if plain:
                for field in ("own_mean", "other_mean", "class_sums"):
                    a, b = getattr(one, field), getattr(other, field)
                    with np.errstate(invalid="ignore", divide="ignore"):
                        largest = max(largest, float(np.nanmax(np.abs(a - b) / np.maximum(np.abs(a), 1e-300))))
        report(
            f"{n} x {classes} classes, {distance}, {correct}, both protocols: the same to the last bit", str(equal),
            f"sums to {largest:.0e}; CPU {cpu:.2f} s, GPU {spent:.3f} s",
        )  # fmt: skip
        if not equal:
            sys.exit("The device found something else than the CPU.")


def break_even(device: str, quick: bool) -> None:
    started = time.perf_counter()
    script = f"import torch; torch.zeros(9, device={device!r}).sum().item()"
    subprocess.run([sys.executable, "-c", script], check=True)
    report("a fresh process that imports torch and touches the device", f"{time.perf_counter() - started:.1f} s")
    for n in (500, 1000) if quick else (500, 1000, 2000, 4000, 8000, 16000, 32000):
        vectors, codes = clips(n, max(2, n // 20), 3)
        layout = lay_out(codes)
        space = spaces.prepare(vectors, "cosine", order=layout.order)
        wanted = Wanted(6, farthest=True, class_sums=True, units=np.arange(n), keep_sums=True)
        times = []
        for where, threads in (("cpu", 1), ("cpu", thread_count(None)), (f"torch:{device}", thread_count(None))):
            work = partial(sweep, space, layout, wanted, threads=threads, device=where)
            times.append(f"{seconds(work, device, 3):.3f}")
        report(
            f"sweep of {n} x {DIMS} from NumPy to NumPy, {n * n * DIMS:.0e} multiplications", times[-1] + " s",
            f"CPU: {times[0]} s on one core, {times[1]} s on {thread_count(None)}",
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--only", default="shapes,parts,same,grid,million,even", help="which parts, with commas")
    args = parser.parse_args()
    device = devices.resolve(args.device, 1e30).removeprefix("torch:")
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else "CPU torch"
    print(f"{name}, torch {torch.__version__}, earmark {earmark.__version__}")
    shrink = 40 if args.quick else 1
    for part in args.only.split(","):
        if part == "shapes":
            measure_shapes(device, shrink, compare=True)
        elif part == "parts":
            measure_parts(device, shrink)
        elif part == "grid":
            measure_grid(device, shrink, 6 if args.quick else PAIRS)
        elif part == "million":
            measure_million(device, 3000 if args.quick else 10**6)
        elif part == "same":
            same_as_cpu(device, args.quick)
        elif part == "even":
            break_even(device, args.quick)
        else:
            sys.exit(f"There is no part {part!r}.")


if __name__ == "__main__":
    main()
