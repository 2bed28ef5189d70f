"""/v1/blind: packages of participants, and the worker beside the blind recordings, which asks and is never asked."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from earmark.board.api.blind_shapes import (
    Announcement,
    BlindBoardShape,
    ClaimAsked,
    FailureAsked,
    HoldAsked,
    JobShape,
    LeaseShape,
    ObjectionAsked,
    ProgressAsked,
    ReleaseAsked,
    ReleaseShape,
)
from earmark.board.api.shapes import PageShape
from earmark.board.jobs import BlindBoard, BlindSet, Job, Release, coarse
from earmark.board.web import requests as web
from earmark.board.web.requests import Author, Context, Worker, address_of, blind_context, readable_job
from earmark.board.web.uploads import FILE, take_package
from earmark.submissions import read_document

router = APIRouter(prefix="/blind", tags=["blind evaluation"])

On = Annotated[Context, Depends(blind_context)]
Id = Annotated[str, Path(max_length=100)]


# --- participants ----------------------------------------------------------------------------------------------------


@router.get("/boards", response_model=PageShape[BlindBoardShape])
def boards(context: On) -> Response:
    """The boards on which models are measured blind: their sets, their policy, and how many jobs wait."""
    items = [_board_shape(each) for each in context.store.blind_boards()]
    return web.sent(PageShape[BlindBoardShape](items=items))


def _board_shape(board: BlindBoard) -> BlindBoardShape:
    shape: BlindBoardShape = BlindBoardShape.model_validate(replace(board, seen=coarse(board.seen)))
    return shape


_PACKAGE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The name of the board, then the package, a zip archive with a submission.yaml.",
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["board", FILE],
                    "properties": {
                        "board": {"type": "string"},
                        "sha256": {"type": "string", "description": "Of the package, so that it may be sent again."},
                        FILE: {"type": "string", "format": "binary"},
                    },
                }
            }
        },
    }
}


@router.post(
    "/jobs", status_code=201, response_model=JobShape, openapi_extra=_PACKAGE,
    responses={200: {"model": JobShape, "description": "The same package came before: its job."}},
)  # fmt: skip
async def send_package(request: Request, context: On, user: Author) -> Response:
    """Send a package. It is looked at and never opened, then waits for the host's worker.

    What is wrong with it is said at once, in full. The same package again is the same job, and answered with 200.
    """
    job, new = await take_package(request, context, user, lambda texts: None)
    return web.sent(_shape(job, request), 201 if new else 200, {"Location": f"/v1/blind/jobs/{job.id}"})


@router.get("/jobs", response_model=PageShape[JobShape])
def jobs(
    request: Request, context: On, user: Author, cursor: Annotated[str, Query(max_length=200)] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:  # fmt: skip
    """Your jobs and your team's, newest first; all of them for a moderator, and for a worker those that wait."""
    before = str(web.cursor_of(cursor, str)[0]) if cursor else None
    listed = context.store.jobs(user, limit=limit + 1, before=before)
    following = web.cursor_after([listed[limit - 1].id]) if len(listed) > limit else None
    items = [_shape(job, request) for job in listed[:limit]]
    return web.sent(PageShape[JobShape](items=items, next=following))


@router.get("/jobs/{job}", response_model=JobShape)
def show(job: Id, request: Request, context: On, user: Author) -> Response:
    """One job: where it stands, and what became of it."""
    return web.sent(_shape(readable_job(context, job, user), request))


@router.post("/jobs/{job}/withdraw", response_model=JobShape)
def withdraw(job: Id, request: Request, context: On, user: Author) -> Response:
    """Take a package back, before its figures are released."""
    done = context.store.withdraw_job(job, user)
    context.packages.sweep(context.store)
    return web.sent(_shape(done, request))


def _shape(job: Job, request: Request) -> JobShape:
    """A job as its participant may see it: moments to the minute."""
    address = address_of(request)
    return JobShape(
        id=job.id, board=job.board, entry=job.entry, kind=job.kind, state=job.state, place=job.place, phase=job.phase,
        tenths=job.tenths, sentence=job.told(datetime.now(UTC)), message=job.message, log=job.log, digest=job.digest,
        created=coarse(job.created), started=coarse(job.started) if job.started else None,
        finished=coarse(job.finished) if job.finished else None,
        release=f"{address}/blind/audit/{job.release}" if job.release else None, page=f"{address}/blind/jobs/{job.id}",
    )  # fmt: skip


# --- audit -----------------------------------------------------------------------------------------------------------


@router.get("/releases", response_model=PageShape[ReleaseShape])
def releases(
    request: Request, context: On, cursor: Annotated[str, Query(max_length=200)] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:  # fmt: skip
    """Every release and what became of it, newest first: the public part of the hosts' audit trails."""
    before = int(web.cursor_of(cursor, int)[0]) if cursor else None
    listed = context.store.releases(limit=limit + 1, before=before)
    following = web.cursor_after([listed[limit - 1].id]) if len(listed) > limit else None
    items = [_release_shape(each, request) for each in listed[:limit]]
    return web.sent(PageShape[ReleaseShape](items=items, next=following))


def _release_shape(release: Release, request: Request) -> ReleaseShape:
    return ReleaseShape(
        number=release.number, board=release.board, system=release.entry, team=release.team, policy=release.policy,
        released=coarse(release.released), withdrawn=coarse(release.withdrawn) if release.withdrawn else None,
        reason=release.reason, submission=release.submission, entry=dict(release.shown),
        page=f"{address_of(request)}/blind/audit/{release.id}",
    )  # fmt: skip


# --- workers ---------------------------------------------------------------------------------------------------------


@router.put("/sets", response_model=BlindBoardShape)
def announce(asked: Announcement, context: On, user: Worker) -> Response:
    """Say which blind sets are measured on a board, and by which policy. These subsets take only the host's scores.

    A set that was announced stays blind; one that is left out of a later announcement is not measured any more.
    """
    sets = [BlindSet(**each.model_dump()) for each in asked.sets]
    policy = asked.policy
    settings = policy.model_dump(exclude={"digest", "text"})
    made = context.store.announce_sets(user, asked.board, sets, policy.digest, policy.text, settings)
    context.snapshots.refresh()
    return web.sent(_board_shape(made))


@router.post(
    "/jobs/claim", response_model=LeaseShape, responses={204: {"description": "Nothing waits."}}
)  # fmt: skip
def claim(asked: ClaimAsked, context: On, user: Worker) -> Response:
    """The next job for a worker: the one that it has already, or the oldest, teams in turn.

    Every later call about the job needs its `lease`, which a later claim replaces. Report progress well within
    `lease_seconds`, or another worker gets the job.
    """
    seconds = context.settings.lease_seconds
    lease = context.store.claim_job(user, asked.worker, seconds=seconds)
    context.packages.sweep(context.store)
    if lease is None:
        return Response(status_code=204)
    shape = LeaseShape(
        id=lease.id, lease=lease.word, board=lease.board, team=lease.team, entry=lease.entry, kind=lease.kind,
        digest=lease.digest, size=lease.size, attempt=lease.attempt, lease_seconds=seconds,
    )  # fmt: skip
    return web.sent(shape)


@router.get("/jobs/{job}/package", response_class=FileResponse)
def package(job: Id, context: On, user: Worker, lease: Annotated[str, Query(max_length=100)] = "") -> Response:
    """The package of a job, for the worker that has it."""
    held = context.store.leased_job(job, user, lease)
    return FileResponse(context.packages.find(held.id), media_type="application/zip")


@router.post("/jobs/{job}/progress", response_model=JobShape)
def progress(job: Id, asked: ProgressAsked, request: Request, context: On, user: Worker) -> Response:
    """Say how far a job is, in tenths of its phase, and keep its lease; 409 when another worker has the job, 410 when
    it was withdrawn."""
    seconds = context.settings.lease_seconds
    context.store.report_progress(job, user, asked.lease, asked.phase, asked.tenths, seconds=seconds)
    return web.sent(_shape(context.store.job(job), request))


@router.post("/jobs/{job}/held", response_model=JobShape)
def hold(job: Id, asked: HoldAsked, request: Request, context: On, user: Worker) -> Response:
    """The job is measured; its figures wait for their time or for the owners of the recordings."""
    return web.sent(_shape(context.store.hold_job(job, user, **asked.model_dump()), request))


@router.post("/jobs/{job}/fail", response_model=JobShape)
def fail(job: Id, asked: FailureAsked, request: Request, context: On, user: Worker) -> Response:
    """End a job for a fault of its model (or of its package, `refused`); for one of the host's machines it is queued
    again, and after the third failure ends without counting for the quota."""
    failed = context.store.fail_job(job, user, **asked.model_dump())
    context.packages.sweep(context.store)
    return web.sent(_shape(failed, request))


@router.post("/jobs/{job}/release", response_model=ReleaseShape)
def release(job: Id, asked: ReleaseAsked, request: Request, context: On, user: Worker) -> Response:
    """Put the figures of a job on the board with their audit entry. Said again it changes nothing; other figures for
    the same job are refused."""
    document = read_document(json.dumps(asked.document).encode(), limits=context.settings.limits)
    made = context.store.release_job(job, user, asked.entry, document)
    context.packages.sweep(context.store)
    context.snapshots.refresh()
    return web.sent(_release_shape(made, request))


@router.post("/releases/{job}/withdraw", response_model=JobShape)
def withdraw_release(job: Id, asked: ObjectionAsked, request: Request, context: On, user: Worker) -> Response:
    """Take the figures of a job back, or keep them from leaving, for the owners of the recordings."""
    done = context.store.withdraw_release(job, user, asked.reason)
    context.packages.sweep(context.store)
    context.snapshots.refresh()
    return web.sent(_shape(done, request))
