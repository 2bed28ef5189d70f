"""Figures of the pages as plain Plotly descriptions. A script draws them; the page has every number in a table below.

Colours of paper, ink and lines are left to the script, which takes them from the page, light or dark.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

from earmark.board.boards.costs import Anchor, Front, Point
from earmark.board.boards.pairs import Comparison
from earmark.board.boards.subsets import SubsetSummary
from earmark.board.boards.table import Cell
from earmark.report.metric_text import facts
from earmark.scores import STATUS_MARKS
from earmark.tables import plain

COLOURS = ("#2b83c4", "#e08a00", "#12997c", "#cf5a1f", "#c06aa0", "#8a78d8", "#4fb0e0")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "triangle-down")
_OWN = "#d0342c"
_LONGEST = 40
_NAMED = 15  # more names than this would hide each other


def profiles(comparison: Comparison) -> dict[str, Any]:
    """Every system of a comparison over the subsets."""
    names = [_label(f"{each.system.card.name} {each.setting}".strip()) for each in comparison.compared]
    traces = [
        _dots(name, comparison.subsets, each.cells, comparison.metric, place)
        for place, (name, each) in enumerate(zip(names, comparison.compared, strict=True))
    ]
    return {"data": traces, "layout": _over_subsets(comparison.metric, len(comparison.subsets))}


def profile(
    name: str, subsets: Sequence[str], cells: Sequence[Cell], best: Sequence[float | None],
    median: Sequence[float | None], metric: str,
) -> dict[str, Any]:  # fmt: skip
    """One system over the subsets, with the best and the median of the board behind it."""
    scale = _scale(metric)
    behind = [
        {
            "type": "scatter", "mode": "markers", "name": words, "x": [_label(subset) for subset in subsets],
            "y": [None if value is None else round(scale * value, 4) for value in values],
            "marker": {"symbol": symbol, "size": size, "color": "muted", "line": {"width": 2, "color": "muted"}},
            "hovertemplate": "%{x}: %{y}<extra>" + words + "</extra>",
        }
        for words, values, symbol, size in (
            ("best of the board", best, "line-ew", 14), ("median of the board", median, "circle-open", 7)
        )
    ]  # fmt: skip
    own = _dots(_label(name), subsets, cells, metric, 0)
    return {"data": [*behind, own], "layout": _over_subsets(metric, len(subsets))}


def pareto_figure(front: Front, own: tuple[str, float, float] | None = None) -> dict[str, Any]:
    """Cost and score: all points, the front joined by steps, and each family of several joined by a line.

    Anchors are dashed lines, what is ranked apart is hollow. `own` is the name, cost and score of what is looked at.
    """
    scale = _scale(front.metric)
    compared = [point for point in front.points if point.kind == front.leading]
    families = front.families()
    # With a line for each family of a large board there would be nothing else to see.
    drawn = families if len(families) <= len(COLOURS) else {}
    traces: list[dict[str, Any]] = []
    alone = [point for point in compared if point.system.card.family not in drawn]
    kinds = [*drawn.items(), ("others", alone)]
    if not drawn:
        kinds = [("on the front", [p for p in alone if p.front]), ("others", [p for p in alone if not p.front])]
    for place, (name, points) in enumerate(kinds):
        if not points:
            continue
        colour = "muted" if name == "others" else COLOURS[place]
        traces.append(
            {
                "type": "scatter", "mode": "markers", "name": _label(name), "legendgroup": str(place),
                "x": [point.x for point in points], "y": [round(scale * point.y, 4) for point in points],
                "text": [_label(f"{point.system.card.name} {point.setting}".strip()) for point in points],
                "hovertemplate": "%{text}<br>%{x} · %{y}<extra></extra>",
                "marker": {"size": 8, "symbol": _SYMBOLS[place % len(_SYMBOLS)], "color": colour}, "cliponaxis": False,
            }
        )  # fmt: skip
        if name in drawn:
            leading = _leading(points)
            traces.append(
                {
                    "type": "scatter", "mode": "lines", "legendgroup": str(place), "showlegend": False,
                    "x": [point.x for point in leading], "y": [round(scale * point.y, 4) for point in leading],
                    "line": {"width": 1.2, "color": colour}, "hoverinfo": "skip",
                }
            )  # fmt: skip
    if front.apart:
        traces.append(_apart_marks(front.apart, scale))
    costs = [point.x for point in front.points if point.x > 0]
    traces += [_anchor_line(anchor, scale, costs) for anchor in front.anchors if costs]
    wide = bool(costs) and len(costs) == len(front.points) and max(costs) > 20 * min(costs)
    middle = math.sqrt(min(costs) * max(costs)) if wide else max(costs, default=0.0) / 2
    # Names go towards the middle of the figure, on the side where no step of the front is.
    beside = ("bottom right", "top left") if facts(front.metric).higher_is_better else ("top right", "bottom left")
    on = [point for point in compared if point.front]
    traces.append(
        {
            "type": "scatter", "mode": f"lines+markers{'+text' if len(on) <= _NAMED else ''}", "name": "front",
            "x": [point.x for point in on], "y": [round(scale * point.y, 4) for point in on], "hoverinfo": "skip",
            "text": [_label(point.system.card.name) for point in on],
            "textposition": [beside[point.x > middle] for point in on],
            "textfont": {"size": 11, "color": "ink"}, "cliponaxis": False,
            "line": {"shape": "hv", "width": 2, "dash": "dot", "color": "ink"},
            "marker": {"size": 14, "symbol": "circle-open", "color": "ink", "line": {"width": 1.6}},
        }
    )  # fmt: skip
    if own is not None:
        name, cost, score = own
        traces.append(
            {
                "type": "scatter", "mode": "markers", "name": _label(name), "x": [cost], "y": [round(scale * score, 4)],
                "marker": {"size": 17, "symbol": "diamond-open", "color": _OWN, "line": {"width": 2.5}},
                "hovertemplate": f"{_label(name)}<br>%{{x}} · %{{y}}<extra></extra>", "cliponaxis": False,
            }
        )  # fmt: skip
    layout = {
        "height": 460,
        "xaxis": {
            "title": {"text": f"{front.axis.words} ({front.axis.unit})"},
            **({"type": "log"} if wide else {"rangemode": "tozero"}),
        },
        "yaxis": {"title": {"text": _axis(front.metric)}, **_possible(front.metric)},
        "showlegend": True,
        "hovermode": "closest",
    }
    return {"data": traces, "layout": layout}


def _apart_marks(points: Sequence[Point], scale: float) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": "ranked apart",
        "x": [point.x for point in points], "y": [round(scale * point.y, 4) for point in points],
        "text": [_label(f"{point.system.card.name} {point.setting}".strip()) for point in points],
        "hovertemplate": "%{text}<br>%{x} · %{y}<extra>ranked apart</extra>",
        "marker": {"size": 9, "symbol": "circle-open", "color": "muted", "line": {"width": 1.6}}, "cliponaxis": False,
    }  # fmt: skip


def _anchor_line(anchor: Anchor, scale: float, costs: Sequence[float]) -> dict[str, Any]:
    """A codec that loses nothing: its height counts, and its cost would crowd the others out."""
    height = round(scale * (anchor.cell.value or 0.0), 4)
    name = _label(anchor.system.card.name)
    words = name if anchor.cost is None else f"{name} ({anchor.cost:.0f} kbps)"
    return {
        "type": "scatter", "mode": "lines", "name": words, "x": [min(costs), max(costs)], "y": [height, height],
        "line": {"width": 1.4, "dash": "longdash", "color": "muted"},
        "hovertemplate": f"{words}: %{{y}}<extra></extra>",
    }  # fmt: skip


def histogram(summary: SubsetSummary) -> dict[str, Any]:
    """How the values of all systems lie on one subset."""
    scale = _scale(summary.metric)
    values = [round(scale * standing.value, 4) for standing in summary.compared]
    bars = {
        "type": "histogram", "x": values, "nbinsx": 30, "marker": {"color": COLOURS[0]},
        "hovertemplate": "%{x}: %{y}<extra></extra>",
    }  # fmt: skip
    layout = {
        "height": 260, "bargap": 0.06, "xaxis": {"title": {"text": _axis(summary.metric)}},
        "yaxis": {"title": {"text": "systems"}}, "showlegend": False,
    }  # fmt: skip
    return {"data": [bars], "layout": layout}


def _leading(points: Sequence[Point]) -> list[Point]:
    """The best ranked point of a family at each cost: those that a line joins."""
    best: dict[float, Point] = {}
    for point in points:
        if point.x not in best or point.rank < best[point.x].rank:
            best[point.x] = point
    return list(best.values())


def _dots(name: str, subsets: Sequence[str], cells: Sequence[Cell], metric: str, place: int) -> dict[str, Any]:
    scale = _scale(metric)
    colour, symbol = COLOURS[place % len(COLOURS)], _SYMBOLS[place % len(_SYMBOLS)]
    up = [_width(cell.value, cell.high, scale) for cell in cells]
    down = [_width(cell.value, cell.low, scale) for cell in cells]
    trace: dict[str, Any] = {
        "type": "scatter", "mode": "lines+markers", "name": name, "x": [_label(subset) for subset in subsets],
        "y": [None if cell.value is None else round(scale * cell.value, 4) for cell in cells],
        "hovertemplate": f"%{{x}}: %{{y}}<extra>{name}</extra>",
        "line": {"width": 1, "dash": "dot", "color": colour},
        "marker": {
            "size": 8, "color": colour,
            "symbol": [f"{symbol}-open" if cell.status in STATUS_MARKS else symbol for cell in cells],
        },
    }  # fmt: skip
    if any(up) or any(down):
        trace["error_y"] = {
            "type": "data", "symmetric": False, "array": up, "arrayminus": down, "width": 2, "thickness": 1,
        }  # fmt: skip
    return trace


def _label(text: str) -> str:
    """A name as text: Plotly reads tags and %{…} in labels."""
    return html.escape(plain(text, _LONGEST), quote=False).replace("%{", "%&#123;")


def _width(value: float | None, end: float | None, scale: float) -> float:
    return 0.0 if value is None or end is None else round(scale * abs(end - value), 4)


def _over_subsets(metric: str, count: int) -> dict[str, Any]:
    return {
        "height": 380, "xaxis": {"type": "category", "tickangle": -45 if count > 6 else 0},
        "yaxis": {"title": {"text": _axis(metric)}}, "showlegend": True, "hovermode": "closest",
    }  # fmt: skip


def _possible(metric: str) -> dict[str, float]:
    """Percentages end where they can: an axis to 105 % would promise room that there is not."""
    of = facts(metric)
    ends = zip(("minallowed", "maxallowed"), of.range, strict=True)
    return {name: 100 * end for name, end in ends if of.percent and math.isfinite(end)}


def _scale(metric: str) -> float:
    return 100.0 if facts(metric).percent else 1.0


def _axis(metric: str) -> str:
    of = facts(metric)
    return f"{metric}{' (%)' if of.percent else ''}, {'higher' if of.higher_is_better else 'lower'} is better"
