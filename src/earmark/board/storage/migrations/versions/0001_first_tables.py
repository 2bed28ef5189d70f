"""The first tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# SQLite numbers rows by itself only when the type of the key is INTEGER.
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table("meta", _text("key", 100, primary_key=True), _text("value"))
    op.create_table(
        "users", _id(), _text("name", 100), _text("team", 100), _text("role", 20), _moment("created"),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )  # fmt: skip
    op.create_table(
        "tokens", _id(), _reference("tokens", "user_id", "users.id"), _text("prefix", 20), _text("hash", 64),
        _text("label", 200), _moment("created"), _moment("last_used", nullable=True), _moment("revoked", nullable=True),
        sa.UniqueConstraint("prefix", name=op.f("uq_tokens_prefix")),
    )  # fmt: skip
    _index("tokens", "user_id")
    op.create_table(
        "systems", _id(), _text("board", 100), _text("slug", 100), _text("name", 200), _text("card"),
        _reference("systems", "owner_id", "users.id"), _moment("created"),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.UniqueConstraint("board", "slug", name=op.f("uq_systems_board_slug")),
        sa.UniqueConstraint("board", "name", name=op.f("uq_systems_board_name")),
    )  # fmt: skip
    _index("systems", "owner_id")
    _index("systems", "board", "changed")
    op.create_table(
        "submissions", _id(), _text("public", 40), _text("board", 100),
        _reference("submissions", "owner_id", "users.id"), _text("team", 100), _text("state", 20),
        _text("provenance", 20), _moment("created"), _moment("decided", nullable=True), _text("decided_by", 100),
        _text("reason"),
        sa.Column("rows", sa.Integer(), nullable=False), _text("digest", 64), _text("version"), _text("notes"),
        _text("key", 200), sa.UniqueConstraint("public", name=op.f("uq_submissions_public")),
    )  # fmt: skip
    given = sa.text("key <> ''")
    op.create_index(
        "uq_submissions_owner_id_key", "submissions", ["owner_id", "key"], unique=True,
        sqlite_where=given, postgresql_where=given,
    )  # fmt: skip
    _index("submissions", "owner_id", "digest")
    _index("submissions", "board", "state")
    _index("submissions", "state")
    op.create_table("documents", _key("documents", "submission_id", "submissions.id"), _blob("packed"))
    op.create_table(
        "submission_systems", _key("submission_systems", "submission_id", "submissions.id"),
        _key("submission_systems", "system_id", "systems.id"), sa.Column("place", sa.Integer(), nullable=False),
        _text("card"),
    )  # fmt: skip
    _index("submission_systems", "system_id")
    measured = ("subset", "distance", "correction", "protocol", "metric")
    op.create_table(
        "measurements", _id(), *(_text(name) for name in measured),
        sa.UniqueConstraint(*measured, name="uq_measurements"),
    )  # fmt: skip
    op.create_table(
        "scores", _id(), _reference("scores", "submission_id", "submissions.id"),
        _reference("scores", "system_id", "systems.id"), _reference("scores", "measurement_id", "measurements.id"),
        *(_double(name) for name in ("value", "low", "high", "baseline", "lift", "p_value")),
        sa.Column("n", sa.BigInteger()), _text("status", 20), _text("reason"), _double("seconds"), _text("version"),
        _text("inputs"), _double("baseline_low"), _double("baseline_high"), sqlite_autoincrement=True,
    )  # fmt: skip
    _index("scores", "submission_id")
    _index("scores", "system_id")
    op.create_table(
        "live", _key("live", "system_id", "systems.id"), _key("live", "measurement_id", "measurements.id"),
        _reference("live", "score_id", "scores.id"), sqlite_with_rowid=False,
    )  # fmt: skip
    op.create_table(
        "events",
        _id(),
        _moment("at"),
        _text("user", 100),
        _text("action", 40),
        _text("submission", 40),
        _text("detail"),
    )
    _index("events", "submission")


def downgrade() -> None:
    raise NotImplementedError("The board does not go back: restore a backup.")


def _id() -> sa.Column[Any]:
    return sa.Column("id", _NUMBER, primary_key=True, autoincrement=True)


def _text(name: str, most: int | None = None, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, sa.Text() if most is None else sa.String(most), nullable=False, **options)


def _double(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Double())


def _blob(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.LargeBinary(), nullable=False)


def _moment(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, _MOMENT, nullable=nullable)


def _reference(table: str, name: str, target: str, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, _NUMBER, sa.ForeignKey(target, name=op.f(f"fk_{table}_{name}")), nullable=False, **options)


def _key(table: str, name: str, target: str) -> sa.Column[Any]:
    return _reference(table, name, target, primary_key=True, autoincrement=False)


def _index(table: str, *columns: str) -> None:
    op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, list(columns))
