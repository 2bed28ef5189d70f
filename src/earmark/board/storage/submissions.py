"""Submissions: a document arrives, is decided about or withdrawn, and is found again."""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, Row, and_, exists, insert, or_, select, update

from earmark.board.records import State, Submission, User, slug_of, sought
from earmark.board.refusals import Conflict, NotAllowed, NotFound
from earmark.board.storage.accounts import current_user, list_limit, now, record
from earmark.board.storage.live import announced_names, blind_names, recount
from earmark.board.storage.tables import (
    CELLS,
    MEASURED,
    blind_jobs,
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
from earmark.errors import quoted
from earmark.scores import Row as ScoreRow
from earmark.scores import Scores
from earmark.submissions import Document, Limits, Provenance, SystemCard, card_from, enforce, plain_card
from earmark.submissions.texts import checked_text, likeness
from earmark.wording import counted

_LISTED = ("pending", "accepted")
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
            announced = blind_names(connection, sought(document.board))
        verdict = enforce(document, self.limits, announced)

        def work(connection: Connection) -> Submission:
            sender = current_user(connection, user)
            if blind_names(connection, document.board) != announced:
                enforce(document, self.limits, blind_names(connection, document.board))
            public = _earlier(connection, document, sender, key)
            if public is None:
                _refuse_provenance(document, sender)
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
    ) -> list[Submission]:
        """Submissions, the newest first; `before` is the id of the last one that was seen, `system` a slug.

        `was_accepted` leaves out what nobody but its author and the moderators has seen: what is pending, rejected, or
        was withdrawn before it was accepted.
        """
        query = _SUBMISSIONS
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
            if accept and origin == "self-reported" and (claimed := _claimed_blind(connection, row)):
                raise Conflict(
                    f"Submission {public} has self-reported scores of {', '.join(claimed)}, which only the host can "
                    "measure; reject it, or accept it as reproduced if you measured them."
                )
            if accept and origin == "blind" and (hosted := _claimed_blind(connection, row, announced=True)):
                raise Conflict(
                    f"Submission {public} has scores of {', '.join(hosted)}, which a host measures for this board: as "
                    "blind they come with a release and its audit entry alone; reject it, or accept it as reproduced."
                )
            marked = f"as {provenance}" if accept and provenance else ""
            close_submission(connection, row, state, user, kept_reason, origin)
            record(connection, user.name, state, public, ": ".join(filter(None, (marked, kept_reason))))
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
            if row.state not in _LISTED:
                raise Conflict(f"Submission {public} is {row.state} already; there is nothing to withdraw.")
            close_submission(connection, row, "withdrawn", sender, kept_reason, row.provenance)
            record(connection, sender.name, "withdrew", public, kept_reason)
            return one_submission(connection, public)

        return self._write(work)


# --- finding ---------------------------------------------------------------------------------------------------------


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
    connection.execute(update(submissions).where(submissions.c.id == row.id).values(**values))
    if "accepted" in (state, row.state):
        recount(connection, row.id)


def _claimed_blind(connection: Connection, row: Row[Any], *, announced: bool = False) -> list[str]:
    """The blind subsets of which a submission has measurements; or only those that a host announced."""
    subsets = select(measurements.c.subset).distinct().join(scores).where(scores.c.submission_id == row.id)
    names = announced_names(connection, row.board) if announced else blind_names(connection, row.board)
    return sorted(connection.scalars(subsets.where(scores.c.status == "ok", measurements.c.subset.in_(names))))


# --- arriving --------------------------------------------------------------------------------------------------------


def _earlier(connection: Connection, document: Document, user: User, key: str) -> str | None:
    """The submission that this one repeats: the same key, or, without a key, the same document as the newest one."""
    own = select(submissions).where(submissions.c.owner_id == user.id)
    if key:
        row = connection.execute(own.where(submissions.c.key == key)).first()
        if row is not None and row.digest != document.digest:
            raise Conflict("The idempotency key was used for another document; choose a new key for this one.")
        return None if row is None else row.public
    standing = submissions.c.state.in_(_LISTED)
    equal = own.where(submissions.c.digest == document.digest, submissions.c.board == document.board, standing)
    same = connection.execute(equal.order_by(submissions.c.id.desc())).first()
    if same is None:
        return None
    its_systems = select(submission_systems.c.system_id).where(submission_systems.c.submission_id == same.id)
    newer = select(submissions.c.id).join(submission_systems).where(submissions.c.id > same.id, standing)
    newer = newer.where(submission_systems.c.system_id.in_(its_systems)).limit(1)
    return same.public if connection.execute(newer).first() is None else None


def _refuse_provenance(document: Document, user: User) -> None:
    if document.provenance != "self-reported" and not user.moderates:
        raise NotAllowed(
            f'Only a moderator may call scores "{document.provenance}"; send them as self-reported, and a moderator '
            "may mark them."
        )


def add_document(connection: Connection, document: Document, user: User, key: str, notes: Sequence[str]) -> str:
    """Store a document as a pending submission and return its public id."""
    ids = claim_systems(connection, document.board, document.cards, user)
    public = secrets.token_hex(8)
    made = connection.execute(
        insert(submissions).values(
            public=public, board=document.board, owner_id=user.id, team=user.team, state="pending",
            provenance=document.provenance, created=now(), decided=None, decided_by="", reason="",
            rows=len(document.scores), digest=document.digest, version=document.version[:2000],
            notes=json.dumps(list(notes), ensure_ascii=False), key=key,
        )
    )  # fmt: skip
    assert made.inserted_primary_key is not None
    number = made.inserted_primary_key[0]
    connection.execute(insert(documents).values(submission_id=number, packed=zlib.compress(document.to_bytes(), 6)))
    cards = [
        {"submission_id": number, "system_id": ids[card.name], "place": place, "card": _packed(card)}
        for place, card in enumerate(document.cards)
    ]
    connection.execute(insert(submission_systems), cards)
    _add_rows(connection, document.scores.rows, number, ids)
    extent = f"{counted(len(document.scores), 'row')} of {counted(len(document.cards), 'system')}"
    record(connection, user.name, "submitted", public, f"{extent} on {document.board}")
    return public


def _packed(card: SystemCard) -> str:
    return json.dumps(plain_card(card), ensure_ascii=False)


_OWNED = select(
    systems.c.id,
    systems.c.board,
    systems.c.name,
    systems.c.changed,
    systems.c.owner_id,
    users.c.name.label("owner"),
    users.c.team,
).join(users)


def claim_systems(connection: Connection, board: str, cards: Sequence[SystemCard], user: User) -> dict[str, int]:
    """The ids of some systems of a board, new ones made; NotAllowed when one of them belongs to somebody else."""
    names = [card.name for card in cards]
    ids: dict[str, int] = {}
    for row in connection.execute(_OWNED.where(systems.c.board == board, systems.c.name.in_(names))):
        own = row.owner_id == user.id or (bool(user.team) and row.team == user.team) or user.moderates
        if not own:
            if _is_taken(connection, row):
                raise NotAllowed(
                    f"The system {quoted(row.name)} on {board} belongs to {row.owner}; give yours another "
                    "name, or ask a moderator."
                )
            # It was rejected or taken back before anybody saw it: a name is not kept by asking for it.
            connection.execute(update(systems).where(systems.c.id == row.id).values(owner_id=user.id))
            record(connection, user.name, "took_over", detail=f"{board}: {row.name}, from {row.owner}")
        ids[row.name] = row.id
    new = [card for card in cards if card.name not in ids]
    if not new:
        return ids
    _refuse_lookalikes(connection, board, new, user)
    return ids | _new_systems(connection, board, new, user)


def _is_taken(connection: Connection, system: Any) -> bool:
    """Whether something of a system was accepted once, waits for a decision, or is to be measured blind."""
    waiting = exists().where(
        submission_systems.c.system_id == system.id,
        submission_systems.c.submission_id == submissions.c.id,
        submissions.c.state == "pending",
    )
    queued = exists().where(
        blind_jobs.c.board == system.board, blind_jobs.c.entry == system.name,
        blind_jobs.c.state.in_(("queued", "running", "held")),
    )  # fmt: skip
    return bool(system.changed or connection.execute(select(or_(waiting, queued))).scalar())


def _refuse_lookalikes(connection: Connection, board: str, cards: Sequence[SystemCard], user: User) -> None:
    """NotAllowed when a new name would be read as that of somebody else's system."""
    if user.moderates:
        return
    wanted = {likeness(card.name): card.name for card in cards}
    others = _OWNED.where(
        systems.c.board == board, systems.c.owner_id != user.id, (users.c.team != user.team) | (users.c.team == "")
    )
    for row in connection.execute(others):
        name = wanted.get(likeness(row.name))
        if name is not None and _is_taken(connection, row):
            raise NotAllowed(
                f"The name {quoted(name)} looks like {quoted(row.name)} of {row.owner} on {board}; give yours another "
                "name, or ask a moderator."
            )


def _new_systems(connection: Connection, board: str, cards: Sequence[SystemCard], user: User) -> dict[str, int]:
    taken = set(connection.scalars(select(systems.c.slug).where(systems.c.board == board)))
    shared = {"board": board, "owner_id": user.id, "created": now(), "changed": 0}
    rows: list[dict[str, object]] = []
    for card in cards:
        slug = slug_of(card.name, taken)
        taken.add(slug)
        rows.append({**shared, "slug": slug, "name": card.name, "card": _packed(card)})
    connection.execute(insert(systems), rows)
    names = [card.name for card in cards]
    made = select(systems.c.name, systems.c.id).where(systems.c.board == board, systems.c.name.in_(names))
    return {row.name: row.id for row in connection.execute(made)}


def _add_rows(connection: Connection, rows: Sequence[ScoreRow], submission: int, ids: Mapping[str, int]) -> None:
    keys = [tuple(getattr(row, name) for name in MEASURED) for row in rows]
    numbers = _measurement_ids(connection, set(keys))
    stored = [
        {
            "submission_id": submission, "system_id": ids[row.system], "measurement_id": numbers[key],
            **{name: getattr(row, name) for name in CELLS},
        }
        for row, key in zip(rows, keys, strict=True)
    ]  # fmt: skip
    connection.execute(insert(scores), stored)


def _measurement_ids(connection: Connection, wanted: set[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    """The id of each measurement; those that nobody sent before are added."""
    columns = [measurements.c[name] for name in MEASURED]

    def known() -> dict[tuple[str, ...], int]:
        ids: dict[tuple[str, ...], int] = {}
        for subsets in in_parts(sorted({key[0] for key in wanted})):
            query = select(measurements.c.id, *columns).where(measurements.c.subset.in_(subsets))
            ids |= {tuple(row[1:]): row[0] for row in connection.execute(query)}
        return ids

    there = known()
    missing = sorted(wanted - there.keys())
    if missing:
        connection.execute(insert(measurements), [dict(zip(MEASURED, key, strict=True)) for key in missing])
        there = known()
    return there
