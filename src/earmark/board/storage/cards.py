"""Cards that are corrected without scores: what is said of a system, at once or after a moderator has looked.

A later accepted submission says its own; corrections and submissions count in the order in which they came.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, insert, or_, select, update

from earmark.board.records import CardChange, ChangeState, HistoryLine, System, User, sought
from earmark.board.refusals import Conflict, NotAllowed, NotFound
from earmark.board.storage.accounts import current_user, list_limit, now, record
from earmark.board.storage.live import SYSTEMS, read_system, recount_systems
from earmark.board.storage.notices import tell
from earmark.board.storage.tables import card_changes, events, submission_systems, submissions, systems, users
from earmark.databases import Part, reading
from earmark.errors import UsageError, did_you_mean, quoted
from earmark.submissions import Limits, Refused, card_from, plain_card
from earmark.submissions.rules import card_problems
from earmark.submissions.texts import checked_text, lookalike
from earmark.wording import listed

AT_ONCE = ("title", "description", "authors", "url", "citation", "year", "command")
"""Fields that nothing rests on: whoever a system belongs to changes them at once."""
AFTER_A_LOOK = (
    "kind", "family", "licence", "training_free", "parameters_m", "real_time_factor", "kbps", "pretraining",
)  # fmt: skip
"""Fields that ranks, filters or costs rest on: a moderator looks at their change first."""

_CHANGES = (
    select(
        card_changes.c.id, systems.c.board, systems.c.slug, systems.c.name.label("system"),
        users.c.name.label("owner"),
        *(
            card_changes.c[name]
            for name in ("created", "state", "changes", "before", "why", "decided", "decided_by", "reason")
        ),
    )
    .join(systems, systems.c.id == card_changes.c.system_id)
    .join(users, users.c.id == card_changes.c.owner_id)
)  # fmt: skip


class Cards(Part):
    """The part of the store that corrects cards."""

    limits: Limits

    def correct_card(
        self, board: str, slug: str, user: User, values: Mapping[str, object], why: str = ""
    ) -> list[CardChange]:
        """Change some fields of a card; "" or None takes a fact back. What others rest on waits for a moderator."""

        def work(connection: Connection) -> list[CardChange]:
            sender = current_user(connection, user)
            system = _owned_system(connection, board, slug, sender)
            kept_why = checked_text(why, "The reason", 2000, lines=True)
            changes, before = self._changes(system, values)
            waits = set() if sender.moderates else _waiting_fields(connection, system, changes)
            made = []
            for state, names in (("applied", changes.keys() - waits), ("waiting", waits)):
                if names:
                    some = {name: changes[name] for name in changes if name in names}
                    made.append(_add_change(connection, system, sender, state, some, before, kept_why))
            return made

        return self._write(work)

    def _changes(self, system: System, values: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is new among the values, and what it was."""
        known = (*AT_ONCE, *AFTER_A_LOOK)
        for name in values:
            if name not in known:
                hint = did_you_mean(str(name), known)
                raise UsageError(f"{quoted(str(name))} of a card cannot be corrected; {listed(known)} can.{hint}")
        plain = plain_card(system.card)
        card = card_from(plain | {name: None if value in ("", [], ()) else value for name, value in values.items()})
        if problems := card_problems(card, self.limits):
            raise Refused(problems)
        written = plain_card(card)
        changes = {name: written.get(name) for name in values if written.get(name) != plain.get(name)}
        if not changes:
            raise Conflict(f"The card of {quoted(system.card.name)} says all of that already.")
        return changes, {name: plain.get(name) for name in changes}

    def decide_card(self, id: int, moderator: User, accept: bool, reason: str = "") -> CardChange:
        """Apply a correction that waits, or reject it with a reason."""

        def work(connection: Connection) -> CardChange:
            user = current_user(connection, moderator)
            if not user.moderates:
                raise NotAllowed("Only a moderator decides about corrections.")
            kept_reason = checked_text(reason, "The reason", 2000, lines=True, needed=not accept)
            change = _one_change(connection, id)
            if change.state != "waiting":
                raise Conflict(f"The correction {id} is {change.state} already.")
            state: ChangeState = "applied" if accept else "rejected"
            values = {"state": state, "decided": now(), "decided_by": user.name, "reason": kept_reason}
            connection.execute(update(card_changes).where(card_changes.c.id == id).values(**values))
            row = connection.execute(select(card_changes).where(card_changes.c.id == id)).one()
            if accept:
                recount_systems(connection, [row.system_id])
            action = "accepted_card" if accept else "rejected_card"
            record(connection, user.name, action, detail=": ".join(filter(None, (_words(change), kept_reason))))
            tell(
                connection, row.owner_id, f"Correction of {change.system}: {state}",
                {"event": f"card_{state}", "board": change.board, "system": change.slug, "reason": kept_reason},
            )  # fmt: skip
            return _one_change(connection, id)

        return self._write(work)

    def card_changes(
        self, *, state: ChangeState | None = None, owner: str | None = None, limit: int = 50
    ) -> list[CardChange]:
        """Corrections, the newest first."""
        query = _CHANGES.order_by(card_changes.c.id.desc()).limit(list_limit(limit))
        for column, wanted in ((card_changes.c.state, state), (users.c.name, owner)):
            query = query if wanted is None else query.where(column == sought(wanted))
        return [_read_change(row) for row in self._rows(query)]

    def changes_of(self, board: str, slug: str, limit: int = 50) -> list[HistoryLine]:
        """What changed of a system beside its scores, the newest first: its card, and where its scores come from."""
        with reading(self.engine) as connection:
            here = (systems.c.board == sought(board), systems.c.slug == sought(slug))
            applied = _CHANGES.where(*here, card_changes.c.state == "applied")
            lines = [
                HistoryLine(change.decided or change.created, change.decided_by or change.owner, _difference(change))
                for change in map(_read_change, connection.execute(applied))
            ]
            tables = submission_systems.join(submissions).join(systems)
            own = select(submissions.c.public).select_from(tables).where(*here)
            marked = select(events).where(events.c.action == "marked", events.c.submission.in_(own))
            lines += [
                HistoryLine(row.at, row.user, f"provenance of {row.submission}: {row.detail}")
                for row in connection.execute(marked)
            ]
        return sorted(lines, reverse=True)[: list_limit(limit)]


def _owned_system(connection: Connection, board: str, slug: str, user: User) -> System:
    named = SYSTEMS.where(systems.c.board == sought(board), systems.c.slug == sought(slug), systems.c.changed > 0)
    row = connection.execute(named).first()
    if row is None:
        raise NotFound(f"The board {sought(board)[:100]} has no system {quoted(sought(slug))}.")
    system = read_system(row)
    if not (user.name == system.owner or (user.team and user.team == system.team) or user.moderates):
        raise NotAllowed(f"{quoted(system.card.name)} belongs to {system.owner}; only they or a moderator correct it.")
    return system


def _waiting_fields(connection: Connection, system: System, changes: Mapping[str, Any]) -> set[str]:
    """Those that a moderator looks at first: also a title that looks like the name of somebody else's system."""
    waits = set(changes) & set(AFTER_A_LOOK)
    title = changes.get("title")
    if title:
        others = select(systems.c.name, systems.c.card).join(users).where(systems.c.board == system.board)
        strange = others.where(
            users.c.name != system.owner, or_(users.c.team == "", users.c.team != system.team), systems.c.changed > 0
        )
        for name, card in connection.execute(strange):
            if lookalike(title) in (lookalike(name), lookalike(json.loads(card).get("title", ""))):
                waits.add("title")
    return waits


def _add_change(
    connection: Connection, system: System, user: User, state: str, changes: Mapping[str, Any],
    before: Mapping[str, Any], why: str,
) -> CardChange:  # fmt: skip
    values = {
        "system_id": system.id, "created": now(), "state": state, "why": why, "decided": None, "decided_by": "",
        "changes": json.dumps(changes, ensure_ascii=False), "reason": "",
        "before": json.dumps({name: before[name] for name in changes}, ensure_ascii=False),
    }  # fmt: skip
    made = connection.execute(insert(card_changes).values(**values, owner_id=user.id))
    assert made.inserted_primary_key is not None
    change = _one_change(connection, made.inserted_primary_key[0])
    if state == "applied":
        recount_systems(connection, [system.id])
    action = "corrected_card" if state == "applied" else "asked_card"
    record(connection, user.name, action, detail=": ".join(filter(None, (_words(change), why))))
    return change


def _one_change(connection: Connection, id: int) -> CardChange:
    row = connection.execute(_CHANGES.where(card_changes.c.id == id)).first() if 0 < id < 2**62 else None
    if row is None:
        raise NotFound(f"There is no correction {str(id)[:40]} on this board.")
    return _read_change(row)


def _read_change(row: Row[Any]) -> CardChange:
    cells = row._asdict()
    return CardChange(**cells | {name: json.loads(cells[name]) for name in ("changes", "before")})


def _words(change: CardChange) -> str:
    return f"{change.board}: {change.system}: {listed(change.changes)}"


def _difference(change: CardChange) -> str:
    """What was and what is, as people read it."""
    parts = (f"{name}: {_shown(change.before.get(name))} → {_shown(value)}" for name, value in change.changes.items())
    return "; ".join(parts)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "not stated"
    words = {None: "not stated", True: "yes", False: "no"}
    return words.get(value, str(value)) if value is None or isinstance(value, bool) else str(value)[:200]
