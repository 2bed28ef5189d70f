"""What a host does with users: give a role, ban, and erase.

`by` is the host who does it, or None at the command line, where whoever reaches the database may do everything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Literal, get_args

from sqlalchemy import Column, Connection, Table, delete, func, select, update

from earmark.board.records import Role, User
from earmark.board.refusals import Conflict, NotAllowed, NotFound
from earmark.board.storage.accounts import OPERATOR, PAPERS, current_user, find_user, now, record
from earmark.board.storage.live import recount_systems
from earmark.board.storage.reserved import reserve_erased
from earmark.board.storage.submissions import close_submission
from earmark.board.storage.tables import (
    blind_jobs,
    board_definitions,
    card_changes,
    contacts,
    documents,
    drafts,
    events,
    feeds,
    host_texts,
    notices,
    sessions,
    submission_systems,
    submissions,
    systems,
    tokens,
    users,
)
from earmark.databases import Part
from earmark.errors import UsageError, quoted
from earmark.submissions.texts import checked_text
from earmark.wording import counted

Scores = Literal["kept", "withdrawn"]
"""What becomes of the scores of a user who is erased."""

_OWN_WORDS = ("authors", "url", "description", "citation", "command")
"""Fields of a card in which people name themselves."""

_WITH_WORDS = ("withdrew", "corrected_card", "asked_card")
"""Actions whose lines in the audit trail hold words of whoever did them."""


class People(Part):
    """The part of the store with which a host looks after users."""

    def change_role(self, name: str, role: Role, by: User | None) -> User:
        """Give a user another role; the last host of a board stays one."""

        def work(connection: Connection) -> User:
            acting = acting_host(connection, by)
            user = _somebody(connection, name)
            if role not in get_args(Role):
                raise UsageError(f"A role is {', '.join(get_args(Role))}, not {quoted(role)}.")
            if user.hosts and role != "host":
                _refuse_last_host(connection, user)
            connection.execute(update(users).where(users.c.id == user.id).values(role=role))
            record(connection, acting, "changed_role", detail=f"{user.name}: {user.role} to {role}")
            return _somebody(connection, name)

        return self._write(work)

    def ban(self, name: str, by: User | None, reason: str = "", *, hide: bool = False) -> User:
        """End the tokens of a user and take nothing from them any more. `hide`: their scores leave the board too."""

        def work(connection: Connection) -> User:
            acting = acting_host(connection, by)
            user = _somebody(connection, name)
            kept_reason = checked_text(reason, "The reason", 2000, lines=True)
            if by is not None and user.id == by.id:
                raise Conflict("Nobody bans themselves; another host does.")
            if user.hosts:
                _refuse_last_host(connection, user)
            values = {"banned": user.banned or now(), "hidden": hide}
            connection.execute(update(users).where(users.c.id == user.id).values(**values))
            own = tokens.c.user_id == user.id
            connection.execute(update(tokens).where(own, tokens.c.revoked.is_(None)).values(revoked=now()))
            connection.execute(delete(sessions).where(sessions.c.user_id == user.id))
            recount_systems(connection, _owned(connection, user))
            shown = "scores hidden" if hide else "scores kept"
            record(connection, acting, "banned_user", detail=f"{user.name}, {shown}: {kept_reason}".rstrip(": "))
            return _somebody(connection, name)

        return self._write(work)

    def unban(self, name: str, by: User | None) -> User:
        """Let a user send again, who then needs a new token; scores that were hidden are shown again."""

        def work(connection: Connection) -> User:
            acting = acting_host(connection, by)
            user = _somebody(connection, name)
            if user.banned is None:
                raise Conflict(f"{user.name} is not banned.")
            connection.execute(update(users).where(users.c.id == user.id).values(banned=None, hidden=False))
            recount_systems(connection, _owned(connection, user))
            record(connection, acting, "unbanned_user", detail=user.name)
            return _somebody(connection, name)

        return self._write(work)

    def erase(self, name: str, by: User | None, scores: Scores) -> str:
        """Take a user's name, documents and words off the board, and return what stands in their place.

        Their submissions are withdrawn, or stay under the new name; those that wait are withdrawn either way. The audit
        trail keeps every line, with the new name in it. Backups that were made before still have what was erased.
        """

        def work(connection: Connection) -> str:
            acting = acting_host(connection, by)
            user = _somebody(connection, name)
            if scores not in get_args(Scores):
                raise UsageError(f"The scores of an erased user are kept or withdrawn, not {quoted(scores)}.")
            if user.hosts:
                _refuse_last_host(connection, user)
            ending = ("pending",) if scores == "kept" else ("pending", "accepted")
            own = select(submissions).where(submissions.c.owner_id == user.id).order_by(submissions.c.id)
            sent = connection.execute(own).all()
            for row in sent:
                if row.state in ending:
                    close_submission(connection, row, "withdrawn", user, "", row.provenance)
                    record(connection, acting, "withdrew", row.public, "its author was erased")
            stand_in = f"erased user {user.id}"
            _forget_words(connection, user)
            _rename(connection, user, stand_in)
            recount_systems(connection, _owned(connection, user))
            record(
                connection, acting, "erased_user", detail=f"{stand_in}: {counted(len(sent), 'submission')}, {scores}"
            )
            return stand_in

        return self._write(work)


def acting_host(connection: Connection, by: User | None) -> str:
    """The name under which a host acts; NotAllowed for everybody else."""
    if by is None:
        return OPERATOR
    user = current_user(connection, by)
    if not user.hosts:
        raise NotAllowed("Only a host of this board may do that; `earmark board role NAME host` makes one.")
    return user.name


def _somebody(connection: Connection, name: str) -> User:
    user = find_user(connection, name)
    if user is None or user.name == PAPERS:
        raise NotFound(f"There is no user {quoted(name)} on this board.")
    return user


def _refuse_last_host(connection: Connection, user: User) -> None:
    others = select(func.count()).where(users.c.role == "host", users.c.banned.is_(None), users.c.id != user.id)
    if not connection.execute(others).scalar():
        raise Conflict(f"{user.name} is the only host of this board; make another one first.")


def _owned(connection: Connection, user: User) -> list[int]:
    """The systems of a user that readers have seen."""
    own = select(systems.c.id).where(systems.c.owner_id == user.id, systems.c.changed > 0)
    return list(connection.scalars(own))


# --- erasing ---------------------------------------------------------------------------------------------------------


def _forget_words(connection: Connection, user: User) -> None:
    """Delete what a user wrote: documents, drafts, contacts, tokens, notices, and the words of their cards."""
    sent = select(submissions.c.id).where(submissions.c.owner_id == user.id)
    connection.execute(delete(documents).where(documents.c.submission_id.in_(sent)))
    for table in (drafts, contacts, feeds, notices, sessions, tokens):
        column = table.c.owner_id if table is drafts else table.c.user_id
        connection.execute(delete(table).where(column == user.id))
    connection.execute(update(submissions).where(submissions.c.owner_id == user.id).values(key="", reason=""))
    words = (events.c.user == user.name, events.c.action.in_(_WITH_WORDS))
    connection.execute(update(events).where(*words).values(detail=""))
    own_systems = select(systems.c.id).where(systems.c.owner_id == user.id)
    _strip_cards(connection, systems, systems.c.id.in_(own_systems))
    _strip_cards(connection, submission_systems, submission_systems.c.submission_id.in_(sent))
    for change in connection.execute(select(card_changes).where(card_changes.c.owner_id == user.id)).all():
        values = {name: _without_words(getattr(change, name)) for name in ("changes", "before")}
        connection.execute(update(card_changes).where(card_changes.c.id == change.id).values(**values, why=""))


def _strip_cards(connection: Connection, table: Table, which: Any) -> None:
    keys = list(table.primary_key.columns)
    for *key, card in connection.execute(select(*keys, table.c.card).where(which)).all():
        this = [column == part for column, part in zip(keys, key, strict=True)]
        connection.execute(update(table).where(*this).values(card=_without_words(card)))


def _without_words(plain: str) -> str:
    fields = {name: value for name, value in json.loads(plain).items() if name not in _OWN_WORDS}
    return json.dumps(fields, ensure_ascii=False)


def _rename(connection: Connection, user: User, stand_in: str) -> None:
    """Put another name in the place of a user's, and of their team's where they were its only member."""
    values: dict[str, Any] = {"name": stand_in, "banned": user.banned or now()}
    alone = select(func.count()).where(users.c.team == user.team)
    names = [user.name]
    reserve_erased(connection, "user", user.name)
    if user.team and connection.execute(alone).scalar() == 1:
        names.append(user.team)
        reserve_erased(connection, "team", user.team)
        values["team"] = ""
        connection.execute(update(submissions).where(submissions.c.owner_id == user.id).values(team=""))
        connection.execute(update(blind_jobs).where(blind_jobs.c.owner_id == user.id).values(team=f"user {stand_in}"))
    elif not user.team:
        connection.execute(update(blind_jobs).where(blind_jobs.c.owner_id == user.id).values(team=f"user {stand_in}"))
    connection.execute(update(users).where(users.c.id == user.id).values(**values))
    deciders = (
        submissions.c.decided_by,
        card_changes.c.decided_by,
        host_texts.c.changed_by,
        board_definitions.c.user,
        events.c.user,
    )
    for column in deciders:
        connection.execute(update(column.table).where(column == user.name).values({column.name: stand_in}))
    _replace_in_details(connection, names, stand_in)


def _replace_in_details(connection: Connection, names: Iterable[str], stand_in: str) -> None:
    for name in names:
        whole = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        named: Column[str] = events.c.detail
        query = select(events.c.id, named).where(named.contains(name, autoescape=True))
        for number, detail in connection.execute(query).all():
            text = whole.sub(stand_in, detail)
            if text != detail:
                connection.execute(update(events).where(events.c.id == number).values(detail=text))
