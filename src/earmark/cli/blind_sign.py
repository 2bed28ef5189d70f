"""The owners of the recordings agree to a release, or to a policy: by name, in the ledger, where it stays.

Where the policy says `sign_off: before`, a release leaves only after this. NUMBER is the number of the entry; `earmark
blind audit` shows what is to be signed. The name is what somebody with access to the ledger typed: who may do that, the
host and the owners settle among themselves.
"""

from __future__ import annotations

import argparse
import sys

from earmark.cli.blind_audit import opened

EXAMPLES = """examples:
  earmark blind sign 7 --by "María Quispe" --words "Read and agreed at the council of 3 March."
  earmark blind sign 7 --by "María Quispe" --ledger postgresql://host@localhost/ledger
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_entry(parser)
    parser.add_argument("--words", metavar="TEXT", default="", help="what is to stand beside the name")


def add_entry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("number", type=int, metavar="NUMBER", help="number of the entry")
    parser.add_argument("--by", required=True, metavar="NAME", help="who speaks for the owners")
    parser.add_argument(
        "--ledger", default="ledger.sqlite3", metavar="LEDGER",
        help="SQLite file or PostgreSQL (default: ledger.sqlite3)",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="no remarks")


def run(args: argparse.Namespace) -> int:
    with opened(args) as ledger:
        entry = ledger.sign(args.number, args.by, args.words)
    if not args.quiet:
        print(f"Entry {args.number} is signed; keep this line: {entry.number}:{entry.hash}", file=sys.stderr)
    return 0
