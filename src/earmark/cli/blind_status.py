"""What became of packages that were sent for blind evaluation: all of yours, or one with everything known of it.

A moderator of the board sees every job; a worker's token, those that wait. States: queued (with its place), running
(with what is being done, in tenths), held (measured; its figures wait for their time, or for the owners' word),
released, refused (the package was not fit), failed (with the reason), withdrawn.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from earmark.cli.board_access import add_access, client_of
from earmark.tables import aligned, plain

if TYPE_CHECKING:
    from earmark.submissions.client import BoardClient

EXAMPLES = """examples:
  earmark blind status --to https://board.example.org
  earmark blind status 8d31c2a09b74e655 --to https://board.example.org --wait
"""

ENDED = ("released", "refused", "failed", "withdrawn")
_PAUSE = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", nargs="?", metavar="JOB", help="one job (default: all of yours)")
    add_access(parser)
    parser.add_argument("--wait", action="store_true", help="stay until the job has ended")
    parser.add_argument("--json", action="store_true", help="print what the board says as JSON")
    parser.add_argument("--quiet", action="store_true", help="no remarks")


def run(args: argparse.Namespace) -> int:
    import time

    client = client_of(args)
    if not args.job:
        jobs = client.jobs()
        print(json.dumps(jobs, ensure_ascii=False) if args.json else _table(jobs))
        return 0
    job = watch(client, args.job, quiet=args.quiet, sleep=time.sleep) if args.wait else client.job(args.job)
    print(json.dumps(job, ensure_ascii=False) if args.json else _whole(job))
    return 0


def watch(
    client: BoardClient, job: str, *, quiet: bool, sleep: Callable[[float], None]
) -> dict[str, Any]:  # fmt: skip
    """Ask until a job has ended; each new state is a line on stderr."""
    said = ""
    while True:
        known = client.job(job)
        if not quiet and (now := sentence(known)) != said:
            print(said := now, file=sys.stderr, flush=True)
        if known["state"] in ENDED:
            return known
        sleep(_PAUSE)


def sentence(job: Mapping[str, Any]) -> str:
    """A job in one line."""
    return plain(f"{job['id']}  {job['entry']}: {job['sentence']}", 500)


def _table(jobs: list[dict[str, Any]]) -> str:
    if not jobs:
        return "No package was sent with this token yet."
    lines = [["job", "board", "entry", "sent", "state"]]
    lines += [[plain(str(job[name]), 200) for name in ("id", "board", "entry", "created", "sentence")] for job in jobs]
    return "\n".join(aligned(lines))


def _whole(job: Mapping[str, Any]) -> str:
    text = sentence(job)
    if job.get("message") and str(job["message"]) not in text:
        text += f"\n{plain(str(job['message']), 2000)}"
    if job.get("log"):
        text += "\n\neverything that is wrong:\n"
        text += "\n".join(f"  {plain(line, 300)}" for line in str(job["log"]).splitlines()[:200])
    if job.get("release"):
        text += f"\n{plain(str(job['release']), 500)}"
    return text
