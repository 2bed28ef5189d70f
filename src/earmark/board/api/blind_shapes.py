"""What the routes of blind evaluation take and send, as models that OpenAPI describes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from earmark.board.api.shapes import Asked, Line, Shape, fields_of
from earmark.board.jobs import Blame, BlindBoard, BlindSet, JobState, Phase

Word = Annotated[str, StringConstraints(max_length=100)]
Name = Annotated[str, StringConstraints(max_length=200, min_length=1, pattern=r"^[^\x00-\x1f\x7f]+$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, StringConstraints(max_length=200_000, pattern=r"^[^\x00]*$")]
Count = Annotated[int, Field(ge=1, le=10**12)]


class SetShape(fields_of(BlindSet)):  # type: ignore[misc]
    """A blind set: `offered` when models are measured on it now."""


class BlindBoardShape(fields_of(BlindBoard, sets=list[SetShape])):  # type: ignore[misc]
    """A board on which models are measured blind: `quota` packages of a team a day, `entries` systems in a period."""


class JobShape(BaseModel):
    """A package and what became of it. Moments are told to the minute, progress in tenths."""

    id: str
    board: str
    entry: str = Field(description="The name of the system on the board.")
    kind: str
    state: JobState
    place: int | None = Field(description="Its place in the queue, from 1.")
    phase: str
    tenths: int
    sentence: str = Field(description="The state in words.")
    message: str
    log: str = Field(description="Everything that is wrong with a package that was refused, one line each.")
    digest: str = Field(description="SHA-256 of the package's contents.")
    created: datetime
    started: datetime | None
    finished: datetime | None
    release: str | None = Field(description="The address of its audit entry.")
    page: str


class ReleaseShape(BaseModel):
    """A release: `entry` is the public part of the host's audit entry."""

    number: int = Field(description="The number of the entry in the host's ledger.")
    board: str
    system: str
    team: str
    policy: str
    released: datetime
    withdrawn: datetime | None
    reason: str
    submission: str
    entry: dict[str, JsonValue]
    page: str


class LeaseShape(Shape):
    """A job for a worker; `digest` is the SHA-256 of its file."""

    id: str
    lease: str
    board: str
    team: str
    entry: str
    kind: str
    digest: str
    size: int
    attempt: int
    lease_seconds: float


class SetAsked(Asked):
    subset: Name
    title: Line = ""
    clips: Count
    classes: Count


class PolicyAsked(Asked):
    """A policy: its words, and what the board keeps to. Other settings are kept beside them."""

    model_config = ConfigDict(extra="allow", strict=True)

    digest: Digest
    text: Text
    quota: Count
    entries: Count
    period_days: Annotated[int, Field(ge=0, le=100_000)] = 0


class Announcement(Asked):
    board: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]
    sets: Annotated[list[SetAsked], Field(min_length=1, max_length=200)]
    policy: PolicyAsked


class ClaimAsked(Asked):
    worker: Name


class ProgressAsked(Asked):
    lease: Word
    phase: Phase
    tenths: Annotated[int, Field(ge=0, le=10)]


class HoldAsked(Asked):
    lease: Word
    message: Text = ""


class FailureAsked(Asked):
    lease: Word
    blame: Blame
    message: Text
    log: Text = ""
    refused: bool = False


class ReleaseAsked(Asked):
    entry: dict[str, JsonValue]
    document: dict[str, JsonValue]


class ObjectionAsked(Asked):
    reason: Text
