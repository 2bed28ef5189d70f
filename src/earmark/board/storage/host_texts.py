"""The host's own words, in Markdown: imprint, privacy, news (a banner on every page), footer."""

from __future__ import annotations

from typing import Literal, get_args

from sqlalchemy import Connection, delete, insert, select

from earmark.board.records import User
from earmark.board.storage.accounts import now, record
from earmark.board.storage.live import grow
from earmark.board.storage.people import acting_host
from earmark.board.storage.tables import host_texts
from earmark.databases import Part
from earmark.errors import UsageError, did_you_mean, quoted
from earmark.submissions.texts import checked_text

HostText = Literal["news", "footer", "imprint", "privacy"]
HOST_TEXTS: tuple[HostText, ...] = get_args(HostText)
_MOST = {"news": 1_000, "footer": 1_000}
_LONGEST = 50_000


class HostTexts(Part):
    """The part of the store that keeps what the host writes on every page."""

    def host_texts(self) -> dict[str, str]:
        """The texts that there are, by name."""
        return {row.name: row.text for row in self._rows(select(host_texts))}

    def set_host_text(self, name: str, text: str, by: User | None) -> None:
        """Write one of them anew; an empty one is taken away. Readers see it on the next page."""

        def work(connection: Connection) -> None:
            acting = acting_host(connection, by)
            if name not in HOST_TEXTS:
                known = ", ".join(HOST_TEXTS)
                raise UsageError(f"{quoted(name)} is none of the texts {known}.{did_you_mean(name, HOST_TEXTS)}")
            kept = checked_text(text.replace("\r\n", "\n"), f"The text {name}", _MOST.get(name, _LONGEST), lines=True)
            connection.execute(delete(host_texts).where(host_texts.c.name == name))
            if kept:
                connection.execute(insert(host_texts).values(name=name, text=kept, changed=now(), changed_by=acting))
            grow(connection)  # pages are kept until the generation grows
            record(
                connection, acting, "wrote_text", detail=f"{name}: {len(kept)} characters" if kept else f"{name}: none"
            )

        self._write(work)
