"""Sessions of browsers, which end on the server."""

from __future__ import annotations

from alembic import op

from earmark.board.storage.tables import counter, moment, reference, string

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sessions", counter(), string("hash", 64, unique=True), reference("user_id", "users", index=True),
        reference("token_id", "tokens", index=True), moment("created"),
    )  # fmt: skip


def downgrade() -> None:
    op.drop_table("sessions")
