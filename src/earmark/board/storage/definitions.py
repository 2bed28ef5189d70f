"""Definitions as they are kept: which one holds on a board, what a board is called now, and what is blind there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from sqlalchemy import Connection, func, select

from earmark.board.storage.tables import board_definitions, board_names
from earmark.definitions import DIRECTION, Definition, from_plain, paper_boards, to_plain


@dataclass(frozen=True)
class Version:
    """A definition that a board has or had: which, since when, by whom, and what it changed. 0 is the paper's own."""

    board: str
    version: int
    definition: Definition
    user: str = ""
    at: datetime | None = None
    note: str = ""


def packed(definition: Definition) -> str:
    """A definition as a cell of the table holds it."""
    return json.dumps(to_plain(definition), ensure_ascii=False)


@lru_cache(maxsize=256)
def _unpacked(text: str) -> Definition:
    return from_plain(json.loads(DIRECTION.sub("", text)))  # kept before they were refused


_COLUMNS = ("board", "version", "text", "user", "at", "note")
_VERSIONS = select(*(board_definitions.c[name] for name in _COLUMNS))


def versions_of(connection: Connection, board: str, limit: int | None = None) -> list[Version]:
    """The definitions that were kept of a board, the newest first."""
    query = _VERSIONS.where(board_definitions.c.board == board).order_by(board_definitions.c.version.desc())
    rows = connection.execute(query.limit(limit))
    return [Version(row.board, row.version, _unpacked(row.text), row.user, row.at, row.note) for row in rows]


def version_of(connection: Connection, board: str) -> Version | None:
    """The definition that holds: the newest that was kept, else the paper's; None where there is neither."""
    kept = versions_of(connection, board, 1)
    if kept:
        return kept[0]
    return Version(board, 0, paper_boards()[board]) if board in paper_boards() else None


def definition_of(connection: Connection, board: str) -> Definition | None:
    """The definition that holds on a board, if there is one."""
    version = version_of(connection, board)
    return version.definition if version else None


def current_definitions(connection: Connection) -> dict[str, Definition]:
    """The definitions that hold on the boards that have one of their own, by the name of the board."""
    newest = select(board_definitions.c.board, func.max(board_definitions.c.version).label("version"))
    last = newest.group_by(board_definitions.c.board).subquery()
    same = (board_definitions.c.board == last.c.board) & (board_definitions.c.version == last.c.version)
    held = select(board_definitions.c.board, board_definitions.c.text).join(last, same)
    return {row.board: _unpacked(row.text) for row in connection.execute(held)}


def name_now(connection: Connection, board: str) -> str:
    """What a board is called now: its name, unless it was renamed."""
    new = connection.execute(select(board_names.c.board).where(board_names.c.name == board)).scalar()
    return str(new) if new is not None else board


def blind_by_definition(connection: Connection, board: str) -> frozenset[str]:
    """The subsets that the definition says to be blind."""
    definition = definition_of(connection, board)
    return definition.blind if definition else frozenset()
