"""The releases of blind evaluation: a job's figures put on the board, and the audit trail of it.

What may be sent twice after a lost answer gives the same answer twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from earmark.board.jobs import UNFINISHED, Job, Release
from earmark.board.records import User, sought
from earmark.board.refusals import Conflict
from earmark.board.storage.accounts import current_user, list_limit, now, record
from earmark.board.storage.arrivals import add_document
from earmark.board.storage.blind_jobs import MOST_MESSAGE, end_job, hosted_job, job_of, scrubbed, withdrawn_job
from earmark.board.storage.live import blind_names
from earmark.board.storage.submissions import close_submission, stored_submission
from earmark.board.storage.tables import (
    blind_hosts,
    blind_jobs,
    blind_policies,
    blind_releases,
    blind_sets,
    submission_systems,
    submissions,
    systems,
    users,
)
from earmark.databases import Part
from earmark.errors import quoted
from earmark.submissions import Document, Limits, Problem, Refused, enforce

_REMARKS = "remarks"


class BlindReleases(Part):
    """The part of the store behind releases. `clock` says what time it is."""

    limits: Limits
    clock: Callable[[], datetime] = staticmethod(now)

    def release_job(self, id: str, user: User, facts: Mapping[str, Any], document: Document) -> Release:
        """Put a job's figures on the board with their audit entry, all at once.

        A second time changes nothing but the owners' `remarks`: they may sign after the release.
        """
        document = replace(document, provenance="blind")
        entry = json.dumps(facts, sort_keys=True, allow_nan=False)
        lasting = json.dumps({**facts, _REMARKS: None}, sort_keys=True)
        digest = hashlib.sha256(f"{lasting}\n{document.digest}".encode()).hexdigest()

        def work(connection: Connection) -> Release:
            row, host = hosted_job(connection, sought(id), user), current_user(connection, user)
            there = connection.execute(select(blind_releases).where(blind_releases.c.job_id == row.id)).first()
            if there is not None:
                if there.digest != digest:
                    raise Conflict(f"The job {row.public} was released with other figures; the first ones stand.")
                again = update(blind_releases).where(blind_releases.c.id == there.id)
                connection.execute(again.values(entry=entry))
                return _release(connection, there.id)
            if row.state == "withdrawn":
                raise withdrawn_job(row.public)
            if row.state not in UNFINISHED and row.blame != "infrastructure":
                raise Conflict(f"The job {row.public} is {row.state} already; there is nothing to release.")
            _refuse_foreign(connection, row, document)
            verdict = enforce(document, self.limits, blind_names(connection, row.board))
            owner = User(*connection.execute(_OWNER.where(users.c.id == row.owner_id)).one())
            public = add_document(connection, document, owner, "", verdict.warnings)
            sent = stored_submission(connection, public)
            close_submission(connection, sent, "accepted", host, "", "blind")
            record(connection, host.name, "accepted", public, f"as blind: job {row.public}")
            made = connection.execute(
                insert(blind_releases).values(
                    job_id=row.id, submission_id=sent.id, policy=_policy_of(connection, row, facts), entry=entry,
                    digest=digest, released=self.clock(), reason="",
                )
            )  # fmt: skip
            assert made.inserted_primary_key is not None
            body = facts.get("body")
            told = str(body.get("message", "")) if isinstance(body, Mapping) else ""
            end_job(connection, row, self.clock(), "released", message=scrubbed(told, MOST_MESSAGE))
            return _release(connection, made.inserted_primary_key[0])

        return self._write(work)

    def withdraw_release(self, id: str, user: User, reason: str) -> Job:
        """Take figures back, or keep them from leaving: the owners of the recordings object. The entry stays."""
        kept = scrubbed(reason, 2000) or "the owners of the recordings object."

        def work(connection: Connection) -> Job:
            row, host = hosted_job(connection, sought(id), user), current_user(connection, user)
            there = connection.execute(select(blind_releases).where(blind_releases.c.job_id == row.id)).first()
            if there is not None and there.withdrawn is None:
                sent = connection.execute(select(submissions).where(submissions.c.id == there.submission_id)).one()
                if sent.state == "accepted":
                    close_submission(connection, sent, "withdrawn", host, kept, sent.provenance)
                record(connection, host.name, "withdrew", sent.public, kept)
                changed = update(blind_releases).where(blind_releases.c.id == there.id)
                connection.execute(changed.values(withdrawn=self.clock(), reason=kept))
            if row.state == "released" or row.state in UNFINISHED:
                end_job(connection, row, self.clock(), "withdrawn", message=kept)
            return job_of(connection, row.public)

        return self._write(work)

    # --- the audit trail ---------------------------------------------------------------------------------------------

    def releases(self, *, limit: int = 100, before: int | None = None) -> list[Release]:
        """Audit entries, the newest first."""
        query = _RELEASES.order_by(blind_releases.c.id.desc()).limit(list_limit(limit))
        if before is not None:
            query = query.where(blind_releases.c.id < max(0, min(before, 2**62)))
        return [_read_release(row) for row in self._rows(query)]

    def release(self, number: int) -> Release | None:
        rows = self._rows(_RELEASES.where(blind_releases.c.id == max(0, min(number, 2**62))))
        return next((_read_release(row) for row in rows), None)

    def release_numbers(self, board: str) -> dict[int, int]:
        """The newest audit entry that stands of each system of a board, by the system's id."""
        newest = (
            select(submission_systems.c.system_id, func.max(blind_releases.c.id))
            .join(submissions, submissions.c.id == submission_systems.c.submission_id)
            .join(blind_releases, blind_releases.c.submission_id == submissions.c.id)
            .where(submissions.c.board == sought(board), submissions.c.state == "accepted")
            .group_by(submission_systems.c.system_id)
        )
        return {row[0]: row[1] for row in self._rows(newest)}


_OWNER = select(users.c.id, users.c.name, users.c.team, users.c.role, users.c.created)
_RELEASES = (
    select(
        blind_releases, blind_jobs.c.public.label("job"), blind_jobs.c.board, blind_jobs.c.entry.label("name"),
        blind_jobs.c.team, users.c.name.label("owner"), submissions.c.public.label("submission"), systems.c.slug,
        submissions.c.state.label("standing"), submissions.c.decided, submissions.c.reason.label("why"),
    )
    .join(blind_jobs, blind_jobs.c.id == blind_releases.c.job_id)
    .join(users, users.c.id == blind_jobs.c.owner_id)
    .join(submissions, submissions.c.id == blind_releases.c.submission_id)
    .join(submission_systems, submission_systems.c.submission_id == submissions.c.id)
    .join(systems, systems.c.id == submission_systems.c.system_id)
)  # fmt: skip


def _release(connection: Connection, number: int) -> Release:
    return _read_release(connection.execute(_RELEASES.where(blind_releases.c.id == number)).one())


def _read_release(row: Row[Any]) -> Release:
    withdrawn, reason = row.withdrawn, row.reason
    if withdrawn is None and row.standing == "withdrawn":  # by its team, as any submission
        withdrawn, reason = row.decided, row.why or "its team took it back."
    return Release(
        row.id, row.job, row.board, row.name, row.owner, row.team, row.policy, json.loads(row.entry), row.digest,
        row.released, withdrawn, reason, row.submission, row.slug,
    )  # fmt: skip


def _refuse_foreign(connection: Connection, row: Row[Any], document: Document) -> None:
    """Refuse a release of anything but figures of this job's entry on sets that were announced."""
    problems: list[Problem] = []

    def refuse(message: str, pointer: str) -> None:
        problems.append(Problem("foreign_release", message, pointer))

    if document.board != row.board:
        refuse(f"The release is for {quoted(document.board)}, the job for {row.board}.", "/document/board")
    if [card.name for card in document.cards] != [row.entry]:
        refuse(f"The release must be of the entry {quoted(row.entry)} alone.", "/document/systems")
    announced = set(connection.scalars(select(blind_sets.c.subset).where(blind_sets.c.board == row.board)))
    for subset in sorted({each.subset for each in document.scores} - announced)[:10]:
        refuse(f"{quoted(subset)} is no blind set that was announced for {row.board}.", "/document/scores")
    if problems:
        raise Refused(problems)


def _policy_of(connection: Connection, row: Row[Any], facts: Mapping[str, Any]) -> str:
    """The policy that a release names, or the one that the host has announced last."""
    body = facts.get("body")
    words = str((body if isinstance(body, Mapping) else facts).get("policy", ""))
    named = connection.execute(
        select(blind_policies.c.digest).where(blind_policies.c.digest == sought(words))
    ).scalar()  # fmt: skip
    current = select(blind_hosts.c.policy).where(blind_hosts.c.board == row.board)
    return str(named or connection.execute(current).scalar_one())
