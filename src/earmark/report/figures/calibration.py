"""What a simulation says of intervals and tests: a dot for each design and metric, beside what version 0.1.0 did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from earmark.report.figures.style import COLOURS, MUTED, grid, look, name_of, new_figure


class Dot(NamedTuple):
    """One metric under one design and protocol, now and formerly; None where nothing was measured."""

    setting: str
    metric: str
    coverage: float | None
    former_coverage: float | None
    rejected: float | None
    former_rejected: float | None


_PANELS = (
    ("95 % intervals that hold the expectation", "coverage", "former_coverage", 0.95, (0.45, 1.02)),
    ("equal systems told apart at 0.05", "rejected", "former_rejected", 0.05, (-0.01, 0.3)),
)


def calibration(dots: Sequence[Dot]) -> Any:
    """Two panels, coverage and error rate; a line for each design, protocol and metric, a mark at what is promised."""
    lines = [(dot.setting, dot.metric) for dot in dots]
    settings = list(dict.fromkeys(setting for setting, _ in lines))
    with look():
        figure = new_figure(9.0, 1.0 + 0.19 * len(lines) + 0.25 * len(settings))
        heights, ticks, place = [], [], 0.0
        for n, (setting, metric) in enumerate(lines):
            if n and lines[n - 1][0] != setting:
                place -= 1.2
            heights.append(place)
            ticks.append(metric)
            place -= 1.0
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (title, now, then, promised, limits) in zip(panels, _PANELS, strict=True):
            axes.axvline(promised, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)))
            for colour, marker, size, name, label in (
                (COLOURS[1], "s", 16, then, "version 0.1.0"), (COLOURS[0], "o", 22, now, "now"),
            ):  # fmt: skip
                known = [(getattr(dot, name), height) for dot, height in zip(dots, heights, strict=True)]
                known = [(value, height) for value, height in known if value is not None]
                axes.scatter([value for value, _ in known], [height for _, height in known], s=size, color=colour,
                             marker=marker, label=label, zorder=3)  # fmt: skip
            values = [value for dot in dots for value in (getattr(dot, now), getattr(dot, then)) if value is not None]
            axes.set_xlim(min([limits[0], *values]), max([limits[1], *values]) + 0.01)
            axes.set_title(title, loc="left")
            grid(axes, "x")
        panels[0].set_yticks(heights, ticks)
        for setting in settings:
            top = heights[[line[0] for line in lines].index(setting)]
            panels[0].annotate(name_of(setting, 60), (0.0, top + 0.75), xycoords=("axes fraction", "data"), color=MUTED,
                               fontsize=7.5, va="bottom")  # fmt: skip
        panels[0].set_ylim(place + 0.2, heights[0] + 1.8)
        panels[0].legend(loc="lower left")
    return figure
