"""/v1/boards/…/card and /v1/events: cards corrected without scores, and the audit trail."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import JSONResponse, Response

from earmark.board.api.shapes import CardChangeShape, CorrectionAsked, EventShape, PageShape
from earmark.board.web.requests import Asked, Author, Moderator, cursor_after, cursor_of, sent

router = APIRouter(tags=["hosting"])

Text = Annotated[str, Query(max_length=200)]
Name = Annotated[str, Path(max_length=200)]


@router.patch("/boards/{board}/systems/{slug}/card", response_model=list[CardChangeShape])
def correct_card(board: Name, slug: Name, asked: CorrectionAsked, user: Author, context: Asked) -> Response:
    """Correct the card of your system without scores. What ranks, filters or costs rest on waits for a moderator."""
    made = context.store.correct_card(board, slug, user, asked.card, asked.why)
    context.snapshots.refresh()
    return JSONResponse([CardChangeShape.model_validate(each).model_dump(mode="json") for each in made])


@router.get("/events", response_model=PageShape[EventShape])
def list_events(
    context: Asked, moderator: Moderator, user: Text = "", action: Text = "", text: Text = "", cursor: Text = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:  # fmt: skip
    """The audit trail for moderators, the newest first."""
    before = int(cursor_of(cursor, int)[0]) if cursor else None
    events = context.store.events(limit + 1, before, user=user, action=action, text=text)
    following = cursor_after([events[limit - 1].id]) if len(events) > limit else None
    items = [EventShape.model_validate(event) for event in events[:limit]]
    return sent(PageShape[EventShape](items=items, next=following))
