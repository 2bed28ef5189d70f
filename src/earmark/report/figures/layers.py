"""The layers of a model side by side: how far each lies behind the best one, subset by subset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.report import reading
from earmark.report.figures.style import COLOURS, ink_on, library, look, name_of, new_figure, nothing
from earmark.report.reading import Subset, facts, number
from earmark.scores import Row, Scores

_BEHIND = "OrRd"
_NAMED = re.compile(r"(?P<model>.+)@(?P<layer>\d+)(?P<variant>( .*)?)")
_NUMBERED = 700  # cells; more are coloured and not written
_TIED = 5e-4  # layers nearer than this to the best share its frame


class Layers(NamedTuple):
    """One representation of a model over its layers: rows by subset and layer."""

    label: str
    layers: tuple[int, ...]
    rows: Mapping[Subset, Mapping[int, Row]]

    def behind(self) -> NDArray[np.float64]:
        """How far each layer [layers, subsets] lies behind the best of the subset; NaN where it was not measured."""
        good = np.array(
            [[_goodness(rows.get(layer)) for rows in self.rows.values()] for layer in self.layers], np.float64
        )
        return np.asarray(np.nanmax(good, axis=0) - good)


def layered(scores: Scores, metric: str | None = None, protocol: str | None = None) -> list[Layers]:
    """What was measured at two layers or more, in the order of the table; across groups where that was measured."""
    found: dict[str, dict[Subset, dict[int, Row]]] = {}
    for place, rows in reading.values(scores, metric or reading.headline(scores), protocol).items():
        for representation, row in rows.items():
            named = _NAMED.fullmatch(representation.system)
            if named is not None:
                label = representation._replace(system=named["model"] + named["variant"]).label
                found.setdefault(label, {}).setdefault(place, {})[int(named["layer"])] = row
    made = [
        Layers(label, tuple(sorted({layer for rows in places.values() for layer in rows})), places)
        for label, places in found.items()
    ]
    return [one for one in made if len(one.layers) > 1]


def layer_map(found: Layers) -> Any:
    """A cell for each layer and subset: white is the best layer of the subset, the darker the further behind it."""
    if not found.rows:
        raise nothing("a map of layers")
    metric = next(iter(next(iter(found.rows.values())).values())).metric
    behind = found.behind()
    columns = [place.label for place in found.rows]
    with look():
        figure = new_figure(min(1.9 + 0.62 * len(columns), 14.0), min(1.2 + 0.24 * len(found.layers), 12.0))
        axes = figure.add_subplot()
        worst = max(float(np.nanmax(behind)), 1e-9)
        image = axes.imshow(behind, cmap=_BEHIND, vmin=0.0, vmax=worst, aspect="auto")
        if behind.size <= _NUMBERED:
            _write_cells(axes, behind, worst, metric)
        for place, column in np.argwhere(behind < _TIED):
            _frame(axes, int(place), int(column))
        axes.set_xticks(range(len(columns)), [name_of(name, 16) for name in columns])
        axes.xaxis.tick_top()
        if max(map(len, columns)) > 6:
            axes.tick_params(axis="x", rotation=35)
            for label in axes.get_xticklabels():
                label.set_ha("left")
        axes.set_yticks(range(len(found.layers)), [str(layer) for layer in found.layers])
        axes.set_ylabel("layer")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.03)
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0)
        bar.ax.yaxis.set_major_formatter(lambda value, _: number(value, metric))
        bar.set_label(f"{metric}: behind the best layer{' (points)' if facts(metric).percent else ''}")
    return figure


def _write_cells(axes: Any, behind: NDArray[np.float64], worst: float, metric: str) -> None:
    scale = library().colormaps[_BEHIND]
    for (place, column), value in np.ndenumerate(behind):
        if np.isfinite(value):
            ink = ink_on(*scale(value / worst)[:3])
            axes.text(column, place, number(value, metric), ha="center", va="center", color=ink, fontsize=7)


def _frame(axes: Any, place: int, column: int) -> None:
    patches = library("matplotlib.patches")
    box = (column - 0.47, place - 0.45), 0.94, 0.9
    axes.add_patch(patches.Rectangle(*box, fill=False, edgecolor=COLOURS[1], linewidth=1.6))


def _goodness(row: Row | None) -> float:
    return float("nan") if row is None else reading.goodness(row)
