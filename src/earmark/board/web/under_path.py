"""A board under a path of its host, such as https://example.org/leaderboard.

Pages and routes are written as if the board had the host to itself: links begin with "/", and so do the addresses of
routes and redirects. Here, and nowhere else, the path is put before what leaves and taken from what arrives.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Text that somebody wrote cannot look like this: templates escape its quotation marks.
_LINK = re.compile(
    r'(\s(?:href|src|srcset|action|formaction|poster|hx-(?:get|post|push-url)|data-(?:href|src|url))=")/(?!/)'
)
_ADDRESSES = ("location", "content-location", "hx-push-url", "hx-replace-url", "hx-redirect", "hx-location")


def with_path(page: str, path: str) -> str:
    """A page whose links to the board itself begin with the path; "//host" and other sites stay as they are."""
    return _LINK.sub(rf"\g<1>{path}/", page)


class UnderPath:
    """Takes the path from requests, whether or not the proxy did, and puts it before the addresses in headers."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        origin = f"{scope['scheme']}://{Headers(scope=scope).get('host', '')}"

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name in _ADDRESSES:
                    address = headers.get(name, "").removeprefix(origin)
                    if address.startswith("/") and not address.startswith("//"):
                        headers[name] = self._path + address
            await send(message)

        inner = {**scope, "path": self._inside(scope["path"]) or "/", "root_path": self._path}
        if raw := scope.get("raw_path"):
            inner["raw_path"] = self._inside(raw.decode("latin-1")).encode("latin-1") or b"/"
        await self._app(inner, receive, send_on)

    def _inside(self, path: str) -> str:
        """An address as routes know it. A proxy that took the path away already is known by its absence."""
        return path.removeprefix(self._path) if path == self._path or path.startswith(f"{self._path}/") else path
