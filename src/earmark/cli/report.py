"""Rebuild the tables, figures and HTML page of a run from what its folder and cache hold.

RUN: the folder given to `earmark run --into` or `earmark codec run --into`. Nothing is measured again. The tables of
each subset lie in RUN/tables as Markdown and LaTeX that fits a page; `earmark tables RUN` makes others, with means over
subsets.
"""

from __future__ import annotations

import argparse
import sys

from earmark.cli import options
from earmark.codecs.runs.folder import is_codec_run
from earmark.errors import UsageError
from earmark.report import TableOptions

EXAMPLES = """example:
  earmark report run
  earmark report run --system "logmel mean_time"
  earmark report run --metrics P@1,P@5,GSR --no-lift
  earmark report codec-run
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder")
    options.add(
        parser,
        ("--system", list, "systems to look at closely, in place of the best of each subset"),
        ("--metrics", list, "columns of RUN/tables and their order, or all (default: P@1, GSR and P@5)"),
        ("--no-interval", True, "tables without intervals"),
        ("--no-lift", True, "tables without the lift over chance"),
        ("--quiet", True, "no remarks"),
    )


def run(args: argparse.Namespace) -> int:
    if not args.quiet:
        print("drawing maps, figures and spectrograms ...", file=sys.stderr)
    if is_codec_run(args.run):
        if args.metrics or args.no_interval or args.no_lift:
            raise UsageError(f"{args.run} is a codec run, which has no folder of tables: `earmark tables` makes them.")
        if args.system:
            raise UsageError(f"{args.run} is a codec run: its report looks at every codec, so leave --system out.")
        from earmark.report.codecs.gathering import report_codec_run

        print(report_codec_run(args.run))
    else:
        from earmark.representations.report import report_run

        shown: TableOptions = {"metrics": args.metrics, "interval": not args.no_interval, "lift": not args.no_lift}
        print(report_run(args.run, system=args.system or (), **shown))
    return 0
