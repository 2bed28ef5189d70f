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

from earmark.board.refusals import Refusal
from earmark.board.web.logs import LOGGER
from earmark.board.web.security import HEADERS, visitor_of
from earmark.databases import Busy, Full
from earmark.errors import EarmarkError, InputError, MissingExtra, UsageError
from earmark.submissions import Problem, Refused

PROBLEM_JSON = "application/problem+json"
_TEXT, _ERROR = {"type": "string"}, {"pointer": {"type": "string"}, "detail": {"type": "string"}}
_SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT,
        "errors": {"type": "array", "items": {"type": "object", "properties": _ERROR}},
    },
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    code: {"description": HTTPStatus(code).phrase, "content": {PROBLEM_JSON: {"schema": _SCHEMA}}}
    for code in (400, 401, 403, 404, 405, 409, 410, 412, 413, 414, 415, 422, 428, 429, 503, 507)
}
"""For the OpenAPI description: what any route may answer instead."""


def plain_problem(problem: Problem) -> dict[str, str]:
    """A problem of a document as the API sends it."""
    return {"pointer": problem.pointer, "detail": problem.message}


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
    if isinstance(error, Refusal):
        return error.status
    if isinstance(error, Busy):
        return 507 if isinstance(error, Full) else 503
    if isinstance(error, MissingExtra):  # a format that this host has not installed
        return 415
    return 422 if isinstance(error, InputError | UsageError) else 500


def add_handlers(app: FastAPI) -> None:
    """Every error leaves as a problem: for programs as JSON, for people as a page."""

    async def on_refusal(request: Request, error: Exception) -> Response:
        assert isinstance(error, EarmarkError)
        status = status_of(error)
        if status == 500:
            return await on_defect(request, error)
        errors = [plain_problem(one) for one in error.problems] if isinstance(error, Refused) else []
        headers = dict(error.headers) if isinstance(error, Refusal) else {}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if status == 503:
            headers.setdefault("Retry-After", "5")
        return _answer(request, status, str(error), errors, headers)

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        sentence = str(error.detail)
        if error.status_code == 404 and sentence == "Not Found":
            sentence = "There is nothing at this address."
        elif error.status_code == 405:
            sentence = f"This address does not take {request.method}."
        return _answer(request, error.status_code, sentence, (), dict(error.headers or {}))

    async def on_invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        errors = [
            {"pointer": "/" + "/".join(map(str, each["loc"])), "detail": str(each["msg"])} for each in error.errors()
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


def refused(request: Request, error: EarmarkError) -> Response:
    """The answer to a request that is refused before a route has it."""
    return _answer(request, status_of(error), str(error), (), error.headers if isinstance(error, Refusal) else {})


def _answer(
    request: Request, status: int, detail: str, errors: Sequence[Mapping[str, str]], headers: Mapping[str, str]
) -> Response:
    wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1")
    if not wants_page:
        return problem(status, detail, errors=errors, headers=headers)
    visitor = None
    with contextlib.suppress(Busy):  # the database that did not answer is also asked for the visitor
        visitor = visitor_of(request)
    phrase = HTTPStatus(status).phrase
    values = {"status": status, "phrase": phrase, "detail": detail, "errors": errors, "visitor": visitor}
    page: HTMLResponse = request.app.state.context.templates.TemplateResponse(
        request, "writing/problem.html", values, status_code=status, headers=dict(headers)
    )
    return page
