"""Where the board keeps everything: a SQLite file or a PostgreSQL database, through SQLAlchemy and Alembic."""

from __future__ import annotations

from earmark.board.storage.database import open_database
from earmark.board.storage.store import LiveScores, Store

__all__ = ["LiveScores", "Store", "open_database"]
