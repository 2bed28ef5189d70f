"""The addresses that everybody reads, answered from rendered pages.

A request whose page is kept is answered on the event loop, without a thread and without the database. The store is
asked at most once a second whether anything changed; making a page is work for a thread.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.boards.analyses import Background
from earmark.board.pages.assets import find_asset
from earmark.board.web.caching import Kept, PageCache, answer
from earmark.board.pages.comparisons import compare_file, compare_page, pareto_file, pareto_page
from earmark.board.pages.boards import Reader, Source
from earmark.board.pages.subsets import analysis_file, analysis_page, subset_file, subset_page, subsets_page
from earmark.board.pages.systems import system_file, system_page
from earmark.board.records import System
from earmark.board.refusals import NotFound
from earmark.scores import Scores

if TYPE_CHECKING:
    from earmark.board.web.context import Context

__all__ = ["reading_pages"]

_FOREVER = "public, max-age=31536000, immutable"
_HISTORY = 50
_MAKERS = 2
_SUFFIXES = ("csv", "tex", "json", "bib")


def reading_pages(context: Context) -> APIRouter:
    """The router of all reading pages and of the static files."""
    store, snapshots = context.store, context.snapshots
    background = Background(store, snapshots)
    cache = PageCache()
    # Pages are made by few threads: with many, none would be finished soon, and the event loop would starve.
    makers = ThreadPoolExecutor(_MAKERS, "page")

    def rows(board: str, system: System) -> Scores:
        live = store.live_scores(board, [system.id])
        return Scores(tuple(live.rows(board, {system.id: system.card.name})))

    source = Source(
        snapshots,
        lambda board, slug: store.submissions(board=board, system=slug, was_accepted=True, limit=_HISTORY),
        rows,
        background.latest,
        background.current,
    )
    reader = Reader(source, context.templates, base_url=context.settings.base_url)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        background.start()
        await run_in_threadpool(snapshots.boards)
        gc.freeze()  # what is there now stays: looking through it again would stop every reader for a while
        yield
        background.stop()
        makers.shutdown(wait=False, cancel_futures=True)

    router = APIRouter(lifespan=lifespan, include_in_schema=False)

    def page(path: str, make: Callable[[Request], Kept]) -> None:
        """Answer a path with what `make` returns, kept under the address and what it depends on."""

        async def handler(request: Request) -> Response:
            if not snapshots.fresh:
                await run_in_threadpool(snapshots.boards)
            key = (
                snapshots.generation, background.version, request.url.path, request.url.query,
                _is_part(request), str(request.base_url) if not reader.base_url else "",
            )  # fmt: skip
            found = cache.get(key)
            if found is None:
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(makers, cache.fetch, key, lambda: make(request))
            return answer(request, found)

        router.add_route(path, handler, methods=["GET", "HEAD"])

    def board(request: Request) -> Kept:
        name, kind = _named(request, "board", snapshots.boards())
        items = request.query_params.multi_items()
        if kind:
            return reader.board_file(name, items, kind)
        return reader.board(name, items, part=_is_part(request))

    def system(request: Request) -> Kept:
        name = request.path_params["board"]
        slug, kind = _named(request, "slug", snapshots.current(name).places)
        if kind:
            return system_file(_at(reader, request), name, slug, kind)
        return system_page(_at(reader, request), name, slug, request.query_params.multi_items())

    def subset(request: Request) -> Kept:
        name = request.path_params["board"]
        known = {one for panel in snapshots.current(name).panels.values() for one in panel.subsets}
        asked, kind = _named(request, "subset", known)
        asked = "" if asked == "-" and "-" not in known else asked
        items = request.query_params.multi_items()
        return subset_file(reader, name, asked, items, kind) if kind else subset_page(reader, name, asked, items)

    def of_board(make: Callable[[Reader, str], Kept]) -> Callable[[Request], Kept]:
        return lambda request: make(reader, request.path_params["board"])

    def asked(make: Callable[..., Kept], *more: str) -> Callable[[Request], Kept]:
        return lambda request: make(reader, request.path_params["board"], request.query_params.multi_items(), *more)

    def words(name: str) -> Callable[[Request], Kept]:
        return lambda request: _at(reader, request).words(name)

    page("/", lambda request: reader.boards())
    for name in ("about", "rules", "how-to-submit"):
        page(f"/{name}", words(name))
    for kind in ("csv", "tex", "json"):
        page(f"/b/{{board}}/compare.{kind}", asked(compare_file, kind))
        page(f"/b/{{board}}/pareto.{kind}", asked(pareto_file, kind))
    page("/b/{board}/compare", asked(compare_page))
    page("/b/{board}/pareto", asked(pareto_page))
    page("/b/{board}/analysis.json", of_board(analysis_file))
    page("/b/{board}/analysis", of_board(analysis_page))
    page("/b/{board}/subsets", of_board(subsets_page))
    page("/b/{board}/subsets/{subset:path}", subset)
    page("/b/{board}/s/{slug}", system)
    page("/b/{board}", board)
    router.add_route("/static/{name:path}", _static, methods=["GET", "HEAD"])
    return router


def _is_part(request: Request) -> bool:
    """Whether a script asks for the part of a page that it will replace."""
    headers = request.headers
    return "hx-request" in headers and "hx-history-restore-request" not in headers and "hx-boosted" not in headers


def _named(request: Request, parameter: str, known: Any) -> tuple[str, str]:
    """A name in an address and the format asked for: "opus.csv" is CSV unless there is a thing called "opus.csv"."""
    text: str = request.path_params[parameter]
    stem, _, suffix = text.rpartition(".")
    return (stem, suffix) if text not in known and stem and suffix in _SUFFIXES else (text, "")


def _at(reader: Reader, request: Request) -> Reader:
    """The reader with an address to cite: the host's own, else the one that this request came to."""
    return reader if reader.base_url else reader.based(str(request.base_url).rstrip("/"))


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    found = await run_in_threadpool(find_asset, name)
    if found is None:
        raise NotFound("There is nothing at this address.")
    headers = {"etag": f'"{found.digest}"', "vary": "accept-encoding"}
    fixed = request.query_params.get("v") == found.digest
    headers["cache-control"] = _FOREVER if fixed else "no-cache"
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    body = found.content
    if "gzip" in request.headers.get("accept-encoding", "") and len(body) > 1000:
        headers["content-encoding"] = "gzip"
        body = found.compressed
    return Response(body, media_type=found.media_type, headers=headers)
