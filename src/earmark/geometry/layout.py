"""Points laid out so that every question of class or group is a range: sorted by class, grouped by index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.geometry.label_sets import LabelSets

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """`order[place]` is the original row of a place; places of class c are `starts[c]` to `starts[c + 1]`.

    `groups` holds the group of each place, or is None; `group_members[group_starts[g]:group_starts[g + 1]]`
    are the places of group g. `sets` are there where clips may have several labels or none: a class is then a set.
    """

    order: Ints
    codes: Ints
    starts: Ints
    groups: Ints | None
    group_starts: Ints
    group_members: Ints
    sets: LabelSets | None = None

    @property
    def n(self) -> int:
        return len(self.order)

    @property
    def classes(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> Ints:
        return np.diff(self.starts)

    @property
    def first(self) -> Ints:
        return self.starts[self.codes]

    @property
    def last(self) -> Ints:
        return self.starts[self.codes + 1]

    def to_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values per place, rearranged to the rows the user gave."""
        rows = np.empty_like(values)
        rows[self.order] = values
        return rows


def lay_out(codes: Ints, groups: Ints | None = None, sets: LabelSets | None = None) -> Layout:
    """Lay out points with class numbers `codes` (0..C-1, all present), optional group numbers and label sets."""
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if groups is None:
        none = np.zeros(0, np.int64)
        return Layout(order, codes[order], starts, None, none, none, sets)
    placed = groups[order]
    members = np.argsort(placed, kind="stable")
    group_starts = np.concatenate([[0], np.cumsum(np.bincount(placed))]).astype(np.int64)
    return Layout(order, codes[order], starts, placed, group_starts, members, sets)


def one_class(n: int) -> Layout:
    """The layout of points without labels."""
    return lay_out(np.zeros(n, np.int64))
