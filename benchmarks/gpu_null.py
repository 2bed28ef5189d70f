"""The permutation null and the jackknife's deletions on a GPU, against the CPU in the same run.

    python benchmarks/gpu_null.py                          all 19 subset shapes of VocSim, D = 100, on cuda
    python benchmarks/gpu_null.py --device torch:cpu --quick    smaller, on CPU torch, to see that it runs
    python benchmarks/gpu_null.py --profile                and where the time goes on the card

Shapes (clips, classes, largest and smallest class) are those of VocSim's Table 1; vectors are synthetic. Times are of
whole calls: drawing the shuffles, moving everything to the card, and the values back; first calls, which compile, are
not counted. Every value of the card is compared with the CPU's.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import platform
import time
from collections.abc import Callable
from functools import cached_property
from importlib import resources

import numpy as np

from earmark.calibrate.deletions import depth_needed, leave_out, units_of
from earmark.calibrate.permutation import CALIBRATED, neighbours_needed, null_distributions
from earmark.geometry import spaces
from earmark.geometry.layout import lay_out
from earmark.geometry.sweep import Wanted, sweep
from earmark.workers import thread_count

DIMS = 100
KS = (1, 5)
JACKKNIFE = ["GSR", "CSR", "CSR_pointwise", "CS", "CSCF", "silhouette"]


def subset_shapes() -> list[tuple[str, int, int, int, int]]:
    """(name, clips, classes, smallest class, largest class) of each subset."""
    text = resources.files("earmark.published").joinpath("data/vocsim_table1_subsets.csv").read_text()
    names = ("n_samples", "n_classes", "min_samples_per_class", "max_samples_per_class")
    return [(row["subset"], *(int(row[name]) for name in names)) for row in csv.DictReader(text.splitlines())]


def class_sizes(n: int, classes: int, least: int, most: int) -> np.ndarray:
    """Sizes from `most` down to `least` that add up to n: a power law."""
    place = np.linspace(0.0, 1.0, classes)
    low, high = 1e-3, 1e3
    for _ in range(60):
        power = (low * high) ** 0.5
        sizes = least + (most - least) * (1.0 - place) ** power
        low, high = (power, high) if sizes.sum() > n else (low, power)
    sizes = np.maximum(np.floor(sizes).astype(int), 2)
    while rest := n - int(sizes.sum()):
        some = np.flatnonzero(sizes > 2 if rest < 0 else sizes > 0)[: abs(rest)]
        sizes[some] += np.sign(rest)
    return sizes


class Subset:
    """One shape: vectors around class centres, swept once on the CPU."""

    def __init__(self, name: str, n: int, classes: int, least: int, most: int, distance: str, groups: int = 0) -> None:
        rng = np.random.default_rng(n)
        codes = rng.permutation(np.repeat(np.arange(classes), class_sizes(n, classes, least, most)))
        vectors = rng.standard_normal((n, DIMS)) + 0.7 * rng.standard_normal((classes, DIMS))[codes]
        self.name, self.n, self.classes, threads = name, n, classes, thread_count(None)
        self.layout = lay_out(codes, rng.integers(0, groups, n) if groups else None)
        self.space = spaces.prepare(vectors.astype(np.float32), distance, order=self.layout.order, threads=threads)
        self.units = units_of(self.layout)
        self.threads = threads

    @cached_property
    def lists(self) -> dict:
        depth = max(neighbours_needed(self.layout), max(KS))
        wanted = Wanted(depth, across_groups=self.layout.groups is not None)
        return sweep(self.space, self.layout, wanted, threads=self.threads)

    @cached_property
    def sums(self) -> dict:
        wanted = Wanted(
            depth_needed(max(KS), self.units), farthest=True, class_sums=True, units=self.units.of, keep_sums=True,
            across_groups=self.layout.groups is not None,
        )  # fmt: skip
        return sweep(self.space, self.layout, wanted, threads=self.threads)

    def null(self, metrics: frozenset[str], permutations: int, device: str, threads: int) -> dict:
        given = self.space, self.layout, self.lists, metrics, KS, permutations
        return null_distributions(*given, seed=0, threads=threads, device=device)

    def left_out(self, device: str, threads: int) -> dict:
        return leave_out(
            self.space, self.layout, self.sums, self.units, JACKKNIFE, KS, hub_k=10, device=device, threads=threads
        )


def difference(found: dict, reference: dict) -> float:
    """The largest relative difference of any value; P@k must be equal."""
    largest = 0.0
    for protocol, metrics in reference.items():
        for name, values in metrics.items():
            other = found[protocol][name][: len(values)]
            if name.startswith("P@"):
                assert np.array_equal(other, values, equal_nan=True), (protocol, name)
            else:
                assert np.array_equal(np.isnan(other), np.isnan(values)), (protocol, name)
                gap = np.abs(other - values) / np.maximum(np.abs(values), 1e-3)
                largest = max(largest, float(np.nan_to_num(gap).max(initial=0.0)))
    assert largest < 1e-9, largest
    return largest


def timed(work: Callable[[], object], repeats: int = 2) -> tuple[float, object]:
    """Seconds of the better run, and what it returned."""
    best, result = float("inf"), None
    for _ in range(repeats):
        started = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - started)
    return best, result


def report(what: str, seconds: float, more: str = "") -> None:
    print(f"{what:66} {seconds:9.3f} s   {more}", flush=True)


def null_table(
    subsets: list[Subset], metrics: frozenset[str], title: str, device: str, permutations: int, checked: int,
    cpu_limit: float, repeats: int = 1,
) -> None:  # fmt: skip
    """Times of the card for every subset, of the CPU for `checked` shuffles of as many as `cpu_limit` seconds allow."""
    subsets[0].null(metrics, permutations, device, thread_count(None))  # compile
    card, rows = 0.0, []
    for subset in subsets:
        if repeats > 1:
            subset.null(metrics, permutations, device, subset.threads)
        spent, found = timed(lambda s=subset: s.null(metrics, permutations, device, s.threads), repeats)
        card += spent
        rows.append((subset, spent, found))
    report(f"{title}, {permutations} shuffles, {len(subsets)} subsets, {device}", card)
    print("   " + "  ".join(f"{subset.name} {1000 * spent:.0f}" for subset, spent, _ in rows) + " (ms)", flush=True)
    started, worst, cpu, done = time.perf_counter(), 0.0, 0.0, []
    for subset, _, found in sorted(rows, key=lambda row: row[1]):
        if time.perf_counter() - started > cpu_limit:
            continue
        spent, reference = timed(lambda s=subset: s.null(metrics, checked, "cpu", s.threads), 1)
        worst, cpu = max(worst, difference(found, reference)), cpu + spent
        done.append(subset.name)
    scaled = "" if checked == permutations else f", x {permutations / checked:g} = {cpu * permutations / checked:.1f} s"
    report(f"   the CPU, {thread_count(None)} threads, {checked} shuffles, {len(done)} of them{scaled}", cpu)
    print(f"   largest relative difference {worst:.1e}; P@k equal", flush=True)


def profile(subset: Subset, device: str) -> None:
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as record:
        subset.null(frozenset({"GSR"}), 1000, device, subset.threads)
    print(record.key_averages().table(sort_by="cuda_time_total", row_limit=14, max_name_column_width=60), flush=True)


def tune(subsets: list[Subset], device: str) -> None:
    """Times of the fused kernel of class sums by warps and height of its tile, the quickest of which is kept."""
    from earmark.calibrate import triton_null

    spent = {}
    for setting in ((1, 16), (2, 16), (4, 16), (2, 8), (4, 32)):
        triton_null.OWN_WARPS, triton_null.OWN_HEIGHT = setting
        for subset in subsets:
            subset.null(frozenset({"GSR"}), 1000, device, subset.threads)
        each = [timed(lambda s=s: s.null(frozenset({"GSR"}), 1000, device, s.threads), 3)[0] for s in subsets]
        spent[setting] = sum(each)
        print(f"   {setting} " + "  ".join(f"{s.name} {1000 * t:.1f} ms" for s, t in zip(subsets, each, strict=True)))
    triton_null.OWN_WARPS, triton_null.OWN_HEIGHT = min(spent, key=spent.get)


def scaling(subset: Subset, permutations: int, counts: list[int]) -> None:
    """What threads bring on the CPU."""
    for title, work in (
        ("P@k and GSR", lambda t: subset.null(frozenset({"GSR"}), permutations, "cpu", t)),
        ("all metrics", lambda t: subset.null(CALIBRATED, permutations // 20, "cpu", t)),
        ("deletions", lambda t: subset.left_out("cpu", t)),
    ):
        usable = [threads for threads in counts if threads <= thread_count(None)]
        spent = {threads: timed(lambda w=work, t=threads: w(t), 1)[0] for threads in usable}
        text = "  ".join(f"{threads}: {seconds:.2f} s" for threads, seconds in spent.items())
        first, last = spent[min(spent)], spent[max(spent)]
        print(f"{subset.name} {title}, by threads: {text}  ({first / last:.1f} x)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--plain", action="store_true", help="torch's own operations, no fused kernels")
    parser.add_argument("--parts", default="gsr,all,euclidean,euclidean-all,deletions,scaling", help="what to measure")
    parser.add_argument("--subsets", default="", help="some of them, by name")
    parser.add_argument("--cpu-limit", type=float, default=15.0, help="seconds of the CPU's own runs for each table")
    given = parser.parse_args()
    parts, shrink = given.parts.split(","), 20 if given.quick else 1
    shapes = subset_shapes()
    if given.quick:
        shapes = [(name, max(n // 20, 40), max(c // 20, 2), 2, max(most // 20, 6)) for name, n, c, _, most in shapes]
    chosen = given.subsets.split(",") if given.subsets else [shape[0] for shape in shapes]
    shapes = [shape for shape in shapes if shape[0] in chosen]
    many = max(shapes, key=lambda shape: shape[2])
    large = max(shapes, key=lambda shape: shape[1] / shape[2] * (shape[1] > 5000 / shrink))
    permutations = 50 if given.quick else 1000
    name = platform.processor() or platform.machine()
    if given.device.startswith("cuda"):
        import torch

        name = torch.cuda.get_device_name()
    print(f"{datetime.date.today()}  {name}  {os.cpu_count()} cores, {thread_count(None)} threads", flush=True)
    if given.plain:
        from earmark.calibrate import torch_null

        torch_null.fused_kernels = lambda device: None
    started = time.perf_counter()
    cosine = [Subset(*shape, "cosine") for shape in shapes]
    for subset in cosine:
        _ = subset.lists
    picked = [subset for subset in cosine if subset.name in (many[0], large[0])]
    print(f"swept on the CPU in {time.perf_counter() - started:.1f} s", flush=True)
    if "tune" in parts:
        tune(picked, given.device)
    if "gsr" in parts:
        null_table(
            cosine,
            frozenset({"GSR"}),
            "cosine P@1 P@5 GSR",
            given.device,
            permutations,
            permutations,
            given.cpu_limit,
            repeats=3,
        )
    if given.profile and "gsr" in parts:
        for subset in picked:
            profile(subset, given.device)
    if "all" in parts:
        null_table(cosine, CALIBRATED, "cosine, all metrics", given.device, permutations, 10, given.cpu_limit)
    if "euclidean" in parts:
        others = [Subset(*shape, "euclidean") for shape in shapes]
        for title, metrics in (("euclidean P@1 P@5 GSR", frozenset({"GSR"})), ("euclidean, all metrics", CALIBRATED)):
            if metrics <= {"GSR"} or "euclidean-all" in parts:
                null_table(others, metrics, title, given.device, permutations, 10, given.cpu_limit, repeats=2)
        if given.profile:
            for subset in others:
                if subset.name in (many[0], large[0]):
                    profile(subset, given.device)
    if "deletions" in parts:
        cases = [*cosine, Subset(*many, "euclidean"), Subset(*large, "cosine", groups=200 // shrink)]
        for subset in cases:
            _ = subset.sums
        subset.left_out(given.device, subset.threads)
        card = cpu = worst = 0.0
        for number, subset in enumerate(cases):
            spent, found = timed(lambda s=subset: s.left_out(given.device, s.threads))
            slow, reference = timed(lambda s=subset: s.left_out("cpu", s.threads), 1)
            worst = max(worst, difference(found, reference))
            if number < len(cosine):
                card, cpu = card + spent, cpu + slow
            if subset in picked or number >= len(cosine):
                kind = f"{subset.space.distance}, {len(subset.units)} {subset.units.kind}s"
                report(f"deletions {subset.name} {kind}, {given.device}", spent, f"CPU {slow:.2f} s")
        report(f"deletions, cosine, {len(cosine)} subsets, {given.device}", card, f"CPU {cpu:.2f} s")
        print(f"   largest relative difference {worst:.1e}; P@k equal", flush=True)
    if "scaling" in parts:
        for subset in picked:
            scaling(subset, permutations // 10, [1, 2, 4, 8, 16])
    print(f"in all {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
