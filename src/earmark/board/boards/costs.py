"""What a score costs: each system as a point, and the front of those that nobody beats in both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.pareto import pareto_front
from earmark.board.boards.cells import Cell, mean_cells, plain_numbers
from earmark.board.boards.codecs import ANCHOR, ORDER, RANKED, rates_of
from earmark.board.boards.field import Field
from earmark.board.boards.lines import setting_of, settings_of
from earmark.board.boards.memory import made_once
from earmark.board.boards.snapshot import Snapshot
from earmark.board.records import System
from earmark.errors import UsageError, did_you_mean
from earmark.submissions import SystemCard

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class Axis(NamedTuple):
    """A cost of which less is better; `words` name it, `short` follows a number, `of_card` are the names
    under which a card, or its details, says it."""

    key: str
    words: str
    unit: str
    short: str
    of_card: tuple[str, ...]


AXES: dict[str, Axis] = {
    axis.key: axis
    for axis in (
        Axis("dimension", "Embedding dimension", "numbers for a clip", "dimensions", ("dimension", "dimensions")),
        Axis("parameters", "Parameters", "million", "million", ("parameters_m",)),
        Axis("rtf", "Real-time factor", "seconds of work for a second of sound", "s/s", ("real_time_factor",)),
        Axis("kbps", "Bit rate", "kbps", "kbps", ("kbps",)),
    )
}


class Point(NamedTuple):
    """A system with both numbers. `front`: no other is as cheap and better, or as good and cheaper. `stated`: its card
    says the cost, and no row measured it. `kind`: what it is ranked among; only the first kind has a front. `tier`: 1
    for those not told apart from the best; 0 where nothing tells systems apart."""

    system: System
    setting: str
    x: float
    cell: Cell
    rank: int
    front: bool
    stated: bool
    kind: str = RANKED
    tier: int = 0

    @property
    def leads(self) -> bool:
        """Whether it is not told apart from the best."""
        return self.tier == 1

    @property
    def y(self) -> float:
        assert self.cell.value is not None
        return self.cell.value


class Anchor(NamedTuple):
    """A codec that loses nothing: a line in the figure. `cost` is None where nobody stated it."""

    system: System
    cost: float | None
    cell: Cell


@dataclass(frozen=True)
class Front:
    """Points from the cheapest on; `without` has the cards and ranks of the systems whose cost nobody stated, the best
    first. Points of the kind `leading` are compared; others are shown beside them."""

    axis: Axis
    metric: str
    points: tuple[Point, ...]
    without: tuple[tuple[SystemCard, int], ...]
    anchors: tuple[Anchor, ...] = ()
    leading: str = RANKED
    higher: bool = True  # is better

    @property
    def apart(self) -> list[Point]:
        """Systems that are ranked among others than the leading ones."""
        return [point for point in self.points if point.kind != self.leading]

    @cached_property
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


@made_once
def usual_axis(snapshot: Snapshot) -> Axis:
    """The cost that most systems state; of equals the later one."""
    stated = {
        axis: sum(_cost(snapshot, at, axis) is not None for at in snapshot.lines_of) for axis in axes_of(snapshot)
    }
    return max(reversed(stated), key=lambda axis: stated[axis]) if stated else AXES["parameters"]


def pareto(
    snapshot: Snapshot, axis: str = "", *, metric: str = "", over: str = "", protocol: str = "", setting: str = ""
) -> Front:
    """The systems of a field as points: cost and mean score. Lines without a rank are left out: they lack subsets."""
    if axis and axis not in AXES:
        raise UsageError(f'There is no cost "{axis}"; there are {", ".join(AXES)}.{did_you_mean(axis, AXES)}')
    metric = metric or snapshot.metrics[0]
    chosen = AXES[axis] if axis else usual_axis(snapshot)
    field = snapshot.field(metric, over, protocol, setting)
    held = np.array([kind == ANCHOR for kind in field.kinds], bool) & np.isfinite(field.means.value)
    there = np.flatnonzero((field.ranks.rank > 0) | held)
    costs = _costs(snapshot, chosen)[field.systems[there]]
    order = np.lexsort([field.ranks.rank[there], costs])
    there, costs, held = there[order], costs[order], held[there][order]
    known = ~held & np.isfinite(costs)
    leading = _first_kind(field, there[known])
    higher = snapshot.definition.facts(metric).higher_is_better
    own = np.flatnonzero(known & (field.kind_places[there] == ORDER.index(leading)))
    front = np.zeros(len(there), bool)
    front[own] = pareto_front([costs[own], field.means.value[there[own]]], (False, higher))
    return Front(
        chosen, metric, _points(snapshot, field, there[known], costs[known], front[known], chosen),
        _without(snapshot, field, there[~held & ~known]), _anchors(snapshot, field, there[held], costs[held]), leading,
        higher,
    )  # fmt: skip


def _first_kind(field: Field, places: Whole) -> str:
    return ORDER[int(field.kind_places[places].min())] if places.size else RANKED


def _points(
    snapshot: Snapshot, field: Field, places: Whole, costs: Floats, front: NDArray[np.bool_], axis: Axis
) -> tuple[Point, ...]:
    measured = _measured(snapshot, axis.key)
    points = []
    cells, ranks, tiers = mean_cells(field.means, places), field.ranks.rank[places], field.ranks.tier[places]
    arrays = (places, field.panel.lines[field.rows[places]], field.systems[places], costs, ranks, tiers, front)
    parts = zip(*(part.tolist() for part in arrays), strict=True)
    for cell, (place, number, owner, cost, rank, tier, on) in zip(cells, parts, strict=True):
        setting = snapshot.line_settings[number]
        if field.tried:
            setting = setting_of(snapshot.lines[number], settings_of(snapshot, field, place)[1])
        points.append(
            Point(
                snapshot.systems[owner], setting, cost, cell, rank, on, owner not in measured, field.kinds[place], tier
            )
        )  # fmt: skip
    return tuple(points)


def _without(snapshot: Snapshot, field: Field, places: Whole) -> tuple[tuple[SystemCard, int], ...]:
    """The cards and ranks of systems without a cost, the best first, each kind by itself."""
    places = places[np.lexsort([field.ranks.rank[places], field.kind_places[places]])]
    return tuple(
        (snapshot.systems[owner].card, rank)
        for owner, rank in zip(field.systems[places].tolist(), field.ranks.rank[places].tolist(), strict=True)
    )


def _anchors(snapshot: Snapshot, field: Field, places: Whole, costs: Floats) -> tuple[Anchor, ...]:
    order = np.argsort(places)
    places, costs = places[order], costs[order]
    owners = (snapshot.systems[owner] for owner in field.systems[places].tolist())
    return tuple(map(Anchor, owners, plain_numbers(costs), mean_cells(field.means, places)))


@made_once
def _costs(snapshot: Snapshot, axis: Axis) -> Floats:
    """What each system costs; NaN where nobody says it."""
    costs = [_cost(snapshot, place, axis) for place in range(len(snapshot.systems))]
    return np.array([np.nan if cost is None else cost for cost in costs], np.float64)


def _cost(snapshot: Snapshot, place: int, axis: Axis) -> float | None:
    """What was measured; what the card states only where nothing was."""
    return _measured(snapshot, axis.key).get(place, _stated(snapshot.systems[place].card, axis))


def _stated(card: SystemCard, axis: Axis) -> float | None:
    """What a card says of a cost, by itself or among its details; what is no number says nothing."""
    for value in (getattr(card, name, card.details.get(name)) for name in axis.of_card):
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


@made_once
def _measured(snapshot: Snapshot, metric: str) -> Mapping[int, float]:
    """The mean of a metric such as kbps for each system that has rows of it."""
    return rates_of(snapshot.panels[metric], snapshot.lines) if metric in snapshot.panels else {}
