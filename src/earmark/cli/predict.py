"""Fill the subsets that were not run: from scores on a few, what the others will probably say, with intervals.

PARTIAL: a score table of your own, such as the scores.csv of `earmark run --suite lite`, or a plain table with a line
for each model and a column for each subset (then --metric says what it measures). Values are fractions. The history
that predictions rest on are the papers' printed results (VocSim, Codec-SUPERB), the other systems of PARTIAL, and the
tables given with --history; a system is never predicted from itself, nor from another configuration of the same model.
A predicted row has the status `predicted` and its interval in low and high; in tables it stands as ~61.2.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from earmark._version import __version__
from earmark.analysis.intervals import LEVEL
from earmark.analysis.pounce import REGRESSORS
from earmark.analysis.predict import predict
from earmark.cli import options
from earmark.cli.analyze import families_of
from earmark.errors import UsageError
from earmark.places import locate
from earmark.report.analysis import filled_text
from earmark.scores import Scores

EXAMPLES = """examples:
  earmark predict run/scores.csv
  earmark predict run/scores.csv --metric P@1,GSR --out filled.csv --html filled.html
  earmark predict leaderboard.csv --metric P@1
  earmark predict mine.csv --history others.csv,last-year.csv --level 0.8
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("partial", metavar="PARTIAL", help="table with the subsets that were run")
    parser.add_argument(
        "--history", type=options.names, action="extend", default=[], metavar="LIST", help="tables of other systems"
    )
    parser.add_argument("--regressor", choices=tuple(REGRESSORS), default="ridge", help="(default: ridge)")
    options.add(
        parser,
        ("--metric", list, "only these (default: all)"),
        ("--level", LEVEL, "share of the truth that the intervals hold"),
        ("--families", "FILE", "CSV with columns model,family: which systems are related"),
        ("--no-published", True, "leave the papers' results out of the history"),
        ("--html", "FILE", "write a page in which predicted cells are marked"),
    )
    options.add_repeats(parser)
    parser.set_defaults(metric=[], families="none")
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    options.check_out(args)
    if not 0 < args.level < 1:
        raise UsageError(f"--level {args.level:g} is not between 0 and 1; 0.9 gives 90 % intervals.")
    families = families_of(args.families)
    filled = predict(
        args.partial, args.history, metric=args.metric, level=args.level, regressor=args.regressor,
        printed=not args.no_published, with_repeats=args.with_repeats,
        families=families if isinstance(families, dict) else None,
    )  # fmt: skip
    if args.html:
        _report(filled, locate(args.html), str(args.partial))
    options.deliver(args, filled, filled_text)
    if not args.quiet:
        for note in filled.notes:
            print(f"note: {note}", file=sys.stderr)
    return 0 if any(row.status == "predicted" for row in filled) else 1


def _report(filled: Scores, path: Path, source: str) -> None:
    from earmark.report.html import ReportData, write_report

    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{path}: the report is an HTML file; give a name that ends in .html.")
    title = f"Measured and predicted: {source}"
    write_report(ReportData(title=title, scores=filled, version=__version__, notes=filled.notes), path)
