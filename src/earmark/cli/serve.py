"""Host a leaderboard: pages for readers, forms for authors and moderators, and an API for `earmark submit`.

Nothing has to be set up: the database is a SQLite file in the data folder, made at the first start together with the
papers' printed results and a first moderator, whose token is printed once. Every option can also be set in the
environment (EARMARK_BOARD, EARMARK_DATABASE_URL, EARMARK_BOARD_TITLE and so on), as a service does.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earmark.errors import InputError, UsageError, require
from earmark.wording import counted

if TYPE_CHECKING:
    from earmark.board.settings import Settings
    from earmark.board.storage import Store

EXAMPLES = """examples:
  earmark serve
  earmark serve --data board --port 8080 --title "Our leaderboard" --registration open
  earmark serve --empty --data own-suite
  EARMARK_DATABASE_URL=postgresql://board@localhost/board earmark serve --workers 4 --url https://board.example.org
"""

FIRST_MODERATOR = "moderator"
_APP = "earmark.board.app:application"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    place = parser.add_argument_group("where")
    place.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, only this machine)"
    )
    place.add_argument("--port", type=int, default=8000, help="port to listen on; 0 takes a free one (default: 8000)")
    place.add_argument("--data", metavar="FOLDER", help="folder of the SQLite file (default: the current one)")
    place.add_argument("--database", metavar="URL", help="another database, such as postgresql://user@host/name")
    place.add_argument("--url", metavar="URL", help="the address that the world sees, with its path if it has one")
    content = parser.add_argument_group("what it shows")
    content.add_argument("--title", help='name of the site (default: "Earmark leaderboard")')
    content.add_argument("--registration", choices=("open", "closed"), help="who may register (default: closed)")
    first = content.add_mutually_exclusive_group()
    first.add_argument(
        "--with-published", action="store_true", help="load the papers' results also into a board that has others"
    )
    first.add_argument("--empty", action="store_true", help="do not load the papers' results at the first start")
    work = parser.add_argument_group("how it runs")
    work.add_argument("--workers", type=int, metavar="N", help="processes that answer (default: 1)")
    work.add_argument("--quiet", action="store_true", help="log warnings only")
    work.add_argument(
        "--package-limit", metavar="SIZE", help="of packages for blind evaluation, such as 500MB (default: 2GB)"
    )
    parser.set_defaults(blind=False)  # `earmark blind serve` is this command with it on


_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMG]?)B?", re.IGNORECASE)


def _bytes(text: str, flag: str) -> int:
    """The bytes of a size such as 500MB."""
    found = _SIZE.fullmatch(text.strip())
    number = int(float(found[1]) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[found[2].upper()]) if found else 0
    if number < 1:
        raise UsageError(f"{flag} {text}: a size is written as 500MB or 2GB.")
    return number


def run(args: argparse.Namespace) -> int:
    for module in ("fastapi", "sqlalchemy", "jinja2", "prometheus_client", "python_multipart"):
        require(module, "Leaderboards", "board")
    uvicorn = require("uvicorn", "Leaderboards", "board")
    settings = settings_from(args)
    if settings.blind and settings.registration == "open":
        print(
            "Registration is open: whoever registers as several teams has the quota of each. Close it, and make "
            "participants with `earmark board user`, unless the host's policy bounds all teams together.",
            file=sys.stderr,
        )
    with contextlib.closing(_listening(args.host, args.port)) as listener:
        _prepare(settings, args)
        os.environ.update(settings.to_environment())  # uvicorn's workers read it
        host, port = listener.getsockname()[:2]
        print(f"http://{f'[{host}]' if ':' in host else host}:{port}", flush=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a stop that was asked for is no failure
        with contextlib.suppress(KeyboardInterrupt):
            _serve(uvicorn, listener, settings.workers)
    return 0


def settings_from(args: argparse.Namespace) -> Settings:
    """The settings of the environment, with the options of the command over them."""
    from earmark.board.settings import Settings, public_address

    settings = Settings.from_environment()
    given: dict[str, Any] = {
        "data": Path(args.data) if args.data else None,
        "database_url": args.database,
        "base_url": public_address(args.url, "--url") if args.url else None,
        "title": args.title,
        "registration": args.registration,
        "workers": args.workers,
        "log_level": "warning" if args.quiet else None,
        "blind": args.blind or None,
        "max_package": _bytes(args.package_limit, "--package-limit") if args.package_limit else None,
    }
    if args.workers is not None and args.workers < 1:
        raise UsageError(f"--workers {args.workers}: at least one process has to answer.")
    if not 0 <= args.port < 65536:
        raise UsageError(f"--port {args.port} is not between 0 and 65535.")
    return replace(settings, **{name: value for name, value in given.items() if value is not None})


def _listening(host: str, port: int) -> socket.socket:
    """A socket on the address, before anything is made: a port that is taken leaves no database behind."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise UsageError(f"--host {host} is no address of this machine ({error.strerror}).") from error
    listener = socket.socket(family, kind, number)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise InputError(f"{host}:{port} cannot be used ({error.strerror}); give another with --port.") from error
    listener.set_inheritable(True)
    return listener


def _prepare(settings: Settings, args: argparse.Namespace) -> None:
    """Make or migrate the database, and give a new board its first content and its first moderator."""
    from earmark.board.storage import Store, open_database

    store = Store(open_database(settings.database), settings.limits)
    try:
        first = not store.boards() and not store.submissions(limit=1)
        if args.with_published or (first and not args.empty):
            _load_published(store, quiet=args.quiet)
        _first_moderator(store)
    finally:
        store.close()


def _load_published(store: Store, *, quiet: bool) -> None:
    from earmark.board.papers import load_published

    if not quiet:
        print("loading the papers' printed results …", file=sys.stderr)
    loaded = load_published(store)
    if not quiet:
        told = "; ".join(f"{one.board}: {counted(one.systems, 'system')}, {counted(one.rows, 'row')}" for one in loaded)
        print(told, file=sys.stderr)


def _first_moderator(store: Store) -> None:
    """A board that nobody can moderate gets a moderator, and its token is said this once."""
    from earmark.board.storage.accounts import OPERATOR

    if any(user.moderates and store.tokens(user) for user in store.users()):
        return
    there = {user.name: user.role for user in store.users()}
    # Where the name is an author's, who has registered, it stays theirs.
    names = (FIRST_MODERATOR if number == 1 else f"{FIRST_MODERATOR} {number}" for number in itertools.count(1))
    name = next(name for name in names if there.get(name, "host") in ("moderator", "host"))
    user = store.user(name) or store.create_user(name, role="host", by=OPERATOR)
    token, _ = store.create_token(user, "first start", by=OPERATOR)
    print(
        f"The token of the user {user.name}, who decides about submissions, shown this once:\n\n    {token}\n",
        file=sys.stderr,
        flush=True,
    )


def _serve(uvicorn: Any, listener: socket.socket, workers: int) -> None:
    """Answer until a signal ends it; requests that run get some seconds to end well."""
    from earmark.board.web.stopping import GRACE_SECONDS

    options: dict[str, Any] = {
        "factory": True,
        "log_config": None,  # the app logs, as JSON lines
        "access_log": False,
        "server_header": False,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": GRACE_SECONDS,
    }
    if workers == 1:
        uvicorn.Server(uvicorn.Config(_APP, **options)).run(sockets=[listener])
        return
    host, port = listener.getsockname()[:2]
    listener.close()  # uvicorn opens it again and hands it to its workers
    uvicorn.run(_APP, host=host, port=port, workers=workers, **options)
