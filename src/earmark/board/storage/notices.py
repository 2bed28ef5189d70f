"""Whom the board tells what became of a submission, and what is still to be told.

A notice is written in the transaction of what it tells of, so that none is lost; `earmark.board.courier` sends it
later, and again until it arrives.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlsplit

from sqlalchemy import Connection, func, insert, select, update

from earmark.board.records import Contact, User
from earmark.board.refusals import Conflict, Refusal
from earmark.board.storage.accounts import current_user, now, record
from earmark.board.storage.tables import contacts, notices
from earmark.databases import Part
from earmark.errors import InputError, quoted
from earmark.submissions.texts import checked_text

MOST_ATTEMPTS = 8
_FIRST_WAIT = timedelta(minutes=1)
_CONFIRMATIONS = 3
_DAY = timedelta(hours=24)
_CONTACT = select(*(contacts.c[part.name] for part in fields(Contact)))


@dataclass(frozen=True)
class Notice:
    """Something to be told. `body` is what a program reads; `secret` signs it."""

    id: int
    kind: Literal["mail", "webhook"]
    target: str
    subject: str
    body: Mapping[str, Any]
    created: datetime
    attempts: int
    secret: str


class Notices(Part):
    """The part of the store that knows where to tell whom, and what is to be told."""

    def contact(self, user: User) -> Contact:
        """Where a user is told."""
        return next((Contact(*row) for row in self._rows(_CONTACT.where(contacts.c.user_id == user.id))), Contact())

    def set_contact(self, user: User, mail: str, webhook: str) -> Contact:
        """Say where one is told; a new address of mail counts once it is confirmed, a new webhook has a new secret."""

        def work(connection: Connection) -> Contact:
            owner = current_user(connection, user)
            old = _contact(connection, owner.id)
            new = Contact(
                _mail_address(mail), old.confirmed if mail.strip() == old.mail else None, _web_address(webhook),
                old.secret if old.secret and webhook.strip() == old.webhook else secrets.token_urlsafe(32),
            )  # fmt: skip
            values = {part.name: getattr(new, part.name) for part in fields(Contact)}
            there = connection.execute(update(contacts).where(contacts.c.user_id == owner.id).values(**values))
            if not there.rowcount:
                connection.execute(insert(contacts).values(user_id=owner.id, **values))
            told = [word for word, text in (("mail", new.mail), ("webhook", new.webhook)) if text]
            record(connection, owner.name, "set_contact", detail=", ".join(told) or "none")
            return new

        return self._write(work)

    def ask_to_confirm(self, user: User, code: str) -> None:
        """Send a code to the mail address that a user gave: whoever reads it there may confirm it."""

        def work(connection: Connection) -> None:
            owner = current_user(connection, user)
            contact = _contact(connection, owner.id)
            if not contact.mail or contact.confirmed:
                raise Conflict("There is no mail address that waits to be confirmed.")
            asked = select(func.count()).where(
                notices.c.user_id == owner.id, notices.c.subject == _CONFIRM, notices.c.created > now() - _DAY
            )
            if (connection.execute(asked).scalar() or 0) >= _CONFIRMATIONS:
                raise Refusal(f"{_CONFIRMATIONS} codes were sent within 24 hours; try again tomorrow.", 429)
            _queue(connection, owner.id, "mail", contact.mail, _CONFIRM, {"event": "confirm", "code": code})

        self._write(work)

    def confirm_mail(self, user: User, mail: str) -> None:
        """The address is the user's: a code that was sent there came back."""

        def work(connection: Connection) -> None:
            owner = current_user(connection, user)
            if _contact(connection, owner.id).mail != mail:
                raise Conflict("The code is for another address than the one that you gave last; ask for a new one.")
            connection.execute(update(contacts).where(contacts.c.user_id == owner.id).values(confirmed=now()))
            record(connection, owner.name, "confirmed_mail")

        self._write(work)

    def take_notices(self, limit: int = 20) -> list[Notice]:
        """Some of what is due, taken so that no other process sends it now; it is due again later, and ever later."""

        def work(connection: Connection) -> list[Notice]:
            due = select(notices, contacts.c.secret).outerjoin(contacts, contacts.c.user_id == notices.c.user_id)
            due = due.where(notices.c.sent.is_(None), notices.c.due <= now()).order_by(notices.c.due).limit(limit)
            taken = []
            for row in connection.execute(due).all():
                attempts = row.attempts + 1
                again = now() + _FIRST_WAIT * 2 ** (attempts - 1) if attempts < MOST_ATTEMPTS else None
                values = {"attempts": attempts, "due": again}
                connection.execute(update(notices).where(notices.c.id == row.id).values(**values))
                taken.append(
                    Notice(
                        row.id, row.kind, row.target, row.subject, json.loads(row.body), row.created, attempts,
                        row.secret or "",
                    )
                )  # fmt: skip
            return taken

        return self._write(work)

    def has_due_notices(self) -> bool:
        """Whether `take_notices` would find something: asked often, and without a writer's lock."""
        due = select(notices.c.id).where(notices.c.sent.is_(None), notices.c.due <= now()).limit(1)
        return bool(self._rows(due))

    def close_notice(self, notice: Notice, error: str = "") -> None:
        """Say that a notice arrived, or what was wrong; after the last attempt that stands in the audit trail."""

        def work(connection: Connection) -> None:
            values: dict[str, Any] = {"error": error[:500]} if error else {"sent": now(), "due": None, "error": ""}
            connection.execute(update(notices).where(notices.c.id == notice.id).values(**values))
            if error and notice.attempts >= MOST_ATTEMPTS:
                record(connection, "board", "gave_up_notice", detail=f"{notice.kind} {notice.id}: {error}")

        self._write(work)


_CONFIRM = "Confirm your mail address"


def tell(connection: Connection, user_id: int, subject: str, body: Mapping[str, Any]) -> None:
    """Write down what a user is to be told, wherever they want to be told."""
    contact = _contact(connection, user_id)
    if contact.mail and contact.confirmed:
        _queue(connection, user_id, "mail", contact.mail, subject, body)
    if contact.webhook:
        _queue(connection, user_id, "webhook", contact.webhook, subject, body)


def _queue(connection: Connection, user_id: int, kind: str, target: str, subject: str, body: Mapping[str, Any]) -> None:
    values = {
        "user_id": user_id, "kind": kind, "target": target, "subject": subject[:200], "attempts": 0, "due": now(),
        "created": now(), "sent": None, "error": "", "body": json.dumps(dict(body), ensure_ascii=False),
    }  # fmt: skip
    connection.execute(insert(notices).values(**values))


def _contact(connection: Connection, user_id: int) -> Contact:
    row = connection.execute(_CONTACT.where(contacts.c.user_id == user_id)).first()
    return Contact(*row) if row else Contact()


def _mail_address(text: str) -> str:
    address = checked_text(text, "The mail address", 254)
    name, _, host = address.rpartition("@")
    if address and not (name and "." in host and address.isascii() and not set(address) & set(' <>,;:"\\()[]')):
        raise InputError(f"{quoted(address)} is no mail address such as ada@example.org.")
    return address


def _web_address(text: str) -> str:
    address = checked_text(text, "The address of the webhook", 1000)
    if not address:
        return ""
    try:
        parts = urlsplit(address)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username and parts.port != 0
    except ValueError:
        fine = False
    if not fine or not address.isascii() or " " in address:
        raise InputError(f"{quoted(address)} is no address of a webhook such as https://example.org/hook.")
    return address
