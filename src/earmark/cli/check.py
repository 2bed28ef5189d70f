"""Run the public conformance suite on an extractor and print a table to paste in a pull request.

EXTRACTOR is an import path such as mypackage.mymodule:MyModel (the current folder counts), a model in another format
such as onnx:model.onnx, or a registered name. The exit code is 1 if a check fails; warnings do not count, and checks
that an earlier failure leaves nothing to find are skipped.
"""

from __future__ import annotations

import argparse
import json
import sys

from earmark.extractors.catalogue import open_extractor
from earmark.extractors.conformance import check_extractor, table

EXAMPLES = """examples:
  earmark check mypackage.mymodule:MyModel
  earmark check onnx:model.onnx --quiet
  earmark check logmel --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("extractor", metavar="EXTRACTOR", help="import path, format:file or registered name")
    parser.add_argument("--json", action="store_true", help="print the findings on stdout as a JSON array")
    parser.add_argument("--quiet", action="store_true", help="print only warnings and failures")


def run(args: argparse.Namespace) -> int:
    findings = check_extractor(open_extractor(args.extractor))
    shown = [finding for finding in findings if finding.status in ("warn", "fail")] if args.quiet else findings
    if args.json:
        sys.stdout.write(json.dumps([finding._asdict() for finding in shown], indent=1) + "\n")
    elif shown:
        sys.stdout.write(table(shown, f"earmark check {args.extractor}"))
    return int(any(finding.status == "fail" for finding in findings))
