"""What goes wrong in a request, as `application/problem+json` (RFC 9457) for programs and as a page for people."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from earmark.board.web.logs import LOGGER
from earmark.board.refusals import Busy, Conflict, NotAllowed, NotFound
from earmark.submissions import Refused
from earmark.board.web.security import HEADERS, visitor_of
from earmark.board.boards.snapshot import NoSuchBoard, NoSuchSystem
from earmark.errors import EarmarkError, InputError, MissingExtra, UsageError

__all__ = ["PROBLEM_JSON", "RESPONSES", "ProblemError", "add_handlers", "problem", "status_of"]

PROBLEM_JSON = "application/problem+json"
_SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"pointer": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
}


def _described(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {
        code: {"description": HTTPStatus(code).phrase, "content": {PROBLEM_JSON: {"schema": _SCHEMA}}} for code in codes
    }


RESPONSES = _described(400, 401, 403, 404, 405, 409, 413, 414, 415, 422, 429, 503)
"""For the OpenAPI description: what any route may answer instead."""


class ProblemError(EarmarkError):
    """A refusal with its own status, and with a list of what is wrong where there is one."""

    def __init__(
        self, status: int, detail: str, *, errors: Sequence[Mapping[str, str]] = (), headers: Mapping[str, str] = {}
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.errors = tuple(errors)
        self.headers = dict(headers)


def problem(
    status: int, detail: str, *, errors: Sequence[Mapping[str, str]] = (), headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """The answer that says what is wrong."""
    phrase = HTTPStatus(status).phrase
    body: dict[str, Any] = {"type": "about:blank", "title": phrase, "status": status, "detail": _whole(detail)}
    if errors:
        body["errors"] = [{name: _whole(text) for name, text in error.items()} for error in errors]
    return JSONResponse(body, status, headers=dict(headers or {}), media_type=PROBLEM_JSON)


def _whole(text: str) -> str:
    """The text without halves of characters, which sentences may quote and UTF-8 cannot write."""
    return text.encode("utf-8", "replace").decode()


def status_of(error: EarmarkError) -> int:
    """The status that says what kind of error it is."""
    if isinstance(error, ProblemError):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


# The first that fits: a board that is not there is also a wrong call.
_STATUSES: tuple[tuple[type[EarmarkError], int], ...] = (
    (NotAllowed, 403),
    (NotFound, 404),
    (NoSuchBoard, 404),
    (NoSuchSystem, 404),
    (Conflict, 409),
    (Busy, 503),
    (MissingExtra, 415),  # a format that this host has not installed
    (InputError, 422),
    (UsageError, 422),
)


def add_handlers(app: FastAPI) -> None:
    """Every error leaves as a problem: for programs as JSON, for people as a page."""

    async def on_refusal(request: Request, error: Exception) -> Response:
        assert isinstance(error, EarmarkError)
        status = status_of(error)
        if status == 500:
            return await on_defect(request, error)
        errors = error.errors if isinstance(error, ProblemError) else ()
        if isinstance(error, Refused):
            errors = tuple({"pointer": one.pointer, "detail": one.sentence} for one in error.problems)
        headers = dict(error.headers) if isinstance(error, ProblemError) else {}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if status == 503:
            headers["Retry-After"] = "5"
        return _answer(request, status, str(error), errors, headers)

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _answer(request, error.status_code, _sentence(request, error), (), dict(error.headers or {}))

    async def on_invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        errors = [
            {"pointer": "/" + "/".join(map(str, found["loc"])), "detail": str(found["msg"])} for found in error.errors()
        ]
        where = errors[0]["pointer"] if errors else "/"
        return _answer(request, 422, f"The request does not fit the API at {where}: see errors.", errors, {})

    async def on_defect(request: Request, error: Exception) -> Response:
        LOGGER.error("a request failed", exc_info=error, extra={"fields": {"path": request.url.path}})
        # Outside of the middleware, and without a template: that may be what failed.
        return problem(500, "The board failed; its host finds the reason in the log.", headers=HEADERS)

    app.add_exception_handler(EarmarkError, on_refusal)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(Exception, on_defect)


def _sentence(request: Request, error: HTTPException) -> str:
    if error.status_code == 404 and error.detail == "Not Found":
        return "There is nothing at this address."
    if error.status_code == 405:
        return f"This address does not take {request.method}."
    return str(error.detail)


def _answer(
    request: Request,
    status: int,
    detail: str,
    errors: Sequence[Mapping[str, str]],
    headers: Mapping[str, str],
) -> Response:
    wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1")
    if not wants_page:
        return problem(status, detail, errors=errors, headers=headers)
    context = request.app.state.context
    page = {"status": status, "phrase": HTTPStatus(status).phrase, "detail": detail, "errors": errors}
    page["visitor"] = None
    with contextlib.suppress(Busy):  # the database that did not answer is also asked for the visitor
        page["visitor"] = visitor_of(request)
    answer: HTMLResponse = context.templates.TemplateResponse(
        request, "writing/problem.html", page, status_code=status, headers=dict(headers)
    )
    return answer
