"""The address of a board and a token for it, as the commands that talk to one take them."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from earmark.errors import InputError, UsageError

if TYPE_CHECKING:
    from earmark.submissions.client import BoardClient


_PAGE = re.compile(
    r"(?<![:/])/(?:b/(?P<board>[^/]+)|submissions/|blind(?:/|$)|(?:submit|mine|sign-in|sign-up|how-to-submit)$).*"
)


def add_access(parser: argparse._ActionsContainer, *, required: bool = True) -> None:
    parser.add_argument("--to", metavar="URL", required=required, help="address of the board, or of a page of it")
    parser.add_argument("--token", metavar="TOKEN", help="better set EARMARK_TOKEN: options are seen by other users")
    parser.add_argument("--token-file", metavar="FILE", help="a file that holds the token and nothing else")


def split_page(text: str, board: str = "", *, quiet: bool = False) -> tuple[str, str]:
    """The address without the page that was copied with it, and the board: the one whose page it is, or as given."""
    from earmark.submissions.client import checked_address

    given = checked_address(text)
    page = _PAGE.search(given)
    if page is None:
        return text, board
    address, board = given[: page.start()], board or page["board"] or ""
    if not quiet:
        taken = f" and the board {board}" if board and board == page["board"] else ""
        print(f"{given} is a page of a board: taken as {address}{taken}", file=sys.stderr)
    return address, board


def client_of(args: argparse.Namespace, *, needed: bool = True) -> BoardClient:
    """What talks to the board of --to. The first time it has to wait for the board, it says so."""
    from earmark.submissions.client import BoardClient, checked_address, sends_in_the_open

    args.to, _ = split_page(args.to, quiet=args.quiet)
    token = _token(args)
    if not token and needed:
        raise UsageError(
            "Sending needs a token: set EARMARK_TOKEN to the one that the host of the board gave you, or make one at "
            f"{checked_address(args.to)}/sign-up where registration is open."
        )
    waiting = [] if args.quiet else ["the board does not answer yet; trying for a minute …"]

    def wait(seconds: float) -> None:
        if waiting:
            print(waiting.pop(), file=sys.stderr)
        time.sleep(seconds)

    client = BoardClient(args.to, token, sleep=wait)
    if token and sends_in_the_open(client.address) and not args.quiet:
        print(f"{client.address} is not encrypted: others on the way can read your token", file=sys.stderr)
    return client


def _token(args: argparse.Namespace) -> str:
    if args.token:
        return str(args.token).strip()
    if file := getattr(args, "token_file", None):
        try:
            if os.name == "posix" and Path(file).stat().st_mode & 0o077 and not args.quiet:
                print(f"others on this machine may read {file}: chmod 600 {file}", file=sys.stderr)
            return Path(file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file} cannot be read ({error}); it must hold the token.") from error
    return os.environ.get("EARMARK_TOKEN", "").strip()
