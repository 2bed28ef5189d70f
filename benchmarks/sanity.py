"""The sanity table at scale: every published column, ten repeats, resumable, what tells most first.

    python benchmarks/sanity.py --jobs 16 --minutes 9 --into FOLDER     on a machine with cores to spare
    python benchmarks/sanity.py --into FOLDER --show                    the table of what is there
    python benchmarks/sanity.py --cost                                  processor seconds of each check, from samples

Columns without correction see sets of 5000 points, as the paper has "more" than the benchmark's 1000, and columns with
GICDM, which cost ten times as much, 1000. FOLDER/cells.csv has a line for each cell, FOLDER/curves.csv the mean curves.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from earmark._version import __version__
from earmark.cli.fidelity_sanity import text
from earmark.generated.metrics import NETWORK
from earmark.generated.sanity import CHECKS, Sanity
from earmark.generated.sanity._scoring import Task, score
from earmark.generated.sanity.bench import Setup, run, tasks
from earmark.generated.sanity.columns import JUDGED, Column, choose
from earmark.generated.sanity.rules import GROUPS
from earmark.generated.sanity.table import judged
from earmark.runs.journal import Journal

BALLS = [name for name in JUDGED if name not in NETWORK]
LITERALS = ["clipped_density_literal", "clipped_coverage_literal"]


class Part(NamedTuple):
    """A share of the work: a folder of its own for its size, some columns, and how many of the repeats come first."""

    folder: str
    n: int
    columns: tuple[Column, ...]
    repeats: int


def parts(repeats: int, plain_n: int, corrected_n: int) -> list[Part]:
    """In the order of what they tell for their cost: a few repeats of all, then the rest of the repeats."""
    plain = tuple(choose(BALLS, ("none",)))
    corrected = tuple(choose([*BALLS, *LITERALS], ("none", "gicdm")))
    corrected = tuple(column for column in corrected if column.correction == "gicdm")
    learned = tuple(choose(NETWORK, ("none",)))
    few = min(3, repeats)
    return [
        Part("plain", plain_n, plain, few),
        Part("corrected", corrected_n, corrected, few),
        Part("plain", plain_n, plain, repeats),
        Part("corrected", corrected_n, corrected, repeats),
        Part("corrected", corrected_n, learned, few),
        Part("corrected", corrected_n, learned, repeats),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="where scores are kept, and found again")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--minutes", type=float, help="begin nothing new after so many minutes")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--plain-n", type=int, default=5000, help="points without correction (default: 5000)")
    parser.add_argument("--corrected-n", type=int, default=1000, help="points with GICDM (default: 1000)")
    parser.add_argument("--checks", type=lambda words: words.split(","), default=list(CHECKS))
    parser.add_argument("--show", action="store_true", help="compute nothing, show what is there")
    parser.add_argument("--cost", action="store_true", help="time one pair of every check")
    args = parser.parse_args()
    if args.cost:
        cost(parts(args.repeats, args.plain_n, args.corrected_n), args.checks)
        return
    if args.into is None:
        parser.error("--into says where the scores are kept")
    work = parts(args.repeats, args.plain_n, args.corrected_n)
    deadline = None if args.minutes is None else time.monotonic() + 60 * args.minutes
    for part in work:
        left = None if deadline is None else (deadline - time.monotonic()) / 60
        if args.show or (left is not None and left <= 0):
            break
        setup = Setup(tuple(args.checks), grid="thin", repeats=part.repeats, n=part.n, device=args.device)
        with store(args.into, part) as kept:
            run(setup, part.columns, kept, jobs=args.jobs, minutes=left, progress=True)
    result = collected(args.into, work, args.checks, args.repeats)
    (args.into / "cells.csv").write_text(result.to_csv(), encoding="utf-8")
    write_curves(result, args.into / "curves.csv")
    print(text(result))
    print(summary(result))


def summary(result: Sanity) -> str:
    """Passed cells here and as published, and cells that agree, as a Markdown table."""
    lines = [
        "| Column | Purpose | Bounds | Other | Published | As published |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for column in result.columns:
        here = [result.passed(column.name, group) for group in GROUPS]
        there = [result.passed(column.name, group, published=True) for group in GROUPS]
        agree = result.agreement(column.name)
        counts = " | ".join(f"{tally.passed}/{tally.of}" for tally in here)
        printed = " ".join(str(tally.passed) for tally in there)
        lines.append(f"| `{column.name}` | {counts} | {printed} | {agree.passed}/{agree.of} |")
    return "\n".join(lines)


def store(into: Path, part: Part) -> Journal:
    return Journal(into / part.folder, {"n": part.n, "seed": 0, "version": __version__})


def collected(into: Path, work: Sequence[Part], checks: Sequence[str], repeats: int) -> Sanity:
    """One table from all folders, in the order of the published columns."""
    columns: dict[str, Column] = {}
    found = {}
    for part in work:
        with store(into, part) as kept:
            mine = {column.key for column in part.columns}
            found.update({place: score for place, score in kept.scores.items() if place.metric in mine})
        columns.update({column.name: column for column in part.columns})
    order = [column.name for column in choose([*JUDGED, *LITERALS])]
    return judged([columns[name] for name in order], checks, found, grid="thin", repeats=repeats)


def write_curves(result: Sanity, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["column", "check", "subcase", "value", "mean", "repeats"])
        for (column, check, subcase), (curve, repeats) in result.curves.items():
            for value, mean, count in zip(*curve, repeats, strict=True):
                if count:
                    writer.writerow([column, check, subcase, f"{value:.6g}", f"{mean:.5f}", count])


def cost(work: Sequence[Part], checks: Sequence[str]) -> None:
    """Seconds of processor time for the last value of each check's last sub-case, and for all its pairs of a repeat."""
    print(f"{'check':22}{'columns':12}{'n':>6}{'pairs':>7}{'s a pair':>10}{'s a repeat':>12}")
    for part in [work[0], work[1], work[4]]:
        name = "networks" if part.columns[0].metric in NETWORK else part.folder
        for check in checks:
            mine = tasks(Setup((check,), grid="thin", repeats=1, n=part.n), part.columns)
            timed = list(sample(mine))
            score(timed[0])  # compiles
            spent = 0.0
            for task in timed:
                start = time.process_time()
                score(task)
                spent += (time.process_time() - start) * len(mine) / len(timed)
            print(f"{check:22}{name:12}{part.n:>6}{len(mine):>7}{spent / len(mine):>10.2f}{spent:>12.1f}", flush=True)


def sample(mine: Sequence[Task]) -> Iterator[Task]:
    """A few tasks spread over sub-cases and values."""
    step = max(1, len(mine) // 5)
    yield from mine[step // 2 :: step]


if __name__ == "__main__":
    main()
