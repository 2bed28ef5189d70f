"""The addresses that everybody reads, answered from rendered pages.

A request whose page is kept is answered on the event loop, without a thread and without the database. The store is
asked at most once a second whether anything changed; making a page is work for a thread.
"""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.boards.analyses import Background
from earmark.board.pages.analyses import analysis_file, analysis_page
from earmark.board.pages.assets import find_asset, read_templates
from earmark.board.pages.boards import Reader, Source, store_source
from earmark.board.pages.comparisons import compare_file, compare_page, pareto_file, pareto_page
from earmark.board.pages.definitions import about_page
from earmark.board.pages.outlets import badge, board_feed, embed, site_feed
from earmark.board.pages.pictures import board_picture
from earmark.board.pages.subsets import subset_file, subset_page, subsets_page
from earmark.board.pages.systems import system_file, system_page
from earmark.board.refusals import NotFound
from earmark.board.web.caching import Page, answer
from earmark.board.web.kept_pages import KeptPages
from earmark.databases import Busy

if TYPE_CHECKING:
    from earmark.board.boards.snapshots import Snapshots
    from earmark.board.web.requests import Context

_FOREVER = "public, max-age=31536000, immutable"
_SUFFIXES = ("csv", "tex", "json", "bib")


def reading_pages(context: Context) -> APIRouter:
    """The router of all reading pages and of the static files."""
    store, snapshots = context.store, context.snapshots
    background = Background(store, snapshots)
    pages = KeptPages(snapshots, context.settings.page_seconds)

    source = _from_memory(store_source(store, snapshots), snapshots)._replace(
        analysis=background.latest, analysis_current=background.current
    )  # fmt: skip
    reader = Reader(source, context.templates, base_url=context.settings.base_url)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        background.start()
        app.state.background = background
        await run_in_threadpool(snapshots.boards)
        await run_in_threadpool(read_templates, context.templates)
        gc.freeze()  # what is there now stays: looking through it again would stop every reader for a while
        yield
        background.stop()
        pages.close()

    router = APIRouter(lifespan=lifespan, include_in_schema=False)

    def add_page(path: str, make: Callable[[Request], Page]) -> None:
        """Answer a path with what `make` returns, kept under the address and what it depends on."""

        async def handler(request: Request) -> Response:
            based = str(request.base_url) if not reader.base_url else ""
            return await pages.answer(request, (background.version, _is_part(request), based), make)

        router.add_route(path, handler, methods=["GET", "HEAD"])

    def board(request: Request) -> Page:
        name, kind = _name_and_format(request, "board", snapshots.boards())
        items = request.query_params.multi_items()
        if kind:
            return reader.board_file(name, items, kind)
        return _at(reader, request).board(name, items, part=_is_part(request))

    def system(request: Request) -> Page:
        name, at = request.path_params["board"], _at(reader, request)
        slug, kind = _name_and_format(request, "slug", snapshots.current(name).places)
        if kind:
            return system_file(at, name, slug, kind)
        return system_page(at, name, slug, request.query_params.multi_items())

    def subset(request: Request) -> Page:
        name = request.path_params["board"]
        known = {subset for panel in snapshots.current(name).panels.values() for subset in panel.subsets}
        asked, kind = _name_and_format(request, "subset", known)
        asked = "" if asked == "-" and "-" not in known else asked
        items = request.query_params.multi_items()
        return subset_file(reader, name, asked, items, kind) if kind else subset_page(reader, name, asked, items)

    def system_badge(request: Request) -> Page:
        name, slug = request.path_params["board"], request.path_params["slug"]
        return badge(reader, name, slug, request.query_params.multi_items())

    def of_board(make: Callable[[Reader, str], Page]) -> Callable[[Request], Page]:
        return lambda request: make(reader, request.path_params["board"])

    def of_view(make: Callable[..., Page], *more: str) -> Callable[[Request], Page]:
        return lambda request: make(reader, request.path_params["board"], request.query_params.multi_items(), *more)

    def host_text(name: str) -> Callable[[Request], Page]:
        return lambda request: reader.host_text(name)

    def words(name: str) -> Callable[[Request], Page]:
        return lambda request: _at(reader, request).words(name)

    add_page("/", lambda request: _at(reader, request).boards())
    for name in ("about", "rules", "how-to-submit"):
        add_page(f"/{name}", words(name))
    for name in ("imprint", "privacy"):
        add_page(f"/{name}", host_text(name))
    add_page("/feed.atom", lambda request: site_feed(_at(reader, request)))
    add_page("/b/{board}/feed.atom", lambda request: board_feed(_at(reader, request), request.path_params["board"]))
    add_page(
        "/b/{board}/embed",
        lambda request: embed(_at(reader, request), request.path_params["board"], request.query_params.multi_items()),
    )
    add_page("/b/{board}/s/{slug}/badge.svg", system_badge)
    add_page("/b/{board}/preview.png", of_view(board_picture))
    for kind in ("csv", "tex", "json"):
        add_page(f"/b/{{board}}/compare.{kind}", of_view(compare_file, kind))
        add_page(f"/b/{{board}}/pareto.{kind}", of_view(pareto_file, kind))
    add_page("/b/{board}/compare", of_view(compare_page))
    add_page("/b/{board}/pareto", of_view(pareto_page))
    add_page("/b/{board}/analysis.json", of_board(analysis_file))
    add_page("/b/{board}/analysis", of_board(analysis_page))
    add_page("/b/{board}/about", of_board(about_page))
    add_page("/b/{board}/subsets", of_board(subsets_page))
    add_page("/b/{board}/subsets/{subset:path}", subset)
    add_page("/b/{board}/s/{slug}", system)
    add_page("/b/{board}", board)
    router.add_route("/static/{name:path}", _static, methods=["GET", "HEAD"])
    return router


def _from_memory(source: Source, snapshots: Snapshots) -> Source:
    """The source without what only the store knows, while the store does not answer: pages leave it out."""

    def tolerant(name: str) -> Callable[..., Any]:
        ask, nothing = getattr(source, name), Source._field_defaults[name]

        def answered(*args: Any) -> Any:
            try:
                return ask(*args)
            except Busy:
                if snapshots.away_since is None:
                    snapshots.refresh()  # from now on pages say so
                    raise
                return nothing(*args)

        return answered

    # Rows are not left out: a file without them would be taken for a whole one.
    replaced: dict[str, Any] = {name: tolerant(name) for name in Source._fields if name not in ("boards", "rows")}
    return source._replace(**replaced)


def _is_part(request: Request) -> bool:
    """Whether a script asks for the part of a page that it will replace."""
    headers = request.headers
    return "hx-request" in headers and "hx-history-restore-request" not in headers and "hx-boosted" not in headers


def _name_and_format(request: Request, parameter: str, known: Any) -> tuple[str, str]:
    """A name in an address and the format asked for: "opus.csv" is CSV unless there is a thing called "opus.csv"."""
    text: str = request.path_params[parameter]
    stem, _, suffix = text.rpartition(".")
    return (stem, suffix) if text not in known and stem and suffix in _SUFFIXES else (text, "")


def _at(reader: Reader, request: Request) -> Reader:
    """The reader with an address to cite: the host's own, else the one that this request came to."""
    return reader if reader.base_url else reader.based(str(request.base_url).rstrip("/"))


async def _static(request: Request) -> Response:
    file = await run_in_threadpool(find_asset, request.path_params["name"])
    if file is None:
        raise NotFound("There is nothing at this address.")
    fixed = request.query_params.get("v") == file.tag.strip('"')
    return answer(request, file.tag, lambda: file, {"cache-control": _FOREVER if fixed else "no-cache"})
