"""Alembic runs this file for every command, on the connection and in the transaction that it is given."""

from __future__ import annotations

from alembic import context

from earmark.board.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True,
    compare_type=True, render_as_batch=True,
)  # fmt: skip
with context.begin_transaction():
    context.run_migrations()
