"""The JSON API under /v1: what `earmark submit` and other programs use.

/v1/openapi.json describes it for programs, /v1/docs for people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["add_api"]


def add_api(app: FastAPI) -> None:
    """Put the routes of the API into the app."""
    from earmark.board.api import accounts, boards, described, submissions
    from earmark.board.web.problems import RESPONSES

    for part in (boards, submissions, accounts):
        app.include_router(part.router, prefix="/v1", responses=RESPONSES)
    app.include_router(described.router, prefix="/v1", include_in_schema=False)
