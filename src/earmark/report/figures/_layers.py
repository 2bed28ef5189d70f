"""Figures of a model's layers: how far behind the best, their ranks, and their differences to the last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earmark.report.figures import style
from earmark.report.layers import Layers, summaries
from earmark.report.metric_text import facts, number

_BEHIND = "OrRd"
_NUMBERED = 700  # cells; more are coloured and not written
_TIED = 5e-4  # layers nearer than this to the best share its frame


def layer_map(found: Layers) -> Any:
    """A cell for each layer and subset: white is the best layer of the subset, the darker the further behind it."""
    return layer_maps({found.metric: found} if found.rows else {})


def layer_maps(found: Mapping[str, Layers], *, ranks: bool = False) -> Any:
    """The same for several metrics side by side; with `ranks`, the layers' ranks in each subset, 1 is the best."""
    if not found:
        raise style.nothing("a map of layers")
    wide = max(len(one.rows) for one in found.values())
    tall = max(len(one.layers) for one in found.values())
    cells = {metric: one.ranks() if ranks else one.behind() for metric, one in found.items()}
    alike = ranks or _same_unit(found)
    worst = max(float(np.nanmax(own)) for own in cells.values())
    with style.look():
        each = max(0.9 + 0.38 * wide, 1.9) if len(found) > 1 else 1.4 + 0.62 * wide
        width = min(each * len(found) + 0.5, 15.0)
        figure = style.new_figure(width, min(max(1.2 + 0.24 * tall, 2.3), 12.0))
        panels = figure.subplots(1, len(found), squeeze=False)[0]
        for axes, (metric, one) in zip(panels, found.items(), strict=True):
            top = worst if alike else float(np.nanmax(cells[metric]))
            image = _draw_cells(axes, one, cells[metric], (1.0 if ranks else 0.0, top), width / len(found))
            if len(found) > 1:
                axes.set_xlabel(metric, loc="left", fontsize=9.5)
            axes.set_yticks(range(len(one.layers)), [str(layer) for layer in one.layers])
            if not alike or axes is panels[-1]:
                unit = " (points)" if facts(metric).percent else ""
                what = "rank in its subset" if ranks else f"behind the best layer{unit}"
                form = _rank if ranks else (lambda value, _, metric=metric: number(value, metric))
                style.colour_bar(
                    figure, image, list(panels) if alike else axes,
                    what if alike and len(found) > 1 else f"{metric}: {what}", form,
                    fraction=0.05 if len(found) == 1 else 0.02, pad=0.03 if len(found) == 1 else 0.01,
                )  # fmt: skip
        panels[0].set_ylabel("layer")
    return figure


def _rank(value: float, _: Any) -> str:
    return f"{value:g}"


def _draw_cells(axes: Any, found: Layers, cells: NDArray[np.float64], limits: tuple[float, float], room: float) -> Any:
    ranks, columns = limits[0] == 1.0, [place.label for place in found.rows]
    low, span = limits[0], max(limits[1] - limits[0], 1e-9)
    image = axes.imshow(cells, cmap=_BEHIND, vmin=low, vmax=low + span, aspect="auto")
    scale = style.library().colormaps[_BEHIND]
    if cells.size <= _NUMBERED and room / max(len(columns), 1) > 0.3:
        for (place, column), value in np.ndenumerate(cells):
            if np.isfinite(value):
                text = f"{value:g}" if ranks else number(value, found.metric)
                style.write_cell(axes, column, place, text, scale((value - low) / span), fontsize=7)
    for place, column in np.argwhere(found.behind() < _TIED):
        style.frame_cell(axes, int(column), int(place), 0.94, 0.9, 1.6)
    tight = room / max(len(columns), 1) < 0.07 * max(map(len, columns)) + 0.1
    style.name_columns(axes, columns, longest=0 if tight else 6, rotation=90 if tight else 35)
    style.bare(axes)
    return image


def layer_curves(found: Mapping[str, Layers]) -> Any:
    """Above, the mean rank of each layer; below, its difference to the last layer; bars are 95 % intervals."""
    lines = {metric: summaries(one) for metric, one in found.items()}
    lines = {metric: own for metric, own in lines.items() if own}
    if not lines:
        raise style.nothing("ranks of layers: no subset has every layer")
    with style.look():
        figure = style.new_figure(5.8, 4.6 if _same_unit(lines) else 2.4 + 2.2 * len(lines))
        below = [list(lines)] if _same_unit(lines) else [[metric] for metric in lines]
        upper, *lower = figure.subplots(1 + len(below), 1, sharex=True, squeeze=False)[:, 0]
        for place, (metric, own) in enumerate(lines.items()):
            ends = [(item.rank, item.rank_low, item.rank_high) for item in own]
            _curve(upper, [item.layer for item in own], ends, place, len(lines), style.name_of(metric))
        upper.invert_yaxis()
        upper.set_ylabel("mean rank (1 is best)")
        style.grid(upper)
        for axes, metrics in zip(lower, below, strict=True):
            for metric in metrics:
                own = lines[metric]
                ends = [(item.difference, item.low, item.high) for item in own]
                _curve(axes, [item.layer for item in own], ends, list(lines).index(metric), len(lines))
            axes.axhline(0, color=style.MUTED, linewidth=1)
            percent = facts(metrics[0]).percent
            name = "difference" if len(metrics) > 1 or len(lines) == 1 else metrics[0]
            axes.set_ylabel(f"{name} to the last layer" + (" (points)" if percent else ""))
            axes.yaxis.set_major_formatter(
                lambda value, _, metric=metrics[0]: number(value, metric, sign=abs(value) > 1e-9).removesuffix(".0")
            )
            style.grid(axes)
        lower[-1].set_xlabel("layer")
        lower[-1].xaxis.get_major_locator().set_params(integer=True)
        if len(lines) > 1:
            figure.legend(*upper.get_legend_handles_labels(), loc="outside upper right", ncols=len(lines))
    return figure


def _same_unit(lines: Mapping[str, Any]) -> bool:
    """Whether differences of the metrics can be drawn on one axis."""
    return len(lines) == 1 or all(facts(metric).percent for metric in lines)


def _curve(
    axes: Any, at: list[int], ends: list[tuple[float, float | None, float | None]], place: int, count: int,
    label: str = "",
) -> None:  # fmt: skip
    colour, marker = style.style_of(place)
    shift = (place - (count - 1) / 2) * 0.12 * max(1.0, len(at) / 16)
    spots = [layer + shift for layer in at]
    for x, (_, low, high) in zip(spots, ends, strict=True):
        if low is not None and high is not None:
            axes.plot([x, x], [low, high], color=colour, linewidth=1.0, alpha=0.7)
    axes.plot(spots, [value for value, *_ in ends], color=colour, marker=marker, markersize=3.6, label=label or None)
