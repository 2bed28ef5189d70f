"""Clips with several labels, or with none: which label sets share what, and who has a partner.

A set of labels takes the place of a class: places with equal sets have one code in the layout. The empty set is the
background, which shares a label with nobody. A class is a set of one, and everything here then says what classes say.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.geometry import label_kernels

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Entries(NamedTuple):
    """Every label of every place: the place, and the label."""

    places: Ints
    labels: Ints


@dataclass(frozen=True)
class LabelSets:
    """Set s holds the labels `members[starts[s]:starts[s + 1]]`, which rise; there are `labels` of them."""

    starts: Ints
    members: Ints
    labels: int

    @cached_property
    def sizes(self) -> Ints:
        return np.diff(self.starts)

    def shared(self, first: Ints, second: Ints) -> Ints:
        """How many labels two sets share, for arrays of one shape; 0 where one is -1."""
        first, second = np.broadcast_arrays(first, second)
        counts = np.empty(first.size, np.int64)
        label_kernels.count_shared(
            np.ascontiguousarray(first).ravel(), np.ascontiguousarray(second).ravel(), self.starts, self.members, counts
        )
        return counts.reshape(first.shape)

    def entries(self, codes: Ints) -> Entries:
        """Every label of places whose sets are `codes`."""
        sizes = self.sizes[codes]
        places = np.repeat(np.arange(len(codes)), sizes)
        offsets = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return Entries(places, self.members[self.starts[codes][places] + offsets])

    def holds(self, codes: Ints, labels: Ints) -> Bools:
        """Whether each set (-1: none) has a label."""
        held = np.empty(len(codes), np.bool_)
        label_kernels.find_labels(codes, labels, self.starts, self.members, held)
        return held


def singletons(classes: int) -> LabelSets:
    """The sets of clips that have one label each."""
    return LabelSets(np.arange(classes + 1), np.arange(classes), classes)


def sets_of(texts: list[tuple[str, ...]]) -> tuple[LabelSets, Ints, tuple[str, ...]]:
    """The distinct sets among those of some clips, the set of each clip, and the labels in their order."""
    labels = tuple(sorted({label for held in texts for label in held}))
    number = {label: place for place, label in enumerate(labels)}
    distinct = sorted({tuple(sorted(number[label] for label in held)) for held in texts})
    code = {held: place for place, held in enumerate(distinct)}
    codes = np.array([code[tuple(sorted(number[label] for label in held))] for held in texts], np.int64)
    starts = np.concatenate([[0], np.cumsum([len(held) for held in distinct])]).astype(np.int64)
    members = np.array([label for held in distinct for label in held], np.int64)
    return LabelSets(starts, members, len(labels)), codes, labels


class Partners(NamedTuple):
    """For each asker (`of` each label of each place): whether there is a partner, and the one unit that holds all (-1).

    An asker is a place, whose partners share a label with it, or one label of a place, whose partners have that label.
    """

    entries: Entries
    of: Ints
    answerable: Bools
    sole: Ints


def partners_of(sets: LabelSets, codes: Ints, units: Ints, *, across: bool, by_label: bool = False) -> Partners:
    """Who may be found by whom: `across` counts partners of other units alone, `by_label` asks label by label."""
    entries = sets.entries(codes)
    of, askers = (np.arange(len(entries.places)), len(entries.places)) if by_label else (entries.places, len(codes))
    own, count = units[entries.places], int(units.max(initial=0)) + 1
    if not len(own):
        return Partners(entries, of, np.zeros(askers, bool), np.full(askers, -1))
    cells, cell, size = np.unique(entries.labels * count + own, return_inverse=True, return_counts=True)
    totals = np.bincount(entries.labels, minlength=sets.labels)
    inside = (np.bincount(of, size[cell] > 1, askers) > 0) & (not across)
    outside = np.bincount(of, totals[entries.labels] > size[cell], askers) > 0
    # Cells are sorted by label. Of the first three units of a label at least two are others, if there are so many.
    first = np.searchsorted(cells, np.arange(sets.labels) * count)
    held = np.diff(np.append(first, len(cells)))[entries.labels]
    lowest, highest = np.full(askers, count), np.full(askers, -1)
    for step in range(3):
        unit = cells[np.minimum(first + step, len(cells) - 1)][entries.labels] % count
        other = (step < held) & (unit != own)
        np.minimum.at(lowest, of[other], unit[other])
        np.maximum.at(highest, of[other], unit[other])
    return Partners(entries, of, inside | outside, np.where((lowest == highest) & ~inside, highest, -1))
