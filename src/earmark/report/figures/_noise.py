"""The figure of label noise: what is left of each metric, of its value and above chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from earmark.report.figures import style
from earmark.report.noise import ABOVE_CHANCE, NoiseCurves

_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 1.4)), (0, (6, 2, 1.2, 2)))


def noise_curves(found: NoiseCurves) -> Any:
    """A column for each subset, a row for each kind; colours are systems, dashes and markers metrics."""
    kinds = found.kinds
    columns = len(found.subsets)
    with style.look():
        figure = style.new_figure(max(2.3 * columns + 2.9, 5.6), 2.3 * len(kinds) + 0.35)
        panels = figure.subplots(len(kinds), columns, sharex=True, sharey=True, squeeze=False)
        steps = np.linspace(0, max(found.shares), 60)
        for row, kind in zip(panels, kinds, strict=True):
            for axes, place in zip(row, found.subsets, strict=True):
                axes.plot(
                    100 * steps, 100 * (1 - steps) ** 2, color=style.MUTED, linewidth=0.9, linestyle=":", zorder=1
                )
                for curve in found.curves:
                    if curve.subset == place and kind in curve.left:
                        colour, _ = style.style_of(found.lines.index(curve.line))
                        kept = found.metrics.index(curve.metric)
                        axes.plot(
                            [100 * share for share in curve.shares], [100 * value for value in curve.left[kind]],
                            color=colour, linestyle=_DASHES[kept % len(_DASHES)], marker=style.MARKERS[kept % 7],
                            markersize=3.6, zorder=2,
                        )  # fmt: skip
                style.grid(axes)
                axes.axhline(100, color=style.GRID, linewidth=1, zorder=0)
            row[0].set_ylabel("% of the lead over chance" if kind == ABOVE_CHANCE else "% of the clean score")
        for axes, place in zip(panels[0], found.subsets, strict=True):
            axes.set_title(style.name_of(place, 26), loc="left")
        for axes in panels[-1]:
            axes.set_xlabel("labels exchanged (%)")
            axes.set_xticks([100 * share for share in found.shares if share == 0 or share >= 0.2 * max(found.shares)])
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        _legend(figure, found)
    return figure


def _legend(figure: Any, found: NoiseCurves) -> None:
    line = style.library("matplotlib.lines").Line2D
    systems = [
        line([], [], color=style.style_of(place)[0], label=name)
        for place, name in enumerate(style.names_of([item.label for item in found.lines], 34))
    ]
    metrics = [
        line([], [], color=style.INK, linestyle=_DASHES[place % len(_DASHES)], marker=style.MARKERS[place % 7],
             markersize=3.6, label=style.name_of(metric))
        for place, metric in enumerate(found.metrics)
    ]  # fmt: skip
    kept = line([], [], color=style.MUTED, linewidth=0.9, linestyle=":", label="(1 − share)²")
    figure.legend(handles=[*systems, *metrics, kept], loc="outside right center", fontsize=7.5, handlelength=2.6)
