"""What other sites show of a link to a page: its title, a sentence, its one address."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl

from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.table import TablePage
from earmark.board.boards.view import BoardView
from earmark.board.pages.summaries import leader, told_apart

_ONE_TABLE = {"metric", "over", "protocol", "setting"}
"""What makes another table; everything else sorts, filters or pages one."""


class Preview(NamedTuple):
    """`address` is empty where nobody knows the site's; what is not `indexed` is a view of another page."""

    title: str
    description: str
    address: str = ""
    indexed: bool = True


def table_preview(snapshot: Snapshot, shown: TablePage, base_url: str) -> Preview:
    """Of a table: who leads, with the interval, and how many are not told apart from them."""
    definition, view = snapshot.definition, shown.view
    words = [definition.summary, leader(snapshot, shown.field), told_apart(shown)]
    return Preview(
        f"{definition.heading}: {view.metric}, {shown.field.group.words}", " ".join(filter(None, words)),
        f"{base_url}{view.address()}" if base_url else "", _is_table(view),
    )  # fmt: skip


def _is_table(view: BoardView) -> bool:
    return {name for name, _ in parse_qsl(view.query())} <= _ONE_TABLE
