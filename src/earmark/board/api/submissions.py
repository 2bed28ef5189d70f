"""/v1/submissions: check a document, send it, see what became of it, withdraw it, decide on it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.api import shapes
from earmark.board.records import State, Submission
from earmark.board.refusals import NotAllowed, NotFound, Refusal
from earmark.board.web import requests as web
from earmark.board.web.problems import plain_problem
from earmark.board.web.requests import Asked, Author, Context, Moderator, Reader
from earmark.submissions import check, read_document, schema

router = APIRouter(prefix="/submissions", tags=["submissions"])

Text = Annotated[str, Query(max_length=200)]
Id = Annotated[str, Path(max_length=100)]
Key = Annotated[str, Header(alias="Idempotency-Key", max_length=200, pattern=r"^[!-~]*$")]

_FORMATS = {
    "application/json": "document.json", "text/csv": "scores.csv", "application/x-ndjson": "scores.jsonl",
    "application/jsonl": "scores.jsonl", "application/vnd.apache.parquet": "scores.parquet",
}  # fmt: skip
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "A score table, the JSON of codecs, or a document in Earmark's own form.",
        "content": {
            "application/json": {"schema": schema()},
            "text/csv": {"schema": {"type": "string"}},
            "application/x-ndjson": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
"""For the OpenAPI description: these bodies are read by the board, not by FastAPI."""


async def _body(request: Request) -> tuple[bytes, str]:
    """The bytes of the document and a file name that tells its format. The middleware has capped the stream."""
    if request.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise Refusal("The body is compressed; send it as it is.", 415)
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "multipart/form-data":
        async with request.form(max_files=1, max_fields=30) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise Refusal('The form has no file; send it as the part "file".', 422)
            return await file.read(), file.filename or "document.json"
    if media_type not in _FORMATS:
        raise Refusal(f"Send a document as {', '.join(_FORMATS)} or multipart/form-data.", 415)
    return await request.body(), _FORMATS[media_type]


def _shape(submission: Submission, request: Request) -> shapes.SubmissionShape:
    shape: shapes.SubmissionShape = shapes.SubmissionShape.model_validate(submission)
    shape.permalink = f"{web.address_of(request)}/submissions/{submission.id}"
    return shape


def _find(context: Context, submission: str) -> Submission:
    there = context.store.submission(submission)
    if there is None:
        raise NotFound("There is no such submission on this board.")
    return there


@router.post("/validate", response_model=shapes.VerdictShape, openapi_extra=_BODY)
async def validate(request: Request, context: Asked, board: Text = "") -> Response:
    """What the rules say of a document: nothing is stored and no token is needed."""
    data, filename = await _body(request)
    limits = context.settings.limits

    def judge() -> shapes.VerdictShape:
        document = read_document(data, filename=filename, board=board, limits=limits)
        verdict = check(document, limits=limits, announced=context.store.blind_subsets(document.board))
        return shapes.VerdictShape(
            accepted=not verdict.problems, board=document.board, systems=[card.name for card in document.cards],
            rows=len(document.scores), digest=document.digest,
            problems=[shapes.ProblemShape(**plain_problem(problem)) for problem in verdict.problems],
            warnings=[*verdict.warnings, *web.new_subsets(context, document)],
        )  # fmt: skip

    return web.sent(await web.read_apart(request, judge))


@router.post("", status_code=201, response_model=shapes.SubmissionShape, openapi_extra=_BODY)
async def create(request: Request, context: Asked, user: Author, board: Text = "", key: Key = "") -> Response:
    """Send a document. It is pending until a moderator accepts it.

    With an `Idempotency-Key` the same request may be sent again, after a lost connection for example, and is stored
    once: the answer is the first one's.
    """
    data, filename = await _body(request)

    def store() -> shapes.SubmissionShape:
        document = read_document(data, filename=filename, board=board, limits=context.settings.limits)
        return _shape(web.receive(context, document, user, key), request)

    shape = await web.read_apart(request, store)
    return web.sent(shape, 201, {"Location": f"/v1/submissions/{shape.id}"})


@router.get("", response_model=shapes.PageShape[shapes.SubmissionShape])
def list_submissions(
    request: Request,
    context: Asked,
    user: Reader,
    board: Text | None = None,
    owner: Text | None = None,
    system: Text | None = None,
    state: State | None = None,
    cursor: Text = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """Submissions, newest first: those that were accepted; of your own (`owner`), and for moderators, all of them."""
    before = str(web.cursor_of(cursor, str)[0]) if cursor else None
    all_of_them = user is not None and (user.moderates or user.name == owner)
    listed = context.store.submissions(
        board=board, owner=owner, system=system, state=state, limit=limit + 1, before=before,
        was_accepted=not all_of_them,
    )  # fmt: skip
    following = web.cursor_after([listed[limit - 1].id]) if len(listed) > limit else None
    items = [_shape(submission, request) for submission in listed[:limit]]
    return web.sent(shapes.PageShape[shapes.SubmissionShape](items=items, next=following))


@router.get("/{submission}", response_model=shapes.SubmissionShape)
def show(submission: Id, request: Request, context: Asked) -> Response:
    """One submission: what was sent by whom, and what became of it."""
    return web.sent(_shape(_find(context, submission), request))


@router.get("/{submission}/scores", response_model=list[dict[str, Any]])
def scores(submission: Id, context: Asked, user: Reader) -> Response:
    """All rows of a submission with all columns of the score table: for everybody once it is accepted."""
    if not _find(context, submission).is_readable_by(user):
        raise NotAllowed("Scores that are not accepted are shown to their author and to moderators.")
    return Response(context.store.rows_of(submission).to_json(), media_type="application/json")


@router.post("/{submission}/withdraw", response_model=shapes.SubmissionShape)
def withdraw(
    submission: Id, request: Request, context: Asked, user: Author, asked: shapes.WithdrawalAsked | None = None
) -> Response:
    """Take your submission back. Its scores leave the board; that it was there stays on record.

    The body, with a `reason`, may be left out.
    """
    withdrawn = context.store.withdraw(submission, user, asked.reason if asked else "")
    return web.sent(_shape(web.settle(context, withdrawn), request))


@router.post("/{submission}/decision", response_model=shapes.SubmissionShape)
def decide(submission: Id, asked: shapes.DecisionAsked, request: Request, context: Asked, user: Moderator) -> Response:
    """Accept or reject, as a moderator. A rejection needs a reason."""
    decided = context.store.decide(submission, user, asked.accept, asked.reason, asked.provenance)
    return web.sent(_shape(web.settle(context, decided), request))
