"""Blind evaluation: policies, hosts, blind subsets, jobs and releases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from earmark.board.storage.tables import counter, moment, reference, string

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TABLES = ("blind_policies", "blind_hosts", "blind_sets", "blind_jobs", "blind_releases")


def _whole(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def upgrade() -> None:
    op.create_table(
        "blind_policies", string("digest", 64, primary_key=True), string("text"), string("settings"),
        moment("announced"),
    )  # fmt: skip
    op.create_table(
        "blind_hosts", string("board", 100, primary_key=True), reference("host_id", "users", index=True),
        sa.Column("policy", sa.String(64), sa.ForeignKey("blind_policies.digest"), nullable=False), moment("seen"),
    )  # fmt: skip
    op.create_table(
        "blind_sets", counter(), string("board", 100), string("subset", 200), string("title"), _whole("clips"),
        _whole("classes"), sa.Column("offered", sa.Boolean(), nullable=False), moment("announced"),
        sa.UniqueConstraint("board", "subset"),
    )  # fmt: skip
    op.create_table(
        "blind_jobs", counter(), string("public", 40, unique=True), string("board", 100),
        reference("owner_id", "users", index=True), string("team", 110), string("entry", 200), string("kind", 20),
        string("digest", 64), string("sha256", 64), _whole("size"), string("state", 20, index=True),
        string("phase", 20), sa.Column("tenths", sa.Integer(), nullable=False), string("message"), string("log"),
        string("blame", 20), sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("restarts", sa.Integer(), nullable=False), string("worker", 100), string("lease", 40),
        moment("lease_ends", nullable=True), moment("created"), moment("claimed", nullable=True),
        moment("started", nullable=True), moment("finished", nullable=True), sa.Index(None, "board", "team"),
    )  # fmt: skip
    op.create_table(
        "blind_releases", counter(), reference("job_id", "blind_jobs", unique=True),
        reference("submission_id", "submissions", index=True), string("policy", 64), string("entry"),
        string("digest", 64), moment("released"), moment("withdrawn", nullable=True), string("reason"),
    )  # fmt: skip


def downgrade() -> None:
    for name in reversed(_TABLES):
        op.drop_table(name)
