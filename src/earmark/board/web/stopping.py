"""A stop that was asked for ends the process, whatever it is doing.

Requests that run have some seconds to end well (uvicorn sees to it). But a thread cannot be ended: one that makes a
large page, or waits for a database, would keep the process alive for minutes. So a signal also starts a clock, and when
that has run down the process ends as it is. Nothing is lost: what was acknowledged lies in the database.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from earmark.board.web.logs import LOGGER

GRACE_SECONDS = 4
"""What requests have to end well."""
_LAST_SECONDS = 6.5
"""After which nothing is waited for: a stop takes less than ten seconds."""


def end_in_time(release: Callable[[], None]) -> None:
    """From now on SIGTERM and SIGINT end this process within seconds; `release` ends what would outlive it.

    Called in the main thread once the server has its own handlers, which are called too.
    """

    def last() -> None:
        LOGGER.warning("stopped with work left undone")
        try:
            release()
        finally:
            os._exit(0)

    def on(number: int, previous: Any) -> None:
        def handle(signum: int, frame: FrameType | None) -> None:
            clock = threading.Timer(_LAST_SECONDS, last)
            clock.daemon = True
            clock.start()
            if callable(previous):
                previous(signum, frame)

        signal.signal(number, handle)

    for number in (signal.SIGTERM, signal.SIGINT):
        on(number, signal.getsignal(number))
