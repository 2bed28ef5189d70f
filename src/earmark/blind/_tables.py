"""The tables of the ledger, and how entries are written to them and read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    insert,
    inspect,
    select,
)  # fmt: skip

from earmark.blind.chain import FIRST, Entry, canonical
from earmark.errors import InputError

VERSION = 1
NAME = 200
LOOKUPS = ("job", "board", "team", "entry", "not_before")
"""What entries are found by: copies of cells of their bodies, which `verify` compares."""

metadata = MetaData()
versions = Table("blind_ledger_version", metadata, Column("version", Integer, primary_key=True))
entries = Table(
    "blind_ledger_entries",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", String(32), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("about", Integer, ForeignKey("blind_ledger_entries.number")),
    Column("body", Text, nullable=False),
    Column("commitment", String(64), nullable=False),
    Column("previous", String(64), nullable=False, unique=True),
    Column("hash", String(64), nullable=False),
    Column("job", String(NAME), unique=True),
    Column("board", String(NAME)),
    Column("team", String(NAME)),
    Column("entry", String(NAME)),
    Column("not_before", String(32)),
    Index("blind_ledger_about", "about"),
    Index("blind_ledger_of", "team", "entry"),
)
private = Table(
    "blind_ledger_private",
    metadata,
    Column("number", Integer, ForeignKey("blind_ledger_entries.number"), primary_key=True, autoincrement=False),
    Column("nonce", String(64), nullable=False),
    Column("body", Text, nullable=False),
)
fingerprints = Table(
    "blind_ledger_fingerprints",
    metadata,
    Column("number", Integer, ForeignKey("blind_ledger_entries.number"), primary_key=True, autoincrement=False),
    Column("subset", String(NAME), primary_key=True),
    Column("data", LargeBinary, nullable=False),
)


def upgrade(_engine: Engine, locked: Callable[[], AbstractContextManager[Connection]]) -> None:
    """Make the tables where they are missing; a ledger of a later version is refused."""
    with locked() as connection:
        metadata.create_all(connection)
        found = connection.scalar(select(versions.c.version))
        if found is None:
            connection.execute(insert(versions), {"version": VERSION})
        elif found != VERSION:
            raise InputError(
                f"The ledger is of version {found} and this Earmark reads version {VERSION}; install a newer Earmark."
            )


def require_tables(engine: Engine, locked: Callable[[], AbstractContextManager[Connection]]) -> None:
    """As `upgrade` for a ledger that must be there: another database is left as it is."""
    if not inspect(engine).has_table(versions.name):
        address = engine.url.render_as_string(hide_password=True)
        raise InputError(f"The database {address} holds no ledger; name the one that the worker writes.")
    upgrade(engine, locked)


def lookups_of(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry is found by. A job is decided once, and may be heard more than once."""
    if kind not in ("release", "refusal", "hearing"):
        return dict.fromkeys(LOOKUPS)
    return {name: None if kind == "hearing" and name == "job" else body.get(name) for name in LOOKUPS}


def append(
    connection: Connection, at: str, kind: str, body: Mapping[str, Any], *, about: int | None = None,
    commitment: str = "",
) -> Entry:  # fmt: skip
    """Add an entry to the end of the chain. The transaction must be one without other writers."""
    last = connection.execute(
        select(entries.c.number, entries.c.hash).order_by(entries.c.number.desc()).limit(1)
    ).one_or_none()
    number, previous = (1, FIRST) if last is None else (last.number + 1, last.hash)
    entry = Entry(number, at, kind, about, body, commitment, previous)
    cells = {
        "number": number, "at": at, "kind": kind, "about": about, "body": canonical(body), "commitment": commitment,
        "previous": previous, "hash": entry.sealed(),
    }  # fmt: skip
    connection.execute(insert(entries), cells | lookups_of(kind, body))
    return replace(entry, hash=entry.sealed())


def entry_of(row: Any) -> Entry:
    """An entry from a row of its table."""
    body = json.loads(row.body)
    return Entry(row.number, row.at, row.kind, row.about, body, row.commitment, row.previous, row.hash)


def read_entries(connection: Connection, *conditions: Any) -> Iterator[Entry]:
    """Entries in their order."""
    query = select(entries).where(*conditions).order_by(entries.c.number)
    return map(entry_of, connection.execute(query))
