"""The best of each system's settings, without a reward for trying many.

A system may be measured under several settings (a distance and a correction). Its line "best of each system" takes, on
each subset, the setting that is best on the *other* subsets, and the value that it has on this one. So no value decides
that it is itself shown: whoever tries sixty settings of chance is expected where one of them is, and a system whose one
setting is best everywhere keeps all its values. The line is one for each metric and protocol, whatever is averaged.

Nobody gains by gaps. Subsets that authors measure, blind ones, and those outside the definition are each looked at by
themselves: only settings that have every subset there which the system has under any are candidates, and where no
setting has, the one with the most is taken for all of them, gaps included. Candidates are compared on the subsets of
the definition that all of them have. Where those tell nothing (one subset alone, equal means), a fixed order decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.panels import ARRAYS, Floats, Line, Panel, Whole

Flags = NDArray[np.bool_]
_TIE = 1e-9


class Strata(NamedTuple):
    """The columns of a panel in parts that are looked at by themselves, and which of them settings are compared on."""

    parts: tuple[Whole, ...]
    compared: Flags


class Best(NamedTuple):
    """A panel with one row for each system, and where its cells come from.

    sources  [systems, subsets] rows of the panel of all lines
    systems  [systems] their places in the snapshot
    tried    [systems] under how many settings each was measured
    counts   [systems] whether its settings are known ones
    """

    panel: Panel
    sources: Whole
    systems: Whole
    tried: Whole
    counts: Flags

    def settings(self, lines: Sequence[Line], full: Panel, row: int, columns: Whole) -> tuple[tuple[str, int], ...]:
        """The settings of a row with the number of subsets, among some, that each was chosen for; the most first."""
        measured = columns[np.isfinite(self.panel.shown_at(row, columns))]
        rows = self.sources[row, measured if measured.size else columns[:1]]
        return tuple(Counter(lines[number].setting for number in full.lines[rows].tolist()).most_common())


def best_of_each(
    panel: Panel, lines: Sequence[Line], rows: Whole, strata: Strata, better: float,
    known: Callable[[Line], bool], order: Callable[[Line], tuple[int, int, int, str]],
) -> Best:  # fmt: skip
    """The best line of each system among some `rows` of a panel; `better` is -1 where less is.

    Settings that are not `known` are no candidates, unless a system has no others: then it is shown and does not count.
    """
    of = [lines[number] for number in panel.lines[rows].tolist()]
    preferred = [order(line) for line in of]
    place = {key: number for number, key in enumerate(sorted(set(preferred)))}
    recognised = np.array([known(line) for line in of], bool)
    systems = np.array([line.system for line in of], np.int64)
    with_known = np.zeros(int(systems.max(initial=-1)) + 1, bool)
    with_known[systems[recognised]] = True
    kept = recognised | ~with_known[systems]
    sequence = np.lexsort([np.array([place[key] for key in preferred], np.int64), systems])
    sequence = sequence[kept[sequence]]
    rows, systems, recognised = rows[sequence], systems[sequence], recognised[sequence]
    own, first, tried = np.unique(systems, return_index=True, return_counts=True)
    if (tried == 1).all():
        whole = len(rows) == len(panel.lines) and bool((rows == np.arange(len(rows))).all())
        same = panel if whole else panel.take(rows, panel.lines[rows])
        sources = np.broadcast_to(rows[:, None], (len(rows), len(panel.subsets)))
        return Best(same, sources, own, tried, recognised[first])
    sources = np.empty((len(own), len(panel.subsets)), np.int64)
    values = better * panel.measured()
    for count in np.unique(tried).tolist():
        block = np.flatnonzero(tried == count)
        candidates = rows[first[block][:, None] + np.arange(count)]  # [block, settings]
        sources[block] = np.take_along_axis(candidates, _chosen(values[candidates], strata), axis=1)
    return Best(_gathered(panel, sources, strata), sources, own, tried, recognised[first])


def _chosen(values: Floats, strata: Strata) -> Whole:
    """Which setting each subset [systems, subsets] is taken from, of `values` [systems, settings, subsets], of which
    more is better and NaN is a gap; settings are in the order that decides between equals."""
    systems, settings, subsets = values.shape
    chosen = np.zeros((systems, subsets), np.int64)
    if settings == 1:
        return chosen
    have = np.isfinite(values)
    for columns in strata.parts:
        cover = have[:, :, columns].sum(axis=2)
        candidate = cover == have[:, :, columns].any(axis=1).sum(axis=1)[:, None]
        gaps = np.flatnonzero(~candidate.any(axis=1))
        candidate[gaps, cover[gaps].argmax(axis=1)] = True
        shared = (have | ~candidate[:, :, None]).all(axis=1) & strata.compared
        counted = np.where(shared[:, None, :], values, 0.0)
        others = counted.sum(axis=2)[:, :, None] - counted[:, :, columns]
        others[~candidate] = -np.inf
        close = others >= others.max(axis=1, keepdims=True) - _TIE
        chosen[:, columns] = close.argmax(axis=1)
    return chosen


def _gathered(panel: Panel, sources: Whole, strata: Strata) -> Panel:
    """The cells of a panel that are chosen; a row stands for the line that most of its subsets are from."""
    columns = np.arange(sources.shape[1])
    arrays = {name: getattr(panel, name)[sources, columns] for name in ARRAYS}
    compared = np.flatnonzero(strata.compared)
    usual = [Counter(line).most_common(1)[0][0] for line in sources[:, compared if compared.size else columns].tolist()]
    reasons = {}
    if panel.reasons:
        row_of = {source: row for row, line in enumerate(sources.tolist()) for source in set(line)}
        for (source, column), text in panel.reasons.items():
            row = row_of.get(source)
            if row is not None and sources[row, column] == source:
                reasons[row, column] = text
    return replace(panel, lines=panel.lines[np.array(usual, np.int64)], reasons=reasons, **arrays)
