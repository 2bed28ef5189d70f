"""The tables of the board.

    users --< tokens
      |
      +--< submissions --< submission_systems >-- systems
      |        |  |                                  |
      |        |  +-- documents (what was sent)       |
      |        +--< scores >-- measurements           |
      |                 ^                             |
      |               live (system, measurement) ----+
      +--< events (the audit trail)

Rows of `scores`, `documents`, `submission_systems` and `events` are written once and never changed. What changes is the
state of a submission, with an event beside each change, and `live`, which points at the score that counts for each
measurement of a system: it can be computed again from the rest at any time. `measurements` holds each combination of
subset, distance, correction, protocol and metric once. A missing number is NULL.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

__all__ = [
    "Board",
    "Document",
    "Event",
    "Live",
    "Measurement",
    "Meta",
    "Moment",
    "Score",
    "Submission",
    "SubmissionSystem",
    "System",
    "Token",
    "User",
]


class Moment(TypeDecorator[datetime]):
    """A moment in UTC. SQLite keeps no time zone, so it is put back when a moment is read."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        assert isinstance(value, datetime)
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# SQLite numbers rows by itself only when the type of the key is INTEGER.
_Number = BigInteger().with_variant(Integer, "sqlite")


class Board(DeclarativeBase):
    """Every table, under names that do not depend on the database."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class Meta(Board):
    """Facts about the board as a whole: its generation, the key that signs cookies."""

    __tablename__ = "meta"

    key: Mapped[str] = mapped_column(String(100), primary_key=True)
    value: Mapped[str] = mapped_column(Text)


class User(Board):
    __tablename__ = "users"

    id: Mapped[int] = mapped_column(_Number, primary_key=True, autoincrement=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    team: Mapped[str] = mapped_column(String(100))
    role: Mapped[str] = mapped_column(String(20))
    created: Mapped[datetime] = mapped_column(Moment)


class Token(Board):
    """`hash` is the SHA-256 of the whole token, which has 256 random bits: nobody can guess their way back."""

    __tablename__ = "tokens"

    id: Mapped[int] = mapped_column(_Number, primary_key=True, autoincrement=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    prefix: Mapped[str] = mapped_column(String(20), unique=True)
    hash: Mapped[str] = mapped_column(String(64))
    label: Mapped[str] = mapped_column(String(200))
    created: Mapped[datetime] = mapped_column(Moment)
    last_used: Mapped[datetime | None] = mapped_column(Moment)
    revoked: Mapped[datetime | None] = mapped_column(Moment)


class System(Board):
    """`changed` is the generation in which what readers see of it changed last; 0: nothing was ever accepted."""

    __tablename__ = "systems"
    __table_args__ = (
        UniqueConstraint("board", "slug"),
        UniqueConstraint("board", "name"),
        Index(None, "board", "changed"),
    )

    id: Mapped[int] = mapped_column(_Number, primary_key=True, autoincrement=True)
    board: Mapped[str] = mapped_column(String(100))
    slug: Mapped[str] = mapped_column(String(100))
    name: Mapped[str] = mapped_column(String(200))
    card: Mapped[str] = mapped_column(Text)
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    created: Mapped[datetime] = mapped_column(Moment)
    changed: Mapped[int] = mapped_column(BigInteger)


class Submission(Board):
    """`id` counts upwards in the order of arrival, so that later ones are newer; `public` stands in addresses."""

    __tablename__ = "submissions"
    __table_args__ = (
        # An author's key names one submission; those without a key have none in common.
        Index(
            "uq_submissions_owner_id_key", "owner_id", "key", unique=True,
            sqlite_where=text("key <> ''"), postgresql_where=text("key <> ''"),
        ),
        Index(None, "owner_id", "digest"),
        Index(None, "board", "state"),
        Index(None, "state"),
    )  # fmt: skip

    id: Mapped[int] = mapped_column(_Number, primary_key=True, autoincrement=True)
    public: Mapped[str] = mapped_column(String(40), unique=True)
    board: Mapped[str] = mapped_column(String(100))
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    team: Mapped[str] = mapped_column(String(100))
    state: Mapped[str] = mapped_column(String(20))
    provenance: Mapped[str] = mapped_column(String(20))
    created: Mapped[datetime] = mapped_column(Moment)
    decided: Mapped[datetime | None] = mapped_column(Moment)
    decided_by: Mapped[str] = mapped_column(String(100))
    reason: Mapped[str] = mapped_column(Text)
    rows: Mapped[int] = mapped_column(Integer)
    digest: Mapped[str] = mapped_column(String(64))
    version: Mapped[str] = mapped_column(Text)
    notes: Mapped[str] = mapped_column(Text)  # a JSON array
    key: Mapped[str] = mapped_column(String(200))


class Document(Board):
    """What was sent, as zlib packs it; `submissions.digest` is the SHA-256 of what is inside."""

    __tablename__ = "documents"

    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"), primary_key=True, autoincrement=False)
    packed: Mapped[bytes] = mapped_column(LargeBinary)


class SubmissionSystem(Board):
    """The card that a submission gave to one of its systems."""

    __tablename__ = "submission_systems"

    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"), primary_key=True, autoincrement=False)
    system_id: Mapped[int] = mapped_column(ForeignKey("systems.id"), primary_key=True, autoincrement=False, index=True)
    place: Mapped[int] = mapped_column(Integer)  # in the document
    card: Mapped[str] = mapped_column(Text)


class Measurement(Board):
    """What was measured: the key of a score without its suite and its system."""

    __tablename__ = "measurements"
    __table_args__ = (
        UniqueConstraint("subset", "distance", "correction", "protocol", "metric", name="uq_measurements"),
    )

    id: Mapped[int] = mapped_column(_Number, primary_key=True, autoincrement=True)
    subset: Mapped[str] = mapped_column(Text)
    distance: Mapped[str] = mapped_column(Text)
    correction: Mapped[str] = mapped_column(Text)
    protocol: Mapped[str] = mapped_column(Text)
    metric: Mapped[str] = mapped_column(Text)


class Score(Board):
    """One row of one document. Ids grow with time: of two scores, the one with the larger id is the newer."""

    __tablename__ = "scores"
    __table_args__ = (Index(None, "submission_id"), Index(None, "system_id"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(_Number, primary_key=True, autoincrement=True)
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"))
    system_id: Mapped[int] = mapped_column(ForeignKey("systems.id"))
    measurement_id: Mapped[int] = mapped_column(ForeignKey("measurements.id"))
    value: Mapped[float | None] = mapped_column(Double)
    low: Mapped[float | None] = mapped_column(Double)
    high: Mapped[float | None] = mapped_column(Double)
    baseline: Mapped[float | None] = mapped_column(Double)
    lift: Mapped[float | None] = mapped_column(Double)
    p_value: Mapped[float | None] = mapped_column(Double)
    n: Mapped[int | None] = mapped_column(BigInteger)
    status: Mapped[str] = mapped_column(String(20))
    reason: Mapped[str] = mapped_column(Text)
    seconds: Mapped[float | None] = mapped_column(Double)
    version: Mapped[str] = mapped_column(Text)
    inputs: Mapped[str] = mapped_column(Text)
    baseline_low: Mapped[float | None] = mapped_column(Double)
    baseline_high: Mapped[float | None] = mapped_column(Double)
    interval: Mapped[str] = mapped_column(Text)
    unit: Mapped[str] = mapped_column(Text)
    units: Mapped[int | None] = mapped_column(BigInteger)
    comparisons: Mapped[int | None] = mapped_column(BigInteger)
    shuffle: Mapped[str] = mapped_column(Text)
    baseline_error: Mapped[float | None] = mapped_column(Double)
    ablation: Mapped[str] = mapped_column(Text)
    aggregate: Mapped[str] = mapped_column(Text)
    statistic: Mapped[str] = mapped_column(Text)


class Live(Board):
    """The score that counts: the newest of the accepted ones, for each measurement of a system."""

    __tablename__ = "live"
    __table_args__ = ({"sqlite_with_rowid": False},)

    system_id: Mapped[int] = mapped_column(ForeignKey("systems.id"), primary_key=True, autoincrement=False)
    measurement_id: Mapped[int] = mapped_column(ForeignKey("measurements.id"), primary_key=True, autoincrement=False)
    score_id: Mapped[int] = mapped_column(ForeignKey("scores.id"))


class Event(Board):
    """Who did what when. Written in the transaction that did it."""

    __tablename__ = "events"

    id: Mapped[int] = mapped_column(_Number, primary_key=True, autoincrement=True)
    at: Mapped[datetime] = mapped_column(Moment)
    user: Mapped[str] = mapped_column(String(100))
    action: Mapped[str] = mapped_column(String(40))
    submission: Mapped[str] = mapped_column(String(40), index=True)
    detail: Mapped[str] = mapped_column(Text)
