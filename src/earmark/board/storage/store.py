"""The store: everything that the board is asked to keep or to find, each call one transaction.

    store = Store(open_database("sqlite:///board.sqlite3"))
    ada = store.create_user("Ada")
    sent = store.submit(read_document(data, filename="scores.csv"), ada)      pending
    store.decide(sent.id, moderator, accept=True)                             its scores are live
    store.live_scores("vocsim")

Nothing is overwritten: a later accepted submission takes the place of the scores it measures again, and when it is
withdrawn the earlier ones count again. A call either happens whole, with its line in the audit trail, or not at all.
Refusals are `NotAllowed`, `NotFound`, `Conflict`, `Refused` (a document against the rules) and `Busy`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from sqlalchemy import Connection, Engine, insert, select, update

from earmark.board import records
from earmark.board.limits import Limits
from earmark.board.refusals import Busy, Refused
from earmark.board.rules import check
from earmark.board.storage import accounts, arrivals, decisions, lookups
from earmark.board.storage.database import reading, writing
from earmark.board.storage.lookups import LiveScores
from earmark.board.storage.tables import Meta
from earmark.board.submission import Document
from earmark.board.texts import checked_text, sought
from earmark.errors import UsageError
from earmark.scores import Scores

__all__ = ["LiveScores", "Store"]

_MOST = 1000


class Store:
    """A board's memory. Safe to use from several threads, and from several processes on one database."""

    def __init__(self, engine: Engine, limits: Limits | None = None) -> None:
        self.engine = engine
        self.limits = limits or Limits()  # of one document

    def close(self) -> None:
        """Close the connections; nothing is lost without it."""
        self.engine.dispose()

    # --- what readers see ---------------------------------------------------------------------------------------------

    def generation(self) -> int:
        """A number that grows whenever readers see something new: an acceptance, a withdrawal of what was accepted."""
        with reading(self.engine) as connection:
            return decisions.generation(connection)

    def boards(self) -> list[str]:
        """The boards on which something was accepted, by name."""
        with reading(self.engine) as connection:
            return lookups.boards(connection)

    def systems(self, board: str, changed_since: int = 0) -> list[records.System]:
        """The systems that ever had an accepted submission and changed after a generation, by age.

        Those whose submissions were all withdrawn are among them: their scores are gone from `live_scores`, and
        their history stays.
        """
        with reading(self.engine) as connection:
            return lookups.systems(connection, sought(board), changed_since)

    def system(self, board: str, slug: str) -> records.System | None:
        """The system with that slug, once something of it was accepted."""
        with reading(self.engine) as connection:
            return lookups.system(connection, sought(board), sought(slug))

    def live_scores(self, board: str, system_ids: Sequence[int] | None = None) -> LiveScores:
        """The scores that count: for each measurement of a system the newest of an accepted submission."""
        with reading(self.engine) as connection:
            return lookups.live_scores(connection, sought(board), system_ids)

    # --- submissions --------------------------------------------------------------------------------------------------

    def submit(
        self, document: Document, user: records.User, *, idempotency_key: str = "", notes: Sequence[str] = ()
    ) -> records.Submission:
        """Store a document as a pending submission; `Refused` when it breaks the rules.

        The same key (or, without one, the same document, as long as nothing newer came) again returns the first
        submission; the same key with another document is a `Conflict`. A system belongs to whoever sent it first, to
        their team, and to moderators: for others it is `NotAllowed`. `notes` are kept beside those of the rules.
        """
        key = checked_text(idempotency_key, "The idempotency key", 200)
        verdict = check(document, limits=self.limits)
        if verdict.problems:
            raise Refused(verdict.problems)

        def work(connection: Connection) -> records.Submission:
            sender = accounts.still(connection, user)
            public = arrivals.earlier(connection, document, sender, key)
            if public is None:
                public = arrivals.add(connection, document, sender, key, [*verdict.warnings, *notes])
            return _there(lookups.submission(connection, public))

        return writing(self.engine, work)

    def submission(self, id: str) -> records.Submission | None:
        """The submission with that id, in whatever state."""
        with reading(self.engine) as connection:
            return lookups.submission(connection, sought(id))

    def submissions(
        self,
        *,
        board: str | None = None,
        owner: str | None = None,
        state: records.State | None = None,
        system: str | None = None,
        limit: int = 50,
        before: str | None = None,
        was_accepted: bool = False,
    ) -> list[records.Submission]:
        """Submissions, the newest first; `before` is the id of the last one that was seen, `system` a slug.

        `was_accepted` leaves out what nobody but its author and the moderators has seen: what is pending, rejected, or
        was withdrawn before it was accepted.
        """
        with reading(self.engine) as connection:
            return lookups.submissions(
                connection,
                board=None if board is None else sought(board),
                owner=None if owner is None else sought(owner),
                state=state,
                system=None if system is None else sought(system),
                limit=_limited(limit),
                before=None if before is None else sought(before),
                was_accepted=was_accepted,
            )

    def rows_of(self, submission_id: str) -> Scores:
        """The scores of one submission as they were sent."""
        with reading(self.engine) as connection:
            return lookups.rows_of(connection, sought(submission_id))

    def cards_of(self, submission_id: str) -> tuple[records.SystemCard, ...]:
        """The cards of one submission as they were sent, in its order."""
        with reading(self.engine) as connection:
            return lookups.cards_of(connection, sought(submission_id))

    def document_of(self, submission_id: str) -> bytes:
        """The document of one submission in Earmark's own form, whose SHA-256 is the submission's digest."""
        with reading(self.engine) as connection:
            return lookups.document_of(connection, sought(submission_id))

    def decide(
        self,
        id: str,
        moderator: records.User,
        accept: bool,
        reason: str = "",
        provenance: records.Provenance | None = None,
    ) -> records.Submission:
        """Accept a pending submission, as what it claims or with another provenance, or reject it with a reason."""

        def work(connection: Connection) -> records.Submission:
            decisions.decide(connection, sought(id), accounts.still(connection, moderator), accept, reason, provenance)
            return _there(lookups.submission(connection, id))

        return writing(self.engine, work)

    def withdraw(self, id: str, user: records.User, reason: str = "") -> records.Submission:
        """Take a submission back, as its owner, their team, or a moderator: earlier accepted scores count again."""

        def work(connection: Connection) -> records.Submission:
            decisions.withdraw(connection, sought(id), accounts.still(connection, user), reason)
            return _there(lookups.submission(connection, id))

        return writing(self.engine, work)

    # --- users and tokens ---------------------------------------------------------------------------------------------

    def create_user(
        self, name: str, team: str = "", role: records.Role = "author", *, join: bool = False
    ) -> records.User:
        """A new user. `join` lets them into a team that exists, whose systems are then theirs too: for hosts."""
        return writing(self.engine, lambda connection: accounts.create_user(connection, name, team, role, join=join))

    def user(self, name: str) -> records.User | None:
        with reading(self.engine) as connection:
            return accounts.find_user(connection, sought(name))

    def users(self) -> list[records.User]:
        """Everybody, by age."""
        with reading(self.engine) as connection:
            return accounts.users(connection)

    def papers(self) -> records.User:
        """The user to whom printed results belong; nobody signs in as it."""
        return writing(self.engine, accounts.papers)

    def create_token(self, user: records.User, label: str = "") -> tuple[str, records.Token]:
        """A new token, whole this once, and what may be shown of it later."""
        return writing(self.engine, lambda connection: accounts.create_token(connection, user, label))

    def tokens(self, user: records.User) -> list[records.Token]:
        with reading(self.engine) as connection:
            return accounts.tokens(connection, user)

    def revoke_token(self, id: int, user: records.User) -> None:
        """End a token of one's own, or, as a moderator, anybody's."""
        writing(self.engine, lambda connection: accounts.revoke_token(connection, id, user))

    def authenticate(self, plain: str) -> records.User | None:
        """The user whose token this is; None when it is nobody's or revoked. Its use is noted about once an hour."""
        with reading(self.engine) as connection:
            found = accounts.holder_of(connection, plain)
        if found is None:
            return None
        user, token, note = found
        if note:
            with contextlib.suppress(Busy):
                writing(self.engine, lambda connection: accounts.note_use(connection, token))
        return user

    # --- the trail, and facts about the board -------------------------------------------------------------------------

    def events(self, limit: int = 50, before: int | None = None) -> list[records.Event]:
        """The audit trail, the newest first."""
        with reading(self.engine) as connection:
            return accounts.events(connection, _limited(limit), before)

    def meta(self, key: str) -> str | None:
        with reading(self.engine) as connection:
            return connection.execute(select(Meta.value).where(Meta.key == key)).scalar()

    def set_meta(self, key: str, value: str, *, keep: bool = False) -> str:
        """Keep a fact under a key and return it; with `keep`, one that is there stays and is returned."""

        def work(connection: Connection) -> str:
            there = connection.execute(select(Meta.value).where(Meta.key == key)).scalar()
            if there is None:
                connection.execute(insert(Meta).values(key=key, value=value))
            elif keep:
                return there
            else:
                connection.execute(update(Meta).where(Meta.key == key).values(value=value))
            return value

        return writing(self.engine, work)


def _there(found: records.Submission | None) -> records.Submission:
    assert found is not None
    return found


def _limited(limit: int) -> int:
    if limit < 1:
        raise UsageError(f"A list has at least 1 line, not {limit}.")
    return min(limit, _MOST)
