"""Look after a leaderboard: users and tokens, decisions, the papers' results, backup, restore and export.

It works on the database itself, whether `earmark serve` is running or not: the one that --database or
EARMARK_DATABASE_URL names, or the file earmark-board.sqlite3 in the folder of --data or EARMARK_BOARD.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from earmark.board.records import Submission, User
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
_STATES = ("pending", "accepted", "rejected", "withdrawn")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (line, add, _) in _ACTIONS.items():
        action = actions.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        add(action)
        action.add_argument("--database", metavar="URL", help="sqlite:///FILE or postgresql://USER@HOST/NAME")
        action.add_argument("--data", metavar="DIR", help="folder of the SQLite file (default: this folder)")
        action.add_argument("--json", action="store_true", help="print the result on stdout as JSON")
        action.add_argument("--quiet", action="store_true", help="no progress bars and no remarks")


def run(args: argparse.Namespace) -> int:
    require("sqlalchemy", "Leaderboards", "board")
    require("alembic", "Leaderboards", "board")
    if args.action == "restore":
        return _restore(args)
    from earmark.board.storage import Store, open_database
    from earmark.board.storage.database import missing_file

    database = _database(args)
    missing = None if args.action in _CREATING else missing_file(database)
    if missing is not None:
        raise InputError(
            f"There is no board at {missing}; name its folder with --data, or begin one with `earmark board user NAME`."
        )
    store = Store(open_database(database))
    try:
        return _ACTIONS[args.action][2](args, store)
    finally:
        store.close()


def _database(args: argparse.Namespace) -> str:
    settings = Settings.from_environment()
    if args.data:
        settings = replace(settings, data=Path(args.data), database_url="")
    if args.database:
        settings = replace(settings, database_url=args.database)
    return settings.database


# --- options of each action ------------------------------------------------------------------------------------------


def _add_none(parser: argparse.ArgumentParser) -> None:
    pass


def _add_user(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="letters, digits, blanks and . @ + - _ '")
    parser.add_argument("--team", metavar="NAME", default="", help="a team shares its systems; it may exist already")
    parser.add_argument("--moderator", action="store_true", help="may approve, reject and withdraw for others")


def _add_token(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the user")
    parser.add_argument("--label", metavar="TEXT", default="", help="what it is for, to find it again")


def _add_tokens(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the user")


def _add_revoke(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prefix", metavar="PREFIX", help="the first characters of the token, as `tokens` lists them")
    parser.add_argument("--user", metavar="NAME", required=True, help="whose token it is")


def _add_submissions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", choices=_STATES, help="only these")
    parser.add_argument("--board", metavar="NAME", help="only of this board")
    parser.add_argument("--limit", metavar="N", type=int, default=50, help="the newest N (default: 50)")


def _add_decision(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="of the submission: the last part of its address")
    parser.add_argument("--reason", metavar="TEXT", default="", help="kept beside the submission, for all to read")
    parser.add_argument("--as", dest="moderator", metavar="NAME", help="the moderator (default: the only one)")


def _add_approve(parser: argparse.ArgumentParser) -> None:
    _add_decision(parser)
    parser.add_argument("--provenance", choices=get_args(Provenance), help="mark it so (default: what it claims)")


def _add_events(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", metavar="N", type=int, default=50, help="the newest N (default: 50)")


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the backup, for example board.backup.gz")


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--into", metavar="DIR", required=True, help="folder to write; one folder in it for each board")
    parser.add_argument("--format", choices=("csv", "parquet"), default="csv", help="(default: csv)")
    parser.add_argument("--board", metavar="NAME", action="append", default=[], help="only this board; may be repeated")


def _add_freeze(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--into", metavar="DIR", required=True, help="folder to write: new, or empty")
    parser.add_argument("--title", metavar="TEXT", default="Earmark leaderboard", help="heading of the pages")


# --- users and tokens ------------------------------------------------------------------------------------------------


def _user(args: argparse.Namespace, store: Store) -> int:
    made = store.create_user(args.name, args.team, "moderator" if args.moderator else "author", join=True)
    plain, _ = store.create_token(made, "made with the user")
    if args.json:
        print(_json({**asdict(made), "token": plain}))
    else:
        print(plain)
        _remark(args, f"{made.name} is {made.role}; the token above is shown this once and kept nowhere.")
    return 0


def _users(args: argparse.Namespace, store: Store) -> int:
    found = store.users()
    _table(args, found, ("name", "team", "role", "created"))
    return 0


def _token(args: argparse.Namespace, store: Store) -> int:
    plain, kept = store.create_token(_named(store, args.name), args.label)
    if args.json:
        print(_json({**asdict(kept), "token": plain}))
    else:
        print(plain)
        _remark(args, "The token is shown this once and kept nowhere.")
    return 0


def _tokens(args: argparse.Namespace, store: Store) -> int:
    _table(args, store.tokens(_named(store, args.name)), ("prefix", "label", "created", "last_used", "revoked"))
    return 0


def _revoke(args: argparse.Namespace, store: Store) -> int:
    user = _named(store, args.user)
    found = [token for token in store.tokens(user) if token.prefix == args.prefix]
    if not found:
        raise InputError(f"{user.name} has no token {args.prefix}; `earmark board tokens {user.name}` lists them.")
    store.revoke_token(found[0].id, user)
    _remark(args, f"Revoked {args.prefix} of {user.name}.")
    return 0


def _named(store: Store, name: str) -> User:
    user = store.user(name)
    if user is None:
        names = [one.name for one in store.users()]
        raise InputError(f"There is no user {name!r}; `earmark board users` lists them.{did_you_mean(name, names)}")
    return user


# --- submissions -----------------------------------------------------------------------------------------------------


def _submissions(args: argparse.Namespace, store: Store) -> int:
    found = store.submissions(state=args.state, board=args.board, limit=args.limit)
    _table(args, found, ("id", "state", "board", "systems", "rows", "owner", "provenance", "created", "reason"))
    return 0


def _approve(args: argparse.Namespace, store: Store) -> int:
    moderator = _moderator(args, store)
    return _decided(args, store.decide(args.id, moderator, True, args.reason, args.provenance))


def _reject(args: argparse.Namespace, store: Store) -> int:
    if not args.reason.strip():
        raise UsageError("A rejection needs a reason: say in one sentence with --reason what its author can do.")
    return _decided(args, store.decide(args.id, _moderator(args, store), False, args.reason))


def _withdraw(args: argparse.Namespace, store: Store) -> int:
    return _decided(args, store.withdraw(args.id, _moderator(args, store), args.reason))


def _moderator(args: argparse.Namespace, store: Store) -> User:
    from earmark.board.storage.accounts import PAPERS

    if args.moderator:
        return _named(store, args.moderator)
    found = [user for user in store.users() if user.role == "moderator" and user.name != PAPERS]
    if len(found) != 1:
        there = f"there are {counted(len(found), 'moderator')}" if found else "there is no moderator yet"
        raise UsageError(f"Say with --as who decides: {there} (`earmark board users`).")
    return found[0]


def _decided(args: argparse.Namespace, sent: Submission) -> int:
    if args.json:
        print(_json(asdict(sent)))
    else:
        print(f"{sent.id} is {sent.state}: {counted(sent.rows, 'row')} of {', '.join(sent.names)} on {sent.board}")
    return 0


def _events(args: argparse.Namespace, store: Store) -> int:
    _table(args, store.events(args.limit), ("at", "user", "action", "submission", "detail"))
    return 0


# --- the papers, backup, restore, export -----------------------------------------------------------------------------


def _load_published(args: argparse.Namespace, store: Store) -> int:
    from earmark.board.printed import load_published

    found = load_published(store, with_repeats=args.with_repeats)
    if args.json:
        print(_json([{**one._asdict(), "submission": one.submission.id} for one in found]))
        return 0
    for one in found:
        news = "loaded" if one.new else f"already there ({one.submission.state})"
        print(f"{one.board}: {counted(one.rows, 'row')} of {counted(one.systems, 'system')}, {news}")
    return 0


def _backup(args: argparse.Namespace, store: Store) -> int:
    from earmark.board.backup import backup

    target = Path(args.file)
    with progress_bar(not args.quiet, None, "backup", "rows") as progress:
        made = backup(store.engine, target, progress)
    if args.json:
        print(_json({"file": str(target), **made._asdict()}))
    else:
        print(f"{sum(made.tables.values()):,} rows of {len(made.tables)} tables: {target}")
        _remark(args, "It holds the hashes of tokens and the key of the cookies: keep it where only you read it.")
    return 0


def _restore(args: argparse.Namespace) -> int:
    from earmark.board.backup import restore

    with progress_bar(not args.quiet, None, "restore", "rows") as progress:
        made = restore(Path(args.file), _database(args), progress)
    if args.json:
        print(_json(made._asdict()))
    else:
        print(f"{sum(made.tables.values()):,} rows of {len(made.tables)} tables, as they were at {made.made}")
    return 0


def _export(args: argparse.Namespace, store: Store) -> int:
    from earmark.board.export import export

    files = export(store, Path(args.into), args.format, args.board)
    if args.json:
        print(_json([str(path) for path in files]))
    else:
        print("\n".join(map(str, files)) or "No board has anything to export yet.")
    return 0


def _freeze(args: argparse.Namespace, store: Store) -> int:
    from earmark.board.pages.static_site import freeze

    folder = Path(args.into)
    files = freeze(store, folder, title=args.title)
    first = str(folder / "index.html")
    print(_json({"files": files, "open": first}) if args.json else f"{counted(files, 'file')} written; open {first}")
    return 0


# --- printing --------------------------------------------------------------------------------------------------------


def _json(plain: Any) -> str:
    return json.dumps(plain, ensure_ascii=False, indent=1, default=lambda moment: moment.isoformat())


def _remark(args: argparse.Namespace, sentence: str) -> None:
    if not args.quiet:
        print(sentence, file=sys.stderr)


def _table(args: argparse.Namespace, found: Sequence[Any], columns: tuple[str, ...]) -> None:
    if args.json:
        print(_json([asdict(one) for one in found]))
        return
    lines = [list(columns), *([_shown(getattr(one, column)) for column in columns] for one in found)]
    print(*aligned(lines), sep="\n")


def _shown(cell: Any) -> str:
    if isinstance(cell, tuple):
        return cell[0] + (f" and {len(cell) - 1} more" if len(cell) > 1 else "") if cell else "–"
    if hasattr(cell, "strftime"):
        return str(cell.strftime("%Y-%m-%d %H:%M"))
    text = "".join(mark if mark.isprintable() else " " for mark in str(cell if cell is not None else ""))
    return text or "–"


_ACTIONS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace, Any], int]]] = {
    "user": ("make a user and print a token for them", _add_user, _user),
    "users": ("everybody who may send or decide", _add_none, _users),
    "token": ("make another token for a user and print it", _add_token, _token),
    "tokens": ("the tokens of a user, without their secrets", _add_tokens, _tokens),
    "revoke": ("end a token", _add_revoke, _revoke),
    "submissions": ("what was sent, the newest first", _add_submissions, _submissions),
    "approve": ("accept a pending submission: its scores are shown and ranked", _add_approve, _approve),
    "reject": ("refuse a pending submission, with a reason", _add_decision, _reject),
    "withdraw": ("take a submission off the board; its history stays", _add_decision, _withdraw),
    "events": ("the audit trail: who did what when", _add_events, _events),
    "load-published": ("the papers' printed results as the first rows; a second time changes nothing",
                       options.add_repeats, _load_published),
    "backup": ("write the whole board to one file, also while it runs", _add_file, _backup),
    "restore": ("put a backup into a new or empty database, SQLite or PostgreSQL", _add_file, lambda args, _: 1),
    "export": ("live scores, cards and submissions as CSV or Parquet", _add_export, _export),
    "freeze": ("the reading pages as files in a folder, for any web server or none", _add_freeze, _freeze),
}  # fmt: skip
