"""The page itself: one HTML file that needs nothing else, on any screen or on paper."""

from __future__ import annotations

import os

from earmark.errors import InputError
from earmark.places import locate
from earmark.report.content import ReportData
from earmark.report.correlations import metric_correlations
from earmark.report.figures.style import library
from earmark.report.html import _answer as answer
from earmark.report.html import _clips as clips
from earmark.report.html import _corpus as corpus
from earmark.report.html import _method as method
from earmark.report.html import _pairs as pairs
from earmark.report.html import _parts as groups
from earmark.report.html import _probes as probes
from earmark.report.html import _results as results
from earmark.report.html import _variants as variants
from earmark.report.html._shell import footer, whole_page, write_page
from earmark.tables.html import Html, join, paragraph, tag
from earmark.wording import counted, listed


def write_report(data: ReportData, path: str | os.PathLike[str]) -> None:
    """Write the report as one HTML file. Another process sees the old file or the whole new one, never a part."""
    write_page(render(data), locate(path))


def render(data: ReportData) -> str:
    """The report as HTML text: the same data gives the same text."""
    library()
    try:
        correlations = metric_correlations(data.index)
    except InputError:
        correlations = None
    index = data.ranking.index
    parts = [
        ("answer", "Answer", answer.the_answer(data)),
        ("scores", "Scores", results.score_tables(data)),
        ("pairs", "All pairs", pairs.all_pairs(data)),
        ("predicted", "", results.predictions(data)),
        ("chance", "Above chance?", results.lift_over_chance(data)),
        ("corrected", "Corrected", variants.before_and_after(index)),
        ("probes", "Probes", probes.validation(data)),
        ("layers", "Layers", variants.over_layers(index)),
        ("choices", "Choices", variants.choices(index)),
        ("agreement", "Metrics", results.agreement(correlations)),
        ("corpus", "Sounds", corpus.corpus(data)),
        ("groups", "Groups", groups.groups_and_classes(data)),
        ("closer", "Closer look", clips.closer_look(data)),
        ("overlap", "Heard before?", method.heard_before(data)),
        ("files", "Files", method.what_happened(data)),
        ("method", "Method", method.how(data)),
    ]
    links = [join(tag("a", title, href=f"#{name}"), " ") for name, title, part in parts if title and part]
    contents = tag("nav", links, aria_label="Contents")
    return whole_page(
        data.title, data.version, _header(data), contents, [part for *_, part in parts], footer(data.version)
    )


def _header(data: ReportData) -> Html:
    clip_count = sum(item.clips for item in data.subsets)
    line = [
        counted(len(data.index.representations), "representation"),
        counted(len(data.index.subsets), "subset"),
        counted(clip_count, "clip") if clip_count else "",
        data.generated,
        f"Earmark {data.version}" if data.version else "",
    ]
    about = paragraph(" · ".join(filter(None, line)), class_="meta")
    return tag("header", tag("h1", data.title), about, _synthetic(data))


def _synthetic(data: ReportData) -> Html | None:
    if not data.synthetic:
        return None
    made = [item.subset or item.suite for item in data.subsets if item.status == "synthetic"]
    some = bool(made) and len(made) < len(data.subsets)
    which = f"{listed(made)} were" if some else "The sounds in this report were"
    said = (
        f" {which} computed, not recorded. The numbers show how representations bear loudness, noise, speed and"
        " speakers in a controlled setting; they say nothing about real animals, places or people."
    )
    return tag("div", tag("strong", "SYNTHETIC DATA."), said, class_="synthetic", role="note")
