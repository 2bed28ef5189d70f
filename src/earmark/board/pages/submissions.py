"""The pages of submissions: send one, see what it would change and what became of it, withdraw it, decide about it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import partial

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.boards.outlook import Outlook, outlook_of_submission
from earmark.board.pages.card_form import FIELDS, card_facts
from earmark.board.pages.forms import Posted, form_page, on_post, posted_by, redirect, signed_in
from earmark.board.pages.metric_words import metric_words
from earmark.board.pages.moderation import decision_in
from earmark.board.records import Submission, User
from earmark.board.refusals import NotFound
from earmark.board.web.problems import status_of
from earmark.board.web.reading import Question, Reading
from earmark.board.web.requests import (
    check_document,
    context_of,
    keep_draft,
    limits_for,
    remarks,
    settle,
    take_document,
)
from earmark.board.web.security import visitor_of
from earmark.errors import EarmarkError
from earmark.submissions import Problem, Refused
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
        request, "submit", status, here="submit", fields=FIELDS, texts=texts, boards=context.snapshots.listed(),
        problems=problems[:_SHOWN_PROBLEMS], more=max(0, len(problems) - _SHOWN_PROBLEMS), checked=checked,
        warnings=warnings[:_SHOWN_PROBLEMS], megabytes=context.settings.limits.max_body / 1e6,
        key=secrets.token_hex(16), opened=any(texts.get(field.name) for field in FIELDS),
    )  # fmt: skip


@router.post("/submit")
async def submit(request: Request) -> Response:
    posted = await posted_by(request)
    user = await run_in_threadpool(signed_in, request)
    question = Question(posted.file, posted.filename, "", limits_for(request, user), form=posted.texts)
    try:
        if posted.text("action") == "check":
            return await check_document(request, user, question, partial(_checked_page, request, posted, user))
        if posted.text("action") == "draft":
            return await keep_draft(
                request, user, question, lambda draft: redirect(f"/drafts/{draft.id}?done=kept")
            )  # fmt: skip
        return await take_document(
            request, user, posted.text("key"), question,
            lambda submission: redirect(f"/submissions/{submission.id}?done=sent"),
        )  # fmt: skip
    except Refused as refused:
        problems = refused.problems
        status = 422
    except EarmarkError as error:
        status = status_of(error)
        if status in (408, 429) or status >= 500:
            raise
        problems = (Problem("unreadable", str(error)),)
    return await run_in_threadpool(_submit_page, request, status, posted.texts, problems)


def _checked_page(request: Request, posted: Posted, user: User, reading: Reading) -> Response:
    """The form as it was sent, with what the rules say."""
    if reading.problems:
        raise Refused(reading.problems)
    extent = f"{counted(reading.rows, 'row')} of {counted(len(reading.systems), 'system')}"
    sentence = f"{extent} can be sent to the board {reading.board}."
    warnings = [*reading.warnings, *remarks(context_of(request), reading, user)]
    return _submit_page(request, 200, posted.texts, checked=sentence, warnings=warnings)


@router.get("/submissions/{submission}")
def submission_page(submission: str, request: Request) -> Response:
    return _submission_page(submission, request)


def _submission_page(
    id: str, request: Request, status: int = 200, wrong: str = "", texts: Mapping[str, str] | None = None
) -> Response:
    """One submission; with a decision that cannot stand, its form as it was sent and what is wrong with it."""
    store = context_of(request).store
    submission = store.submission(id)
    user = visitor_of(request)
    if submission is None or not store.may_see(submission, user):
        raise NotFound("There is no such submission on this board.")
    readable = submission.is_readable_by(user)
    rows = store.rows_of(id).rows if readable else ()
    cards = store.cards_of(id)[:_SHOWN_CARDS] if readable else ()
    moderates = user is not None and user.moderates
    return form_page(
        request, "submission", status, here="", submission=submission, rows=rows[:_SHOWN_ROWS], readable=readable,
        systems=list(zip(submission.systems, submission.names, strict=True)), wrong=wrong, texts=texts or {},
        cards=[
            {"card": card, "facts": card_facts(card), "on_board": store.system(submission.board, slug) is not None}
            for card, slug in zip(cards, submission.systems, strict=False)
        ],
        may_withdraw=(submission.is_of(user) or moderates) and submission.state in ("pending", "accepted"),
        may_decide=moderates and submission.state == "pending",
        may_mark=moderates and submission.state == "accepted", outlook=_outlook(request, submission, user),
        **metric_words(context_of(request), submission.board),
    )  # fmt: skip


def _outlook(request: Request, submission: Submission, user: User | None) -> Outlook | None:
    """What the board would show, for those who decide about a submission that waits and for its author."""
    if submission.state != "pending" or not submission.is_readable_by(user):
        return None
    context = context_of(request)
    return outlook_of_submission(
        context.store, context.snapshots, submission, for_moderator=user is not None and user.moderates
    )


@on_post(router, "/submissions/{submission}/withdraw")
def withdraw(request: Request, posted: Posted) -> Response:
    context, id = context_of(request), request.path_params["submission"]
    done = settle(context, context.store.withdraw(id, signed_in(request), posted.text("reason")))
    return redirect(f"/submissions/{done.id}?done=withdrawn")


@on_post(router, "/submissions/{submission}/decide")
def decide(request: Request, posted: Posted) -> Response:
    context, id, user = context_of(request), request.path_params["submission"], signed_in(request)
    accept, provenance, reason = decision_in(posted)
    if not accept and user.moderates and not reason:
        wrong = "A rejection needs a reason: say in one sentence what its author can do."
        return _submission_page(id, request, 422, wrong, posted.texts)
    decided = context.store.decide(id, user, accept, reason, provenance)
    settle(context, decided)
    return redirect(f"/submissions/{decided.id}?done={decided.state}")
