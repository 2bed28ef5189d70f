"""The pages of authors and moderators: sign in, send, see what became of it, withdraw, decide.

Plain forms that work without a script. Every form is sent back with its form token (`security.check_form`), every
change ends in a redirect, and nothing here is kept by caches.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from earmark.board.web.context import Context
from earmark.board.pages.card_form import FIELDS, document_from
from earmark.board.web.problems import ProblemError, status_of
from earmark.board.web.requests import count_stranger, is_own, may_read_rows, new_subsets, read_apart, receive
from earmark.submissions import SystemCard
from earmark.board.records import User
from earmark.board.refusals import NotFound
from earmark.submissions import Problem, Refused
from earmark.submissions import check
from earmark.board.web.security import SESSION_COOKIE, check_form, form_token, keep_visit, open_session, visitor_of
from earmark.errors import EarmarkError
from earmark.wording import counted

__all__ = ["writing_pages"]

Result = TypeVar("Result")
router = APIRouter()
_SHOWN_ROWS = 300
_SHOWN_CARDS = 20
_DONE = {
    "sent": "Sent. A moderator will look at it; this page says what became of it.",
    "withdrawn": "Withdrawn. Its scores have left the board; that it was there stays on record.",
    "accepted": "Accepted. Its scores are on the board.",
    "rejected": "Rejected, with the reason below.",
    "revoked": "The token was revoked.",
    "signed-out": "You are signed out.",
}
"""What a page says after a redirect, by the word in its address: no text of an address is ever shown."""


def writing_pages(context: Context) -> APIRouter:
    """The router of these pages; they reach the context through the app."""
    return router


class Posted(NamedTuple):
    """What a form sent: texts by name, and the file if there is one."""

    texts: Mapping[str, str]
    file: bytes
    filename: str

    def text(self, name: str) -> str:
        return self.texts.get(name, "").strip()


async def _posted(request: Request) -> Posted:
    """The form, if it comes from a page of this board."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in ("application/x-www-form-urlencoded", "multipart/form-data"):
        raise ProblemError(415, "A form is sent as application/x-www-form-urlencoded or multipart/form-data.")
    async with request.form(max_files=1, max_fields=50) as form:
        texts = {name: value for name, value in form.multi_items() if isinstance(value, str)}
        file = next((value for _, value in form.multi_items() if isinstance(value, UploadFile)), None)
        data = await file.read() if file else b""
        filename = (file.filename or "") if file else ""
    check_form(request, texts.get("form_token", ""))
    return Posted(texts, data, filename)


def _page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    context: Context = request.app.state.context
    visitor = values.pop("visitor", None) or visitor_of(request)
    shown = {
        "visitor": visitor,
        "form_token": form_token(request),
        "done": _DONE.get(request.query_params.get("done", ""), ""),
        **values,
    }
    response: Response = context.templates.TemplateResponse(request, f"writing/{template}.html", shown, status)
    response.headers["Cache-Control"] = "no-store"
    keep_visit(request, response)
    return response


def _to(address: str) -> RedirectResponse:
    return RedirectResponse(address, 303, {"Cache-Control": "no-store"})


def _known(request: Request) -> User:
    """Who is signed in, or 401."""
    user = visitor_of(request)
    if user is None:
        raise ProblemError(401, "Sign in first: the session has ended, or its token was revoked.")
    request.state.user_name = user.name
    return user


def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


async def _done(work: Callable[[], Result]) -> Result:
    """The work, off the event loop: the database may make it wait."""
    return await run_in_threadpool(work)


# --- who ------------------------------------------------------------------------------------------


@router.get("/sign-in")
def sign_in_page(request: Request) -> Response:
    return _page(request, "sign_in", here="sign-in", wrong="", next=_inside(request.query_params.get("next", "")))


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    posted = await _posted(request)
    context = _context(request)
    token = posted.text("token")
    target = _inside(posted.text("next"))

    def work() -> Response:
        user = context.store.authenticate(token)
        if user is not None:
            response = _to(target or "/mine")
            open_session(context, response, user, token)
            return response
        count_stranger(context, request)
        wrong = "This token is unknown or was revoked. Copy the whole of it, from its beginning."
        return _page(request, "sign_in", 401, here="sign-in", wrong=wrong, next=target)

    return await _done(work)


def _inside(address: str) -> str:
    """An address of this board to go on to; anything that could lead elsewhere becomes empty."""
    plain = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if plain and address.isprintable() and "\\" not in address else ""


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    await _posted(request)
    response = _to("/sign-in?done=signed-out")
    response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="lax")
    return response


@router.get("/sign-up")
def sign_up_page(request: Request) -> Response:
    return _page(request, "sign_up", here="sign-in", wrong="", name="", team="")


@router.post("/sign-up")
async def sign_up(request: Request) -> Response:
    posted = await _posted(request)
    context = _context(request)
    if context.settings.registration != "open":
        raise ProblemError(403, "Registration is closed here; ask the host of the board for a token.")

    def work() -> Response:
        name, team = posted.text("name"), posted.text("team")
        count_stranger(context, request)
        try:
            user = context.store.create_user(name, team)
        except EarmarkError as error:
            return _page(request, "sign_up", status_of(error), here="sign-in", wrong=str(error), name=name, team=team)
        token, _ = context.store.create_token(user, "registration")
        response = _page(request, "token", 201, here="mine", token=token, visitor=user, form_token="")
        open_session(context, response, user, token)
        return response

    return await _done(work)


@router.post("/tokens")
async def create_token(request: Request) -> Response:
    posted = await _posted(request)

    def work() -> Response:
        token, _ = _context(request).store.create_token(_known(request), posted.text("label"))
        return _page(request, "token", 201, here="mine", token=token)

    return await _done(work)


@router.post("/tokens/{number}/revoke")
async def revoke_token(number: int, request: Request) -> Response:
    await _posted(request)

    def work() -> Response:
        if not 0 <= number < 2**62:
            raise NotFound("You have no such token.")
        _context(request).store.revoke_token(number, _known(request))
        return _to("/mine?done=revoked")

    return await _done(work)


# --- sending --------------------------------------------------------------------------------------


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
    context = _context(request)
    return _page(
        request, "submit", status, here="submit", fields=FIELDS, texts=texts, boards=context.store.boards(),
        problems=problems[:100], more=max(0, len(problems) - 100), checked=checked, warnings=warnings[:100],
        megabytes=context.settings.limits.max_body / 1e6, key=secrets.token_hex(16),
        opened=any(texts.get(field.name) for field in FIELDS),
    )  # fmt: skip


@router.post("/submit")
async def submit(request: Request) -> Response:
    posted = await _posted(request)
    context = _context(request)

    def work() -> Response:
        user = _known(request)
        try:
            document = document_from(posted.texts, posted.file, posted.filename, context.settings.limits)
            verdict = check(document, limits=context.settings.limits)
            if verdict.problems:
                raise Refused(verdict.problems)
            if posted.text("action") == "check":
                what = f"{counted(len(document.scores), 'row')} of {counted(len(document.cards), 'system')}"
                said = f"{what} can be sent to the board {document.board}."
                warnings = [*verdict.warnings, *new_subsets(context, document)]
                return _submit_page(request, 200, posted.texts, checked=said, warnings=warnings)
            submission = receive(context, document, user, posted.text("key"))
        except Refused as refused:
            return _submit_page(request, 422, posted.texts, refused.problems)
        except EarmarkError as error:
            if status_of(error) >= 500:
                raise
            return _submit_page(request, status_of(error), posted.texts, [Problem("", str(error))])
        return _to(f"/submissions/{submission.id}?done=sent")

    return await read_apart(request, work)


@router.get("/mine")
def mine_page(request: Request) -> Response:
    user = visitor_of(request)
    if user is None:
        return _to("/sign-in?next=/mine")
    store = _context(request).store
    return _page(
        request, "mine", here="mine", submissions=store.submissions(owner=user.name, limit=200),
        tokens=[token for token in store.tokens(user) if token.revoked is None],
    )  # fmt: skip


# --- one submission -------------------------------------------------------------------------------


class CardShown(NamedTuple):
    """The card of a system as it was sent, and where the system stands."""

    card: SystemCard
    on_board: bool


@router.get("/submissions/{submission}")
def submission_page(submission: str, request: Request) -> Response:
    return _submission_page(submission, request)


def _submission_page(
    submission: str, request: Request, status: int = 200, wrong: str = "", texts: Mapping[str, str] | None = None
) -> Response:
    """One submission; with a decision that cannot stand, its form as it was sent and what is wrong with it."""
    context = _context(request)
    found = context.store.submission(submission)
    if found is None:
        raise NotFound("There is no such submission on this board.")
    user = visitor_of(request)
    readable = may_read_rows(found, user)
    rows = context.store.rows_of(found.id).rows if readable else ()
    cards = context.store.cards_of(found.id)[:_SHOWN_CARDS] if readable else ()
    moderates = user is not None and user.role == "moderator"
    return _page(
        request, "submission", status, here="", submission=found, rows=rows[:_SHOWN_ROWS], readable=readable,
        systems=list(zip(found.systems, found.names, strict=True)), wrong=wrong, texts=texts or {},
        cards=[
            CardShown(card, context.store.system(found.board, slug) is not None)
            for card, slug in zip(cards, found.systems, strict=False)
        ],
        may_withdraw=(is_own(found, user) or moderates) and found.state in ("pending", "accepted"),
        may_decide=moderates and found.state == "pending",
    )  # fmt: skip


@router.post("/submissions/{submission}/withdraw")
async def withdraw(submission: str, request: Request) -> Response:
    posted = await _posted(request)
    context = _context(request)

    def work() -> Response:
        done = context.store.withdraw(submission, _known(request), posted.text("reason"))
        context.meters.submissions.labels("withdrawn").inc()
        context.snapshots.refresh()
        return _to(f"/submissions/{done.id}?done=withdrawn")

    return await _done(work)


@router.get("/moderate")
def moderate_page(request: Request) -> Response:
    user = visitor_of(request)
    if user is None:
        return _to("/sign-in?next=/moderate")
    if user.role != "moderator":
        raise ProblemError(403, "Only a moderator of this board decides about submissions.")
    store = _context(request).store
    return _page(
        request, "moderate", here="moderate", pending=store.submissions(state="pending", limit=200),
        events=store.events(50, None),
    )  # fmt: skip


@router.post("/submissions/{submission}/decide")
async def decide(submission: str, request: Request) -> Response:
    posted = await _posted(request)
    context = _context(request)

    def work() -> Response:
        user = _known(request)
        choice = posted.text("choice")
        marked = posted.text("provenance") or None
        if choice not in ("accept", "reject") or marked not in (None, "self-reported", "reproduced", "blind"):
            raise ProblemError(422, "Choose accept or reject, and a provenance from the list.")
        reason = posted.text("reason")
        if choice == "reject" and user.role == "moderator" and not reason:
            wrong = "A rejection needs a reason: say in one sentence what its author can do."
            return _submission_page(submission, request, 422, wrong, posted.texts)
        done = context.store.decide(submission, user, choice == "accept", reason, marked)  # type: ignore[arg-type]
        context.meters.submissions.labels(done.state).inc()
        context.snapshots.refresh()
        return _to(f"/submissions/{done.id}?done={done.state}")

    return await _done(work)
