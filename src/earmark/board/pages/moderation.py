"""The pages of moderators: what waits, decisions about several at once, where scores come from, the audit trail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.boards.name_risks import name_risks, remarked_submissions, remarks_of
from earmark.board.pages.card_form import fact_label, fact_text, fact_unit
from earmark.board.pages.forms import Posted, form_page, number_in, on_post, page_of, redirect, signed_in
from earmark.board.records import Decision, Event, State
from earmark.board.refusals import Refusal
from earmark.board.web.requests import context_of, settle
from earmark.submissions import Provenance
from earmark.tables import csv_text, no_formula

router = APIRouter()
PER_PAGE = 50
_MOST_EVENTS = 1000
_FILTERS = ("board", "owner", "state", "noted")
_TRAIL_FILTERS = ("user", "action", "text")


@router.get("/moderate")
def moderate_page(request: Request) -> Response:
    user = page_of(request, "moderator")
    return user if isinstance(user, Response) else _moderate_page(request)


def _moderate_page(
    request: Request, status: int = 200, decisions: Sequence[Decision] = (), wrong: str = "", reason: str = ""
) -> Response:
    """What waits, or was decided, as the address asks; with what became of those that were just decided."""
    store, snapshots = context_of(request).store, context_of(request).snapshots
    query = {name: request.query_params.get(name, "").strip() for name in _FILTERS}
    state = query["state"] or "pending"
    if state not in (*get_args(State), "all"):
        raise Refusal(f"A state is {', '.join(get_args(State))} or all.", 422)
    wanted: dict[str, Any] = {
        "state": None if state == "all" else state, "board": query["board"] or None, "owner": query["owner"] or None,
        "limit": PER_PAGE + 1, "before": request.query_params.get("before") or None,
    }  # fmt: skip
    listed = remarked_submissions(store, snapshots, **wanted) if query["noted"] else store.submissions(**wanted)
    shown = listed[:PER_PAGE]
    risks = name_risks(store, snapshots, shown)
    following = {**query, "before": shown[-1].id} if len(listed) > PER_PAGE else {}
    return form_page(
        request, "moderate", status, here="moderate", listed=shown, risks=risks, state=state, query=query,
        remarks={each.id: remarks_of(each, risks.get(each.id, ())) for each in shown}, reason=reason, wrong=wrong,
        decisions=decisions, corrections=store.card_changes(state="waiting", limit=PER_PAGE),
        fact_label=fact_label, fact_text=fact_text, fact_unit=fact_unit,
        next_page=urlencode({name: text for name, text in following.items() if text}),
        first_page=urlencode({name: text for name, text in query.items() if text}),
        beyond_first="before" in request.query_params, banned={each.name for each in store.users() if each.banned},
        boards=store.boards(), states=(*get_args(State), "all"),
    )  # fmt: skip


@on_post(router, "/moderate")
def decide_several(request: Request, posted: Posted) -> Response:
    user, context = signed_in(request), context_of(request)
    accept, provenance, reason = decision_in(posted)
    ids = posted.several.get("id", ())
    wrong = "" if ids else "Choose at least one submission."
    if not accept and not reason and user.moderates:
        wrong = "A rejection needs a reason: say in one sentence what its author can do."
    if wrong:
        return _moderate_page(request, 422, wrong=wrong, reason=reason)
    if not user.moderates:
        raise Refusal("Only a moderator decides about submissions.", 403)
    decisions = context.store.decide_each(ids, user, accept, reason, provenance)
    for decision in decisions:
        if decision.state:
            context.meters.submissions.labels(decision.state).inc()
    context.snapshots.refresh()
    return _moderate_page(request, decisions=decisions)


def decision_in(posted: Posted) -> tuple[bool, Provenance | None, str]:
    """What a form decides: whether to accept, as what, and why."""
    choice, marked = posted.text("choice"), posted.text("provenance") or None
    if choice not in ("accept", "reject") or marked not in (None, "self-reported", "reproduced", "blind"):
        raise Refusal("Choose accept or reject, and a provenance from the list.", 422)
    return choice == "accept", cast("Provenance | None", marked), posted.text("reason")


@on_post(router, "/submissions/{submission}/mark")
def mark(request: Request, posted: Posted) -> Response:
    context, id = context_of(request), request.path_params["submission"]
    provenance = cast(Provenance, posted.text("provenance"))
    settle(context, context.store.mark(id, signed_in(request), provenance, posted.text("reason")))
    return redirect(f"/submissions/{id}?done=marked")


@on_post(router, "/corrections/{number:int}/decide")
def decide_correction(request: Request, posted: Posted) -> Response:
    context = context_of(request)
    accept, _, reason = decision_in(posted)
    context.store.decide_card(request.path_params["number"], signed_in(request), accept, reason)
    context.snapshots.refresh()
    return redirect("/moderate?done=corrected")


# --- the audit trail -------------------------------------------------------------------------------------------------


@router.get("/audit")
def audit_page(request: Request) -> Response:
    user = page_of(request, "moderator")
    if isinstance(user, Response):
        return user
    query = _trail_query(request)
    events = _events(request, query, PER_PAGE + 1)
    shown = events[:PER_PAGE]
    following = {**query, "before": str(shown[-1].id)} if len(events) > PER_PAGE else {}
    return form_page(
        request, "audit", here="audit", events=shown, query=query, next_page=urlencode(following),
        file=urlencode(query), actions=context_of(request).store.event_actions(),
    )  # fmt: skip


@router.get("/audit.csv")
def audit_file(request: Request) -> Response:
    """The whole trail as the filters leave it, the newest first, a part at a time."""
    user = page_of(request, "moderator")
    if isinstance(user, Response):
        return user
    query = _trail_query(request)
    rows: list[tuple[object, ...]] = []
    before: int | None = None
    while events := _events(request, query, _MOST_EVENTS, before):
        for event in events:
            texts = map(no_formula, (event.user, event.action, event.submission, event.detail))
            rows.append((event.id, event.at.isoformat(), *texts))
        before = events[-1].id
    text = csv_text(("id", "at", "user", "action", "submission", "detail"), rows)
    name = {"Content-Disposition": 'attachment; filename="audit.csv"', "Cache-Control": "no-store"}
    return Response(text, media_type="text/csv; charset=utf-8", headers=name)


def _trail_query(request: Request) -> dict[str, str]:
    given = {name: request.query_params.get(name, "").strip() for name in _TRAIL_FILTERS}
    return {name: text for name, text in given.items() if text}


def _events(request: Request, query: Mapping[str, str], limit: int, before: int | None = None) -> list[Event]:
    before = number_in(request.query_params.get("before", ""), 18) if before is None else before
    return context_of(request).store.events(limit, before, **query)
