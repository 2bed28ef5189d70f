"""Agreement with listeners: a dot with its interval for each system and distance, chance and ceilings behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from earmark.report.figures import style
from earmark.scores import Row, Scores

METRICS = ("choice_accuracy", "triplet_accuracy")
_BOUNDS = ("agreement_between", "agreement_within", "agreement_repeats")
_MOST_PANELS = 4


def agreement(scores: Scores, ceilings: Sequence[float] = ()) -> Any:
    """A panel for each set of judgements, up to four; a line for each system and distance.

    The band goes from the lowest to the highest ceiling: those given, else how far listeners agree with each other.
    """
    rows = [row for row in scores if row.metric in METRICS and row.value is not None]
    if not rows:
        raise style.nothing("agreement with listeners")
    protocols = list(dict.fromkeys(row.protocol for row in rows))[:_MOST_PANELS]
    lines = list(dict.fromkeys((row.system, row.distance) for row in rows))
    distances = list(dict.fromkeys(distance for _, distance in lines))
    with style.look():
        figure = style.new_figure(2.2 + 2.9 * len(protocols), 1.3 + 0.26 * len(lines))
        panels = figure.subplots(1, len(protocols), sharex=True, sharey=True, squeeze=False)[0]
        for axes, protocol in zip(panels, protocols, strict=True):
            levels = list(ceilings) or [
                row.value for row in scores if row.protocol == protocol and row.metric in _BOUNDS and row.value
            ]
            if levels:
                axes.axvspan(100 * min(levels), 100 * max(levels), color=style.GRID, alpha=0.7, linewidth=0)
                for level in levels:
                    axes.axvline(100 * level, color=style.MUTED, linewidth=0.8)
            axes.axvline(50, color=style.MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
            for row in rows:
                if row.protocol == protocol:
                    _draw(axes, lines.index((row.system, row.distance)), row, distances.index(row.distance))
            axes.set_title(style.name_of(protocol, 40), loc="left")
            grey = ["dashed: chance", *([] if not levels else ["grey: listeners' ceiling" + "s" * (len(levels) > 1)])]
            axes.set_xlabel(f"agreement (%)\n{', '.join(grey)}")
            style.grid(axes, "x")
        names = [f"{system} · {distance}" if distance else system for system, distance in lines]
        style.name_lines(panels[0], [style.name_of(name, 36) for name in names])
    return figure


def _draw(axes: Any, height: int, row: Row, place: int) -> None:
    colour, marker = style.style_of(place)
    if row.low is not None and row.high is not None:
        axes.plot([100 * row.low, 100 * row.high], [height, height], color=colour)
    axes.plot([100 * (row.value or 0.0)], [height], marker, color=colour, markersize=4.5)
