"""Whether the models may have been trained on the sounds they are measured with."""

from __future__ import annotations

from collections.abc import Sequence

from earmark.report.content import OverlapNote, ReportData
from earmark.tables.html import Child, Html, bullets, paragraph, section, table, tag

_MARKS = {"confirmed": "●", "likely": "◐", "no evidence": "○", "unknown": "?"}


def heard_before(data: ReportData) -> Html | None:
    """The audit as a table of marks, and below it the sentence behind every mark that is not "no evidence"."""
    if not data.overlaps:
        return None
    models = list(dict.fromkeys(note.model for note in data.overlaps))
    subsets = list(dict.fromkeys(note.subset for note in data.overlaps))
    by_place = {(note.model, note.subset): note for note in data.overlaps}
    heads: list[Child] = ["model", *subsets]
    lines = [[model, *(_mark(by_place.get((model, subset))) for subset in subsets)] for model in models]
    return section(
        "overlap",
        "Heard before?",
        paragraph(
            "Zero-shot scores flatter a model that was trained on the very sounds it is measured with. This table"
            " compares what the cards of models and corpora state; no recordings were compared, and “no evidence” is"
            " not “no”."
        ),
        table(heads, lines, left=1),
        paragraph(" · ".join(f"{mark} {words}" for words, mark in _MARKS.items()), class_="quiet"),
        bullets(_reasons(data.overlaps)),
    )


def _mark(note: OverlapNote | None) -> Html | str:
    if note is None:
        return ""
    return tag("span", _MARKS[note.verdict], title=f"{note.verdict}: {note.why}", aria_label=note.verdict)


def _reasons(notes: Sequence[OverlapNote]) -> list[Child]:
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for note in notes:
        if note.verdict != "no evidence":
            grouped.setdefault((note.model, note.verdict, note.why), []).append(note.subset)
    return [f"{model} and {', '.join(where)}: {verdict}; {why}." for (model, verdict, why), where in grouped.items()]
