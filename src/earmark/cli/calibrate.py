"""Can the intervals and p-values be trusted? Simulate data sets with a known truth and count.

For each design (how clips, classes and groups go together), protocol and metric: how often the 95 % interval holds the
metric's expectation, how often two equal systems are told apart at 0.05, how often a worse one is found, how often
labels that mean nothing get p <= 0.05; beside it what version 0.1.0's intervals and tests do on the same data sets.
"holds" means: coverage at least 0.92 and at most 6 % of equal systems or meaningless labels told apart, within the
error of the simulation. With --fidelity the intervals of `earmark fidelity` are simulated instead.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from earmark.atomic import write_whole
from earmark.cli import options
from earmark.errors import UsageError
from earmark.generated.sanity import coverage as fidelity
from earmark.places import locate
from earmark.progress import progress_bar
from earmark.report.figures.calibration import Dot, calibration
from earmark.report.figures.style import save
from earmark.simulation import DESIGNS, METRICS, STANDARD, Line, study, to_csv
from earmark.simulation.study import ENOUGH_REPEATS
from earmark.tables import MISSING, aligned, csv_text
from earmark.workers import thread_count

EXAMPLES = """examples:
  earmark calibrate --list
  earmark calibrate --designs clips,6-groups --repeats 100
  earmark calibrate --designs all --repeats 1000 --into calibration/ --figure calibration.png    an hour; resumable
  earmark calibrate --fidelity --designs "same 8-D" --metrics recall,coverage --repeats 50
"""

_COLUMNS = (
    ("expected", "expectation"), ("covered", "coverage"), ("before", "former_coverage"), ("equal", "equal_rejected"),
    ("before", "former_equal_rejected"), ("found", "found"), ("before", "former_found"), ("chance", "null_rejected"),
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add(
        parser,
        ("--list", True, "list the designs, and stop"),
        ("--fidelity", True, "simulate the intervals of `earmark fidelity` instead"),
        ("--designs", list, f"names from --list, or all (default: {','.join(STANDARD)}; all with --fidelity)"),
        ("--metrics", list, f"metrics of `earmark evaluate` (default: {','.join(METRICS)}; all with --fidelity)"),
        ("--repeats", 200, "data sets of each design"),
        ("--permutations", 99, "shuffles of meaningless labels in each data set, 0 for none"),
        ("--no-former", True, "leave out what version 0.1.0 would say"),
        ("--seed", 0, "seed of all draws"),
        ("--into", "FOLDER", "keep every repeat here; a killed study continues"),
        ("--jobs", int, "processes, one thread each (default: every core)"),
        ("--out", "FILE", "write a line for each design, protocol and metric: .csv or .json"),
        ("--figure", "FILE", "draw coverage and error rates: .png, .svg or .pdf"),
        ("--json", True, "print the lines on stdout as JSON"),
        ("--quiet", True, "no progress bars and no remarks"),
    )


def run(args: argparse.Namespace) -> int:
    options.check_out(args, "out")
    if args.list:
        known = {name: design.words for name, design in DESIGNS.items()}
        if args.fidelity:
            known = {name: design.means for name, design in fidelity.DESIGNS.items()}
        print(*aligned(list(known.items())), sep="\n")
        return 0
    if args.fidelity:
        return _fidelity(args)
    designs = list(STANDARD) if args.designs is None else args.designs
    lines = study(
        list(DESIGNS) if designs == ["all"] else designs, metrics=METRICS if args.metrics is None else args.metrics,
        repeats=args.repeats, permutations=args.permutations, former=not args.no_former, seed=args.seed,
        into=args.into, jobs=thread_count(args.jobs), progress=not args.quiet,
    )  # fmt: skip
    if args.figure:
        save(calibration([_dot(line) for line in lines]), args.figure)
    records = [{**asdict(line), "holds": line.holds} for line in lines]
    _deliver(args, records, to_csv(lines), text(lines))
    return 0


def _fidelity(args: argparse.Namespace) -> int:
    for name in ("into", "figure"):
        if getattr(args, name):
            raise UsageError(f"--{name} is for the intervals of `earmark evaluate`: leave it out with --fidelity.")
    with progress_bar(not args.quiet, None, "simulate", "set") as tick:
        table = fidelity.coverage(
            args.metrics, designs=None if args.designs in (None, ["all"]) else args.designs, repeats=args.repeats,
            more=args.repeats, seed=args.seed, threads=thread_count(args.jobs),
            intervals=("jackknife",) if args.no_former else fidelity.KINDS, progress=lambda *_: tick(),
        )  # fmt: skip
    records = [
        {name: None if value != value else value for name, value in cell._asdict().items()} for cell in table.cells
    ]
    _deliver(args, records, csv_text(fidelity.Cell._fields, records), table.to_text())
    return 0


def _deliver(args: argparse.Namespace, records: list[dict[str, Any]], table: str, shown: str) -> None:
    printed = json.dumps(records, indent=1) + "\n"
    if args.out:
        write_whole(locate(args.out), (printed if args.out.endswith(".json") else table).encode())
    sys.stdout.write(printed if args.json else shown)


def _dot(line: Line) -> Dot:
    pairs = "all pairs" if line.protocol == "all" else "across groups"
    return Dot(
        f"{DESIGNS[line.design].words}; {pairs}", line.metric, line.coverage, line.former_coverage,
        line.equal_rejected, line.former_equal_rejected,
    )  # fmt: skip


def text(lines: list[Line]) -> str:
    """A table for the terminal, one block for each design and protocol."""
    parts = []
    for design, protocol in dict.fromkeys((line.design, line.protocol) for line in lines):
        block = [line for line in lines if (line.design, line.protocol) == (design, protocol)]
        words, pairs = DESIGNS[design].words, "all pairs" if protocol == "all" else "across groups"
        cells = [["", *(title for title, _ in _COLUMNS), ""]]
        cells += [
            [line.metric, *(_shown(getattr(line, name)) for _, name in _COLUMNS), _verdict(line)] for line in block
        ]
        heading = f"{design}: {words}; {pairs}; {block[0].repeats} data sets"
        least = [14, *[8] * len(_COLUMNS)]
        parts += [heading, *aligned(cells, left=1, words=1, indent="  ", least=least), ""]
    parts.append(
        "covered: 95 % intervals that hold the expectation; equal: equal systems told apart at 0.05; found: a worse\n"
        "system told apart (power); chance: meaningless labels with p <= 0.05; before: the same in version 0.1.0;\n"
        "holds: covered at least 0.92, equal and chance at most 0.06, within two errors of the simulation\n"
    )
    return "\n".join(parts)


def _verdict(line: Line) -> str:
    if line.coverage is None:
        return "no interval"
    if line.repeats < ENOUGH_REPEATS:
        return "too few data sets to say"
    return {True: "holds", False: "FALLS SHORT", None: "fewer than 15 units"}[line.holds]


def _shown(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3f}"
