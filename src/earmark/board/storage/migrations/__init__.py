"""How the tables came to be, step by step; `upgrade` takes a database of any age to the tables of this version.

A new step: change `tables.py`, write `versions/NNNN_what.py` with the next number, and set `HEAD` to it. The test
`test_migrations.py` fails while the steps and the tables do not agree.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from earmark.errors import InputError

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = ["HEAD", "bring_to", "config_for", "revision_of", "upgrade"]

HEAD = "0008"


def upgrade(engine: Engine, locked: Callable[[], AbstractContextManager[Connection]], revision: str = HEAD) -> None:
    """Make the tables of a revision, all at once or not at all; `locked` opens a transaction without other writers."""
    with engine.connect() as connection:
        if revision_of(connection) == revision:
            return  # the common case, without importing Alembic
    with locked() as connection:
        bring_to(connection, revision)


def bring_to(connection: Connection, revision: str) -> None:
    """Make the tables of a revision in the transaction that is open; InputError when they are newer already."""
    from alembic import command
    from alembic.script import ScriptDirectory

    found = revision_of(connection)
    if found == revision:
        return
    config = config_for(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise InputError(
            f"The database was made by a newer Earmark (its tables are of revision {found}, this one knows up to "
            f"{HEAD}); update Earmark."
        )
    command.upgrade(config, revision)


def revision_of(connection: Connection) -> str | None:
    """The revision of the tables that are there; None when there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return found


def config_for(connection: Connection) -> Config:
    """Alembic's configuration for the steps in this folder, on a connection that is open."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "earmark.board.storage:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
