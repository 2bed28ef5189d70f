"""Compare the settings of finished codec runs: what is kept against the rate that was counted.

RUN: folders of `earmark codec run` on the same sounds. Printed are every setting with its rate and score, who is on the
front (no other setting is better at the same rate or lower), how much more rate one family needs than another for the
same score (BD-rate), the steps to a higher rate that do not improve the score, and settings of different families at
like rates, compared clip by clip.
"""

from __future__ import annotations

import argparse

from earmark.cli import options
from earmark.places import locate

EXAMPLES = """examples:
  earmark codec compare run
  earmark codec compare run --metrics overall,pesq --anchor opus
  earmark codec compare mine theirs --html both.html --figure curves.png
  earmark codec compare run --json
"""

DEFAULT = ("overall", "pesq", "stoi", "mel_distance")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help="folder of a codec run")
    options.add(
        parser,
        ("--metrics", list, f"metrics to compare by (default: {','.join(DEFAULT)}); all: every one that can be"),
        ("--anchor", "FAMILY", "BD-rates against this family alone (default: every pair)"),
        ("--no-differences", True, "leave out the comparison clip by clip"),
        ("--figure", "FILE", "draw the curves: .png, .svg or .pdf"),
        ("--html", "FILE", "write the page of all runs together"),
    )
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    from earmark.report.codecs.finished import comparison_rows, differences, open_runs
    from earmark.report.codecs.gathering import gather
    from earmark.report.codecs.page import write_codecs
    from earmark.report.codecs.text import comparison_text
    from earmark.report.figures import save
    from earmark.report.figures.codecs import rate_distortion

    options.check_out(args, "figure", "html")
    runs = open_runs(args.runs)
    wanted = None if args.metrics == ["all"] else args.metrics or DEFAULT
    curves = runs.compared(None if args.metrics is None else wanted, args.anchor)
    if args.metrics is None:
        curves = [comparison for comparison in curves if comparison.metric in DEFAULT]
    pairs = [] if args.no_differences else differences(runs, wanted)
    suite = runs.scores.rows[0].suite if runs.scores.rows else "codec"
    options.deliver(args, comparison_rows(curves, pairs, suite), lambda _: comparison_text(curves, pairs))
    written = options.write_files(args, {
        "figure": lambda path: save(rate_distortion(curves), path),
        "html": lambda path: write_codecs(gather(args.runs), locate(path)),
    })  # fmt: skip
    return 0 if written and any(comparison.points for comparison in curves) else 1
