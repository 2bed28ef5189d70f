"""The pages of blind evaluation: what is measured by whom, sending a package, its job, policies and the audit trail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from earmark.board.jobs import Job, Release, coarse, minute
from earmark.board.pages.forms import Posted, form_page, number_in, on_post, redirect, sign_in_first, signed_in
from earmark.board.pages.markdown import markdown
from earmark.board.refusals import NotFound, Refusal
from earmark.board.web.problems import status_of
from earmark.board.web.requests import blind_context, context_of, readable_job
from earmark.board.web.security import check_form, visitor_of
from earmark.board.web.uploads import take_package
from earmark.errors import EarmarkError
from earmark.submissions import Problem, Refused

router = APIRouter(prefix="/blind")
_SHOWN = 50


@router.get("")
def blind_page(request: Request) -> Response:
    """What is measured, by whom, under which policy; the queue; one's own jobs."""
    context, user = blind_context(request), visitor_of(request)
    boards = context.store.blind_boards()
    return form_page(
        request, "boards", folder="blind", here="blind", boards=boards, jobs=_jobs(request), now=datetime.now(UTC),
        seen={each.board: minute(each.seen, datetime.now(UTC)) for each in boards}, user=user,
    )  # fmt: skip


def _jobs(request: Request) -> list[Job]:
    user = visitor_of(request)
    return context_of(request).store.jobs(user, limit=_SHOWN) if user is not None else []


@router.get("/submit")
def submit_page(request: Request) -> Response:
    return _submit_page(request, 200, request.query_params.get("board", ""))


def _submit_page(request: Request, status: int, board: str, problems: Sequence[Problem] = ()) -> Response:
    context = blind_context(request)
    offered = [each for each in context.store.blind_boards() if each.offered]
    return form_page(
        request, "submit", status, folder="blind", here="blind", boards=offered, board=board, problems=problems,
        megabytes=context.settings.max_package / 1e6,
    )  # fmt: skip


@router.post("/submit")
async def submit(request: Request) -> Response:
    """Take a package from the form, which is read as it arrives: who sends it is asked before its file is read."""
    context = blind_context(request)
    texts: Mapping[str, str] = {}

    def check(given: Mapping[str, str]) -> None:
        nonlocal texts
        texts = given
        check_form(request, given.get("form_token", ""))

    user = await run_in_threadpool(signed_in, request)
    try:
        job, new = await take_package(request, context, user, check)
    except EarmarkError as error:
        status = status_of(error)
        if status >= 500 or not texts:
            raise
        found = error.problems if isinstance(error, Refused) else (Problem("refused", str(error)),)
        return await run_in_threadpool(_submit_page, request, status, texts.get("board", ""), found)
    return redirect(f"/blind/jobs/{job.id}?done={'queued' if new else 'sent-before'}")


@router.get("/jobs/{job}")
def job_page(job: str, request: Request) -> Response:
    """One job, for its team: its state in a sentence, which a script asks for again."""
    context, user = blind_context(request), visitor_of(request)
    if user is None:
        if "hx-request" in request.headers:  # a script that looks again: the page stays as it is
            raise Refusal("The session has ended; sign in again.", 401)
        return sign_in_first(f"/blind/jobs/{job}")
    shown, now = readable_job(context, job, user), datetime.now(UTC)
    moments = [
        (word, minute(coarse(moment), now))
        for word, moment in (("Sent", shown.created), ("Begun", shown.started), ("Ended", shown.finished))
        if moment is not None
    ]
    return form_page(
        request, "job", folder="blind", here="blind", job=shown, sentence=shown.told(now), moments=moments,
        release=context.store.release(shown.release) if shown.release else None,
        figures=_figures(request, shown.submission),
    )  # fmt: skip


@on_post(router, "/jobs/{job}/withdraw")
def withdraw(request: Request, posted: Posted) -> Response:
    context = blind_context(request)
    done = context.store.withdraw_job(request.path_params["job"], signed_in(request))
    context.packages.sweep(context.store)
    return redirect(f"/blind/jobs/{done.id}?done=taken-back")


@router.get("/policy")
def policies_page(request: Request) -> Response:
    """The policy in force; of several, the page that names them."""
    digests = {each.policy for each in context_of(request).store.blind_boards()}
    return redirect(f"/blind/policy/{digests.pop()}" if len(digests) == 1 else "/blind")


@router.get("/policy/{digest}")
def policy_page(digest: str, request: Request) -> Response:
    """A policy in plain words, as its host announced it."""
    store = context_of(request).store
    policy = store.policy(digest)
    if policy is None:
        raise NotFound("There is no such policy on this board; the audit entry of a release names its policy.")
    boards = [each.board for each in store.blind_boards() if each.policy == policy.digest]
    return form_page(
        request, "policy", folder="blind", here="blind", policy=policy, boards=boards, words=markdown(policy.text)
    )  # fmt: skip


@router.get("/audit")
def audit_page(request: Request) -> Response:
    """Every release, the newest first."""
    listed = context_of(request).store.releases(
        limit=_SHOWN + 1, before=number_in(request.query_params.get("before", ""), 17)
    )  # fmt: skip
    more = listed[_SHOWN - 1].id if len(listed) > _SHOWN else None
    return form_page(request, "audit", folder="blind", here="blind", releases=listed[:_SHOWN], more=more)


@router.get("/audit/{number}")
def entry_page(number: str, request: Request) -> Response:
    """One release: what left, when, under which policy, and what the owners of the recordings said."""
    store = context_of(request).store
    place = number_in(number, 17)
    release = store.release(place) if place is not None else None
    if release is None:
        raise NotFound("There is no such entry in the audit trail of this board.")
    policy = store.policy(release.policy)
    return form_page(
        request, "entry", folder="blind", here="blind", release=release, facts=_facts(release),
        remarks=_remarks(release), figures=_figures(request, release.submission), policy=policy,
        words=markdown(policy.text, level=3) if policy else "",
    )  # fmt: skip


def _figures(request: Request, submission: str) -> Sequence[Any]:
    """The rows of a release, as they are on the board."""
    store = context_of(request).store
    return store.rows_of(submission).rows if submission and store.submission(submission) else ()


_FACTS = {
    "at": "Time of the entry", "hash": "Hash", "previous": "Hash before it",
    "commitment": "Commitment to the exact values",
}  # fmt: skip
_BODY = {
    "package": "Package (SHA-256 of its contents)", "distance": "Distance", "correction": "Correction",
    "message": "Words to the participant", "not_before": "Not released before", "sign_off": "Sign-off",
}  # fmt: skip


def _facts(release: Release) -> list[tuple[str, str, bool]]:
    """What a host's entry says, as name, text, and whether the text is a hash."""
    body = release.shown.get("body")
    inner = body if isinstance(body, Mapping) else {}
    named = [(words, release.shown.get(name)) for name, words in _FACTS.items()]
    named += [(words, inner.get(name)) for name, words in _BODY.items()]
    said = [(words, str(value)) for words, value in named if isinstance(value, str | int) and value != ""]
    return [(words, text, len(text) == 64 and text.isalnum()) for words, text in said]


def _remarks(release: Release) -> list[tuple[str, str, str, str]]:
    """The owners' signatures and objections: kind, moment, name and words."""
    remarks = release.shown.get("remarks")
    found = []
    for remark in remarks if isinstance(remarks, list) else ():
        body = remark.get("body") if isinstance(remark, Mapping) else None
        if isinstance(body, Mapping):
            said = (remark.get("kind", ""), remark.get("at", ""), body.get("by", ""), body.get("words", ""))
            found.append(tuple(map(str, said)))
    return found  # type: ignore[return-value]
