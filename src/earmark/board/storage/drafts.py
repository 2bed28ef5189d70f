"""Drafts: documents that their author keeps on the board, looks at, and sends or deletes."""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select

from earmark.board.records import Draft, User, sought
from earmark.board.refusals import NotFound, Refusal
from earmark.board.storage.accounts import current_user, now, record
from earmark.board.storage.arrivals import refuse_provenance, rules_of
from earmark.board.storage.boards import as_named_now, refuse_closed
from earmark.board.storage.tables import drafts
from earmark.databases import Part, reading
from earmark.submissions import Document, Limits, enforce, read_document
from earmark.wording import counted

MOST_DRAFTS = 20
MOST_ROWS = 20_000  # a draft is read whenever its author looks at it
_SHOWN = ("public", "board", "names", "rows", "digest", "size", "notes", "created")
_DRAFTS = select(*(drafts.c[name] for name in _SHOWN))


class Drafts(Part):
    """The part of the store that keeps drafts, each for `draft_days`."""

    limits: Limits
    draft_days: float

    def save_draft(self, document: Document, user: User, notes: Sequence[str] = ()) -> Draft:
        """Keep a document that its author may send later; `Refused` when it breaks the rules."""
        if len(document.scores) > MOST_ROWS:
            raise Refusal(
                f"A draft has at most {MOST_ROWS:,} rows, and this one {len(document.scores):,}; send it.", 422
            )
        with reading(self.engine) as connection:
            document = as_named_now(connection, document, user)
            rules = rules_of(connection, document.board)
        verdict = enforce(document, self.limits, *rules)

        def work(connection: Connection) -> Draft:
            owner = current_user(connection, user)
            refuse_closed(rules[1].get(document.board), owner)
            refuse_provenance(document, owner)
            self._expire(connection)
            kept = select(func.count()).where(drafts.c.owner_id == owner.id)
            if (connection.execute(kept).scalar() or 0) >= MOST_DRAFTS:
                raise Refusal(f"You have {MOST_DRAFTS} drafts, the most that are kept; send or delete one first.", 409)
            public = secrets.token_hex(8)
            values = {
                "public": public, "owner_id": owner.id, "board": document.board, "rows": len(document.scores),
                "digest": document.digest, "size": len(document.to_bytes()), "created": now(),
                "names": json.dumps([card.name for card in document.cards], ensure_ascii=False),
                "notes": json.dumps([*verdict.warnings, *notes], ensure_ascii=False),
                "packed": zlib.compress(document.to_bytes(), 6),
            }  # fmt: skip
            connection.execute(insert(drafts).values(**values))
            extent = f"{counted(len(document.scores), 'row')} on {document.board}"
            record(connection, owner.name, "saved_draft", public, extent)
            return _read(connection.execute(_DRAFTS.where(drafts.c.public == public)).one())

        return self._write(work)

    def drafts(self, user: User) -> list[Draft]:
        """One's own drafts, the newest first."""
        own = _DRAFTS.where(drafts.c.owner_id == user.id, drafts.c.created > self._oldest())
        return [_read(row) for row in self._rows(own.order_by(drafts.c.id.desc()))]

    def draft(self, id: str, user: User) -> tuple[Draft, Document]:
        """One of one's own drafts, and the document in it."""
        own = (drafts.c.public == sought(id), drafts.c.owner_id == user.id, drafts.c.created > self._oldest())
        for row in self._rows(_DRAFTS.add_columns(drafts.c.packed).where(*own)):
            document = read_document(zlib.decompress(row.packed), filename="document.json", limits=self.limits)
            return _read(row), document
        raise NotFound("You have no such draft: it was sent, deleted, or has expired.")

    def delete_draft(self, id: str, user: User) -> None:
        """Delete one of one's own drafts."""

        def work(connection: Connection) -> None:
            owner = current_user(connection, user)
            own = (drafts.c.public == sought(id), drafts.c.owner_id == owner.id)
            if not connection.execute(delete(drafts).where(*own)).rowcount:
                raise NotFound("You have no such draft: it was sent, deleted, or has expired.")
            record(connection, owner.name, "deleted_draft", sought(id)[:40])

        self._write(work)

    def _oldest(self) -> Any:
        return now() - timedelta(days=self.draft_days)

    def _expire(self, connection: Connection) -> None:
        gone = connection.execute(delete(drafts).where(drafts.c.created <= self._oldest())).rowcount
        if gone:
            record(connection, "board", "expired_drafts", detail=counted(gone, "draft"))


def _read(row: Row[Any]) -> Draft:
    names, notes = (tuple(json.loads(text)) for text in (row.names, row.notes))
    return Draft(row.public, row.board, names, row.rows, row.digest, row.size, notes, row.created)
