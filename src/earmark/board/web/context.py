"""What every page and every route of one board shares, made once when the app starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from earmark.board.web.security import Signer
from earmark.board.settings import Settings

if TYPE_CHECKING:
    from fastapi.templating import Jinja2Templates

    from earmark.board.web.throttle import Throttle
    from earmark.board.web.logs import Meters
    from earmark.board.web.caching import PageCache
    from earmark.board.boards.snapshot import Snapshots
    from earmark.board.storage.store import Store

__all__ = ["Context"]


@dataclass(frozen=True)
class Context:
    """The parts of a running board. Pages reach it as `request.app.state.context`.

    Every template sees `title` (of the site) and `registration`; pages that are made for one reader pass `visitor` (a
    `User` or None, from `security.visitor_of(request)`).
    """

    settings: Settings
    store: Store
    snapshots: Snapshots
    templates: Jinja2Templates
    signer: Signer
    sign_ins: Throttle
    answers: PageCache
    meters: Meters

    def close(self) -> None:
        """Let go of the database."""
        self.store.close()
