"""Ablation, aggregate and statistic: columns that stood only inside the names of a measurement before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from earmark.scores.spelling import Columns, columns_of

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in Columns._fields:
        op.add_column("scores", sa.Column(name, sa.Text(), nullable=False, server_default=""))
    connection = op.get_bind()
    names = ("id", "subset", "distance", "protocol", "metric")
    measurements = sa.table("measurements", *(sa.column(name) for name in names))
    scores = sa.table("scores", *(sa.column(name) for name in ("measurement_id", *Columns._fields)))
    for number, *spelled in connection.execute(sa.select(measurements)).all():
        columns = columns_of(*spelled)
        if any(columns):
            filled = sa.update(scores).where(scores.c.measurement_id == number).values(**columns._asdict())
            connection.execute(filled)


def downgrade() -> None:
    for name in Columns._fields:
        op.drop_column("scores", name)
