"""A document arrives: whether it came before, within whose quota it is, whose its systems are, and its rows."""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection, exists, insert, or_, select, update

from earmark.board.records import Quotas, User, slug_of, sought
from earmark.board.refusals import Conflict, NotAllowed, Refusal
from earmark.board.storage.accounts import now, record
from earmark.board.storage.definitions import definition_of
from earmark.board.storage.live import blind_names
from earmark.board.storage.tables import (
    CELLS,
    MEASURED,
    blind_jobs,
    documents,
    measurements,
    scores,
    submission_systems,
    submissions,
    systems,
    users,
)
from earmark.databases import in_parts
from earmark.definitions import Definition
from earmark.errors import quoted
from earmark.scores import Row as ScoreRow
from earmark.submissions import Document, SystemCard, plain_card
from earmark.submissions.texts import likeness
from earmark.wording import counted

LISTED = ("pending", "accepted")
_DAY = timedelta(hours=24)


def earlier_submission(connection: Connection, document: Document, user: User, key: str) -> str | None:
    """The submission that this one repeats: the same key, or, without a key, the same document as the newest one."""
    own = select(submissions).where(submissions.c.owner_id == user.id)
    if key:
        row = connection.execute(own.where(submissions.c.key == key)).first()
        if row is not None and row.digest != document.digest:
            raise Conflict("The idempotency key was used for another document; choose a new key for this one.")
        return None if row is None else row.public
    standing = submissions.c.state.in_(LISTED)
    equal = own.where(submissions.c.digest == document.digest, submissions.c.board == document.board, standing)
    same = connection.execute(equal.order_by(submissions.c.id.desc())).first()
    if same is None:
        return None
    its_systems = select(submission_systems.c.system_id).where(submission_systems.c.submission_id == same.id)
    newer = select(submissions.c.id).join(submission_systems).where(submissions.c.id > same.id, standing)
    newer = newer.where(submission_systems.c.system_id.in_(its_systems)).limit(1)
    return same.public if connection.execute(newer).first() is None else None


def rules_of(connection: Connection, board: str) -> tuple[frozenset[str], dict[str, Definition]]:
    """What a document is checked against: blind subsets, and the definition of its board."""
    definition = definition_of(connection, sought(board))
    return blind_names(connection, sought(board)), {board: definition} if definition else {}


def refuse_beyond_quota(connection: Connection, document: Document, user: User, quotas: Quotas) -> None:
    """429 when a document would take an author, or their team, beyond what a board takes of them in 24 hours."""
    if user.moderates:
        return
    columns = submissions.c
    whose = users.c.team == user.team if user.team else users.c.id == user.id
    recent = (
        select(columns.created, columns.rows, columns.size).join(users).where(whose, columns.created > now() - _DAY)
    )
    sent = connection.execute(recent.order_by(columns.created)).all()
    asked = {"submissions": 1, "rows": len(document.scores), "bytes": len(document.to_bytes())}
    counts = {
        "submissions": [1] * len(sent), "rows": [row.rows for row in sent], "bytes": [row.size for row in sent],
    }  # fmt: skip
    for name, more in asked.items():
        most, whole = getattr(quotas, name), sum(counts[name])
        if most and whole + more > most:
            raise _beyond(user, name, most, whole, more, [row.created for row in sent], counts[name])


def _beyond(
    user: User, name: str, most: int, whole: int, more: int, moments: Sequence[datetime], counts: Sequence[int]
) -> Refusal:
    """The refusal, with the time from which the same document is within the quota again."""
    who = f"The team {user.team}" if user.team else user.name
    sentence = f"{who} has sent {whole:,} {name} within 24 hours, and this board takes {most:,}"
    if more > most:
        return Refusal(f"{sentence}; this document alone has {more:,}. Send less, or ask the host of the board.", 429)
    free = accumulate(counts)
    until = next(moment for moment, gone in zip(moments, free, strict=True) if whole - gone + more <= most)
    wait = max(1, round((until + _DAY - now()).total_seconds() + 0.5))
    hours = f"{wait / 3600:.1f} h" if wait >= 360 else f"{wait} s"
    return Refusal(f"{sentence}; send this in {hours}, or ask the host of the board.", 429, {"Retry-After": str(wait)})


def refuse_provenance(document: Document, user: User) -> None:
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
            notes=json.dumps(list(notes), ensure_ascii=False), key=key, size=len(document.to_bytes()),
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
