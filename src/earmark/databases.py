"""SQLite and PostgreSQL: opening a database, and the two kinds of transactions.

Readers see the data as it was when they began and block nobody. Writers come one after the other: on SQLite by BEGIN
IMMEDIATE, on PostgreSQL by one advisory lock. A submission takes milliseconds, so that nobody waits long, and no two
ever disagree about an owner, a slug or the generation. A write is acknowledged when it lies on the disk
(synchronous=FULL on SQLite, synchronous_commit=on on PostgreSQL).
"""

from __future__ import annotations

import contextlib
import logging
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Executable, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from earmark.errors import EarmarkError, InputError, UsageError, require

_WAIT_SECONDS = 30
_WRITES = "earmark_writes"
_LOCK = 0x4541524D41524B  # one number for the writers of all tables in a database: the letters EARMARK
_RETRIES = 6
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_PARAMETERS = 500
_FILE = "earmark_file"
_DISK_FULL = "53100"  # of PostgreSQL
_NO_ANSWER = "The database does not answer; try again in a minute."
_LOGGER = logging.getLogger("earmark.databases")
_UNANSWERED = (OperationalError, InterfaceError, PoolTimeout)


class Busy(EarmarkError):
    """The database did not answer in time; nothing was stored, and the same call may be made again.

    The sentence is for everybody. Where the database lies and what it said is for its host, and logged.
    """


class Full(Busy):
    """There is no room where the database lies; nothing was stored."""


def open_database(
    url: str, upgrade: Callable[[Engine, Callable[[], AbstractContextManager[Connection]]], None]
) -> Engine:
    """The database at a URL, made and brought up to date by `upgrade`, which is given the engine and what opens a
    transaction without other writers.

    `sqlite:///board.sqlite3` (or a plain path) is a file; `postgresql://user@host/name` a PostgreSQL database.
    """
    engine = connect(url)
    try:
        _retried(lambda: upgrade(engine, lambda: _locked(engine)))
    except DBAPIError as error:
        engine.dispose()
        address = engine.url.render_as_string(hide_password=True)
        raise InputError(f"The database {address} cannot be opened ({_detail(error)}); check its address.") from error
    except BaseException:
        engine.dispose()
        raise
    return engine


def connect(url: str) -> Engine:
    """An engine for the database, as it is: `open_database` also makes its tables."""
    address = _address(url)
    if address.get_backend_name() == "sqlite":
        return _sqlite(address)
    require("psycopg", "PostgreSQL databases", "board")
    # A server that is gone without a word is noticed within seconds; the address may say otherwise.
    patience = {"connect_timeout": 5, "tcp_user_timeout": 10_000, "keepalives_idle": 10}
    return create_engine(
        address, pool_pre_ping=True, pool_size=5, max_overflow=20, isolation_level="READ COMMITTED",
        connect_args={name: value for name, value in patience.items() if name not in address.query},
    )  # fmt: skip


def missing_file(url: str) -> Path | None:
    """The file of a SQLite database that is not there yet; None when it is, or when the database is elsewhere."""
    address = _address(url)
    if address.get_backend_name() != "sqlite":
        return None
    place = Path(address.database or "")
    return None if place.exists() else place


def _address(url: str) -> URL:
    if "://" not in url:
        url = f"sqlite:///{url}"
    try:
        address = make_url(url)
        backend = address.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise UsageError(
            "The address of the database cannot be read; it looks like sqlite:///board.sqlite3 or "
            "postgresql://user@host/name."
        ) from error
    if backend in ("postgres", "postgresql"):
        return address.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise UsageError(f'Data are kept in sqlite or postgresql, not in "{backend}".')
    if address.database in (None, "", ":memory:"):
        raise UsageError("A database in memory would forget everything; name a file, such as sqlite:///board.sqlite3.")
    return address.set(drivername="sqlite+pysqlite")


def _sqlite(address: URL) -> Engine:
    place = Path(address.database or "")
    if place.is_dir():
        raise UsageError(f"{place} is a folder; name the file of the database inside it.")
    try:
        place.resolve().parent.mkdir(parents=True, exist_ok=True)
        place.touch(mode=0o600)  # it holds the hashes of tokens: only its owner reads it
    except OSError as error:
        raise InputError(f"{place}: it cannot be made ({error.strerror}); choose another place.") from error
    engine = create_engine(address, connect_args={"timeout": _WAIT_SECONDS}, pool_size=5, max_overflow=20)

    @event.listens_for(engine, "do_connect")
    def look(*_: Any) -> None:
        if not place.exists():  # SQLite would make an empty one
            raise sqlite3.OperationalError(f"{place} was removed")

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        record.info[_FILE] = _identity(place)
        connection.isolation_level = None  # BEGIN is ours: Python's own would come late and never be IMMEDIATE
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={_WAIT_SECONDS * 1000}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA cache_size=-65536")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # What is written to a file that was removed is acknowledged and lost.
        if connection.info[_FILE] != _identity(place):
            connection.invalidate()
            engine.dispose()  # a file that was put in its place is opened with the next connection
            _LOGGER.error("the file of the database was removed or replaced: %s", place)
            raise Busy(_NO_ANSWER)
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _identity(place: Path) -> tuple[int, int] | None:
    """Which file lies at a place; None when there is none."""
    try:
        found = place.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection that sees one state of the data until it is closed."""
    options = (
        {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    )
    try:
        with engine.connect().execution_options(**options) as connection, connection.begin():
            yield connection
    except _UNANSWERED as error:
        raise _unanswered(error) from error


@contextlib.contextmanager
def _locked(engine: Engine) -> Iterator[Connection]:
    """A transaction that no other writer is in; committed when the block ends well."""
    with engine.connect().execution_options(**{_WRITES: True}) as connection, connection.begin():
        if engine.dialect.name == "postgresql":
            connection.execute(text(f"SET LOCAL lock_timeout = '{_WAIT_SECONDS}s'"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        yield connection


def writing(engine: Engine, work: Callable[[Connection], _Result]) -> _Result:
    """What `work` returns, done in one transaction alone, and done again from the start when the database was busy."""

    def attempt() -> _Result:
        with _locked(engine) as connection:
            return work(connection)

    try:
        return _retried(attempt)
    except _UNANSWERED as error:
        raise _unanswered(error) from error


class Part:
    """A part of a store: it reads and writes through one engine."""

    engine: Engine

    def _rows(self, query: Executable) -> Sequence[Any]:
        with reading(self.engine) as connection:
            return connection.execute(query).all()

    def _write(self, work: Callable[[Connection], _Result]) -> _Result:
        return writing(self.engine, work)


def in_parts(items: Sequence[_Item]) -> Iterator[list[_Item]]:
    """The items some at a time: databases bound the number of parameters of one statement."""
    return (list(items[start : start + _PARAMETERS]) for start in range(0, len(items), _PARAMETERS))


def _retried(attempt: Callable[[], _Result]) -> _Result:
    for again in range(_RETRIES):
        try:
            return attempt()
        except OperationalError as error:
            if not _passing(error):
                raise
            if again == _RETRIES - 1:
                raise Busy("The database is busy and nothing was stored; try again in a minute.") from error
            time.sleep(random.uniform(0.02, 0.1) * 2**again)
    raise AssertionError("unreachable")


def _passing(error: OperationalError) -> bool:
    """Whether the same may go well a moment later: a lock, a deadlock, a conflict of transactions."""
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return state in ("40001", "40P01", "55P03")
    said = str(error.orig)
    return "locked" in said or "busy" in said


def _unanswered(error: SQLAlchemyError) -> Busy:
    """What everybody is told; what it was is logged."""
    detail = _detail(error)
    _LOGGER.error("the database does not answer: %s", detail)
    original = getattr(error, "orig", None)
    if getattr(original, "sqlstate", None) == _DISK_FULL or "disk is full" in detail:
        return Full("There is no room left where the board is kept, and nothing was stored; tell its host.")
    return Busy(_NO_ANSWER)


def _detail(error: SQLAlchemyError) -> str:
    original = getattr(error, "orig", None) or error
    return (str(original).splitlines() or [type(original).__name__])[0].rstrip(".")
