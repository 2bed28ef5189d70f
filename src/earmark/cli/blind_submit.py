"""Send a package to a board for blind evaluation: checked here first, then queued there.

PACKAGE is a folder with a submission.yaml, or a zip archive of one (`earmark blind new` writes an example, `earmark
blind check` rehearses it in the sandbox). What can be refused without running anything is refused here, before anything
is sent. The board answers with a job; `earmark blind status JOB` or its page says what becomes of it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from earmark.cli.blind_status import sentence, watch
from earmark.cli.board_access import add_access, client_of, split_page
from earmark.errors import UsageError
from earmark.tables import plain

EXAMPLES = """examples:
  earmark blind submit my-package --to https://board.example.org --board vocsim
  earmark blind submit my-package.zip --to board.example.org --board vocsim --wait
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("package", metavar="PACKAGE", help="a folder with submission.yaml, or a zip archive of one")
    add_access(parser)
    parser.add_argument("--board", metavar="NAME", help="which board's blind sets")
    parser.add_argument("--wait", action="store_true", help="stay until there is a result")
    parser.add_argument("--json", action="store_true", help="print the job as JSON")
    parser.add_argument("--quiet", action="store_true", help="no remarks and no progress")


def run(args: argparse.Namespace) -> int:
    from earmark.blind.packages import PackageRefused, archive, inspect

    args.to, args.board = split_page(args.to, args.board or "", quiet=args.quiet)
    if not args.board:
        raise UsageError("Say which board's blind sets: --board NAME, or give the address of its page.")
    client = client_of(args)
    path = Path(args.package)
    if not args.quiet:
        print(f"looking at {path}", file=sys.stderr)
    try:
        package = inspect(path)
    except PackageRefused as refusal:
        for problem in refusal.problems:
            print(f"earmark: {plain(problem, 1000)}", file=sys.stderr)
        print("earmark: nothing was sent.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="earmark-blind-") as folder:
        if path.is_dir():
            path = archive(path, Path(folder) / "package.zip")
        if not args.quiet:
            print(f"sending {package.entry} ({path.stat().st_size / 1e6:.1f} MB)", file=sys.stderr)
        job = client.send_package(path, args.board, progress=not args.quiet)
    if args.wait:
        job = watch(client, str(job["id"]), quiet=args.quiet or args.json, sleep=time.sleep)
    print(json.dumps(job, ensure_ascii=False) if args.json else sentence(job))
    return 1 if job["state"] in ("failed", "refused") else 0
