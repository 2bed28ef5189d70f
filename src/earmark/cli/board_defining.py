"""What a board is, said at the command line: its definition, and another name for it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from earmark.cli.board_hosts import Action, Flags
from earmark.cli.board_printing import print_remark, print_result
from earmark.cli.board_users import moderator_of
from earmark.errors import InputError, UsageError, did_you_mean
from earmark.wording import counted, listed

if TYPE_CHECKING:
    from earmark.board.storage import Store
    from earmark.board.storage.definitions import Version
    from earmark.definitions import Definition


def _define(args: argparse.Namespace, store: Store) -> None:
    from earmark.definitions import read_definition, to_plain, to_yaml

    if args.show:
        held = _held(store, args.show)
        print_result(args, to_plain(held.definition), to_yaml(held.definition).rstrip("\n"))
        return
    if args.add_subset or args.add_metric:
        if not args.file:
            raise UsageError("Name the board: `earmark board define BOARD --add-subset NAME`.")
        added = store.add_to_definition(
            args.file, moderator_of(args, store), subsets=tuple(args.add_subset), metrics=tuple(args.add_metric)
        )
        _print_version(args, added)
        return
    if not args.file:
        raise UsageError("Name the YAML file of the definition, or print one with --show BOARD.")
    try:
        given = read_definition(Path(args.file).read_text("utf-8"), args.file)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{args.file} cannot be read ({error}); it must be a YAML file.") from error
    _print_changes(args, store, given)
    if not args.check:
        _print_version(args, store.define(given, moderator_of(args, store), args.note))


def _held(store: Store, board: str) -> Version:
    version = store.definition(board)
    if version is None:
        names = store.boards()
        there = listed(names) or "none yet"
        raise InputError(f'There is no board "{board}"; there are {there}.{did_you_mean(board, names)}')
    return version


def _print_changes(args: argparse.Namespace, store: Store, given: Definition) -> None:
    """What the definition would change in the ranks of the board, before it does."""
    from earmark.board.boards.changes import outcome
    from earmark.board.boards.snapshots import Snapshots

    snapshots = Snapshots(store)
    if given.name not in snapshots.boards():
        sentence = f"{given.name} is a new board. {given.rule}"
    else:
        found = outcome(snapshots.current(given.name), given)
        sentence = (
            f"{given.name}: ranked by {found.after}; {counted(found.lost, 'system')} would lose their rank, "
            f"{found.gained} would gain one, {found.ranked} would be ranked."
        )
    if given.closes and given.closes < datetime.now(UTC).date():
        sentence += f" It closed on {given.closes} and takes no scores."
    if args.check:
        print_result(args, {"board": given.name, "rule": given.rule}, sentence)
    else:
        print_remark(args, sentence)


def _rename(args: argparse.Namespace, store: Store) -> None:
    _print_version(args, store.rename_board(args.board, args.name, moderator_of(args, store)))


def _print_version(args: argparse.Namespace, version: Version) -> None:
    plain = {"board": version.board, "version": version.version, "note": version.note}
    print_result(args, plain, f"{version.board}: version {version.version} of its definition, {version.note}")


_AS: Flags = {"--as": {"dest": "moderator", "metavar": "NAME", "help": "the moderator (default: the only one)"}}
DEFINING_ACTIONS: Mapping[str, Action] = {
    "define": ("say what a board is: a YAML file with its texts, metrics, subsets, groups and ranking rule", {
        "file": {"metavar": "FILE", "nargs": "?", "help": "the definition; with --add-… the name of a board"},
        "--show": {"metavar": "BOARD", "help": "print the definition that holds, as YAML, and change nothing"},
        "--check": {"action": "store_true", "help": "say what it would change, and change nothing"},
        "--add-subset": {"metavar": "NAME", "action": "append", "default": [], "help": "rank a subset from now on"},
        "--add-metric": {"metavar": "NAME", "action": "append", "default": [], "help": "rank by a metric from now on"},
        "--note": {"metavar": "TEXT", "default": "", "help": "what changes and why, kept with the version"}, **_AS,
    }, _define),
    "rename": ("give a board another name; its old address leads to the new one", {
        "board": {"metavar": "BOARD", "help": "its name now"}, "name": {"metavar": "NAME", "help": "its new name"},
        **_AS,
    }, _rename),
}  # fmt: skip
