"""The part of a report about a model's hidden layers: which is best, and what choosing another one costs."""

from __future__ import annotations

import numpy as np

from earmark.report import figures, reading
from earmark.report.figures.layers import Layers, layer_map, layered
from earmark.report.reading import facts, number
from earmark.scores import Scores
from earmark.tables.html import Child, Html, drawing, folded, paragraph, section
from earmark.wording import counted

_DRAWN = 6


def has_layers(scores: Scores) -> bool:
    return bool(layered(scores))


def over_layers(scores: Scores) -> Html | None:
    """A map and a sentence for each model that was measured at several layers; nothing where none was."""
    found = layered(scores)
    if not found:
        return None
    metric = reading.headline(scores)
    parts: list[Child] = [
        paragraph(
            "All layers come from one pass through the model. Layer 0 is what enters its first block, the last layer"
            " is what it gives unasked. The best layer was picked on the clips it is scored on, which flatters it."
        )
    ]
    for place, one in enumerate(found):
        parts.append(_of_one(one, metric, place) if place < _DRAWN else paragraph(_said(one, metric)))
    return section("layers", "Layers", parts)


def _of_one(found: Layers, metric: str, place: int) -> Html:
    picture = figures.as_svg(layer_map(found), f"layers {place}", f"{metric} of {found.label} by layer and subset")
    what = f"{metric}{_across(found)} behind the best layer of each subset (framed)"
    made = drawing(picture, f"{found.label}: {what}. {_said(found, metric)}")
    return made if place == 0 else folded(found.label, made)


def _across(found: Layers) -> str:
    across = any(row.protocol == reading.ACROSS for rows in found.rows.values() for row in rows.values())
    return " across groups" if across else ""


def _said(found: Layers, metric: str) -> str:
    """Which layer is best over all subsets, and what the last one and the worst one cost."""
    behind = np.nanmean(found.behind(), axis=1)
    behind -= behind.min()
    best, last, worst = int(np.argmin(behind)), len(behind) - 1, int(np.argmax(behind))
    unit = " points" if facts(metric).percent else ""
    over = counted(len(found.rows), "subset")
    lead = f"Over {over} layer {found.layers[best]} is the best choice"
    if best == last:
        lead = f"Over {over} the last layer ({found.layers[last]}) is the best choice"
    elif worst != last:
        lead += f", the last ({found.layers[last]}) lies {number(float(behind[last]), metric)}{unit} behind it"
    name = f"the last ({found.layers[last]}) the worst" if worst == last else f"{found.layers[worst]} the worst"
    return f"{lead}, {name}, {number(float(behind[worst]), metric)}{unit} behind."
