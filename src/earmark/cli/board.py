"""Look after a leaderboard: users and tokens, decisions, the papers' results, backup, restore and export.

It works on the database itself, whether `earmark serve` is running or not: the one that --database or
EARMARK_DATABASE_URL names, or the file earmark-board.sqlite3 in the folder of --data or EARMARK_BOARD.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from earmark.board.records import Role, State, Submission, User
from earmark.board.settings import Settings
from earmark.cli import options
from earmark.errors import InputError, UsageError, did_you_mean, require
from earmark.progress import progress_bar
from earmark.submissions import Provenance
from earmark.tables import aligned
from earmark.wording import counted

if TYPE_CHECKING:
    from earmark.board.storage import Store

EXAMPLES = """examples:
  earmark board user ada --team analysts        a user who may send scores; prints a token, this once
  earmark board user grace --moderator          a user who may also decide
  earmark board user lab --worker               the user of a host's `earmark blind work`
  earmark board load-published                  VocSim's and Codec-SUPERB's printed results, as the first rows
  earmark board submissions --state pending
  earmark board approve 3f9c2a7be1d04c55 --provenance reproduced
  earmark board reject 3f9c2a7be1d04c55 --reason "P@1 was measured on the training part."
  earmark board backup board.backup.gz          the whole board, while it runs
  earmark board restore board.backup.gz --database postgresql://earmark@localhost/board
  earmark board export --into tables --format parquet
  earmark board freeze --into site              the reading pages as files, to keep or to put on any web server
"""

_CREATING = ("user", "load-published", "restore")
"""With these a board begins; on a database that is not there, the others would answer for an empty one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (line, flags, _) in _ACTIONS.items():
        action = actions.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        for flag, about in flags.items():
            action.add_argument(flag, **about)
        if name == "load-published":
            options.add_repeats(action)
        action.add_argument("--database", metavar="URL", help="sqlite:///FILE or postgresql://USER@HOST/NAME")
        action.add_argument("--data", metavar="DIR", help="folder of the SQLite file (default: this folder)")
        action.add_argument("--json", action="store_true", help="print the result on stdout as JSON")
        action.add_argument("--quiet", action="store_true", help="no progress bars and no remarks")


def run(args: argparse.Namespace) -> int:
    require("sqlalchemy", "Leaderboards", "board")
    require("alembic", "Leaderboards", "board")
    settings = Settings.from_environment()
    if args.data:
        settings = replace(settings, data=Path(args.data), database_url="")
    if args.database:
        settings = replace(settings, database_url=args.database)
    if args.action == "restore":
        return _restore(args, settings.database)
    from earmark.board.storage import Store, open_database
    from earmark.databases import missing_file

    missing = None if args.action in _CREATING else missing_file(settings.database)
    if missing is not None:
        raise InputError(
            f"There is no board at {missing}; name its folder with --data, or begin one with `earmark board user NAME`."
        )
    store = Store(open_database(settings.database))
    try:
        _ACTIONS[args.action][2](args, store)
    finally:
        store.close()
    return 0


# --- users and tokens ------------------------------------------------------------------------------------------------


def _user(args: argparse.Namespace, store: Store) -> None:
    role: Role = "moderator" if args.moderator else "worker" if args.worker else args.role
    if args.moderator and args.worker:
        raise UsageError("A user is moderator or worker; make one user for each.")
    made = store.create_user(args.name, args.team, role, join=True)
    plain, _ = store.create_token(made, "made with the user")
    remark = f"{made.name} is {made.role}; the token above is shown this once and kept nowhere."
    _print(args, {**asdict(made), "token": plain}, plain, remark)


def _users(args: argparse.Namespace, store: Store) -> None:
    _table(args, store.users(), ("name", "team", "role", "created"))


def _token(args: argparse.Namespace, store: Store) -> None:
    plain, kept = store.create_token(_find_user(store, args.name), args.label)
    _print(args, {**asdict(kept), "token": plain}, plain, "The token is shown this once and kept nowhere.")


def _tokens(args: argparse.Namespace, store: Store) -> None:
    _table(args, store.tokens(_find_user(store, args.name)), ("prefix", "label", "created", "last_used", "revoked"))


def _revoke(args: argparse.Namespace, store: Store) -> None:
    user = _find_user(store, args.user)
    token = next((token for token in store.tokens(user) if token.prefix == args.prefix), None)
    if token is None:
        raise InputError(f"{user.name} has no token {args.prefix}; `earmark board tokens {user.name}` lists them.")
    store.revoke_token(token.id, user)
    _remark(args, f"Revoked {args.prefix} of {user.name}.")


def _find_user(store: Store, name: str) -> User:
    user = store.user(name)
    if user is None:
        names = [other.name for other in store.users()]
        raise InputError(f"There is no user {name!r}; `earmark board users` lists them.{did_you_mean(name, names)}")
    return user


# --- submissions -----------------------------------------------------------------------------------------------------


def _submissions(args: argparse.Namespace, store: Store) -> None:
    listed = store.submissions(state=args.state, board=args.board, limit=args.limit)
    _table(args, listed, ("id", "state", "board", "systems", "rows", "owner", "provenance", "created", "reason"))


def _approve(args: argparse.Namespace, store: Store) -> None:
    _print_state(args, store.decide(args.id, _moderator(args, store), True, args.reason, args.provenance))


def _reject(args: argparse.Namespace, store: Store) -> None:
    if not args.reason.strip():
        raise UsageError("A rejection needs a reason: say in one sentence with --reason what its author can do.")
    _print_state(args, store.decide(args.id, _moderator(args, store), False, args.reason))


def _withdraw(args: argparse.Namespace, store: Store) -> None:
    _print_state(args, store.withdraw(args.id, _moderator(args, store), args.reason))


def _moderator(args: argparse.Namespace, store: Store) -> User:
    from earmark.board.storage.accounts import PAPERS

    if args.moderator:
        return _find_user(store, args.moderator)
    moderators = [user for user in store.users() if user.moderates and user.name != PAPERS]
    if len(moderators) != 1:
        there = f"there are {counted(len(moderators), 'moderator')}" if moderators else "there is no moderator yet"
        raise UsageError(f"Say with --as who decides: {there} (`earmark board users`).")
    return moderators[0]


def _print_state(args: argparse.Namespace, sent: Submission) -> None:
    extent = f"{counted(sent.rows, 'row')} of {', '.join(sent.names)} on {sent.board}"
    _print(args, asdict(sent), f"{sent.id} is {sent.state}: {extent}")


def _events(args: argparse.Namespace, store: Store) -> None:
    _table(args, store.events(args.limit), ("at", "user", "action", "submission", "detail"))


# --- the papers, backup, restore, export -----------------------------------------------------------------------------


def _load_published(args: argparse.Namespace, store: Store) -> None:
    from earmark.board.papers import load_published

    loaded = load_published(store, with_repeats=args.with_repeats)
    lines = []
    for each in loaded:
        news = "loaded" if each.new else f"already there ({each.submission.state})"
        lines.append(f"{each.board}: {counted(each.rows, 'row')} of {counted(each.systems, 'system')}, {news}")
    _print(args, [{**each._asdict(), "submission": each.submission.id} for each in loaded], "\n".join(lines))


def _backup(args: argparse.Namespace, store: Store) -> None:
    from earmark.board.backup import backup

    target = Path(args.file)
    with progress_bar(not args.quiet, None, "backup", "rows") as progress:
        made = backup(store.engine, target, progress)
    text = f"{sum(made.tables.values()):,} rows of {len(made.tables)} tables: {target}"
    remark = "It holds the hashes of tokens and the key of the cookies: keep it where only you read it."
    _print(args, {"file": str(target), **made._asdict()}, text, remark)


def _restore(args: argparse.Namespace, database: str) -> int:
    from earmark.board.backup import restore

    with progress_bar(not args.quiet, None, "restore", "rows") as progress:
        made = restore(Path(args.file), database, progress)
    rows = f"{sum(made.tables.values()):,} rows of {len(made.tables)} tables"
    _print(args, made._asdict(), f"{rows}, as they were at {made.made}")
    return 0


def _export(args: argparse.Namespace, store: Store) -> None:
    from earmark.board.export import export

    files = [str(path) for path in export(store, Path(args.into), args.format, args.board)]
    _print(args, files, "\n".join(files) or "No board has anything to export yet.")


def _freeze(args: argparse.Namespace, store: Store) -> None:
    from earmark.board.pages.static_site import freeze

    folder = Path(args.into)
    files = freeze(store, folder, title=args.title)
    first = str(folder / "index.html")
    _print(args, {"files": files, "open": first}, f"{counted(files, 'file')} written; open {first}")


# --- printing --------------------------------------------------------------------------------------------------------


def _print(args: argparse.Namespace, plain: Any, text: str, remark: str = "") -> None:
    """The result as JSON, or as text with a remark."""
    if args.json:
        print(json.dumps(plain, ensure_ascii=False, indent=1, default=lambda moment: moment.isoformat()))
        return
    print(text)
    if remark:
        _remark(args, remark)


def _remark(args: argparse.Namespace, sentence: str) -> None:
    if not args.quiet:
        print(sentence, file=sys.stderr)


def _table(args: argparse.Namespace, records: Sequence[Any], columns: tuple[str, ...]) -> None:
    lines = [list(columns), *([_cell_text(getattr(each, column)) for column in columns] for each in records)]
    _print(args, [asdict(each) for each in records], "\n".join(aligned(lines)))


def _cell_text(cell: Any) -> str:
    if isinstance(cell, tuple):
        return cell[0] + (f" and {len(cell) - 1} more" if len(cell) > 1 else "") if cell else "–"
    if hasattr(cell, "strftime"):
        return str(cell.strftime("%Y-%m-%d %H:%M"))
    text = "".join(mark if mark.isprintable() else " " for mark in str(cell if cell is not None else ""))
    return text or "–"


Flags = Mapping[str, dict[str, Any]]
_NAME: Flags = {"name": {"metavar": "NAME", "help": "the user"}}
_LIMIT: Flags = {"--limit": {"metavar": "N", "type": int, "default": 50, "help": "the newest N (default: 50)"}}
_FILE: Flags = {"file": {"metavar": "FILE", "help": "the backup, for example board.backup.gz"}}
_DECISION: Flags = {
    "id": {"metavar": "ID", "help": "of the submission: the last part of its address"},
    "--reason": {"metavar": "TEXT", "default": "", "help": "kept beside the submission, for all to read"},
    "--as": {"dest": "moderator", "metavar": "NAME", "help": "the moderator (default: the only one)"},
}
_ACTIONS: dict[str, tuple[str, Flags, Callable[[argparse.Namespace, Any], Any]]] = {
    "user": ("make a user and print a token for them", {
        "name": {"metavar": "NAME", "help": "letters, digits, blanks and . @ + - _ '"},
        "--team": {"metavar": "NAME", "default": "", "help": "a team shares its systems; it may exist already"},
        "--moderator": {"action": "store_true", "help": "may approve, reject and withdraw for others"},
        "--worker": {"action": "store_true", "help": "measures blind: the user of `earmark blind work`"},
        "--role": {"choices": get_args(Role), "default": "author", "help": "the same by its word (default: author)"},
    }, _user),
    "users": ("everybody who may send or decide", {}, _users),
    "token": ("make another token for a user and print it", {
        **_NAME, "--label": {"metavar": "TEXT", "default": "", "help": "what it is for, to find it again"},
    }, _token),
    "tokens": ("the tokens of a user, without their secrets", _NAME, _tokens),
    "revoke": ("end a token", {
        "prefix": {"metavar": "PREFIX", "help": "the first characters of the token, as `tokens` lists them"},
        "--user": {"metavar": "NAME", "required": True, "help": "whose token it is"},
    }, _revoke),
    "submissions": ("what was sent, the newest first", {
        "--state": {"choices": get_args(State), "help": "only these"},
        "--board": {"metavar": "NAME", "help": "only of this board"}, **_LIMIT,
    }, _submissions),
    "approve": ("accept a pending submission: its scores are shown and ranked", {
        **_DECISION,
        "--provenance": {"choices": get_args(Provenance), "help": "mark it so (default: what it claims)"},
    }, _approve),
    "reject": ("refuse a pending submission, with a reason", _DECISION, _reject),
    "withdraw": ("take a submission off the board; its history stays", _DECISION, _withdraw),
    "events": ("the audit trail: who did what when", _LIMIT, _events),
    "load-published": ("the papers' printed results as the first rows; a second time changes nothing", {},
                       _load_published),
    "backup": ("write the whole board to one file, also while it runs", _FILE, _backup),
    "restore": ("put a backup into a new or empty database, SQLite or PostgreSQL", _FILE, _restore),
    "export": ("live scores, cards and submissions as CSV or Parquet", {
        "--into": {"metavar": "DIR", "required": True, "help": "folder to write; one folder in it for each board"},
        "--format": {"choices": ("csv", "parquet"), "default": "csv", "help": "(default: csv)"},
        "--board": {
            "metavar": "NAME", "action": "append", "default": [], "help": "only this board; may be repeated",
        },
    }, _export),
    "freeze": ("the reading pages as files in a folder, for any web server or none", {
        "--into": {"metavar": "DIR", "required": True, "help": "folder to write: new, or empty"},
        "--title": {"metavar": "TEXT", "default": "Earmark leaderboard", "help": "heading of the pages"},
    }, _freeze),
}  # fmt: skip
