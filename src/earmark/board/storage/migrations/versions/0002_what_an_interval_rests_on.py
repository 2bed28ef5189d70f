"""What an interval and a baseline rest on: columns that scores gained after version 0.1.0."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TEXTS = ("interval", "unit", "shuffle")
COUNTS = ("units", "comparisons")


def upgrade() -> None:
    for name in TEXTS:
        op.add_column("scores", sa.Column(name, sa.Text(), nullable=False, server_default=""))
    for name in COUNTS:
        op.add_column("scores", sa.Column(name, sa.BigInteger()))
    op.add_column("scores", sa.Column("baseline_error", sa.Double()))


def downgrade() -> None:
    for name in (*TEXTS, *COUNTS, "baseline_error"):
        op.drop_column("scores", name)
