"""The JSON API under /v1: what `earmark submit` and other programs use.

/v1/openapi.json describes it for programs, /v1/docs for people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["add_api"]


def add_api(app: FastAPI) -> None:
    """Put the routes of the API into the app."""
    from earmark.board.api import accounts, blind, boards, definitions, drafts, hosting, submissions
    from earmark.board.web.problems import RESPONSES

    for part in (boards, definitions, submissions, drafts, blind, accounts, hosting):
        app.include_router(part.router, prefix="/v1", responses=RESPONSES)
    app.add_api_route("/v1/docs", _docs, include_in_schema=False, response_model=None)


def _docs(request: Request) -> Response:
    """The description of the API as a page, made from the OpenAPI description and without foreign scripts."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in request.app.openapi()["paths"].items():
        for method, route in methods.items():
            parameters = [part["name"] for part in route.get("parameters", []) if part["in"] == "query"]
            shown = {"method": method.upper(), "path": path, "parameters": parameters}
            group = (route.get("tags") or ["other"])[0]
            groups.setdefault(group, []).append({**shown, "description": route.get("description", "")})
    page: Response = request.app.state.context.templates.TemplateResponse(
        request, "writing/api.html", {"groups": list(groups.items())}
    )
    return page
