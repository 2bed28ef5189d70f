"""The owners of the recordings take a release back, or stop one that has not left.

The worker tells the board at its next turn. Later releases under the same entry, which may repeat its figures, are
withdrawn with it, and nothing more is released under that entry. Everything stays in the ledger. Name and words are
part of its public entry: leave out what nobody else should read.
"""

from __future__ import annotations

import argparse
import sys

from earmark.cli.blind_audit import opened
from earmark.cli.blind_sign import add_entry

EXAMPLES = """examples:
  earmark blind object 7 --by "María Quispe" --words "A name can be heard in one of the recordings."
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_entry(parser)
    parser.add_argument("--words", metavar="TEXT", required=True, help="why; it is public")


def run(args: argparse.Namespace) -> int:
    with opened(args) as ledger:
        objections = ledger.object_to(args.number, args.by, args.words)
    if not args.quiet:
        taken = ", ".join(str(entry.about) for entry in objections)
        line = f"keep this line: {objections[-1].number}:{objections[-1].hash}" if objections else ""
        print(f"Taken back: {taken}; {line}" if taken else "It was taken back before.", file=sys.stderr)
    return 0
