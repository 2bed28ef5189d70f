"""The pages of hosts: users with their roles, bans and erasure, and the host's own texts."""

from __future__ import annotations

from typing import cast, get_args

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.pages.forms import Posted, form_page, number_in, on_post, page_of, redirect, signed_in
from earmark.board.records import Role
from earmark.board.refusals import Refusal
from earmark.board.storage.accounts import PAPERS
from earmark.board.storage.host_texts import HOST_TEXTS
from earmark.board.storage.people import Scores
from earmark.board.web.problems import status_of
from earmark.board.web.requests import context_of
from earmark.errors import EarmarkError

router = APIRouter()
_PER_PAGE = 100


@router.get("/users")
def users_page(request: Request) -> Response:
    user = page_of(request, "host")
    return user if isinstance(user, Response) else _users_page(request)


def _users_page(request: Request, status: int = 200, wrong: str = "") -> Response:
    asked = request.query_params.get("q", "").strip()
    page = max(1, number_in(request.query_params.get("page", ""), 5) or 1)
    everybody = [user for user in context_of(request).store.users() if user.name != PAPERS]
    words = asked.casefold()
    shown = [user for user in everybody if words in user.name.casefold() or words in user.team.casefold()]
    first = (page - 1) * _PER_PAGE
    return form_page(
        request, "users", status, here="users", users=shown[first : first + _PER_PAGE], total=len(shown), q=asked,
        wrong=wrong, roles=get_args(Role), page=page, pages=-(-len(shown) // _PER_PAGE),
    )  # fmt: skip


@on_post(router, "/users")
def act_on_user(request: Request, posted: Posted) -> Response:
    """Give a role, ban, lift a ban, or erase: what the button says."""
    host, store = signed_in(request), context_of(request).store
    name, action = posted.text("name"), posted.text("action")
    try:
        if action == "role":
            store.change_role(name, cast(Role, posted.text("role")), host)
            done = "role"
        elif action == "ban":
            store.ban(name, host, posted.text("reason"), hide=bool(posted.text("hide")))
            done = "banned"
        elif action == "unban":
            store.unban(name, host)
            done = "unbanned"
        elif action == "erase":
            if posted.text("again") != name:
                raise Refusal(f"Write {name} into the field below its erasure: nothing brings it back.", 422)
            store.erase(name, host, cast(Scores, posted.text("scores")))
            done = "erased"
        else:
            raise Refusal("Choose what to do with the user.", 422)
    except EarmarkError as error:
        if not host.hosts or status_of(error) >= 500:
            raise
        return _users_page(request, status_of(error), str(error))
    context_of(request).snapshots.refresh()
    return redirect(f"/users?done={done}")


@router.get("/texts")
def texts_page(request: Request) -> Response:
    user = page_of(request, "host")
    if isinstance(user, Response):
        return user
    return _texts_page(request, context_of(request).store.host_texts())


def _texts_page(request: Request, texts: dict[str, str], status: int = 200, wrong: str = "") -> Response:
    return form_page(request, "texts", status, here="texts", names=HOST_TEXTS, texts=texts, wrong=wrong)


@on_post(router, "/texts")
def write_text(request: Request, posted: Posted) -> Response:
    host, context, name = signed_in(request), context_of(request), posted.text("name")
    try:
        context.store.set_host_text(name, posted.texts.get("text", ""), host)
    except EarmarkError as error:
        if not host.hosts or status_of(error) >= 500:
            raise
        return _texts_page(
            request, context.store.host_texts() | {name: posted.text("text")}, status_of(error), str(error)
        )
    context.snapshots.refresh()
    return redirect("/texts?done=written")
