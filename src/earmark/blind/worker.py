"""The worker beside the recordings: it takes jobs from a board, measures them, and sends what the policy lets out.

    claim --> package --> checks --> rehearsal --> listening --> scores --> ledger ==> outbox --> board
              its digest                           set by set              one decision for a job

A worker only asks; nobody asks it. It may be killed at any moment: what it had heard of a set lies in the folder of the
job, what was decided lies in the ledger, and what the board has not acknowledged is sent again. The board hands a job
to one worker at a time by a lease, and refuses what comes under an old one. The ledger decides once for a job, however
often it is asked.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import secrets
import shutil
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from earmark.atomic import write_whole
from earmark.blind import measure
from earmark.blind.ledger import Decision, Ledger
from earmark.blind.models import ModelFault, scrubbed
from earmark.blind.packages import Package, PackageRefused, unpack
from earmark.blind.rehearsal import rehearse
from earmark.blind.sets import Host
from earmark.errors import EarmarkError, InputError, UsageError
from earmark.scores import Scores
from earmark.submissions.client import BoardClient, BoardRefusal
from earmark.submissions.texts import fault_of

log = logging.getLogger("earmark.blind")

BEAT_SECONDS = 15.0
"""How often the board hears of a job: well within a lease."""
PROGRESS_SECONDS = 300.0
"""How often participants learn how far a job is."""
_UNHEARD = ("checks", "rehearsal")
"""What is done before a model hears a recording."""
MOST_TROUBLES = 2
"""Jobs in a row that fail on the host's side before the worker stops: it would spoil those that wait."""
LONGEST_PAUSE = 600.0
LONGEST = 200
"""Characters of a name that the board gives."""
_MADE = ("package.zip", "package", "sets", "seconds", "verdict")
"""What is made in the folder of a job and removed when it has ended; its log stays with the host."""
_LATER = (401, 408, 429, 500, 502, 503, 504)
"""Answers that say nothing of what was sent: it is sent again."""
_GONE = (404, 410)
"""The participant withdrew the job, or the board does not know it."""
_NOT_TAKEN = "The board did not take the figures of this job; its host knows of it."
_INFRASTRUCTURE = "The host's worker could not finish the job, for no fault of your model; it is tried again."


class LostJob(Exception):
    """The job is somebody else's now, or was withdrawn: what is being done for it ends."""


class Stopped(Exception):
    """The worker was told to stop: the job waits as it is, and is taken up again."""


class Job(NamedTuple):
    """What the board hands out."""

    id: str
    lease: str
    board: str
    team: str
    entry: str
    digest: str  # SHA-256 of the archive

    @classmethod
    def of(cls, claimed: Mapping[str, Any], board: str) -> Job:
        """What the board says, which is not believed: its words become names of folders and lines of the ledger."""
        job = cls(**{part: str(claimed.get(part, "")) for part in cls._fields})
        fits = re.fullmatch(r"[0-9a-f]{16}", job.id) and re.fullmatch(r"[0-9a-f]{64}", job.digest)
        if not fits or job.board != board or any(fault_of(text, LONGEST) for text in (job.team, job.entry, job.lease)):
            raise InputError("The board handed out a job that is none; it is left alone.")
        return job


@dataclass
class Worker:
    """Takes one job after the other.

    Args:
        host: the sets, their policy, and the limits of the sandbox.
        board: where jobs come from and releases go to.
        ledger: what was decided, on this side.
        folder: packages and vectors of the job at hand, and the logs of all jobs; nothing of it is ever sent.
        allowed: parts of the sandbox that may be missing, by name.
        clock: the time of decisions.
        stop: set it, and the worker ends after the clip at hand.
        progress_seconds: how often participants learn how far a job is; 0: never.
    """

    host: Host
    board: BoardClient
    ledger: Ledger
    folder: Path
    allowed: Collection[str] = ()
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    stop: threading.Event = field(default_factory=threading.Event)
    progress_seconds: float = PROGRESS_SECONDS
    name: str = field(init=False)
    _troubled: list[str] = field(default_factory=list, init=False)  # attempts in a row that failed on this side

    def __post_init__(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.name = _own_name(self.folder)

    def announce(self) -> None:
        """Tell the board which sets are measured here, and under which policy; UsageError where it does not hold."""
        if refused := self.ledger.adopt(self.host.policy, self.clock()):
            raise UsageError(refused)
        sets = [blind.public_facts() for blind in self.host.sets.values()]
        self.board.announce_sets(self.host.board, sets, self.host.policy.announcement())

    def step(self) -> bool:
        """Send what is due, then take one job and finish it; False where there was none."""
        self.send_due()
        claimed = self.board.claim_job(self.name)
        if claimed is None:
            return False
        job = Job.of(claimed, self.host.board)
        log.info("job %s: %s of %s", job.id, job.entry, job.team)
        self._finish(job)
        self.send_due()
        return True

    def run(self, pause: float, *, until_empty: bool = False) -> None:
        """Work until told to stop. A board that does not answer is asked again later: nothing is lost meanwhile."""
        announced = False
        while not self.stop.is_set():
            try:
                if not announced:
                    self.announce()
                    announced = True
                worked = self.step()
            except Stopped:
                return
            except (BoardRefusal, InputError) as error:
                status = getattr(error, "status", 503)
                if until_empty or status in (401, 403) or not (announced or status in _LATER):
                    raise  # time does not mend a wrong token, or sets that the board does not take
                log.warning("%s", error)
                worked = False
            if len(set(self._troubled)) >= MOST_TROUBLES:
                raise InputError(
                    f"{MOST_TROUBLES} jobs in a row failed on the host's side, and the worker stops: "
                    f"see the host.log of each in {self.folder / 'jobs'}."
                )
            if worked and self._troubled:  # the machine may recover; the job has few tries
                self.stop.wait(min(LONGEST_PAUSE, 6 * pause * 2 ** len(self._troubled)))
            if not worked:
                if until_empty:
                    return
                self.stop.wait(pause)

    def send_due(self) -> int:
        """Send every decision whose time has come; what the board has already is acknowledged and not sent twice."""
        sent, trouble = 0, None
        for decision in self.ledger.due(self.clock(), self.host.board):
            try:
                sent += self._send(decision)
            except BoardRefusal as refusal:  # the others are not held up by it
                trouble = refusal
        if trouble is not None:
            raise trouble
        return sent

    def _send(self, decision: Decision) -> bool:
        """Whether the board has it now.

        A release that the board will never take is written down as such. What the owners take back is sent until the
        board has done it, whatever it answers.
        """
        try:
            if decision.kind != "release":  # a withdrawal, or a refusal that the job's own worker could not tell
                self.board.withdraw_release(decision.job, decision.message)
            else:
                self.board.release_job(decision.job, decision.public, decision.document or {})
        except BoardRefusal as refusal:
            log.error("job %s: the board does not take the %s: %s", decision.job, decision.kind, refusal)
            if refusal.status in _LATER or decision.kind == "withdrawal":
                raise
            self.ledger.acknowledge(decision.job, decision.kind, now=self.clock(), taken=False)
            if decision.kind == "release" and refusal.status not in _GONE:
                with contextlib.suppress(BoardRefusal):
                    self.board.withdraw_release(decision.job, _NOT_TAKEN)
            return False
        log.info("job %s: %s sent", decision.job, decision.kind)
        self.ledger.acknowledge(decision.job, decision.kind, now=self.clock())
        return True

    # --- one job -----------------------------------------------------------------------------------------------------

    def _finish(self, job: Job) -> None:
        """Measure a job and have it decided, or say what is wrong with it; whatever happens, the board is told."""
        place = self.folder / "jobs" / job.id
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            verdict = read_verdict(place) or self._judged(job, place)
            write_verdict(place, verdict)  # told again, where the board was not reached: nothing is heard twice
            self._tell(job, verdict)
        except Stopped:
            log.info("job %s: it waits, and is taken up again", job.id)
            raise
        except LostJob:
            log.warning("job %s: it was withdrawn, or another worker has it", job.id)
        except BoardRefusal as refusal:
            if refusal.status not in (404, 409, 410):
                raise
            log.warning("job %s: the board no longer takes it from this worker (%s)", job.id, refusal)
        except Exception as error:  # our fault, whatever it is: the participant is not charged
            self._troubled.append(job.id)
            note(place, "".join(traceback.format_exception(error)))
            log.error("job %s: %s: %s (see %s)", job.id, type(error).__name__, error, place / "host.log")
            self.board.fail_job(job.id, job.lease, "infrastructure", _INFRASTRUCTURE, "")
        else:
            self._troubled = []
        self._clear(place)

    def _judged(self, job: Job, place: Path) -> Verdict:
        """What becomes of a job: the ledger's decision, or what is wrong with the package or the model."""
        try:
            with _Beat(self.board, job, self.stop, self.progress_seconds) as beat:
                decision = self.ledger.decision(job.id) or self._decided(job, place, beat)
        except PackageRefused as refusal:
            return Verdict("refused", str(refusal), "\n".join(refusal.problems))
        except _Rehearsed as found:
            return Verdict("failed", str(found))
        except ModelFault as fault:
            return Verdict("failed", fault.sentence)
        if decision.kind == "refusal":
            return Verdict("refused", decision.message)
        return Verdict("measured", decision.waiting)

    def _tell(self, job: Job, verdict: Verdict) -> None:
        log.info("job %s: %s. %s", job.id, verdict.state, verdict.message)
        if verdict.state == "measured":
            self.board.hold_job(job.id, job.lease, verdict.message)
            return
        refused = verdict.state == "refused"
        self.board.fail_job(job.id, job.lease, "model", verdict.message, verdict.log, refused=refused)
        decision = self.ledger.decision(job.id)
        if decision is not None and decision.kind == "refusal":
            self.ledger.acknowledge(job.id, "refusal", now=self.clock())

    def _decided(self, job: Job, place: Path, beat: _Beat) -> Decision:
        """The ledger's decision on a job whose package is checked, rehearsed, heard and scored."""
        host = self.host
        beat.say("checks")
        package = self._package(job, place)
        beat.say("rehearsal")
        rehearsal = rehearse(
            package, limits=host.limits, allowed=self.allowed, seconds_per_clip=host.seconds_per_clip,
            progress=beat.tick,
        )  # fmt: skip
        note(place, f"{rehearsal.sentence}\n{rehearsal.log}")
        if not rehearsal.passed:
            raise _Rehearsed(rehearsal.told)
        refused = self.ledger.admit(
            job=job.id, board=job.board, team=job.team, entry=job.entry, distance=package.distance,
            correction=package.correction, policy=host.policy, card=package.system,
            resumed=(place / "sets").exists(), now=self.clock(),
        )  # fmt: skip
        if refused:
            raise PackageRefused([refused])
        exact, fingerprints = Scores(), {}
        for number, (name, blind) in enumerate(host.sets.items()):
            beat.say("listening", number / len(host.sets), 1 / len(host.sets))
            vectors = measure.hear(
                package, blind, host=host, folder=place, allowed=self.allowed, progress=beat.tick
            )  # fmt: skip
            beat.say("scoring", (number + 1) / len(host.sets), 0.0)
            exact = exact + measure.score(vectors, blind, package, host=host)
            fingerprints[name] = measure.fingerprint(vectors, blind, package, host=host)
        beat.check()
        return self.ledger.decide(
            job=job.id, board=job.board, team=job.team, entry=job.entry, digest=package.digest, exact=exact,
            fingerprints=fingerprints, policy=host.policy, card=package.system, now=self.clock(),
        )  # fmt: skip

    def _package(self, job: Job, place: Path) -> Package:
        archive, unpacked = place / "package.zip", place / "package"
        if not archive.exists():
            self.board.fetch_package(job.id, job.lease, archive, job.digest)
        shutil.rmtree(unpacked, ignore_errors=True)
        package = unpack(archive, unpacked)
        if package.entry != job.entry:
            raise PackageRefused([f"The package is of {package.entry!r} and the job of {job.entry!r}."])
        return package

    def _clear(self, place: Path) -> None:
        """Remove the package and the vectors of a job; its log stays with the host."""
        for entry in (place / name for name in _MADE):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink(missing_ok=True)


class Verdict(NamedTuple):
    """What became of a job: measured, refused or failed, and what the participant is told."""

    state: str
    message: str
    log: str = ""


def write_verdict(place: Path, verdict: Verdict) -> None:
    write_whole(place / "verdict", json.dumps(verdict).encode())


def read_verdict(place: Path) -> Verdict | None:
    """The verdict of a job that the board has not taken yet."""
    file = place / "verdict"
    return Verdict(*json.loads(file.read_bytes())) if file.exists() else None


class _Rehearsed(EarmarkError):
    """The model failed on synthetic sounds, told in fixed words: what it said itself stays with the host."""


class _Beat:
    """Tells the board every few seconds that a job is alive; a lost job's work ends.

    How far it is, in tenths, is told anew only every few minutes: a model could signal by the time that it takes.
    """

    def __init__(self, board: BoardClient, job: Job, stopped: threading.Event, every: float) -> None:
        self._board, self._job, self._stopped, self._every = board, job, stopped, every
        self._told, self._slot = ("checks", 0), -1
        self._phase, self._start, self._share, self._done = "checks", 0.0, 1.0, 0.0
        self._lost, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)

    def __enter__(self) -> _Beat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def say(self, phase: str, start: float = 0.0, share: float = 1.0) -> None:
        """What is done now, and which share of that phase is to come until the next word."""
        self._phase, self._start, self._share, self._done = phase, start, share, 0.0
        self.check()

    def tick(self, done: float, total: float) -> None:
        before, self._done = self._tenths, done / total if total else 0.0
        if self._tenths > before and self._phase == "listening":
            log.info("job %s: %s, %d %%", self._job.id, self._phase, 10 * self._tenths)
        self.check()

    @property
    def _tenths(self) -> int:
        return int(10 * min(1.0, self._start + self._share * self._done))

    def check(self) -> None:
        if self._lost.is_set():
            raise LostJob
        if self._stopped.is_set():
            raise Stopped

    def shown(self, now: float) -> tuple[str, int]:
        """What the board may know at a time: the phase, and tenths of it."""
        slot = int(now // self._every) if self._every else 0
        if self._phase in _UNHEARD:
            self._told = self._phase, 0
        elif self._told[0] in _UNHEARD:
            self._told, self._slot = ("listening", 0), slot
        elif slot != self._slot:
            self._told, self._slot = (self._phase, self._tenths), slot
        return self._told

    def _go(self) -> None:
        while True:
            try:
                self._board.report_progress(self._job.id, self._job.lease, *self.shown(time.time()))
            except BoardRefusal as refusal:
                if refusal.status in (404, 409, 410):
                    self._lost.set()
                    return
                log.warning("%s", refusal)
            except EarmarkError as error:  # no answer: the work goes on, and the board will hear of it
                log.warning("%s", error)
            if self._stop.wait(BEAT_SECONDS):
                return


def note(place: Path, text: str) -> None:
    """Add to the log of a job, which stays with the host."""
    if text:
        with (place / "host.log").open("a", encoding="utf-8", errors="replace") as stream:
            stream.write(f"--- {datetime.now(UTC):%Y-%m-%d %H:%M:%S}\n{scrubbed(text.rstrip(), len(text))}\n")


def _own_name(folder: Path) -> str:
    """The name of the worker that works in a folder: made once, so that it finds its own job after a restart."""
    file = folder / "worker"
    if not file.exists():
        write_whole(file, f"worker-{secrets.token_hex(6)}\n".encode())
    return file.read_text("utf-8").strip()


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """The only worker in a folder: two of them would be one to the board. InputError where one is there."""
    import fcntl

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"A worker is at work in {folder} already; give another --folder.") from None
        yield
