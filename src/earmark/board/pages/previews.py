"""What other sites show of a link to a page: its title, a sentence, its one address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.table import TablePage
from earmark.board.boards.view import BoardView
from earmark.board.pages.assets import board_address
from earmark.board.pages.summaries import leader, told_apart

TABLE_ITEMS = {"metric", "over", "protocol", "setting"}
"""What makes another table; everything else sorts, filters or pages one."""


class Preview(NamedTuple):
    """`address` is empty where nobody knows the site's; what is not `indexed` is a view of another page."""

    title: str
    description: str
    address: str = ""
    indexed: bool = True
    picture: str = ""


def table_preview(snapshot: Snapshot, shown: TablePage, base_url: str) -> Preview:
    """Of a table: who leads, with the interval, and how many are not told apart from them."""
    definition, view = snapshot.definition, shown.view
    items = [(name, text) for name, text in parse_qsl(view.query()) if name in TABLE_ITEMS]
    words = [definition.summary, leader(snapshot, shown.field), told_apart(shown)]
    return Preview(
        f"{definition.heading}: {view.metric}, {shown.field.group.words}", " ".join(filter(None, words)),
        f"{base_url}{view.address()}" if base_url else "", _is_table(view),
        picture_address(snapshot, base_url, items),
    )  # fmt: skip


def picture_address(snapshot: Snapshot, base_url: str, items: Sequence[tuple[str, str]] = ()) -> str:
    """Where the picture of a table is; "" of a private board, which is not shown elsewhere."""
    query = f"?{urlencode(items)}" if items else ""
    return "" if snapshot.definition.private else f"{base_url}{board_address(snapshot.board)}/preview.png{query}"


def _is_table(view: BoardView) -> bool:
    return {name for name, _ in parse_qsl(view.query())} <= TABLE_ITEMS
