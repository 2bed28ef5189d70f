"""A document arrives: who may send it, whether it came before, and its rows, all in the caller's transaction."""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, and_, exists, insert, select, update

from earmark.board import records
from earmark.board.cards import plain_card
from earmark.board.refusals import Conflict, NotAllowed
from earmark.board.storage.accounts import now, record
from earmark.board.storage.tables import Document, Measurement, Score, Submission, SubmissionSystem, System, User
from earmark.board.submission import Document as Sent
from earmark.board.texts import likeness, slug_of
from earmark.errors import quoted
from earmark.scores import COLUMNS, KEY, Row
from earmark.wording import counted

MEASURED = KEY[3:]
"""distance, correction, protocol, metric; with the subset they make a measurement."""
CELLS = COLUMNS[7:]
"""The columns of a score that are not its key."""


def earlier(connection: Connection, document: Sent, user: records.User, key: str) -> str | None:
    """The submission that this one repeats: the same key, or, without a key, the same document as the newest one."""
    if key:
        row = connection.execute(
            select(Submission.public, Submission.digest).where(Submission.owner_id == user.id, Submission.key == key)
        ).first()
        if row is not None and row.digest != document.digest:
            raise Conflict("The idempotency key was used for another document; choose a new key for this one.")
        return None if row is None else row.public
    same = connection.execute(
        select(Submission.id, Submission.public)
        .where(
            Submission.owner_id == user.id,
            Submission.digest == document.digest,
            Submission.board == document.board,
            Submission.state.in_(("pending", "accepted")),
        )
        .order_by(Submission.id.desc())
    ).first()
    if same is None:
        return None
    systems = select(SubmissionSystem.system_id).where(SubmissionSystem.submission_id == same.id)
    newer = connection.execute(
        select(Submission.id)
        .join(SubmissionSystem, SubmissionSystem.submission_id == Submission.id)
        .where(
            SubmissionSystem.system_id.in_(systems),
            Submission.id > same.id,
            Submission.state.in_(("pending", "accepted")),
        )
        .limit(1)
    ).first()
    return same.public if newer is None else None


def add(connection: Connection, document: Sent, user: records.User, key: str, notes: Sequence[str]) -> str:
    """Store a document as a pending submission and return its public id."""
    if document.provenance != "self-reported" and user.role != "moderator":
        raise NotAllowed(
            f'Only a moderator may call scores "{document.provenance}"; send them as self-reported, and a moderator '
            "may mark them."
        )
    systems = _claimed(connection, document, user)
    public = secrets.token_hex(8)
    made = connection.execute(
        insert(Submission).values(
            public=public, board=document.board, owner_id=user.id, team=user.team, state="pending",
            provenance=document.provenance, created=now(), decided=None, decided_by="", reason="",
            rows=len(document.scores), digest=document.digest, version=document.version[:2000],
            notes=json.dumps(list(notes), ensure_ascii=False), key=key,
        )
    )  # fmt: skip
    assert made.inserted_primary_key is not None
    number = made.inserted_primary_key[0]
    connection.execute(insert(Document).values(submission_id=number, packed=zlib.compress(document.to_bytes(), 6)))
    connection.execute(
        insert(SubmissionSystem),
        [
            {"submission_id": number, "system_id": systems[card.name], "place": place, "card": _packed(card)}
            for place, card in enumerate(document.cards)
        ],
    )
    _add_rows(connection, document.scores.rows, number, systems)
    record(
        connection, user.name, "submitted", public,
        f"{counted(len(document.scores), 'row')} of {counted(len(document.cards), 'system')} on {document.board}",
    )  # fmt: skip
    return public


def _packed(card: records.SystemCard) -> str:
    return json.dumps(plain_card(card), ensure_ascii=False)


def _claimed(connection: Connection, document: Sent, user: records.User) -> dict[str, int]:
    """The ids of the document's systems, new ones made; NotAllowed when one of them belongs to somebody else."""
    names = [card.name for card in document.cards]
    found = connection.execute(
        select(System.id, System.name, System.changed, System.owner_id, User.name.label("owner"), User.team)
        .join(User, User.id == System.owner_id)
        .where(System.board == document.board, System.name.in_(names))
    )
    ids: dict[str, int] = {}
    for row in found:
        mine = row.owner_id == user.id or (bool(user.team) and row.team == user.team) or user.role == "moderator"
        if not mine:
            if row.changed or _awaited(connection, row.id):
                raise NotAllowed(
                    f"The system {quoted(row.name)} on {document.board} belongs to {row.owner}; give yours another "
                    "name, or ask a moderator."
                )
            # It was rejected or taken back before anybody saw it: a name is not kept by asking for it.
            connection.execute(update(System).where(System.id == row.id).values(owner_id=user.id))
            record(connection, user.name, "took_over", detail=f"{document.board}: {row.name}, from {row.owner}")
        ids[row.name] = row.id
    new = [card for card in document.cards if card.name not in ids]
    _refuse_lookalikes(connection, document.board, new, user)
    return ids | _new_systems(connection, document.board, new, user)


def _refuse_lookalikes(
    connection: Connection, board: str, cards: Sequence[records.SystemCard], user: records.User
) -> None:
    """NotAllowed when a new name would be read as that of somebody else's system."""
    if not cards or user.role == "moderator":
        return
    wanted = {likeness(card.name): card.name for card in cards}
    others = connection.execute(
        select(System.id, System.name, System.changed, User.name.label("owner"))
        .join(User, User.id == System.owner_id)
        .where(System.board == board, System.owner_id != user.id, (User.team != user.team) | (User.team == ""))
    )
    for row in others:
        name = wanted.get(likeness(row.name))
        if name is not None and (row.changed or _awaited(connection, row.id)):
            raise NotAllowed(
                f"The name {quoted(name)} looks like {quoted(row.name)} of {row.owner} on {board}; give yours another "
                "name, or ask a moderator."
            )


def _awaited(connection: Connection, system: int) -> bool:
    waiting = exists().where(
        and_(
            SubmissionSystem.system_id == system,
            SubmissionSystem.submission_id == Submission.id,
            Submission.state == "pending",
        )
    )
    return bool(connection.execute(select(waiting)).scalar())


def _new_systems(
    connection: Connection, board: str, cards: Sequence[records.SystemCard], user: records.User
) -> dict[str, int]:
    if not cards:
        return {}
    taken = set(connection.scalars(select(System.slug).where(System.board == board)))
    rows: list[dict[str, object]] = []
    for card in cards:
        plain = slug = slug_of(card.name)
        number = 1
        while slug in taken:
            number += 1
            slug = f"{plain}-{number}"
        taken.add(slug)
        rows.append({"board": board, "slug": slug, "name": card.name, "card": _packed(card), "owner_id": user.id})
    when = now()
    connection.execute(insert(System), [{**row, "created": when, "changed": 0} for row in rows])
    names = [card.name for card in cards]
    made = select(System.name, System.id).where(System.board == board, System.name.in_(names))
    return {row.name: row.id for row in connection.execute(made)}


def _add_rows(connection: Connection, rows: Sequence[Row], submission: int, systems: Mapping[str, int]) -> None:
    keys = _measurements(connection, {(row.subset, *row.key[3:]) for row in rows})
    connection.execute(
        insert(Score),
        [
            {
                "submission_id": submission,
                "system_id": systems[row.system],
                "measurement_id": keys[(row.subset, *row.key[3:])],
                **{name: getattr(row, name) for name in CELLS},
            }
            for row in rows
        ],
    )


def _measurements(connection: Connection, wanted: set[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    columns = (Measurement.subset, *(getattr(Measurement, name) for name in MEASURED))

    def known() -> dict[tuple[str, ...], int]:
        subsets = sorted({key[0] for key in wanted})
        found: dict[tuple[str, ...], int] = {}
        for start in range(0, len(subsets), 500):  # databases bound the number of parameters
            part = select(Measurement.id, *columns).where(Measurement.subset.in_(subsets[start : start + 500]))
            found |= {tuple(row[1:]): row[0] for row in connection.execute(part)}
        return found

    there = known()
    missing = sorted(wanted - there.keys())
    if missing:
        names = ("subset", *MEASURED)
        connection.execute(insert(Measurement), [dict(zip(names, key, strict=True)) for key in missing])
        there = known()
    return there
