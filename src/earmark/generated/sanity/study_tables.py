"""The numbers of a study as panels of rows and columns, and those as text, CSV and JSON."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np

from earmark.generated.sanity._data import Floats
from earmark.generated.sanity.gradient import BANDS, Gradient, shares
from earmark.generated.sanity.studies import Components, Convergence, Corrections, Crossover, Dimension, Hypersphere
from earmark.tables import aligned, csv_text

Study = Hypersphere | Components | Dimension | Convergence | Crossover | Corrections | Gradient


class Panel(NamedTuple):
    """Values [rows, columns] with their names; NaN is no value."""

    title: str
    rows: tuple[str, ...]
    axis: str
    columns: tuple[str, ...]
    values: Floats
    digits: int = 3


_PANELS: dict[type, tuple[tuple[str, str, str, str, str, int], ...]] = {
    Hypersphere: (
        ("without GICDM", "metrics", "d", "dimensions", "plain", 3),
        ("with GICDM", "metrics", "d", "dimensions", "corrected", 3),
    ),
    Components: (("precision", "stages", "d", "dimensions", "precision", 3),),
    Dimension: (
        ("hub ratio", "data", "d", "dimensions", "hub_ratio", 2),
        ("antihub rate", "data", "d", "dimensions", "antihub_rate", 3),
    ),
}
"""Title, rows, axis, columns, values and digits of each panel of the studies that hold them as they are shown."""


def panels(study: Study) -> list[Panel]:
    """The numbers of a study as they are shown."""
    if isinstance(study, Convergence):
        steps = tuple(str(step) for step in range(1, study.low.shape[1] + 1))
        title = "lowest mean distance over the mean of all, less 1"
        return [
            Panel(title, study.cases, "iteration", steps, study.low, 4),
            Panel("highest", study.cases, "iteration", steps, study.high, 4),
        ]
    if isinstance(study, Crossover):
        rows = tuple(f"k = {k}" for k in study.k)
        return [Panel("crossover dimension", rows, "n", tuple(map(str, study.n)), study.dimension, 1)]
    if isinstance(study, Corrections):
        columns = ("published hub ratio", "published antihub rate", "hub ratio", "antihub rate", "best K")
        best = np.where(study.k > 0, study.k, np.nan)
        values = np.column_stack(
            [study.published_hub_ratio, study.published_antihub_rate, study.hub_ratio, study.antihub_rate, best]
        )
        title = "published mean over 17 embeddings; a Gaussian mixture"
        return [Panel(title, study.corrections, "", columns, values, 2)]
    if isinstance(study, Gradient):
        bands = [f"over {low:g}" if high == np.inf else f"to {high:g}" for low, high in BANDS]
        rows = (*study.data, *(f"{plane} in the plane, {name}" for plane in study.plane for name in study.corrections))
        plane = study.corrected.reshape(-1, study.corrected.shape[-1])
        shown = [shares(line, study.k) for line in study.occurrences]
        shown += [shares(line, study.plane_k) for line in plane]
        title = f"% of points by the lists of {study.k} (plane: {study.plane_k}) they are in, over an even share"
        return [Panel(title, rows, "", ("0", *bands[1:], "most"), np.array(shown), 1)]
    return [
        Panel(
            title, getattr(study, rows), axis, tuple(map(str, getattr(study, columns))), getattr(study, values), digits
        )
        for title, rows, axis, columns, values, digits in _PANELS[type(study)]
    ]


def to_text(study: Study) -> str:
    return "\n".join(_text(panel) for panel in panels(study))


def _text(panel: Panel) -> str:
    cells = [["–" if np.isnan(value) else f"{value:.{panel.digits}f}" for value in line] for line in panel.values]
    lines = [[panel.axis, *panel.columns], *([name, *line] for name, line in zip(panel.rows, cells, strict=True))]
    first = max(len(line[0]) for line in lines) + 2
    return "\n".join([panel.title, *aligned(lines, left=1, indent="  ", least=[first])]) + "\n"


_NAMES = ("panel", "row", "column", "value")


def to_csv(study: Study) -> str:
    """A line for each value: panel, row, column, value."""
    return csv_text(_NAMES, _long(study))


def to_json(study: Study) -> str:
    return json.dumps([dict(zip(_NAMES, line, strict=True)) for line in _long(study)], indent=1) + "\n"


def _long(study: Study) -> list[tuple[str, str, str, float | None]]:
    return [
        (panel.title, row, column, None if np.isnan(value) else float(value))
        for panel in panels(study)
        for row, line in zip(panel.rows, panel.values, strict=True)
        for column, value in zip(panel.columns, line, strict=True)
    ]
