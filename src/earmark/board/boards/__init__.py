"""A board as readers see it: its live scores as arrays, tables of it, comparisons, costs, subsets and analyses."""

from __future__ import annotations

from earmark.board.boards.contents import NoSuchSystem
from earmark.board.boards.costs import Front, pareto
from earmark.board.boards.pairs import Comparison, compare
from earmark.board.boards.snapshot import NoSuchBoard, Snapshot
from earmark.board.boards.snapshots import Snapshots
from earmark.board.boards.subsets import SubsetSummary, summarise
from earmark.board.boards.table import TablePage, table
from earmark.board.boards.view import BoardView

__all__ = [
    "BoardView",
    "Comparison",
    "Front",
    "NoSuchBoard",
    "NoSuchSystem",
    "Snapshot",
    "Snapshots",
    "SubsetSummary",
    "TablePage",
    "compare",
    "pareto",
    "summarise",
    "table",
]
