"""/v1/me, /v1/tokens and /v1/users: who somebody is, and the tokens that say so."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.api.shapes import CreatedTokenShape, PageShape, TokenAsked, TokenShape, UserAsked, UserShape
from earmark.board.records import Token
from earmark.board.web.requests import Asked, Author, new_account, sent

router = APIRouter(tags=["accounts"])


def _created(plain: str, token: Token) -> Response:
    shape = CreatedTokenShape(plain=plain, token=TokenShape.model_validate(token))
    return sent(shape, 201, {"Cache-Control": "no-store"})


@router.get("/me", response_model=UserShape)
def me(user: Author) -> Response:
    """Whose token this is."""
    return sent(UserShape.model_validate(user))


@router.post("/users", status_code=201, response_model=CreatedTokenShape)
def sign_up(asked: UserAsked, context: Asked, request: Request) -> Response:
    """Register, where the host has opened registration. The token is shown this once."""
    user, plain = new_account(request, asked.name, asked.team)
    return _created(plain, context.store.tokens(user)[0])


@router.get("/tokens", response_model=PageShape[TokenShape])
def list_tokens(user: Author, context: Asked) -> Response:
    """Your tokens: their beginnings, never the whole."""
    tokens = [TokenShape.model_validate(token) for token in context.store.tokens(user)]
    return sent(PageShape[TokenShape](items=tokens))


@router.post("/tokens", status_code=201, response_model=CreatedTokenShape)
def create_token(asked: TokenAsked, user: Author, context: Asked) -> Response:
    """A new token, shown this once."""
    return _created(*context.store.create_token(user, asked.label))


@router.delete("/tokens/{token}", status_code=204)
def revoke_token(token: Annotated[int, Path(ge=0, lt=2**63)], user: Author, context: Asked) -> Response:
    """Revoke one of your tokens: it and its sessions are refused from now on."""
    context.store.revoke_token(token, user)
    return Response(status_code=204)
