"""What holds for every address of a board: a former name leads to the new one, a private board is for its readers.

Plain ASGI before the routes, so that no page, file or answer of a board can forget it.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from earmark.board.boards.snapshot import NoSuchBoard, Snapshot
from earmark.board.storage.boards import may_read
from earmark.board.web.problems import refused
from earmark.board.web.requests import Context
from earmark.board.web.security import bearer_of, visitor_of
from earmark.errors import EarmarkError

_ADDRESS = re.compile(r"(?P<before>/b/|/v1/boards/)(?P<board>[^/]+)(?P<after>.*)", re.DOTALL)
_ENDING = re.compile(r"\.(?:csv|tex|json|bib|atom|svg)$")


class OnBoards:
    """Redirects from former names of boards, and keeps private boards for those who may see them."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._app = app
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = _ADDRESS.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if address is None:
            await self._app(scope, receive, send)
            return
        try:
            answer, private = await self._looked_at(Request(scope), address)
        except EarmarkError as error:  # the database is away
            answer, private = refused(Request(scope), error), False
        await (answer or self._app)(scope, receive, _unkept(send) if private else send)

    async def _looked_at(self, request: Request, address: re.Match[str]) -> tuple[Response | None, bool]:
        """What is answered instead of the route, if anything, and whether the board is private.

        For a board that everybody sees it is a look into memory, without a thread.
        """
        snapshots = self._context.snapshots
        if not snapshots.fresh:
            await run_in_threadpool(snapshots.boards)
        named = address["board"]
        for name in dict.fromkeys((named, _ENDING.sub("", named))):
            new = snapshots.name_now(name)
            found = snapshots.find(new)
            if found is None:
                continue
            private = found.definition.private
            if private and not await run_in_threadpool(self._is_reader, request, found):
                return refused(request, NoSuchBoard(f'There is no board "{name}".')), True
            return (_moved(request.scope, address, named, name, new) if new != name else None), private
        return None, False

    def _is_reader(self, request: Request, snapshot: Snapshot) -> bool:
        token = bearer_of(request)
        user = visitor_of(request) if token is None else self._context.store.authenticate(token)
        return may_read(snapshot.definition, user)


def _moved(scope: Scope, address: re.Match[str], named: str, old: str, new: str) -> RedirectResponse:
    query = scope.get("query_string", b"").decode("latin-1")
    target = f"{address['before']}{quote(new + named.removeprefix(old), safe='')}{quote(address['after'])}"
    return RedirectResponse(target + (f"?{query}" if query else ""), 308)


def _unkept(send: Send) -> Send:
    """What is sent is for one reader: no cache on the way keeps it."""

    async def send_on(message: Message) -> None:
        if message["type"] == "http.response.start":
            others = [(name, text) for name, text in message["headers"] if name.lower() != b"cache-control"]
            message["headers"] = [*others, (b"cache-control", b"private, no-store")]
        await send(message)

    return send_on
