"""The pages of authors: drafts, the card of a system, and where they are told what became of a submission."""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import quote

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.boards.outlook import outlook_of_document
from earmark.board.pages.assets import system_address
from earmark.board.pages.atom import ATOM, Entry, atom
from earmark.board.pages.card_form import FIELDS, cell_of
from earmark.board.pages.forms import Posted, form_page, on_post, redirect, sign_in_first, signed_in
from earmark.board.pages.metric_words import metric_words
from earmark.board.records import Draft, Submission, System, User
from earmark.board.refusals import NotAllowed, NotFound, Refusal
from earmark.board.storage.cards import AFTER_A_LOOK, AT_ONCE
from earmark.board.storage.feeds import ACTIONS, StatusItem
from earmark.board.web.caching import answer, packed
from earmark.board.web.problems import status_of
from earmark.board.web.requests import Context, address_of, context_of, count_stranger, receive
from earmark.board.web.security import visitor_of
from earmark.errors import EarmarkError
from earmark.submissions import Document, SystemCard, plain_card
from earmark.wording import first_of

router = APIRouter()
_NAMED = 5
_CARD_FIELDS = tuple(field for field in FIELDS if field.name in (*AT_ONCE, *AFTER_A_LOOK))


# --- drafts ----------------------------------------------------------------------------------------------------------


@router.get("/drafts/{draft}")
def draft_page(draft: str, request: Request) -> Response:
    user = visitor_of(request)
    if user is None:
        return sign_in_first(f"/drafts/{quote(draft)}")
    context = context_of(request)
    kept, document = own_draft(context, draft, user)
    outlook = outlook_of_document(context.store, context.snapshots, document, user)
    return form_page(
        request, "draft", here="mine", draft=kept, outlook=outlook, days=context.settings.draft_days,
        key=secrets.token_hex(16), **metric_words(context, document.board),
    )  # fmt: skip


def own_draft(context: Context, id: str, user: User) -> tuple[Draft, Document]:
    """One of a user's own drafts, and the document in it, while they may read its board."""
    kept, document = context.store.draft(id, user)
    if not context.store.may_read(document.board, user):
        raise NotFound("The board of this draft is private now; its host names who may read it.")
    return kept, document


def send_own_draft(context: Context, id: str, user: User, key: str) -> Submission:
    """Make a submission of a draft, which is gone then."""
    draft, document = context.store.draft(id, user)
    submission = receive(context, document, user, key, draft.notes)
    context.store.delete_draft(id, user)
    return submission


@on_post(router, "/drafts/{draft}/send")
def send_draft(request: Request, posted: Posted) -> Response:
    id = request.path_params["draft"]
    submission = send_own_draft(context_of(request), id, signed_in(request), posted.text("key"))
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
        return sign_in_first(request.url.path)
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


def feed_address(request: Request, word: str) -> str:
    return f"{address_of(request)}/feeds/{word}.atom"


@on_post(router, "/feed")
def renew_feed(request: Request, posted: Posted) -> Response:
    """A new address of one's feed, shown this once; or none any more."""
    user, store = signed_in(request), context_of(request).store
    if posted.text("action") == "end":
        store.end_feed(user)
        return redirect("/mine?done=feed-ended")
    return form_page(request, "feed", 201, here="mine", address=feed_address(request, store.renew_feed(user)))


@router.get("/feeds/{word}.atom")
def own_feed(word: str, request: Request) -> Response:
    """What became of the submissions of whoever has the word."""
    context = context_of(request)
    user = context.store.feed_owner(word)
    if user is None:
        count_stranger(request)
        raise NotFound("There is no such feed: its author has renewed its address, or closed it.")
    base = address_of(request)
    entries = [_status_entry(base, item) for item in context.store.own_news(user)]
    title = f"{context.settings.title}: submissions of {user.name}"
    page = packed(atom(title, ("status", str(user.id)), feed_address(request, word), f"{base}/mine", entries), ATOM)
    return answer(request, page.tag, lambda: page, {"cache-control": "private, no-cache", "x-robots-tag": "noindex"})


def _status_entry(base: str, item: StatusItem) -> Entry:
    names, word = first_of(list(item.names), _NAMED), ACTIONS[item.action]
    words = f"{names} on {item.board}: {word}" + (f": {item.detail}" if item.detail else "") + "."
    address = f"{base}/submissions/{quote(item.submission)}"
    return Entry(f"{item.board}: {names} {word}", ("status", str(item.id)), item.at, address, words, item.action)


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
        return sign_in_first(f"/contact/confirm?code={code}")
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
