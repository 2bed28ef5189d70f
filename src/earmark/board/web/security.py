"""Who asks, and whether the browser meant to: tokens, signed sessions, form tokens, headers.

A token is sent as `Authorization: Bearer …` by programs, and pasted once by people, whose browser then holds a signed
session that names the token's beginning: a revoked token ends its sessions. A form carries a token that is bound to
the visit and the session (HMAC), so that another site cannot send it. Nothing here compares secrets with `==`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from earmark.board.refusals import NotAllowed

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

    from earmark.board.records import User
    from earmark.board.web.requests import Context

SESSION_COOKIE = "earmark_session"
VISIT_COOKIE = "earmark_visit"
_SEPARATOR = "\x1f"

HEADERS = {
    # Plotly sets styles from its script; scripts themselves come only from this board's files.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
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
    """Signs short texts with the board's secret, each for one purpose, and reads back what it signed."""

    secret: bytes
    clock: Callable[[], float] = time.time

    def seal(self, purpose: str, text: str) -> str:
        """The text with the time and a signature, in letters that a cookie and an address may hold."""
        stamped = encoded(f"{int(self.clock())}{_SEPARATOR}{text}".encode())
        return f"{stamped}.{self.mark(purpose, stamped)}"

    def unseal(self, purpose: str, sealed: str, *, seconds: float) -> str | None:
        """The text, or None when it was not sealed here for this purpose or lies further back than `seconds`."""
        stamped, _, mark = sealed.partition(".")
        if not hmac.compare_digest(mark.encode(), self.mark(purpose, stamped).encode()):
            return None
        stamp, _, text = decoded(stamped).decode().partition(_SEPARATOR)
        return text if 0 <= self.clock() - int(stamp) <= seconds else None

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
        request.state.visitor = _visitor(request.app.state.context, request.cookies.get(SESSION_COOKIE, ""))
    found: User | None = request.state.visitor
    return found


def _visitor(context: Context, sealed: str) -> User | None:
    text = context.signer.unseal("session", sealed, seconds=context.settings.session_hours * 3600) if sealed else None
    if text is None:
        return None
    name, _, prefix = text.partition(_SEPARATOR)
    user = context.store.user(name)
    if user is None:
        return None
    alive = any(token.prefix == prefix and token.revoked is None for token in context.store.tokens(user))
    return user if alive else None


def open_session(context: Context, response: Response, user: User, token: str) -> None:
    """Give the browser a session that lasts as long as the token, and `session_hours` at most."""
    prefix = next(kept.prefix for kept in context.store.tokens(user) if token.startswith(kept.prefix))
    response.set_cookie(
        SESSION_COOKIE, context.signer.seal("session", f"{user.name}{_SEPARATOR}{prefix}"),
        max_age=int(context.settings.session_hours * 3600), httponly=True, samesite="lax",
        secure=context.settings.cookies_over_https_only,
    )  # fmt: skip


def address_of_asker(scope: Scope) -> str:
    """The address that a request comes from; of IPv6 the network, since everybody has 2^64 addresses of one."""
    host = str((scope.get("client") or ("",))[0])
    if ":" not in host:
        return host
    try:
        return str(ipaddress.ip_network((host.partition("%")[0], 64), strict=False))
    except ValueError:
        return host


def visit_of(request: Request) -> str:
    """The random name of this visit: from its cookie, or new. `keep_visit` puts a new one on the response."""
    if not hasattr(request.state, "visit"):
        request.state.visit = request.cookies.get(VISIT_COOKIE, "") or secrets.token_urlsafe(24)
    visit: str = request.state.visit
    return visit


def keep_visit(request: Request, response: Response) -> None:
    """Give the browser the cookie that the form tokens of this page are bound to, if it has none."""
    if request.cookies.get(VISIT_COOKIE, "") != visit_of(request):
        response.set_cookie(
            VISIT_COOKIE, visit_of(request), httponly=True, samesite="lax",
            secure=request.app.state.context.settings.cookies_over_https_only,
        )  # fmt: skip


def form_token(request: Request) -> str:
    """What a form must send back as `form_token`: bound to this visit and to this session.

    It differs on every page, so that the length of a compressed page tells nothing about it.
    """
    return _form_token(request, secrets.token_urlsafe(9))


def _form_token(request: Request, salt: str) -> str:
    context: Context = request.app.state.context
    session = request.cookies.get(SESSION_COOKIE, "")
    return f"{salt}.{context.signer.mark('form', _SEPARATOR.join((salt, visit_of(request), session)))}"


def check_form(request: Request, sent: str) -> None:
    """Refuse a form that does not come from a page of this board."""
    if not same_site(request) or not request.cookies.get(VISIT_COOKIE):
        raise NotAllowed("The form did not come from a page of this board; open the page again and send it from there.")
    expected = _form_token(request, sent.partition(".")[0])
    if not hmac.compare_digest(*(token.encode("utf-8", "surrogatepass") for token in (sent, expected))):
        raise NotAllowed("The form is out of date; open the page again and send it once more.")


def same_site(request: Request) -> bool:
    """False when the browser says that the request began on another site. Older browsers say nothing and pass."""
    return request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "same-site", "none")
