"""Figures of a study: what is related, what covers the whole, what predicts the rest, how sure ranks are."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from earmark.analysis.prowl import THRESHOLD
from earmark.analysis.similarities import NINE
from earmark.analysis.stalk import KINDS, linkage
from earmark.analysis.study import Study
from earmark.analysis.suite import ERROR_SHARE
from earmark.errors import InputError
from earmark.report.figures import style

WIDTH = 7.6
_COLOURS = (*style.COLOURS, "#8f6a4e", "#8f9a1c")
_SOLID = 5
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.6)), (0, (1.2, 1.4)), (0, (6, 2, 1.2, 2)))
_LETTERS = {"LINEAR": "L", "EXPONENTIAL": "E", "POWER-LAW": "P", "NONE": ""}
_MOST_LETTERS = 30
_MOST_NAMES = 70
SPELLED = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall",
    "cosine": "cosine",
    "manhattan": "Manhattan",
    "euclidean": "Euclidean",
    "minkowski": "Minkowski p=3",
    "wasserstein": "Wasserstein",
    "jensen_shannon": "Jensen–Shannon",
    "greedy_min": "hardest first",
    "greedy_max": "easiest first",
    "random": "random",
    "ridge": "ridge",
    "knn": "5 nearest models",
    "mean": "training mean",
    "mlp12": "perceptron (12)",
    "mlp12_12": "perceptron (12, 12)",
}


def line_style(number: int) -> tuple[str, str, Any]:
    """Colour, marker and dashes of the n-th line: nine have a colour each, and like colours differ in dashes."""
    turn = number // _SOLID
    return (
        _COLOURS[number % len(_COLOURS)], style.MARKERS[(number + turn) % len(style.MARKERS)],
        _DASHES[turn % len(_DASHES)],
    )  # fmt: skip


def relation_map(study: Study, of: Literal["datasets", "models"] = "datasets") -> Any:
    """R^2 of every pair, ordered by a dendrogram on the left; letters name the relation: L, E or P."""
    found = study.stalk.datasets if of == "datasets" else study.stalk.models
    hierarchy = style.library("scipy.cluster.hierarchy")
    tree = hierarchy.dendrogram(linkage(found), no_plot=True, orientation="left")
    order = tree["leaves"]
    count = len(order)
    r2 = found.r2[np.ix_(order, order)]
    names = [style.name_of(found.names[place], 22) for place in order]
    side = float(np.clip(0.27 * count, 2.0, 8.5))
    words = 0.07 * max(map(len, names)) if count <= _MOST_NAMES else 0.2
    with style.look():
        figure = style.new_figure(side + words + 2.2, side + words * 0.75 + 0.3)
        left, right = figure.subplots(1, 2, width_ratios=[1.1, side + words + 0.6])
        _draw_tree(left, tree, count)
        image = right.imshow(r2, cmap=style.SCALE, vmin=0, vmax=1, aspect="auto")
        scale = style.library().colormaps[style.SCALE]
        if count <= _MOST_LETTERS:
            for row in range(count):
                for column in range(count):
                    letter = _LETTERS[KINDS[found.kind[order[row], order[column]]]] if row != column else ""
                    style.write_cell(right, column, row, letter, scale(r2[row, column]), fontsize=7)
        if count <= _MOST_NAMES:
            right.set_xticks(range(count), names, rotation=90)
            right.xaxis.tick_top()
            right.set_yticks(range(count), names)
            right.yaxis.tick_right()
        else:
            right.set_xticks([])
            right.set_yticks([])
        right.tick_params(length=0, labelsize=8 if count <= 40 else 6)
        right.spines[:].set_visible(False)
        style.colour_bar(figure, image, left, "R²", location="left", fraction=0.3, pad=0.1, aspect=25)
    return figure


def _draw_tree(axes: Any, tree: Any, count: int) -> None:
    for across, down in zip(tree["dcoord"], tree["icoord"], strict=True):
        axes.plot(across, (np.array(down) - 5) / 10, color=style.MUTED, linewidth=1)
    axes.set_xlim(max(max(max(line) for line in tree["dcoord"]) * 1.03, 1e-9), 0)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xlabel("1 − R²")
    axes.spines["left"].set_visible(False)


def coverage_curves(study: Study) -> Any:
    """How the ranking by the first datasets of each order agrees with the ranking by all; grey: random orders."""
    found = study.prowl
    sizes = np.arange(1, len(found.datasets) + 1)
    with style.look():
        figure = style.new_figure(WIDTH, 3.6)
        axes = figure.add_subplot()
        if found.random.coverage.size:
            low, middle, high = np.quantile(found.random.coverage, [0.05, 0.5, 0.95], axis=0)
            axes.fill_between(sizes, low, high, color=style.GRID, linewidth=0, label="random, 5–95 %")
            axes.plot(sizes, middle, color=style.MUTED, linestyle=":", label="random, median")
        shown = [selection for selection in found.selections if selection.name in NINE]
        best = max(shown, key=lambda selection: selection.scauc, default=None)
        for number, selection in enumerate(shown):
            leading = best is not None and selection.name == best.name
            colour, marker, dashes = line_style(number)
            axes.plot(
                sizes, selection.coverage, color=colour, marker=marker, markersize=5.5 if leading else 3.2,
                linewidth=2.4 if leading else 1.1, linestyle=dashes,
                label=f"{SPELLED.get(selection.name, selection.name)} ({selection.size})",
            )  # fmt: skip
        for name, dashes in (("greedy_min", "-."), ("greedy_max", (0, (1, 1)))):
            for selection in found.selections:
                if selection.name == name:
                    axes.plot(
                        sizes, selection.coverage, color=style.INK, linewidth=0.9, linestyle=dashes, label=SPELLED[name]
                    )
        axes.axhline(THRESHOLD, color=style.MUTED, linewidth=0.8)
        axes.text(sizes[-1], THRESHOLD, "0.95", ha="right", va="bottom", fontsize=7.5, color=style.MUTED)
        # What matters is near 1; a baseline that begins far below may leave the figure.
        lowest = min((float(selection.coverage.min()) for selection in shown or found.selections), default=0.8)
        axes.set_ylim(max(-1.0, min(0.85, lowest - 0.03)), 1.003)
        axes.set_xlabel("datasets that are run, |S|")
        axes.set_ylabel("correlation with the ranking\nby all datasets (coverage)")
        axes.xaxis.get_major_locator().set_params(integer=True)
        style.grid(axes)
        figure.legend(loc="outside right center", title="order by (datasets needed)", title_fontsize=7.5)
    return figure


def error_curves(study: Study) -> Any:
    """The error of predicting the datasets that were not run, by how many were; the training mean is the bar."""
    if study.pounce is None:
        raise InputError("The study has no predictions to draw; its warnings say why.")
    found = study.pounce
    sizes = np.arange(1, len(found.datasets))
    with style.look():
        figure = style.new_figure(WIDTH * 0.8, 3.0)
        axes = figure.add_subplot()
        for number, forecast in enumerate(found.forecasts):
            baseline = forecast.regressor == "mean"
            axes.plot(
                sizes, np.sqrt(forecast.curve), color=style.MUTED if baseline else style.style_of(number)[0],
                linestyle=":" if baseline else "-", linewidth=1.8,
                label=SPELLED.get(forecast.regressor, forecast.regressor),
            )  # fmt: skip
        axes.set_ylim(bottom=0)
        axes.set_xlabel("datasets that are run")
        axes.set_ylabel("typical error of the scores on datasets\nnot run (0 lowest or chance, 1 best)")
        axes.xaxis.get_major_locator().set_params(integer=True)
        style.grid(axes)
        axes.legend(loc="upper right")
    return figure


def _whole_ranks(last: int) -> list[int]:
    """Ranks to write on an axis: 1 and round ones, or every second one."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 10 ** len(str(last))) if last <= 12 * step)
    return list(range(1, last + 1, step)) if step < 5 else [1, *range(step, last + 1, step)]


def rank_plot(study: Study, most: int = 30) -> Any:
    """The ranks of the best models with their intervals."""
    if study.ranks is None:
        raise InputError("The study has no ranks to draw; its warnings say why.")
    found = study.ranks
    rows = found.rows[:most]
    with style.look():
        figure = style.new_figure(WIDTH, 0.9 + 0.2 * len(rows))
        axes = figure.add_subplot()
        for height, row in enumerate(rows):
            ends = [row.low or row.rank, row.high or row.rank]
            axes.plot(ends, [height, height], color=style.COLOURS[0], linewidth=2.2, solid_capstyle="butt")
            axes.plot([row.rank], [height], "o", color=style.INK, markersize=4)
        style.name_lines(axes, [style.name_of(row.model, 40) for row in rows])
        last = max(row.high or row.rank for row in rows)
        axes.set_xlim(0.5, last + 0.5)
        axes.set_xticks(_whole_ranks(last))
        axes.set_xlabel("rank, with its 95 % interval")
        style.grid(axes, "x")
    return figure


def trade_off(study: Study) -> Any:
    """Sound that has to be run against how well it ranks (above) and predicts (below); the lite suite is ringed."""
    if study.lite is None:
        raise InputError("The study has no lite suite to draw; it is made for P@1, P@5 and GSR of VocSim.")
    found = study.lite
    minutes = np.array([entry.seconds / 60 for entry in found.front])
    coverage = np.array([entry.coverage for entry in found.front])
    error = np.array([entry.error for entry in found.front])
    with style.look():
        figure = style.new_figure(WIDTH, 4.6)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[1.25, 1])
        upper.plot(minutes, coverage, color=style.COLOURS[0], marker="o", markersize=3, drawstyle="steps-post")
        lower.plot(minutes, error, color=style.COLOURS[3], marker="o", markersize=3, linewidth=0.8)
        chosen = found.chosen
        for axes, value in ((upper, chosen.coverage), (lower, chosen.error)):
            axes.plot([chosen.seconds / 60], [value], "o", markersize=11, markerfacecolor="none",
                      markeredgecolor=style.INK, markeredgewidth=1.6)  # fmt: skip
            style.grid(axes)
        said = f"lite: {', '.join(chosen.members)}\n{chosen.seconds / 60:.0f} min of {found.whole.seconds / 3600:.0f} h"
        upper.annotate(
            said, (chosen.seconds / 60, chosen.coverage), (12, -42), textcoords="offset points", fontsize=8.5,
            arrowprops={"arrowstyle": "-", "color": style.MUTED, "linewidth": 0.8},
        )  # fmt: skip
        upper.axhline(THRESHOLD, color=style.MUTED, linewidth=0.8, linestyle="--")
        lower.axhline(ERROR_SHARE, color=style.MUTED, linewidth=0.8, linestyle="--")
        upper.set_ylim(max(0.75, float(coverage.min()) - 0.02), 1.003)
        lower.set_ylim(0, 1.03)
        upper.set_ylabel("coverage at its worst")
        lower.set_ylabel("prediction error,\nshare of the mean's")
        lower.set_xscale("log")
        lower.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        lower.set_xlabel("minutes of sound")
        upper.set_xlim(left=max(3.0, float(minutes[coverage > 0.75].min()) * 0.8))
    return figure
