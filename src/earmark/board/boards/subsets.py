"""One subset of a board: what is known of it, how far it is solved, and who is best on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.cells import Cell, panel_cells
from earmark.board.boards.chosen import chosen_key
from earmark.board.boards.codecs import ORDER, RANKED
from earmark.board.boards.field import Field
from earmark.board.boards.lines import setting_of, settings_of
from earmark.board.boards.memory import made_once
from earmark.board.boards.snapshot import Snapshot
from earmark.board.records import System
from earmark.board.refusals import NotFound
from earmark.errors import UsageError, did_you_mean
from earmark.report.metric_text import facts, number, points
from earmark.scores import Metric
from earmark.scores.spelling import is_single
from earmark.wording import counted

Floats = NDArray[np.float64]

NEAR = 0.01
"""A value this share of the metric's range away from the best counts as being as good."""
SOLVED = 0.98
"""From this share of the possible on, the best value leaves too little room to compare models."""
CROWDED = 0.1


class Standing(NamedTuple):
    """A system on the subset, with its rank there, as everywhere, and the interval and tier of it; 0 is none."""

    system: System
    setting: str
    cell: Cell
    rank: int
    rank_low: int
    rank_high: int
    tier: int
    kind: str = ""

    @property
    def value(self) -> float:
        assert self.cell.value is not None
        return self.cell.value


class SubsetSummary(NamedTuple):
    subset: str
    title: str
    metric: str
    facts: tuple[tuple[str, str], ...]
    standings: tuple[Standing, ...]  # best first, each kind by itself; the first of them, where not all were wanted
    total: int  # how many there are
    values: Floats  # of the systems of the kind that is ranked first, best first
    best: float
    median: float
    quartiles: tuple[float, float]
    near: int  # systems as good as the best
    verdict: str
    sentence: str


def summarise(
    snapshot: Snapshot, subset: str, *, metric: str = "", protocol: str = "", setting: str = "", most: int | None = None
) -> SubsetSummary:
    """What the live scores say of a subset under one metric, each system under the setting that it is ranked by; with
    the first `most` standings alone, or all of them."""
    everything = {name for panel in snapshot.panels.values() for name in panel.subsets if is_single(name)}
    if subset not in everything:
        near = did_you_mean(subset, everything)
        raise NotFound(f'The board "{snapshot.board}" has no subset "{subset}".{near}')
    offered = metrics_on(snapshot, subset)
    if not offered:
        raise NotFound(f'Nothing was measured on "{subset}" of the board "{snapshot.board}" yet.')
    metric = metric or offered[0]
    if metric not in offered:
        raise UsageError(f'"{subset}" has no {metric}; it has {", ".join(offered)}.')
    field = snapshot.field(metric, chosen_key([subset]), protocol or snapshot.protocols(metric)[0], setting)
    order = _order(snapshot, field)
    if not order.size:
        raise UsageError(f'Nobody has {metric} on "{subset}" with this protocol.')
    values = field.means.value[order[field.kind_places[order] == field.kind_places[order[0]]]]
    lower, median, upper = (float(part) for part in np.quantile(values, [0.25, 0.5, 0.75]))
    near_best, verdict, sentence = saturation(snapshot.definition.facts(metric), values)
    of = snapshot.definition.subset(subset)
    return SubsetSummary(
        subset, of.note, metric, of.facts, _standings(snapshot, field, subset, order[:most]), len(order), values,
        float(values[0]), median, (lower, upper), near_best, verdict, sentence,
    )  # fmt: skip


def metrics_on(snapshot: Snapshot, subset: str) -> tuple[str, ...]:
    """The metrics that have a value on a subset, as the board ranks them."""

    def measured(name: str) -> bool:
        if subset not in snapshot.panel(name).column_of:
            return False
        column = snapshot.panel(name).column_of[subset]
        return bool(np.isfinite(snapshot.ranked_values(name)[:, column]).any())

    return tuple(filter(measured, snapshot.metrics))


def _order(snapshot: Snapshot, field: Field) -> NDArray[np.int64]:
    """The lines that have a value, best first, each kind by itself."""
    here = np.flatnonzero(field.means.have > 0)
    turn = -1.0 if snapshot.definition.facts(field.metric).higher_is_better else 1.0
    return here[np.lexsort([turn * field.means.value[here], field.kind_places[here]])]


def _standings(snapshot: Snapshot, field: Field, subset: str, order: NDArray[np.int64]) -> tuple[Standing, ...]:
    columns = np.full(len(order), field.panel.column_of[subset])
    cells = panel_cells(field.panel, field.rows[order], columns)
    standings = []
    lines = field.panel.lines[field.rows[order]].tolist()
    for place, number_of_line, cell in zip(order.tolist(), lines, cells, strict=True):
        line = snapshot.lines[number_of_line]
        _, choices = settings_of(snapshot, field, place)
        plain_cell = cell._replace(reason="") if cell.reason else cell
        system, setting = snapshot.systems[line.system], setting_of(line, choices)
        standings.append(Standing(system, setting, plain_cell, *field.rank_at(place), field.kinds[place]))
    return tuple(standings)


class Leading(NamedTuple):
    """The systems of the kind that is ranked first: the best of a board is one of them, and no anchor.

    value  [systems, subsets of the panel], turned so that more is better; NaN where a system has none
    """

    systems: NDArray[np.int64]
    value: Floats


@made_once
def leading_values(snapshot: Snapshot, metric: str, protocol: str = "") -> Leading:
    """The values of the systems that are ranked first, as they are ranked."""
    field = snapshot.field(metric, "", protocol)
    first = next((kind for kind in ORDER if kind in field.kinds), RANKED)
    own = np.flatnonzero([kind == first for kind in field.kinds])
    turn = 1.0 if snapshot.definition.facts(metric).higher_is_better else -1.0
    return Leading(field.systems[own], turn * field.panel.measured()[field.rows[own]])


def saturation(metric: str | Metric, values: Floats) -> tuple[int, str, str]:
    """How many are as good as the best, and whether the subset still tells models apart."""
    of = facts(metric)
    best = float(values[0])
    width = of.range[1] - of.range[0] if np.isfinite(of.range).all() else float(np.ptp(values))
    near = int((np.abs(values - best) <= NEAR * width + 1e-12).sum())
    crowd = f"{counted(near, 'system')} of {len(values)} within {points(NEAR * width, metric).lstrip('+')} of the best"
    ideal = of.range[1] if of.higher_is_better else of.range[0]
    if not np.isfinite(ideal) or not np.isfinite(width):
        return near, "open-ended", f"The metric has no best possible value; {crowd}."
    reached = 1 - abs(ideal - best) / width if width else 1.0
    left = points(abs(ideal - best), metric).lstrip("+")
    leaves = f"The best value, {number(best, metric, unit=True)}, leaves {left} to the possible"
    if reached >= SOLVED:
        word = "saturated" if near >= CROWDED * len(values) else "nearly solved"
        return near, word, f"{leaves}, and {crowd}."
    if near >= CROWDED * len(values) and len(values) >= 10:
        return near, "crowded", f"{leaves}, but {crowd}."
    return near, "open", f"{leaves}; {crowd}."
