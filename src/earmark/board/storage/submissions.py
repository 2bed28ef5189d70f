"""Submissions: a document arrives, is decided about or withdrawn, and is found again."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any, get_args

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, false, or_, select, update

from earmark.board.records import Decision, PendingName, Quotas, State, Submission, User, sought
from earmark.board.refusals import Conflict, NotAllowed, NotFound
from earmark.board.storage.accounts import current_user, list_limit, now, record
from earmark.board.storage.arrivals import (
    LISTED,
    add_document,
    earlier_submission,
    refuse_beyond_quota,
    refuse_provenance,
    rules_of,
)
from earmark.board.storage.boards import as_named_now, keep_definition, refuse_archived, refuse_closed
from earmark.board.storage.live import announced_names, recount
from earmark.board.storage.notices import tell
from earmark.board.storage.tables import (
    CELLS,
    MEASURED,
    documents,
    events,
    measurements,
    scores,
    submission_systems,
    submissions,
    systems,
    users,
)
from earmark.databases import Part, in_parts, reading
from earmark.errors import EarmarkError, UsageError, quoted
from earmark.scores import Row as ScoreRow
from earmark.scores import Scores
from earmark.submissions import Document, Limits, Provenance, SystemCard, card_from, enforce
from earmark.submissions.blind_names import BlindNames
from earmark.submissions.texts import checked_text

_PLAIN = tuple(
    part.name for part in fields(Submission) if part.name not in ("id", "systems", "owner", "notes", "names")
)
_SUBMISSIONS = select(
    submissions.c.id.label("number"), submissions.c.public.label("id"), users.c.name.label("owner"),
    submissions.c.notes, *(submissions.c[name] for name in _PLAIN),
).join(users)  # fmt: skip


class Submissions(Part):
    """The part of the store that takes documents, decides about them and finds them."""

    limits: Limits
    quotas: Quotas | None

    def submit(
        self, document: Document, user: User, *, idempotency_key: str = "", notes: Sequence[str] = ()
    ) -> Submission:
        """Store a document as a pending submission; `Refused` when it breaks the rules.

        The same key (or, without one, the same document, as long as nothing newer came) again returns the first
        submission; the same key with another document is a `Conflict`. A system belongs to whoever sent it first, to
        their team, and to moderators: for others it is `NotAllowed`. `notes` are kept beside those of the rules.
        """
        key = checked_text(idempotency_key, "The idempotency key", 200)
        with reading(self.engine) as connection:
            document = as_named_now(connection, document, user)
            rules = rules_of(connection, document.board)
        verdict = enforce(document, self.limits, *rules)

        def work(connection: Connection) -> Submission:
            sender = current_user(connection, user)
            there = rules_of(connection, document.board)
            refuse_closed(there[1].get(document.board), sender)
            if there != rules:
                enforce(document, self.limits, *there)
            public = earlier_submission(connection, document, sender, key)
            if public is None:
                refuse_provenance(document, sender)
                if self.quotas is not None:
                    refuse_beyond_quota(connection, document, sender, self.quotas)
                public = add_document(connection, document, sender, key, [*verdict.warnings, *notes])
            return one_submission(connection, public)

        return self._write(work)

    def submission(self, id: str) -> Submission | None:
        """The submission with that id, in whatever state."""
        with reading(self.engine) as connection:
            return _find(connection, sought(id))

    def submissions(
        self,
        *,
        board: str | None = None,
        owner: str | None = None,
        state: State | None = None,
        system: str | None = None,
        limit: int = 50,
        before: str | None = None,
        was_accepted: bool = False,
        unlisted: Collection[str] = (),
        reader: User | None = None,
    ) -> list[Submission]:
        """Submissions, the newest first; `before` is the id of the last one that was seen, `system` a slug.

        `was_accepted` leaves out what nobody but its author and the moderators has seen: what is pending, rejected, or
        was withdrawn before it was accepted. `unlisted` are boards of which only the submissions of the `reader`, and
        of their team, are listed.
        """
        query = _SUBMISSIONS
        if unlisted:
            query = query.where(or_(submissions.c.board.not_in(unlisted), _is_of(reader)))
        if was_accepted:
            once = exists().where(events.c.submission == submissions.c.public, events.c.action == "accepted")
            withdrawn = and_(submissions.c.state == "withdrawn", once)
            query = query.where(or_(submissions.c.state == "accepted", withdrawn))
        for column, wanted in ((submissions.c.board, board), (users.c.name, owner), (submissions.c.state, state)):
            if wanted is not None:
                query = query.where(column == sought(wanted))
        if system is not None:
            of_system = select(submission_systems.c.submission_id).join(systems)
            query = query.where(submissions.c.id.in_(of_system.where(systems.c.slug == sought(system))))
        limit = list_limit(limit)
        with reading(self.engine) as connection:
            if before is not None:
                public = sought(before)
                last = connection.execute(select(submissions.c.id).where(submissions.c.public == public)).scalar()
                if last is None:
                    raise NotFound(f"There is no submission {public[:40]!r} to go on from.")
                query = query.where(submissions.c.id < last)
            newest = query.order_by(submissions.c.id.desc()).limit(limit)
            return _with_systems(connection, connection.execute(newest).all())

    def pending_names(self, board: str) -> list[PendingName]:
        """The systems of all that waits for a decision on a board, the oldest first."""
        columns = (submissions.c.public, submission_systems.c.card, users.c.name, submissions.c.team)
        tables = submission_systems.join(submissions).join(users, users.c.id == submissions.c.owner_id)
        pending = select(*columns).select_from(tables)
        pending = pending.where(submissions.c.state == "pending", submissions.c.board == sought(board))
        waiting = []
        for public, packed, owner, team in self._rows(pending.order_by(submissions.c.id, submission_systems.c.place)):
            card = json.loads(packed)
            waiting.append(PendingName(public, card["name"], card.get("title", ""), owner, team))
        return waiting

    def rows_of(self, submission_id: str) -> Scores:
        """The scores of one submission as they were sent."""
        public = sought(submission_id)
        columns = (
            submissions.c.board.label("suite"), systems.c.name.label("system"),
            *(measurements.c[name] for name in MEASURED), *(scores.c[name] for name in CELLS),
        )  # fmt: skip
        tables = scores.join(submissions).join(systems, systems.c.id == scores.c.system_id).join(measurements)
        query = select(*columns).select_from(tables).where(submissions.c.public == public).order_by(scores.c.id)
        with reading(self.engine) as connection:
            rows = tuple(ScoreRow(**row._asdict()) for row in connection.execute(query))
            if not rows and _find(connection, public) is None:
                raise _missing(public)
        return Scores(rows)

    def cards_of(self, submission_id: str) -> tuple[SystemCard, ...]:
        """The cards of one submission as they were sent, in its order."""
        query = select(submission_systems.c.card).join(submissions).order_by(submission_systems.c.place)
        cards = self._rows(query.where(submissions.c.public == sought(submission_id)))
        return tuple(card_from(json.loads(card)) for (card,) in cards)

    def document_of(self, submission_id: str) -> bytes:
        """The document of one submission in Earmark's own form, whose SHA-256 is the submission's digest."""
        public = sought(submission_id)
        query = select(documents.c.packed).join(submissions).where(submissions.c.public == public)
        for (packed,) in self._rows(query):
            return zlib.decompress(packed)
        raise _missing(public)

    def decide(
        self, id: str, moderator: User, accept: bool, reason: str = "", provenance: Provenance | None = None
    ) -> Submission:
        """Accept a pending submission, as what it claims or with another provenance, or reject it with a reason."""

        def work(connection: Connection) -> Submission:
            public, user = sought(id), current_user(connection, moderator)
            if not user.moderates:
                raise NotAllowed("Only a moderator decides about submissions.")
            kept_reason = checked_text(reason, "The reason", 2000, lines=True, needed=not accept)
            row = stored_submission(connection, public)
            if row.state != "pending":
                raise Conflict(f"Submission {public} is {row.state} already; only a pending one can be decided.")
            state = "accepted" if accept else "rejected"
            origin = (provenance if accept else None) or row.provenance
            if accept:
                refuse_archived(connection, row.board)
                _refuse_origin(connection, row, origin)
            marked = f"as {provenance}" if accept and provenance else ""
            close_submission(connection, row, state, user, kept_reason, origin)
            record(connection, user.name, state, public, ": ".join(filter(None, (marked, kept_reason))))
            _tell_owner(connection, row, state, kept_reason, origin)
            return one_submission(connection, public)

        return self._write(work)

    def decide_each(
        self, ids: Sequence[str], moderator: User, accept: bool, reason: str = "", provenance: Provenance | None = None
    ) -> list[Decision]:
        """Decide about several, each by itself: what cannot be decided is told and keeps none of the others back."""
        decisions = []
        for id in dict.fromkeys(ids):
            try:
                decided = self.decide(id, moderator, accept, reason, provenance)
                decisions.append(Decision(decided.id, decided.state))
            except EarmarkError as error:
                decisions.append(Decision(sought(id)[:40], None, str(error)))
        return decisions

    def mark(self, id: str, moderator: User, provenance: Provenance, reason: str = "") -> Submission:
        """Say anew where the scores of an accepted submission come from: reproduced months after, for example."""

        def work(connection: Connection) -> Submission:
            public, user = sought(id), current_user(connection, moderator)
            if not user.moderates:
                raise NotAllowed("Only a moderator says where scores come from.")
            if provenance not in get_args(Provenance):
                raise UsageError(f"A provenance is {', '.join(get_args(Provenance))}, not {quoted(str(provenance))}.")
            kept_reason = checked_text(reason, "The reason", 2000, lines=True)
            row = stored_submission(connection, public)
            if row.state != "accepted":
                raise Conflict(f"Submission {public} is {row.state}; only what is accepted can be marked.")
            if row.provenance == provenance:
                raise Conflict(f"Submission {public} is {provenance} already.")
            refuse_archived(connection, row.board)
            _refuse_origin(connection, row, provenance)
            connection.execute(update(submissions).where(submissions.c.id == row.id).values(provenance=provenance))
            recount(connection, row.id)
            change = f"{row.provenance} to {provenance}"
            record(connection, user.name, "marked", public, ": ".join(filter(None, (change, kept_reason))))
            _tell_owner(connection, row, "marked", kept_reason, provenance)
            return one_submission(connection, public)

        return self._write(work)

    def withdraw(self, id: str, user: User, reason: str = "") -> Submission:
        """Take a submission back, as its owner, their team, or a moderator: earlier accepted scores count again."""

        def work(connection: Connection) -> Submission:
            public, sender = sought(id), current_user(connection, user)
            kept_reason = checked_text(reason, "The reason", 2000, lines=True)
            row = stored_submission(connection, public)
            submission = one_submission(connection, public)
            if not (submission.is_of(sender) or sender.moderates):
                raise NotAllowed(
                    f"Submission {public} belongs to {submission.owner}; only they or a moderator may withdraw it."
                )
            if row.state not in LISTED:
                raise Conflict(f"Submission {public} is {row.state} already; there is nothing to withdraw.")
            if row.state == "accepted":
                refuse_archived(connection, row.board)
            close_submission(connection, row, "withdrawn", sender, kept_reason, row.provenance)
            record(connection, sender.name, "withdrew", public, kept_reason)
            if sender.id != row.owner_id:
                _tell_owner(connection, row, "withdrawn", kept_reason, row.provenance)
            return one_submission(connection, public)

        return self._write(work)


def _is_of(user: User | None) -> ColumnElement[bool]:
    """`Submission.is_of`, for the database."""
    if user is None:
        return false()
    return or_(users.c.name == user.name, and_(submissions.c.team == user.team, submissions.c.team != ""))


def _find(connection: Connection, public: str) -> Submission | None:
    rows = connection.execute(_SUBMISSIONS.where(submissions.c.public == public)).all()
    return next(iter(_with_systems(connection, rows)), None)


def one_submission(connection: Connection, public: str) -> Submission:
    submission = _find(connection, public)
    assert submission is not None
    return submission


def _missing(public: str) -> NotFound:
    return NotFound(f"There is no submission {public[:40]!r} on this board.")


def stored_submission(connection: Connection, public: str) -> Row[Any]:
    row = connection.execute(select(submissions).where(submissions.c.public == public)).first()
    if row is None:
        raise _missing(public)
    return row


def _with_systems(connection: Connection, rows: Sequence[Row[Any]]) -> list[Submission]:
    of_submission: dict[int, list[tuple[str, str]]] = {row.number: [] for row in rows}
    for numbers in in_parts(list(of_submission)):
        query = select(submission_systems.c.submission_id, systems.c.slug, systems.c.name).join(systems)
        query = query.where(submission_systems.c.submission_id.in_(numbers)).order_by(submission_systems.c.place)
        for number, slug, name in connection.execute(query):
            of_submission[number].append((slug, name))
    listed = []
    for row in rows:
        cells = row._asdict()
        named = of_submission[cells.pop("number")]
        cells |= {"notes": tuple(json.loads(row.notes)), "systems": tuple(slug for slug, _ in named)}
        listed.append(Submission(**cells, names=tuple(name for _, name in named)))
    return listed


# --- deciding --------------------------------------------------------------------------------------------------------


def close_submission(
    connection: Connection, row: Row[Any], state: str, user: User, reason: str, provenance: str
) -> None:
    """Give a submission its new state, and bring what readers see up to date where that changes it."""
    values = {"state": state, "decided": now(), "decided_by": user.name, "reason": reason, "provenance": provenance}
    keep_definition(connection, row.board, user.name)  # of what was there before, where nobody defined it yet
    connection.execute(update(submissions).where(submissions.c.id == row.id).values(**values))
    if "accepted" in (state, row.state):
        recount(connection, row.id)
        keep_definition(connection, row.board, user.name)


def _tell_owner(connection: Connection, row: Row[Any], event: str, reason: str, provenance: str) -> None:
    body = {
        "event": event, "submission": row.public, "board": row.board, "reason": reason, "provenance": provenance,
    }  # fmt: skip
    tell(connection, row.owner_id, f"Your submission to {row.board}: {event}", body)


def _refuse_origin(connection: Connection, row: Row[Any], origin: str) -> None:
    """Conflict when scores of blind subsets would count as what they cannot be."""
    if origin == "self-reported" and (claimed := _claimed_blind(connection, row)):
        raise Conflict(
            f"Submission {row.public} has self-reported scores of {', '.join(claimed)}, which only the host can "
            "measure; reject it, or accept it as reproduced if you measured them."
        )
    if origin == "blind" and (hosted := _claimed_blind(connection, row, announced=True)):
        raise Conflict(
            f"Submission {row.public} has scores of {', '.join(hosted)}, which a host measures for this board: as "
            "blind they come with a release and its audit entry alone; reject it, or accept it as reproduced."
        )


def _claimed_blind(connection: Connection, row: Row[Any], *, announced: bool = False) -> list[str]:
    """The blind subsets of which a submission has measurements; or only those that a host announced."""
    subsets = select(measurements.c.subset).distinct().join(scores).where(scores.c.submission_id == row.id)
    blind, known = rules_of(connection, row.board)
    public = known[row.board].subset_names if row.board in known else ()
    names = BlindNames(announced_names(connection, row.board) if announced else blind, public)
    return sorted(filter(names.meant, connection.scalars(subsets.where(scores.c.status == "ok"))))
