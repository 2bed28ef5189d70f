"""Look after a leaderboard: users and tokens, decisions, the papers' results, backup, restore and export.

It works on the database itself, whether `earmark serve` is running or not: the one that --database or
EARMARK_DATABASE_URL names, or the file earmark-board.sqlite3 in the folder of --data or EARMARK_BOARD.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from earmark.board.records import Role, State, Submission
from earmark.board.settings import Settings
from earmark.cli import options
from earmark.cli.board_defining import DEFINING_ACTIONS
from earmark.cli.board_hosts import HOST_ACTIONS, NAME, Action, Flags
from earmark.cli.board_printing import print_remark, print_result, print_table
from earmark.cli.board_users import find_user, moderator_of
from earmark.errors import InputError, UsageError, require
from earmark.progress import progress_bar
from earmark.submissions import Provenance
from earmark.wording import counted

if TYPE_CHECKING:
    from earmark.board.storage import Store

EXAMPLES = """examples:
  earmark board user ada --team analysts        a user who may send scores; prints a token, this once
  earmark board user grace --moderator          a user who may also decide
  earmark board user lab --worker               the user of a host's `earmark blind work`
  earmark board load-published                  VocSim's and Codec-SUPERB's printed results, as the first rows
  earmark board submissions --state pending
  earmark board outlook 3f9c2a7be1d04c55        the rank it would get, its rows beside those that count, its risks
  earmark board accept 3f9c2a7be1d04c55 8812ab0c55d01e2f --as grace      who decides, where several may
  earmark board mark 3f9c2a7be1d04c55 --provenance reproduced       months later
  earmark board reject 3f9c2a7be1d04c55 --reason "P@1 was measured on the training part."
  earmark board define reef.yaml                what the board is: metrics, subsets, groups, ranking rule
  earmark board define --show vocsim > own.yaml
  earmark board ban mallory --hide --reason "Invented scores."
  earmark board text imprint imprint.md         a page of your own; also privacy, news and footer
  earmark board backup board.backup.gz          the whole board, while it runs
  earmark board restore board.backup.gz --database postgresql://earmark@localhost/board
  earmark board export --into tables --format parquet
  earmark board freeze --into site              the reading pages as files, to keep or to put on any web server
"""

_CREATING = "user"
"""With it a board begins, as with `earmark serve`; on a database that is not there, the others would answer for an
empty one. `restore` makes the database that it fills."""


_EARLIER = {"approve": "accept"}
"""Words for actions that earlier versions had, and that still work."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (line, flags, _) in _ACTIONS.items():
        aliases = [old for old, new in _EARLIER.items() if new == name]
        action = actions.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".", aliases=aliases)
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
    args.action = _EARLIER.get(args.action, args.action)
    settings = Settings.from_environment()
    if args.data:
        settings = replace(settings, data=Path(args.data), database_url="")
    if args.database:
        settings = replace(settings, database_url=args.database)
    if args.action == "restore":
        return _restore(args, settings.database)
    from earmark.board.storage import Store, open_database
    from earmark.databases import missing_file

    missing = missing_file(settings.database)
    if missing is not None and args.action != _CREATING:
        raise InputError(
            f"There is no board at {missing}; name its folder with --data, or begin one with `earmark board user NAME`."
        )
    store = Store(open_database(settings.database))
    try:
        _ACTIONS[args.action][2](args, store)
        if missing is not None:
            print_remark(args, _new_board(missing))
    finally:
        store.close()
    return 0


def _new_board(file: Path) -> str:
    where = "this folder" if file.parent == Path.cwd() else file.parent
    served = "For the one that `earmark serve --data X` serves, add --data X."
    return f"There was no board in {where}; a new one was made at {file}. {served}"


# --- users and tokens ------------------------------------------------------------------------------------------------


def _user(args: argparse.Namespace, store: Store) -> None:
    from earmark.board.storage.accounts import OPERATOR

    role: Role = "moderator" if args.moderator else "worker" if args.worker else args.role
    if args.moderator and args.worker:
        raise UsageError("A user is moderator or worker; make one user for each.")
    made = store.create_user(args.name, args.team, role, join=True, by=OPERATOR)
    plain, _ = store.create_token(made, "made with the user", by=OPERATOR)
    remark = f"{made.name} is {made.role}; the token above is shown this once and kept nowhere."
    print_result(args, {**asdict(made), "token": plain}, plain, remark)


def _users(args: argparse.Namespace, store: Store) -> None:
    print_table(args, store.users(), ("name", "team", "role", "created"))


def _token(args: argparse.Namespace, store: Store) -> None:
    from earmark.board.storage.accounts import OPERATOR

    plain, kept = store.create_token(find_user(store, args.name), args.label, by=OPERATOR)
    print_result(args, {**asdict(kept), "token": plain}, plain, "The token is shown this once and kept nowhere.")


def _tokens(args: argparse.Namespace, store: Store) -> None:
    print_table(args, store.tokens(find_user(store, args.name)), ("prefix", "label", "created", "last_used", "revoked"))


def _revoke(args: argparse.Namespace, store: Store) -> None:
    from earmark.board.storage.accounts import OPERATOR

    user = find_user(store, args.user)
    token = next((token for token in store.tokens(user) if token.prefix == args.prefix), None)
    if token is None:
        raise InputError(f"{user.name} has no token {args.prefix}; `earmark board tokens {user.name}` lists them.")
    store.revoke_token(token.id, user, by=OPERATOR)
    print_remark(args, f"Revoked {args.prefix} of {user.name}.")


# --- submissions -----------------------------------------------------------------------------------------------------


def _submissions(args: argparse.Namespace, store: Store) -> None:
    from earmark.board.boards.name_risks import remarked_submissions
    from earmark.board.boards.snapshots import Snapshots

    wanted = {name: getattr(args, name) for name in ("state", "board", "owner", "limit", "before")}
    listed = remarked_submissions(store, Snapshots(store), **wanted) if args.noted else store.submissions(**wanted)
    print_table(args, listed, ("id", "state", "board", "systems", "rows", "owner", "provenance", "created", "reason"))
    _print_name_risks(args, store, listed)


def _accept(args: argparse.Namespace, store: Store) -> None:
    _decide(args, store, True, args.provenance)


def _reject(args: argparse.Namespace, store: Store) -> None:
    if not args.reason.strip():
        raise UsageError("A rejection needs a reason: say in one sentence with --reason what its author can do.")
    _decide(args, store, False)


def _decide(args: argparse.Namespace, store: Store, accept: bool, provenance: Provenance | None = None) -> None:
    """Decide about one, or about several, each by itself."""
    moderator = moderator_of(args, store)
    if accept:
        _print_name_risks(args, store, list(filter(None, map(store.submission, args.ids))))
    if len(args.ids) == 1:
        _print_state(args, store.decide(args.ids[0], moderator, accept, args.reason, provenance))
        return
    decisions = store.decide_each(args.ids, moderator, accept, args.reason, provenance)
    lines = [f"{each.id} {each.state or each.wrong}" for each in decisions]
    print_result(args, [asdict(each) for each in decisions], "\n".join(lines))
    undecided = sum(each.state is None for each in decisions)
    if undecided:
        raise InputError(f"{counted(undecided, 'submission')} of {len(decisions)} could not be decided.")


def _print_name_risks(args: argparse.Namespace, store: Store, sent: Sequence[Submission]) -> None:
    """Names and titles of pending submissions that look like others', before anything is decided about them."""
    from earmark.board.boards.name_risks import name_risks
    from earmark.board.boards.snapshots import Snapshots

    for id, texts in name_risks(store, Snapshots(store), sent).items():
        for text in texts:
            print_remark(args, f"look  {id}: {text}")


def _mark(args: argparse.Namespace, store: Store) -> None:
    before = store.submission(args.id)
    sent = store.mark(args.id, moderator_of(args, store), args.provenance, args.reason)
    change = f"now {sent.provenance}, was {before.provenance if before else 'unknown'}"
    print_result(args, asdict(sent), f"{sent.id} is {change}: {_extent(sent)}")


def _outlook(args: argparse.Namespace, store: Store) -> None:
    from earmark.board.boards.outlook import outlook_of_submission
    from earmark.board.boards.outlook_text import outlook_text, plain_outlook
    from earmark.board.boards.snapshots import Snapshots
    from earmark.report.metric_text import facts

    sent = store.submission(args.id)
    if sent is None:
        raise InputError(f"There is no submission {args.id!r}; `earmark board submissions` lists them.")
    snapshots = Snapshots(store)
    seen = outlook_of_submission(store, snapshots, sent)
    definition = snapshots.definition(sent.board)
    lines = outlook_text(seen, sent.notes, definition.facts if definition else facts)
    print_result(args, {"notes": sent.notes, **plain_outlook(seen)}, "\n".join(lines))


def _withdraw(args: argparse.Namespace, store: Store) -> None:
    _print_state(args, store.withdraw(args.id, moderator_of(args, store), args.reason))


def _print_state(args: argparse.Namespace, sent: Submission) -> None:
    print_result(args, asdict(sent), f"{sent.id} is {sent.state}: {_extent(sent)}")


def _extent(sent: Submission) -> str:
    return f"{counted(sent.rows, 'row')} of {', '.join(sent.names)} on {sent.board}"


def _events(args: argparse.Namespace, store: Store) -> None:
    trail = store.events(args.limit, args.before, user=args.user, action=args.event, text=args.text)
    print_table(args, trail, ("id", "at", "user", "action", "submission", "detail"))


# --- the papers, backup, restore, export -----------------------------------------------------------------------------


def _load_published(args: argparse.Namespace, store: Store) -> None:
    from earmark.board.papers import load_published

    loaded = load_published(store, with_repeats=args.with_repeats)
    lines = []
    for each in loaded:
        news = "loaded" if each.new else f"already there ({each.submission.state})"
        lines.append(f"{each.board}: {counted(each.rows, 'row')} of {counted(each.systems, 'system')}, {news}")
    print_result(args, [{**each._asdict(), "submission": each.submission.id} for each in loaded], "\n".join(lines))


def _backup(args: argparse.Namespace, store: Store) -> None:
    from earmark.board.backup import backup

    target = Path(args.file)
    with progress_bar(not args.quiet, None, "backup", "rows") as progress:
        made = backup(store.engine, target, progress)
    text = f"{sum(made.tables.values()):,} rows of {len(made.tables)} tables: {target}"
    remark = "It holds the hashes of tokens and the key of the cookies: keep it where only you read it."
    print_result(args, {"file": str(target), **made._asdict()}, text, remark)


def _restore(args: argparse.Namespace, database: str) -> int:
    from earmark.board.backup import restore

    with progress_bar(not args.quiet, None, "restore", "rows") as progress:
        made = restore(Path(args.file), database, progress)
    rows = f"{sum(made.tables.values()):,} rows of {len(made.tables)} tables"
    print_result(args, made._asdict(), f"{rows}, as they were at {made.made}")
    return 0


def _export(args: argparse.Namespace, store: Store) -> None:
    from earmark.board.export import export

    files = [str(path) for path in export(store, Path(args.into), args.format, args.board)]
    print_result(args, files, "\n".join(files) or "No board has anything to export yet.")


def _freeze(args: argparse.Namespace, store: Store) -> None:
    from earmark.board.pages.static_site import freeze

    folder = Path(args.into)
    files = freeze(store, folder, title=args.title)
    first = str(folder / "index.html")
    print_result(args, {"files": files, "open": first}, f"{counted(files, 'file')} written; open {first}")


_LIMIT: Flags = {"--limit": {"metavar": "N", "type": int, "default": 50, "help": "the newest N (default: 50)"}}
_FILE: Flags = {"file": {"metavar": "FILE", "help": "the backup, for example board.backup.gz"}}
_ONE: Flags = {"id": {"metavar": "ID", "help": "of the submission: the last part of its address"}}
_SEVERAL: Flags = {"ids": {"metavar": "ID", "nargs": "+", "help": "of a submission; several are decided one by one"}}
_DECISION: Flags = {
    "--reason": {"metavar": "TEXT", "default": "", "help": "kept beside the submission, for all to read"},
    "--as": {"dest": "moderator", "metavar": "NAME", "help": "the moderator (default: the only one)"},
}
_ACTIONS: dict[str, Action] = {
    "user": ("make a user and print a token for them", {
        "name": {"metavar": "NAME", "help": "letters, digits, blanks and . @ + - _ '"},
        "--team": {"metavar": "NAME", "default": "", "help": "a team shares its systems; it may exist already"},
        "--moderator": {"action": "store_true", "help": "may approve, reject and withdraw for others"},
        "--worker": {"action": "store_true", "help": "measures blind: the user of `earmark blind work`"},
        "--role": {"choices": get_args(Role), "default": "author", "help": "the same by its word (default: author)"},
    }, _user),
    "users": ("everybody who may send or decide", {}, _users),
    "token": ("make another token for a user and print it", {
        **NAME, "--label": {"metavar": "TEXT", "default": "", "help": "what it is for, to find it again"},
    }, _token),
    "tokens": ("the tokens of a user, without their secrets", NAME, _tokens),
    "revoke": ("end a token", {
        "prefix": {"metavar": "PREFIX", "help": "the first characters of the token, as `tokens` lists them"},
        "--user": {"metavar": "NAME", "required": True, "help": "whose token it is"},
    }, _revoke),
    "submissions": ("what was sent, the newest first", {
        "--state": {"choices": get_args(State), "help": "only these"},
        "--board": {"metavar": "NAME", "help": "only of this board"},
        "--owner": {"metavar": "NAME", "help": "only what this user sent"},
        "--noted": {"action": "store_true", "help": "only those with look-alike names or other remarks"},
        "--before": {"metavar": "ID", "help": "go on after this one, the last that was listed"}, **_LIMIT,
    }, _submissions),
    "outlook": ("what a pending submission would change: ranks, rows, risks", _ONE, _outlook),
    "accept": ("accept pending submissions: their scores are shown and ranked", {
        **_SEVERAL, **_DECISION,
        "--provenance": {"choices": get_args(Provenance), "help": "mark it so (default: what it claims)"},
    }, _accept),
    "reject": ("refuse pending submissions, with a reason", {**_SEVERAL, **_DECISION}, _reject),
    "mark": ("say anew where the scores of an accepted submission come from", {
        **_ONE, **_DECISION, "--provenance": {"choices": get_args(Provenance), "required": True, "help": "from now on"},
    }, _mark),
    "withdraw": ("take a submission off the board; its history stays", {**_ONE, **_DECISION}, _withdraw),
    "events": ("the audit trail: who did what when", {
        "--user": {"metavar": "NAME", "default": "", "help": "only what this user did"},
        "--action": {"metavar": "WORD", "dest": "event", "default": "", "help": "only these, such as accepted"},
        "--text": {"metavar": "TEXT", "default": "", "help": "only lines with this in their detail"},
        "--before": {"metavar": "NUMBER", "type": int, "help": "go on after this line, the last that was listed"},
        **_LIMIT,
    }, _events),
    **HOST_ACTIONS, **DEFINING_ACTIONS,
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
