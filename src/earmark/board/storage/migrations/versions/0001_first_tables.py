"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from earmark.board.storage.tables import counter, moment, reference, string

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_MEASURED = ("subset", "distance", "correction", "protocol", "metric")
_DOUBLES = ("value", "low", "high", "baseline", "lift", "p_value")
_WITH_KEY = sa.text("key <> ''")


def upgrade() -> None:
    op.create_table("meta", string("key", 100, primary_key=True), string("value"))
    op.create_table(
        "users", counter(), string("name", 100, unique=True), string("team", 100), string("role", 20),
        moment("created"),
    )  # fmt: skip
    op.create_table(
        "tokens", counter(), reference("user_id", "users", index=True), string("prefix", 20, unique=True),
        string("hash", 64), string("label", 200), moment("created"), moment("last_used", nullable=True),
        moment("revoked", nullable=True),
    )  # fmt: skip
    op.create_table(
        "systems", counter(), string("board", 100), string("slug", 100), string("name", 200),
        string("card"), reference("owner_id", "users", index=True), moment("created"),
        sa.Column("changed", sa.BigInteger(), nullable=False), sa.UniqueConstraint("board", "slug"),
        sa.UniqueConstraint("board", "name"), sa.Index(None, "board", "changed"),
    )  # fmt: skip
    op.create_table(
        "submissions", counter(), string("public", 40, unique=True), string("board", 100),
        reference("owner_id", "users"), string("team", 100), string("state", 20),
        string("provenance", 20), moment("created"), moment("decided", nullable=True),
        string("decided_by", 100), string("reason"), sa.Column("rows", sa.Integer(), nullable=False),
        string("digest", 64), string("version"), string("notes"), string("key", 200),
        sa.Index(None, "owner_id", "digest"), sa.Index(None, "board", "state"), sa.Index(None, "state"),
        sa.Index(
            "uq_submissions_owner_id_key", "owner_id", "key", unique=True, sqlite_where=_WITH_KEY,
            postgresql_where=_WITH_KEY,
        ),
    )  # fmt: skip
    op.create_table(
        "documents", reference("submission_id", "submissions", key=True),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
    )  # fmt: skip
    op.create_table(
        "submission_systems", reference("submission_id", "submissions", key=True),
        reference("system_id", "systems", key=True, index=True), sa.Column("place", sa.Integer(), nullable=False),
        string("card"),
    )  # fmt: skip
    op.create_table(
        "measurements", counter(), *map(string, _MEASURED), sa.UniqueConstraint(*_MEASURED, name="uq_measurements")
    )
    op.create_table(
        "scores", counter(), reference("submission_id", "submissions", index=True),
        reference("system_id", "systems", index=True), reference("measurement_id", "measurements"),
        *(sa.Column(name, sa.Double()) for name in _DOUBLES), sa.Column("n", sa.BigInteger()),
        string("status", 20), string("reason"), sa.Column("seconds", sa.Double()), string("version"),
        string("inputs"), sa.Column("baseline_low", sa.Double()), sa.Column("baseline_high", sa.Double()),
        sqlite_autoincrement=True,
    )  # fmt: skip
    op.create_table(
        "live", reference("system_id", "systems", key=True), reference("measurement_id", "measurements", key=True),
        reference("score_id", "scores"), sqlite_with_rowid=False,
    )  # fmt: skip
    op.create_table(
        "events", counter(), moment("at"), string("user", 100), string("action", 40),
        string("submission", 40, index=True), string("detail"),
    )  # fmt: skip


def downgrade() -> None:
    raise NotImplementedError("The board does not go back: restore a backup.")
