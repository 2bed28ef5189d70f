"""Which labels may change places under the null: units that carry one label each, exchanged inside blocks.

      no groups               every clip is a unit                  one block                          clips
      constant groups         the group is a unit                   groups of one size (or all)        whole_groups
      groups of many labels   every clip is a unit                  its group                          inside_groups
      some of each            groups and clips                      as above, side by side             blocks

What groups share (a voice, a room) is in the vectors, so under the null a label may only move to where it could as well
have been given: from group to group where a group has one label, from clip to clip where it has several. Every count
of labels by block stays. All metrics are blind to the names of classes, so two arrangements that differ by names alone
are one: six groups of three labels, two each, have 90 labellings and 15 arrangements.

Groups of one size are exchanged among themselves where that leaves room, because then no class changes its size and
labels that go with size (long recordings of one species) are no evidence. Where sizes are too varied for it, all
constant groups are exchanged and class sizes vary between shuffles. The choice rests on sizes alone: it is the same
for every arrangement it leads to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import factorial, inf, lgamma, log, prod

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate import _streams, kernels
from earmark.geometry.layout import Layout
from earmark.wording import counted

Ints = NDArray[np.int64]

FEWEST = 20  # fewer arrangements than this can never give p <= 0.05
ROOM = 1000  # orders of groups of equal size that suffice to leave class sizes alone
IGNORED = "labels were shuffled over clips whatever their group: where clips of a group are alike, p is too small"
COUNTED = 1e12  # past this many, arrangements are not counted but called infinite


@dataclass(frozen=True)
class Scheme:
    """How labels are shuffled: `name` (clips, whole_groups, inside_groups, blocks, "" for not at all) and why.

    `units[place]` is the unit of a place, `unit_codes` the label of each unit; units are numbered block by block,
    block b holds `starts[b]` to `starts[b + 1]`. `arrangements` counts the distinct ones, the given one among them.
    `ignored` says that clips have groups which the shuffles do not respect. Where labels are sets, which share labels
    and so cannot trade names, arrangements are drawn and never gone through; their number is then the least there are.
    """

    name: str
    reason: str
    arrangements: float
    units: Ints
    unit_codes: Ints
    starts: Ints
    ignored: bool = False
    blind: bool = True  # whether the metrics are blind to the names of classes, as they are not to label sets

    @property
    def label(self) -> str:
        """What the column `shuffle` says."""
        return "clips_ignoring_groups" if self.ignored else self.name

    @property
    def testable(self) -> bool:
        """Whether a p-value can mean anything."""
        return self.name == "clips" or self.arrangements >= FEWEST

    def exact(self, permutations: int) -> bool:
        """Whether all arrangements are gone through, because there are no more of them than shuffles asked for."""
        return self.blind and self.name != "clips" and self.arrangements <= permutations

    def draws(self, permutations: int) -> int:
        """How many arrangements a null of `permutations` shuffles holds; enumerated, all but the given one."""
        if not self.name:
            return 0
        return int(self.arrangements) - 1 if self.exact(permutations) else permutations

    def notes(self, permutations: int) -> tuple[str, ...]:
        """What a reader of the row should know of its null."""
        if self.exact(permutations) and self.testable:
            return (*filter(None, [self.reason]), f"all {counted(int(self.arrangements), 'arrangement')} enumerated")
        return tuple(filter(None, [self.reason]))

    @cached_property
    def enumerated(self) -> Ints:
        """[A - 1, units]: the labels of the units in every arrangement but the given one."""
        return np.array(list(_arrangements(self.unit_codes, self.starts)), np.int64).reshape(-1, len(self.unit_codes))

    def labels(self, seed: int, shuffle: int, *, exact: bool) -> Ints:
        """The labels of the units under one shuffle. Each has its own stream, so batches and threads do not matter."""
        if exact:
            return np.asarray(self.enumerated[shuffle])
        words = _streams.words_of(seed)
        if self.name == "clips":
            order, labels = (np.empty_like(self.unit_codes) for _ in range(2))
            _streams.permutation(words, shuffle, order)
            labels[order] = self.unit_codes
            return labels
        uniforms, labels = np.empty(len(self.unit_codes)), self.unit_codes.copy()
        _streams.uniforms(words, shuffle, uniforms)
        kernels.exchange(uniforms, self.starts, labels)
        return labels


def scheme_of(layout: Layout, *, ignore_groups: bool = False) -> Scheme:
    """The shuffles under which the labels of `layout` could as well have been given, from labels and groups alone.

    With `ignore_groups` labels move from clip to clip whatever their groups, as in papers that know no groups: the
    null is then that clips are independent, and what clips of a group share speaks against it.
    """
    places = np.arange(layout.n)
    sizes = np.ones(layout.n, np.int64) if layout.groups is None else np.bincount(layout.groups)
    grouped = layout.groups is not None and sizes.max(initial=0) > 1
    if layout.groups is None or not grouped or ignore_groups:
        reason = IGNORED if grouped else ""
        return Scheme("clips", reason, inf, places, layout.codes, np.array([0, layout.n]), ignored=grouped)
    pairs = np.unique(layout.groups * layout.classes + layout.codes)
    labels_of = np.bincount(pairs // layout.classes, minlength=len(sizes))
    whole = np.flatnonzero((labels_of == 1) & (sizes > 0))
    alike = _strata(sizes[whole])
    # A key per place: what moves together shares it, and keys are sorted by block.
    constant = labels_of[layout.groups] == 1
    block = layout.groups + len(sizes)
    stratum = np.zeros(len(sizes), np.int64)
    stratum[whole] = alike
    block[constant] = stratum[layout.groups[constant]]
    member = np.where(constant, layout.groups, places)
    keys, units = np.unique(block * max(layout.n, len(sizes)) + member, return_inverse=True)
    unit_codes = np.empty(len(keys), np.int64)
    unit_codes[units] = layout.codes
    blocks = keys // max(layout.n, len(sizes))
    starts = np.flatnonzero(np.diff(blocks, prepend=-1, append=-1))
    moving = [len(set(unit_codes[a:b].tolist())) > 1 for a, b in pairwise(starts)]
    wholes = blocks[starts[:-1]] < len(sizes)
    by_group, by_clip = bool((moving & wholes).any()), bool((moving & ~wholes).any())
    name = "blocks" if by_group and by_clip else "whole_groups" if by_group else "inside_groups" if by_clip else ""
    found = arrangements(unit_codes, starts, layout.classes)
    return Scheme(
        name if found > 1 else "", _reason(found, sizes[whole], alike, by_group), found, units, unit_codes, starts,
        blind=layout.sets is None,
    )  # fmt: skip


def _strata(sizes: Ints) -> Ints:
    """Which constant groups may exchange their labels: those of one size, or all where that is too little."""
    _, stratum, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    room = sum(lgamma(count + 1) for count in counts)
    return stratum if room >= log(ROOM) else np.zeros_like(stratum)


def _reason(found: float, sizes: Ints, strata: Ints, by_group: bool) -> str:
    if found <= 1:
        return "no p-value: with these groups the labels can be arranged in no other way"
    if found < FEWEST:
        ways = counted(int(found), "arrangement")
        return f"no p-value: with these groups the labels have {ways}, and fewer than {FEWEST} never give p <= 0.05"
    if by_group and strata.max() == 0 and len(set(sizes.tolist())) > 1:
        return "groups differ in size, so class sizes vary between shuffles"
    return ""


def arrangements(unit_codes: Ints, starts: Ints, classes: int) -> float:
    """How many arrangements there are: labellings of each block, over the renamings of classes that change nothing."""
    profiles: list[list[tuple[int, int]]] = [[] for _ in range(classes)]
    tops: list[int] = []
    bottoms: list[int] = []
    for block, (start, stop) in enumerate(pairwise(starts.tolist())):
        tops.append(stop - start)
        for code, count in Counter(unit_codes[start:stop].tolist()).items():
            bottoms.append(count)
            profiles[code].append((block, count))
    # Classes with the same counts in every block can trade names.
    bottoms += Counter(tuple(profile) for profile in profiles).values()
    size = sum(lgamma(n + 1) for n in tops) - sum(lgamma(n + 1) for n in bottoms)
    if size > log(COUNTED):
        return inf
    return prod(map(factorial, tops)) // prod(map(factorial, bottoms))


def _arrangements(unit_codes: Ints, starts: Ints) -> Iterator[list[int]]:
    """Every arrangement but the given one, each under one of its names.

    Classes with the same counts in every block are of one kind; of a kind, the lowest number not yet used comes next.
    """
    classes = int(unit_codes.max()) + 1
    blocks = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    table = np.zeros((len(starts) - 1, classes), np.int64)
    np.add.at(table, (blocks, unit_codes), 1)
    kinds = np.unique(table, axis=1, return_inverse=True)[1].ravel().tolist()
    rank = [kinds[:code].count(kind) for code, kind in enumerate(kinds)]
    given = _renamed(unit_codes.tolist(), kinds)
    room, used, block = table.tolist(), [0] * (max(kinds) + 1), blocks.tolist()
    labels: list[int] = []
    fresh: list[bool] = []
    code = 0
    while True:
        here = room[block[len(labels)]] if len(labels) < len(block) else []
        while code < len(here) and not (here[code] and rank[code] <= used[kinds[code]]):
            code += 1
        if code < len(here):
            fresh.append(rank[code] == used[kinds[code]])
            used[kinds[code]] += fresh[-1]
            here[code] -= 1
            labels.append(code)
            code = 0
            continue
        if len(labels) == len(block) and labels != given:
            yield list(labels)
        if not labels:
            return
        code = labels.pop()
        room[block[len(labels)]][code] += 1
        used[kinds[code]] -= fresh.pop()
        code += 1


def _renamed(labels: list[int], kinds: list[int]) -> list[int]:
    """The same arrangement with classes of one kind numbered as they first appear."""
    waiting: dict[int, list[int]] = {}
    for code, kind in enumerate(kinds):
        waiting.setdefault(kind, []).append(code)
    names: dict[int, int] = {}
    for code in labels:
        if code not in names:
            names[code] = waiting[kinds[code]].pop(0)
    return [names[code] for code in labels]
