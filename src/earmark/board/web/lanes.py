"""Who waits for whom when documents are read: three lanes that do not share a place, and a budget for each asker.

    lane          who                          what one asker may spend
    anonymous     checks without a token       seconds of a processor in a minute, by address; few rows
    checks        checks of somebody signed in by user
    submissions   what is to be stored         by user

A document is read in a process of its own (`reading`), and what it cost there is measured and charged: an asker may
fall into debt once, and is then told when to come back. A lane that is full says so at once, instead of letting
everybody wait; whoever has gone before their turn came is not worked for. So nothing that strangers ask for keeps an
author from submitting.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import anyio
import anyio.to_thread

from earmark.board.refusals import Refusal, too_often
from earmark.board.settings import Rate, Throttle
from earmark.board.web.reading import Question, Reading, read_sealed

if TYPE_CHECKING:
    from starlette.requests import Request

    from earmark.board.settings import Settings
    from earmark.submissions import Limits

Result = TypeVar("Result")
LaneName: TypeAlias = Literal["anonymous", "checks", "submissions"]
_BYTES_IN_A_SECOND = 4_000_000
_LEAST_SECONDS = 0.01
_ALONE = "check it on your machine with `earmark submit FILE --dry-run`"


@dataclass(frozen=True)
class Lane:
    """How much of a kind of work there may be at a time, and how long one piece may take."""

    at_once: int
    waiting: int
    of_one_asker: int
    seconds: float
    full: str  # why nobody else may wait, and what to do


LANES: dict[LaneName, Lane] = {
    "anonymous": Lane(1, 8, 2, 10.0, f"Too many documents are being checked without a token; sign in, or {_ALONE}."),
    "checks": Lane(1, 16, 4, 30.0, f"Too many documents are being checked; {_ALONE}."),
    "submissions": Lane(2, 64, 16, 60.0, "Too many submissions arrive at this moment."),
}


def anonymous_limits(settings: Settings) -> Limits:
    """What whoever has no token may have checked: fewer rows and bytes, with what to do about more."""
    given = settings.limits
    return replace(
        given, max_rows=min(settings.anonymous_rows, given.max_rows),
        max_body=min(settings.anonymous_bytes, given.max_body), remedy=f"sign in to check more, or {_ALONE}",
    )  # fmt: skip


class Turns:
    """The places of one lane in this process, and what its askers have spent."""

    def __init__(self, lane: Lane, work: Rate) -> None:
        self._lane = lane
        self._work = Throttle(work)
        self._free = asyncio.Semaphore(lane.at_once)
        self._threads = anyio.CapacityLimiter(lane.at_once)
        self._there: Counter[str] = Counter()  # of each asker, waiting or at work

    async def read(self, request: Request, asker: str, question: Question, then: Callable[[Reading], Result]) -> Result:
        """What `then` makes of a document, both when its turn has come.

        A `Refusal` with Retry-After where the asker has spent enough, or the lane is full.
        """
        estimate = max(_LEAST_SECONDS, len(question.data) / _BYTES_IN_A_SECOND)
        wait = self._work.take(asker, estimate)
        if wait > 0:
            raise too_often("Reading what you sent took all the time that one sender has for now.", wait)
        async with self._turn(request, asker):
            outcome = await self._run(partial(read_sealed, question, seconds=self._lane.seconds))
            self._work.charge(asker, outcome.seconds - estimate)
            reading = outcome.reading()
            return await self._run(partial(self._work.charging, asker, partial(then, reading)))

    async def _run(self, work: Callable[[], Result]) -> Result:
        return await anyio.to_thread.run_sync(work, limiter=self._threads)

    @contextlib.asynccontextmanager
    async def _turn(self, request: Request, asker: str) -> AsyncIterator[None]:
        lane = self._lane
        if self._there[asker] >= lane.of_one_asker:
            raise too_often(f"{lane.of_one_asker} documents of yours are being read; send this one after them.", 1)
        if self._there.total() >= lane.at_once + lane.waiting:
            raise too_often(lane.full, 5, 503)
        self._there[asker] += 1
        try:
            await self._wait(request)
            try:
                yield
            finally:
                self._free.release()
        finally:
            self._there[asker] -= 1
            if not self._there[asker]:
                del self._there[asker]

    async def _wait(self, request: Request) -> None:
        """Wait for a free place; whoever hangs up meanwhile loses theirs."""
        if not self._free.locked():
            await self._free.acquire()
            return
        place, gone = asyncio.ensure_future(self._free.acquire()), asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait({place, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not place.done():
                place.cancel()
        if place.cancelled() or not place.done():
            raise Refusal("The connection was closed before the document could be read.", 408)


async def _gone(request: Request) -> None:
    """Returns when the client has closed the connection. Its body was read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def turns(settings: Settings) -> dict[LaneName, Turns]:
    """The lanes of a board."""
    work = {
        "anonymous": settings.anonymous_seconds, "checks": settings.check_seconds,
        "submissions": settings.submission_seconds,
    }  # fmt: skip
    return {name: Turns(lane, work[name]) for name, lane in LANES.items()}
