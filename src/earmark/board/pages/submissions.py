"""The pages of submissions: send one, see what became of it, withdraw it, decide about it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.pages.card_form import FIELDS, document_from
from earmark.board.pages.forms import Posted, form_page, on_post, redirect, signed_in
from earmark.board.refusals import NotFound, Refusal
from earmark.board.web.problems import status_of
from earmark.board.web.requests import context_of, new_subsets, receive, settle
from earmark.board.web.security import visitor_of
from earmark.errors import EarmarkError
from earmark.submissions import Problem, Refused, enforce
from earmark.wording import counted

router = APIRouter()
_SHOWN_ROWS = 300
_SHOWN_CARDS = 20
_SHOWN_PROBLEMS = 100


@router.get("/submit")
def submit_page(request: Request) -> Response:
    return _submit_page(request, 200, {})


def _submit_page(
    request: Request,
    status: int,
    texts: Mapping[str, str],
    problems: Sequence[Problem] = (),
    checked: str = "",
    warnings: Sequence[str] = (),
) -> Response:
    context = context_of(request)
    return form_page(
        request, "submit", status, here="submit", fields=FIELDS, texts=texts, boards=context.store.boards(),
        problems=problems[:_SHOWN_PROBLEMS], more=max(0, len(problems) - _SHOWN_PROBLEMS), checked=checked,
        warnings=warnings[:_SHOWN_PROBLEMS], megabytes=context.settings.limits.max_body / 1e6,
        key=secrets.token_hex(16), opened=any(texts.get(field.name) for field in FIELDS),
    )  # fmt: skip


@on_post(router, "/submit", apart=True)
def submit(request: Request, posted: Posted) -> Response:
    user, context = signed_in(request), context_of(request)
    limits = context.settings.limits
    try:
        document = document_from(posted.texts, posted.file, posted.filename, limits)
        verdict = enforce(document, limits, context.store.blind_subsets(document.board))
        if posted.text("action") == "check":
            extent = f"{counted(len(document.scores), 'row')} of {counted(len(document.cards), 'system')}"
            sentence = f"{extent} can be sent to the board {document.board}."
            warnings = [*verdict.warnings, *new_subsets(context, document)]
            return _submit_page(request, 200, posted.texts, checked=sentence, warnings=warnings)
        submission = receive(context, document, user, posted.text("key"))
    except Refused as refused:
        return _submit_page(request, 422, posted.texts, refused.problems)
    except EarmarkError as error:
        if status_of(error) >= 500:
            raise
        return _submit_page(request, status_of(error), posted.texts, [Problem("unreadable", str(error))])
    return redirect(f"/submissions/{submission.id}?done=sent")


@router.get("/submissions/{submission}")
def submission_page(submission: str, request: Request) -> Response:
    return _submission_page(submission, request)


def _submission_page(
    id: str, request: Request, status: int = 200, wrong: str = "", texts: Mapping[str, str] | None = None
) -> Response:
    """One submission; with a decision that cannot stand, its form as it was sent and what is wrong with it."""
    store = context_of(request).store
    submission = store.submission(id)
    if submission is None:
        raise NotFound("There is no such submission on this board.")
    user = visitor_of(request)
    readable = submission.is_readable_by(user)
    rows = store.rows_of(id).rows if readable else ()
    cards = store.cards_of(id)[:_SHOWN_CARDS] if readable else ()
    moderates = user is not None and user.moderates
    return form_page(
        request, "submission", status, here="", submission=submission, rows=rows[:_SHOWN_ROWS], readable=readable,
        systems=list(zip(submission.systems, submission.names, strict=True)), wrong=wrong, texts=texts or {},
        cards=[
            {"card": card, "on_board": store.system(submission.board, slug) is not None}
            for card, slug in zip(cards, submission.systems, strict=False)
        ],
        may_withdraw=(submission.is_of(user) or moderates) and submission.state in ("pending", "accepted"),
        may_decide=moderates and submission.state == "pending",
    )  # fmt: skip


@on_post(router, "/submissions/{submission}/withdraw")
def withdraw(request: Request, posted: Posted) -> Response:
    context, id = context_of(request), request.path_params["submission"]
    done = settle(context, context.store.withdraw(id, signed_in(request), posted.text("reason")))
    return redirect(f"/submissions/{done.id}?done=withdrawn")


@router.get("/moderate")
def moderate_page(request: Request) -> Response:
    user = visitor_of(request)
    if user is None:
        return redirect("/sign-in?next=/moderate")
    if not user.moderates:
        raise Refusal("Only a moderator of this board decides about submissions.", 403)
    store = context_of(request).store
    pending = store.submissions(state="pending", limit=200)
    return form_page(request, "moderate", here="moderate", pending=pending, events=store.events(50, None))


@on_post(router, "/submissions/{submission}/decide")
def decide(request: Request, posted: Posted) -> Response:
    context, id, user = context_of(request), request.path_params["submission"], signed_in(request)
    choice, marked = posted.text("choice"), posted.text("provenance") or None
    if choice not in ("accept", "reject") or marked not in (None, "self-reported", "reproduced", "blind"):
        raise Refusal("Choose accept or reject, and a provenance from the list.", 422)
    reason = posted.text("reason")
    if choice == "reject" and user.moderates and not reason:
        wrong = "A rejection needs a reason: say in one sentence what its author can do."
        return _submission_page(id, request, 422, wrong, posted.texts)
    decided = context.store.decide(id, user, choice == "accept", reason, marked)  # type: ignore[arg-type]
    settle(context, decided)
    return redirect(f"/submissions/{decided.id}?done={decided.state}")
