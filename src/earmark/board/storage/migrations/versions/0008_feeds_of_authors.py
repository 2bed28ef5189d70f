"""Private feeds of authors."""

from __future__ import annotations

from alembic import op

from earmark.board.storage.tables import moment, reference, string

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "feeds", reference("user_id", "users", key=True), string("hash", 64, unique=True), moment("created")
    )


def downgrade() -> None:
    op.drop_table("feeds")
