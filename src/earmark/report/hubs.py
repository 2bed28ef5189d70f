"""Who crowds whose neighbour list, before and after corrections: what text, figures and a page of hubness show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.errors import InputError
from earmark.geometry.hubness import k_occurrences
from earmark.scores import Scores
from earmark.tables import aligned, plain

Ints = NDArray[np.int64]

_NAMED = 28


@dataclass(frozen=True, kw_only=True, eq=False)
class HubView:
    """Neighbour lists of the same points, by (distance, correction), and what is known of the points.

    lists    {(distance, correction): rows [N, k], nearest first}
    vectors  [N, D], for a map; without them there is none.
    """

    title: str
    scores: Scores
    lists: Mapping[tuple[str, str], Ints]
    k: int
    ids: Sequence[str] | None = None
    labels: Sequence[str | None] | None = None
    vectors: NDArray[Any] | None = None

    @property
    def n(self) -> int:
        return len(next(iter(self.lists.values()))) if self.lists else 0

    @property
    def distances(self) -> list[str]:
        return list(dict.fromkeys(distance for distance, _ in self.lists))

    def corrections(self, distance: str) -> list[str]:
        return [correction for name, correction in self.lists if name == distance]

    def occurrences(self, distance: str, correction: str) -> Ints:
        """N_k: in how many lists each point stands."""
        return np.asarray(k_occurrences(self.lists[distance, correction], self.k), np.int64)

    def name(self, row: int) -> str:
        """A point by its id or row number, with its label where there is one."""
        told = plain(self.ids[row]) if self.ids is not None else f"row {row}"
        label = self.labels[row] if self.labels is not None else None
        return f"{told} ({plain(label)})" if label else told

    def short_name(self, row: int) -> str:
        return plain(self.name(row), _NAMED)

    def listed_by(self, distance: str, correction: str, row: int) -> Ints:
        """The points that have `row` among their k nearest."""
        return np.asarray(np.flatnonzero((self.lists[distance, correction] == row).any(axis=1)), np.int64)

    def before(self, distance: str) -> str:
        """The correction that others are compared with: none, where it was measured."""
        known = self.corrections(distance)
        if not known:
            raise InputError(f"There are no neighbour lists under {distance}: k must be smaller than the set.")
        return "none" if "none" in known else known[0]

    def after(self, distance: str) -> str | None:
        """The correction that evens the lists out most, by hub_ratio."""
        first = self.before(distance)
        ratio = {
            row.correction: row.value
            for row in self.scores
            if (row.distance, row.metric) == (distance, "hub_ratio") and row.value is not None
        }
        others = [name for name in self.corrections(distance) if name != first and name in ratio]
        return min(others, key=lambda name: ratio[name]) if others else None

    def hubs(self, distance: str, top: int) -> Ints:
        """The points in the most lists before correction, most first."""
        counts = self.occurrences(distance, self.before(distance))
        return np.asarray(np.argsort(-counts, kind="stable")[:top], np.int64)


def bins(k: int) -> list[tuple[str, int, int]]:
    """How many lists: a title and the least and most of each bin, in multiples of the mean, which is k."""
    edges = [0, k, 2 * k, 5 * k, 10 * k]
    found = [("0", 0, 0)]
    for low, high in pairwise(edges):
        found.append((f"{low + 1}–{high}" if high > low + 1 else f"{high}", low + 1, high))
    return [*found, (f"over {edges[-1]}", edges[-1] + 1, np.iinfo(np.int64).max)]


def distribution(view: HubView, distance: str) -> list[list[str]]:
    """How many points are in no list, in few, in many: a head, and a line for each correction."""
    ranges = bins(view.k)
    lines = [["lists", *(title for title, _, _ in ranges), "most"]]
    for correction in view.corrections(distance):
        counts = view.occurrences(distance, correction)
        cells = [str(int(((counts >= low) & (counts <= high)).sum())) for _, low, high in ranges]
        lines.append([correction, *cells, str(int(counts.max()))])
    return lines


def hub_counts(view: HubView, distance: str, top: int) -> dict[int, list[str]]:
    """By row, the busiest points before correction: in how many lists each correction leaves them."""
    counts = [view.occurrences(distance, name) for name in view.corrections(distance)]
    return {int(row): [str(int(own[row])) for own in counts] for row in view.hubs(distance, top)}


def distribution_text(view: HubView, distance: str) -> str:
    """How many points are in how many lists, for a terminal."""
    (_, *heads), *lines = distribution(view, distance)
    heading = f"points by the number of lists of {view.k} they are in, {distance}"
    return "\n".join([heading, *aligned([["in lists", *heads], *lines], left=1, indent="  ")])


def hubs_text(view: HubView, distance: str, top: int) -> str:
    """The busiest points before correction, and what each correction makes of them, for a terminal."""
    lines = [["", *view.corrections(distance)]]
    lines += [[view.short_name(row), *counts] for row, counts in hub_counts(view, distance, top).items()]
    heading = f"top hubs, {distance} (lists of {view.k} they appear in)"
    return "\n".join([heading, *aligned(lines, left=1, indent="  ")])
