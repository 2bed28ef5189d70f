"""Forms: what a form sent, the page that holds one, and the work behind it.

Plain forms that work without a script. Every form is sent back with its form token (`security.check_form`), every
change ends in a redirect, and nothing here is kept by caches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from earmark.board.records import Role, User
from earmark.board.refusals import Refusal
from earmark.board.web.requests import address_of, context_of
from earmark.board.web.security import check_form, form_token, keep_visit, visitor_of

_DONE = {
    "sent": "Sent. A moderator will look at it; this page says what became of it.",
    "withdrawn": "Withdrawn. Its scores have left the board; that it was there stays on record.",
    "accepted": "Accepted. Its scores are on the board.", "rejected": "Rejected, with the reason below.",
    "revoked": "The token was revoked.", "signed-out": "You are signed out.",
    "signed-out-everywhere": "You are signed out, in this browser and in all others.",
    "queued": "Sent. The package waits for the host's worker; this page says what becomes of it.",
    "sent-before": "This package was sent before: this is its job. Nothing was queued twice.",
    "defined": "Saved. The pages of the board show it now.",
    "marked": "Marked. The board says from now on where these scores come from.",
    "corrected": "Decided. The card says it from now on, or keeps what it said.",
    "card-changed": "The card was changed.",
    "card-asked": "A moderator looks at what ranks, filters or costs rest on; the rest of the card was changed.",
    "kept": "Kept as a draft. Nobody else sees it; below is what the board would show.",
    "deleted": "The draft was deleted.",
    "contact": "Saved. This is where you are told what becomes of your submissions.",
    "confirm": "Saved. A code was sent to your address: open the link in that mail to confirm it.",
    "feed-ended": "Your feed is closed; its address opens nothing any more.",
    "confirmed": "Your mail address is confirmed.",
    "role": "The role was changed.", "banned": "Banned. Their tokens have ended.", "unbanned": "The ban was lifted.",
    "erased": "Erased. The audit trail keeps that it was done.", "written": "Written. Readers see it on the next page.",
    "taken-back": "Taken back. The package was deleted from the board.",
}  # fmt: skip
"""What a page says after a redirect, by the word in its address: no text of an address is ever shown."""


class Posted(NamedTuple):
    """What a form sent: texts by name, the file if there is one, and under `several` all texts of each name."""

    texts: Mapping[str, str]
    file: bytes
    filename: str
    several: Mapping[str, tuple[str, ...]] = {}

    def text(self, name: str) -> str:
        return self.texts.get(name, "").strip()


async def posted_by(request: Request) -> Posted:
    """The form, if it comes from a page of this board."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in ("application/x-www-form-urlencoded", "multipart/form-data"):
        raise Refusal("A form is sent as application/x-www-form-urlencoded or multipart/form-data.", 415)
    async with request.form(max_files=1, max_fields=200) as form:
        texts = {name: value for name, value in form.multi_items() if isinstance(value, str)}
        several = {name: tuple(str(value) for value in form.getlist(name)) for name in texts}
        file = next((value for _, value in form.multi_items() if isinstance(value, UploadFile)), None)
        data = await file.read() if file else b""
        filename = (file.filename or "") if file else ""
    check_form(request, texts.get("form_token", ""))
    return Posted(texts, data, filename, several)


def on_post(router: APIRouter, path: str) -> Callable[[Callable[[Request, Posted], Response]], None]:
    """What answers a form that is sent to a path. The work is done off the event loop: the database may make it
    wait."""

    def register(work: Callable[[Request, Posted], Response]) -> None:
        async def answer_form(request: Request) -> Response:
            return await run_in_threadpool(work, request, await posted_by(request))

        router.add_api_route(path, answer_form, methods=["POST"], response_model=None)

    return register


def form_page(
    request: Request, template: str, status: int = 200, *, folder: str = "writing", **values: Any
) -> Response:
    """A page that is made for one reader, with a token for its forms."""
    shown = {
        "form_token": form_token(request), "done": _DONE.get(request.query_params.get("done", ""), ""), **values,
        "visitor": values.get("visitor") or visitor_of(request), "base_url": address_of(request),
    }  # fmt: skip
    templates = context_of(request).templates
    response: Response = templates.TemplateResponse(request, f"{folder}/{template}.html", shown, status)
    response.headers["Cache-Control"] = "no-store"
    keep_visit(request, response)
    return response


def redirect(address: str) -> RedirectResponse:
    return RedirectResponse(address, 303, {"Cache-Control": "no-store"})


def sign_in_first(address: str) -> RedirectResponse:
    """To the page where one signs in, and from there to the address."""
    return redirect(f"/sign-in?{urlencode({'next': address}, safe='/')}")


def page_of(request: Request, role: Role) -> User | RedirectResponse:
    """The moderator or host who asks for a page of theirs; whoever is not signed in is sent to do so, and others are
    refused."""
    user = visitor_of(request)
    if user is None:
        return sign_in_first(request.url.path)
    if not (user.hosts if role == "host" else user.moderates):
        raise Refusal(f"Only a {role} of this board may see this page.", 403)
    return user


def number_in(text: str, digits: int) -> int | None:
    """The whole number that a text is, if it has at most so many digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def signed_in(request: Request) -> User:
    """Who is signed in, or 401."""
    user = visitor_of(request)
    if user is None:
        raise Refusal("Sign in first: the session has ended, or its token was revoked.", 401)
    request.state.user_name = user.name
    return user
