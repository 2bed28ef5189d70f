"""The numbers of a study as panels of rows and columns, and those as text, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from typing import Any, NamedTuple

import numpy as np

from earmark.generated.sanity.data import Floats
from earmark.generated.sanity.studies import Components, Convergence, Corrections, Crossover, Dimension, Hypersphere

Study = Hypersphere | Components | Dimension | Convergence | Crossover | Corrections


class Panel(NamedTuple):
    """Values [rows, columns] with their names; NaN is no value."""

    title: str
    rows: tuple[str, ...]
    axis: str
    columns: tuple[str, ...]
    values: Floats
    digits: int = 3


def panels(found: Study) -> list[Panel]:
    if isinstance(found, Hypersphere):
        d = _texts(found.dimensions)
        return [
            Panel("without GICDM", found.metrics, "d", d, found.plain),
            Panel("with GICDM", found.metrics, "d", d, found.corrected),
        ]
    if isinstance(found, Components):
        return [Panel("precision", found.stages, "d", _texts(found.dimensions), found.precision)]
    if isinstance(found, Dimension):
        d = _texts(found.dimensions)
        return [
            Panel("hub ratio", found.data, "d", d, found.hub_ratio, 2),
            Panel("antihub rate", found.data, "d", d, found.antihub_rate),
        ]
    if isinstance(found, Convergence):
        steps = tuple(str(step) for step in range(1, found.low.shape[1] + 1))
        return [
            Panel("lowest mean distance over the mean of all, less 1", found.cases, "iteration", steps, found.low, 4),
            Panel("highest", found.cases, "iteration", steps, found.high, 4),
        ]
    if isinstance(found, Crossover):
        k = tuple(f"k = {k}" for k in found.k)
        return [Panel("crossover dimension", k, "n", _texts(found.n), found.dimension, 1)]
    if isinstance(found, Corrections):
        return [_corrections(found)]
    raise TypeError(type(found).__name__)


def _corrections(found: Corrections) -> Panel:
    columns = ("published hub ratio", "published antihub rate", "hub ratio", "antihub rate", "best K")
    values = np.column_stack(
        [found.published_hub_ratio, found.published_antihub_rate, found.hub_ratio, found.antihub_rate,
         np.where(found.k > 0, found.k, np.nan)]
    )  # fmt: skip
    return Panel("published mean over 17 embeddings; a Gaussian mixture", found.corrections, "", columns, values, 2)


def to_text(found: Study) -> str:
    return "\n".join(_text(panel) for panel in panels(found))


def to_csv(found: Study) -> str:
    """A line for each value: panel, row, column, value."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(["panel", "row", "column", "value"])
    for panel, row, column, value in _long(found):
        writer.writerow([panel, row, column, "" if value is None else repr(value)])
    return lines.getvalue()


def to_json(found: Study) -> str:
    names = ("panel", "row", "column", "value")
    return json.dumps([dict(zip(names, line, strict=True)) for line in _long(found)], indent=1) + "\n"


def _long(found: Study) -> list[tuple[str, str, str, float | None]]:
    return [
        (panel.title, row, column, None if np.isnan(value) else float(value))
        for panel in panels(found)
        for row, line in zip(panel.rows, panel.values, strict=True)
        for column, value in zip(panel.columns, line, strict=True)
    ]


def _text(panel: Panel) -> str:
    shown = [["–" if np.isnan(value) else f"{value:.{panel.digits}f}" for value in line] for line in panel.values]
    first = max(len(name) for name in (*panel.rows, panel.axis)) + 2
    widths = [max(len(name), *(len(line[at]) for line in shown)) + 2 for at, name in enumerate(panel.columns)]

    def line(name: str, cells: Any) -> str:
        return f"  {name:{first}}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))

    body = [line(name, cells) for name, cells in zip(panel.rows, shown, strict=True)]
    return "\n".join([panel.title, line(panel.axis, panel.columns), *body]) + "\n"


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(str(value) for value in values)
