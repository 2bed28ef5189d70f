"""Take a package back: its job ends, the board deletes the file, and nothing is released.

What has not begun does not count for the quota of the day. Figures that are on the board already are withdrawn with
their submission, on its page; that they were there stays on record.
"""

from __future__ import annotations

import argparse
import json

from earmark.cli.blind_status import sentence
from earmark.cli.board_access import add_access, client_of

EXAMPLES = """examples:
  earmark blind withdraw 8d31c2a09b74e655 --to https://board.example.org
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="as `earmark blind status` lists it")
    add_access(parser)
    parser.add_argument("--json", action="store_true", help="print what the board says as JSON")
    parser.add_argument("--quiet", action="store_true", help="no remarks")


def run(args: argparse.Namespace) -> int:
    job = client_of(args).withdraw_job(args.job)
    print(json.dumps(job, ensure_ascii=False) if args.json else sentence(job))
    return 0
