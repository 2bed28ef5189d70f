"""The lines of a table and how they are ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.ranks import RankIntervals
from earmark.board.boards.codecs import ORDER
from earmark.board.boards.groups import Group
from earmark.board.boards.panels import (
    Means,
    Panel,
)

Whole = NDArray[np.int64]


class Rank(NamedTuple):
    """A rank with its interval and tier; 0 is none. Nobody is surely ahead of a line in tier 1."""

    rank: int = 0
    low: int = 0
    high: int = 0
    tier: int = 0


@dataclass(frozen=True, eq=False)
class Field:
    """The lines of a table, and how they are ranked: rows of a panel, means, ranks among the lines of each kind.

    The panel is that of all lines, or where `best` is a protocol, the one with the best line of each system.
    """

    metric: str
    group: Group
    panel: Panel
    rows: Whole
    systems: Whole  # places in the snapshot
    means: Means
    ranks: RankIntervals
    kinds: tuple[str, ...]  # `earmark.board.boards.codecs.ORDER`
    best: str = ""
    tried: Sequence[int] = ()  # settings of each line, where any system was tried under several
    every_setting: bool = False  # whether a system has a line for each of its settings

    @cached_property
    def ranked(self) -> int:
        return int((self.ranks.rank > 0).sum())

    @cached_property
    def kind_places(self) -> Whole:
        """The kind of each line by its place in `ORDER`."""
        if set(self.kinds) == {ORDER[0]}:
            return np.zeros(len(self.kinds), np.int64)
        place = {kind: number for number, kind in enumerate(ORDER)}
        return np.array([place[kind] for kind in self.kinds], np.int64)

    def among(self, place: int) -> int:
        """Among how many lines a line is ranked."""
        return int(((self.kind_places == self.kind_places[place]) & (self.ranks.rank > 0)).sum())

    def rank_at(self, place: int) -> Rank:
        """The rank of a line, its interval and its tier; 0 is none."""
        return Rank(*(int(part[place]) for part in self.ranks[:4]))
