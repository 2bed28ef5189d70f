"""The queue of blind evaluation: jobs and their leases.

Each call is one transaction without other writers, so that no two workers get one job. A lease has a random word, new
each time the job is given out: a worker that was thought dead and comes back with an old word changes nothing. What
may be sent twice after a lost answer (a claim, a withdrawal) gives the same answer twice.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Any

from sqlalchemy import Connection, Row, and_, func, insert, or_, select, update

from earmark.board.jobs import MOST_ATTEMPTS, MOST_RESTARTS, UNFINISHED, Blame, Job, JobState, Lease, Package, Phase
from earmark.board.records import User, sought
from earmark.board.refusals import Conflict, NotFound, Refusal
from earmark.board.storage.accounts import current_user, list_limit, now, record
from earmark.board.storage.arrivals import claim_systems
from earmark.board.storage.blind_quotas import job_of_package, refuse_quota
from earmark.board.storage.blind_sets import boards_of, offering
from earmark.board.storage.boards import refuse_closed
from earmark.board.storage.definitions import definition_of
from earmark.board.storage.tables import blind_hosts, blind_jobs, blind_releases, submissions, users
from earmark.databases import Part, in_parts, reading
from earmark.submissions import SystemCard
from earmark.submissions.texts import checked_text
from earmark.wording import counted

LEASE_SECONDS = 120.0
MOST_MESSAGE, _MOST_LOG = 1000, 20_000
_SEEN_AGAIN = timedelta(seconds=30)
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_DEAD = "the host's machines failed {times}; nothing is wrong with your package, send it again."


class BlindJobs(Part):
    """The part of the store behind the queue. `clock` says what time it is."""

    clock: Callable[[], datetime] = staticmethod(now)

    # --- participants ------------------------------------------------------------------------------------------------

    def check_quota(self, user: User, board: str, sha256: str = "") -> None:
        """Refuse, before a package is sent, what would be refused afterwards anyway; not what came before."""
        with reading(self.engine) as connection:
            offer, owner = offering(connection, board), current_user(connection, user)
            if job_of_package(connection, offer.board, owner, blind_jobs.c.sha256 == sought(sha256)) is None:
                refuse_quota(connection, offer, owner, "", self.clock())

    def add_job(self, user: User, board: str, package: Package, card: SystemCard, id: str) -> tuple[Job, bool]:
        """Queue a package that is on the disk already; False beside the job when the same package came before."""

        def work(connection: Connection) -> tuple[Job, bool]:
            owner, at = current_user(connection, user), self.clock()
            offer = offering(connection, board)
            refuse_closed(definition_of(connection, board), owner)
            same = job_of_package(connection, board, owner, blind_jobs.c.digest == package.digest)
            if same is not None:
                return job_of(connection, same), False
            refuse_quota(connection, offer, owner, package.entry, at)
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
            return job_of(connection, id), True

        return self._write(work)

    def job(self, id: str) -> Job:
        """The job of that id, in whatever state; NotFound when there is none."""
        with reading(self.engine) as connection:
            return job_of(connection, sought(id))

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
            job = job_of(connection, row.public)
            if not job.is_readable_by(sender):
                raise _missing(row.public)
            if job.state == "withdrawn":
                return job
            if not job.unfinished:
                more = f"; withdraw the submission {job.submission} instead" if job.submission else ""
                raise Conflict(f"The job {job.id} is {job.state} already{more}.")
            end_job(connection, row, self.clock(), "withdrawn", message=f"taken back by {sender.name}.")
            record(connection, sender.name, "withdrew_package", detail=f"job {job.id}")
            return job_of(connection, row.public)

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
            boards = boards_of(connection, host)
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
            row = hosted_job(connection, sought(id), user)
            if row.state == "held" and _same_word(row.lease, lease):
                return job_of(connection, row.public)
            row = _leased(connection, row.public, user, lease)
            kept = scrubbed(message, MOST_MESSAGE)
            _change(connection, row, state="held", message=kept, phase="", tenths=10, lease_ends=None, worker="")
            return job_of(connection, row.public)

        return self._write(work)

    def fail_job(
        self, id: str, user: User, lease: str, blame: Blame, message: str, log: str = "", *, refused: bool = False
    ) -> Job:
        """End a job that cannot be measured, or queue it again when the host's machines are to blame.

        A job that is held needs no lease: the data side may decide after the measurement that nothing leaves.
        """
        state: JobState = "refused" if refused else "failed"
        ended = {"message": scrubbed(message, MOST_MESSAGE), "log": scrubbed(log, _MOST_LOG), "blame": blame}

        def work(connection: Connection) -> Job:
            row = hosted_job(connection, sought(id), user)
            if row.state == state and (row.message, row.blame) == (ended["message"], blame):
                return job_of(connection, row.public)  # said again, after a lost answer
            if row.state != "held" or blame == "infrastructure":
                row = _leased(connection, row.public, user, lease)
            if blame == "infrastructure":
                self._give_back(connection, row)
            else:
                end_job(connection, row, self.clock(), state, **ended)
            return job_of(connection, row.public)

        return self._write(work)

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
        end_job(connection, row, self.clock(), "failed", message=_DEAD.format(times=times), blame="infrastructure")

    def _note_worker(self, connection: Connection, boards: Collection[str], at: datetime) -> None:
        """Remember that a worker was heard of; it asks often, so about twice a minute."""
        stale = and_(blind_hosts.c.board.in_(boards), blind_hosts.c.seen < at - _SEEN_AGAIN)
        connection.execute(update(blind_hosts).where(stale).values(seen=at))


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


def end_job(connection: Connection, row: Row[Any], at: datetime, state: JobState, **more: Any) -> None:
    """Take a job from its worker for good."""
    ended = {"lease": "", "lease_ends": None, "worker": "", "finished": at, "blame": ""}
    _change(connection, row, state=state, **{**ended, **more})


def _lease(row: Row[Any]) -> Lease:
    return Lease(
        row.public, row.lease, row.board, row.team, row.entry, row.kind, row.sha256, row.size, row.attempts
    )  # fmt: skip


def hosted_job(connection: Connection, public: str, user: User) -> Row[Any]:
    """The job, for the worker account of its board's host; for everybody else there is none."""
    row = _row(connection, public)
    if row.board not in boards_of(connection, current_user(connection, user)):
        raise _missing(public)
    return row


def _leased(connection: Connection, public: str, user: User, lease: str) -> Row[Any]:
    """The job, for the worker that has it; Conflict when its lease was given to another, or ended with the job."""
    row = hosted_job(connection, public, user)
    if row.state == "withdrawn":
        raise withdrawn_job(public)
    if row.state != "running" or not _same_word(row.lease, lease):
        raise Conflict(f"The lease of the job {public} is over: it is {row.state} now; stop working on it.")
    return row


def _same_word(kept: str, given: str) -> bool:
    return bool(kept) and hmac.compare_digest(kept.encode(), given.encode("utf-8", "replace"))


def withdrawn_job(public: str) -> Refusal:
    return Refusal(f"The job {public} was withdrawn; stop working on it.", 410)


# --- reading ---------------------------------------------------------------------------------------------------------

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


def _missing(public: str) -> NotFound:
    return NotFound(f"There is no job {public[:40]!r} on this board.")


def _row(connection: Connection, public: str) -> Row[Any]:
    row = connection.execute(select(blind_jobs).where(blind_jobs.c.public == public)).first()
    if row is None:
        raise _missing(public)
    return row


def job_of(connection: Connection, public: str) -> Job:
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


def scrubbed(text: str, most: int) -> str:
    """A text as it can be kept and shown: marks that steer a terminal or show nothing are replaced, the end is cut."""
    kept = "".join(mark if mark.isprintable() or mark in "\n\t" else "\ufffd" for mark in text.strip())
    return kept if len(kept) <= most else f"{kept[: most - 2]} …"
