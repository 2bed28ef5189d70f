"""/v1/submissions: check a document, send it, see what became of it, withdraw it, decide on it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from earmark.board.api import shapes
from earmark.board.boards.outlook import outlook_of_submission
from earmark.board.boards.outlook_text import plain_outlook
from earmark.board.records import State, Submission, User
from earmark.board.refusals import Conflict, NotAllowed, NotFound, Refusal
from earmark.board.web import requests as web
from earmark.board.web.problems import plain_problem
from earmark.board.web.reading import Question, Reading
from earmark.board.web.requests import Asked, Author, Context, Moderator, Reader
from earmark.submissions import Limits, schema

router = APIRouter(prefix="/submissions", tags=["submissions"])

Text = Annotated[str, Query(max_length=200)]
Id = Annotated[str, Path(max_length=100)]
Key = Annotated[str, Header(alias="Idempotency-Key", max_length=200, pattern=r"^[!-~]*$")]

_FORMATS = {
    "application/json": "document.json", "text/csv": "scores.csv", "application/x-ndjson": "scores.jsonl",
    "application/jsonl": "scores.jsonl", "application/vnd.apache.parquet": "scores.parquet",
}  # fmt: skip
BODY: dict[str, Any] = {
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
_FORM = 10_000  # what a form may hold beside its file


async def question_of(request: Request, board: str, user: User | None) -> Question:
    """The document as it came, with a name that tells its format, within what its sender may send."""
    limits = web.limits_for(request, user)
    declared = request.headers.get("content-length", "")
    if user is None and declared.isdigit() and int(declared) > limits.max_body + _FORM:
        raise _too_large(limits)
    data, filename = await _body(request)
    if len(data) > limits.max_body:
        raise _too_large(limits)
    return Question(data, filename, board, limits)


def _too_large(limits: Limits) -> Refusal:
    return Refusal(f"The document is larger than {limits.max_body / 1e6:g} MB; {limits.remedy}.", 413)


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


def submission_shape(submission: Submission, request: Request) -> shapes.SubmissionShape:
    """A submission with its address."""
    shape: shapes.SubmissionShape = shapes.SubmissionShape.model_validate(submission)
    shape.permalink = f"{web.address_of(request)}/submissions/{submission.id}"
    return shape


def _find(context: Context, submission: str, user: User | None) -> Submission:
    there = context.store.submission(submission)
    if there is None or not context.store.may_see(there, user):
        raise NotFound("There is no such submission on this board.")
    return there


@router.post("/validate", response_model=shapes.VerdictShape, openapi_extra=BODY)
async def validate(request: Request, context: Asked, user: Reader, board: Text = "") -> Response:
    """What the rules say of a document: nothing is stored. Without a token, of a small document only."""

    def shape(reading: Reading) -> shapes.VerdictShape:
        return shapes.VerdictShape(
            accepted=not reading.problems, board=reading.board, systems=list(reading.systems), rows=reading.rows,
            digest=reading.digest,
            problems=[shapes.ProblemShape(**plain_problem(problem)) for problem in reading.problems],
            warnings=[*reading.warnings, *web.new_subsets(context, reading, user)],
        )  # fmt: skip

    question = await question_of(request, board, user)
    return web.sent(await web.check_document(request, user, question, shape))


@router.post("", status_code=201, response_model=shapes.SubmissionShape, openapi_extra=BODY)
async def create(request: Request, user: Author, board: Text = "", key: Key = "") -> Response:
    """Send a document. It is pending until a moderator accepts it.

    With an `Idempotency-Key` the same request may be sent again, after a lost connection for example, and is stored
    once: the answer is the first one's.
    """
    question = await question_of(request, board, user)
    shape = await web.take_document(
        request, user, key, question, lambda submission: submission_shape(submission, request)
    )
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
    """Submissions, newest first: those that were accepted; of your own (`owner`), and for moderators, all of them.

    Those of a hidden board are listed for who names it as `board`, those of a private one for its readers.
    """
    before = str(web.cursor_of(cursor, str)[0]) if cursor else None
    all_of_them = user is not None and (user.moderates or user.name == owner)
    listed = context.store.submissions(
        board=board, owner=owner, system=system, state=state, limit=limit + 1, before=before,
        was_accepted=not all_of_them, reader=user,
        unlisted=context.store.unlisted(user) if board is None else context.store.unreadable(user),
    )  # fmt: skip
    following = web.cursor_after([listed[limit - 1].id]) if len(listed) > limit else None
    items = [submission_shape(submission, request) for submission in listed[:limit]]
    return web.sent(shapes.PageShape[shapes.SubmissionShape](items=items, next=following))


@router.post("/decisions", response_model=list[shapes.DecisionShape])
def decide_several(asked: shapes.DecisionsAsked, context: Asked, user: Moderator) -> Response:
    """Accept or reject several, as a moderator: each by itself, with what became of it."""
    decisions = context.store.decide_each(asked.ids, user, asked.accept, asked.reason, asked.provenance)
    for decision in decisions:
        if decision.state:
            context.meters.submissions.labels(decision.state).inc()
    context.snapshots.refresh()
    plain = [shapes.DecisionShape.model_validate(each).model_dump() for each in decisions]
    return JSONResponse(plain)


@router.get("/{submission}", response_model=shapes.SubmissionShape)
def show(submission: Id, request: Request, context: Asked, user: Reader) -> Response:
    """One submission: what was sent by whom, and what became of it."""
    return web.sent(submission_shape(_find(context, submission, user), request))


@router.get("/{submission}/scores", response_model=list[dict[str, Any]])
def scores(submission: Id, context: Asked, user: Reader) -> Response:
    """All rows of a submission with all columns of the score table: for everybody once it is accepted."""
    if not _find(context, submission, user).is_readable_by(user):
        raise NotAllowed("Scores that are not accepted are shown to their author and to moderators.")
    return Response(context.store.rows_of(submission).to_json(), media_type="application/json")


@router.get("/{submission}/outlook", response_model=shapes.OutlookShape)
def outlook(submission: Id, context: Asked, user: Author) -> Response:
    """What a pending submission of yours, or as a moderator anybody's, would change: ranks, rows, risks."""
    there = _find(context, submission, user)
    if not (there.is_of(user) or user.moderates):
        raise NotAllowed("What a submission would change is shown to its author and to moderators.")
    if there.state != "pending":
        raise Conflict(f"Submission {there.id} is {there.state}; an outlook is of what is pending.")
    seen = outlook_of_submission(context.store, context.snapshots, there, for_moderator=user.moderates)
    return JSONResponse(plain_outlook(seen))


@router.post("/{submission}/provenance", response_model=shapes.SubmissionShape)
def mark(submission: Id, asked: shapes.MarkAsked, request: Request, context: Asked, user: Moderator) -> Response:
    """Say anew, as a moderator, where the scores of an accepted submission come from."""
    marked = context.store.mark(submission, user, asked.provenance, asked.reason)
    return web.sent(submission_shape(web.settle(context, marked), request))


@router.post("/{submission}/withdraw", response_model=shapes.SubmissionShape)
def withdraw(
    submission: Id, request: Request, context: Asked, user: Author, asked: shapes.WithdrawalAsked | None = None
) -> Response:
    """Take your submission back. Its scores leave the board; that it was there stays on record.

    The body, with a `reason`, may be left out.
    """
    withdrawn = context.store.withdraw(submission, user, asked.reason if asked else "")
    return web.sent(submission_shape(web.settle(context, withdrawn), request))


@router.post("/{submission}/decision", response_model=shapes.SubmissionShape)
def decide(submission: Id, asked: shapes.DecisionAsked, request: Request, context: Asked, user: Moderator) -> Response:
    """Accept or reject, as a moderator. A rejection needs a reason."""
    decided = context.store.decide(submission, user, asked.accept, asked.reason, asked.provenance)
    return web.sent(submission_shape(web.settle(context, decided), request))
