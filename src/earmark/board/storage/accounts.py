"""Users and their tokens, and the audit trail."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, select, update

from earmark.board import records
from earmark.board.refusals import Conflict, NotAllowed, NotFound
from earmark.board.storage.tables import Event, Token, User
from earmark.board.texts import checked_text, likeness, sought
from earmark.errors import InputError, UsageError, quoted

PAPERS = "papers"
"""The owner of what the papers printed. The name is reserved, and nobody has a token for it."""

_NAME = re.compile(r"[^\W_][\w .@+'-]{0,58}[\w.]|[^\W_]")
_PREFIX = 11
_MARK = "em_"
_NOBODY = hashlib.sha256(b"nobody").hexdigest()
_USED_AGAIN = timedelta(hours=1)


def now() -> datetime:
    return datetime.now(UTC)


def record(connection: Connection, user: str, action: str, submission: str = "", detail: str = "") -> None:
    """Add a line to the audit trail."""
    connection.execute(
        insert(Event).values(at=now(), user=user, action=action, submission=submission, detail=detail[:2000])
    )


def events(connection: Connection, limit: int, before: int | None) -> list[records.Event]:
    found = select(Event.id, Event.at, Event.user, Event.action, Event.submission, Event.detail)
    if before is not None:
        found = found.where(Event.id < max(0, min(before, 2**62)))  # databases count no further
    return [records.Event(*row) for row in connection.execute(found.order_by(Event.id.desc()).limit(limit))]


# --- users -----------------------------------------------------------------------------------------------------------

_USER = (User.id, User.name, User.team, User.role, User.created)


def find_user(connection: Connection, name: str) -> records.User | None:
    row = connection.execute(select(*_USER).where(User.name == name)).first()
    return _user(row) if row else None


def users(connection: Connection) -> list[records.User]:
    return [_user(row) for row in connection.execute(select(*_USER).order_by(User.id))]


def _user(row: Sequence[Any]) -> records.User:
    number, name, team, role, created = row
    return records.User(number, name, team, role, created)


def still(connection: Connection, user: records.User) -> records.User:
    """The user as the database has them now: a role may have changed since they were asked for."""
    row = connection.execute(select(*_USER).where(User.id == user.id, User.name == user.name)).first()
    if row is None:
        raise NotAllowed(f"There is no user {quoted(user.name)} on this board; sign in again.")
    return _user(row)


def create_user(
    connection: Connection, name: str, team: str, role: records.Role, *, join: bool, reserved: bool = False
) -> records.User:
    name = checked_text(name, "The user's name", 60, needed=True)
    team = checked_text(team, "The team's name", 60)
    if not _NAME.fullmatch(name):
        raise InputError(f"{quoted(name)} cannot be a user's name; use letters, digits, blanks and . @ + - _ '.")
    if role not in ("author", "moderator"):
        raise UsageError(f"A user is author or moderator, not {quoted(str(role))}.")
    taken = {likeness(one) for one in connection.scalars(select(User.name))}
    if likeness(name) in taken or (likeness(name) == PAPERS and not reserved):
        raise Conflict(f"There is a user {quoted(name)} already; choose another name.")
    teams = {likeness(one): one for one in connection.scalars(select(User.team).distinct())}
    if team and likeness(team) in teams:
        if not join:
            raise Conflict(f"There is a team {quoted(team)} already; ask the host of this board to let you join it.")
        team = teams[likeness(team)]
    made = connection.execute(insert(User).values(name=name, team=team, role=role, created=now()))
    assert made.inserted_primary_key is not None
    record(connection, name, "created_user", detail=role)
    found = find_user(connection, name)
    assert found is not None
    return found


def papers(connection: Connection) -> records.User:
    """The owner of the printed results, made when it is first asked for."""
    return find_user(connection, PAPERS) or create_user(connection, PAPERS, "", "moderator", join=True, reserved=True)


# --- tokens ----------------------------------------------------------------------------------------------------------

_TOKEN = (Token.id, User.name, Token.prefix, Token.label, Token.created, Token.last_used, Token.revoked)


def create_token(connection: Connection, user: records.User, label: str) -> tuple[str, records.Token]:
    """A new token and what may be shown of it. The whole of it is returned this once and kept nowhere."""
    user = still(connection, user)
    if user.name == PAPERS:
        raise NotAllowed("Nobody signs in for the papers; make a user of your own.")
    label = checked_text(label, "The token's label", 100)
    while True:
        plain = _MARK + secrets.token_urlsafe(32)
        if connection.execute(select(Token.id).where(Token.prefix == plain[:_PREFIX])).first() is None:
            break
    connection.execute(
        insert(Token).values(user_id=user.id, prefix=plain[:_PREFIX], hash=_hashed(plain), label=label, created=now())
    )
    record(connection, user.name, "created_token", detail=plain[:_PREFIX])
    made = next(token for token in tokens(connection, user) if token.prefix == plain[:_PREFIX])
    return plain, made


def tokens(connection: Connection, user: records.User) -> list[records.Token]:
    found = select(*_TOKEN).join(User, User.id == Token.user_id).where(Token.user_id == user.id).order_by(Token.id)
    return [records.Token(*row) for row in connection.execute(found)]


def revoke_token(connection: Connection, number: int, user: records.User) -> None:
    user = still(connection, user)
    if not 0 < number < 2**63:  # more than databases count
        raise NotFound(f"You have no token {str(number)[:40]}.")
    row = connection.execute(select(Token.user_id, Token.revoked, Token.prefix).where(Token.id == number)).first()
    if row is None or (row.user_id != user.id and user.role != "moderator"):
        raise NotFound(f"You have no token {number}.")
    if row.revoked is None:
        connection.execute(update(Token).where(Token.id == number).values(revoked=now()))
        record(connection, user.name, "revoked_token", detail=row.prefix)


def holder_of(connection: Connection, plain: str) -> tuple[records.User, int, bool] | None:
    """The user whose token this is, the token's id, and whether it is time to note that it was used.

    The token is looked up by its first characters, which are no secret, and compared by its hash, in constant time;
    where there is none, a hash that nothing has is compared.
    """
    if not isinstance(plain, str) or not plain.isascii() or len(plain) > 200:
        return None
    row = connection.execute(
        select(*_USER, Token.hash, Token.id.label("token"), Token.revoked, Token.last_used)
        .join(Token, Token.user_id == User.id)
        .where(Token.prefix == sought(plain[:_PREFIX]))
    ).first()
    same = hmac.compare_digest(_hashed(plain), row.hash if row is not None else _NOBODY)
    if row is None or not same or row.revoked is not None:
        return None
    last: datetime | None = row.last_used
    return _user(row[: len(_USER)]), row.token, last is None or now() - last > _USED_AGAIN


def note_use(connection: Connection, token: int) -> None:
    connection.execute(update(Token).where(Token.id == token).values(last_used=now()))


def _hashed(plain: str) -> str:
    return hashlib.sha256(plain.encode()).hexdigest()
