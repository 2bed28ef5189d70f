"""The table of a board in one view: which lines, in which order, with which columns and cells.

Pages, downloads and the API all take it from here, so that they agree. Ranks belong to the whole field (every system
under the same metric, mean, protocol and setting); a filter or a search leaves lines out and changes no rank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.cells import CellColumn
from earmark.board.boards.columns import Column, columns_of_view
from earmark.board.boards.field import Field
from earmark.board.boards.lines import TableRow, cell_columns, rows_at
from earmark.board.boards.memory import made_once
from earmark.board.boards.panels import PROVENANCES
from earmark.board.boards.selection import kept_places, order_of
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.view import PER_PAGE, BoardView

Whole = NDArray[np.int64]

MOST_SUBSETS = 100
"""Subsets that have a column on a page; files have all."""


@dataclass(frozen=True, eq=False)
class TablePage:
    """One page of a table in one view: which lines of a field, in their order, and with which columns."""

    snapshot: Snapshot
    view: BoardView
    field: Field
    columns: tuple[Column, ...]
    places: Whole  # of the lines, in the field
    total: int  # lines that the filters leave
    pages: int
    cut: int = 0  # how many of the subsets have a column, where not all of them have

    @property
    def lifted(self) -> bool:
        """Whether any line has a lift over chance."""
        return bool(np.isfinite(self.field.means.lift).any())

    @property
    def elsewhere(self) -> int:
        """The number of systems of the board without a value of this metric, setting and protocol."""
        return len(self.snapshot.lines_of) - len(np.unique(self.field.systems))

    @property
    def codecs(self) -> bool:
        """Whether there are codecs, whose bitrate is a column."""
        return has_codecs(self.snapshot)

    @cached_property
    def scored(self) -> tuple[CellColumn, ...]:
        """The cells, column by column."""
        return cell_columns(self.snapshot, self.field, self.places, self.columns)

    @cached_property
    def rows(self) -> tuple[TableRow, ...]:
        """The lines one by one; those who write many of them take `scored` and `heads_at` instead."""
        return rows_at(self.snapshot, self.field, self.places, self.scored)


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
    cut = MOST_SUBSETS if subsets == MOST_SUBSETS < len(snapshot.subsets(view.metric)) and not whole else 0
    return TablePage(snapshot, replace(view, page=page), field, columns, chosen, len(order), pages, cut)


@made_once
def has_codecs(snapshot: Snapshot) -> bool:
    """Whether any system with live scores is a codec."""
    return any(snapshot.systems[place].card.kind == "codec" for place in snapshot.lines_of)
