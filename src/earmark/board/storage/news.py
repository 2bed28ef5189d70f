"""What changed on a board, for its feed: scores that were accepted or withdrawn, and new definitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, exists, select

from earmark.board.records import sought
from earmark.board.storage.accounts import list_limit
from earmark.board.storage.tables import events, submission_systems, submissions, systems
from earmark.databases import Part, reading

ACCEPTED, WITHDRAWN, DEFINED = "accepted", "withdrew", "defined_board"


@dataclass(frozen=True)
class NewsItem:
    """A change that everybody may know of. `id` is that of its line in the audit trail and never changes."""

    id: int
    at: datetime
    action: str  # ACCEPTED, WITHDRAWN or DEFINED
    board: str
    submission: str = ""
    rows: int = 0
    provenance: str = ""
    systems: tuple[tuple[str, str], ...] = ()  # slug and name of each
    detail: str = ""  # of a definition: its version and why it changed


class News(Part):
    """The part of the store that knows what changed."""

    def news(self, board: str, limit: int = 50) -> list[NewsItem]:
        """What changed on a board, the newest first. What was never accepted is nobody's business."""
        with reading(self.engine) as connection:
            sent = _of_submissions(connection, sought(board), list_limit(limit))
            items = sorted(
                [*sent, *_of_definitions(connection, sought(board), list_limit(limit))], key=lambda item: -item.id
            )
        return items[:limit]


def _of_submissions(connection: Connection, board: str, limit: int) -> list[NewsItem]:
    earlier = events.alias()
    once = exists().where(earlier.c.submission == submissions.c.public, earlier.c.action == ACCEPTED)
    query = (
        select(
            events.c.id, events.c.at, events.c.action, submissions.c.id.label("number"), submissions.c.public,
            submissions.c.rows, submissions.c.provenance,
        )
        .join(submissions, submissions.c.public == events.c.submission)
        .where(submissions.c.board == board, events.c.action.in_((ACCEPTED, WITHDRAWN)), once)
        .order_by(events.c.id.desc())
        .limit(limit)
    )  # fmt: skip
    rows = connection.execute(query).all()
    named = systems_of(connection, [row.number for row in rows])
    return [
        NewsItem(
            row.id, row.at, row.action, board, row.public, row.rows, row.provenance, tuple(named.get(row.number, ()))
        )
        for row in rows
    ]


def _of_definitions(connection: Connection, board: str, limit: int) -> list[NewsItem]:
    start = f"{board}, version "
    query = select(events.c.id, events.c.at, events.c.detail).where(
        events.c.action == DEFINED, events.c.detail.startswith(start, autoescape=True)
    )
    newest = connection.execute(query.order_by(events.c.id.desc()).limit(limit)).all()
    return [
        NewsItem(row.id, row.at, DEFINED, board, detail=row.detail.removeprefix(f"{board}, ").rstrip(": "))
        for row in newest
    ]


def systems_of(connection: Connection, numbers: Sequence[int]) -> dict[int, list[tuple[str, str]]]:
    """The slug and the name of each system of some submissions."""
    query = (
        select(submission_systems.c.submission_id, systems.c.slug, systems.c.name)
        .join(systems, systems.c.id == submission_systems.c.system_id)
        .where(submission_systems.c.submission_id.in_(set(numbers)))
        .order_by(submission_systems.c.place)
    )
    named: dict[int, list[tuple[str, str]]] = {}
    for row in connection.execute(query):
        named.setdefault(row.submission_id, []).append((row.slug, row.name))
    return named
