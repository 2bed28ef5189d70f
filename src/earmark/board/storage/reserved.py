"""Names that nobody registers by themselves: those that a board lists as its readers, and those of erased users.

Whoever took such a name would read, or be taken for, what is another's. A host still makes users of any name.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Literal

from sqlalchemy import Connection, insert, select

from earmark.board.storage.definitions import current_definitions
from earmark.board.storage.tables import meta
from earmark.submissions.texts import likeness

Kind = Literal["user", "team"]
_SALT = "erased"
_TEAM = "team:"


def is_reserved(connection: Connection, kind: Kind, name: str) -> bool:
    """Whether a name, or one that looks like it, is a reader of a board or was that of somebody who was erased."""
    readers = (reader for each in current_definitions(connection).values() for reader in each.readers)
    own = (reader for reader in readers if reader.startswith(_TEAM) == (kind == "team"))
    if likeness(name) in {likeness(reader.removeprefix(_TEAM)) for reader in own}:
        return True
    there = select(meta.c.key).where(meta.c.key == _mark(connection, kind, name))
    return connection.execute(there).first() is not None


def reserve_erased(connection: Connection, kind: Kind, name: str) -> None:
    """Keep a name from being registered again, without keeping the name: a salted hash of what it looks like."""
    if _salt(connection) is None:
        connection.execute(insert(meta).values(key=_SALT, value=secrets.token_hex(32)))
    mark = _mark(connection, kind, name)
    if connection.execute(select(meta.c.key).where(meta.c.key == mark)).first() is None:
        connection.execute(insert(meta).values(key=mark, value=""))


def _salt(connection: Connection) -> str | None:
    salt: str | None = connection.execute(select(meta.c.value).where(meta.c.key == _SALT)).scalar()
    return salt


def _mark(connection: Connection, kind: Kind, name: str) -> str:
    salt = _salt(connection) or ""
    return f"{_SALT} {kind} {hmac.new(salt.encode(), likeness(name).encode(), hashlib.sha256).hexdigest()}"
