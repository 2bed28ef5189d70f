"""/v1/drafts: documents that their author keeps on the board, looks at, and sends or deletes; /v1/feed: one's feed."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from earmark.board.api import shapes
from earmark.board.api.submissions import BODY, Id, Key, Text, question_of, submission_shape
from earmark.board.boards.outlook import outlook_of_document
from earmark.board.boards.outlook_text import plain_outlook
from earmark.board.pages.authors import feed_address, own_draft, send_own_draft
from earmark.board.web import requests as web
from earmark.board.web.requests import Asked, Author

router = APIRouter(tags=["submissions"])
_ONCE = {"Cache-Control": "no-store"}


@router.post("/drafts", status_code=201, response_model=shapes.DraftShape, openapi_extra=BODY)
async def keep(request: Request, user: Author, board: Text = "") -> Response:
    """Keep a document as a draft, which nobody else sees. It is checked by the rules of the board."""
    question = await question_of(request, board, user)
    shape = await web.keep_draft(request, user, question, shapes.DraftShape.model_validate)
    return web.sent(shape, 201, {"Location": f"/v1/drafts/{shape.id}"})


@router.get("/drafts", response_model=shapes.PageShape[shapes.DraftShape])
def list_drafts(context: Asked, user: Author) -> Response:
    """Your drafts, the newest first."""
    items = [shapes.DraftShape.model_validate(draft) for draft in context.store.drafts(user)]
    return web.sent(shapes.PageShape[shapes.DraftShape](items=items), headers=_ONCE)


@router.get("/drafts/{draft}", response_model=shapes.DraftShape)
def show(draft: Id, context: Asked, user: Author) -> Response:
    """One of your drafts."""
    return web.sent(shapes.DraftShape.model_validate(own_draft(context, draft, user)[0]), headers=_ONCE)


@router.get("/drafts/{draft}/outlook", response_model=shapes.OutlookShape)
def outlook(draft: Id, context: Asked, user: Author) -> Response:
    """What the board would show if the draft were sent and accepted: ranks, rows, risks."""
    seen = outlook_of_document(context.store, context.snapshots, own_draft(context, draft, user)[1], user)
    return JSONResponse(plain_outlook(seen), headers=_ONCE)


@router.post("/drafts/{draft}/send", status_code=201, response_model=shapes.SubmissionShape)
def send(draft: Id, request: Request, context: Asked, user: Author, key: Key = "") -> Response:
    """Send a draft: it becomes a pending submission, and the draft is gone."""
    shape = submission_shape(send_own_draft(context, draft, user, key), request)
    return web.sent(shape, 201, {"Location": f"/v1/submissions/{shape.id}"})


@router.delete("/drafts/{draft}", status_code=204)
def delete(draft: Id, context: Asked, user: Author) -> Response:
    """Delete one of your drafts."""
    context.store.delete_draft(draft, user)
    return Response(status_code=204)


@router.post("/feed", status_code=201, response_model=shapes.FeedShape)
def renew_feed(request: Request, context: Asked, user: Author) -> Response:
    """A private Atom feed of what becomes of your submissions, under an address that is shown this once. The address
    of before, if there was one, opens nothing any more."""
    shape = shapes.FeedShape(address=feed_address(request, context.store.renew_feed(user)))
    return web.sent(shape, 201, _ONCE)


@router.delete("/feed", status_code=204)
def end_feed(context: Asked, user: Author) -> Response:
    """Close your private feed."""
    context.store.end_feed(user)
    return Response(status_code=204)
