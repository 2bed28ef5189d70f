"""Reading pages: made once for each state of the board, by few threads, and shown while the database is away.

A page is kept under what it depends on: the generation of the board, the address, and of the query only what a page
reads, so that made-up names cannot have a page made again. Making pages takes time of one asker's own; those that were
made cost nothing. While the database does not answer, pages come from what is in memory and say so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from datetime import datetime
from functools import partial
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import Response

from earmark.board.boards.snapshots import Shown, Snapshots
from earmark.board.boards.view import BoardView
from earmark.board.refusals import too_often
from earmark.board.settings import Rate, Throttle
from earmark.board.web.caching import Page, PageCache, answer, packed
from earmark.board.web.security import address_of_asker
from earmark.databases import Busy

MAKERS = 2
"""Threads that make pages: with many, none would be finished soon, and the event loop would starve."""
NAMES = frozenset(each.name for each in fields(BoardView)) - {"board", "plain"} | {"s", "x", "scale", "subset", "lines"}
"""What pages read of a query."""
_MAIN = b'<main id="main"'


def canonical(request: Request, names: Iterable[str]) -> Request:
    """The request with a query of these names alone, without what is empty."""
    known = frozenset(names)
    pairs = parse_qsl(request.url.query, max_num_fields=None)
    query = urlencode([(name, text) for name, text in pairs if name in known])
    return Request({**request.scope, "query_string": query.encode()}, request.receive)


class KeptPages:
    """The pages of a board, in memory."""

    def __init__(self, snapshots: Snapshots, work: Rate) -> None:
        self._snapshots = snapshots
        self._cache = PageCache()
        self._makers = ThreadPoolExecutor(MAKERS, "page")
        self._work = Throttle(work)

    async def answer(self, request: Request, state: Hashable, make: Callable[[Request], Page]) -> Response:
        """The page that `make` makes for a request. `state` is what it depends on beside the address and the board."""
        asked = canonical(request, NAMES)
        if not self._snapshots.fresh:
            await asyncio.get_running_loop().run_in_executor(None, self._snapshots.boards)
        shown = self._snapshots.latest
        key = (shown.generation, asked.url.path, asked.url.query, state)
        page = await self._page(asked, key, partial(self._made_of, shown, make, asked))
        return answer(request, page.tag, lambda: page, {"vary": "accept-encoding, hx-request", **page.headers})

    def _made_of(self, shown: Shown, make: Callable[[Request], Page], request: Request) -> Page:
        """A page whose parts are all of one generation."""
        with self._snapshots.pinned(shown):
            return make(request)

    def close(self) -> None:
        self._makers.shutdown(wait=False, cancel_futures=True)

    async def _page(self, request: Request, key: Hashable, make: Callable[[], Page]) -> Page:
        since = self._snapshots.away_since
        if since is None:
            try:
                return await self._kept(request, key, make)
            except Busy:
                since = self._now_away()
                if since is None:
                    raise
        page = self._cache.get(key) or await self._kept(request, (since, key), make)
        return await self._kept(request, ("notice", since, key), partial(with_notice, page, since))

    def _now_away(self) -> datetime | None:
        """As of when pages are, if the database was found to be away just now."""
        return self._snapshots.away_since

    async def _kept(self, request: Request, key: Hashable, make: Callable[[], Page]) -> Page:
        page = self._cache.get(key)
        if page is not None:
            return page
        asker = address_of_asker(request.scope)
        wait = self._work.take(asker, 0.0)
        if wait > 0:
            raise too_often("Making the pages that you asked for took all the time that one reader has for now.", wait)
        work = partial(self._cache.fetch, key, partial(self._work.charging, asker, make))
        return await asyncio.get_running_loop().run_in_executor(self._makers, work)


def with_notice(page: Page, since: datetime) -> Page:
    """A page that says as of when it is, since the database does not answer."""
    moment = f"{since:%d %b %Y, %H:%M} UTC"
    sentence = f"Shown as of {moment}: the database does not answer, and nothing can be submitted now."
    headers = {**page.headers, "x-earmark-notice": sentence}
    begin = page.body.find(_MAIN) if page.media_type.startswith("text/html") else -1
    if begin < 0:
        return replace(page, headers=headers)
    inside = page.body.index(b">", begin) + 1
    banner = f'\n<p class="notice" role="status">{sentence}</p>'.encode()
    return packed(page.body[:inside] + banner + page.body[inside:], page.media_type, headers)
