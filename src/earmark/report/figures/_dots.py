"""Values with their intervals, a line for each setting: what a score table says at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from earmark.report.figures import style
from earmark.report.metric_text import number
from earmark.scores import KEY, Metric, Row

_MOST = 40
_WIDTH = 6.4


def dot_plot(rows: Sequence[Row], metric: Metric) -> Any:
    """A dot for each row of one metric with its 95 % interval, and the chance level where it was measured; the best on
    top. Of differences, the line at 0 is where two systems are equal."""
    if not rows:
        raise style.nothing("a value")
    better = 1.0 if metric.higher_is_better else -1.0
    drawn = sorted(rows, key=lambda row: -better * (row.value or 0.0))[:_MOST]
    varying = [name for name in KEY[:-1] if len({getattr(row, name) for row in rows}) > 1] or ["system"]
    names = [" · ".join(filter(None, (getattr(row, name) for name in varying))) for row in drawn]
    differences = any(row.statistic == "difference" for row in drawn)
    colour, marker = style.style_of(0)
    with style.look():
        figure = style.new_figure(_WIDTH, 0.9 + 0.27 * len(drawn))
        axes = figure.add_subplot()
        for height, row in enumerate(drawn):
            if row.baseline is not None:
                axes.plot([row.baseline], [height], "|", color=style.MUTED, markersize=9)
            if row.low is not None and row.high is not None:
                axes.plot([row.low, row.high], [height, height], color=colour)
            axes.plot([row.value], [height], marker, color=colour, markersize=4.5)
        if differences:
            axes.axvline(0, color=style.MUTED, linewidth=1)
        style.grid(axes, "x")
        style.name_lines(axes, style.names_of(names, 46))
        unit = " (percentage points)" if differences and metric.percent else ""
        name = drawn[0].metric
        axes.set_xlabel(f"{name.partition(':')[0]} difference{unit}" if differences else style.axis_title(name))
        axes.xaxis.set_major_formatter(lambda value, _: number(value, drawn[0].metric).removesuffix(".0"))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        if len(rows) > len(drawn):
            axes.set_title(f"the best {len(drawn)} of {len(rows)}", loc="left")
    return figure
