"""One subset of a board: what is known of it, how far it is solved, and who is best on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark import published
from earmark.board.boards.codecs import ANCHOR, ORDER, RANKED
from earmark.board.boards.groups import codec_categories, subset_title
from earmark.board.boards.snapshot import BEST, Snapshot, made_once
from earmark.board.boards.table import Cell, panel_cells
from earmark.board.records import System
from earmark.board.refusals import NotFound
from earmark.errors import UsageError, did_you_mean
from earmark.report.metric_text import facts, number, points
from earmark.scores.spelling import is_single
from earmark.wording import counted

Floats = NDArray[np.float64]

NEAR = 0.01
"""A value this share of the metric's range away from the best counts as being as good."""
SOLVED = 0.98
"""From this share of the possible on, the best value leaves too little room to compare models."""
CROWDED = 0.1


class Standing(NamedTuple):
    """A system on the subset; equals share the better rank among the systems of their kind. An anchor has none."""

    system: System
    setting: str
    cell: Cell
    rank: int
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
    standings: tuple[Standing, ...]  # best first, each kind by itself
    best: float
    median: float
    quartiles: tuple[float, float]
    near: int  # systems as good as the best
    verdict: str
    sentence: str

    @property
    def compared(self) -> list[Standing]:
        """The systems of the kind that is ranked first."""
        return [standing for standing in self.standings if standing.kind == self.standings[0].kind]


def summarise(
    snapshot: Snapshot, subset: str, *, metric: str = "", protocol: str = "", setting: str = BEST
) -> SubsetSummary:
    """What the live scores say of a subset under one metric, each system with its best value there by default."""
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
    standings = _standings(snapshot, subset, metric, protocol or snapshot.protocols(metric)[0], setting)
    if not standings:
        raise UsageError(f'Nobody has {metric} on "{subset}" with this protocol.')
    values = np.array([standing.value for standing in standings if standing.kind == standings[0].kind])
    lower, median, upper = (float(part) for part in np.quantile(values, [0.25, 0.5, 0.75]))
    near_best, verdict, sentence = saturation(metric, values)
    return SubsetSummary(
        subset, subset_title(snapshot.board, subset), metric, known_facts(snapshot.board, subset), standings,
        standings[0].value, median, (lower, upper), near_best, verdict, sentence,
    )  # fmt: skip


def metrics_on(snapshot: Snapshot, subset: str) -> tuple[str, ...]:
    """The metrics that have a value on a subset."""

    def measured(name: str) -> bool:
        panel = snapshot.panel(name)
        values = panel.measured()[:, panel.columns([subset])] if subset in panel.subsets else np.empty(0)
        return bool(np.isfinite(values).any())

    return tuple(filter(measured, snapshot.metrics))


class Bests(NamedTuple):
    """The best value of every system on every subset, turned so that more is better, and the row that has it."""

    systems: NDArray[np.int64]  # [systems]
    value: Floats  # [systems, subsets], NaN where a system has none
    row: NDArray[np.int64]  # [systems, subsets]


def bests(snapshot: Snapshot, metric: str, protocol: str = "", setting: str = BEST) -> Bests:
    """Each system under its best setting on each subset by itself, or under one setting."""
    return _bests(snapshot, metric, protocol or snapshot.protocols(metric)[0], setting)


@made_once
def _bests(snapshot: Snapshot, metric: str, protocol: str, setting: str) -> Bests:
    panel = snapshot.panel(metric)
    lines = [snapshot.lines[number] for number in panel.lines.tolist()]
    wanted = [line.protocol == protocol and setting in (BEST, line.setting) for line in lines]
    rows = np.flatnonzero(wanted)
    values = panel.measured()[rows] * (1.0 if facts(metric).higher_is_better else -1.0)
    systems, group = np.unique([lines[row].system for row in rows.tolist()], return_inverse=True)
    best = np.full((len(systems), values.shape[1]), -np.inf)
    np.maximum.at(best, group, np.where(np.isfinite(values), values, -np.inf))
    row = np.full(best.shape, -1, np.int64)
    at, column = np.nonzero(values == best[group])
    row[group[at[::-1]], column[::-1]] = rows[at[::-1]]  # the first of equals is written last
    return Bests(systems, np.where(np.isfinite(best), best, np.nan), row)


def _standings(snapshot: Snapshot, subset: str, metric: str, protocol: str, setting: str) -> tuple[Standing, ...]:
    panel = snapshot.panel(metric)
    column = panel.subsets.index(subset)
    best = bests(snapshot, metric, protocol, setting)
    here = np.flatnonzero(np.isfinite(best.value[:, column]))
    kinds = np.array([ORDER.index(snapshot.kinds[place]) for place in best.systems[here].tolist()], np.int64)
    order = best.row[here[np.lexsort([-best.value[here, column], kinds])], column]
    standings: list[Standing] = []
    own: dict[str, list[Standing]] = {kind: [] for kind in ORDER}
    cells = panel_cells(panel, order, np.full(len(order), column))
    for number_of_line, cell in zip(panel.lines[order].tolist(), cells, strict=True):
        line = snapshot.lines[number_of_line]
        kind = snapshot.kinds[line.system]
        before = own[kind]
        rank = before[-1].rank if before and before[-1].value == cell.value else len(before) + 1
        rank = 0 if kind == ANCHOR else rank
        before.append(Standing(snapshot.systems[line.system], line.setting, cell._replace(reason=""), rank, kind))
        standings.append(before[-1])
    return tuple(standings)


def leading(snapshot: Snapshot, best: Bests) -> Bests:
    """The systems of the kind that is ranked first: the best of a board is one of them, and no anchor."""
    kinds = [snapshot.kinds[place] for place in best.systems.tolist()]
    first = next((kind for kind in ORDER if kind in kinds), RANKED)
    own = np.flatnonzero([kind == first for kind in kinds])
    return Bests(best.systems[own], best.value[own], best.row[own])


def saturation(metric: str, values: Floats) -> tuple[int, str, str]:
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
    left = number(abs(ideal - best), metric, unit=True)
    if reached >= SOLVED:
        word = "saturated" if near >= CROWDED * len(values) else "nearly solved"
        return near, word, f"The best value leaves {left} to the possible, and {crowd}."
    if near >= CROWDED * len(values) and len(values) >= 10:
        return near, "crowded", f"There is room above the best value ({left}), but {crowd}."
    return near, "open", f"There is room above the best value ({left}); {crowd}."


def known_facts(board: str, subset: str) -> tuple[tuple[str, str], ...]:
    """Statistics of a subset that a paper prints: clips, classes, durations."""
    if board == "codec-superb" and subset in codec_categories():
        return (("Category", codec_categories()[subset]),)
    cells = published.read("vocsim_table1_subsets") if board == "vocsim" else []
    cell = next((cell for cell in cells if cell["subset"] == subset), None)
    if cell is None:
        return ()
    return (
        ("Clips", f"{int(cell['n_samples']):,}"),
        ("Classes", cell["n_classes"]),
        ("Clips in a class", f"{cell['min_samples_per_class']} to {cell['max_samples_per_class']}"),
        ("Duration", f"{cell['min_dur_s']} to {cell['max_dur_s']} s, mean {cell['avg_dur_s']} s"),
        ("Access", cell["split"]),
    )  # fmt: skip
