"""Figures of a score table: the heat map, correlations of metrics, and lift over chance."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.report.correlations import Correlations
from earmark.report.figures import style
from earmark.report.metric_text import facts, goodness, number
from earmark.report.score_index import (
    PROTOCOLS,
    RowsByRepresentation,
    ScoreIndex,
    Subset,
    as_index,
    representation,
    same_clips,
    subset,
)
from earmark.scores import Row, Scores
from earmark.tables import MISSING, NumberFormat

_WIDTH = 7.6
_MOST_LINES = 40
_DIVERGING = "PuOr"
_CORRELATION = NumberFormat(2)
_LONGEST = 46


# --- the heat map -----------------------------------------------------------------------------------------------


def score_heatmap(
    scores: Scores | ScoreIndex,
    metric: str | None = None,
    protocol: str | None = None,
    unranked: Collection[Subset] = (),
) -> Any:
    """A cell for each representation and subset, coloured by the metric; the best of each subset is framed.

    Without a protocol: across groups in the subsets that were measured so, all pairs in the others. Nothing is framed
    where representations were scored on different clips, nor in a subset of `unranked`. With a single subset the
    columns are the metrics, each coloured from its own worst to its own best value.
    """
    index = as_index(scores)
    columns = heat_columns(index, metric, protocol)
    drawn = {line for _, rows in columns for line in rows}
    lines = [line for line in index.representations if line in drawn]
    names = style.names_of([line.label for line in lines], _LONGEST)
    metrics = {row.metric for _, rows in columns for row in rows.values()}
    good = [[goodness(rows[line]) if line in rows else np.nan for _, rows in columns] for line in lines]
    table = np.array(good, float)
    lows, highs = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    if len(metrics) > 1:  # each column from its worst (0) to its best (1)
        spread = np.where(highs > lows, highs - lows, 1.0)
        colours = np.where(highs - lows > 1e-12, (table - lows) / spread, 0.5)
        low, high = 0.0, 1.0
    else:
        colours, low, high = table, float(lows.min()), float(highs.max())
    if high - low < 1e-12:
        low, high = low - 0.5, high + 0.5
    width = 0.075 * max(map(len, names)) + 0.75 * len(columns) + 1.0
    with style.look():
        figure = style.new_figure(float(min(max(width, 4.2), 14.0)), 1.1 + 0.27 * len(lines))
        axes = figure.add_subplot()
        scale = style.library().colormaps[style.SCALE]
        image = axes.imshow(colours, cmap=style.SCALE, vmin=low, vmax=high, aspect="auto")
        for place, line in enumerate(lines):
            for column, (_, rows) in enumerate(columns):
                if line in rows:
                    text = number(rows[line].value or 0.0, rows[line].metric)
                    style.write_cell(axes, column, place, text, scale((colours[place, column] - low) / (high - low)))
                else:
                    axes.text(column, place, MISSING, ha="center", va="center", color=style.MUTED)
        for column, (_, rows) in enumerate(columns):
            best = np.flatnonzero(np.isclose(table[:, column], highs[column], rtol=0, atol=5e-4))
            comparable = same_clips(rows.values()) and subset(next(iter(rows.values()))) not in unranked
            if comparable and len(lines) > 1 and len(best) < len(rows):
                for place in best.tolist():
                    style.frame_cell(axes, column, place, 0.92, 0.88, 1.8)
        style.name_columns(axes, [title for title, _ in columns], longest=8, rotation=30)
        axes.set_yticks(range(len(lines)), names)
        style.bare(axes)
        if len(metrics) == 1:
            (name,) = metrics
            turned = 1 if facts(name).higher_is_better else -1
            style.colour_bar(
                figure, image, axes, style.axis_title(name),
                lambda value, _: number(turned * value, name).removesuffix(".0"), fraction=0.04, pad=0.02,
            )  # fmt: skip
    return figure


def heat_columns(index: ScoreIndex, metric: str | None, protocol: str | None) -> list[tuple[str, RowsByRepresentation]]:
    """The title and the rows of each column: a subset, or a metric where there is one subset alone."""
    found = index.values(metric or index.headline, protocol)
    if not found:
        raise style.nothing("a heat map")
    if len(found) > 1 or metric is not None:
        return [(place.label, rows) for place, rows in found.items()]
    ((place, rows),) = found.items()
    protocol = next(iter(rows.values())).protocol
    by_metric = {name: index.values(name, protocol).get(place) for name in index.metrics}
    return [(name, rows) for name, rows in by_metric.items() if rows]


def correlation_map(found: Correlations) -> Any:
    """A cell for each pair of metrics, from orange (-1) over white to purple (+1)."""
    return correlation_cells(found.matrix, found.metrics, found.metrics)


def correlation_cells(matrix: NDArray[np.float64], lines: Sequence[str], columns: Sequence[str]) -> Any:
    """A cell for each correlation, from orange (-1) over white to purple (+1); empty where there is none."""
    wide, tall = 1.4 + 0.42 * len(columns), 1.4 + 0.42 * len(lines)
    with style.look():
        figure = style.new_figure(min(max(wide, 3.4), 11.0), min(max(0.85 * tall, 2.6), 9.5))
        axes = figure.add_subplot()
        scale = style.library().colormaps[_DIVERGING]
        axes.imshow(matrix, cmap=_DIVERGING, vmin=-1, vmax=1, aspect="auto")
        for (row, column), value in np.ndenumerate(matrix):
            if np.isfinite(value):
                style.write_cell(axes, column, row, _CORRELATION.text(value), scale((value + 1) / 2), fontsize=7.5)
        axes.set_xticks(range(len(columns)), [style.name_of(name, 16) for name in columns], rotation=45, ha="left")
        axes.xaxis.tick_top()
        axes.set_yticks(range(len(lines)), [style.name_of(name, 16) for name in lines])
        style.bare(axes)
    return figure


# --- lift over chance -------------------------------------------------------------------------------------------


def lift_plot(scores: Scores | ScoreIndex, metric: str | None = None) -> Any:
    """How far above chance each system lies in each subset, with 95 % intervals; protocols side by side.

    The grey bar at zero is where shuffled labels fall 95 % of the time. Distances have their own colours.
    """
    index = as_index(scores)
    metric = metric or index.headline
    rows = [row for row in index.rows if row.metric == metric and row.status == "ok" and row.lift is not None]
    if not rows:
        raise style.nothing("lift over chance; permutations give one")
    systems = lift_systems(index, metric)
    lines: list[tuple[Subset, str | None]] = []
    for place in dict.fromkeys(map(subset, rows)):
        lines += [(place, None), *((place, system) for system in systems)]
    measures = list(dict.fromkeys(representation(row).measure for row in rows))
    with_lift = {row.protocol for row in rows}
    protocols = [name for name in index.protocols if name in with_lift]
    high = 0.15 + 0.075 * len({line.measure for line in index.representations})
    with style.look():
        figure = style.new_figure(_WIDTH, 1.0 + 0.02 * 5 + len(lines) * high)
        panels = figure.subplots(1, len(protocols), sharex=True, sharey=True, squeeze=False)[0]
        for axes, protocol in zip(panels, protocols, strict=True):
            found = index.values(metric, protocol)
            for height, (place, system) in enumerate(lines):
                if system is not None:
                    own = {line.measure: row for line, row in found.get(place, {}).items() if line.system == system}
                    _draw_lift(axes, height, own, measures)
            axes.axvline(0, color=style.MUTED, linewidth=1)
            style.grid(axes, "x")
            axes.set_title(PROTOCOLS.get(protocol, protocol) if len(protocols) > 1 else "", loc="left")
            axes.set_xlabel(f"{metric} above chance" + (" (percentage points)" if facts(metric).percent else ""))
            axes.xaxis.set_major_formatter(lambda value, _: number(value, metric, sign=True).removesuffix(".0"))
            axes.tick_params(axis="y", length=0)
            axes.tick_params(axis="x", labeltop=len(lines) > 16, labelsize=8)
            axes.spines["left"].set_visible(False)
        style.name_lines(panels[0], style.names_of([system or place.label for place, system in lines], 36))
        for label, (_, system) in zip(panels[0].get_yticklabels(), lines, strict=True):
            if system is None:
                label.set_fontweight("bold")
        if len(measures) > 1:
            line = style.library("matplotlib.lines").Line2D
            styles = [style.style_of(place) for place in range(len(measures))]
            handles = [line([], [], color=colour, marker=marker, markersize=4.5) for colour, marker in styles]
            names = [style.name_of(name) for name in measures]
            figure.legend(handles, names, loc="outside upper right", ncols=len(names))
    return figure


def _draw_lift(axes: Any, height: float, rows: dict[str, Row], measures: list[str]) -> None:
    for place, measure in enumerate(measures):
        row = rows.get(measure)
        if row is None or row.lift is None or row.baseline is None:
            continue
        at = height + (place - (len(measures) - 1) / 2) * min(0.26, 0.72 / len(measures))
        colour, marker = style.style_of(place)
        if row.baseline_low is not None and row.baseline_high is not None:
            band = [row.baseline_low - row.baseline, row.baseline_high - row.baseline]
            axes.plot(band, [at, at], color=style.GRID, linewidth=4, solid_capstyle="butt", zorder=1)
        if row.low is not None and row.high is not None:
            axes.plot([row.low - row.baseline, row.high - row.baseline], [at, at], color=colour, zorder=2)
        axes.plot([row.lift], [at], marker, color=colour, markersize=4.2, zorder=3)


def lift_systems(scores: Scores | ScoreIndex, metric: str) -> list[str]:
    """The systems that fit: all, or those with the best means over subsets, in the order of the table."""
    found = as_index(scores).values(metric)
    everyone = list(dict.fromkeys(line.system for rows in found.values() for line in rows))
    room = max(4, _MOST_LINES // max(1, len(found)) - 1)
    if len(everyone) <= room:
        return everyone
    total = dict.fromkeys(everyone, 0.0)
    for rows in found.values():
        best: dict[str, float] = {}
        for line, row in rows.items():
            best[line.system] = max(goodness(row), best.get(line.system, -np.inf))
        for system, good in best.items():
            total[system] += good
    chosen = set(sorted(everyone, key=lambda system: -total[system])[:room])
    return [system for system in everyone if system in chosen]
