"""The tables of the board.

    users --< tokens --< sessions
      |--< drafts, contacts, feeds, notices (what is to be told them)
      |
      +--< submissions --< submission_systems >-- systems
      |        |  |                                  |
      |        |  +-- documents (what was sent)       |
      |        +--< scores >-- measurements           |
      |                 ^                             |
      |               live (system, measurement) ----+
      +--< card_changes >-- systems (a card corrected without scores)
      +--< events (the audit trail)
      |
      +--< board_definitions (what a board is, every version), board_names (what it was called before)
      |
      +--< blind_hosts (a board's host and its policy now) -- blind_policies
      |    blind_sets (subsets of a board that only its host can measure)
      +--< blind_jobs --- blind_releases >-- submissions

Rows of `scores`, `documents`, `submission_systems` and `events` are written once and never changed, except that the
erasure of a user takes their name and their words out. What changes is the state of a submission, with an event beside
each change, and `live`, which points at the score that counts for each
measurement of a system: it can be computed again from the rest at any time. `measurements` holds each combination of
subset, distance, correction, protocol and metric once. A missing number is NULL.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator

from earmark.scores.rows import COLUMNS, COUNTS, KEY, NUMBERS

MEASURED = tuple(name for name in KEY if name not in ("suite", "system"))
"""What was measured: the key of a score without its suite and its system."""
CELLS = tuple(name for name in COLUMNS if name not in KEY)
"""The columns of a score that are not its key."""


class Moment(TypeDecorator[datetime]):
    """A moment in UTC. SQLite keeps no time zone, so it is put back when a moment is read."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        assert isinstance(value, datetime)
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# SQLite numbers rows by itself only when the type of the key is INTEGER.
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def counter() -> sa.Column[int]:
    return sa.Column("id", _NUMBER, primary_key=True, autoincrement=True)


def string(name: str, most: int | None = None, **options: Any) -> sa.Column[str]:
    return sa.Column(name, sa.Text() if most is None else sa.String(most), nullable=False, **options)


def moment(name: str, *, nullable: bool = False) -> sa.Column[datetime]:
    return sa.Column(name, Moment, nullable=nullable)


def reference(name: str, target: str, *, key: bool = False, **options: Any) -> sa.Column[int]:
    options |= {"primary_key": True, "autoincrement": False} if key else {"nullable": False}
    return sa.Column(name, _NUMBER, sa.ForeignKey(f"{target}.id"), **options)


def _cell(name: str) -> sa.Column[Any]:
    """The column of one cell of a score row."""
    if name in NUMBERS:
        return sa.Column(name, sa.BigInteger if name in COUNTS else sa.Double)
    return string(name, 20 if name == "status" else None)


metadata = sa.MetaData(
    naming_convention={  # names that do not depend on the database
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Facts about the board as a whole: its generation, the key that signs cookies.
meta = sa.Table("meta", metadata, string("key", 100, primary_key=True), string("value"))

# Who is banned sends nothing; what is `hidden` of them has no live scores until it is shown again.
users = sa.Table(
    "users", metadata, counter(), string("name", 100, unique=True), string("team", 100), string("role", 20),
    moment("created"), moment("banned", nullable=True), sa.Column("hidden", sa.Boolean, nullable=False),
)  # fmt: skip

# `hash` is the SHA-256 of the whole token, which has 256 random bits: nobody can guess their way back.
tokens = sa.Table(
    "tokens", metadata, counter(), reference("user_id", "users", index=True), string("prefix", 20, unique=True),
    string("hash", 64), string("label", 200), moment("created"), moment("last_used", nullable=True),
    moment("revoked", nullable=True),
)  # fmt: skip

# Browsers that are signed in: `hash` is the SHA-256 of the word that the browser holds.
sessions = sa.Table(
    "sessions", metadata, counter(), string("hash", 64, unique=True), reference("user_id", "users", index=True),
    reference("token_id", "tokens", index=True), moment("created"),
)  # fmt: skip

# `changed` is the generation in which what readers see of it changed last; 0: nothing was ever accepted.
systems = sa.Table(
    "systems", metadata, counter(), string("board", 100), string("slug", 100), string("name", 200), string("card"),
    reference("owner_id", "users", index=True), moment("created"), sa.Column("changed", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("board", "slug"), sa.UniqueConstraint("board", "name"), sa.Index(None, "board", "changed"),
)  # fmt: skip

_WITH_KEY = sa.text("key <> ''")
submissions = sa.Table(
    "submissions", metadata, counter(), string("public", 40, unique=True), string("board", 100),
    reference("owner_id", "users"), string("team", 100), string("state", 20), string("provenance", 20),
    moment("created"), moment("decided", nullable=True), string("decided_by", 100), string("reason"),
    sa.Column("rows", sa.Integer, nullable=False), string("digest", 64), string("version"),
    string("notes"),  # a JSON array
    string("key", 200),
    sa.Column("size", sa.BigInteger, nullable=False),  # bytes of the document when unpacked: what a quota counts
    # An author's key names one submission; those without a key have none in common.
    sa.Index(
        "uq_submissions_owner_id_key", "owner_id", "key", unique=True, sqlite_where=_WITH_KEY,
        postgresql_where=_WITH_KEY,
    ),
    sa.Index(None, "owner_id", "digest"), sa.Index(None, "board", "state"), sa.Index(None, "state"),
    sa.Index(None, "owner_id", "created"),
)  # fmt: skip

# What was sent, as zlib packs it; `submissions.digest` is the SHA-256 of what is inside.
documents = sa.Table(
    "documents", metadata, reference("submission_id", "submissions", key=True),
    sa.Column("packed", sa.LargeBinary, nullable=False),
)  # fmt: skip

# The card that a submission gave to one of its systems, and the place of that system in the document.
submission_systems = sa.Table(
    "submission_systems", metadata, reference("submission_id", "submissions", key=True),
    reference("system_id", "systems", key=True, index=True), sa.Column("place", sa.Integer, nullable=False),
    string("card"),
)  # fmt: skip

measurements = sa.Table(
    "measurements", metadata, counter(), *map(string, MEASURED), sa.UniqueConstraint(*MEASURED, name="uq_measurements"),
)  # fmt: skip

# One row of one document. Ids grow with time: of two scores, the one with the larger id is the newer.
scores = sa.Table(
    "scores", metadata, counter(), reference("submission_id", "submissions", index=True),
    reference("system_id", "systems", index=True), reference("measurement_id", "measurements"),
    *map(_cell, CELLS), sqlite_autoincrement=True,
)  # fmt: skip

# The score that counts: the newest of the accepted ones, for each measurement of a system.
live = sa.Table(
    "live", metadata, reference("system_id", "systems", key=True),
    reference("measurement_id", "measurements", key=True), reference("score_id", "scores"), sqlite_with_rowid=False,
)  # fmt: skip

# Who did what when. Written in the transaction that did it.
events = sa.Table(
    "events", metadata, counter(), moment("at"), string("user", 100), string("action", 40),
    string("submission", 40, index=True), string("detail"),
)  # fmt: skip

# A correction of a card without scores. `changes` is a JSON object of fields with their new values, `before` of what
# they were; `decided` and `decided_by` are empty while it waits for a moderator.
card_changes = sa.Table(
    "card_changes", metadata, counter(), reference("system_id", "systems", index=True), reference("owner_id", "users"),
    moment("created"), string("state", 20, index=True), string("changes"), string("before"), string("why"),
    moment("decided", nullable=True), string("decided_by", 100), string("reason"),
)  # fmt: skip

# A document that its author has not sent yet, as zlib packs it.
drafts = sa.Table(
    "drafts", metadata, counter(), string("public", 40, unique=True), reference("owner_id", "users", index=True),
    string("board", 100), string("names"), sa.Column("rows", sa.Integer, nullable=False), string("digest", 64),
    sa.Column("size", sa.BigInteger, nullable=False), string("notes"), moment("created"),
    sa.Column("packed", sa.LargeBinary, nullable=False),
)  # fmt: skip

# Where an author is told what became of a submission. `confirmed` is when they said that the address is theirs.
contacts = sa.Table(
    "contacts", metadata, reference("user_id", "users", key=True), string("mail", 300),
    moment("confirmed", nullable=True), string("webhook"), string("secret", 100),
)  # fmt: skip

# Private feeds of authors: `hash` is the SHA-256 of the word in the feed's address.
feeds = sa.Table(
    "feeds", metadata, reference("user_id", "users", key=True), string("hash", 64, unique=True), moment("created")
)

# What is still to be told, and what was: written with what it tells of, sent later and again until it arrives.
notices = sa.Table(
    "notices", metadata, counter(), reference("user_id", "users", index=True), string("kind", 20), string("target"),
    string("subject"), string("body"), moment("created"), sa.Column("attempts", sa.Integer, nullable=False),
    moment("due", nullable=True), moment("sent", nullable=True), string("error"), sa.Index(None, "due"),
)  # fmt: skip

# The host's own words: imprint, privacy, news, footer.
host_texts = sa.Table(
    "host_texts", metadata, string("name", 40, primary_key=True), string("text"), moment("changed"),
    string("changed_by", 100),
)  # fmt: skip

# What a board is, as JSON: every version that ever held, the one with the largest number holds now.
board_definitions = sa.Table(
    "board_definitions", metadata, counter(), string("board", 100), sa.Column("version", sa.Integer, nullable=False),
    string("text"), string("user", 100), moment("at"), string("note"), sa.UniqueConstraint("board", "version"),
)  # fmt: skip

# Names that boards had before: `board` is the name now.
board_names = sa.Table(
    "board_names", metadata, string("name", 100, primary_key=True), string("board", 100, index=True), moment("at")
)

# --- blind evaluation ------------------------------------------------------------------------------------------------

# Every policy that ever held, under the SHA-256 of its settings: releases name the one that they were made by.
blind_policies = sa.Table(
    "blind_policies", metadata, string("digest", 64, primary_key=True), string("text"), string("settings"),
    moment("announced"),
)  # fmt: skip

# Who measures on a board. `seen`: when its worker was last heard of.
blind_hosts = sa.Table(
    "blind_hosts", metadata, string("board", 100, primary_key=True), reference("host_id", "users", index=True),
    sa.Column("policy", sa.String(64), sa.ForeignKey("blind_policies.digest"), nullable=False), moment("seen"),
)  # fmt: skip

# A subset that was announced once stays blind; `offered` says whether models are measured on it now.
blind_sets = sa.Table(
    "blind_sets", metadata, counter(), string("board", 100), string("subset", 200), string("title"),
    sa.Column("clips", sa.BigInteger, nullable=False), sa.Column("classes", sa.BigInteger, nullable=False),
    sa.Column("offered", sa.Boolean, nullable=False), moment("announced"), sa.UniqueConstraint("board", "subset"),
)  # fmt: skip

# `team` is whom a quota counts for; `lease` the random word that the worker who has the job knows. A job is attempted
# anew by another worker, and restarted by the same.
blind_jobs = sa.Table(
    "blind_jobs", metadata, counter(), string("public", 40, unique=True), string("board", 100),
    reference("owner_id", "users", index=True), string("team", 110), string("entry", 200), string("kind", 20),
    string("digest", 64), string("sha256", 64), sa.Column("size", sa.BigInteger, nullable=False),
    string("state", 20, index=True), string("phase", 20), sa.Column("tenths", sa.Integer, nullable=False),
    string("message"), string("log"), string("blame", 20), sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("restarts", sa.Integer, nullable=False), string("worker", 100), string("lease", 40),
    moment("lease_ends", nullable=True), moment("created"), moment("claimed", nullable=True),
    moment("started", nullable=True), moment("finished", nullable=True), sa.Index(None, "board", "team"),
)  # fmt: skip

# What left the data side: `entry` is the public part of the host's audit entry, `digest` of everything that was sent.
blind_releases = sa.Table(
    "blind_releases", metadata, counter(), reference("job_id", "blind_jobs", unique=True),
    reference("submission_id", "submissions", index=True), string("policy", 64), string("entry"),
    string("digest", 64), moment("released"), moment("withdrawn", nullable=True), string("reason"),
)  # fmt: skip
