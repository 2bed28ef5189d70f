"""What boards are: their definitions, every version, and the names that they had before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from earmark.board.storage.tables import counter, moment, string

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "board_definitions", counter(), string("board", 100), sa.Column("version", sa.Integer(), nullable=False),
        string("text"), string("user", 100), moment("at"), string("note"), sa.UniqueConstraint("board", "version"),
    )  # fmt: skip
    op.create_table(
        "board_names", string("name", 100, primary_key=True), string("board", 100, index=True), moment("at")
    )


def downgrade() -> None:
    op.drop_table("board_names")
    op.drop_table("board_definitions")
