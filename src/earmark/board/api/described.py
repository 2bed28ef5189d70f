"""/v1/docs: the description of the API as a page, made from the OpenAPI description and without foreign scripts."""

from __future__ import annotations

from typing import Any, NamedTuple

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.web.requests import Asked

__all__ = ["router"]

router = APIRouter()


class Route(NamedTuple):
    """One route as the page shows it."""

    method: str
    path: str
    description: str
    parameters: tuple[str, ...]


def routes_of(description: dict[str, Any]) -> list[tuple[str, list[Route]]]:
    """The routes of an OpenAPI description by their tag, in its order."""
    groups: dict[str, list[Route]] = {}
    for path, methods in description["paths"].items():
        for method, one in methods.items():
            asked = tuple(part["name"] for part in one.get("parameters", []) if part["in"] == "query")
            group = (one.get("tags") or ["other"])[0]
            groups.setdefault(group, []).append(Route(method.upper(), path, one.get("description", ""), asked))
    return list(groups.items())


@router.get("/docs")
def docs(request: Request, context: Asked) -> Response:
    page: Response = context.templates.TemplateResponse(
        request, "writing/api.html", {"groups": routes_of(request.app.openapi())}
    )
    return page
