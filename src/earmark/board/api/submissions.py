"""/v1/submissions: check a document, send it, see what became of it, withdraw it, decide on it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.web.requests import Asked, Author, Moderator, Reader, address_of, cursor_after, cursor_of, sent
from earmark.board.api.bodies import BODY, body_of, document_in
from earmark.board.api.shapes import (
    DecisionAsked,
    PageShape,
    ProblemShape,
    SubmissionShape,
    VerdictShape,
    WithdrawalAsked,
)
from earmark.board.web.context import Context
from earmark.board.web.requests import may_read_rows, new_subsets, read_apart, receive
from earmark.board.records import State, Submission
from earmark.board.refusals import NotAllowed, NotFound
from earmark.submissions import check

__all__ = ["router"]

router = APIRouter(prefix="/submissions", tags=["submissions"])

Text = Annotated[str, Query(max_length=200)]
Id = Annotated[str, Path(max_length=100)]
Key = Annotated[str, Header(alias="Idempotency-Key", max_length=200, pattern=r"^[!-~]*$")]


@router.post("/validate", response_model=VerdictShape, openapi_extra=BODY)
async def validate(request: Request, context: Asked, board: Text = "") -> Response:
    """What the rules say of a document: nothing is stored and no token is needed."""
    data, filename = await body_of(request)

    def judged() -> VerdictShape:
        document = document_in(data, filename, board, context.settings)
        verdict = check(document, limits=context.settings.limits)
        return VerdictShape(
            accepted=not verdict.problems,
            board=document.board,
            systems=[card.name for card in document.cards],
            rows=len(document.scores),
            digest=document.digest,
            problems=[ProblemShape(pointer=one.pointer, detail=one.sentence) for one in verdict.problems],
            warnings=[*verdict.warnings, *new_subsets(context, document)],
        )

    return sent(await read_apart(request, judged))


@router.post("", status_code=201, response_model=SubmissionShape, openapi_extra=BODY)
async def create(request: Request, context: Asked, user: Author, board: Text = "", key: Key = "") -> Response:
    """Send a document. It is pending until a moderator accepts it.

    With an `Idempotency-Key` the same request may be sent again, after a lost connection for example, and is stored
    once: the answer is the first one's.
    """
    data, filename = await body_of(request)

    def stored() -> SubmissionShape:
        document = document_in(data, filename, board, context.settings)
        return SubmissionShape.of(receive(context, document, user, key), address_of(request))

    shape = await read_apart(request, stored)
    return sent(shape, 201, {"Location": f"/v1/submissions/{shape.id}"})


@router.get("", response_model=PageShape[SubmissionShape])
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
    before = str(cursor_of(cursor, str)[0]) if cursor else None
    all_of_them = user is not None and (user.role == "moderator" or user.name == owner)
    found = context.store.submissions(
        board=board, owner=owner, system=system, state=state, limit=limit + 1, before=before,
        was_accepted=not all_of_them,
    )  # fmt: skip
    base = address_of(request)
    items = [SubmissionShape.of(one, base) for one in found[:limit]]
    following = cursor_after([found[limit - 1].id]) if len(found) > limit else None
    return sent(PageShape[SubmissionShape](items=items, next=following))


@router.get("/{submission}", response_model=SubmissionShape)
def show(submission: Id, request: Request, context: Asked) -> Response:
    """One submission: what was sent by whom, and what became of it."""
    return sent(SubmissionShape.of(_found(context, submission), address_of(request)))


@router.get("/{submission}/scores", response_model=list[dict[str, Any]])
def scores(submission: Id, context: Asked, user: Reader) -> Response:
    """All rows of a submission with all columns of the score table: for everybody once it is accepted."""
    if not may_read_rows(_found(context, submission), user):
        raise NotAllowed("Scores that are not accepted are shown to their author and to moderators.")
    return Response(context.store.rows_of(submission).to_json(), media_type="application/json")


def _found(context: Context, submission: str) -> Submission:
    found = context.store.submission(submission)
    if found is None:
        raise NotFound("There is no such submission on this board.")
    return found


@router.post("/{submission}/withdraw", response_model=SubmissionShape)
def withdraw(
    submission: Id, request: Request, context: Asked, user: Author, asked: WithdrawalAsked | None = None
) -> Response:
    """Take your submission back. Its scores leave the board; that it was there stays on record.

    The body, with a `reason`, may be left out.
    """
    done = context.store.withdraw(submission, user, asked.reason if asked else "")
    context.meters.submissions.labels("withdrawn").inc()
    context.snapshots.refresh()
    return sent(SubmissionShape.of(done, address_of(request)))


@router.post("/{submission}/decision", response_model=SubmissionShape)
def decide(submission: Id, asked: DecisionAsked, request: Request, context: Asked, user: Moderator) -> Response:
    """Accept or reject, as a moderator. A rejection needs a reason."""
    done = context.store.decide(submission, user, asked.accept, asked.reason, asked.provenance)
    context.meters.submissions.labels(done.state).inc()
    context.snapshots.refresh()
    return sent(SubmissionShape.of(done, address_of(request)))
