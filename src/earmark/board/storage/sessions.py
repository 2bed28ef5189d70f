"""Sessions of browsers: who signed in with which token, until they sign out, the token is revoked or time is up.

The browser holds a random word, the database its SHA-256: what leaks from the database opens no session.
"""

from __future__ import annotations

import secrets
from dataclasses import fields
from datetime import timedelta

from sqlalchemy import Connection, delete, insert, select

from earmark.board.records import User
from earmark.board.storage.accounts import current_user, hashed, now, record
from earmark.board.storage.tables import sessions, tokens, users
from earmark.databases import Part

_MOST = 50
"""Sessions of one user; whoever opens another closes the oldest."""


class Sessions(Part):
    """The part of the store that knows which browsers are signed in."""

    def open_session(self, user: User, token: str, hours: float) -> str:
        """A new session of whoever has just shown the token; its word is returned this once."""

        def work(connection: Connection) -> str:
            owner, word = current_user(connection, user), secrets.token_urlsafe(32)
            connection.execute(delete(sessions).where(sessions.c.created < now() - timedelta(hours=hours)))
            own = select(sessions.c.id).where(sessions.c.user_id == owner.id).order_by(sessions.c.id.desc())
            oldest = connection.scalars(own.offset(_MOST - 1)).all()
            connection.execute(delete(sessions).where(sessions.c.id.in_(oldest)))
            of_token = select(tokens.c.id).where(tokens.c.user_id == owner.id, tokens.c.hash == hashed(token))
            values = {"hash": hashed(word), "user_id": owner.id, "created": now()}
            connection.execute(insert(sessions).values(**values, token_id=connection.execute(of_token).scalar_one()))
            return word

        return self._write(work)

    def session_user(self, word: str, hours: float) -> User | None:
        """Who is signed in by a session; None when it has ended, or its token is not good any more."""
        of_word = (
            select(*(users.c[part.name] for part in fields(User)))
            .select_from(sessions.join(users, users.c.id == sessions.c.user_id).join(tokens))
            .where(sessions.c.hash == hashed(word), sessions.c.created >= now() - timedelta(hours=hours))
            .where(tokens.c.revoked.is_(None), users.c.banned.is_(None))
        )
        return next((User(*row) for row in self._rows(of_word)), None)

    def end_session(self, word: str) -> None:
        """Sign one browser out."""
        self._write(lambda connection: connection.execute(delete(sessions).where(sessions.c.hash == hashed(word))))

    def end_sessions(self, user: User) -> None:
        """Sign a user out everywhere."""

        def work(connection: Connection) -> None:
            connection.execute(delete(sessions).where(sessions.c.user_id == user.id))
            record(connection, user.name, "signed_out_everywhere")

        self._write(work)
