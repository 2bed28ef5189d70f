"""The queue of blind evaluation: what is announced, jobs and their leases, releases.

Each call is one transaction without other writers, so that no two workers get one job. A lease has a random word, new
each time the job is given out: a worker that was thought dead and comes back with an old word changes nothing. What
may be sent twice after a lost answer (a claim, a release, a withdrawal) gives the same answer twice.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, insert, or_, select, update

from earmark.board.jobs import (
    MOST_ATTEMPTS,
    MOST_RESTARTS,
    UNFINISHED,
    Blame,
    BlindBoard,
    BlindSet,
    Job,
    JobState,
    Lease,
    Package,
    Phase,
    PolicyText,
    Release,
)
from earmark.board.records import User, sought
from earmark.board.refusals import Conflict, NotAllowed, NotFound, Refusal
from earmark.board.storage.accounts import current_user, list_limit, now, record
from earmark.board.storage.arrivals import add_document, claim_systems
from earmark.board.storage.boards import refuse_closed
from earmark.board.storage.definitions import definition_of
from earmark.board.storage.live import blind_names, offered_names, recount_systems
from earmark.board.storage.submissions import close_submission, stored_submission
from earmark.board.storage.tables import (
    blind_hosts,
    blind_jobs,
    blind_policies,
    blind_releases,
    blind_sets,
    live,
    measurements,
    scores,
    submission_systems,
    submissions,
    systems,
    users,
)
from earmark.databases import Part, in_parts, reading
from earmark.definitions import Definition
from earmark.errors import quoted
from earmark.scores import WITH_VALUE
from earmark.submissions import Document, Limits, Problem, Refused, SystemCard, enforce
from earmark.submissions.texts import checked_text, joined_likeness
from earmark.wording import counted

LEASE_SECONDS = 120.0
_MOST_MESSAGE, _MOST_LOG = 1000, 20_000
_REMARKS = "remarks"
_SEEN_AGAIN = timedelta(seconds=30)
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_DEAD = "the host's machines failed {times}; nothing is wrong with your package, send it again."


class Blind(Part):
    """The part of the store behind blind evaluation. `clock` says what time it is."""

    limits: Limits
    clock: Callable[[], datetime] = staticmethod(now)

    # --- what is announced -------------------------------------------------------------------------------------------

    def announce_sets(
        self, user: User, board: str, sets: Sequence[BlindSet], digest: str, text: str, settings: Mapping[str, Any]
    ) -> BlindBoard:
        """Say, as a host's worker, which blind sets models are measured on, and by which policy.

        A set that was announced once stays blind for good; one that is not named any more is not offered. Self-reported
        scores of them no longer count. A name stands for one set of recordings: what is there already under it rests
        on as many clips.
        """

        def work(connection: Connection) -> BlindBoard:
            host, at = current_user(connection, user), self.clock()
            _refuse_strangers(connection, board, host)
            _refuse_public(connection, board, [each.subset for each in sets])
            for each in sets:
                _refuse_other_recordings(connection, board, each)
            _keep_policy(connection, digest, text, settings, at)
            before = blind_names(connection, board), offered_names(connection, board)
            _keep_host(connection, board, host, digest, at)
            gone = update(blind_sets).where(blind_sets.c.board == board).values(offered=False)
            connection.execute(gone)
            for each in sets:
                values = {"title": each.title, "clips": each.clips, "classes": each.classes, "offered": True}
                there = and_(blind_sets.c.board == board, blind_sets.c.subset == each.subset)
                if not connection.execute(update(blind_sets).where(there).values(**values)).rowcount:
                    connection.execute(
                        insert(blind_sets).values(board=board, subset=each.subset, announced=at, **values)
                    )
            if (blind_names(connection, board), offered_names(connection, board)) != before:
                of_board = select(systems.c.id).where(systems.c.board == board, systems.c.changed > 0)
                recount_systems(connection, list(connection.scalars(of_board)))
                record(connection, host.name, "announced", detail=f"{board}: {', '.join(each.subset for each in sets)}")
            return _boards(connection, board)[0]

        return self._write(work)

    def blind_boards(self) -> list[BlindBoard]:
        """The boards on which models are measured blind."""
        with reading(self.engine) as connection:
            return _boards(connection)

    def policy(self, digest: str) -> PolicyText | None:
        """A policy that holds or held, by the beginning of its digest (at least 8 characters) or the whole."""
        if len(digest) < 8 or not digest.isalnum():
            return None
        found = self._rows(select(blind_policies).where(blind_policies.c.digest.startswith(sought(digest))))
        kept = [PolicyText(row.digest, row.text, json.loads(row.settings), row.announced) for row in found]
        return kept[0] if len(kept) == 1 else None

    # --- participants ------------------------------------------------------------------------------------------------

    def check_quota(self, user: User, board: str, sha256: str = "") -> None:
        """Refuse, before a package is sent, what would be refused afterwards anyway; not what came before."""
        with reading(self.engine) as connection:
            offer, owner = _offering(connection, board), current_user(connection, user)
            if _same_job(connection, offer.board, owner, blind_jobs.c.sha256 == sought(sha256)) is None:
                _refuse_quota(connection, offer, owner, "", self.clock())

    def add_job(self, user: User, board: str, package: Package, card: SystemCard, id: str) -> tuple[Job, bool]:
        """Queue a package that is on the disk already; False beside the job when the same package came before."""

        def work(connection: Connection) -> tuple[Job, bool]:
            owner, at = current_user(connection, user), self.clock()
            offer = _offering(connection, board)
            refuse_closed(definition_of(connection, board), owner)
            same = _same_job(connection, board, owner, blind_jobs.c.digest == package.digest)
            if same is not None:
                return _job(connection, same), False
            _refuse_quota(connection, offer, owner, package.entry, at)
            claim_systems(connection, board, [card], owner)
            connection.execute(
                insert(blind_jobs).values(
                    public=id, board=board, owner_id=owner.id, team=owner.counted_as, entry=package.entry,
                    kind=package.kind, digest=package.digest, sha256=package.sha256, size=package.size, state="queued",
                    phase="", tenths=0, message="", log="", blame="", attempts=0, restarts=0, worker="", lease="",
                    created=at,
                )
            )  # fmt: skip
            record(connection, owner.name, "sent_package", detail=f"{board}: {package.entry}, job {id}")
            return _job(connection, id), True

        return self._write(work)

    def job(self, id: str) -> Job:
        """The job of that id, in whatever state; NotFound when there is none."""
        with reading(self.engine) as connection:
            return _job(connection, sought(id))

    def jobs(self, user: User, *, limit: int = 50, before: str | None = None) -> list[Job]:
        """What a user may see, the newest first: their team's jobs; a moderator all; a worker what it has to do."""
        query = _JOBS.order_by(blind_jobs.c.id.desc()).limit(list_limit(limit))
        if user.role == "worker":
            boards = select(blind_hosts.c.board).where(blind_hosts.c.host_id == user.id)
            query = query.where(blind_jobs.c.board.in_(boards), blind_jobs.c.state.in_(UNFINISHED))
        elif not user.moderates:
            query = query.where(or_(blind_jobs.c.owner_id == user.id, blind_jobs.c.team == user.counted_as))
        with reading(self.engine) as connection:
            if before is not None:
                query = query.where(blind_jobs.c.id < _row(connection, sought(before)).id)
            return _read(connection, connection.execute(query).all())

    def withdraw_job(self, id: str, user: User) -> Job:
        """Take a package back before its figures are released; afterwards the submission can be withdrawn."""

        def work(connection: Connection) -> Job:
            sender, row = current_user(connection, user), _row(connection, sought(id))
            job = _job(connection, row.public)
            if not job.is_readable_by(sender):
                raise _missing(row.public)
            if job.state == "withdrawn":
                return job
            if not job.unfinished:
                more = f"; withdraw the submission {job.submission} instead" if job.submission else ""
                raise Conflict(f"The job {job.id} is {job.state} already{more}.")
            self._end(connection, row, "withdrawn", message=f"taken back by {sender.name}.")
            record(connection, sender.name, "withdrew_package", detail=f"job {job.id}")
            return _job(connection, row.public)

        return self._write(work)

    # --- workers -----------------------------------------------------------------------------------------------------

    def claim_job(self, user: User, worker: str, *, seconds: float = LEASE_SECONDS) -> Lease | None:
        """The next job for a worker of a host, or the one that it has already; None when nothing waits.

        A worker that comes back takes its own job up again, also after its lease has ended, as long as no other has
        it: that counts as no attempt, so that a worker may be killed often and still finish.
        """
        name = checked_text(worker, "The worker's name", 100, needed=True)

        def work(connection: Connection) -> Lease | None:
            host, at = current_user(connection, user), self.clock()
            boards = _boards_of(connection, host)
            self._note_worker(connection, boards, at)
            mine = and_(blind_jobs.c.board.in_(boards), blind_jobs.c.state == "running")
            own = connection.execute(select(blind_jobs).where(mine, blind_jobs.c.worker == name)).first()
            if own is not None and own.restarts < MOST_RESTARTS:
                return self._lease(connection, own, name, at, seconds, again=True)
            ended = or_(blind_jobs.c.lease_ends < at, blind_jobs.c.worker == name)
            for row in connection.execute(select(blind_jobs).where(mine, ended)).all():
                self._give_back(connection, row)
            waiting = _in_turn(connection, boards)
            return self._lease(connection, waiting[0], name, at, seconds, again=False) if waiting else None

        return self._write(work)

    def leased_job(self, id: str, user: User, lease: str) -> Lease:
        """The job that a worker has, when it has it still."""
        with reading(self.engine) as connection:
            return _lease(_leased(connection, sought(id), user, lease))

    def report_progress(
        self, id: str, user: User, lease: str, phase: Phase, tenths: int, *, seconds: float = LEASE_SECONDS
    ) -> None:
        """Say how far a job is, and keep its lease."""

        def work(connection: Connection) -> None:
            row, at = _leased(connection, sought(id), user, lease), self.clock()
            self._note_worker(connection, [row.board], at)
            ends = at + timedelta(seconds=seconds)
            _change(connection, row, phase=phase, tenths=max(0, min(10, tenths)), lease_ends=ends)

        self._write(work)

    def hold_job(self, id: str, user: User, lease: str, message: str) -> Job:
        """The job is measured; its figures wait for their time, or for the owners of the recordings."""

        def work(connection: Connection) -> Job:
            row = _hosted(connection, sought(id), user)
            if row.state == "held" and _same_word(row.lease, lease):
                return _job(connection, row.public)
            row = _leased(connection, row.public, user, lease)
            kept = _scrubbed(message, _MOST_MESSAGE)
            _change(connection, row, state="held", message=kept, phase="", tenths=10, lease_ends=None, worker="")
            return _job(connection, row.public)

        return self._write(work)

    def fail_job(
        self, id: str, user: User, lease: str, blame: Blame, message: str, log: str = "", *, refused: bool = False
    ) -> Job:
        """End a job that cannot be measured, or queue it again when the host's machines are to blame.

        A job that is held needs no lease: the data side may decide after the measurement that nothing leaves.
        """
        state: JobState = "refused" if refused else "failed"
        ended = {"message": _scrubbed(message, _MOST_MESSAGE), "log": _scrubbed(log, _MOST_LOG), "blame": blame}

        def work(connection: Connection) -> Job:
            row = _hosted(connection, sought(id), user)
            if row.state == state and (row.message, row.blame) == (ended["message"], blame):
                return _job(connection, row.public)  # said again, after a lost answer
            if row.state != "held" or blame == "infrastructure":
                row = _leased(connection, row.public, user, lease)
            if blame == "infrastructure":
                self._give_back(connection, row)
            else:
                self._end(connection, row, state, **ended)
            return _job(connection, row.public)

        return self._write(work)

    def release_job(self, id: str, user: User, facts: Mapping[str, Any], document: Document) -> Release:
        """Put a job's figures on the board with their audit entry, all at once.

        A second time changes nothing but the owners' `remarks`: they may sign after the release.
        """
        document = replace(document, provenance="blind")
        entry = json.dumps(facts, sort_keys=True, allow_nan=False)
        lasting = json.dumps({**facts, _REMARKS: None}, sort_keys=True)
        digest = hashlib.sha256(f"{lasting}\n{document.digest}".encode()).hexdigest()

        def work(connection: Connection) -> Release:
            row, host = _hosted(connection, sought(id), user), current_user(connection, user)
            there = connection.execute(select(blind_releases).where(blind_releases.c.job_id == row.id)).first()
            if there is not None:
                if there.digest != digest:
                    raise Conflict(f"The job {row.public} was released with other figures; the first ones stand.")
                again = update(blind_releases).where(blind_releases.c.id == there.id)
                connection.execute(again.values(entry=entry))
                return _release(connection, there.id)
            if row.state == "withdrawn":
                raise _gone(row.public)
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
            self._end(connection, row, "released", message=_scrubbed(told, _MOST_MESSAGE))
            return _release(connection, made.inserted_primary_key[0])

        return self._write(work)

    def withdraw_release(self, id: str, user: User, reason: str) -> Job:
        """Take figures back, or keep them from leaving: the owners of the recordings object. The entry stays."""
        kept = _scrubbed(reason, 2000) or "the owners of the recordings object."

        def work(connection: Connection) -> Job:
            row, host = _hosted(connection, sought(id), user), current_user(connection, user)
            there = connection.execute(select(blind_releases).where(blind_releases.c.job_id == row.id)).first()
            if there is not None and there.withdrawn is None:
                sent = connection.execute(select(submissions).where(submissions.c.id == there.submission_id)).one()
                if sent.state == "accepted":
                    close_submission(connection, sent, "withdrawn", host, kept, sent.provenance)
                record(connection, host.name, "withdrew", sent.public, kept)
                changed = update(blind_releases).where(blind_releases.c.id == there.id)
                connection.execute(changed.values(withdrawn=self.clock(), reason=kept))
            if row.state == "released" or row.state in UNFINISHED:
                self._end(connection, row, "withdrawn", message=kept)
            return _job(connection, row.public)

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

    def job_states(self, ids: Collection[str]) -> dict[str, JobState]:
        """The states of those of some ids that are jobs."""
        states: dict[str, JobState] = {}
        for part in in_parts(sorted(ids)):
            of = select(blind_jobs.c.public, blind_jobs.c.state).where(blind_jobs.c.public.in_(part))
            states |= {row.public: row.state for row in self._rows(of)}
        return states

    # --- within a transaction ----------------------------------------------------------------------------------------

    def _lease(
        self, connection: Connection, row: Row[Any], worker: str, at: datetime, seconds: float, *, again: bool
    ) -> Lease:
        """Give a job out under a new word."""
        _change(
            connection, row, state="running", worker=worker, lease=secrets.token_hex(16), claimed=at,
            lease_ends=at + timedelta(seconds=seconds), started=row.started or at, message="",
            attempts=row.attempts + (not again), restarts=row.restarts + again if again else 0,
            **({} if again else {"phase": "", "tenths": 0}),
        )  # fmt: skip
        return _lease(_row(connection, row.public))

    def _give_back(self, connection: Connection, row: Row[Any]) -> None:
        """Queue a job again that a machine of the host's failed on, or end it when that happened too often."""
        if row.attempts < MOST_ATTEMPTS and row.restarts < MOST_RESTARTS:
            _change(connection, row, state="queued", lease="", lease_ends=None, worker="", phase="", tenths=0)
            return
        times = counted(max(row.attempts, row.restarts), "time")
        self._end(connection, row, "failed", message=_DEAD.format(times=times), blame="infrastructure")

    def _end(self, connection: Connection, row: Row[Any], state: JobState, **more: Any) -> None:
        ended = {"lease": "", "lease_ends": None, "worker": "", "finished": self.clock(), "blame": ""}
        _change(connection, row, state=state, **{**ended, **more})

    def _note_worker(self, connection: Connection, boards: Collection[str], at: datetime) -> None:
        """Remember that a worker was heard of; it asks often, so about twice a minute."""
        stale = and_(blind_hosts.c.board.in_(boards), blind_hosts.c.seen < at - _SEEN_AGAIN)
        connection.execute(update(blind_hosts).where(stale).values(seen=at))


# --- what is announced -----------------------------------------------------------------------------------------------


def _refuse_strangers(connection: Connection, board: str, user: User) -> None:
    if user.role != "worker":
        raise NotAllowed("Only a worker of a host announces blind sets; make its user with the role worker.")
    there = connection.execute(select(blind_hosts.c.host_id).where(blind_hosts.c.board == board)).scalar()
    if there not in (None, user.id):
        raise Conflict(f"Blind sets of {board} are measured by another worker account; use that one's token.")


def _written_definition(connection: Connection, board: str) -> Definition | None:
    """The definition of a board that a host or a paper wrote; none where it was made of the scores."""
    definition = definition_of(connection, board)
    return definition if definition and not definition.derived else None


def _refuse_public(connection: Connection, board: str, subsets: Sequence[str]) -> None:
    suite = _written_definition(connection, board)
    known = [subset.name for subset in suite.subsets if not subset.blind] if suite else []
    public = {joined_likeness(name): name for name in known}
    wrong = sorted(public.keys() & set(map(joined_likeness, subsets)))
    if wrong:
        name = public[wrong[0]]
        raise Conflict(f"{name} is a public subset of {board}, which everybody may measure; rename the blind set.")
    if len(set(map(joined_likeness, subsets))) < len(subsets):
        raise Conflict("Two of the blind sets have one name, or names that read alike; rename one of them.")


def _refuse_other_recordings(connection: Connection, board: str, announced: BlindSet) -> None:
    """Refuse a set under whose name the board has, or the paper counts, other recordings: nobody could compare them."""
    name, clips = announced.subset, announced.clips
    suite = _written_definition(connection, board)
    published = suite.subset(name).clips if suite else None
    of_subset = and_(systems.c.board == board, measurements.c.subset == name, scores.c.status.in_(WITH_VALUE))
    counts = (
        select(submissions.c.provenance, func.max(scores.c.n))
        .select_from(live.join(scores).join(systems, systems.c.id == live.c.system_id))
        .join(submissions, submissions.c.id == scores.c.submission_id)
        .join(measurements, measurements.c.id == live.c.measurement_id)
        .where(of_subset, submissions.c.provenance != "self-reported")
        .group_by(submissions.c.provenance)
    )
    most_clips = {row[0]: row[1] or 0 for row in connection.execute(counts)}
    there = and_(blind_sets.c.board == board, blind_sets.c.subset == name)
    before = connection.execute(select(blind_sets.c.clips).where(there)).scalar()
    most = max(most_clips.values(), default=0)
    if published is not None and published != clips:
        known = f"{name} of {board} has {published:,} clips as published"
    elif most > clips:
        known = f"{name} of {board} has figures that rest on {most:,} clips"
    elif before not in (None, clips) and "blind" in most_clips:
        known = f"{name} of {board} had {before:,} clips when figures of it were released"
    else:
        return
    raise Conflict(
        f"{known}, and the set that is announced has {clips:,}: figures of other recordings would stand under one "
        "name. Give the set another name, or a board of its own."
    )


def _keep_policy(connection: Connection, digest: str, text: str, settings: Mapping[str, Any], at: datetime) -> None:
    """Keep a policy under its digest. The words that came first stay, however a later version puts them."""
    there = connection.execute(select(blind_policies).where(blind_policies.c.digest == digest)).first()
    if there is None:
        plain = json.dumps(settings, sort_keys=True)
        values = {"digest": digest, "text": text, "settings": plain, "announced": at}
        connection.execute(insert(blind_policies).values(**values))
        return
    known = json.loads(there.settings)
    if any(known[name] != value for name, value in settings.items() if name in known):
        raise Conflict("Another policy was announced under this digest; a digest stands for one policy.")


def _keep_host(connection: Connection, board: str, host: User, digest: str, at: datetime) -> None:
    values = {"host_id": host.id, "policy": digest, "seen": at}
    if not connection.execute(update(blind_hosts).where(blind_hosts.c.board == board).values(**values)).rowcount:
        connection.execute(insert(blind_hosts).values(board=board, **values))


def _boards(connection: Connection, board: str | None = None) -> list[BlindBoard]:
    query = select(blind_hosts, users.c.name, blind_policies.c.settings).join(users).join(blind_policies)
    if board is not None:
        query = query.where(blind_hosts.c.board == board)
    rows = connection.execute(query.order_by(blind_hosts.c.board)).all()
    sets: dict[str, list[BlindSet]] = {row.board: [] for row in rows}
    for row in connection.execute(select(blind_sets).order_by(blind_sets.c.id)):
        sets.setdefault(row.board, []).append(BlindSet(row.subset, row.title, row.clips, row.classes, row.offered))
    kinds = (blind_jobs.c.board, blind_jobs.c.state)
    tally = connection.execute(select(*kinds, func.count()).group_by(*kinds))
    counts = {(name, state): number for name, state, number in tally}
    boards = []
    for row in rows:
        limits = json.loads(row.settings)
        queued, running = (counts.get((row.board, state), 0) for state in ("queued", "running"))
        boards.append(
            BlindBoard(
                row.board, row.name, row.policy, int(limits["quota"]), int(limits["entries"]),
                int(limits.get("period_days", 0)), row.seen, tuple(sets[row.board]), queued, running,
            )
        )  # fmt: skip
    return boards


def _offering(connection: Connection, board: str) -> BlindBoard:
    """The board, when models can be sent to it."""
    found = _boards(connection, sought(board))
    if not found or not found[0].offered:
        offered = [each.board for each in _boards(connection) if each.offered]
        there = f"there are some on {', '.join(offered)}" if offered else "no host has announced any"
        raise NotFound(f"There are no blind sets on {quoted(board)}; {there}.")
    return found[0]


def _boards_of(connection: Connection, host: User) -> list[str]:
    if host.role != "worker":
        raise NotAllowed("Only a worker of a host takes jobs; make its user with the role worker.")
    return list(connection.scalars(select(blind_hosts.c.board).where(blind_hosts.c.host_id == host.id)))


# --- quota -----------------------------------------------------------------------------------------------------------


def _counts() -> ColumnElement[bool]:
    """What counts for a quota: not what the host's machines failed on, nor what was taken back before it ran."""
    never_ran = and_(blind_jobs.c.state == "withdrawn", blind_jobs.c.started.is_(None))
    return and_(blind_jobs.c.blame != "infrastructure", ~never_ran)


def _same_job(connection: Connection, board: str, owner: User, package: ColumnElement[bool]) -> str | None:
    """The team's newest job of a package, unless that was withdrawn or failed for the host's own fault."""
    standing = and_(_counts(), blind_jobs.c.state != "withdrawn")
    own = and_(blind_jobs.c.board == board, blind_jobs.c.team == owner.counted_as)
    same = select(blind_jobs.c.public).where(own, standing, package).order_by(blind_jobs.c.id.desc())
    found: str | None = connection.execute(same).scalar()
    return found


def _refuse_quota(connection: Connection, offer: BlindBoard, owner: User, entry: str, at: datetime) -> None:
    """Refuse what is more than the policy gives a team, each day and altogether."""
    if owner.role == "worker":
        raise NotAllowed("A worker does not take part; send the package with a participant's token.")
    of_team = and_(blind_jobs.c.board == offer.board, blind_jobs.c.team == owner.counted_as, _counts())
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    today = select(func.count()).select_from(blind_jobs).where(of_team, blind_jobs.c.created >= day)
    sent = connection.execute(today).scalar_one()
    if sent >= offer.quota:
        raise Conflict(
            f"The {owner.counted_as} has sent {counted(sent, 'package')} to {offer.board} today, and the policy allows "
            f"{offer.quota} a day; the next day begins at 00:00 UTC."
        )
    first = select(blind_jobs.c.entry, func.min(blind_jobs.c.created)).where(of_team).group_by(blind_jobs.c.entry)
    began: dict[str, datetime] = {row[0]: row[1] for row in connection.execute(first)}
    since = at - timedelta(days=offer.period_days) if offer.period_days else _LONG_AGO
    entries = sorted(name for name, moment in began.items() if moment >= since)
    if entry and entry not in began and len(entries) >= offer.entries:
        within = f" in {offer.period_days} days" if offer.period_days else ""
        raise Conflict(
            f"The policy allows each team {offer.entries} new systems on {offer.board}{within}, and the "
            f"{owner.counted_as} has sent {', '.join(entries[:10])}; send it under one of these names."
        )


# --- the queue -------------------------------------------------------------------------------------------------------


def _in_turn(connection: Connection, boards: Collection[str]) -> list[Row[Any]]:
    """The jobs that wait, in the order in which they will be taken: teams in turn, each its oldest first.

    The turn is the team's whose last job was taken longest ago, so that a team with ten jobs holds nobody up.
    """
    here = blind_jobs.c.board.in_(boards)
    queued = select(blind_jobs).where(here, blind_jobs.c.state == "queued").order_by(blind_jobs.c.id)
    of_team: dict[str, list[Row[Any]]] = {}
    for row in connection.execute(queued):
        of_team.setdefault(row.team, []).append(row)
    taken = select(blind_jobs.c.team, func.max(blind_jobs.c.claimed)).where(here).group_by(blind_jobs.c.team)
    last = {team: moment or _LONG_AGO for team, moment in connection.execute(taken)}
    turns = [(0, last[team], rows[0].id, team) for team, rows in of_team.items()]
    heapify(turns)
    order: list[Row[Any]] = []
    while turns:
        *_, team = heappop(turns)
        order.append(of_team[team].pop(0))
        if of_team[team]:
            heappush(turns, (len(order), _LONG_AGO, of_team[team][0].id, team))
    return order


def _change(connection: Connection, row: Row[Any], **values: Any) -> None:
    connection.execute(update(blind_jobs).where(blind_jobs.c.id == row.id).values(**values))


def _lease(row: Row[Any]) -> Lease:
    return Lease(
        row.public, row.lease, row.board, row.team, row.entry, row.kind, row.sha256, row.size, row.attempts
    )  # fmt: skip


def _hosted(connection: Connection, public: str, user: User) -> Row[Any]:
    """The job, for the worker account of its board's host; for everybody else there is none."""
    row = _row(connection, public)
    if row.board not in _boards_of(connection, current_user(connection, user)):
        raise _missing(public)
    return row


def _leased(connection: Connection, public: str, user: User, lease: str) -> Row[Any]:
    """The job, for the worker that has it; Conflict when its lease was given to another, or ended with the job."""
    row = _hosted(connection, public, user)
    if row.state == "withdrawn":
        raise _gone(public)
    if row.state != "running" or not _same_word(row.lease, lease):
        raise Conflict(f"The lease of the job {public} is over: it is {row.state} now; stop working on it.")
    return row


def _same_word(kept: str, given: str) -> bool:
    return bool(kept) and hmac.compare_digest(kept.encode(), given.encode("utf-8", "replace"))


def _gone(public: str) -> Refusal:
    return Refusal(f"The job {public} was withdrawn; stop working on it.", 410)


# --- reading ---------------------------------------------------------------------------------------------------------

_OWNER = select(users.c.id, users.c.name, users.c.team, users.c.role, users.c.created)
_JOBS = (
    select(
        blind_jobs, users.c.name.label("owner"), blind_releases.c.id.label("release"),
        submissions.c.public.label("submission"), submissions.c.state.label("standing"), blind_hosts.c.seen,
    )
    .join(users, users.c.id == blind_jobs.c.owner_id)
    .outerjoin(blind_hosts, blind_hosts.c.board == blind_jobs.c.board)
    .outerjoin(blind_releases, blind_releases.c.job_id == blind_jobs.c.id)
    .outerjoin(submissions, submissions.c.id == blind_releases.c.submission_id)
)  # fmt: skip
_PLAIN = (
    "board", "owner", "team", "entry", "kind", "digest", "size", "state", "phase", "tenths", "message", "log", "blame",
    "attempts", "created", "started", "finished", "release", "seen",
)  # fmt: skip
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


def _missing(public: str) -> NotFound:
    return NotFound(f"There is no job {public[:40]!r} on this board.")


def _row(connection: Connection, public: str) -> Row[Any]:
    row = connection.execute(select(blind_jobs).where(blind_jobs.c.public == public)).first()
    if row is None:
        raise _missing(public)
    return row


def _job(connection: Connection, public: str) -> Job:
    found = _read(connection, connection.execute(_JOBS.where(blind_jobs.c.public == public)).all())
    if not found:
        raise _missing(public)
    return found[0]


def _read(connection: Connection, rows: Sequence[Row[Any]]) -> list[Job]:
    """The jobs, those that wait with their place in the queue of their host."""
    places: dict[str, int] = {}
    if any(row.state == "queued" for row in rows):
        hosts: dict[int, list[str]] = {}
        for board, host in connection.execute(select(blind_hosts.c.board, blind_hosts.c.host_id)):
            hosts.setdefault(host, []).append(board)
        for boards in hosts.values():
            places |= {row.public: place for place, row in enumerate(_in_turn(connection, boards), 1)}
    jobs = []
    for row in rows:
        cells = {name: getattr(row, name) for name in _PLAIN}
        if row.state == "released" and row.standing == "withdrawn":  # by its team, as any submission
            cells |= {"state": "withdrawn", "message": "its figures were released, and taken off the board later."}
        place = places.get(row.public) if row.state == "queued" else None
        jobs.append(Job(id=row.public, place=place, submission=row.submission or "", **cells))
    return jobs


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


# --- releasing -------------------------------------------------------------------------------------------------------


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


def _scrubbed(text: str, most: int) -> str:
    """A text as it can be kept and shown: marks that steer a terminal or show nothing are replaced, the end is cut."""
    kept = "".join(mark if mark.isprintable() or mark in "\n\t" else "\ufffd" for mark in text.strip())
    return kept if len(kept) <= most else f"{kept[: most - 2]} …"
