"""Figures of hubness: how evenly points stand in neighbour lists, one hub's neighbourhood, scores before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.report._projection import project
from earmark.report.figures import style
from earmark.report.hubs import HubView
from earmark.report.metric_text import facts
from earmark.report.score_index import ScoreIndex, as_index, subset
from earmark.scores import Row, Scores
from earmark.wording import counted

_WIDTH = 7.6
_MAP_POINTS = 1500
MOST_LINES = 36
_LONGEST = 40
_AFTER = "#2b83c4"
_HUB = "#e08a00"


# --- one set of vectors -------------------------------------------------------------------------------------------


def hub_figure(view: HubView, path: str) -> None:
    """Everything about one set of vectors as one .png, .svg or .pdf: a band for each distance."""
    distances = view.distances
    if not distances:
        raise style.nothing("hubness: no correction has neighbour lists")
    maps = view.vectors is not None
    heights = [2.9, 3.5] if maps else [2.9]
    with style.look():
        figure = style.new_figure(_WIDTH, sum(heights) * len(distances))
        bands = np.atleast_1d(
            figure.subfigures(len(heights) * len(distances), 1, height_ratios=heights * len(distances))
        )
        for place, distance in enumerate(distances):
            first = bands[place * len(heights)]
            _draw_occurrences(first, view, distance)
            first.suptitle(
                style.name_of(f"{view.title} · {distance}", 80), x=0.01, ha="left", fontsize=10, fontweight="bold"
            )
            if maps:
                _draw_neighbourhood(bands[place * len(heights) + 1], view, distance)
        style.save(figure, path)


def occurrences(view: HubView, distance: str) -> Any:
    """Left, the share of points that stand in at least so many lists; right, the share that stand in none."""
    with style.look():
        figure = style.new_figure(_WIDTH, 2.9)
        _draw_occurrences(figure, view, distance)
    return figure


def _draw_occurrences(figure: Any, view: HubView, distance: str) -> None:
    def percent(value: float, _: Any) -> str:
        return f"{100 * value:g} %"

    known = view.corrections(distance)
    first = view.before(distance)
    left, right = figure.subplots(1, 2, width_ratios=[1.55, 1])
    counts = {name: view.occurrences(distance, name) for name in known}
    others = [name for name in known if name != first]
    styles = {first: (style.INK, 2.0)} | {name: (style.style_of(place)[0], 1.3) for place, name in enumerate(others)}
    for name in sorted(known, key=lambda name: name == first):
        values, share = _at_least(counts[name])
        colour, width = styles[name]
        left.plot(values, share, color=colour, linewidth=width, drawstyle="steps-pre", label=style.name_of(name, 18))
    left.axvline(view.k, color=style.GRID, zorder=0)
    left.annotate(
        "even lists", (view.k, 1.0), (3, 2), textcoords="offset points", fontsize=7, color=style.MUTED, va="bottom"
    )
    left.set_xscale("log")
    left.set_yscale("log")
    left.set_ylim(0.7 / view.n, 1.15)
    left.set_xlabel(f"in at least so many lists of {view.k}")
    left.set_ylabel("share of points")
    left.xaxis.set_major_locator(style.library("matplotlib.ticker").LogLocator(subs=(1.0, 2.0, 5.0)))
    left.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    left.yaxis.set_major_formatter(percent)
    left.minorticks_off()
    order = sorted(known, key=lambda name: (name != first, -counts[name].max()))
    handles = dict(zip(*reversed(left.get_legend_handles_labels()), strict=True))
    left.legend(
        [handles[style.name_of(name, 18)] for name in order],
        [style.name_of(name, 18) for name in order],
        loc="lower left",
    )
    shares = [float((counts[name] == 0).mean()) for name in order]
    places = np.arange(len(order))
    right.barh(places, shares, height=0.62, color=[styles[name][0] for name in order])
    for place, alone in zip(places, shares, strict=True):
        right.annotate(
            f"{100 * alone:.1f} %", (alone, place), (3, 0), textcoords="offset points", va="center", fontsize=8
        )
    style.name_lines(right, [style.name_of(name, 18) for name in order])
    right.set_xlim(0, max(max(shares) * 1.3, 0.01))
    right.set_xlabel("share of points in no list (antihubs)")
    right.xaxis.set_major_formatter(percent)


def _at_least(counts: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Every number of lists that occurs, and the share of points in at least as many."""
    values, sizes = np.unique(counts[counts > 0], return_counts=True)
    share = np.cumsum(sizes[::-1])[::-1] / len(counts)
    return np.append(values, values[-1] if len(values) else 1), np.append(share, 0.0)


def neighbourhood(view: HubView, distance: str, row: int | None = None) -> Any:
    """The points that list a hub (the largest, unless `row` says which), before and after the best correction."""
    with style.look():
        figure = style.new_figure(_WIDTH, 3.5)
        _draw_neighbourhood(figure, view, distance, row)
    return figure


def _draw_neighbourhood(figure: Any, view: HubView, distance: str, row: int | None = None) -> None:
    if view.vectors is None:
        raise style.nothing("a map: there are no vectors")
    hub = int(view.hubs(distance, 1)[0]) if row is None else row
    shown = [name for name in (view.before(distance), view.after(distance)) if name is not None]
    listers = {name: view.listed_by(distance, name, hub) for name in shown}
    rows = np.arange(view.n)
    if view.n > _MAP_POINTS:  # the points that are needed, and a fixed sample of the others
        drawn = np.random.default_rng(0).choice(view.n, _MAP_POINTS, replace=False)
        rows = np.union1d(np.unique(np.concatenate([[hub], *listers.values()])), drawn)
    found = project(view.vectors[rows], distance=distance, method="pca", most=len(rows))
    at = np.full((view.n, 2), np.nan)
    at[rows] = found.points
    panels = figure.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, shown, strict=True):
        _draw_star(axes, view, distance, name, hub, at, listers[name])
    if len(rows) < view.n:
        panels[-1].set_xlabel(f"{len(rows)} of {view.n} points drawn", loc="right", fontsize=7.5, color=style.MUTED)


def _draw_star(
    axes: Any, view: HubView, distance: str, name: str, hub: int, at: NDArray[Any], listers: NDArray[np.int64]
) -> None:
    counts = view.occurrences(distance, name)
    alone = counts == 0
    axes.scatter(*at[~alone].T, s=7, color=style.MUTED, alpha=0.35, linewidths=0, rasterized=True)
    axes.scatter(
        *at[alone].T, s=9, facecolors="none", edgecolors=style.MUTED, alpha=0.55, linewidths=0.6, rasterized=True
    )
    lines = np.stack([np.broadcast_to(at[hub], (len(listers), 2)), at[listers]], axis=1)
    collections = style.library("matplotlib.collections")
    axes.add_collection(collections.LineCollection(lines, colors=_AFTER, linewidths=0.6, alpha=0.55, zorder=2))
    axes.scatter(*at[listers].T, s=13, color=_AFTER, linewidths=0, zorder=3)
    axes.scatter(*at[hub], s=120, marker="*", color=_HUB, edgecolors=style.INK, linewidths=0.6, zorder=4)
    axes.set_xticks([])
    axes.set_yticks([])
    style.bare(axes)
    heading = "no correction" if name == "none" else style.name_of(name, 24)
    title = f"{heading}: {style.name_of(view.name(hub), 24)} is in {counted(len(listers), 'list')}"
    axes.set_title(f"{title}\n{int(alone.sum())} of {view.n} points are in none", loc="left", fontsize=8.5)


# --- a score table ------------------------------------------------------------------------------------------------


def before_after(scores: Scores | ScoreIndex, metrics: list[str] | None = None, protocol: str = "all") -> Any:
    """A line for each system, distance and subset: its value without correction and with each, metric by metric."""
    lines, corrections, names = before_after_lines(scores, metrics, protocol)
    if not lines or not names:
        raise style.nothing("before and after a correction")
    shown = list(lines.items())[:MOST_LINES]
    with style.look():
        figure = style.new_figure(_WIDTH, 1.0 + 0.25 * len(shown))
        panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
        for axes, metric in zip(panels, names, strict=True):
            for height, (_, cells) in enumerate(shown):
                _dumbbell(axes, height, cells.get(metric, {}), corrections)
            axes.set_title(style.axis_title(metric) + (" ↑" if facts(metric).higher_is_better else " ↓"), loc="left")
            style.grid(axes, "x")
            axes.xaxis.set_major_locator(style.library("matplotlib.ticker").MaxNLocator(4))
            lowest, left = facts(metric).range[0], axes.get_xlim()[0]
            if left < lowest < left + 0.25 * (axes.get_xlim()[1] - left):  # no ticks where no value can lie
                axes.set_xlim(left=lowest - 0.03 * (axes.get_xlim()[1] - lowest))
            scale = 100 if facts(metric).percent else 1
            axes.xaxis.set_major_formatter(lambda value, _, scale=scale: f"{scale * value:g}")
            style.name_lines(axes, style.names_of([label for label, _ in shown], _LONGEST))
        line = style.library("matplotlib.lines").Line2D
        marks = [_mark_of(place) for place in range(len(corrections))]
        handles = [
            line([], [], color=colour, marker=marker, linestyle="none", markersize=5) for colour, marker in marks
        ]
        titles = ["no correction" if name == "none" else style.name_of(name, 22) for name in corrections]
        figure.legend(handles, titles, loc="outside upper right", ncols=min(len(titles), 5))
    return figure


Cells = dict[str, dict[str, Row]]
"""By metric and correction."""


def before_after_lines(
    scores: Scores | ScoreIndex, metrics: list[str] | None = None, protocol: str = "all"
) -> tuple[dict[str, Cells], list[str], list[str]]:
    """The lines that have a value before and after, the corrections (none first) and the metrics that differ."""
    index = as_index(scores)
    rows = [row for row in index.rows if row.protocol == protocol and row.value is not None]
    corrections = sorted(dict.fromkeys(row.correction for row in rows), key=lambda name: name != "none")
    wanted = metrics or dict.fromkeys([index.headline, "hub_ratio", "antihub_rate"])
    names = [name for name in wanted if any(row.metric == name for row in rows)]
    several = len(index.subsets) > 1
    lines: dict[str, Cells] = {}
    for row in rows:
        if row.metric in names:
            place = [subset(row).label] if several else []
            label = " · ".join(filter(None, [*place, row.system or "vectors", row.distance]))
            lines.setdefault(label, {}).setdefault(row.metric, {})[row.correction] = row
    kept = {
        label: cells
        for label, cells in lines.items()
        if any("none" in found and len(found) > 1 for found in cells.values())
    }
    return kept, corrections, names


def _dumbbell(axes: Any, height: float, found: dict[str, Row], corrections: list[str]) -> None:
    values = {name: row.value for name, row in found.items() if row.value is not None}
    if not values:
        return
    axes.plot([min(values.values()), max(values.values())], [height, height], color=style.GRID, linewidth=3, zorder=1)
    for place, name in enumerate(corrections):
        if name in values:
            colour, marker = _mark_of(place)
            axes.plot([values[name]], [height], marker, color=colour, markersize=5, zorder=3 + (place > 0))


def _mark_of(place: int) -> tuple[str, str]:
    if place == 0:
        return style.MUTED, "o"
    return style.style_of(place - 1)[0], style.style_of(place)[1]
