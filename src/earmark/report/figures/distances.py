"""Figures of distances between two sets: how the Fréchet distance depends on the number of clips, and who raises it."""

from __future__ import annotations

from typing import Any

import numpy as np

from earmark.errors import InputError
from earmark.generated.api import Fidelity
from earmark.generated.metrics import DISTANCES
from earmark.report.figures.style import COLOURS, INK, MUTED, grid, look, name_of, new_figure
from earmark.scores import PointKey

WORST = 10
CAPTION = (
    "Left: the Fréchet distance of all clips, of halves and of quarters of both sets, and where a line through the "
    "first two meets endlessly many (fad_inf, with its 95 % interval); without it, what single clips do. Right: the "
    "clips that raise the distance most, by how much."
)


def distances_drawn(scores: Fidelity, title: str = "") -> Any:
    """The extrapolation of the Fréchet distance, where there is one, and the clips that raise a distance most."""
    key = next((key for name in DISTANCES for key in scores.per_sample if key[3] == name), None)
    if key is None:
        raise InputError("No score of single samples was measured: ask for one of frechet_distance, kad.")
    with look():
        figure = new_figure(8.4, 3.5)
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
        if len(scores.at_shares.get("fad_inf", ())) > 1:
            _draw_line(left, scores)
        else:
            _draw_effects(left, scores, key)
        _draw_worst(right, scores, key)
        if title:
            figure.suptitle(name_of(title, 110), fontsize=10)
    return figure


def _draw_line(axes: Any, scores: Fidelity) -> None:
    at = scores.at_shares["fad_inf"]
    x, y = np.array([1.0 / share for share, _ in at]), np.array([value for _, value in at])
    row = next(row for row in scores if row.metric == "fad_inf")
    end = 2.0 * y[0] - y[1]
    axes.plot([0, x[-1]], [end, end + (y[1] - y[0]) * x[-1]], color=MUTED, linewidth=1, linestyle="--", zorder=1)
    axes.plot(x, y, "o", color=COLOURS[0], zorder=3)
    for share, value in at:
        name = {1.0: "all clips", 0.5: "half", 0.25: "a quarter"}[share]
        side = {"ha": "right", "xytext": (-6, -11)} if 1 / share == x[-1] else {"ha": "left", "xytext": (6, -11)}
        axes.annotate(name, (1 / share, value), textcoords="offset points", fontsize=7.5, **side)
    if row.low is not None and row.high is not None:
        axes.plot([0, 0], [row.low, row.high], color=COLOURS[1], linewidth=1.4, zorder=2, clip_on=False)
    axes.plot(0, end, "D", color=COLOURS[1], zorder=4, clip_on=False)
    axes.annotate("fad_inf", (0, end), xytext=(8, -3), textcoords="offset points", fontsize=7.5, color=INK)
    axes.set_xticks(x, [f"{value:g} / n" for value in x])
    axes.set(xlim=(-0.12, x[-1] * 1.06), xlabel="one over the number of clips", ylabel="frechet_distance")
    axes.set_ylim(min(0.0, axes.get_ylim()[0]), None)
    grid(axes)


def _draw_effects(axes: Any, scores: Fidelity, key: PointKey) -> None:
    values = scores.per_sample[key]
    axes.hist(values, bins=min(40, max(5, len(values) // 4)), color=COLOURS[0])
    axes.axvline(0.0, color=MUTED, linewidth=1, linestyle=":")
    axes.set(xlabel=f"what a clip adds to {key[3]}", ylabel="clips")


def _draw_worst(axes: Any, scores: Fidelity, key: PointKey) -> None:
    rows = np.argsort(-scores.per_sample[key], kind="stable")[:WORST]
    values = scores.per_sample[key][rows]
    places = np.arange(len(rows))
    axes.barh(places, values, color=COLOURS[3], height=0.62)
    axes.axvline(0.0, color=MUTED, linewidth=0.8)
    names = [scores.sample_ids[row] if scores.sample_ids else f"row {row}" for row in rows]
    axes.set_yticks(places, [name_of(name, 30) for name in names], fontsize=7.5)
    axes.invert_yaxis()
    axes.set(xlabel=f"raises {key[3]} by", title="the clips that raise it most")
