"""What the board knows, as plain values: storage returns them, pages and API show them; and how names are compared.

A board is a suite of the score table (`vocsim`, `codec-superb`, your own). A system belongs to one board and to whoever
sent it first. A submission is one document: a score table, or a codec's JSON, with a card for each of its systems. Its
rows are never changed: a score is *live* when its submission is accepted and no later accepted submission of the
same system has a row with the same key.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Literal

from earmark.submissions import Provenance, SystemCard

Role = Literal["author", "moderator", "host", "worker"]
State = Literal["pending", "accepted", "rejected", "withdrawn"]
ChangeState = Literal["waiting", "applied", "rejected"]


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
    """Who may do what, by role.

    An author sends scores, and changes and withdraws their own. A moderator also decides about what others sent, marks
    where scores come from, and corrects and withdraws what is on the board. A host also bans and erases users, gives
    roles, and writes the board's own texts. A worker is the data side of blind evaluation: a program of the host's.
    """

    id: int
    name: str
    team: str
    role: Role
    created: datetime
    banned: datetime | None = None

    @property
    def moderates(self) -> bool:
        return self.role in ("moderator", "host")

    @property
    def hosts(self) -> bool:
        return self.role == "host"

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
    size: int = 0  # bytes of the document; 0 for those that came before this was counted

    def is_of(self, user: User | None) -> bool:
        """Whether the user, or their team, sent it."""
        return user is not None and (user.name == self.owner or (user.team != "" and user.team == self.team))

    def is_readable_by(self, user: User | None) -> bool:
        """Accepted scores are everybody's; others are their author's and the moderators'."""
        return self.state == "accepted" or self.is_of(user) or (user is not None and user.moderates)


@dataclass(frozen=True)
class PendingName:
    """A system of a submission that waits, by the name and title of its card."""

    submission: str
    name: str
    title: str
    owner: str
    team: str


@dataclass(frozen=True)
class Quotas:
    """The most that an author, or a team together, may send within 24 hours; 0 sets no limit. Moderators have none."""

    submissions: int = 100
    rows: int = 400_000
    bytes: int = 80_000_000  # of documents when unpacked, which is about what the database grows by


@dataclass(frozen=True)
class Decision:
    """What became of one of several submissions that were decided together: its new state, or why it has none."""

    id: str
    state: State | None
    wrong: str = ""


@dataclass(frozen=True)
class CardChange:
    """A correction of a card without scores: `changes` are the new values of some fields, `before` what they were."""

    id: int
    board: str
    slug: str
    system: str  # its name
    owner: str  # who asked for it
    created: datetime
    state: ChangeState
    changes: Mapping[str, object]
    before: Mapping[str, object]
    why: str
    decided: datetime | None
    decided_by: str
    reason: str


@dataclass(frozen=True, order=True)
class HistoryLine:
    """A change of a system beside its scores: of its card, or of where its scores come from."""

    at: datetime
    user: str
    what: str


@dataclass(frozen=True)
class Draft:
    """A document that its author has not sent yet; nobody else sees it."""

    id: str
    board: str
    names: tuple[str, ...]  # of the systems
    rows: int
    digest: str
    size: int
    notes: tuple[str, ...]
    created: datetime


@dataclass(frozen=True)
class Contact:
    """Where an author is told what became of a submission; "" where they do not want to be. `secret` signs webhooks."""

    mail: str = ""
    confirmed: datetime | None = None
    webhook: str = ""
    secret: str = ""


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
