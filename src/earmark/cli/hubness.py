"""Measure hubness: how unevenly vectors appear in each other's neighbour lists.

VECTORS: .npy, .npz, .parquet, .csv or .pt, one row per clip; labels are not needed. Prints hub_ratio, antihub_rate,
hub_skew and robin_hood, and the rows that appear in the most lists.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from earmark import vectors
from earmark.cli import options
from earmark.evaluation import hubness
from earmark.report.tables import long_text
from earmark.scores import Scores

EXAMPLES = """examples:
  earmark hubness vectors.npy
  earmark hubness vectors.npz --distance cosine,euclidean --k 10 --out hubness.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", metavar="VECTORS", help="file of vectors")
    parser.add_argument("--k", type=int, default=5, help="length of the neighbour lists (default: 5)")
    parser.add_argument("--top", type=int, default=5, metavar="N", help="how many hubs to name (default: 5)")
    options.add_vectors(parser)
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    options.check_out(args)
    loaded = vectors.read_vectors(args.vectors, key=args.key)
    scores = hubness(
        loaded.values,
        ids=loaded.ids,
        distance=args.distance,
        k=args.k,
        ties=args.ties,
        per_point=True,
        correct=args.correct,
        device=args.device,
        memory=args.memory,
        threads=args.threads,
        system=args.system or str(args.vectors),
        subset=args.subset,
        suite=args.suite,
        progress=not args.quiet,
    )
    options.deliver(args, scores, long_text)
    if not args.json and args.top > 0:
        sys.stdout.write(_top_hubs(scores, args.k, args.top))
    return 0 if any(row.status == "ok" for row in scores) else 1


def _top_hubs(scores: Scores, k: int, top: int) -> str:
    """The points that appear in the most lists, by id or row number."""
    lines = []
    for (distance, _, _, metric), occurrences in scores.per_point.items():
        if metric != "hub_ratio":
            continue
        best = np.argsort(-occurrences, kind="stable")[:top]
        named = [
            f"{scores.point_ids[row] if scores.point_ids else f'row {row}'} ({int(occurrences[row])})" for row in best
        ]
        lines.append(f"top hubs, {distance} (lists of {k} they appear in): {', '.join(named)}")
    return "\n" + "\n".join(lines) + "\n" if lines else ""
