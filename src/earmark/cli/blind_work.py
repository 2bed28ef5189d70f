"""Take jobs from a board, measure them beside the recordings, and send what the policy lets out.

SETS is the file that `earmark blind prepare` wrote: the sets, the policy, the limits of the sandbox. The worker only
asks the board; the recordings' network needs no way in. It may be stopped or killed at any moment and started again:
no job is lost, none is decided twice. Several workers share the jobs of a board when each has a --folder of its own and
all have the same --ledger.

Everything of the participant's runs in a sealed cell. Where this machine lacks a part of it, the worker does not start
and says which; --allow PART starts it all the same.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import signal
import sys
import threading
from pathlib import Path

from earmark.cli.board_access import add_access, client_of
from earmark.errors import UsageError, did_you_mean, require

EXAMPLES = """examples:
  earmark blind work sets.yaml --to https://board.example.org --token-file worker.token
  earmark blind work sets.yaml --to http://127.0.0.1:8000 --until-empty
  earmark blind work sets.yaml --to https://board.example.org --ledger postgresql://host@localhost/ledger --folder two
  earmark blind work sets.yaml --to http://127.0.0.1:8000 --parts        what this machine has of the sandbox
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sets", metavar="SETS", help="the file that `earmark blind prepare` wrote")
    add_access(parser)
    parser.add_argument(
        "--ledger", metavar="URL", help="SQLite file or PostgreSQL (default: ledger.sqlite3 beside SETS)"
    )
    parser.add_argument("--folder", metavar="FOLDER", help="packages at work and logs (default: worker beside SETS)")
    parser.add_argument("--poll", type=float, default=10.0, metavar="S", help="pause when nothing waits (default: 10)")
    parser.add_argument("--until-empty", action="store_true", help="end when nothing waits, instead of staying")
    parser.add_argument(
        "--allow", action="append", default=[], metavar="PART", help="start without this part of the sandbox"
    )
    parser.add_argument(
        "--no-progress",
        action="store_true",
        help="do not tell participants how far a job is (else every 5 minutes)",
    )
    parser.add_argument("--parts", action="store_true", help="say which parts this machine lacks, and end")
    parser.add_argument("--quiet", action="store_true", help="log warnings only")


def run(args: argparse.Namespace) -> int:
    from earmark.isolation import PARTS, missing_parts

    if unknown := [part for part in args.allow if part not in PARTS]:
        hint = did_you_mean(unknown[0], PARTS)
        raise UsageError(f"--allow {unknown[0]}: the parts of the sandbox are {', '.join(PARTS)}.{hint}")
    missing = missing_parts()
    if args.parts:
        for part, why in missing.items():
            print(f"{part}: {why}")
        if not missing:
            print("This machine has every part of the sandbox.")
        return 1 if missing else 0
    lacking = {part: why for part, why in missing.items() if part not in args.allow}
    if lacking:
        told = "; ".join(f"{part} ({why})" for part, why in lacking.items())
        flags = " ".join(f"--allow {part}" for part in lacking)
        raise UsageError(f"The sandbox lacks {told}. Mend it, or start all the same with {flags} if you answer for it.")
    if args.poll <= 0:
        raise UsageError(f"--poll {args.poll:g}: the pause must be positive.")
    require("sqlalchemy", "Ledgers of blind evaluation", "board")
    from earmark.blind.ledger import Ledger
    from earmark.blind.sets import read_sets
    from earmark.blind.worker import Worker, alone_in

    logging.basicConfig(
        stream=sys.stderr, format="%(asctime)s %(message)s", datefmt="%H:%M:%S",
        level=logging.WARNING if args.quiet else logging.INFO,
    )  # fmt: skip
    sets = Path(args.sets)
    folder = Path(args.folder) if args.folder else sets.parent / "worker"
    with alone_in(folder), contextlib.closing(Ledger(args.ledger or str(sets.parent / "ledger.sqlite3"))) as ledger:
        worker = Worker(read_sets(sets), client_of(args), ledger, folder, frozenset(args.allow))
        if args.no_progress:
            worker.progress_seconds = 0.0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: _stop(worker.stop))
        logging.getLogger("earmark.blind").info("%s takes jobs of %s", worker.name, args.to)
        worker.run(args.poll, until_empty=args.until_empty)
    return 0


def _stop(stop: threading.Event) -> None:
    """Stop after the clip at hand; a second signal does not wait."""
    if stop.is_set():
        raise KeyboardInterrupt
    stop.set()
