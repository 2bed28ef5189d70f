"""Can the intervals and p-values be trusted? Simulate data sets with a known truth and count.

For each design (how clips, classes and groups go together), protocol and metric: how often the 95 % interval holds the
metric's expectation, how often two equal systems are told apart at 0.05, how often a worse one is found, how often
labels that mean nothing get p <= 0.05; beside it what version 0.1.0's intervals and tests do on the same data sets.
"holds" means: coverage at least 0.92 and at most 6 % of equal systems or meaningless labels told apart, within the
error of the simulation.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from earmark.atomic import write_whole
from earmark.cli import options
from earmark.errors import UsageError
from earmark.simulation import DESIGNS, METRICS, STANDARD, Line, study, to_csv
from earmark.workers import thread_count

EXAMPLES = """examples:
  earmark calibrate --list
  earmark calibrate --designs clips,6-groups --repeats 100
  earmark calibrate --designs all --repeats 1000 --into calibration/ --out calibration.csv    an hour; resumable
"""

_COLUMNS = (
    ("expected", "expectation"), ("covered", "coverage"), ("was", "former_coverage"), ("equal", "equal_rejected"),
    ("was", "former_equal_rejected"), ("found", "found"), ("was", "former_found"), ("chance", "null_rejected"),
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--list", action="store_true", help="list the designs, and stop")
    parser.add_argument(
        "--designs", type=options.names, default=list(STANDARD), metavar="LIST",
        help=f"names from --list, or all (default: {','.join(STANDARD)})",
    )  # fmt: skip
    parser.add_argument(
        "--metrics", type=options.names, default=list(METRICS), metavar="LIST",
        help=f"metrics of `earmark evaluate` (default: {','.join(METRICS)})",
    )  # fmt: skip
    parser.add_argument("--repeats", type=int, default=200, metavar="R", help="data sets of each design (default: 200)")
    parser.add_argument(
        "--permutations", type=int, default=99, metavar="N",
        help="shuffles of meaningless labels in each data set, 0 for none (default: 99)",
    )  # fmt: skip
    parser.add_argument("--no-former", action="store_true", help="leave out what version 0.1.0 would say")
    parser.add_argument("--seed", type=int, default=0, help="seed of all draws (default: 0)")
    parser.add_argument("--into", metavar="FOLDER", help="keep every repeat here; a killed study continues")
    parser.add_argument("--jobs", type=int, metavar="J", help="processes, one thread each (default: every core)")
    parser.add_argument(
        "--out", metavar="FILE", help="write a line for each design, protocol and metric: .csv or .json"
    )
    parser.add_argument("--json", action="store_true", help="print the lines on stdout as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress bars and no remarks")


def run(args: argparse.Namespace) -> int:
    options.check_out(args)
    if args.out and Path(args.out).suffix not in (".csv", ".json"):
        raise UsageError(f"{args.out}: write a file that ends in .csv or .json.")
    if args.list:
        width = max(map(len, DESIGNS))
        sys.stdout.write("".join(f"{name:{width}}  {design.words}\n" for name, design in DESIGNS.items()))
        return 0
    lines = study(
        list(DESIGNS) if args.designs == ["all"] else args.designs, metrics=args.metrics, repeats=args.repeats,
        permutations=args.permutations, former=not args.no_former, seed=args.seed, into=args.into,
        jobs=thread_count(args.jobs), progress=not args.quiet,
    )  # fmt: skip
    records = json.dumps([{**asdict(line), "holds": line.holds} for line in lines], indent=1) + "\n"
    if args.out:
        write_whole(Path(args.out), (records if args.out.endswith(".json") else to_csv(lines)).encode())
    sys.stdout.write(records if args.json else text(lines))
    return 0


def text(lines: list[Line]) -> str:
    """A table for the terminal, one block for each design and protocol."""
    parts = []
    for design, protocol in dict.fromkeys((line.design, line.protocol) for line in lines):
        block = [line for line in lines if (line.design, line.protocol) == (design, protocol)]
        words, pairs = DESIGNS[design].words, "all pairs" if protocol == "all" else "across groups"
        parts.append(f"{design}: {words}; {pairs}; {block[0].repeats} data sets\n")
        parts.append(f"  {'':14}" + "".join(f"{title:>10}" for title, _ in _COLUMNS) + "\n")
        for line in block:
            cells = "".join(f"{_number(getattr(line, name)):>10}" for _, name in _COLUMNS)
            verdict = {True: "holds", False: "FALLS SHORT", None: "fewer than 15 units"}[line.holds]
            parts.append(f"  {line.metric:14}{cells}  {verdict if line.coverage is not None else 'no interval'}\n")
        parts.append("\n")
    parts.append(
        "covered: 95 % intervals that hold the expectation; equal: equal systems told apart at 0.05; found: a worse\n"
        "system told apart; chance: meaningless labels with p <= 0.05; was: the same in version 0.1.0\n"
    )
    return "".join(parts)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
