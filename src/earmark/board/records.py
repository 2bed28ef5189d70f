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

from earmark.submissions import Provenance, SystemCard

Role = Literal["author", "moderator"]
State = Literal["pending", "accepted", "rejected", "withdrawn"]


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

    def key(self, setting: str) -> str:
        """What names the system under a setting in addresses: "slug" or "slug:setting"."""
        return f"{self.slug}:{setting}" if setting else self.slug


@dataclass(frozen=True)
class User:
    """Who may send and decide."""

    id: int
    name: str
    team: str
    role: Role
    created: datetime

    @property
    def moderates(self) -> bool:
        return self.role == "moderator"


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

    def is_of(self, user: User | None) -> bool:
        """Whether the user, or their team, sent it."""
        return user is not None and (user.name == self.owner or (user.team != "" and user.team == self.team))

    def is_readable_by(self, user: User | None) -> bool:
        """Accepted scores are everybody's; others are their author's and the moderators'."""
        return self.state == "accepted" or self.is_of(user) or (user is not None and user.moderates)


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
