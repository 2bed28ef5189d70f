"""Figures of a score table: the heat map, lift over chance, and both as one picture."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from earmark.errors import InputError
from earmark.report import reading
from earmark.report.correlations import Correlations
from earmark.report.figures.style import (
    COLOURS,
    GRID,
    MARKERS,
    MUTED,
    PAPER,
    SCALE,
    axis_title,
    ink_on,
    library,
    look,
    name_of,
    new_figure,
    nothing,
    save,
)
from earmark.report.reading import Representation, Subset, facts, number
from earmark.scores import Row, Scores

_WIDTH = 7.6
_MOST_LINES = 40
_DIVERGING = "PuOr"
_LONGEST = 46


# --- the heat map -----------------------------------------------------------------------------------------------


def score_heatmap(
    scores: Scores, metric: str | None = None, protocol: str | None = None, unranked: Collection[Subset] = ()
) -> Any:
    """A cell for each representation and subset, coloured by the metric; the best of each subset is framed.

    Without a protocol: across groups in the subsets that were measured so, all pairs in the others. Nothing is framed
    where representations were scored on different clips, nor in a subset of `unranked`. With a single subset the
    columns are the metrics, each coloured from its own worst to its own best value.
    """
    lines, columns, _ = _heat_cells(scores, metric, protocol)
    with look():
        figure = new_figure(_heat_width(lines, columns), _heat_height(lines))
        _draw_heatmap(figure, scores, metric, protocol, unranked)
    return figure


def _heat_width(lines: list[Representation], columns: list[str]) -> float:
    names = 0.075 * max(len(name_of(line.label, _LONGEST)) for line in lines)
    return float(min(max(names + 0.75 * len(columns) + 1.0, 4.2), 14.0))


def _heat_height(lines: list[Representation]) -> float:
    return 1.1 + 0.27 * len(lines)


def _heat_cells(
    scores: Scores, metric: str | None, protocol: str | None
) -> tuple[list[Representation], list[str], list[dict[Representation, Row]]]:
    leading = metric or reading.headline(scores)
    found = reading.values(scores, leading, protocol)
    lines = [line for line in reading.representations(scores) if any(line in rows for rows in found.values())]
    if not found:
        raise nothing("a heat map")
    if len(found) > 1 or metric is not None:
        return lines, [place.label for place in found], list(found.values())
    place = next(iter(found))
    protocol = next(iter(found[place].values())).protocol
    names = [name for name in reading.metrics(scores) if reading.values(scores, name, protocol).get(place)]
    names = [name for name in names if ":" not in name]
    return lines, names, [reading.values(scores, name, protocol)[place] for name in names]


def _draw_heatmap(
    figure: Any,
    scores: Scores,
    metric: str | None = None,
    protocol: str | None = None,
    unranked: Collection[Subset] = (),
) -> None:
    lines, columns, cells = _heat_cells(scores, metric, protocol)
    by_metric = len({row.metric for rows in cells for row in rows.values()}) > 1
    axes = figure.add_subplot()
    table = np.array([[_good(rows.get(line)) for rows in cells] for line in lines], float)
    colours, low, high = _relative(table) if by_metric else (table, np.nanmin(table), np.nanmax(table))
    if high - low < 1e-12:
        low, high = low - 0.5, high + 0.5
    scale = library().colormaps[SCALE]
    image = axes.imshow(colours, cmap=SCALE, vmin=low, vmax=high, aspect="auto")
    for place, line in enumerate(lines):
        for column, rows in enumerate(cells):
            _heat_cell(axes, rows.get(line), place, column, scale((colours[place, column] - low) / (high - low)))
    for column in range(len(columns)):
        best = np.flatnonzero(np.isclose(table[:, column], np.nanmax(table[:, column]), rtol=0, atol=5e-4))
        rivals = list(cells[column].values())
        comparable = reading.same_clips(rivals) and reading.subset(rivals[0]) not in unranked
        if comparable and len(lines) > 1 and len(best) < np.isfinite(table[:, column]).sum():
            _frame(axes, best, column)
    axes.set_xticks(range(len(columns)), [name_of(name, 16) for name in columns])
    axes.xaxis.tick_top()
    if max(len(name) for name in columns) > 8:
        axes.tick_params(axis="x", rotation=30)
        for label in axes.get_xticklabels():
            label.set_ha("left")
    axes.set_yticks(range(len(lines)), [name_of(line.label, _LONGEST) for line in lines])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if not by_metric:
        _colour_bar(figure, image, axes, next(iter(cells[0].values())).metric)


def correlation_map(found: Correlations) -> Any:
    """A cell for each pair of metrics, from orange (-1) over white to purple (+1)."""
    side = 1.4 + 0.42 * len(found.metrics)
    with look():
        figure = new_figure(min(max(side, 3.4), 11.0), min(max(0.85 * side, 2.6), 9.5))
        axes = figure.add_subplot()
        scale = library().colormaps[_DIVERGING]
        axes.imshow(found.matrix, cmap=_DIVERGING, vmin=-1, vmax=1, aspect="auto")
        for (row, column), value in np.ndenumerate(found.matrix):
            text = f"{value:.2f}".replace("-0.00", "0.00").replace("-", "\N{MINUS SIGN}")
            ink = ink_on(*scale((value + 1) / 2)[:3])
            axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=7.5)
        names = [name_of(name, 16) for name in found.metrics]
        axes.set_xticks(range(len(names)), names, rotation=45, ha="left")
        axes.xaxis.tick_top()
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    return figure


def _good(row: Row | None) -> float:
    return float("nan") if row is None else reading.goodness(row)


def _relative(table: Any) -> tuple[Any, float, float]:
    """Each column from its worst (0) to its best (1)."""
    low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    return np.where(high - low > 1e-12, (table - low) / np.where(high > low, high - low, 1.0), 0.5), 0.0, 1.0


def _heat_cell(axes: Any, row: Row | None, place: int, column: int, colour: Any) -> None:
    if row is None or row.value is None:
        axes.text(column, place, "–", ha="center", va="center", color=MUTED)
        return
    axes.text(column, place, number(row.value, row.metric), ha="center", va="center", color=ink_on(*colour[:3]))


def _frame(axes: Any, places: Any, column: int) -> None:
    patches = library("matplotlib.patches")
    for place in places:
        axes.add_patch(
            patches.Rectangle(
                (column - 0.46, place - 0.44), 0.92, 0.88, fill=False, edgecolor=COLOURS[1], linewidth=1.8
            )
        )


def _colour_bar(figure: Any, image: Any, axes: Any, metric: str) -> None:
    turned = 1 if facts(metric).higher_is_better else -1
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.ax.yaxis.set_major_formatter(lambda value, _: number(turned * value, metric).removesuffix(".0"))
    bar.set_label(axis_title(metric))


# --- lift over chance -------------------------------------------------------------------------------------------


def lift_plot(scores: Scores, metric: str | None = None) -> Any:
    """How far above chance each system lies in each subset, with 95 % intervals; protocols side by side.

    The grey bar at zero is where shuffled labels fall 95 % of the time. Distances have their own colours.
    """
    metric, lines, _ = _lift_lines(scores, metric)
    with look():
        figure = new_figure(_WIDTH, 1.0 + 0.02 * 5 + _lift_inches(lines, scores))
        _draw_lift(figure, scores, metric)
    return figure


def _lift_lines(scores: Scores, metric: str | None) -> tuple[str, list[tuple[Subset, str | None]], list[str]]:
    """The metric, the lines of the plot (a heading has no system), and the distances."""
    leading = metric or reading.headline(scores)
    rows = [
        row
        for row in reading.single_subsets(scores)
        if row.metric == leading and row.status == "ok" and row.lift is not None
    ]
    if not rows:
        raise nothing("lift over chance; permutations give one")
    places = list(dict.fromkeys(reading.subset(row) for row in rows))
    systems = lift_systems(scores, leading)
    lines: list[tuple[Subset, str | None]] = []
    for place in places:
        lines += [(place, None), *((place, system) for system in systems)]
    measures = list(dict.fromkeys(reading.representation(row).measure for row in rows))
    return leading, lines, measures


def lift_systems(scores: Scores, metric: str) -> list[str]:
    """The systems that fit: all, or those with the best means over subsets, in the order of the table."""
    found = reading.values(scores, metric)
    everyone = list(dict.fromkeys(line.system for rows in found.values() for line in rows))
    room = max(4, _MOST_LINES // max(1, len(found)) - 1)
    if len(everyone) <= room:
        return everyone
    best: dict[str, float] = {}
    for rows in found.values():
        for system in everyone:
            mine = [reading.goodness(row) for line, row in rows.items() if line.system == system]
            best[system] = best.get(system, 0.0) + (max(mine) if mine else 0.0)
    chosen = sorted(everyone, key=lambda system: -best[system])[:room]
    return [system for system in everyone if system in chosen]


def _lift_inches(lines: Sequence[object], scores: Scores) -> float:
    measures = len({line.measure for line in reading.representations(scores)})
    return len(lines) * (0.15 + 0.075 * measures)


def _draw_lift(figure: Any, scores: Scores, metric: str | None = None) -> None:
    metric, lines, measures = _lift_lines(scores, metric)
    shown = [name for name in reading.protocols(scores) if _has_lift(reading.values(scores, metric, name))]
    panels = figure.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
    for axes, protocol in zip(panels, shown, strict=True):
        found = reading.values(scores, metric, protocol)
        for height, (place, system) in enumerate(lines):
            if system is not None:
                rows = {line.measure: row for line, row in found.get(place, {}).items() if line.system == system}
                _lift_line(axes, height, rows, measures)
        axes.axvline(0, color=MUTED, linewidth=1)
        axes.set_axisbelow(True)
        axes.grid(axis="x")
        axes.set_title(reading.PROTOCOLS.get(protocol, protocol) if len(shown) > 1 else "", loc="left")
        percent = facts(metric).percent
        axes.set_xlabel(f"{metric} above chance" + (" (percentage points)" if percent else ""))
        axes.xaxis.set_major_formatter(lambda value, _: number(value, metric, sign=True).removesuffix(".0"))
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labeltop=len(lines) > 16, labelsize=8)
        axes.spines["left"].set_visible(False)
    first = panels[0]
    first.set_ylim(len(lines) - 0.4, -0.6)
    first.set_yticks(range(len(lines)), [name_of(system or place.label, 36) for place, system in lines])
    for label, (_, system) in zip(first.get_yticklabels(), lines, strict=True):
        if system is None:
            label.set_fontweight("bold")
    if len(measures) > 1:
        _legend(figure, measures)


def _has_lift(found: reading.Values) -> bool:
    return any(row.lift is not None for rows in found.values() for row in rows.values())


def _lift_line(axes: Any, height: float, rows: dict[str, Row], measures: list[str]) -> None:
    for number_, measure in enumerate(measures):
        row = rows.get(measure)
        if row is None or row.lift is None or row.baseline is None:
            continue
        at = height + (number_ - (len(measures) - 1) / 2) * min(0.26, 0.72 / len(measures))
        colour, marker = COLOURS[number_ % len(COLOURS)], MARKERS[number_ % len(MARKERS)]
        if row.baseline_low is not None and row.baseline_high is not None:
            band = [row.baseline_low - row.baseline, row.baseline_high - row.baseline]
            axes.plot(band, [at, at], color=GRID, linewidth=4, solid_capstyle="butt", zorder=1)
        if row.low is not None and row.high is not None:
            axes.plot([row.low - row.baseline, row.high - row.baseline], [at, at], color=colour, zorder=2)
        axes.plot([row.lift], [at], marker, color=colour, markersize=4.2, zorder=3)


def _legend(figure: Any, measures: list[str]) -> None:
    lines = library("matplotlib.lines")
    handles = [
        lines.Line2D([], [], color=COLOURS[n % len(COLOURS)], marker=MARKERS[n % len(MARKERS)], markersize=4.5)
        for n in range(len(measures))
    ]
    figure.legend(handles, [name_of(name) for name in measures], loc="outside upper right", ncols=len(measures))


# --- both at a glance ---------------------------------------------------------------------------------------------


def overview(scores: Scores, path: str) -> None:
    """Write the heat map, and lift over chance under it where it was measured, as one .png, .svg or .pdf."""
    lines, columns, _ = _heat_cells(scores, None, None)
    heat = _heat_height(lines)
    try:
        _, rows, _ = _lift_lines(scores, None)
        lift = 1.1 + _lift_inches(rows, scores)
    except InputError:
        lift = 0.0
    with look():
        figure = new_figure(max(_WIDTH, _heat_width(lines, columns)), heat + lift + 0.3 * (lift > 0))
        if lift:
            upper, lower = figure.subfigures(2, 1, height_ratios=[heat, lift])
            _draw_heatmap(upper, scores)
            _draw_lift(lower, scores)
            lower.set_facecolor(PAPER)
        else:
            _draw_heatmap(figure, scores)
        figure.suptitle(_overview_title(scores), x=0.01, ha="left", fontsize=10, fontweight="bold")
        save(figure, str(path))


def _overview_title(scores: Scores) -> str:
    metric = reading.headline(scores)
    direction = "higher" if facts(metric).higher_is_better else "lower"
    pairs = reading.protocol_name(reading.values(scores, metric))
    across = f" {pairs}" if pairs != reading.PROTOCOLS[reading.ALL] else ""
    return f"{axis_title(metric)}{across} of each representation, {direction} is better"
