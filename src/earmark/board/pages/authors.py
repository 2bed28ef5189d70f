"""The pages of authors: drafts, the card of a system, and where they are told what became of a submission."""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import quote, urlencode

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.boards.outlook import outlook_of_document
from earmark.board.pages.assets import system_address
from earmark.board.pages.card_form import FIELDS, cell_of
from earmark.board.pages.forms import Posted, form_page, on_post, redirect, signed_in
from earmark.board.pages.metric_words import metric_words
from earmark.board.records import System, User
from earmark.board.refusals import NotAllowed, NotFound, Refusal
from earmark.board.storage.cards import AFTER_A_LOOK, AT_ONCE
from earmark.board.web.problems import status_of
from earmark.board.web.requests import context_of, receive
from earmark.board.web.security import visitor_of
from earmark.errors import EarmarkError
from earmark.submissions import SystemCard, plain_card

router = APIRouter()
_CARD_FIELDS = tuple(field for field in FIELDS if field.name in (*AT_ONCE, *AFTER_A_LOOK))


# --- drafts ----------------------------------------------------------------------------------------------------------


@router.get("/drafts/{draft}")
def draft_page(draft: str, request: Request) -> Response:
    user = visitor_of(request)
    if user is None:
        return redirect(f"/sign-in?{urlencode({'next': f'/drafts/{quote(draft)}'})}")
    context = context_of(request)
    kept, document = context.store.draft(draft, user)
    if not context.store.may_read(document.board, user):
        raise NotFound("The board of this draft is private now; its host names who may read it.")
    outlook = outlook_of_document(context.store, context.snapshots, document, user)
    return form_page(
        request, "draft", here="mine", draft=kept, outlook=outlook, days=context.settings.draft_days,
        key=secrets.token_hex(16), **metric_words(context, document.board),
    )  # fmt: skip


@on_post(router, "/drafts/{draft}/send")
def send_draft(request: Request, posted: Posted) -> Response:
    user, context, id = signed_in(request), context_of(request), request.path_params["draft"]
    draft, document = context.store.draft(id, user)
    submission = receive(context, document, user, posted.text("key"), draft.notes)
    context.store.delete_draft(id, user)
    return redirect(f"/submissions/{submission.id}?done=sent")


@on_post(router, "/drafts/{draft}/delete")
def delete_draft(request: Request, posted: Posted) -> Response:
    context_of(request).store.delete_draft(request.path_params["draft"], signed_in(request))
    return redirect("/mine?done=deleted")


# --- cards -----------------------------------------------------------------------------------------------------------


@router.get("/b/{board}/s/{slug}/correct")
def correct_page(board: str, slug: str, request: Request) -> Response:
    user = visitor_of(request)
    if user is None:
        return redirect(f"/sign-in?{urlencode({'next': request.url.path})}")
    system = _own_system(request, user)
    return _correct_page(request, system, _texts_of(system.card))


def _correct_page(
    request: Request, system: System, texts: dict[str, str], status: int = 200, wrong: str = ""
) -> Response:
    return form_page(
        request, "correct", status, here="mine", system=system, fields=_CARD_FIELDS, texts=texts, wrong=wrong,
        address=system_address(system.board, system.slug), waiting=AFTER_A_LOOK,
    )  # fmt: skip


@on_post(router, "/b/{board}/s/{slug}/correct")
def correct(request: Request, posted: Posted) -> Response:
    user, context = signed_in(request), context_of(request)
    system = _own_system(request, user)
    shown = _texts_of(system.card)
    texts = {field.name: posted.text(field.name).replace("\r\n", "\n") for field in _CARD_FIELDS}
    try:
        values = {
            field.name: cell_of(field, texts[field.name])
            for field in _CARD_FIELDS
            if _differs(field.name, texts, shown)
        }
        made = context.store.correct_card(system.board, system.slug, user, values, posted.text("why"))
    except EarmarkError as error:
        if status_of(error) >= 500:
            raise
        return _correct_page(request, system, texts, status_of(error), str(error))
    context.snapshots.refresh()
    asked = any(change.state == "waiting" for change in made)
    return redirect(
        f"{system_address(system.board, system.slug)}/correct?done={'card-asked' if asked else 'card-changed'}"
    )


def _differs(name: str, texts: dict[str, str], shown: dict[str, str]) -> bool:
    return texts[name] != shown[name]


def _own_system(request: Request, user: User) -> System:
    board, slug = request.path_params["board"], request.path_params["slug"]
    system = context_of(request).store.system(board, slug)
    if system is None:
        raise NotFound("There is no such system on this board.")
    if not (user.moderates or user.name == system.owner or (user.team and user.team == system.team)):
        raise NotAllowed(f"The card belongs to {system.owner}; only they or a moderator correct it.")
    return system


def _texts_of(card: SystemCard) -> dict[str, str]:
    """What the form shows of a card."""
    stated = plain_card(card) | {"kind": card.kind}
    words = {True: "yes", False: "no"}
    texts = {}
    for field in _CARD_FIELDS:
        value = stated.get(field.name, "")
        if isinstance(value, list):
            texts[field.name] = ", ".join(value)
        elif isinstance(value, bool):
            texts[field.name] = words[value]
        else:
            texts[field.name] = f"{value:g}" if isinstance(value, float) else str(value)
    return texts


# --- where authors are told ------------------------------------------------------------------------------------------


@on_post(router, "/contact")
def set_contact(request: Request, posted: Posted) -> Response:
    user, context = signed_in(request), context_of(request)
    if posted.text("mail") and not context.settings.smtp:
        raise Refusal("This board sends no mail; its host has set no server for it.", 422)
    if posted.text("webhook") and context.settings.webhooks == "off":
        raise Refusal("This board has no webhooks; its host has turned them off.", 422)
    contact = context.store.set_contact(user, posted.text("mail"), posted.text("webhook"))
    if not contact.mail or contact.confirmed:
        return redirect("/mine?done=contact")
    context.store.ask_to_confirm(user, _code(request, user, contact.mail))
    return redirect("/mine?done=confirm")


@router.get("/contact/confirm")
def confirm_page(request: Request) -> Response:
    """A page with a button: programs that look at the links in a mail confirm nothing."""
    code = request.query_params.get("code", "")
    if visitor_of(request) is None:
        return redirect(f"/sign-in?{urlencode({'next': f'/contact/confirm?code={code}'})}")
    return form_page(request, "confirm", here="mine", code=code)


@on_post(router, "/contact/confirm")
def confirm(request: Request, posted: Posted) -> Response:
    user, context = signed_in(request), context_of(request)
    mail = context.store.contact(user).mail
    if not mail or not hmac.compare_digest(posted.text("code").encode(), _code(request, user, mail).encode()):
        raise Refusal(
            "The code is not the one that was sent to your address; save the address again for a new one.", 422
        )
    context.store.confirm_mail(user, mail)
    return redirect("/mine?done=confirmed")


def _code(request: Request, user: User, mail: str) -> str:
    """What only somebody who reads mail at an address can know of it."""
    return context_of(request).signer.mark("mail", f"{user.id} {mail}")
