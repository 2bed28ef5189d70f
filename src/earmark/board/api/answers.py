"""What the routes of the API share: who asks, where the board stands, and answers that a reader may keep."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Annotated

from fastapi import Depends
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from earmark._version import __version__
from earmark.board.web.context import Context
from earmark.board.web.caching import kept as pack
from earmark.board.web.problems import ProblemError
from earmark.board.web.requests import count_stranger
from earmark.board.records import User
from earmark.board.web.security import bearer_of, visitor_of

__all__ = ["Asked", "Author", "Moderator", "Reader", "address_of", "cursor_after", "cursor_of", "kept", "sent"]


def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


Asked = Annotated[Context, Depends(_context)]
"""The board that is asked."""


def _author(request: Request) -> User:
    """Whose token it is. Tokens that fit nobody are counted for the address they come from."""
    context = _context(request)
    plain = bearer_of(request)
    if plain is None:
        raise ProblemError(401, "This needs a token: send it as `Authorization: Bearer TOKEN`.")
    user = context.store.authenticate(plain)
    if user is None:
        count_stranger(context, request)
        raise ProblemError(401, "The token is unknown or was revoked; make a new one.")
    request.state.user_name = user.name
    request.state.bearer = True  # from now on this token has a rate of its own
    return user


def _moderator(request: Request) -> User:
    user = _author(request)
    if user.role != "moderator":
        raise ProblemError(403, "Only a moderator of this board may do that.")
    return user


def _reader(request: Request) -> User | None:
    """Whose token it is, or None when there is none; a wrong token is refused here too."""
    return _author(request) if bearer_of(request) is not None else visitor_of(request)


Author = Annotated[User, Depends(_author)]
Moderator = Annotated[User, Depends(_moderator)]
Reader = Annotated[User | None, Depends(_reader)]


def address_of(request: Request) -> str:
    """The address of the board as the world sees it, without a slash at the end."""
    fixed = _context(request).settings.base_url
    return fixed or str(request.base_url).rstrip("/")


def sent(shape: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A shape as JSON, written by pydantic once and not checked again by FastAPI."""
    return Response(shape.model_dump_json(), status, headers, "application/json")


def kept(request: Request, make: Callable[[], BaseModel]) -> Response:
    """An answer that stays right until the board changes: its ETag stands for the address and the board's generation.

    A reader who has it already gets 304 and nothing is computed; others get what was made for the first who asked. The
    generation of the snapshots is read before the answer is made: an answer may be newer than its tag, never older.
    `no-cache` means: keep it, and ask before use.
    """
    context = _context(request)
    context.snapshots.boards()  # looks whether the store has grown
    place = f"{address_of(request)}{request.url.path}?{request.url.query}"
    told = f"{__version__} {context.snapshots.generation} {place}"
    tag = f'W/"{hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()[:24]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    known = {part.strip() for part in request.headers.get("if-none-match", "").split(",")}
    if tag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    page = context.answers.fetch(tag, lambda: pack(make().model_dump_json(), "application/json"))
    if page.compressed and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(page.compressed, 200, {**headers, "Content-Encoding": "gzip"}, "application/json")
    return Response(page.body, 200, headers, "application/json")


def cursor_after(place: list[str | int]) -> str:
    """Where a page ended, as text for the next request."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).rstrip(b"=").decode()


def cursor_of(text: str, *kinds: type) -> list[str | int]:
    """What `cursor_after` was given: as many parts of such kinds, or 422."""
    try:
        place = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        place = None
    fits = isinstance(place, list) and len(place) == len(kinds)
    if not fits or not all(_part_fits(part, kind) for part, kind in zip(place, kinds, strict=True)):
        raise ProblemError(422, "The cursor does not come from this list; leave it out to start at the beginning.")
    found: list[str | int] = place
    return found


def _part_fits(part: object, kind: type) -> bool:
    return type(part) is kind and (not isinstance(part, int) or 0 <= part < 2**62)
