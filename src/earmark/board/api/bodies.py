"""The document in a request: the file itself, with its format as content type, or a form with the file in it."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request

from earmark.board.web.problems import ProblemError
from earmark.board.settings import Settings
from earmark.submissions import Document, read_document

__all__ = ["BODY", "document_in"]

_FORMATS = {
    "application/json": "document.json",
    "text/csv": "scores.csv",
    "application/x-ndjson": "scores.jsonl",
    "application/jsonl": "scores.jsonl",
    "application/vnd.apache.parquet": "scores.parquet",
}

_ROW = {"type": "object", "required": ["metric"], "properties": {"metric": {"type": "string"}}}
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A score table, the JSON of codecs, or a document in Earmark's own form.",
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["format", "version", "board", "scores"],
                    "properties": {
                        "format": {"const": "earmark-submission"},
                        "version": {"const": 1},
                        "board": {"type": "string"},
                        "provenance": {"enum": ["self-reported", "reproduced", "blind", "printed"]},
                        "systems": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {"name": {"type": "string"}},
                            },
                        },
                        "scores": {"type": "array", "items": _ROW},
                    },
                }
            },
            "text/csv": {"schema": {"type": "string"}},
            "application/x-ndjson": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
"""For the OpenAPI description: these bodies are read by the board, not by FastAPI."""


async def body_of(request: Request) -> tuple[bytes, str]:
    """The bytes of the document and a file name that tells its format. The middleware has capped the stream."""
    packing = request.headers.get("content-encoding", "identity").lower()
    if packing not in ("", "identity"):
        raise ProblemError(415, "The body is compressed; send it as it is.")
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "multipart/form-data":
        async with request.form(max_files=1, max_fields=30) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise ProblemError(422, 'The form has no file; send it as the part "file".')
            return await file.read(), file.filename or "document.json"
    if media_type not in _FORMATS:
        raise ProblemError(415, f"Send a document as {', '.join(_FORMATS)} or multipart/form-data.")
    return await request.body(), _FORMATS[media_type]


def document_in(data: bytes, filename: str, board: str, settings: Settings) -> Document:
    """The document, or the InputError that says what cannot be read."""
    return read_document(data, filename=filename, board=board, limits=settings.limits)
