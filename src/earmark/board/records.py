"""What the board knows, as plain values: storage returns them, pages and API show them.

A board is a suite of the score table (`vocsim`, `codec-superb`, your own). A system belongs to one board and to whoever
sent it first. A submission is one document: a score table, or a codec's JSON, with a card for each of its systems. Its
rows are never changed: a score is *live* when its submission is accepted and no later accepted submission of the
same system has a row with the same key.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

__all__ = [
    "Event",
    "Kind",
    "Provenance",
    "Role",
    "State",
    "Submission",
    "System",
    "SystemCard",
    "Token",
    "User",
]

Kind = Literal["representation", "codec", "generator"]
Role = Literal["author", "moderator"]
State = Literal["pending", "accepted", "rejected", "withdrawn"]
Provenance = Literal["self-reported", "reproduced", "blind", "printed"]


@dataclass(frozen=True)
class SystemCard:
    """What an author says of a system. Unknown facts stay None or empty: they are shown as unknown, never as 0."""

    name: str
    kind: Kind = "representation"
    title: str = ""
    family: str = ""  # the model behind several configurations, e.g. Whisper
    description: str = ""
    authors: tuple[str, ...] = ()
    url: str = ""  # http or https only
    licence: str = ""
    training_free: bool | None = None  # nothing was trained on this benchmark's own data
    parameters_m: float | None = None
    real_time_factor: float | None = None  # seconds of work for one second of sound
    kbps: float | None = None
    pretraining: tuple[str, ...] = ()
    command: str = ""  # how to reproduce the scores
    citation: str = ""
    year: int | None = None


@dataclass(frozen=True)
class System:
    """A system as the board keeps it. `slug` is its name in addresses, unique within its board."""

    id: int
    board: str
    slug: str
    card: SystemCard
    owner: str  # name of the user who sent it first
    team: str
    created: datetime


@dataclass(frozen=True)
class Submission:
    """One document that was sent. `id` is random text, the last part of its permalink."""

    id: str
    board: str
    systems: tuple[str, ...]  # slugs
    owner: str
    team: str
    state: State
    provenance: Provenance
    created: datetime
    decided: datetime | None
    decided_by: str
    reason: str  # of a rejection or a withdrawal
    rows: int
    digest: str  # SHA-256 of the canonical document
    version: str  # of Earmark, as the document says
    notes: tuple[str, ...] = ()  # warnings of the rules, shown beside the submission
    names: tuple[str, ...] = ()  # of the systems, in the order of their slugs


@dataclass(frozen=True)
class User:
    """Who may send and decide."""

    id: int
    name: str
    team: str
    role: Role
    created: datetime


@dataclass(frozen=True)
class Token:
    """An API token as it may be shown: its first characters, never the whole, of which only a hash is kept."""

    id: int
    user: str
    prefix: str
    label: str
    created: datetime
    last_used: datetime | None
    revoked: datetime | None


@dataclass(frozen=True)
class Event:
    """A line of the audit trail."""

    id: int
    at: datetime
    user: str
    action: str  # submitted, accepted, rejected, withdrew, created_token, revoked_token …
    submission: str
    detail: str
