"""A page about the hubs of one set of vectors: measures, distribution, a hub's neighbourhood, antihubs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from earmark.places import locate
from earmark.report import figures
from earmark.report.figures.hubness import neighbourhood, occurrences
from earmark.report.figures.style import library
from earmark.report.html._results import number_cell
from earmark.report.html._shell import footer, whole_page, write_page
from earmark.report.hubs import HubView, distribution, hub_counts
from earmark.report.metric_text import facts, number
from earmark.scores import Row
from earmark.tables import MISSING
from earmark.tables.html import Child, Html, drawing, folded, join, paragraph, section, table, tag
from earmark.wording import counted

_HUBS = 20
_ANTIHUBS = 200


def write_hubness(view: HubView, path: str | Path, version: str = "") -> None:
    """Write the page as one HTML file."""
    write_page(render_hubness(view, version), locate(path))


def render_hubness(view: HubView, version: str = "") -> str:
    library()
    about = f"{counted(view.n, 'point')} · lists of {view.k} neighbours · Earmark {version}".removesuffix(" · Earmark ")
    header = tag("header", tag("h1", f"Hubs of {view.title}"), paragraph(about, class_="meta"))
    links = [join(tag("a", distance, href=f"#{distance}"), " ") for distance in view.distances]
    menu = tag("nav", links, aria_label="Contents") if len(links) > 1 else None
    parts = [_one_distance(view, distance) for distance in view.distances]
    return whole_page(f"Hubs of {view.title}", version, header, menu, parts, footer(version))


def _one_distance(view: HubView, distance: str) -> Html:
    after = view.after(distance)
    parts: list[Child] = [paragraph(_said(view, distance), class_="lead"), _measures(view, distance)]
    picture = figures.as_svg(occurrences(view, distance), f"occurrences {distance}", "How many lists points are in")
    caption = (
        "Left: the share of points that stand in at least so many lists. Were all lists even, every point would stand"
        f" in {view.k}; a line that runs far to the right has hubs. Right: the share of points that nobody lists."
    )
    heads, *lines = distribution(view, distance)
    parts += [
        drawing(picture, caption, wide=True),
        folded("How many points are in how many lists", table(heads, lines)),
    ]
    if view.vectors is not None:
        picture = figures.as_svg(
            neighbourhood(view, distance), f"hub {distance}", "The neighbourhood of the largest hub"
        )
        caption = (
            "The largest hub (star) and, in blue, the points that list it, on the two first principal components."
            " Hollow points are in no list."
        )
        if after is not None:
            caption += f" Left: as measured. Right: under {after}, which leaves the fewest hubs."
        parts.append(drawing(picture, caption, wide=True))
    body = [[view.name(row), *counts] for row, counts in hub_counts(view, distance, _HUBS).items()]
    caption = "The points in the most lists before correction, and in how many lists each correction leaves them."
    parts += [table(["hub", *view.corrections(distance)], body, caption=caption), _antihubs(view, distance)]
    return section(distance, f"{distance} distance", parts)


def _said(view: HubView, distance: str) -> str:
    before, after = view.before(distance), view.after(distance)
    hub = int(view.hubs(distance, 1)[0])
    counts = view.occurrences(distance, before)
    said = (
        f"{view.name(hub)} stands in {counted(int(counts[hub]), 'list')} where {view.k} would be even, and"
        f" {counted(int((counts == 0).sum()), 'point')} of {view.n} in none."
    )
    if after is None:
        return said
    mended = view.occurrences(distance, after)
    return said + (
        f" Under {after} the same point stands in {counted(int(mended[hub]), 'list')}, and"
        f" {counted(int((mended == 0).sum()), 'point')} in none."
    )


def _measures(view: HubView, distance: str) -> Html:
    rows = [row for row in view.scores if row.distance == distance]
    metrics = list(dict.fromkeys(row.metric for row in rows))
    lowest: dict[str, float] = {}
    lines: dict[str, dict[str, Row]] = {}
    for row in rows:
        lines.setdefault(row.correction, {})[row.metric] = row
        if row.value is not None:
            lowest[row.metric] = min(row.value, lowest.get(row.metric, row.value))
    body = []
    for correction, by_metric in lines.items():
        cells: list[Html | str] = [correction]
        for name in metrics:
            row = by_metric[name]
            if row.value is None:
                cells.append(tag("td", MISSING, class_="n", title=row.reason))
            else:
                cells.append(number_cell(number(row.value, name), row.value, best=row.value == lowest[name]))
        body.append(cells)
    heads = ["correction", *(f"{name}{' (%)' if facts(name).percent else ''} ↓" for name in metrics)]
    missing = sorted({f"{row.correction}: {row.reason}" for row in rows if row.value is None})
    notes = paragraph("; ".join(missing), class_="quiet") if missing else ""
    return tag("div", table(heads, body, caption="Lower is more even; the lowest of a column is bold."), notes)


def _antihubs(view: HubView, distance: str) -> Html | None:
    after = view.after(distance)
    alone = np.flatnonzero(view.occurrences(distance, view.before(distance)) == 0)
    if not len(alone):
        return paragraph("Every point is in somebody's list.", class_="quiet")
    heads, back = ["antihub"], ""
    body = [[view.name(int(row))] for row in alone[:_ANTIHUBS]]
    if after is not None:
        mended = view.occurrences(distance, after)
        heads.append(f"lists under {after}")
        body = [[name, str(int(mended[row]))] for (name,), row in zip(body, alone, strict=False)]
        back = f"; {after} brings {int((mended[alone] > 0).sum())} of them back"
    more = "" if len(alone) <= _ANTIHUBS else f"; the first {_ANTIHUBS} are shown"
    return folded(f"{counted(len(alone), 'point')} in no list{back}{more}", table(heads, body, filterable=True))
