"""The figure of the study `gradient`: hubs follow the gradient of density."""

from __future__ import annotations

from typing import Any

import numpy as np

from earmark.generated.sanity.gradient import Gradient
from earmark.report.figures import style

_WIDTH = 7.6
_NAMES = {"none": "uncorrected", "nicdm": "NICDM", "icdm": "ICDM"}


def gradient(found: Gradient) -> Any:
    """Above, how lists are spread and who is in them; below, sets in the plane under corrections, coloured by lists."""
    with style.look():
        figure = style.new_figure(_WIDTH, 7.6)
        above, below = figure.subfigures(2, 1, height_ratios=(2.6, 4.8))
        spread, *clouds = above.subplots(1, 3, width_ratios=(1.15, 1, 1))
        _draw_spread(spread, found)
        for at, axes in zip((1, 2), clouds, strict=True):
            _draw_cloud(axes, found, at)
        clouds[1].set_ylim(clouds[0].get_ylim())
        _draw_plane(below, found)
    return figure


def _draw_spread(axes: Any, found: Gradient) -> None:
    """The share of points that are in at least so many lists."""
    for place, (name, counts) in enumerate(zip(found.data, found.occurrences, strict=True)):
        ends = np.arange(1, counts.max() + 1)
        share = [100.0 * (counts >= end).mean() for end in ends]
        colour, _ = style.style_of(place)
        axes.plot(ends, share, color=colour, label=name, drawstyle="steps-post", dashes=(4, 2) if place == 2 else ())
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set(xlabel=f"lists of {found.k}", ylabel="% of points in so many or more")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), fontsize=7)
    style.grid(axes)


def _draw_cloud(axes: Any, found: Gradient, at: int) -> None:
    """Lists against the distance from the centre."""
    colour, _ = style.style_of(at)
    axes.plot(found.distance[at], found.occurrences[at], "o", markersize=2, alpha=0.5, color=colour, rasterized=True)
    axes.set_title(found.data[at], fontsize=8.5)
    axes.set_xlim(0.88, 1.12)
    axes.set_yscale("symlog", linthresh=5)
    axes.set_ylim(-0.6, 1.5 * found.occurrences[at].max())
    axes.set_yticks([0, 5, 10, 50, 100], ["0", "5", "10", "50", "100"])
    axes.minorticks_off()
    axes.set_xlabel("distance from the centre\n(1: the mean of all)")
    axes.set_ylabel(f"lists of {found.k} it is in")
    style.grid(axes)


def _draw_plane(figure: Any, found: Gradient) -> None:
    panels = figure.subplots(len(found.plane), len(found.corrections), squeeze=False)
    for row, (name, points) in enumerate(zip(found.plane, found.points, strict=True)):
        for column, correction in enumerate(found.corrections):
            axes, counts = panels[row][column], found.corrected[row, column]
            drawn = axes.scatter(
                *points.T,
                c=counts / found.plane_k,
                s=5,
                cmap=style.SCALE,
                vmin=0,
                vmax=2,
                linewidths=0,
                rasterized=True,
            )
            axes.set_aspect("equal")
            style.bare(axes)
            axes.set_xticks([])
            axes.set_yticks([])
            low, high = np.percentile(counts, (1, 99)) / found.plane_k
            words = _NAMES.get(correction, correction)
            axes.set_title(f"{words}: {low:.1f} to {high:.1f}", fontsize=8)
        panels[row][0].set_ylabel(name)
    bar = figure.colorbar(drawn, ax=panels, shrink=0.6, pad=0.02, ticks=[0, 0.5, 1, 1.5, 2])
    bar.set_label(f"lists of {found.plane_k} a point is in,\nover an even share (titles: middle 98 %)", fontsize=8)
