"""The layers of a model side by side: how far each lies behind the best one, subset by subset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.report.figures import style
from earmark.report.metric_text import facts, goodness, number
from earmark.report.score_index import ScoreIndex, Subset, as_index
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
        rows = self.rows.values()
        good = [[goodness(own[layer]) if layer in own else np.nan for own in rows] for layer in self.layers]
        return np.asarray(np.nanmax(good, axis=0) - np.array(good, np.float64))


def layered(scores: Scores | ScoreIndex, metric: str | None = None) -> list[Layers]:
    """What was measured at two layers or more, in the order of the table; across groups where that was measured."""
    index = as_index(scores)
    found: dict[str, dict[Subset, dict[int, Row]]] = {}
    for place, rows in index.values(metric or index.headline).items():
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
        raise style.nothing("a map of layers")
    metric = next(iter(next(iter(found.rows.values())).values())).metric
    behind = found.behind()
    columns = [place.label for place in found.rows]
    with style.look():
        figure = style.new_figure(min(1.9 + 0.62 * len(columns), 14.0), min(1.2 + 0.24 * len(found.layers), 12.0))
        axes = figure.add_subplot()
        worst = max(float(np.nanmax(behind)), 1e-9)
        image = axes.imshow(behind, cmap=_BEHIND, vmin=0.0, vmax=worst, aspect="auto")
        if behind.size <= _NUMBERED:
            scale = style.library().colormaps[_BEHIND]
            for (place, column), value in np.ndenumerate(behind):
                if np.isfinite(value):
                    style.write_cell(axes, column, place, number(value, metric), scale(value / worst), fontsize=7)
        for place, column in np.argwhere(behind < _TIED):
            style.frame_cell(axes, int(column), int(place), 0.94, 0.9, 1.6)
        style.name_columns(axes, columns, longest=6, rotation=35)
        axes.set_yticks(range(len(found.layers)), [str(layer) for layer in found.layers])
        axes.set_ylabel("layer")
        style.bare(axes)
        unit = " (points)" if facts(metric).percent else ""
        style.colour_bar(
            figure, image, axes, f"{metric}: behind the best layer{unit}", lambda value, _: number(value, metric),
            fraction=0.05, pad=0.03,
        )  # fmt: skip
    return figure
