"""Bans, quotas, corrected cards, drafts, notices and the host's own words."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from earmark.board.storage.tables import counter, moment, reference, string

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_TABLES = ("card_changes", "drafts", "contacts", "notices", "host_texts")


def upgrade() -> None:
    op.add_column("users", moment("banned", nullable=True))
    op.add_column("users", sa.Column("hidden", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("submissions", sa.Column("size", sa.BigInteger(), nullable=False, server_default="0"))
    op.create_index("ix_submissions_owner_id_created", "submissions", ["owner_id", "created"])
    op.create_table(
        "card_changes", counter(), reference("system_id", "systems", index=True), reference("owner_id", "users"),
        moment("created"), string("state", 20, index=True), string("changes"), string("before"), string("why"),
        moment("decided", nullable=True), string("decided_by", 100), string("reason"),
    )  # fmt: skip
    op.create_table(
        "drafts", counter(), string("public", 40, unique=True), reference("owner_id", "users", index=True),
        string("board", 100), string("names"), sa.Column("rows", sa.Integer(), nullable=False), string("digest", 64),
        sa.Column("size", sa.BigInteger(), nullable=False), string("notes"), moment("created"),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
    )  # fmt: skip
    op.create_table(
        "contacts", reference("user_id", "users", key=True), string("mail", 300), moment("confirmed", nullable=True),
        string("webhook"), string("secret", 100),
    )  # fmt: skip
    op.create_table(
        "notices", counter(), reference("user_id", "users", index=True), string("kind", 20), string("target"),
        string("subject"), string("body"), moment("created"), sa.Column("attempts", sa.Integer(), nullable=False),
        moment("due", nullable=True), moment("sent", nullable=True), string("error"), sa.Index(None, "due"),
    )  # fmt: skip
    op.create_table(
        "host_texts", string("name", 40, primary_key=True), string("text"), moment("changed"),
        string("changed_by", 100),
    )  # fmt: skip


def downgrade() -> None:
    for name in reversed(_TABLES):
        op.drop_table(name)
    op.drop_index("ix_submissions_owner_id_created", "submissions")
    op.drop_column("submissions", "size")
    op.drop_column("users", "hidden")
    op.drop_column("users", "banned")
