"""What pages of other sites may read: the open part of the board, without cookies, by GET alone.

Browsers send no cookie and no token along with what an answer for every origin (`*`) allows, so that nothing is shown
that a stranger could not ask for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders
from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

EMBED_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors *"
)
"""Of the one page that others may put into a frame: it runs nothing and sends nothing."""
PICTURE_POLICY = "default-src 'none'; frame-ancestors 'none'"
_READING = ("GET", "HEAD")
_SHARED = (".csv", ".json", ".tex", ".bib", ".svg", ".png", ".atom")
_DAY = "86400"


class Shared:
    """Lets pages of other sites read the API and the files of the board."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_shared(scope["path"]):
            await self._app(scope, receive, send)
            return
        if scope["method"] == "OPTIONS":
            await _preflight()(scope, receive, send)
            return

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start" and scope["method"] in _READING:
                headers = MutableHeaders(scope=message)
                headers["access-control-allow-origin"] = "*"
                headers["access-control-expose-headers"] = "etag, retry-after, link"
            await send(message)

        await self._app(scope, receive, send_on)


def is_shared(path: str) -> bool:
    """Whether something is data rather than a page."""
    return path.startswith("/v1/") or (path.startswith("/b/") and path.endswith(_SHARED)) or path == "/feed.atom"


def _preflight() -> Response:
    """What a browser asks before it sends If-None-Match; nothing but reading is allowed, and no token."""
    headers = {
        "access-control-allow-origin": "*", "access-control-allow-methods": "GET, HEAD",
        "access-control-allow-headers": "accept, if-none-match", "access-control-max-age": _DAY,
    }  # fmt: skip
    return Response(status_code=204, headers=headers)
