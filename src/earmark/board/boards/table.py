"""The table of a board in one view: which lines, in which order, with which columns and cells.

Pages, downloads and the API all take it from here, so that they agree. Ranks belong to the whole field (every system
under the same metric, mean, protocol and setting); a filter or a search leaves lines out and changes no rank.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from earmark.board.boards.columns import Column, columns_of_view
from earmark.board.boards.field import Field
from earmark.board.boards.lines import MadeLines, TableRow, rows_at
from earmark.board.boards.memory import made_once
from earmark.board.boards.panels import PROVENANCES
from earmark.board.boards.selection import kept_places, order_of
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.view import PER_PAGE, BoardView

MOST_SUBSETS = 100
"""Subsets that have a column on a page; files have all."""


class TablePage(NamedTuple):
    """One page of a table in one view."""

    view: BoardView
    field: Field
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    total: int  # lines that the filters leave
    pages: int
    lifted: bool  # whether any line has a lift over chance
    elsewhere: int  # systems of the board without a value of this metric, setting and protocol
    codecs: bool  # whether there are codecs, whose bitrate is a column
    cut: int = 0  # how many of the subsets have a column, where not all of them have
    made: MadeLines | None = None  # what other pages of this state have made of its lines


class Facets(NamedTuple):
    """What the filters of a board offer."""

    families: tuple[str, ...]
    licences: tuple[str, ...]
    provenances: tuple[str, ...]


@made_once
def facets(snapshot: Snapshot) -> Facets:
    """The families, licences and kinds of provenance that the board has."""
    cards = [snapshot.systems[place].card for place in snapshot.lines_of]
    codes = {code for panel in snapshot.panels.values() for code in np.unique(panel.provenance).tolist()}
    return Facets(
        tuple(sorted({card.family for card in cards if card.family}, key=str.casefold)),
        tuple(sorted({card.licence for card in cards if card.licence}, key=str.casefold)),
        tuple(name for code, name in enumerate(PROVENANCES) if code and code in codes),
    )


def table(snapshot: Snapshot, view: BoardView, *, whole: bool = False) -> TablePage:
    """The lines of one page of a view; all of them with `per="all"`. `whole`: with a column for every subset, of which
    pages show the first."""
    field = snapshot.field(view.metric, view.over, view.protocol, view.setting)
    lines = field.panel.lines[field.rows]
    kept = kept_places(snapshot, view, field, lines)
    order = kept[order_of(snapshot, view, field, lines[kept], kept)]
    pages = max(1, math.ceil(len(order) / PER_PAGE)) if not view.per else 1
    page = min(view.page, pages)
    chosen = order if view.per else order[(page - 1) * PER_PAGE : page * PER_PAGE]
    columns = columns_of_view(snapshot, view, None if whole else MOST_SUBSETS)
    subsets = sum(column.kind == "subset" for column in columns)
    state = (view.metric, field.group, view.protocol, view.setting, view.show, columns)
    made = snapshot.few(state, MadeLines)
    return TablePage(
        replace(view, page=page), field, columns, rows_at(snapshot, field, lines, chosen, columns, made), len(order),
        pages, bool(np.isfinite(field.means.lift).any()),
        len(snapshot.lines_of) - len(np.unique(field.systems)),
        has_codecs(snapshot),
        MOST_SUBSETS if subsets == MOST_SUBSETS < len(snapshot.subsets(view.metric)) and not whole else 0,
        made,
    )  # fmt: skip


@made_once
def has_codecs(snapshot: Snapshot) -> bool:
    """Whether any system with live scores is a codec."""
    return any(snapshot.systems[place].card.kind == "codec" for place in snapshot.lines_of)
