"""What a host does at the command line: roles, bans, erasure, and the texts of the board."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from earmark.board.records import Role
from earmark.cli.board_printing import print_result
from earmark.errors import InputError, UsageError

if TYPE_CHECKING:
    from earmark.board.storage import Store

Flags = Mapping[str, dict[str, Any]]
Action = tuple[str, Flags, Callable[[argparse.Namespace, Any], Any]]
"""What `--help` says of an action, its options, and what does it."""
NAME: Flags = {"name": {"metavar": "NAME", "help": "the user"}}


def _role(args: argparse.Namespace, store: Store) -> None:
    user = store.change_role(args.name, args.role, None)
    print_result(args, asdict(user), f"{user.name} is {user.role}")


def _ban(args: argparse.Namespace, store: Store) -> None:
    user = store.ban(args.name, None, args.reason, hide=args.hide)
    shown = "hidden" if args.hide else "kept"
    print_result(args, asdict(user), f"{user.name} is banned: tokens ended, scores {shown}")


def _unban(args: argparse.Namespace, store: Store) -> None:
    user = store.unban(args.name, None)
    print_result(args, asdict(user), f"{user.name} may send again, with a new token")


def _erase(args: argparse.Namespace, store: Store) -> None:
    if args.yes != args.name:
        raise UsageError(f"Nothing brings back what is erased; say --yes {args.name!r} if you mean it.")
    stand_in = store.erase(args.name, None, args.scores)
    remark = "Backups that were made before still hold what was erased."
    print_result(args, {"erased": stand_in, "scores": args.scores}, f"{stand_in}, scores {args.scores}", remark)


def _text(args: argparse.Namespace, store: Store) -> None:
    if args.file:
        try:
            text = sys.stdin.read() if args.file == "-" else Path(args.file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{args.file} cannot be read ({error}); name a text file in UTF-8.") from error
        store.set_host_text(args.name, text, None)
    text = store.host_texts().get(args.name, "")
    print_result(args, {args.name: text}, text)


HOST_ACTIONS: Mapping[str, Action] = {
    "role": ("give a user another role", {
        **NAME, "role": {"choices": get_args(Role), "help": "what they may do: docs/host.md has the list"},
    }, _role),
    "ban": ("end a user's tokens and take nothing from them any more", {
        **NAME, "--reason": {"metavar": "TEXT", "default": "", "help": "kept in the audit trail"},
        "--hide": {"action": "store_true", "help": "their scores leave the board until the ban is lifted"},
    }, _ban),
    "unban": ("lift a ban; hidden scores are shown again", NAME, _unban),
    "erase": ("take a user's name, documents and words off the board, for good", {
        **NAME,
        "--scores": {"choices": ("kept", "withdrawn"), "required": True, "help": "what becomes of their scores"},
        "--yes": {"metavar": "NAME", "default": "", "help": "the name again: nothing brings it back"},
    }, _erase),
    "text": ("print one of the host's texts, or write it from a file", {
        "name": {"metavar": "NAME", "choices": ("news", "footer", "imprint", "privacy"),
                 "help": "news, footer, imprint or privacy"},
        "file": {"metavar": "FILE", "nargs": "?", "help": "Markdown; - for stdin; an empty one takes the text away"},
    }, _text),
}  # fmt: skip
