"""/v1/me, /v1/tokens and /v1/users: who somebody is, and the tokens that say so."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.web.requests import Asked, Author, sent
from earmark.board.api.shapes import CreatedTokenShape, PageShape, TokenAsked, TokenShape, UserAsked, UserShape
from earmark.board.web.problems import ProblemError
from earmark.board.web.requests import count_stranger

__all__ = ["router"]

router = APIRouter(tags=["accounts"])


@router.get("/me", response_model=UserShape)
def me(user: Author) -> Response:
    """Whose token this is."""
    return sent(UserShape.of(user))


@router.post("/users", status_code=201, response_model=CreatedTokenShape)
def sign_up(asked: UserAsked, context: Asked, request: Request) -> Response:
    """Register, where the host has opened registration. The token is shown this once."""
    if context.settings.registration != "open":
        raise ProblemError(403, "Registration is closed here; ask the host of the board for a token.")
    count_stranger(context, request)
    user = context.store.create_user(asked.name, asked.team)
    plain, token = context.store.create_token(user, "registration")
    request.state.user_name = user.name
    return sent(CreatedTokenShape(plain=plain, token=TokenShape.of(token)), 201, _SECRET)


@router.get("/tokens", response_model=PageShape[TokenShape])
def list_tokens(user: Author, context: Asked) -> Response:
    """Your tokens: their beginnings, never the whole."""
    return sent(PageShape[TokenShape](items=[TokenShape.of(token) for token in context.store.tokens(user)]))


@router.post("/tokens", status_code=201, response_model=CreatedTokenShape)
def create_token(asked: TokenAsked, user: Author, context: Asked) -> Response:
    """A new token, shown this once."""
    plain, token = context.store.create_token(user, asked.label)
    return sent(CreatedTokenShape(plain=plain, token=TokenShape.of(token)), 201, _SECRET)


@router.delete("/tokens/{token}", status_code=204)
def revoke_token(token: Annotated[int, Path(ge=0, lt=2**63)], user: Author, context: Asked) -> Response:
    """Revoke one of your tokens: it and its sessions are refused from now on."""
    context.store.revoke_token(token, user)
    return Response(status_code=204)


_SECRET = {"Cache-Control": "no-store"}
