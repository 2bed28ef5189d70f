"""Figures of a score table: the heat map, lift over chance, and both as one picture."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from earmark.errors import InputError
from earmark.report.correlations import Correlations
from earmark.report.figures.style import (
    GRID,
    MUTED,
    PAPER,
    SCALE,
    axis_title,
    bare,
    colour_bar,
    frame_cell,
    grid,
    library,
    look,
    name_columns,
    name_lines,
    name_of,
    new_figure,
    nothing,
    save,
    style_of,
    write_cell,
)
from earmark.report.metric_text import facts, goodness, number
from earmark.report.score_index import (
    ALL,
    PROTOCOLS,
    ScoreIndex,
    Subset,
    Values,
    as_index,
    protocol_name,
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
    heat = _HeatMap(as_index(scores), metric, protocol)
    with look():
        figure = new_figure(heat.width, heat.height)
        heat.draw(figure, unranked)
    return figure


class _HeatMap:
    """Representations down, subsets or metrics across, and the row behind each cell."""

    def __init__(self, index: ScoreIndex, metric: str | None = None, protocol: str | None = None) -> None:
        found = index.values(metric or index.headline, protocol)
        if not found:
            raise nothing("a heat map")
        drawn = {line for rows in found.values() for line in rows}
        self.lines = [line for line in index.representations if line in drawn]
        self.columns = [place.label for place in found]
        self.cells = list(found.values())
        if len(found) == 1 and metric is None:
            (place, rows), *_ = found.items()
            protocol = next(iter(rows.values())).protocol
            by_metric = {name: index.values(name, protocol).get(place) for name in index.metrics}
            self.columns = [name for name, rows in by_metric.items() if rows]
            self.cells = [rows for rows in by_metric.values() if rows]
        self.names = [name_of(line.label, _LONGEST) for line in self.lines]
        self.width = float(min(max(0.075 * max(map(len, self.names)) + 0.75 * len(self.columns) + 1.0, 4.2), 14.0))
        self.height = 1.1 + 0.27 * len(self.lines)

    def draw(self, figure: Any, unranked: Collection[Subset] = ()) -> None:
        axes = figure.add_subplot()
        good = [[goodness(rows[line]) if line in rows else np.nan for rows in self.cells] for line in self.lines]
        table = np.array(good, float)
        metrics = {row.metric for rows in self.cells for row in rows.values()}
        lows, highs = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
        if len(metrics) > 1:  # each column from its worst (0) to its best (1)
            spread = np.where(highs > lows, highs - lows, 1.0)
            colours = np.where(highs - lows > 1e-12, (table - lows) / spread, 0.5)
            low, high = 0.0, 1.0
        else:
            colours, low, high = table, lows.min(), highs.max()
        if high - low < 1e-12:
            low, high = low - 0.5, high + 0.5
        scale = library().colormaps[SCALE]
        image = axes.imshow(colours, cmap=SCALE, vmin=low, vmax=high, aspect="auto")
        for (place, column), colour in np.ndenumerate(colours):
            row = self.cells[column].get(self.lines[place])
            if row is None or row.value is None:
                axes.text(column, place, MISSING, ha="center", va="center", color=MUTED)
            else:
                write_cell(axes, column, place, number(row.value, row.metric), scale((colour - low) / (high - low)))
        for column, rows in enumerate(self.cells):
            best = np.flatnonzero(np.isclose(table[:, column], highs[column], rtol=0, atol=5e-4))
            comparable = same_clips(rows.values()) and subset(next(iter(rows.values()))) not in unranked
            if comparable and len(self.lines) > 1 and len(best) < np.isfinite(table[:, column]).sum():
                for place in best:
                    frame_cell(axes, column, place, 0.92, 0.88, 1.8)
        name_columns(axes, self.columns, longest=8, rotation=30)
        axes.set_yticks(range(len(self.lines)), self.names)
        bare(axes)
        if len(metrics) == 1:
            (metric,) = metrics
            turned = 1 if facts(metric).higher_is_better else -1
            colour_bar(
                figure, image, axes, axis_title(metric),
                lambda value, _: number(turned * value, metric).removesuffix(".0"), fraction=0.04, pad=0.02,
            )  # fmt: skip


def correlation_map(found: Correlations) -> Any:
    """A cell for each pair of metrics, from orange (-1) over white to purple (+1)."""
    side = 1.4 + 0.42 * len(found.metrics)
    with look():
        figure = new_figure(min(max(side, 3.4), 11.0), min(max(0.85 * side, 2.6), 9.5))
        axes = figure.add_subplot()
        scale = library().colormaps[_DIVERGING]
        axes.imshow(found.matrix, cmap=_DIVERGING, vmin=-1, vmax=1, aspect="auto")
        for (row, column), value in np.ndenumerate(found.matrix):
            write_cell(axes, column, row, _CORRELATION.text(value), scale((value + 1) / 2), fontsize=7.5)
        names = [name_of(name, 16) for name in found.metrics]
        axes.set_xticks(range(len(names)), names, rotation=45, ha="left")
        axes.xaxis.tick_top()
        axes.set_yticks(range(len(names)), names)
        bare(axes)
    return figure


# --- lift over chance -------------------------------------------------------------------------------------------


def lift_plot(scores: Scores | ScoreIndex, metric: str | None = None) -> Any:
    """How far above chance each system lies in each subset, with 95 % intervals; protocols side by side.

    The grey bar at zero is where shuffled labels fall 95 % of the time. Distances have their own colours.
    """
    lift = _Lift(as_index(scores), metric)
    with look():
        figure = new_figure(_WIDTH, 1.0 + 0.02 * 5 + lift.height)
        lift.draw(figure)
    return figure


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


class _Lift:
    """A line for each subset (its name) and each system in it, and a colour for each distance."""

    def __init__(self, index: ScoreIndex, metric: str | None = None) -> None:
        self.index, self.metric = index, metric or index.headline
        rows = [row for row in index.rows if row.metric == self.metric and row.status == "ok" and row.lift is not None]
        if not rows:
            raise nothing("lift over chance; permutations give one")
        systems = lift_systems(index, self.metric)
        self.lines: list[tuple[Subset, str | None]] = []
        for place in dict.fromkeys(map(subset, rows)):
            self.lines += [(place, None), *((place, system) for system in systems)]
        self.measures = list(dict.fromkeys(representation(row).measure for row in rows))
        self.height = len(self.lines) * (0.15 + 0.075 * len({line.measure for line in index.representations}))

    def draw(self, figure: Any) -> None:
        metric, lines = self.metric, self.lines
        values = {name: self.index.values(metric, name) for name in self.index.protocols}
        values = {name: found for name, found in values.items() if _has_lift(found)}
        panels = figure.subplots(1, len(values), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (protocol, found) in zip(panels, values.items(), strict=True):
            for height, (place, system) in enumerate(lines):
                if system is not None:
                    rows = {line.measure: row for line, row in found.get(place, {}).items() if line.system == system}
                    self._draw_line(axes, height, rows)
            axes.axvline(0, color=MUTED, linewidth=1)
            grid(axes, "x")
            axes.set_title(PROTOCOLS.get(protocol, protocol) if len(values) > 1 else "", loc="left")
            axes.set_xlabel(f"{metric} above chance" + (" (percentage points)" if facts(metric).percent else ""))
            axes.xaxis.set_major_formatter(lambda value, _: number(value, metric, sign=True).removesuffix(".0"))
            axes.tick_params(axis="y", length=0)
            axes.tick_params(axis="x", labeltop=len(lines) > 16, labelsize=8)
            axes.spines["left"].set_visible(False)
        name_lines(panels[0], [name_of(system or place.label, 36) for place, system in lines])
        for label, (_, system) in zip(panels[0].get_yticklabels(), lines, strict=True):
            if system is None:
                label.set_fontweight("bold")
        if len(self.measures) > 1:
            line = library("matplotlib.lines").Line2D
            styles = [style_of(place) for place in range(len(self.measures))]
            handles = [line([], [], color=colour, marker=marker, markersize=4.5) for colour, marker in styles]
            names = [name_of(name) for name in self.measures]
            figure.legend(handles, names, loc="outside upper right", ncols=len(names))

    def _draw_line(self, axes: Any, height: float, rows: dict[str, Row]) -> None:
        count = len(self.measures)
        for place, measure in enumerate(self.measures):
            row = rows.get(measure)
            if row is None or row.lift is None or row.baseline is None:
                continue
            at = height + (place - (count - 1) / 2) * min(0.26, 0.72 / count)
            colour, marker = style_of(place)
            if row.baseline_low is not None and row.baseline_high is not None:
                band = [row.baseline_low - row.baseline, row.baseline_high - row.baseline]
                axes.plot(band, [at, at], color=GRID, linewidth=4, solid_capstyle="butt", zorder=1)
            if row.low is not None and row.high is not None:
                axes.plot([row.low - row.baseline, row.high - row.baseline], [at, at], color=colour, zorder=2)
            axes.plot([row.lift], [at], marker, color=colour, markersize=4.2, zorder=3)


def _has_lift(found: Values) -> bool:
    return any(row.lift is not None for rows in found.values() for row in rows.values())


# --- both at a glance ---------------------------------------------------------------------------------------------


def overview(scores: Scores, path: str) -> None:
    """Write the heat map, and lift over chance under it where it was measured, as one .png, .svg or .pdf."""
    index = ScoreIndex(scores)
    heat = _HeatMap(index)
    try:
        lift = _Lift(index)
    except InputError:
        lift = None
    metric = index.headline
    direction = "higher" if facts(metric).higher_is_better else "lower"
    pairs = protocol_name(index.values(metric))
    across = f" {pairs}" if pairs != PROTOCOLS[ALL] else ""
    title = f"{axis_title(metric)}{across} of each representation, {direction} is better"
    with look():
        if lift is None:
            figure = new_figure(max(_WIDTH, heat.width), heat.height)
            heat.draw(figure)
        else:
            figure = new_figure(max(_WIDTH, heat.width), heat.height + 1.1 + lift.height + 0.3)
            upper, lower = figure.subfigures(2, 1, height_ratios=[heat.height, 1.1 + lift.height])
            heat.draw(upper)
            lift.draw(lower)
            lower.set_facecolor(PAPER)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10, fontweight="bold")
        save(figure, str(path))
