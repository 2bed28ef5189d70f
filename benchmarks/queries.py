"""What a sample of queries costs: its error against the exact evaluation, and how often its intervals hold.

    python benchmarks/queries.py error [--clips 40000] [--queries 1000,4000]
    python benchmarks/queries.py error --vectors vectors.npy --labels labels.txt --queries 250,500
    python benchmarks/queries.py coverage [--sets 100] [--distance euclidean] [--groups 20]

`error` evaluates a collection exactly and then from samples of several seeds: bias and standard deviation of the
estimates, the mean half-width of their 95 % intervals and the share of them that hold the exact value. `coverage` draws
collections of Gaussian classes: the share of intervals that hold the value of all clips, and the expectation over
collections.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import earmark

METRICS = "P@1,P@5,GSR,CSR,CSR_pointwise,CS,silhouette,hub_skew"


def clips(seed: int, n: int, classes: int, dims: int, groups: int = 0, spread: float = 1.1) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng([seed, 7])
    labels = rng.permutation(np.arange(n) % classes)
    vectors = np.random.default_rng(1).normal(size=(classes, dims))[labels] + spread * rng.normal(size=(n, dims))
    if not groups:
        return vectors, labels, None
    of = rng.permutation(np.arange(n) % groups)
    return vectors + 0.7 * rng.normal(size=(groups, dims))[of], labels, of


def error(args: argparse.Namespace) -> None:
    if args.vectors:
        vectors, labels = np.load(args.vectors), np.loadtxt(args.labels, dtype=str)
    else:
        vectors, labels, _ = clips(0, args.clips, 200, 64, spread=2.5)
    options = {"distance": args.distance, "metrics": METRICS, "threads": args.threads}
    exact = earmark.evaluate(vectors, labels, intervals="none", **options)
    for queries in (int(word) for word in args.queries.split(",")):
        rows = [earmark.evaluate(vectors, labels, queries=queries, seed=seed, **options) for seed in range(args.seeds)]
        print(f"{len(labels)} clips, {queries} queries, {args.distance}, {args.seeds} seeds")
        for row in exact:
            found = [scores.row(row.metric) for scores in rows]
            if any(one.value is None or one.low is None for one in found):
                continue
            values, low, high = (np.array([getattr(one, name) for one in found]) for name in ("value", "low", "high"))
            held = np.mean((low <= row.value) & (row.value <= high))
            print(
                f"| `{row.metric}` | {row.value:.4f} | {values.mean() - row.value:+.4f} | {values.std(ddof=1):.4f} "
                f"| {(high - low).mean() / 2:.4f} | {100 * held:.0f} % |"
            )


def coverage(args: argparse.Namespace) -> None:
    options = {"distance": args.distance, "metrics": METRICS, "threads": args.threads}
    exact: dict[str, list[float]] = {}
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(3 * args.sets):
        vectors, labels, groups = clips(seed, 500, 10, 6, args.groups)
        for row in earmark.evaluate(vectors, labels, groups=groups, intervals="none", **options):
            exact.setdefault(row.metric, []).append(row.value)
        if seed < args.sets:
            for row in earmark.evaluate(vectors, labels, groups=groups, queries=120, seed=seed, **options):
                ends = (np.nan, np.nan) if row.low is None else (row.low, row.high)
                found.setdefault(row.metric, []).append(ends)
    print(f"{args.sets} collections of 500 clips, 120 queries, {args.distance}, groups: {args.groups or 'none'}")
    for metric, ends in found.items():
        low, high = np.array(ends).T
        full, other = np.array(exact[metric])[: args.sets], np.mean(exact[metric])
        if np.isfinite(low).all():
            shares = [np.mean((low <= true) & (true <= high)) for true in (full, other)]
            print(f"| `{metric}` | {shares[0]:.2f} | {shares[1]:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["error", "coverage"])
    parser.add_argument("--clips", type=int, default=40_000)
    parser.add_argument("--queries", default="1000,4000")
    parser.add_argument("--vectors")
    parser.add_argument("--labels")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--groups", type=int, default=0)
    parser.add_argument("--distance", default="cosine")
    parser.add_argument("--threads", type=int, default=None)
    args = parser.parse_args()
    (error if args.what == "error" else coverage)(args)


if __name__ == "__main__":
    main()
