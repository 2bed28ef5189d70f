"""Two to six systems side by side, and every pair of them subset by subset.

A difference of two systems is taken on each subset that both have and averaged, and tested as ranks are: by a paired
t-test over these subsets, with fewer than three by the errors of the scores. Pairing removes what makes a subset hard
for everybody, so that two systems can be told apart although the intervals of their means overlap. As only a system
with all subsets of a mean has a rank by it, only two such systems have a verdict by it: nobody gains by leaving subsets
out. Harmonic means are tested as they are ranked, by the mean of -1 / value, which has their order; what is shown is
the difference of the two harmonic means, without an interval, because that of -1 / value has no unit of the metric.

Intervals and p-values are always those of 15 pairs, the most that a page holds: the chance that any verdict on it is
wrong is at most 5 %, and what is said of a pair depends on nobody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.ranks import DEVIATIONS, LEVEL, PairedMean, paired_mean
from earmark.board.boards.cells import Cell, mean_cells, panel_cells
from earmark.board.boards.chosen import chosen_key
from earmark.board.boards.contents import BEST, NoSuchSystem
from earmark.board.boards.field import Field, Rank
from earmark.board.boards.groups import Group
from earmark.board.boards.lines import Bitrate, Choices, bitrates, setting_of, settings_of
from earmark.board.boards.panels import Panel
from earmark.board.boards.snapshot import Snapshot
from earmark.board.records import System
from earmark.errors import UsageError
from earmark.scores import harmonic_mean

Floats = NDArray[np.float64]

FEWEST, MOST = 2, 6
PAIRS = MOST * (MOST - 1) // 2
_TIE = 1e-12


class Compared(NamedTuple):
    """One of the systems: its line, its cells on the subsets, its mean and its rank among the systems of its kind."""

    key: str
    system: System
    setting: str
    rank: int
    rank_low: int
    rank_high: int
    tier: int
    mean: Cell
    cells: tuple[Cell, ...]
    kind: str = ""
    bitrate: Bitrate | None = None
    tried: int = 1
    chosen: Choices = ()


class Difference(NamedTuple):
    """One minus other: mean over the subsets that both have, its interval and p-value, corrected for 15 pairs, and on
    how many each is better; of harmonic means their difference, without an interval.

    Without a p-value there is no verdict, and the `reason` says why where it is not for want of errors. Where one of
    the two lacks subsets of the mean, `shared` is the key of the mean over those that both have.
    """

    one: int
    other: int
    mean: float | None
    low: float | None
    high: float | None
    subsets: int
    better: int
    worse: int
    p: float | None = None
    reason: str = ""
    shared: str = ""

    @property
    def sure(self) -> bool:
        """Whether the two are told apart: the p-value is below 5 %, and an interval leaves out 0."""
        return self.p is not None and self.p < 1 - LEVEL


class Comparison(NamedTuple):
    metric: str
    group: Group
    protocol: str
    subsets: tuple[str, ...]
    compared: tuple[Compared, ...]
    differences: tuple[Difference, ...]


def compare(
    snapshot: Snapshot, keys: Sequence[str], *, metric: str = "", over: str = "", protocol: str = ""
) -> Comparison:
    """Compare the systems of 2 to 6 different keys ("slug" or "slug:setting") under one metric."""
    chosen = list(dict.fromkeys(keys))
    if not FEWEST <= len(chosen) <= MOST:
        raise UsageError(f"A comparison takes {FEWEST} to {MOST} different systems, not {len(chosen)}.")
    metric = metric or snapshot.metrics[0]
    group = snapshot.group(metric, over)
    protocol = protocol or snapshot.protocols(metric)[0]
    compared = tuple(_compared(snapshot, key, metric, group, protocol) for key in chosen)
    better = 1.0 if snapshot.definition.facts(metric).higher_is_better else -1.0
    pairs = combinations(enumerate(compared), 2)
    differences = tuple(_difference(*one, *other, group, better) for one, other in pairs)
    return Comparison(metric, group, protocol, group.subsets, compared, differences)


def cells_of(panel: Panel, row: int, subsets: Sequence[str]) -> tuple[Cell, ...]:
    """The cells of one row of a panel on some subsets, which may be none of its own."""
    own = [name for name in subsets if name in panel.column_of]
    cells = panel_cells(panel, np.full(len(own), row), panel.columns(own))
    by_subset = dict(zip(own, cells, strict=True))
    return tuple(by_subset.get(name) or Cell(None, reason="not measured") for name in subsets)


def _compared(snapshot: Snapshot, key: str, metric: str, group: Group, protocol: str) -> Compared:
    system, setting = snapshot.named(key)
    place = snapshot.places[system.slug]
    setting = setting or snapshot.usual_setting(metric)
    field = snapshot.field(metric, group.key, protocol, setting if setting in snapshot.settings(metric) else BEST)
    own = np.flatnonzero(field.systems == place).tolist()
    if not own or setting not in (BEST, *snapshot.settings(metric)):
        where = f" under {setting}" if setting != BEST else ""
        raise NoSuchSystem(f'"{system.card.name}" has no {metric}{where} with the protocol {protocol}.')
    at = own[0]
    row, line = int(field.rows[at]), snapshot.lines[field.panel.lines[field.rows[at]]]
    tried, choices = settings_of(snapshot, field, at)
    shown = snapshot.means_shown(metric, group, field.best).take(field.rows)
    (mean,) = mean_cells(field.means, np.array([at]), shown=shown)
    chosen = setting_of(line, choices)
    return Compared(
        system.slug if choices else system.key(chosen), system, chosen,
        *_usual_rank(snapshot, field, at, protocol), mean, cells_of(field.panel, row, group.subsets), field.kinds[at],
        bitrates(snapshot).get(place), tried, choices,
    )  # fmt: skip


def _usual_rank(snapshot: Snapshot, field: Field, at: int, protocol: str) -> Rank:
    """The rank that a line has on the board, which ranks one line of each system; another line of it has none."""
    ranked = snapshot.field(field.metric, field.group.key, protocol)
    if field is ranked:
        return field.rank_at(at)
    place = int(field.systems[at])
    own = np.flatnonzero(ranked.systems == place).tolist()
    line = snapshot.lines[field.panel.lines[field.rows[at]]]
    _, choices = settings_of(snapshot, ranked, own[0]) if own else (0, ())
    same = own and setting_of(snapshot.lines[ranked.panel.lines[ranked.rows[own[0]]]], choices) == line.setting
    return ranked.rank_at(own[0]) if same and not field.best else Rank()


def _difference(one: int, first: Compared, other: int, second: Compared, group: Group, better: float) -> Difference:
    cells = zip(group.subsets, first.cells, second.cells, strict=True)
    both = [(name, mine, theirs) for name, mine, theirs in cells if mine.status == theirs.status == "ok"]
    if not both:
        return Difference(one, other, None, None, None, 0, 0, 0, reason="cannot be told: they share no subset")
    names = [name for name, _, _ in both]
    values = np.array([[_value(mine), _value(theirs)] for _, mine, theirs in both])
    errors = np.array([[_error(mine), _error(theirs)] for _, mine, theirs in both])
    mean, low, high, p = (_harmonic if group.harmonic else _plain)(values, errors)
    turned = better * (values[:, 0] - values[:, 1])
    ahead, behind = int((turned > _TIE).sum()), int((turned < -_TIE).sum())
    found = Difference(one, other, mean, low, high, len(both), ahead, behind, p)
    if len(both) < len(group.subsets):
        why = f"cannot be told: they share {len(both)} of {len(group.subsets)} subsets; compare over those"
        return found._replace(low=None, high=None, p=None, reason=why, shared=chosen_key(names))
    if group.harmonic and not (mean is not None and all(map(harmonic_mean, values.T.tolist()))):
        least = "a negative value" if mean is None else "a value of 0"
        return found._replace(reason=f"cannot be told: a harmonic mean with {least} has no test")
    return found


def _plain(values: Floats, errors: Floats) -> PairedMean:
    """The test of the difference of two means, from values and errors [subsets, 2]."""
    error = float(np.sqrt((errors**2).sum())) / len(values)
    return paired_mean(values[:, 0] - values[:, 1], error, pairs=PAIRS)


def _harmonic(values: Floats, errors: Floats) -> tuple[float | None, None, None, float | None]:
    """The difference of two harmonic means, and the p-value of that of the means of -1 / value."""
    one, other = (harmonic_mean(column.tolist()) for column in values.T)
    mean = None if one is None or other is None else one - other
    p = _plain(-1 / values, errors / values**2).p if one and other else None
    return mean, None, None, p


def _value(cell: Cell) -> float:
    return np.nan if cell.value is None else cell.value


def _error(cell: Cell) -> float:
    """The standard error of a score, from its interval; NaN where it has none."""
    return np.nan if cell.low is None or cell.high is None else (cell.high - cell.low) / (2 * DEVIATIONS)
