"""Figures of what was tried on a study: noise, folds, wider searches (SimBA's Figure 3 and its section on limits)."""

from __future__ import annotations

from typing import Any

import numpy as np

from earmark.analysis.pounce import Forecast, Pounce
from earmark.analysis.study import Study
from earmark.errors import InputError
from earmark.report.analysis._figures import SPELLED, WIDTH, line_style
from earmark.report.figures import style
from earmark.wording import counted


def noise_curves(study: Study) -> Any:
    """Mean squared error on held-out models by the number of datasets run: clean, under each noise, and over folds.

    In the panel of folds the band runs from the fold with the smallest error to that with the largest.
    """
    if study.pounce is None or not (study.noise or study.folds):
        raise InputError("The study has neither noise nor folds to draw; ask for --noise or --folds.")
    panels: list[tuple[str, Pounce]] = [("no noise", study.pounce)]
    panels += [(f"noise σ² = {found.noise:g}", found) for found in study.noise]
    if study.folds is not None:
        panels.append((f"{counted(len(study.folds.forecasts[0].by_split), 'fold')}, smallest to largest", study.folds))
    across = min(len(panels), 3) if len(panels) != 4 else 2
    down = -(-len(panels) // across)
    with style.look():
        figure = style.new_figure(WIDTH, 0.9 + 2.1 * down)
        grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
        for place, (title, found) in enumerate(panels):
            axes = grid[place // across][place % across]
            for number, forecast in enumerate(found.forecasts):
                _draw_curve(axes, forecast, number, band=found is study.folds)
            axes.set_title(title, loc="left")
            axes.xaxis.get_major_locator().set_params(integer=True)
            style.grid(axes)
            if place + across >= len(panels):
                axes.set_xlabel("datasets that are run, |S|")
                axes.tick_params(labelbottom=True)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        first = grid[0][0]
        first.set_yscale("log")
        lowest = min(float(forecast.curve.min()) for _, found in panels for forecast in found.forecasts)
        highest = max(float(forecast.curve.max()) for _, found in panels for forecast in found.forecasts)
        first.set_ylim(max(lowest, 1e-5) / 1.4, highest * 1.4)
        first.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        first.yaxis.set_minor_formatter(lambda value, _: "")
        figure.supylabel(f"mean squared error{chr(10) if down == 1 else ' '}of datasets not run", fontsize=8.5)
        lines, labels = first.get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside upper center", ncols=len(labels))
    return figure


def _draw_curve(axes: Any, forecast: Forecast, number: int, *, band: bool) -> None:
    sizes = np.arange(1, len(forecast.curve) + 1)
    baseline = forecast.regressor == "mean"
    colour = style.INK if baseline else style.style_of(number)[0]
    if band:
        low, high = forecast.curves.min(axis=0), forecast.curves.max(axis=0)
        axes.fill_between(sizes, low, high, color=colour, alpha=0.13, linewidth=0)
    axes.plot(
        sizes, forecast.curve, color=colour, linestyle=":" if baseline else "-", linewidth=1.6,
        label=SPELLED.get(forecast.regressor, forecast.regressor),
    )  # fmt: skip


def fold_errors(study: Study) -> Any:
    """The AUC-MSE of each regressor in each fold, a dot for each; the bar is their mean.

    The diamond is the split of the main results.
    """
    if study.folds is None:
        raise InputError("The study has no folds to draw; ask for --folds.")
    forecasts = study.folds.forecasts
    with style.look():
        figure = style.new_figure(WIDTH * 0.8, 0.9 + 0.42 * len(forecasts))
        axes = figure.add_subplot()
        for height, forecast in enumerate(forecasts):
            values = np.sort(list(forecast.by_split.values()))
            shifts = 0.16 * (np.arange(len(values)) % 3 - 1)  # so that equal folds can be told apart
            colour = style.INK if forecast.regressor == "mean" else style.style_of(height)[0]
            axes.plot(values, height + shifts, "o", color=colour, markersize=4.5, alpha=0.75, markeredgewidth=0)
            axes.plot([forecast.auc_mse] * 2, [height - 0.32, height + 0.32], color=style.INK, linewidth=1.6)
            once = study.pounce.forecast(forecast.regressor).auc_mse if study.pounce else None
            if once is not None:
                axes.plot([once], [height], "D", markersize=7, markerfacecolor="none", markeredgecolor=style.INK)
        style.name_lines(axes, [SPELLED.get(forecast.regressor, forecast.regressor) for forecast in forecasts])
        axes.set_xlim(left=0)
        axes.set_xlabel("error in one fold (AUC-MSE)")
        line, marker = style.library("matplotlib.lines").Line2D, {"linestyle": "none", "color": style.INK}
        keys = [
            (line([], [], marker="o", markersize=4.5, linestyle="none", color=style.MUTED), "one fold"),
            (line([], [], marker="|", markersize=11, markeredgewidth=1.6, **marker), "mean of the folds"),
            (line([], [], marker="D", markersize=7, markerfacecolor="none", **marker), "the split of the main results"),
        ]
        figure.legend(*zip(*keys, strict=True), loc="outside upper center", ncols=3)
        style.grid(axes, "x")
    return figure


def beam_widths(study: Study) -> Any:
    """What a wider search changes, for each similarity: what it looks for (left), and what counts (right)."""
    widths = sorted({found.beam for found in study.beams})
    if len(widths) < 2:
        raise InputError("The study has only one beam width to draw; ask for several, such as --beam 1,5,10,20.")
    names = list(dict.fromkeys(found.similarity for found in study.beams))
    by_key = {(found.similarity, found.beam): found for found in study.beams}
    places = np.arange(len(widths))
    with style.look():
        figure = style.new_figure(WIDTH, 3.1)
        left, right = figure.subplots(1, 2, sharex=True)
        for axes, field in ((left, "proxy"), (right, "scauc")):
            for number, name in enumerate(names):
                values = np.array([getattr(by_key[name, width], field) for width in widths])
                colour, marker, dashes = line_style(number)
                axes.plot(
                    places, values - values[0], color=colour, marker=marker, markersize=3.5, linewidth=1.2,
                    linestyle=dashes, label=SPELLED.get(name, name),
                )  # fmt: skip
            axes.axhline(0, color=style.MUTED, linewidth=0.8)
            axes.set_xticks(places, [str(width) for width in widths])
            axes.set_xlabel("subsets kept (beam width)")
            style.grid(axes)
        spread = float(study.prowl.random.scauc.std()) if study.prowl.random.scauc.size > 1 else 0.0
        if spread:
            right.axhspan(-spread, spread, color=style.GRID, alpha=0.5, linewidth=0, zorder=0)
        left.set_title("what the search looks for:\nchange of proxy coverage (δ)", loc="left")
        right.set_title("what counts: change of coverage\n(SCAUC; grey: as random orders vary)", loc="left")
        figure.legend(*left.get_legend_handles_labels(), loc="outside right center", title="order by", title_fontsize=8)
    return figure
