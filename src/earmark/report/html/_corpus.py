"""The part of a report about the sounds: what was measured on, and whether scores follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from earmark.errors import InputError
from earmark.report import figures
from earmark.report.content import ReportData, SubsetFacts
from earmark.report.score_index import protocol_name
from earmark.report.trends import ENOUGH_SUBSETS, find_trends, trend_sentences
from earmark.tables.html import Child, Html, drawing, folded, paragraph, section, table


def corpus(data: ReportData) -> Html:
    """What was measured on, and whether scores follow from it."""
    parts: list[Child] = [_subset_table(data.subsets)] if data.subsets else []
    count = len(data.index.subsets)
    if count < ENOUGH_SUBSETS:
        verb = "is" if count == 1 else "are"
        said = f"Trends over corpus properties take at least {ENOUGH_SUBSETS} subsets; there {verb} {count}."
        parts.append(paragraph(said, class_="quiet"))
    else:
        parts += _trend_figures(data)
    return section("corpus", "The sounds, and what follows from them", parts)


def _trend_figures(data: ReportData) -> list[Html]:
    """The best configurations against what is known of the subsets; what can be told from it is folded away."""
    try:
        found = find_trends(data.ranking.index, data.subsets)
    except InputError:
        return []
    pairs = " / ".join(dict.fromkeys(protocol_name(values) for values in found.values.values()))
    choice, *details = trend_sentences(found)
    caption = f"Scores ({pairs}) against what is known of the subsets. {choice} A line and a star mark what is told."
    picture = figures.as_svg(figures.trends(found), "trends", f"Trends of {' and '.join(found.means)}")
    return [drawing(picture, caption, wide=True), folded("What can be told from it", *map(paragraph, details))]


def _subset_table(subsets: Sequence[SubsetFacts]) -> Html:
    columns: dict[str, list[str]] = {
        "subset": [item.subset or item.suite or "all clips" for item in subsets],
        "what": [" · ".join(filter(None, [item.title, item.domain])) for item in subsets],
        "status": [item.status for item in subsets],
        "clips": [str(item.clips) for item in subsets],
        "classes": [str(item.classes) for item in subsets],
        "clips per class": ["{}–{}".format(*item.per_class) if item.per_class else "" for item in subsets],
        "groups": ["" if item.groups is None else str(item.groups) for item in subsets],
        "seconds per clip": [
            f"{time.mean if isnan(time.median) else time.median:.2f} ({time.shortest:.2f}–{time.longest:.2f})"
            if (time := item.durations)
            else ""
            for item in subsets
        ],
        "minutes": [f"{item.durations.total / 60:.1f}" if item.durations else "" for item in subsets],
    }
    used = {name: cells for name, cells in columns.items() if any(cells)}
    left = sum(name in used for name in ("subset", "what", "status"))
    return table(list(used), zip(*used.values(), strict=True), left=left)
