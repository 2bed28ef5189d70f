"""The page that says what a board is, for everybody, and the page on which moderators define it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import date
from typing import Any, NamedTuple

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.boards.changes import not_in_definition, outcome
from earmark.board.boards.snapshot import Snapshot
from earmark.board.pages.assets import board_address
from earmark.board.pages.boards import Reader
from earmark.board.pages.forms import Posted, form_page, number_in, on_post, redirect, sign_in_first, signed_in
from earmark.board.pages.markdown import markdown
from earmark.board.refusals import Refusal
from earmark.board.storage.boards import changed_parts
from earmark.board.web.caching import Page, packed
from earmark.board.web.problems import status_of
from earmark.board.web.requests import Context, context_of, definition_now
from earmark.board.web.security import visitor_of
from earmark.definitions import Definition, group_words, read_definition, to_yaml
from earmark.errors import EarmarkError, UsageError
from earmark.wording import listed

router = APIRouter()
_SHOWN_CHANGES = 100
_STATES = (
    ("open", "open: on every list, takes scores"),
    ("hidden", "hidden: on no list"),
    ("archived", "archived: can be read, takes no scores"),
)


def about_page(reader: Reader, board: str) -> Page:
    """The whole definition of a board in words."""
    snapshot = reader.source.boards.current(board)
    about = snapshot.definition
    others = not_in_definition(snapshot)
    records = [about.facts(metric.name) for metric in about.metrics]
    return packed(
        reader.page(
            "board_about.html", board=board, about=about, text=markdown(about.text, level=3), metrics=records,
            scored=set(snapshot.metrics), groups=[(group, group_words(group)) for group in about.groups],
            other_subsets=others[0], other_metrics=others[1], history=reader.source.definitions(board), listed=listed,
            preview=reader.preview(about.heading, about.summary, f"{board_address(board)}/about"),
        )
    )  # fmt: skip


# --- for moderators --------------------------------------------------------------------------------------------------


class _Field(NamedTuple):
    """A field of the form: a key of the definition that is a short text."""

    name: str
    label: str
    help: str = ""


_FIELDS = (
    _Field("title", "Title"), _Field("summary", "Summary", "One sentence."),
    _Field("contact", "Contact", "Whom to ask: an address, or words."),
    _Field("setting", "Ranked setting", "best, or one distance and correction such as cosine."),
    _Field("opens", "Opens", "The first day on which scores are taken, such as 2027-01-31."),
    _Field("closes", "Closes", "The last day."),
)  # fmt: skip


@router.get("/b/{board}/define")
def define_page(board: str, request: Request) -> Response:
    user = visitor_of(request)
    if user is None:
        return sign_in_first(f"{board_address(board)}/define")
    if not user.moderates:
        raise Refusal("Only a moderator defines boards.", 403)
    version = definition_now(context_of(request), board)
    return _define_page(request, board, {"yaml": to_yaml(version.definition), "version": str(version.version)})


def _define_page(
    request: Request, board: str, texts: Mapping[str, str], status: int = 200, wrong: str = "", trial: Any = None
) -> Response:
    context = context_of(request)
    others = not_in_definition(context.snapshots.current(board))
    return form_page(
        request, "define", status, here="", board=board, texts=texts, wrong=wrong, trial=trial, fields=_FIELDS,
        states=_STATES, shown=_shown(texts.get("yaml", "")), other_subsets=others[0], other_metrics=others[1],
        history=context.store.definitions(board), most=_SHOWN_CHANGES,
    )  # fmt: skip


def _shown(yaml: str) -> Definition | None:
    """What the fields show: what the text says, where it can be read."""
    try:
        return read_definition(yaml)
    except EarmarkError:
        return None


@on_post(router, "/b/{board}/define")
def define(request: Request, posted: Posted) -> Response:
    user, board, context = signed_in(request), request.path_params["board"], context_of(request)
    if not user.moderates:
        raise Refusal("Only a moderator defines boards.", 403)
    texts = {name: posted.text(name) for name in ("version", "yaml")}
    try:
        if kind := posted.text("add"):
            return _added(context, board, kind, user)
        given = read_definition(posted.texts.get("yaml", ""))
        given = given if posted.text("part") == "yaml" else _with_fields(given, posted)
        texts["yaml"] = to_yaml(given)
        if posted.text("action") != "save":
            return _define_page(request, board, texts, trial=_preview(context.snapshots.current(board), given))
        if given.name != board:
            texts["version"] = str(context.store.rename_board(board, given.name, user).version)
        context.store.define(given, user, posted.text("note"), expected=number_in(texts["version"], 9))
    except EarmarkError as error:
        if status_of(error) >= 500:
            raise
        return _define_page(
            request, board, {**texts, "yaml": posted.texts.get("yaml", "")}, status_of(error), str(error)
        )
    context.snapshots.refresh()
    return redirect(f"{board_address(given.name)}/define?done=defined")


def _added(context: Context, board: str, what: str, user: Any) -> Response:
    """Make a subset or a metric that submissions brought part of the definition."""
    kind, _, name = what.partition(":")
    key = {"subset": "subsets", "metric": "metrics"}.get(kind)
    if key is None:
        raise UsageError("Only subsets and metrics are added so.")
    context.store.add_to_definition(board, user, **{key: (name,)})
    context.snapshots.refresh()
    return redirect(f"{board_address(board)}/define?done=defined")


def _with_fields(given: Definition, posted: Posted) -> Definition:
    """The definition of the text with what the fields of the form say."""
    changes: dict[str, Any] = {}
    for each in _FIELDS:
        text = posted.text(each.name)
        changes[each.name] = _day(text, each.label) if each.name in ("opens", "closes") else text
    changes["setting"] = changes["setting"] or "best"
    changes |= {"state": posted.text("state") or "open", "private": posted.text("private") == "on"}
    changed = replace(given, **changes)
    return changed if any(getattr(changed, part.name) != getattr(given, part.name) for part in fields(given)) else given


def _day(text: str, label: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise UsageError(f'{label} is a day such as 2027-03-31, not "{text}".') from None


def _preview(snapshot: Snapshot, given: Definition) -> dict[str, Any]:
    return {"parts": listed(changed_parts(snapshot.definition, given)), "outcome": outcome(snapshot, given)}
