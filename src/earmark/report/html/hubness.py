"""A page about the hubs of one set of vectors: measures, distribution, a hub's neighbourhood, antihubs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from earmark.report import figures, reading
from earmark.report.figures.hubness import neighbourhood, occurrences
from earmark.report.figures.style import library
from earmark.report.html.shell import footer, whole_page, write_page
from earmark.report.hubs import HubView, bins
from earmark.report.reading import facts, number
from earmark.scores import Row
from earmark.tables.html import Child, Html, drawing, folded, paragraph, section, table, tag
from earmark.wording import counted

_HUBS = 20
_ANTIHUBS = 200


def write_hubness(view: HubView, path: str | Path, version: str = "") -> None:
    """Write the page as one HTML file."""
    write_page(render_hubness(view, version), Path(path))


def render_hubness(view: HubView, version: str = "") -> str:
    library()
    distances = view.distances
    about = f"{counted(view.n, 'point')} · lists of {view.k} neighbours · Earmark {version}".removesuffix(" · Earmark ")
    header = tag("header", tag("h1", f"Hubs of {view.title}"), paragraph(about, class_="meta"))
    links = [tag("a", distance, href=f"#{distance}") for distance in distances]
    menu = (
        tag("nav", [item for link in links for item in (link, " ")], aria_label="Contents") if len(links) > 1 else None
    )
    return whole_page(
        f"Hubs of {view.title}", version, header, menu, [_one_distance(view, name) for name in distances],
        footer(version),
    )  # fmt: skip


def _one_distance(view: HubView, distance: str) -> Html:
    before, after = view.before(distance), view.after(distance)
    parts: list[Child] = [paragraph(_said(view, distance), class_="lead"), _measures(view, distance)]
    picture = figures.as_svg(occurrences(view, distance), f"occurrences {distance}", "How many lists points are in")
    caption = (
        "Left: the share of points that stand in at least so many lists. Were all lists even, every point would stand"
        f" in {view.k}; a line that runs far to the right has hubs. Right: the share of points that nobody lists."
    )
    parts += [drawing(picture, caption, wide=True), _distribution(view, distance)]
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
    parts += [_hubs(view, distance), _antihubs(view, distance, before, after)]
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
    names = reading.metrics(rows)
    by_line: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_line.setdefault(row.correction, {})[row.metric] = row
    measured = [row for row in rows if row.value is not None]
    best = {name: min((row.value or 0.0 for row in measured if row.metric == name), default=None) for name in names}
    body = []
    for correction, found in by_line.items():
        line: list[Html | str] = [correction]
        for name in names:
            row = found[name]
            if row.value is None:
                line.append(tag("td", "–", class_="n", title=row.reason))
                continue
            shown = number(row.value, name)
            text = tag("span", shown, class_="best") if row.value == best[name] else shown
            line.append(tag("td", text, class_="n", data_value=repr(row.value)))
        body.append(line)
    heads: list[Child] = ["correction", *(f"{name}{' (%)' if facts(name).percent else ''} ↓" for name in names)]
    missing = sorted({f"{row.correction}: {row.reason}" for row in rows if row.value is None})
    notes = paragraph("; ".join(missing), class_="quiet") if missing else ""
    return tag("div", table(heads, body, caption="Lower is more even; the lowest of a column is bold."), notes)


def _distribution(view: HubView, distance: str) -> Html:
    ranges = bins(view.k)
    heads: list[Child] = ["lists", *(title for title, _, _ in ranges), "most"]
    body = []
    for correction in view.corrections(distance):
        counts = view.occurrences(distance, correction)
        cells = [str(int(((counts >= low) & (counts <= high)).sum())) for _, low, high in ranges]
        body.append([correction, *cells, str(int(counts.max()))])
    return folded("How many points are in how many lists", table(heads, body))


def _hubs(view: HubView, distance: str) -> Html:
    known = view.corrections(distance)
    counts = {name: view.occurrences(distance, name) for name in known}
    body = [
        [view.name(int(row)), *(str(int(counts[name][row])) for name in known)] for row in view.hubs(distance, _HUBS)
    ]
    caption = "The points in the most lists before correction, and in how many lists each correction leaves them."
    return table(["hub", *known], body, caption=caption)


def _antihubs(view: HubView, distance: str, before: str, after: str | None) -> Html | None:
    counts = view.occurrences(distance, before)
    alone = np.flatnonzero(counts == 0)
    if not len(alone):
        return paragraph("Every point is in somebody's list.", class_="quiet")
    mended = None if after is None else view.occurrences(distance, after)
    heads: list[Child] = ["antihub", *([] if after is None else [f"lists under {after}"])]
    body = [[view.name(int(row)), *([] if mended is None else [str(int(mended[row]))])] for row in alone[:_ANTIHUBS]]
    found = "" if mended is None else f"; {after} brings {int((mended[alone] > 0).sum())} of them back"
    more = "" if len(alone) <= _ANTIHUBS else f"; the first {_ANTIHUBS} are shown"
    title = f"{counted(len(alone), 'point')} in no list{found}{more}"
    return folded(title, table(heads, body, filterable=True))
