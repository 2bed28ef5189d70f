"""Blind evaluation as plain values: who measures what on a board, the jobs of participants, and what was released.

    queued --> running --> held --> released
       |          |  |        \\--> withdrawn (the participant's wish, or the owners' of the recordings)
       |          |  +--> refused, failed
       +--> withdrawn

A job that is given to a worker is leased: the worker alone knows the lease's word, and loses the job when it is not
heard of in time. What a participant is told is one sentence for each state; moments are told to the minute, and
progress in tenths, so that they say little about the recordings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from earmark.board.records import User

JobState: TypeAlias = Literal["queued", "running", "held", "released", "refused", "failed", "withdrawn"]
Phase: TypeAlias = Literal["checks", "rehearsal", "listening", "scoring"]
Blame: TypeAlias = Literal["model", "infrastructure"]
UNFINISHED: tuple[JobState, ...] = ("queued", "running", "held")
MOST_ATTEMPTS = 3
MOST_RESTARTS = 50
"""How often the same worker may begin a job again: a package that fells it every time must end, too."""
SILENT_AFTER = timedelta(minutes=5)
"""After this long without a word from a worker, participants are told."""

_PHASES: Mapping[str, str] = {
    "": "it begins", "checks": "checking the package", "rehearsal": "rehearsing on synthetic sounds",
    "listening": "listening to the blind recordings", "scoring": "computing the scores",
}  # fmt: skip
_ORDINALS = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


@dataclass(frozen=True)
class BlindSet:
    """A blind subset of a board; `offered` when models are measured on it now."""

    subset: str
    title: str
    clips: int
    classes: int
    offered: bool = True


@dataclass(frozen=True)
class PolicyText:
    """A policy as a host announced it: in plain words, and the settings that the board keeps to."""

    digest: str
    text: str
    settings: Mapping[str, Any]
    announced: datetime


@dataclass(frozen=True)
class BlindBoard:
    """A board on which models are measured blind."""

    board: str
    host: str
    policy: str  # digest
    quota: int  # packages of a team in a day
    entries: int  # new systems of a team in a period
    period_days: int  # 0: without end
    seen: datetime
    sets: tuple[BlindSet, ...]
    queued: int
    running: int

    @property
    def offered(self) -> tuple[BlindSet, ...]:
        return tuple(each for each in self.sets if each.offered)


@dataclass(frozen=True)
class Package:
    """A package as the board keeps it: `digest` is of its contents, `sha256` of the file."""

    entry: str
    kind: str
    digest: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Job:
    """A package that waits to be measured, or what became of it. `place` is its place in the queue, from 1."""

    id: str
    board: str
    owner: str
    team: str
    entry: str
    kind: str
    digest: str
    size: int
    state: JobState
    phase: str
    tenths: int
    message: str
    log: str
    blame: str
    attempts: int
    created: datetime
    started: datetime | None
    finished: datetime | None
    place: int | None = None
    release: int | None = None  # its audit entry: the address, not the number
    submission: str = ""  # that its rows came with
    seen: datetime | None = None  # when a worker of the host was heard of last

    def is_of(self, user: User | None) -> bool:
        """Whether the user, or their team, sent it."""
        return user is not None and (user.name == self.owner or user.counted_as == self.team)

    def is_readable_by(self, user: User | None) -> bool:
        return self.is_of(user) or (user is not None and user.moderates)

    @property
    def unfinished(self) -> bool:
        return self.state in UNFINISHED

    def told(self, now: datetime) -> str:
        """What the participant is told: one or two sentences."""
        return f"{self._state()}{self._silence(now)}"

    def _state(self) -> str:
        if self.state == "queued":
            again = " again, after a failure of the host's machines" if self.attempts else ""
            return f"Queued as {ordinal(self.place or 1)}{again}."
        if self.state == "running":
            share = f", {10 * self.tenths} %" if self.phase == "listening" else ""
            return f"Running: {_PHASES.get(self.phase, _PHASES[''])}{share}."
        if self.state == "held":
            waits = self.message.removeprefix("Measured.").strip() or "The figures wait for the next release."
            return f"Measured. {waits}"
        if self.state == "released":
            return self.message or "Released: its figures are on the board."
        if self.state == "withdrawn":
            return f"Withdrawn{f': {self.message}' if self.message else '.'}"
        why = f"{self.state.capitalize()}: {self.message or 'no reason was given.'}"
        return f"{why} It does not count for the quota." if self.blame == "infrastructure" else why

    def _silence(self, now: datetime) -> str:
        if self.state not in ("queued", "running") or self.seen is None or now - self.seen < SILENT_AFTER:
            return ""
        return f" No worker has been seen since {minute(self.seen, now)}; the job is kept and goes on when one is back."


@dataclass(frozen=True)
class Lease:
    """A job as a worker gets it. `word` is what every later call has to know."""

    id: str
    word: str
    board: str
    team: str
    entry: str
    kind: str
    digest: str  # SHA-256 of the file
    size: int
    attempt: int


@dataclass(frozen=True)
class Release:
    """A public audit entry: what left the data side, by which policy. `id` is its address on the board."""

    id: int
    job: str
    board: str
    entry: str  # the name of the system
    owner: str
    team: str
    policy: str
    facts: Mapping[str, Any]  # the host's public audit entry, as it came
    digest: str
    released: datetime
    withdrawn: datetime | None
    reason: str
    submission: str
    slug: str

    @property
    def number(self) -> int:
        """The number that owners, hosts and readers use: that of the entry in the host's ledger."""
        number = self.facts.get("number")
        return number if isinstance(number, int) and not isinstance(number, bool) else self.id

    @property
    def shown(self) -> Mapping[str, Any]:
        """What is shown of the host's entry: of one that was withdrawn, that it was there, and no figure."""
        if self.withdrawn is None:
            return self.facts
        return {name: self.facts[name] for name in _OF_WITHDRAWN if name in self.facts}


_OF_WITHDRAWN = ("number", "at", "kind", "commitment", "previous", "hash", "remarks")


def ordinal(number: int) -> str:
    """ "third" for 3; "23rd" for 23."""
    if 0 < number < len(_ORDINALS):
        return _ORDINALS[number]
    end = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{end}"


def coarse(moment: datetime) -> datetime:
    """The minute that a moment lies in: how long something took to the second tells something about it."""
    return moment.replace(second=0, microsecond=0)


def minute(moment: datetime, now: datetime) -> str:
    """A moment in words: the time of today, else with the day."""
    return f"{moment:%H:%M} UTC" if moment.date() == now.date() else f"{moment:%d %b %Y, %H:%M} UTC"
