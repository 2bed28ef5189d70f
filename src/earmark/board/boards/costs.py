"""What a score costs: each system as a point, and the front of those that nobody beats in both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from earmark.analysis.pareto import pareto_front
from earmark.board.boards.codecs import ANCHOR, ORDER, RANKED, rates_of
from earmark.board.boards.snapshot import BEST, Snapshot, made_once
from earmark.board.boards.table import Cell, mean_cells
from earmark.board.records import System
from earmark.errors import UsageError, did_you_mean
from earmark.report.metric_text import facts


class Axis(NamedTuple):
    """A cost of which less is better; `words` name it, `of_card` is where a card says it."""

    key: str
    words: str
    unit: str
    of_card: str


AXES: dict[str, Axis] = {
    axis.key: axis
    for axis in (
        Axis("parameters", "Parameters", "million", "parameters_m"),
        Axis("rtf", "Real-time factor", "seconds of work for a second of sound", "real_time_factor"),
        Axis("kbps", "Bit rate", "kbps", "kbps"),
    )
}


class Point(NamedTuple):
    """A system with both numbers. `front`: no other is as cheap and better, or as good and cheaper. `stated`: its card
    says the cost, and no row measured it. `kind`: what it is ranked among; only the first kind has a front."""

    system: System
    setting: str
    x: float
    cell: Cell
    rank: int
    front: bool
    stated: bool
    kind: str = RANKED

    @property
    def y(self) -> float:
        assert self.cell.value is not None
        return self.cell.value


class Anchor(NamedTuple):
    """A codec that loses nothing: a line in the figure. `cost` is None where nobody stated it."""

    system: System
    cost: float | None
    cell: Cell


class Front(NamedTuple):
    """Points from the cheapest on; `without` counts the systems whose cost nobody stated. Points of the kind `leading`
    are compared; others are shown beside them."""

    axis: Axis
    metric: str
    points: tuple[Point, ...]
    without: int
    anchors: tuple[Anchor, ...] = ()
    leading: str = RANKED

    @property
    def apart(self) -> list[Point]:
        """Systems that are ranked among others than the leading ones."""
        return [point for point in self.points if point.kind != self.leading]

    def families(self) -> dict[str, list[Point]]:
        """The points of each family of several, from the cheapest on: what one model does at several sizes or rates."""
        families: dict[str, list[Point]] = {}
        for point in self.points:
            if point.kind != self.leading:
                continue
            families.setdefault(point.system.card.family, []).append(point)
        several = {name: points for name, points in families.items() if len({point.x for point in points}) > 1}
        several.pop("", None)
        return several


@made_once
def axes_of(snapshot: Snapshot) -> tuple[Axis, ...]:
    """The costs that at least one system of the board states."""
    stated = (axis for axis in AXES.values() if any(_cost(snapshot, at, axis) is not None for at in snapshot.lines_of))
    return tuple(stated)


def pareto(
    snapshot: Snapshot, axis: str = "", *, metric: str = "", over: str = "", protocol: str = "", setting: str = BEST
) -> Front:
    """The systems of a field as points: cost and mean score. Lines without a rank are left out: they lack subsets."""
    if axis and axis not in AXES:
        raise UsageError(f'There is no cost "{axis}"; there are {", ".join(AXES)}.{did_you_mean(axis, AXES)}')
    metric = metric or snapshot.metrics[0]
    known = axes_of(snapshot)
    chosen = AXES[axis] if axis else known[-1] if known else AXES["parameters"]
    field = snapshot.field(metric, over, protocol, setting)
    panel = snapshot.panel(metric)
    points: list[Point] = []
    anchors: list[Anchor] = []
    without = 0
    held = np.array([kind == ANCHOR for kind in field.kinds], bool) & (field.means.have > 0)
    there = np.flatnonzero((field.ranks.rank > 0) | held)
    for at, mean in zip(there.tolist(), mean_cells(field.means, there), strict=True):
        line = snapshot.lines[panel.lines[field.rows[at]]]
        cost = _cost(snapshot, line.system, chosen)
        if held[at]:
            anchors.append(Anchor(snapshot.systems[line.system], cost, mean))
            continue
        if cost is None:
            without += 1
            continue
        stated = line.system not in _measured(snapshot, chosen.key)
        system, rank = snapshot.systems[line.system], int(field.ranks.rank[at])
        points.append(Point(system, line.setting, cost, mean, rank, False, stated, field.kinds[at]))
    points.sort(key=lambda point: (point.x, point.rank))
    leading = next((kind for kind in ORDER if any(point.kind == kind for point in points)), RANKED)
    own = [point for point in points if point.kind == leading]
    axes = [[point.x for point in own], [point.y for point in own]]
    on_front = pareto_front(axes, (False, facts(metric).higher_is_better)).tolist()
    best = {id(point) for point, on in zip(own, on_front, strict=True) if on}
    marked = tuple(point._replace(front=id(point) in best) for point in points)
    return Front(chosen, metric, marked, without, tuple(anchors), leading)


def _cost(snapshot: Snapshot, place: int, axis: Axis) -> float | None:
    """What was measured; what the card states only where nothing was."""
    stated: float | None = getattr(snapshot.systems[place].card, axis.of_card)
    return _measured(snapshot, axis.key).get(place, stated)


@made_once
def _measured(snapshot: Snapshot, metric: str) -> Mapping[int, float]:
    """The mean of a metric such as kbps for each system that has rows of it."""
    return rates_of(snapshot.panels[metric], snapshot.lines) if metric in snapshot.panels else {}
