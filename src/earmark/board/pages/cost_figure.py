"""Scores against what they cost, as SVG: every system, the front, families, intervals, anchors and tiers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from heapq import nsmallest
from html import escape
from typing import NamedTuple

import numpy as np

from earmark.board.boards.costs import Front, Point
from earmark.board.pages.assets import system_address
from earmark.board.pages.drawing import FAMILIES, Drawing, Frame, Label, Markers, Scale, key, labels, legend, short, svg
from earmark.board.pages.figures import axis_words, cell_words, named, possible, scale_of, stated_ends
from earmark.board.pages.score_texts import number_texts
from earmark.report.metric_text import number
from earmark.scores import STATUS_MARKS
from earmark.tables import plain

_FEW_INTERVALS = 60  # more upright lines than this would be a wall
MOST_LABELS = 40
OTHERS = "others"


class Own(NamedTuple):
    """What is looked at among the points of a figure: its name, cost and score."""

    name: str
    cost: float
    score: float


def pareto_figure(front: Front, own: Own | None = None, *, log: bool | None = None) -> Drawing:
    """Cost and score: all points, the front joined by steps, and each family of several joined by a line.

    Anchors are dashed lines, what is ranked apart is hollow, systems not told apart from the best are ringed. `log`
    chooses the axis of costs; None takes a logarithmic one where they span more than a factor of 20.
    """
    scale = scale_of(front.metric)
    compared = [point for point in front.points if point.kind == front.leading]
    families = _families(front)
    frame = _frame(front, own, scale, is_wide(front) if log is None else log)
    markers, entries, paths, marks = Markers("cost"), [], [], []
    for place, (name, points) in enumerate(families.items()):
        kind = "others" if name == OTHERS else f"c{place}"
        shape = 0 if name == OTHERS else place
        marks.append(f'<g class="{kind}">{_points(markers, frame, points, shape, front)}</g>')
        entries.append(key(kind, plain(name, 40) if name != OTHERS or len(families) > 1 else "systems", shape))
        if name != OTHERS:
            paths.append(frame.path(f"line {kind}", ((each.x, scale * each.y) for each in _leading(points))))
    if front.apart:
        marks.append(f'<g class="others hollow">{_points(markers, frame, front.apart, 0, front)}</g>')
        entries.append(key("others hollow", "ranked apart", 0))
    on_front = [point for point in compared if point.front]
    paths.append(frame.path("front", ((each.x, scale * each.y) for each in on_front), steps=True))
    named = _named(compared, on_front)
    paths.insert(0, frame.bars("interval", _intervals(named if len(compared) > _FEW_INTERVALS else compared, scale)))
    entries.append(key("front", "front: nobody is as cheap and better"))
    if any(point.leads for point in compared):
        leads = [each for each in compared if each.leads]
        rings = "".join(
            f'<circle cx="{x}" cy="{y}" r="7"/>' for x, y in zip(*_places(frame, scale, leads), strict=True)
        )
        marks.append(f'<g class="leads">{rings}</g>')
        entries.append(key("leads", "not told apart from the best", 0))
    anchors, anchor_entries = _anchors(front, frame, scale)
    if own is not None:
        marks.append(f'<g class="own">{_ring(frame, scale, own)}</g>')
        entries.append(key("own", plain(own.name, 40), 0))
    wanted = [
        Label(
            frame.x.share(each.x), frame.down(scale * each.y), each.system.card.name,
            system_address(each.system.board, each.system.slug), each.system.slug,
        )
        for each in named
    ]  # fmt: skip
    names = labels(wanted, [(label.x, label.y) for label in wanted], frame.height)
    axes = frame.axes(
        f"{front.axis.words} ({front.axis.short}){', logarithmic' if frame.x.log else ''}",
        axis_words(front.metric, front.higher),
    )
    hidden = f'<g aria-hidden="true">{axes}{anchors}{frame.stretched(*paths)}{"".join(marks)}</g>'
    role = "group" if names else "img"
    return Drawing(
        svg(frame.height, markers.definitions(), hidden, names), legend([*entries, *anchor_entries]), "numbers", role
    )


def is_wide(front: Front) -> bool:
    """Whether costs differ so much that equal steps would crowd most systems into a corner."""
    costs = [point.x for point in front.points if point.x > 0]
    return bool(costs) and max(costs) > 20 * min(costs)


def _frame(front: Front, own: Own | None, scale: float, log: bool) -> Frame:
    costs = [point.x for point in front.points] + ([own.cost] if own else [])
    log = log and any(cost > 0 for cost in costs) and min(costs) >= 0
    heights = [scale * each.y for each in front.points] + [scale * (each.cell.value or 0.0) for each in front.anchors]
    if len(front.points) <= _FEW_INTERVALS:
        heights += [scale * end for each in front.points for end in stated_ends(each.cell)]
    heights += [scale * own.score] if own else []
    return Frame(Scale.of(costs, log=log), Scale.of(heights, ends=possible(front.metric)), 380)


def _families(front: Front) -> dict[str, list[Point]]:
    """The points of each family that is drawn in a colour of its own, the best ranked families first, then others."""
    several = front.families
    chosen = sorted(several, key=lambda name: min(point.rank for point in several[name]))[:FAMILIES]
    drawn = {name: several[name] for name in chosen}
    alone = [p for p in front.points if p.kind == front.leading and p.system.card.family not in drawn]
    return {**drawn, **({OTHERS: alone} if alone else {})}


def _named(compared: Sequence[Point], on_front: Sequence[Point]) -> list[Point]:
    """The points that have their name beside them: the front, then those not told apart from the best."""
    best_first = nsmallest(MOST_LABELS, (point for point in compared if point.leads), key=lambda point: point.rank)
    return list({id(point): point for point in (*on_front, *best_first)}.values())[:MOST_LABELS]


def _points(markers: Markers, frame: Frame, points: Sequence[Point], shape: int, front: Front) -> str:
    """Many markers, each of which says what it is: the system, its score with the interval, its cost and its rank."""
    metric, cost = front.metric, f" {front.axis.short}, rank "
    across, down = _places(frame, scale_of(metric), points)
    ends = [(each.cell.low, each.cell.high) for each in points]
    known = all(low is not None and high is not None for low, high in ends)
    if known and not any(each.cell.status in STATUS_MARKS for each in points):
        parts = zip([each.y for each in points], *zip(*ends, strict=True), strict=True)
        values, lows, highs = (number_texts(np.array(part), metric) for part in zip(*parts, strict=True))
        scores = [f"{value} ({low} to {high})" for value, low, high in zip(values, lows, highs, strict=True)]
    else:
        scores = [cell_words(each.cell, metric) for each in points]
    opened = markers.opened(shape)
    drawn = []
    for each, x, y, score in zip(points, across, down, scores, strict=True):
        name = _escaped(f"{named(each.system.card)} {each.setting}".strip())
        drawn.append(
            f'{opened} x="{x}" y="{y}" data-s="{_escaped(each.system.slug)}"><title>{name}: {score}, '
            f"{short_cost(each.x)}{cost}{each.rank}</title></use>"
        )
    return "".join(drawn)


_escaped = lru_cache(1 << 14)(escape)


def _places(frame: Frame, scale: float, points: Sequence[Point]) -> tuple[list[str], list[float]]:
    """Where points lie: across as SVG writes it, and how far down."""
    shares = frame.x.shares(np.array([each.x for each in points], np.float64))
    heights = frame.y.shares(scale * np.array([each.y for each in points], np.float64))
    down: list[float] = np.round(frame.height * (1 - heights), 1).tolist()
    return [f"{share:.2f}%" for share in (100 * shares).tolist()], down


def _ring(frame: Frame, scale: float, own: Own) -> str:
    return f'<circle cx="{frame.across(own.cost)}" cy="{frame.down(scale * own.score)}" r="9"/>'


def _intervals(points: Iterable[Point], scale: float) -> list[tuple[float, float, float]]:
    cells = ((point.x, point.cell.low, point.cell.high) for point in points)
    return [(x, scale * low, scale * high) for x, low, high in cells if low is not None and high is not None]


def _anchors(front: Front, frame: Frame, scale: float) -> tuple[str, list[str]]:
    """Codecs that lose nothing: their height counts, and their cost would crowd the others out."""
    lines, entries = [], []
    for anchor in front.anchors:
        at = frame.down(scale * (anchor.cell.value or 0.0))
        name = plain(anchor.system.card.name, 40)
        words = name if anchor.cost is None else f"{name} ({short_cost(anchor.cost)} {front.axis.short})"
        lines.append(f'<line class="anchor" x2="100%" y1="{at}" y2="{at}"/>')
        entries.append(key("anchor", f"{words}: {number(anchor.cell.value or 0.0, front.metric)}"))
    return "".join(lines), entries


def _leading(points: Sequence[Point]) -> list[Point]:
    """The best ranked point of a family at each cost: those that a line joins."""
    best: dict[float, Point] = {}
    for point in points:
        if point.x not in best or point.rank < best[point.x].rank:
            best[point.x] = point
    return list(best.values())


def short_cost(cost: float) -> str:
    return f"{cost:.4g}" if abs(cost) < 1e6 else short(cost)
