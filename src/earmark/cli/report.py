"""Rebuild the tables, figures and HTML page of a run from what its folder and cache hold.

RUN: the folder given to `earmark run --into` or `earmark codec run --into`. Nothing is measured again.
"""

from __future__ import annotations

import argparse
import sys

from earmark.codecs.runs.folder import is_codec_run

EXAMPLES = """example:
  earmark report run
  earmark report codec-run
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument("--quiet", action="store_true", help="no remarks")


def run(args: argparse.Namespace) -> int:
    if not args.quiet:
        print("drawing maps, figures and spectrograms ...", file=sys.stderr)
    if is_codec_run(args.run):
        from earmark.report.codecs.gathering import report_codec_run

        print(report_codec_run(args.run))
    else:
        from earmark.representations.report import report_run

        print(report_run(args.run))
    return 0
