"""Who asks, and whether the browser meant to: tokens, sessions, form tokens, headers.

A token is sent as `Authorization: Bearer …` by programs, and pasted once by people, whose browser then holds a
session, which ends on the server when they sign out, their token is revoked or time is up. A form carries a token
that is bound to the visit and the session (HMAC), so that another site cannot send it. Nothing here compares secrets
with `==`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from earmark.board.refusals import NotAllowed

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

    from earmark.board.records import User
    from earmark.board.settings import Settings
    from earmark.board.web.requests import Context

SESSION, VISIT = "session", "visit"
"""What cookies are for; `cookie_name` has their names."""
_SEPARATOR = "\x1f"

HEADERS = {
    # Scripts and styles come only from this board's files.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
"""Sent with every answer."""


@dataclass(frozen=True)
class Signer:
    """Signs short texts with the board's secret, each for one purpose."""

    secret: bytes

    def mark(self, purpose: str, text: str) -> str:
        """The signature of a text for a purpose."""
        message = purpose.encode() + b"\0" + text.encode("utf-8", "surrogatepass")
        return encoded(hmac.new(self.secret, message, hashlib.sha256).digest())


def encoded(data: bytes) -> str:
    """Bytes in letters that a cookie and an address may hold."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def bearer_of(request: Request) -> str | None:
    """The token of the `Authorization` header, or None when there is no such header."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def visitor_of(request: Request) -> User | None:
    """Who is signed in by the session cookie; None for everybody else. Read once for each request."""
    if not hasattr(request.state, "visitor"):
        context: Context = request.app.state.context
        word, hours = session_of(request), context.settings.session_hours
        request.state.visitor = context.store.session_user(word, hours) if word else None
    visitor: User | None = request.state.visitor
    return visitor


def cookie_name(settings: Settings, purpose: str) -> str:
    """The name of a cookie. Over https it begins with __Host-: no other host of the domain can set or read it. Boards
    under several paths of one host have names of their own, since such a cookie is the whole host's."""
    host = "__Host-" if settings.cookies_over_https_only else ""
    return f"{host}earmark_{purpose}{settings.path.replace('/', '_')}"


def session_of(request: Request) -> str:
    """The word of the browser's session; empty when it has none."""
    settings: Settings = request.app.state.context.settings
    return request.cookies.get(cookie_name(settings, SESSION), "")


def _set_cookie(response: Response, settings: Settings, purpose: str, text: str, seconds: int | None = None) -> None:
    response.set_cookie(
        cookie_name(settings, purpose), text, max_age=seconds, path="/", httponly=True, samesite="lax",
        secure=settings.cookies_over_https_only,
    )  # fmt: skip


def open_session(context: Context, response: Response, user: User, token: str) -> None:
    """Give the browser a session that lasts as long as the token, and `session_hours` at most."""
    hours = context.settings.session_hours
    word = context.store.open_session(user, token, hours)
    _set_cookie(response, context.settings, SESSION, word, int(hours * 3600))


def close_session(request: Request, response: Response, *, everywhere: bool = False) -> None:
    """End the session on the server, or all sessions of its user, and take the cookie back."""
    context: Context = request.app.state.context
    user = visitor_of(request)
    if everywhere and user is not None:
        context.store.end_sessions(user)
    elif word := session_of(request):
        context.store.end_session(word)
    _set_cookie(response, context.settings, SESSION, "", 0)


def address_of_asker(scope: Scope) -> str:
    """The address that a request comes from; of IPv6 the network, since everybody has 2^64 addresses of one."""
    host = str((scope.get("client") or ("",))[0])
    if ":" not in host:
        return host
    try:
        return str(ipaddress.ip_network((host.partition("%")[0], 64), strict=False))
    except ValueError:
        return host


def _kept_visit(request: Request) -> str:
    settings: Settings = request.app.state.context.settings
    return request.cookies.get(cookie_name(settings, VISIT), "")


def visit_of(request: Request) -> str:
    """The random name of this visit: from its cookie, or new. `keep_visit` puts a new one on the response."""
    if not hasattr(request.state, "visit"):
        request.state.visit = _kept_visit(request) or secrets.token_urlsafe(24)
    visit: str = request.state.visit
    return visit


def keep_visit(request: Request, response: Response) -> None:
    """Give the browser the cookie that the form tokens of this page are bound to, if it has none."""
    if _kept_visit(request) != visit_of(request):
        _set_cookie(response, request.app.state.context.settings, VISIT, visit_of(request))


def form_token(request: Request) -> str:
    """What a form must send back as `form_token`: bound to this visit and to this session.

    It differs on every page, so that the length of a compressed page tells nothing about it.
    """
    return _form_token(request, secrets.token_urlsafe(9))


def _form_token(request: Request, salt: str) -> str:
    context: Context = request.app.state.context
    session = session_of(request)
    return f"{salt}.{context.signer.mark('form', _SEPARATOR.join((salt, visit_of(request), session)))}"


def check_form(request: Request, sent: str) -> None:
    """Refuse a form that does not come from a page of this board."""
    if not same_origin(request) or not _kept_visit(request):
        raise NotAllowed("The form did not come from a page of this board; open the page again and send it from there.")
    expected = _form_token(request, sent.partition(".")[0])
    if not hmac.compare_digest(*(token.encode("utf-8", "surrogatepass") for token in (sent, expected))):
        raise NotAllowed("The form is out of date; open the page again and send it once more.")


def same_origin(request: Request) -> bool:
    """False when the browser says that the request began elsewhere, be it on another host of the same domain. Older
    browsers say nothing and pass."""
    return request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
