"""What becomes of a submission: accepted, rejected, withdrawn; and which scores count after that."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import Connection, and_, delete, func, insert, not_, or_, select, update

from earmark.board import records
from earmark.board.cards import card_from, combined, plain_card
from earmark.board.groups import BOARDS_WITH_BLIND_SUBSETS, blind_subsets
from earmark.board.refusals import Conflict, NotAllowed, NotFound
from earmark.board.storage.accounts import now, record
from earmark.board.storage.tables import Live, Measurement, Meta, Score, Submission, SubmissionSystem, System, User
from earmark.board.texts import checked_text

GENERATION = "generation"


def generation(connection: Connection) -> int:
    found = connection.execute(select(Meta.value).where(Meta.key == GENERATION)).scalar()
    return int(found or 0)


def _next_generation(connection: Connection) -> int:
    number = generation(connection) + 1
    changed = connection.execute(update(Meta).where(Meta.key == GENERATION).values(value=str(number)))
    if not changed.rowcount:
        connection.execute(insert(Meta).values(key=GENERATION, value=str(number)))
    return number


def decide(
    connection: Connection,
    public: str,
    moderator: records.User,
    accept: bool,
    reason: str,
    provenance: records.Provenance | None,
) -> None:
    if moderator.role != "moderator":
        raise NotAllowed("Only a moderator decides about submissions.")
    reason = checked_text(reason, "The reason", 2000, lines=True, needed=not accept)
    row = _found(connection, public)
    if row.state != "pending":
        raise Conflict(f"Submission {public} is {row.state} already; only a pending one can be decided.")
    state = "accepted" if accept else "rejected"
    values: dict[str, object] = {
        "state": state, "decided": now(), "decided_by": moderator.name, "reason": reason,
    }  # fmt: skip
    if accept:
        values["provenance"] = provenance or row.provenance
        if values["provenance"] == "self-reported" and (claimed := _claimed(connection, row)):
            raise Conflict(
                f"Submission {public} has self-reported scores of {', '.join(claimed)}, which only the host can "
                "measure; reject it, or accept it as blind or reproduced if you measured them."
            )
    connection.execute(update(Submission).where(Submission.id == row.id).values(**values))
    if accept:
        _recount(connection, row.id)
    marked = f"as {provenance}" if accept and provenance else ""
    record(connection, moderator.name, state, public, ": ".join(filter(None, (marked, reason))))


def _claimed(connection: Connection, row: Submission) -> list[str]:
    """The blind subsets of which a submission has measurements."""
    found = connection.scalars(
        select(Measurement.subset)
        .distinct()
        .join(Score, Score.measurement_id == Measurement.id)
        .where(Score.submission_id == row.id, Score.status == "ok", Measurement.subset.in_(blind_subsets(row.board)))
    )
    return sorted(found)


def withdraw(connection: Connection, public: str, user: records.User, reason: str) -> None:
    reason = checked_text(reason, "The reason", 2000, lines=True)
    row = _found(connection, public)
    owner = connection.execute(select(User.name).where(User.id == row.owner_id)).scalar()
    mine = owner == user.name or (bool(user.team) and row.team == user.team) or user.role == "moderator"
    if not mine:
        raise NotAllowed(f"Submission {public} belongs to {owner}; only they or a moderator may withdraw it.")
    if row.state not in ("pending", "accepted"):
        raise Conflict(f"Submission {public} is {row.state} already; there is nothing to withdraw.")
    connection.execute(
        update(Submission)
        .where(Submission.id == row.id)
        .values(state="withdrawn", decided=now(), decided_by=user.name, reason=reason)
    )
    if row.state == "accepted":
        _recount(connection, row.id)
    record(connection, user.name, "withdrew", public, reason)


def _found(connection: Connection, public: str) -> Submission:
    row = connection.execute(select(Submission.__table__).where(Submission.public == public)).first()
    if row is None:
        raise NotFound(f"There is no submission {public[:40]!r} on this board.")
    return row  # type: ignore[return-value]


def _recount(connection: Connection, submission: int) -> None:
    """Bring what readers see of the systems of a submission up to date."""
    systems = list(
        connection.scalars(select(SubmissionSystem.system_id).where(SubmissionSystem.submission_id == submission))
    )
    number = _next_generation(connection)
    for start in range(0, len(systems), 500):
        refresh_live(connection, systems[start : start + 500])
    for system, card in _cards(connection, systems).items():
        text = json.dumps(plain_card(card), ensure_ascii=False)
        connection.execute(update(System).where(System.id == system).values(card=text))
    for start in range(0, len(systems), 500):
        connection.execute(update(System).where(System.id.in_(systems[start : start + 500])).values(changed=number))


def refresh_live(connection: Connection, systems: Sequence[int]) -> None:
    """Point each measurement of the systems at its newest accepted score, by computing all of them again.

    A self-reported score of a blind subset, which an earlier version took, does not stand in front of the host's.
    """
    connection.execute(delete(Live).where(Live.system_id.in_(systems)))
    claims = and_(
        Submission.provenance == "self-reported",
        or_(
            *(
                and_(Submission.board == board, Measurement.subset.in_(blind_subsets(board)))
                for board in BOARDS_WITH_BLIND_SUBSETS
            )
        ),
    )
    newest = (
        select(Score.system_id, Score.measurement_id, func.max(Score.id))
        .join(Submission, Submission.id == Score.submission_id)
        .join(Measurement, Measurement.id == Score.measurement_id)
        .where(Score.system_id.in_(systems), Submission.state == "accepted", not_(claims))
        .group_by(Score.system_id, Score.measurement_id)
    )
    connection.execute(insert(Live).from_select(["system_id", "measurement_id", "score_id"], newest))


def _cards(connection: Connection, systems: Sequence[int]) -> dict[int, records.SystemCard]:
    """What the accepted cards of each system say together; a system without any keeps the card that it has."""
    told: dict[int, list[records.SystemCard]] = {}
    for start in range(0, len(systems), 500):
        found = connection.execute(
            select(SubmissionSystem.system_id, SubmissionSystem.card)
            .join(Submission, Submission.id == SubmissionSystem.submission_id)
            .where(SubmissionSystem.system_id.in_(systems[start : start + 500]), Submission.state == "accepted")
            .order_by(Submission.id)
        )
        for system, card in found:
            told.setdefault(system, []).append(card_from(json.loads(card)))
    return {system: combined(cards) for system, cards in told.items()}
