"""Private feeds: what became of an author's submissions, for whoever knows the secret word in the feed's address.

The database holds the word's SHA-256. A new word ends the one before; a ban and an erasure end the feed.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from earmark.board.records import User
from earmark.board.storage.accounts import current_user, hashed, list_limit, now, record
from earmark.board.storage.news import systems_of
from earmark.board.storage.tables import events, feeds, submissions, users
from earmark.databases import Part, reading

ACTIONS = {
    "submitted": "sent", "accepted": "accepted", "rejected": "rejected", "withdrew": "withdrawn",
    "marked": "provenance changed",
}  # fmt: skip
"""What an author's feed tells of, as the audit trail calls it, and in words."""


@dataclass(frozen=True)
class StatusItem:
    """What happened to a submission. `id` is that of its line in the audit trail and never changes."""

    id: int
    at: datetime
    action: str
    board: str
    submission: str
    names: tuple[str, ...]
    detail: str


class Feeds(Part):
    """The part of the store that knows the private feeds."""

    def renew_feed(self, user: User) -> str:
        """A new word for a user's feed, returned this once; the one before opens nothing any more."""

        def work(connection: Connection) -> str:
            owner, word = current_user(connection, user), secrets.token_urlsafe(32)
            connection.execute(delete(feeds).where(feeds.c.user_id == owner.id))
            connection.execute(insert(feeds).values(user_id=owner.id, hash=hashed(word), created=now()))
            record(connection, owner.name, "made_feed")
            return word

        return self._write(work)

    def end_feed(self, user: User) -> None:
        """Close a user's feed, if there is one."""

        def work(connection: Connection) -> None:
            owner = current_user(connection, user)
            if connection.execute(delete(feeds).where(feeds.c.user_id == owner.id)).rowcount:
                record(connection, owner.name, "ended_feed")

        self._write(work)

    def feed_since(self, user: User) -> datetime | None:
        """When the word of a user's feed was made; None where there is no feed."""
        made = select(feeds.c.created).where(feeds.c.user_id == user.id)
        return next((row.created for row in self._rows(made)), None)

    def feed_owner(self, word: str) -> User | None:
        """Whose feed a word opens."""
        of_word = (
            select(*(users.c[part.name] for part in fields(User)))
            .select_from(feeds.join(users, users.c.id == feeds.c.user_id))
            .where(feeds.c.hash == hashed(word), users.c.banned.is_(None))
        )
        return next((User(*row) for row in self._rows(of_word)), None)

    def own_news(self, user: User, limit: int = 50) -> list[StatusItem]:
        """What happened to the submissions of a user, the newest first."""
        happened = (
            select(
                events.c.id, events.c.at, events.c.action, events.c.detail, submissions.c.id.label("number"),
                submissions.c.public, submissions.c.board,
            )
            .join(submissions, submissions.c.public == events.c.submission)
            .where(submissions.c.owner_id == user.id, events.c.action.in_(ACTIONS))
            .order_by(events.c.id.desc())
            .limit(list_limit(limit))
        )  # fmt: skip
        with reading(self.engine) as connection:
            rows = connection.execute(happened).all()
            named = systems_of(connection, [row.number for row in rows])
        return [
            StatusItem(
                row.id, row.at, row.action, row.board, row.public,
                tuple(name for _, name in named.get(row.number, ())), row.detail,
            )
            for row in rows
        ]  # fmt: skip
