"""Read and verify the ledger of blind evaluation: what was released when, to whom, and who signed it.

LEDGER is the file that the worker writes, or the address of a PostgreSQL database. The page holds no exact value, so
that it can be given to the owners of the recordings; --exact adds them for the host. --verify finds every change: of an
entry, of its place, of the private values; and it computes every release anew from its exact scores and its policy.
That the end was cut off is found with the line that an earlier page asked its readers to keep: --last NUMBER:HASH.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from earmark.errors import UsageError, require

if TYPE_CHECKING:
    from earmark.blind.ledger import Ledger

EXAMPLES = """examples:
  earmark blind audit ledger.sqlite3 --out audit.md
  earmark blind audit ledger.sqlite3 --verify --last 41:9f2c66e0a1b7
  earmark blind audit ledger.sqlite3 --format csv --out releases.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_ledger(parser)
    parser.add_argument("--verify", action="store_true", help="say what was changed, and end with status 1 if anything")
    parser.add_argument("--last", metavar="NUMBER:HASH", help="with --verify: an entry that must still be there")
    parser.add_argument("--format", choices=("markdown", "csv", "json"), default="markdown", help="of the page")
    parser.add_argument("--exact", action="store_true", help="exact values beside released ones: for the host alone")
    parser.add_argument("--out", metavar="FILE", help="write the page there (default: stdout)")
    parser.add_argument("--quiet", action="store_true", help="no remarks")


def add_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "ledger", nargs="?", default="ledger.sqlite3", metavar="LEDGER",
        help="SQLite file or PostgreSQL (default: ledger.sqlite3)",
    )  # fmt: skip


def opened(args: argparse.Namespace) -> contextlib.closing[Ledger]:
    """The ledger that a command names; one that is not there is an error."""
    require("sqlalchemy", "Ledgers of blind evaluation", "board")
    from earmark.blind.ledger import Ledger

    return contextlib.closing(Ledger(args.ledger, create=False))


def run(args: argparse.Namespace) -> int:
    if args.last and not args.verify:
        raise UsageError("--last is an entry to look for: give --verify as well.")
    if args.exact and args.format != "markdown":
        raise UsageError("--exact goes with the page in Markdown: leave out --format.")
    with opened(args) as ledger:
        if args.verify:
            return _verify(args, ledger)
        text = _page(args, ledger)
    if args.out:
        from earmark.atomic import write_whole

        write_whole(Path(args.out), text.encode())
    else:
        print(text, end="")
    return 0


def _page(args: argparse.Namespace, ledger: Ledger) -> str:
    from earmark.blind.audit_page import as_csv, as_markdown

    entries = ledger.entries()
    if args.format == "csv":
        return as_csv(entries)
    if args.format == "json":
        return json.dumps([entry.plain for entry in entries], ensure_ascii=False, indent=1) + "\n"
    return as_markdown(entries, ledger.exact if args.exact else None)


def _verify(args: argparse.Namespace, ledger: Ledger) -> int:
    problems = ledger.verify(_kept_line(args.last) if args.last else None)
    for problem in problems:
        print(problem)
    if problems:
        print("The ledger is not as it was written; see the incident procedure.", file=sys.stderr)
        return 1
    entries = ledger.entries()
    print(f"{len(entries)} entries, unchanged; every release follows from its policy.")
    if entries and not args.quiet:
        print(f"keep this line: {entries[-1].number}:{entries[-1].hash}", file=sys.stderr)
    return 0


def _kept_line(text: str) -> tuple[int, str]:
    number, colon, seal = text.strip().partition(":")
    seal = seal.strip().lower()
    if not colon or not number.isdecimal() or len(seal) < 8 or not set(seal) <= set("0123456789abcdef"):
        raise UsageError(f"--last {text}: give the number and at least 8 digits of the hash, such as 41:9f2c66e0a1b7.")
    return int(number), seal
