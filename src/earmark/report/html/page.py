"""The page itself: one HTML file that needs nothing else, on any screen or on paper."""

from __future__ import annotations

import os
from pathlib import Path

from earmark.report import reading
from earmark.report.content import ReportData
from earmark.report.figures.style import library
from earmark.report.html import answer, clips, corrected, layers, method, overlap, predicted, results
from earmark.report.html.shell import footer, whole_page, write_page
from earmark.tables.html import Html, join, paragraph, tag
from earmark.wording import counted


def write_report(data: ReportData, path: str | os.PathLike[str]) -> None:
    """Write the report as one HTML file. Another process sees the old file or the whole new one, never a part."""
    write_page(render(data), Path(path))


def render(data: ReportData) -> str:
    """The report as HTML text: the same data gives the same text."""
    library()
    sections = [
        answer.the_answer(data),
        results.score_tables(data),
        predicted.predictions(data),
        results.lift_over_chance(data),
        corrected.before_and_after(data.ranking.scores),
        layers.over_layers(data.ranking.scores),
        results.agreement(data),
        results.corpus(data),
        clips.closer_look(data),
        overlap.heard_before(data),
        method.what_happened(data),
        method.how(data),
    ]
    return whole_page(data.title, data.version, _header(data), _contents(data), sections, footer(data.version))


def _header(data: ReportData) -> Html:
    scores = data.scores
    count = len(reading.representations(scores))
    subsets = len(reading.subsets(scores))
    clip_count = sum(item.clips for item in data.subsets)
    measured = [
        counted(count, "representation"),
        counted(subsets, "subset"),
        counted(clip_count, "clip") if clip_count else "",
    ]
    made = [data.generated, f"Earmark {data.version}" if data.version else ""]
    line = " · ".join(filter(None, [*measured, *made]))
    return tag("header", tag("h1", data.title), paragraph(line, class_="meta"), _synthetic(data))


def _synthetic(data: ReportData) -> Html | None:
    if not data.synthetic:
        return None
    made = [item.subset or item.suite for item in data.subsets if item.status == "synthetic"]
    some = bool(made) and len(made) < len(data.subsets)
    which = f"{reading.listed(made)} were" if some else "The sounds in this report were"
    return tag(
        "div",
        tag("strong", "SYNTHETIC DATA."),
        f" {which} computed, not recorded. The numbers show how representations bear loudness,"
        " noise, speed and speakers in a "
        "controlled setting; they say nothing about real animals, places or people.",
        class_="synthetic",
        role="note",
    )


def _contents(data: ReportData) -> Html:
    parts = [("answer", "Answer"), ("scores", "Scores"), ("chance", "Above chance?"), ("corpus", "Sounds")]
    parts[3:3] = [("agreement", "Metrics")] if results.correlations_of(data) else []
    parts[3:3] = [("layers", "Layers")] if layers.has_layers(data.ranking.scores) else []
    parts[3:3] = [("corrected", "Corrected")] if corrected.has_corrections(data.ranking.scores) else []
    parts += [("closer", "Closer look")] if data.close_ups else []
    parts += [("overlap", "Heard before?")] if data.overlaps else []
    parts += [("files", "Files"), ("method", "Method")]
    return tag("nav", [join(tag("a", title, href=f"#{name}"), " ") for name, title in parts], aria_label="Contents")
