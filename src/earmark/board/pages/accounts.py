"""The pages of accounts: sign in, sign up, sign out, one's own tokens and submissions."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.pages.forms import Posted, form_page, on_post, redirect, sign_in_first, signed_in
from earmark.board.refusals import NotFound
from earmark.board.web.problems import status_of
from earmark.board.web.requests import context_of, count_stranger, new_account
from earmark.board.web.security import close_session, open_session, visitor_of
from earmark.errors import EarmarkError

router = APIRouter()
_PER_PAGE = 100


@router.get("/sign-in")
def sign_in_page(request: Request) -> Response:
    return form_page(request, "sign_in", here="sign-in", wrong="", next=_inside(request.query_params.get("next", "")))


@on_post(router, "/sign-in")
def sign_in(request: Request, posted: Posted) -> Response:
    token, target = posted.text("token"), _inside(posted.text("next"))
    user = context_of(request).store.authenticate(token)
    if user is not None:
        response = redirect(target or "/mine")
        open_session(context_of(request), response, user, token)
        return response
    count_stranger(request)
    wrong = "This token is unknown or was revoked. Copy the whole of it, from its beginning."
    if context_of(request).store.is_of_banned(token):
        wrong = "The host of this board has closed this account; write to the host."
    return form_page(request, "sign_in", 401, here="sign-in", wrong=wrong, next=target)


def _inside(address: str) -> str:
    """An address of this board to go on to; anything that could lead elsewhere becomes empty."""
    plain = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if plain and address.isprintable() and "\\" not in address else ""


@on_post(router, "/sign-out")
def sign_out(request: Request, posted: Posted) -> Response:
    """End the session, or with `everywhere` those of all browsers."""
    everywhere = posted.text("everywhere") == "yes"
    response = redirect(f"/sign-in?done=signed-out{'-everywhere' if everywhere else ''}")
    close_session(request, response, everywhere=everywhere)
    return response


@router.get("/sign-up")
def sign_up_page(request: Request) -> Response:
    return form_page(request, "sign_up", here="sign-in", wrong="", name="", team="")


@on_post(router, "/sign-up")
def sign_up(request: Request, posted: Posted) -> Response:
    name, team = posted.text("name"), posted.text("team")
    try:
        user, token = new_account(request, name, team)
    except EarmarkError as error:
        status = status_of(error)
        if status in (403, 429, 503):  # nothing that another name would change
            raise
        return form_page(request, "sign_up", status, here="sign-in", wrong=str(error), name=name, team=team)
    response = form_page(request, "token", 201, here="mine", token=token, visitor=user, form_token="")
    open_session(context_of(request), response, user, token)
    return response


@on_post(router, "/tokens")
def create_token(request: Request, posted: Posted) -> Response:
    token, _ = context_of(request).store.create_token(signed_in(request), posted.text("label"))
    return form_page(request, "token", 201, here="mine", token=token)


@on_post(router, "/tokens/{number:int}/revoke")
def revoke_token(request: Request, posted: Posted) -> Response:
    number = request.path_params["number"]
    if not 0 <= number < 2**62:
        raise NotFound("You have no such token.")
    context_of(request).store.revoke_token(number, signed_in(request))
    return redirect("/mine?done=revoked")


@router.get("/mine")
def mine_page(request: Request) -> Response:
    user = visitor_of(request)
    if user is None:
        return sign_in_first("/mine")
    context = context_of(request)
    store, settings = context.store, context.settings
    before = request.query_params.get("before") or None
    submissions = store.submissions(owner=user.name, limit=_PER_PAGE + 1, before=before)
    return form_page(
        request, "mine", here="mine", submissions=submissions[:_PER_PAGE], beyond_first=before is not None,
        next_page=submissions[_PER_PAGE - 1].id if len(submissions) > _PER_PAGE else "",
        tokens=[token for token in store.tokens(user) if token.revoked is None], drafts=store.drafts(user),
        systems=store.systems_of(user), corrections=store.card_changes(owner=user.name, limit=10),
        contact=store.contact(user), feed_since=store.feed_since(user),
        mail_possible=bool(settings.smtp), webhook_possible=settings.webhooks != "off",
    )  # fmt: skip
