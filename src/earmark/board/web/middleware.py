"""What happens to every request before and after its route: refused early when too big or too frequent, then counted.

    Observed    a log line, meters, a request id, the security headers
    Guarded     address and body within limits, askers within their rates: else nothing is kept
    (gzip)      Starlette's
    the routes

Plain ASGI, so that bodies stream through and a slow reader costs no thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from earmark.board.settings import Settings, Throttle
from earmark.board.web.logs import LOGGER, Meters
from earmark.board.web.problems import problem
from earmark.board.web.security import HEADERS, address_of_asker
from earmark.board.web.sharing import EMBED_POLICY

_READING = ("GET", "HEAD", "OPTIONS")
_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_PRIVATE = "/v1/blind/jobs"
"""What is answered under it is for one team or worker, and changes by the minute."""
_SECRET = "/feeds/"
_UNCOUNTED = ("/healthz", "/readyz", "/metrics", "/static/")


class Observed:
    """Logs and counts each request, and puts the security headers on each answer."""

    def __init__(self, app: ASGIApp, meters: Meters, plain_routes: Mapping[Any, str] | None = None) -> None:
        self._app = app
        self._meters = meters
        self._plain_routes = plain_routes or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = secrets.token_hex(8)
        status = 500

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, text in HEADERS.items():
                    headers.setdefault(name, text)
                if headers["content-security-policy"] == EMBED_POLICY:
                    del headers["x-frame-options"]  # it would forbid every frame
                headers["x-request-id"] = request_id
                if scope["path"].startswith(_PRIVATE):  # refusals too
                    headers["cache-control"] = "no-store"
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        finally:
            self._note(scope, status, time.perf_counter() - began, request_id)

    def _note(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        # The route, not the path: a meter for each address ever asked would grow without end.
        route = str(getattr(scope.get("route"), "path", "") or self._plain_routes.get(scope.get("endpoint"), "other"))
        if scope["path"].startswith("/v1/") and not route.startswith("/v1"):
            route = f"/v1{route}" if route != "other" else "/v1/other"
        method = scope["method"] if scope["method"] in (*_READING, "POST", "PUT", "PATCH", "DELETE") else "other"
        self._meters.requests.labels(method, route, str(status)).inc()
        self._meters.seconds.labels(route).observe(seconds)
        fields = {
            "method": scope["method"], "path": _logged_path(scope["path"]), "status": status,
            "seconds": round(seconds, 4), "client": (scope.get("client") or ("",))[0], "request": request_id,
        }  # fmt: skip
        user = scope.get("state", {}).get("user_name")
        level = logging.DEBUG if scope["path"].startswith(_UNCOUNTED) else logging.INFO
        LOGGER.log(level, "request", extra={"fields": {**fields, "user": user} if user else fields})


def _logged_path(path: str) -> str:
    """A path as logs have it: without the word that opens a private feed."""
    return f"{_SECRET}…" if path.startswith(_SECRET) else path[:500]


class Guarded:
    """Refuses what is too long, too big or too frequent, before anybody works on it."""

    def __init__(self, app: ASGIApp, settings: Settings, meters: Meters) -> None:
        self._app = app
        self._limits = settings.limits
        self._packages = settings.max_package if settings.blind else 0
        self._meters = meters
        self._reads = Throttle(settings.reads)
        self._writes = Throttle(settings.writes)
        self._tokens: OrderedDict[str, None] = OrderedDict()  # hashes of those that were somebody's

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            status, why, sentence, more = refusal
            self._meters.refused.labels(why).inc()
            await _drained(receive)
            await problem(status, sentence, headers=more)(scope, receive, send)
            return
        await self._app(scope, self._counted(receive, self._most(scope)), send)
        if scope.get("state", {}).get("bearer") and (token := _token(headers)):
            self._tokens[token] = None
            self._tokens.move_to_end(token)
            if len(self._tokens) > _MOST_TOKENS:
                self._tokens.popitem(last=False)

    def _asker(self, scope: Scope, headers: Headers) -> str:
        """Whose rate a request counts against: its token's, once that proved to be somebody's, else its address's.

        A token that nobody has checked yet is a text that the asker chose, and would be a fresh rate each time.
        """
        token = _token(headers)
        return token if token in self._tokens else address_of_asker(scope)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str, str, dict[str, str]] | None:
        address = len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"])
        if address > self._limits.max_address:
            return 414, "address", f"The address is longer than {self._limits.max_address} bytes; ask for less.", {}
        if any(mark < " " or mark == "\x7f" for mark in scope["path"]) or b"%00" in scope["query_string"]:
            return 400, "address", "The address holds a control character; remove it.", {}
        if not _HOST.fullmatch(headers.get("host", "")):
            return 400, "host", "The Host header is not the name of a host.", {}
        declared = headers.get("content-length", "")
        if declared and not (declared.isascii() and declared.isdigit()):
            return 400, "length", "Content-Length is not a number.", {}
        most = self._most(scope)
        if declared and int(declared[:20]) > most + _FORM:
            return 413, "body", self._too_big(most), {}
        if not scope["path"].startswith(_UNCOUNTED):
            reading = scope["method"] in _READING
            wait = (self._reads if reading else self._writes).take(self._asker(scope, headers))
            if wait > 0:
                after = {"Retry-After": str(max(1, round(wait + 0.5)))}
                return 429, "rate", f"Too many requests; ask again in {after['Retry-After']} s.", after
        return None

    def _most(self, scope: Scope) -> int:
        """How many bytes a body may have: a package is larger than anything else, and sent to these places alone."""
        return max(self._packages, self._limits.max_body) if _is_upload(scope) else self._limits.max_body

    def _counted(self, receive: Receive, most: int) -> Receive:
        """The same stream, cut off where it becomes too long: a length is a promise, or not given at all."""
        taken = 0

        async def receive_counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > most + _FORM:
                self._meters.refused.labels("body").inc()
                if message.get("more_body", False):
                    await _drained(receive)
                raise HTTPException(413, self._too_big(most))
            return message

        return receive_counted

    def _too_big(self, most: int) -> str:
        if most > self._limits.max_body:
            return f"The package is larger than {most / 1e6:g} MB, which is the most that this board takes."
        return f"The body is larger than {most / 1e6:g} MB; send fewer systems at a time, or Parquet."


_UPLOADS = ("/v1/blind/jobs", "/blind/submit")
"""Where packages are sent."""


def _is_upload(scope: Scope) -> bool:
    return scope["method"] == "POST" and scope["path"] in _UPLOADS


_FORM = 100_000
"""What a form may hold beside its file."""
DRAINED = 128_000_000
DRAINING_SECONDS = 20.0


async def _drained(receive: Receive) -> None:
    """Let what is being sent arrive and fall away, up to a bound.

    A client that is still sending when the connection closes sees a broken pipe, and never reads why it was refused.
    """
    taken = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAINING_SECONDS):
            while taken < DRAINED:
                message = await receive()
                taken += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return


_MOST_TOKENS = 10_000


def _token(headers: Headers) -> str:
    """What came as authorization, as a hash, since it outlives the request; empty when nothing came."""
    authorization = headers.get("authorization", "")
    return hashlib.sha256(authorization.encode()).hexdigest() if authorization else ""
