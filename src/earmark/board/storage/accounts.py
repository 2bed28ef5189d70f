"""Users and their tokens, the audit trail, and facts about the board as a whole."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
import secrets
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from sqlalchemy import Connection, Row, insert, or_, select, update

from earmark.board.records import Event, Role, Token, User, sought
from earmark.board.refusals import Conflict, NotAllowed, NotFound
from earmark.board.storage.reserved import is_reserved
from earmark.board.storage.tables import events, meta, tokens, users
from earmark.databases import Busy, Part
from earmark.errors import InputError, UsageError, quoted
from earmark.submissions.texts import checked_text, likeness

PAPERS = "papers"
"""The owner of what the papers printed. The name is reserved, and nobody has a token for it."""

OPERATOR = "command line"
"""The name under which the audit trail has what is done at the command line; no user has it."""

_RESERVED = re.compile(rf"{PAPERS}|{OPERATOR}|erased user( .*)?")
"""Names that nobody registers: the audit trail has others under them."""
_NAME = re.compile(r"[^\W_][\w .@+'-]{0,58}[\w.]|[^\W_]")
_PREFIX = 11
_MARK = "em_"
_NOBODY = hashlib.sha256(b"nobody").hexdigest()
_USED_AGAIN = timedelta(hours=1)
_MOST_LISTED = 1000
_USERS = select(*(users.c[part.name] for part in fields(User)))
_TOKENS = select(
    tokens.c.id, users.c.name, tokens.c.prefix, tokens.c.label, tokens.c.created, tokens.c.last_used, tokens.c.revoked
).join(users)


def now() -> datetime:
    return datetime.now(UTC)


def list_limit(limit: int) -> int:
    """How many lines a list may have at most, when so many were asked for."""
    if limit < 1:
        raise UsageError(f"A list has at least 1 line, not {limit}.")
    return min(limit, _MOST_LISTED)


def record(connection: Connection, user: str, action: str, submission: str = "", detail: str = "") -> None:
    """Add a line to the audit trail."""
    connection.execute(
        insert(events).values(at=now(), user=user, action=action, submission=submission, detail=detail[:2000])
    )


def current_user(connection: Connection, user: User) -> User:
    """The user as the database has them now: a role may have changed since they were asked for."""
    row = connection.execute(_USERS.where(users.c.id == user.id, users.c.name == user.name)).first()
    if row is None:
        raise NotAllowed(f"There is no user {quoted(user.name)} on this board; sign in again.")
    if row.banned is not None:
        raise NotAllowed(f"The host of this board has banned {user.name}; write to the host.")
    return User(*row)


def hashed(word: str) -> str:
    """What the database keeps of a token, or of the word of a session or a feed."""
    return hashlib.sha256(word.encode("utf-8", "surrogatepass")).hexdigest()


class Accounts(Part):
    """The part of the store that knows who somebody is and what was done."""

    def create_user(
        self, name: str, team: str = "", role: Role = "author", *, join: bool = False, by: str = ""
    ) -> User:
        """A new user. `join` lets them into a team that exists, whose systems are then theirs too: for hosts.

        `by` is who makes them, for the audit trail; "": they register themselves.
        """
        return self._write(lambda connection: _create_user(connection, name, team, role, join=join, by=by))

    def register(self, name: str, team: str = "") -> User:
        """A new author who comes by themselves: names of readers of boards and of erased users are not theirs."""
        return self._write(lambda connection: _create_user(connection, name, team, "author", registering=True))

    def user(self, name: str) -> User | None:
        return next((User(*row) for row in self._rows(_USERS.where(users.c.name == sought(name)))), None)

    def users(self) -> list[User]:
        """Everybody, by age."""
        return [User(*row) for row in self._rows(_USERS.order_by(users.c.id))]

    def papers(self) -> User:
        """The user to whom printed results belong, made when first asked for; nobody signs in as it."""

        def work(connection: Connection) -> User:
            there = find_user(connection, PAPERS)
            return there or _create_user(connection, PAPERS, "", "moderator", join=True, reserved=True, by=OPERATOR)

        return self._write(work)

    def create_token(self, user: User, label: str = "", *, by: str = "") -> tuple[str, Token]:
        """A new token, whole this once and kept nowhere, and what may be shown of it later.

        `by` is who makes it, for the audit trail; "": the user.
        """

        def work(connection: Connection) -> tuple[str, Token]:
            owner = current_user(connection, user)
            if owner.name == PAPERS:
                raise NotAllowed("Nobody signs in for the papers; make a user of your own.")
            kept_label = checked_text(label, "The token's label", 100)
            while True:
                plain = _MARK + secrets.token_urlsafe(32)
                prefix = plain[:_PREFIX]
                if connection.execute(select(tokens.c.id).where(tokens.c.prefix == prefix)).first() is None:
                    break
            values = {"user_id": owner.id, "prefix": prefix, "hash": hashed(plain), "label": kept_label}
            connection.execute(insert(tokens).values(**values, created=now()))
            record(connection, by or owner.name, "created_token", detail=f"{prefix} of {owner.name}" if by else prefix)
            return plain, Token(*connection.execute(_TOKENS.where(tokens.c.prefix == prefix)).one())

        return self._write(work)

    def tokens(self, user: User) -> list[Token]:
        own = _TOKENS.where(tokens.c.user_id == user.id).order_by(tokens.c.id)
        return [Token(*row) for row in self._rows(own)]

    def revoke_token(self, id: int, user: User, *, by: str = "") -> None:
        """End a token of one's own, or, as a moderator, anybody's. `by` is as for `create_token`."""

        def work(connection: Connection) -> None:
            owner = current_user(connection, user)
            if not 0 < id < 2**63:  # more than databases count
                raise NotFound(f"You have no token {str(id)[:40]}.")
            row = connection.execute(
                select(tokens.c.user_id, tokens.c.revoked, tokens.c.prefix).where(tokens.c.id == id)
            ).first()
            if row is None or (row.user_id != owner.id and not owner.moderates):
                raise NotFound(f"You have no token {id}.")
            if row.revoked is None:
                connection.execute(update(tokens).where(tokens.c.id == id).values(revoked=now()))
                detail = f"{row.prefix} of {owner.name}" if by else row.prefix
                record(connection, by or owner.name, "revoked_token", detail=detail)

        self._write(work)

    def authenticate(self, plain: str) -> User | None:
        """The user whose token this is; None when it is nobody's or revoked. Its use is noted about once an hour.

        The token is looked up by its first characters, which are no secret, and compared by its hash, in constant
        time; where there is none, a hash that nothing has is compared.
        """
        row = self._held(plain)
        if row is None or row.revoked is not None or row.banned is not None:
            return None
        if row.last_used is None or now() - row.last_used > _USED_AGAIN:
            used = update(tokens).where(tokens.c.id == row.token).values(last_used=now())
            with contextlib.suppress(Busy):
                self._write(lambda connection: connection.execute(used))
        return User(*row[: len(fields(User))])

    def is_of_banned(self, plain: str) -> bool:
        """Whether this is a token that was good until its user was banned: only whoever holds it learns of the ban."""
        row = self._held(plain)
        return row is not None and row.banned is not None and (row.revoked is None or row.revoked >= row.banned)

    def _held(self, plain: str) -> Row[Any] | None:
        """The user and the token of which this is the whole, in whatever state; None when it is nobody's."""
        if not isinstance(plain, str) or not plain.isascii() or len(plain) > 200:
            return None
        held = _USERS.add_columns(tokens.c.hash, tokens.c.id.label("token"), tokens.c.revoked, tokens.c.last_used)
        held = held.join(tokens).where(tokens.c.prefix == sought(plain[:_PREFIX]))
        row = next(iter(self._rows(held)), None)
        same = hmac.compare_digest(hashed(plain), row.hash if row is not None else _NOBODY)
        return row if same else None

    def events(
        self, limit: int = 50, before: int | None = None, *, user: str = "", action: str = "", text: str = ""
    ) -> list[Event]:
        """The audit trail, the newest first: all of it, or of one user, one action, or with a text in its details."""
        trail = select(*(events.c[part.name] for part in fields(Event)))
        for column, wanted in ((events.c.user, user), (events.c.action, action)):
            trail = trail.where(column == sought(wanted)) if wanted else trail
        if text:
            inside = (
                column.icontains(sought(text), autoescape=True) for column in (events.c.detail, events.c.submission)
            )
            trail = trail.where(or_(*inside))
        if before is not None:
            trail = trail.where(events.c.id < max(0, min(before, 2**62)))  # databases count no further
        newest = trail.order_by(events.c.id.desc()).limit(list_limit(limit))
        return [Event(*row) for row in self._rows(newest)]

    def event_actions(self) -> list[str]:
        """The kinds of lines that the audit trail has."""
        return [name for (name,) in self._rows(select(events.c.action).distinct().order_by(events.c.action))]

    def meta(self, key: str) -> str | None:
        return next((value for (value,) in self._rows(select(meta.c.value).where(meta.c.key == key))), None)

    def set_meta(self, key: str, value: str, *, keep: bool = False) -> str:
        """Keep a fact under a key and return it; with `keep`, one that is there stays and is returned."""

        def work(connection: Connection) -> str:
            there: str | None = connection.execute(select(meta.c.value).where(meta.c.key == key)).scalar()
            if there is None:
                connection.execute(insert(meta).values(key=key, value=value))
            elif keep:
                return there
            else:
                connection.execute(update(meta).where(meta.c.key == key).values(value=value))
            return value

        return self._write(work)


def find_user(connection: Connection, name: str) -> User | None:
    row = connection.execute(_USERS.where(users.c.name == name)).first()
    return User(*row) if row else None


def _create_user(
    connection: Connection,
    name: str,
    team: str,
    role: Role,
    *,
    join: bool = False,
    reserved: bool = False,
    registering: bool = False,
    by: str = "",
) -> User:
    name = checked_text(name, "The user's name", 60, needed=True)
    team = checked_text(team, "The team's name", 60)
    if not _NAME.fullmatch(name):
        raise InputError(f"{quoted(name)} cannot be a user's name; use letters, digits, blanks and . @ + - _ '.")
    if role not in get_args(Role):
        raise UsageError(f"A user is {', '.join(get_args(Role))}, not {quoted(str(role))}.")
    if not reserved and _RESERVED.fullmatch(likeness(name)):
        raise Conflict(f"The name {quoted(name)} is reserved; choose another name.")
    taken = {likeness(other) for other in connection.scalars(select(users.c.name))}
    if likeness(name) in taken or (registering and is_reserved(connection, "user", name)):
        raise Conflict(f"There is a user {quoted(name)} already; choose another name.")
    teams = {likeness(other): other for other in connection.scalars(select(users.c.team).distinct())}
    there = likeness(team) in teams or (registering and is_reserved(connection, "team", team))
    if team and there and not join:
        raise Conflict(f"There is a team {quoted(team)} already; ask the host of this board to let you join it.")
    team = teams.get(likeness(team), team)
    connection.execute(insert(users).values(name=name, team=team, role=role, created=now(), hidden=False))
    record(connection, by or name, "created_user", detail=f"{name}, as {role}" if by else role)
    made = find_user(connection, name)
    assert made is not None
    return made
