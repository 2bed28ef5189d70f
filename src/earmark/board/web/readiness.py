"""Whether the board can do its work: the database answers and takes writes, the disk has room, nothing has ended.

Asked by whoever watches over the board, at any rate: the database is asked at most once a second, and nobody
waits longer for it than a deadline. Sentences are for everybody; what was behind them is logged.
"""

from __future__ import annotations

import shutil
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from earmark.board.web.logs import LOGGER
from earmark.databases import Full

if TYPE_CHECKING:
    from earmark.board.boards.analyses import Background
    from earmark.board.settings import Settings
    from earmark.board.storage import Store

_EVERY_SECONDS = 1.0
_DEADLINE = 2.0
_KEY = "last_checked"


class Readiness:
    """What is wrong with a board, found out at most once a second."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._probe = ThreadPoolExecutor(1, "readiness")
        self._asked: Future[str] | None = None
        self._asked_at = float("-inf")

    def problems(self, background: Background | None) -> list[str]:
        """One sentence for each thing that is wrong; none when the board is ready."""
        sentences = [self._database(), self._disk()]
        if background is not None and not background.alive:
            sentences.append("the thread that makes analyses has ended; restart the board")
        return [sentence for sentence in sentences if sentence]

    def close(self) -> None:
        self._probe.shutdown(wait=False, cancel_futures=True)

    def _database(self) -> str:
        asked = self._asked
        if asked is None or (asked.done() and time.monotonic() - self._asked_at > _EVERY_SECONDS):
            asked = self._asked = self._probe.submit(self._written)
            self._asked_at = time.monotonic()
        try:
            return asked.result(timeout=_DEADLINE)
        except TimeoutError:
            return "the database does not answer"

    def _written(self) -> str:
        """Write a line and read it again; what is wrong, or nothing."""
        try:
            moment = f"{time.time():.3f}"
            self._store.set_meta(_KEY, moment)
            self._store.generation()
        except Full:
            return "the database has no room on its disk"
        except Exception:  # whatever the driver raises: the answer is the same
            LOGGER.exception("the database does not answer")
            return "the database does not answer"
        return ""

    def _disk(self) -> str:
        """Whether there is room beside the board; a database elsewhere has its own disk."""
        folder = self._settings.data.absolute()
        try:
            free = shutil.disk_usage(folder).free
        except OSError:
            LOGGER.exception("the folder of the board cannot be looked at")
            return "the folder of the board is gone"
        least = self._settings.least_free
        return f"the disk has {free / 1e6:,.0f} MB left, less than {least / 1e6:,.0f} MB" if free < least else ""
