"""The page itself: one HTML file that needs nothing else, on any screen or on paper."""

from __future__ import annotations

import base64
import hashlib
import os
from importlib.resources import files
from pathlib import Path

from earmark.atomic import write_whole
from earmark.errors import InputError
from earmark.report import reading
from earmark.report.content import ReportData
from earmark.report.figures.style import library
from earmark.report.html import clips, method, overlap, results
from earmark.report.html.elements import Html, join, paragraph, tag, trusted
from earmark.wording import counted


def write_report(data: ReportData, path: str | os.PathLike[str]) -> None:
    """Write the report as one HTML file. Another process sees the old file or the whole new one, never a part."""
    target = Path(path)
    text = render(data)
    try:
        write_whole(target, text.encode("utf-8", "replace"))
    except FileNotFoundError as error:
        raise InputError(f"{target}: the folder {target.parent} does not exist; create it first.") from error
    except OSError as error:
        raise InputError(f"{target} cannot be written ({error.strerror}); choose another place.") from error


def render(data: ReportData) -> str:
    """The report as HTML text: the same data gives the same text."""
    library()
    sections = [
        results.the_answer(data),
        results.score_tables(data),
        results.lift_over_chance(data),
        results.agreement(data),
        results.corpus(data),
        clips.closer_look(data),
        overlap.heard_before(data),
        method.what_happened(data),
        method.how(data),
    ]
    body = tag("main", _header(data), _contents(data), sections, _footer(data))
    style, script = _template("report.css"), _template("report.js")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        tag("meta", name="generator", content=f"Earmark {data.version}".strip()),
        tag("title", data.title),
        tag("style", trusted(style)),
    )
    page = tag("html", head, tag("body", body, tag("script", trusted(script))), lang="en")
    return f"<!doctype html>\n{page}\n"


def _template(name: str) -> str:
    return (files("earmark.report") / "templates" / name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """The browser's own guarantee: nothing is fetched, and no script runs but ours."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


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
    parts += [("closer", "Closer look")] if data.close_ups else []
    parts += [("overlap", "Heard before?")] if data.overlaps else []
    parts += [("files", "Files"), ("method", "Method")]
    return tag("nav", [join(tag("a", title, href=f"#{name}"), " ") for name, title in parts], aria_label="Contents")


def _footer(data: ReportData) -> Html:
    by = f"Written by Earmark {data.version}".strip()
    return tag("footer", f"{by}. This file holds everything it shows and loads nothing from a network.")
