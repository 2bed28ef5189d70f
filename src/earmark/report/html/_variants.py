"""The parts of a report about variants of one model: distances corrected for hubs, hidden layers, pooling and PCA."""

from __future__ import annotations

import numpy as np

from earmark.errors import InputError
from earmark.report import figures
from earmark.report.effects import effect_sentences, find_effects
from earmark.report.figures._effects import MOST_LINES, effects, lines_of
from earmark.report.figures._layers import layer_curves, layer_map
from earmark.report.figures.hubness import Cells, before_after, before_after_lines
from earmark.report.html._results import number_cell
from earmark.report.layers import Layers, layer_sentences, layered
from earmark.report.metric_text import facts, goodness, heading, number, points
from earmark.report.score_index import ACROSS, ALL, ScoreIndex
from earmark.scores import Row
from earmark.tables import MISSING
from earmark.tables.html import Child, Html, drawing, folded, join, paragraph, section, table, tag
from earmark.wording import counted, listed

_DRAWN_LINES = 36
_DRAWN_MODELS = 6
_OPEN = 12
_CAPTION = "Without correction, then with each; bold is better than without, and under a value stands the difference."


def before_and_after(index: ScoreIndex) -> Html | None:
    """The figure and the table; nothing where no representation was measured with and without a correction."""
    main = index.main_protocol
    lines, corrections, names = before_after_lines(index, protocol=main)
    if not lines:
        return None
    others = [name for name in corrections if name != "none"]
    said = (
        "A hub is a clip in many neighbour lists. Corrections rescale distances so that lists come out more even;"
        " labels play no part in them. Fewer hubs do not have to mean better neighbours:"
        f" {names[0]} says whether they do."
    )
    caption = (
        f"Grey: no correction; in colour: {listed(others)}. hub_ratio is how much more often than the average"
        " the busiest hundredth of clips is listed, antihub_rate the share of clips in no list."
    )
    if len(lines) > _DRAWN_LINES:
        caption += f" The first {_DRAWN_LINES} of {len(lines)} are drawn; the table has all."
    if main == ACROSS:
        caption += " Neighbours come from other groups."
    figure = before_after(index, protocol=main)
    picture = figures.as_svg(figure, "before and after", "Scores before and after correction")
    made = [_correction_table(lines, others, names)]
    if len(lines) > _OPEN:
        made = [folded(f"All {len(lines)} representations before and after", *made)]
    over_all, _, over_all_names = before_after_lines(index, protocol=ALL) if main == ACROSS else ({}, [], [])
    if over_all:
        made.append(folded("The same, over all pairs", _correction_table(over_all, others, over_all_names)))
    return section(
        "corrected", "Before and after correction", paragraph(said), drawing(picture, caption, wide=True), made
    )


def _correction_table(lines: dict[str, Cells], others: list[str], names: list[str]) -> Html:
    heads = ["representation", *(head for name in names for head in (heading(name), *others))]
    body = []
    for label, cells in lines.items():
        line: list[Html | str] = [label]
        for name in names:
            rows = cells.get(name, {})
            line.append(_changed_cell(rows.get("none"), None))
            line += [_changed_cell(rows.get(other), rows.get("none")) for other in others]
        body.append(line)
    return table(heads, body, caption=_CAPTION)


def _changed_cell(row: Row | None, before: Row | None) -> Html | str:
    if row is None or row.value is None:
        return MISSING
    change, better = None, False
    if before is not None and before.value is not None:
        change = tag("small", points(row.value - before.value, row.metric))
        better = goodness(row) > goodness(before)
    return number_cell(number(row.value, row.metric), row.value, change, best=better)


# --- layers ---------------------------------------------------------------------------------------------------------


def over_layers(index: ScoreIndex) -> Html | None:
    """A map and a sentence for each model that was measured at several layers; nothing where none was."""
    models = layered(index)
    if not models:
        return None
    metric = index.headline
    parts: list[Child] = [
        paragraph(
            "All layers come from one pass through the model. Layer 0 is what enters its first block, the last layer"
            " is what it gives unasked. The best layer was picked on the clips it is scored on, which flatters it."
        )
    ]
    for place, layers in enumerate(models):
        said = _about_layers(layers, metric)
        if place >= _DRAWN_MODELS:
            parts.append(paragraph(said))
            continue
        name = f"{metric} of {layers.label} by layer and subset"
        across = any(row.protocol == ACROSS for rows in layers.rows.values() for row in rows.values())
        what = f"{metric}{' across groups' * across} behind the best layer of each subset (framed)"
        made = drawing(figures.as_svg(layer_map(layers), f"layers {place}", name), f"{layers.label}: {what}. {said}")
        parts.append(folded(layers.label, made, _layer_curves(layers)) if place else join(made, _layer_curves(layers)))
    return section("layers", "Layers", parts)


def _layer_curves(layers: Layers) -> Html | None:
    """Mean ranks and differences to the last layer; nothing where one subset, or two layers, say it all."""
    found = {layers.metric: layers}
    if len(layers.complete) < 2 or len(layers.layers) < 3:
        return None
    picture = figures.as_svg(layer_curves(found), f"layer curves {layers.label}", f"Ranks of layers of {layers.label}")
    return drawing(picture, f"{layers.label}: mean ranks. {' '.join(layer_sentences(found))}")


def _about_layers(found: Layers, metric: str) -> str:
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


# --- pooling, PCA, re-ranking ---------------------------------------------------------------------------------------

_CHOICES = {
    "pooling": "Does the pooling matter?",
    "pca": "Does PCA matter?",
    "dtw": "Does the order in time matter?",
}


def choices(index: ScoreIndex) -> Html | None:
    """What the pooling, the PCA and re-ranking do, all else equal; nothing where one subset cannot tell."""
    parts: list[Child] = []
    for name, question in _CHOICES.items():
        try:
            found = find_effects(index, name)
        except InputError:
            continue
        if max(len(item.by_subset) for item in found.effects) < 2:
            continue
        said = " ".join(effect_sentences(found))
        if lines_of(found) > MOST_LINES:
            said += f" The first {MOST_LINES} lines are drawn."
        picture = figures.as_svg(effects(found), f"effects {name}", question)
        parts += [tag("h3", question), drawing(picture, said, wide=True)]
    return section("choices", "What choices cost", parts) if parts else None
