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

EXAMPLES = """example:
  earmark report run
  earmark report run --metrics P@1,P@5,GSR --no-lift
  earmark report codec-run
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder")
    options.add(
        parser,
        ("--metrics", list, "columns of RUN/tables and their order (default: every metric)"),
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
        from earmark.report.codecs.gathering import report_codec_run

        print(report_codec_run(args.run))
    else:
        from earmark.representations.report import report_run

        print(report_run(args.run, metrics=args.metrics, interval=not args.no_interval, lift=not args.no_lift))
    return 0
