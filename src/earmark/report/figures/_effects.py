"""Figures of what one choice does, all else equal: differences of pairs, subset by subset and on average."""

from __future__ import annotations

from typing import Any

import numpy as np

from earmark.report.effects import Effect, Effects
from earmark.report.figures import style
from earmark.report.metric_text import facts, number

_WIDTH = 8.4
MOST_LINES = 40
_LONGEST = 34


def effects(found: Effects) -> Any:
    """A panel for each metric, a line for each model and pair of levels: grey subsets, the mean and its interval."""
    lines: list[tuple[str, str, str]] = []
    for item in found.effects:
        key = item.model, item.level, item.reference
        if key not in lines:
            lines.append(key)
    models = list(dict.fromkeys(model for model, *_ in lines))
    several = {model: len({own[2] for own in lines if own[0] == model}) > 1 for model in models}
    shown: list[tuple[str, str, str] | str] = []
    for model in models:
        mine = [line for line in lines if line[0] == model]
        shown += [model, *([] if several[model] else [(model, mine[0][2], "")]), *mine]
    shown = shown[:MOST_LINES]
    with style.look():
        figure = style.new_figure(_WIDTH, 0.9 + 0.23 * len(shown))
        panels = figure.subplots(1, len(found.metrics), sharey=True, squeeze=False)[0]
        for place, (axes, metric) in enumerate(zip(panels, found.metrics, strict=True)):
            own = {(item.model, item.level, item.reference): item for item in found.effects if item.metric == metric}
            for height, line in enumerate(shown):
                if not isinstance(line, str) and line in own:
                    _draw(axes, height, own[line], place)
                elif not isinstance(line, str) and not line[2]:
                    axes.plot([0], [height], "|", color=style.INK, markersize=8, zorder=3)
            axes.axvline(0, color=style.MUTED, linewidth=1)
            style.grid(axes, "x")
            axes.set_title(metric + (" ↑" if facts(metric).higher_is_better else " ↓"), loc="left")
            axes.set_xlabel("difference" + (" (points)" if facts(metric).percent else ""))
            axes.xaxis.set_major_locator(style.library("matplotlib.ticker").MaxNLocator(5))
            axes.xaxis.set_major_formatter(
                lambda value, _, metric=metric: number(value, metric, sign=abs(value) > 1e-9).removesuffix(".0")
            )
        names = [line if isinstance(line, str) else _name(line, several[line[0]]) for line in shown]
        style.name_lines(panels[0], style.names_of(names, _LONGEST))
        for axes in panels[1:]:
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
        for label, line in zip(panels[0].get_yticklabels(), shown, strict=True):
            if isinstance(line, str):
                label.set_fontweight("bold")
    return figure


def lines_of(found: Effects) -> int:
    """How many lines a figure of all effects has at most, those of models and references included."""
    keys = {(item.model, item.level, item.reference) for item in found.effects}
    return len(keys) + 2 * len({model for model, *_ in keys})


def _name(line: tuple[str, str, str], several: bool) -> str:
    _, level, reference = line
    return f"{level} − {reference}" if several else level if reference else f"{level} = 0"


def _draw(axes: Any, height: float, item: Effect, place: int) -> None:
    values = np.array(list(item.by_subset.values()))
    shift = 0.16 * np.cos(np.arange(len(values)) * 2.4)  # apart, and the same every time
    axes.plot(values, height + shift, "o", color=style.MUTED, markersize=2, alpha=0.55, zorder=2)
    colour, marker = style.style_of(place)
    if item.low is not None and item.high is not None:
        axes.plot([item.low, item.high], [height, height], color=colour, linewidth=1.8, zorder=3)
    axes.plot(
        [item.mean], [height], marker, markersize=5, zorder=4, color=colour, markeredgecolor=colour,
        markerfacecolor=colour if item.told else style.PAPER,
    )  # fmt: skip
