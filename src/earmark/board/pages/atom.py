"""Feeds as Atom: of what everybody may know, and of what became of one author's submissions."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

from earmark.tables import plain

ATOM = "application/atom+xml; charset=utf-8"


class Entry(NamedTuple):
    """One thing that happened; `key` makes its id, the same wherever the board is served from."""

    title: str
    key: tuple[str, ...]
    at: datetime
    address: str
    words: str
    category: str


def atom(title: str, key: tuple[str, ...], own: str, page: str, entries: Sequence[Entry]) -> str:
    """A feed whose own address is `own` and whose page is `page`, the newest entry first."""
    last = entries[0].at if entries else datetime(2026, 1, 1, tzinfo=UTC)
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<title>{escape(title)}</title><id>{_stable(*key)}</id><updated>{_moment(last)}</updated>",
        f'<link rel="self" href="{escape(own)}"/>',
        f'<link rel="alternate" type="text/html" href="{escape(page)}"/>',
        "<author><name>Earmark</name></author>",
        *map(_entry, entries),
        "</feed>\n",
    ]
    return "\n".join(parts)


def _entry(entry: Entry) -> str:
    return (
        f"<entry><title>{escape(plain(entry.title, 300))}</title><id>{_stable(*entry.key)}</id>"
        f'<updated>{_moment(entry.at)}</updated><link href="{escape(entry.address)}"/>'
        f'<summary>{escape(plain(entry.words, 1000))}</summary><category term="{escape(entry.category)}"/></entry>'
    )


def _stable(*parts: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, "\n".join(("earmark", *parts))).urn


def _moment(at: datetime) -> str:
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")
