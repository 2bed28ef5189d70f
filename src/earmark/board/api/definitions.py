"""/v1/boards/{board}/definition: what a board is, to be read by everybody and changed by moderators."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from earmark.board.api import shapes
from earmark.board.api.boards import Board
from earmark.board.refusals import Refusal
from earmark.board.storage.definitions import Version
from earmark.board.web.requests import Asked, Context, Moderator, definition_now
from earmark.definitions import read_definition, to_plain, to_yaml
from earmark.errors import UsageError

router = APIRouter(prefix="/boards", tags=["boards"])
_YAML = "application/yaml"
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": "object"}}, _YAML: {"schema": {"type": "string"}}},
    }
}
_ANSWER: dict[int | str, Any] = {
    200: {"content": {kind: {"schema": {"type": "object"}} for kind in ("application/json", _YAML)}}
}
_MATCH = Annotated[
    str, Header(max_length=100, description='The ETag of the definition it was made from; "0" for none.')
]


@router.get("/{board}/definition", responses=_ANSWER, response_model=None)
def definition(
    board: Board,
    context: Asked,
    format: Annotated[str, Query(pattern="^(json|yaml)$")] = "json",
) -> Response:
    """What a board is: texts, metrics, subsets, groups and ranking rule. Its ETag is the number of its version."""
    return _sent(definition_now(context, board), format)


def _sent(version: Version, format: str, status: int = 200) -> Response:
    headers = {"etag": f'"{version.version}"', "cache-control": "no-cache"}
    if format == "yaml":
        return Response(to_yaml(version.definition), status, headers, f"{_YAML}; charset=utf-8")
    return JSONResponse(to_plain(version.definition), status, headers)


@router.put("/{board}/definition", responses=_ANSWER, response_model=None, openapi_extra=_BODY)
async def define(
    board: Board, request: Request, context: Asked, moderator: Moderator, if_match: _MATCH = ""
) -> Response:
    """Give a board a definition, as JSON or YAML. `If-Match` names the version that the change was made from."""
    expected = _expected(if_match)
    try:
        text = (await request.body()).decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal("The definition is not UTF-8; save it so.", 422) from None
    return await run_in_threadpool(_define, context, board, text, moderator, expected)


def _define(context: Context, board: str, text: str, moderator: Any, expected: int) -> Response:
    given = read_definition(text)
    if given.name != board:
        raise UsageError(f'The definition is of "{given.name}", and the address of "{board}"; rename a board by name.')
    version = context.store.define(given, moderator, expected=expected)
    context.snapshots.refresh()
    return _sent(version, "json")


def _expected(if_match: str) -> int:
    tag = if_match.strip().removeprefix("W/").strip('"')
    if not tag:
        raise Refusal('Send `If-Match` with the ETag of the definition that you changed; "0" where there is none.', 428)
    if not (tag.isascii() and tag.isdigit() and len(tag) < 10):
        raise Refusal("`If-Match` is none of this definition's ETags; read it again.", 412)
    return int(tag)


@router.post("/{board}/name", responses=_ANSWER, response_model=None)
def rename(board: Board, asked: shapes.NameAsked, context: Asked, moderator: Moderator) -> Response:
    """Rename a board. Its old addresses lead to the new ones from then on."""
    version = context.store.rename_board(board, asked.name, moderator)
    context.snapshots.refresh()
    return _sent(version, "json")
