"""What the board knows, as plain values: storage returns them, pages and API show them; and how names are compared.

A board is a suite of the score table (`vocsim`, `codec-superb`, your own). A system belongs to one board and to whoever
sent it first. A submission is one document: a score table, or a codec's JSON, with a card for each of its systems. Its
rows are never changed: a score is *live* when its submission is accepted and no later accepted submission of the
same system has a row with the same key.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Literal

from earmark.submissions import Provenance, SystemCard

Role = Literal["author", "moderator", "worker"]
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
    """Who may send and decide. A worker is the data side of blind evaluation: a program of the host's."""

    id: int
    name: str
    team: str
    role: Role
    created: datetime

    @property
    def moderates(self) -> bool:
        return self.role == "moderator"

    @property
    def counted_as(self) -> str:
        """Whom a quota counts for: the team, or the user who has none. No name can be taken for another's."""
        return f"team {self.team}" if self.team else f"user {self.name}"


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


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ODD = re.compile(r"[^a-z0-9]+")
_MOST_SLUG = 60


def sought(text: str) -> str:
    """A text to look for: what no database can hold becomes a mark that no name has, so that nothing is found."""
    return _UNSTORABLE.sub("\ufffd", text)


def slug_of(name: str, taken: Collection[str] = ()) -> str:
    """A name in the letters of an address: "Wav2Vec2 ♭ (Größe)" is wav2vec2-grosse; numbered where that is taken."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss")).encode("ascii", "ignore").decode().lower()
    slug = _ODD.sub("-", plain)[:_MOST_SLUG].strip("-") or "system"
    numbered = (f"{slug}-{number}" for number in count(2))
    return slug if slug not in taken else next(other for other in numbered if other not in taken)
