"""Put metrics of fidelity and coverage to the synthetic checks that they must pass.

Prints T (passed), F (failed), L or H (passed as a low or a high coverage) for each check, with the published letter in
brackets where it is another, and how many cells agree. A metric is one of Earmark's or your own, mymodule:my_metric, a
function (real, generated) -> a number or (fidelity, coverage). The mean over all repeats is judged. With --real the
sets are not synthetic: embeddings of real clips are cut in halves, and one half is made worse.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from earmark.cli import fidelity_real, options
from earmark.errors import UsageError, did_you_mean, require
from earmark.generated.sanity import CHECKS, Cell, Sanity, Tally, sanity
from earmark.generated.sanity.on_real import TESTS
from earmark.generated.sanity.rules import GROUPS
from earmark.workers import thread_count

STUDIES = ("hypersphere", "components", "dimension", "convergence", "crossover", "corrections", "gradient")

EXAMPLES = """examples:
  earmark fidelity sanity --list
  earmark fidelity sanity --metrics mymodule:my_metric --checks mean,sphere,invention --repeats 3
  earmark fidelity sanity --metrics clipped_density --checks sphere --repeats 2 --figure sphere.png
  earmark fidelity sanity --into sanity/ --jobs 8            every published column; hours, and resumable
  earmark fidelity sanity --study hypersphere --figure hypersphere.svg
  earmark fidelity sanity --real birdnet.npz,logmel.npz --bad noise-birdnet.npz,noise-logmel.npz --figure curves.png
  earmark fidelity sanity --real esc50.csv --extractor birdnet,logmel --into esc50-checks/
"""

WIDTH = 100
_NAME_WIDTH = 22


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add(parser, ("--list", True, "list the checks with what they vary, and stop"))
    options.add(
        parser.add_argument_group("what is checked"),
        ("--metrics", list, "names or import paths such as mymodule:my_metric (default: all that were published)"),
        ("--correct", list, "none, gicdm (default: both, for metrics that have both)"),
        ("--judge", ("fidelity", "coverage"), "what a metric of your own measures when it returns one number"),
        ("--checks", list, "names from --list (default: all)"),
        ("--original", True,
         "the criteria and grids of the first benchmark, without the amendments of the GICDM paper"),
    )  # fmt: skip
    how = parser.add_argument_group("how much")
    options.add(
        how,
        ("--repeats", 10, "draws of everything"),
        ("--n", int, "points in each set, where the check does not vary it (default: 1000; studies have their own)"),
        ("--seed", 0, "seed of all draws"),
        ("--into", "FOLDER", "keep every score here; a killed run continues"),
        ("--jobs", int, "processes, one thread each (default: every core)"),
        ("--device", "NAME", "where distances of large sets are computed: auto, cpu, cuda or cuda:1 (default: cpu)"),
        ("--minutes", float, "begin nothing new after so many minutes"),
    )
    how.add_argument(
        "--grid", choices=("full", "thin"),
        help="values of the varied parameter: full has 51 or 20, thin 11 or 10 (default: thin; full with --original)",
    )  # fmt: skip
    options.add(
        parser.add_argument_group("past one machine"),
        ("--scheduler", "ADDRESS", "the Dask scheduler whose workers score, such as tcp://host:8786; needs --into"),
        ("--shard", "N/M", "score share N of M under --into; any order, any time, any machine that sees the folder"),
        ("--merge", True, "take what shares have scored, and score what is missing"),
    )
    fidelity_real.add_arguments(parser)
    known = ", ".join(STUDIES)
    options.add(parser.add_argument_group("studies"), ("--study", "NAME", f"instead of the checks: {known}"))
    options.add(
        parser.add_argument_group("output"),
        ("--figure", "FILE", "draw the table, the curves when there is one check, or the study: .png, .svg or .pdf"),
        ("--out", "FILE", "write a line for each cell: .csv or .json"),
        ("--json", True, "print the result on stdout as JSON"),
        ("--quiet", True, "no progress bars and no remarks"),
    )
    parser.set_defaults(correct=["none", "gicdm"], device="cpu")


def run(args: argparse.Namespace) -> int:
    options.check_out(args, "out", "figure")
    if args.figure:
        require("matplotlib", "Figures", "plots")
    if args.list:
        sys.stdout.write(checks_text())
        return 0
    if args.real:
        return fidelity_real.run(args)
    for name in ("bad", "extractor", "pool", "modes", "label_column", "groups"):
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')} is for real embeddings: give them with --real.")
    if args.study:
        return _study(args)
    result = sanity(
        args.metrics, checks=args.checks, correct=args.correct, repeats=args.repeats,
        n=1000 if args.n is None else args.n, grid=args.grid, edition="original" if args.original else "amended",
        own_kind=args.judge, seed=args.seed, into=args.into, jobs=thread_count(args.jobs), device=args.device,
        minutes=args.minutes, progress=not args.quiet, scheduler=args.scheduler or "", shard=args.shard,
        merge=args.merge,
    )  # fmt: skip
    if args.shard:
        if not args.quiet:
            print(f"shard {args.shard} is done; when all are: the same command with --merge", file=sys.stderr)
        return 0
    if args.figure:
        from earmark.report.figures import sanity as figures
        from earmark.report.figures.style import save

        checks = {cell.check for cell in result.cells}
        save(figures.curves(result, checks.pop()) if len(checks) == 1 else figures.outcomes(result), args.figure)
    rows = json.dumps([cell.row() for cell in result.cells], indent=1, ensure_ascii=False) + "\n"
    options.deliver_text(args, rows, result.to_csv, text(result))
    if args.minutes and any(cell.outcome is None for cell in result.cells) and not args.quiet:
        print("time is up and some cells have no scores yet; the same --into continues", file=sys.stderr)
    return 0


def _study(args: argparse.Namespace) -> int:
    """Compute a study, draw it if asked, and print its numbers."""
    from earmark.generated.sanity import studies, study_tables

    if args.study not in STUDIES:
        raise UsageError(
            f"There is no study {args.study!r}.{did_you_mean(args.study, STUDIES)} Known: {', '.join(STUDIES)}."
        )
    drawn = {} if args.study == "crossover" else {"seed": args.seed, **({} if args.n is None else {"n": args.n})}
    study = getattr(studies, args.study)(**drawn, progress=not args.quiet)
    if args.figure:
        from earmark.report.figures import sanity as figures
        from earmark.report.figures.style import save

        save(getattr(figures, args.study)(study), args.figure)
    options.deliver_text(
        args, study_tables.to_json(study), lambda: study_tables.to_csv(study), study_tables.to_text(study)
    )
    return 0


# --- text -------------------------------------------------------------------------------------------------


def checks_text() -> str:
    """The checks by name, with their title in the papers, what they vary, and their sub-cases."""
    lines = []
    for check in CHECKS.values():
        cases = ", ".join(case.name for case in check.subcases if case.name)
        lines.append(f"{check.name:{_NAME_WIDTH}}{check.title}")
        lines.append(f"{'':{_NAME_WIDTH}}varies: {check.parameter}{f'; {cases}' if cases else ''}")
    lines.append("with --real:")
    for test in TESTS.values():
        lines.append(f"{test.name:{_NAME_WIDTH}}{test.title}")
        lines.append(f"{'':{_NAME_WIDTH}}varies: {test.parameter}; judges {' and '.join(test.kinds)}")
    return "\n".join(lines) + "\n"


def text(result: Sanity) -> str:
    """The table in blocks that fit a terminal, the counts below each, and the cells that are not as published."""
    blocks = []
    for kind in ("fidelity", "coverage"):
        names = [column.name for column in result.columns if column.kind == kind]
        while names:
            width = max(11, *(len(name.split("+")[0]) + 2 for name in names))
            fit = max(1, (WIDTH - _NAME_WIDTH) // width)
            blocks.append(_block(result, kind, names[:fit], width))
            names = names[fit:]
    failures = [cell for cell in result.cells if cell.column.own and cell.outcome == "F"]
    if failures:
        blocks.append("\n".join(["failed:", *(f"  {_reason(cell)}" for cell in failures)]))
    differences = result.differences()
    if differences:
        blocks.append("\n".join(["not as published:", *(f"  {_difference(cell)}" for cell in differences)]))
    return "\n\n".join(blocks) + "\n"


def _block(result: Sanity, kind: str, names: Sequence[str], width: int) -> str:
    cells = {name: {(cell.desideratum, cell.check): cell for cell in result.of(name)} for name in names}
    lines = [_line(kind, [name.split("+")[0] for name in names], width)]
    if any("+" in name for name in names):
        lines.append(_line("", ["+gicdm" if "+" in name else "" for name in names], width))
    seen = ""
    for desideratum, check in cells[names[0]]:
        if desideratum != seen:
            lines.append(desideratum)
            seen = desideratum
        lines.append(_line(f"  {check}", [_letter(cells[name][desideratum, check]) for name in names], width))
    lines.append("")
    printed = any(result.agreement(name).of for name in names)
    for group in GROUPS:
        tallies = [result.passed(name, group) for name in names]
        if any(tally.of for tally in tallies):
            lines.append(_line(f"passed, {group}", [_share(tally) for tally in tallies], width))
            if printed:
                published = [result.passed(name, group, published=True) for name in names]
                lines.append(_line("  published", [_share(tally) for tally in published], width))
    if printed:
        lines.append(_line("cells as published", [_share(result.agreement(name)) for name in names], width))
    return "\n".join(lines)


def _share(tally: Tally) -> str:
    return f"{tally.passed}/{tally.of}" if tally.of else "–"


def _line(name: str, cells: Sequence[str], width: int) -> str:
    return (f"{name:{_NAME_WIDTH}}" + "".join(f"{cell:{width}}" for cell in cells)).rstrip()


def _letter(cell: Cell) -> str:
    letter = cell.outcome or "–"
    return f"{letter} ({cell.published})" if cell.agrees is False else letter


def _difference(cell: Cell) -> str:
    head, _, reason = _reason(cell).partition(": ")
    return f"{head}: {cell.outcome}, published {cell.published}; {reason}"


def _reason(cell: Cell) -> str:
    """The cell and the line that decided it, with the distance to its threshold."""
    name = f"{cell.column.name} {cell.check} ({cell.desideratum})"
    if cell.slack is None:
        return f"{name}: {cell.decided_by or 'no score'}"
    return f"{name}: {cell.decided_by}, {'passed' if cell.slack >= 0 else 'failed'} by {abs(cell.slack):.3f}"
