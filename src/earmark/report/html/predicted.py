"""What was not measured but predicted, apart from what was measured and marked in every cell."""

from __future__ import annotations

from earmark.report import reading
from earmark.report.content import ReportData
from earmark.report.reading import facts, interval, number
from earmark.scores import Row
from earmark.tables.html import Html, paragraph, section, table, tag

_STYLE = "font-style:italic;border-bottom:2px dashed currentColor"


def predicted_cell(row: Row) -> Html:
    """`~61.2` in italics over a dashed line, with its interval and the word: nobody reads it as a measurement."""
    assert row.value is not None
    return tag(
        "td",
        tag("span", f"~{number(row.value, row.metric)}", style=_STYLE),
        tag("small", interval(row)),
        tag("small", "predicted"),
        class_="n",
        title=row.reason or None,
        data_value=repr(row.value),
    )


def predictions(data: ReportData) -> Html | None:
    """The metric that leads, on every subset: measured values as they are, predicted ones marked; None without any."""
    rows = [row for row in data.scores if row.status == "predicted"]
    if not rows:
        return None
    metric = reading.headline(data.scores)
    metric = metric if any(row.metric == metric for row in rows) else rows[0].metric
    chosen = [row for row in data.scores if row.metric == metric and row.value is not None and row.protocol == "all"]
    places = list(dict.fromkeys(row.subset for row in chosen))
    lines: dict[str, dict[str, Row]] = {}
    for row in chosen:
        lines.setdefault(reading.representation(row).label, {})[row.subset] = row
    body: list[list[Html | str]] = [
        [label, *(_cell(found.get(place)) for place in places)] for label, found in lines.items()
    ]
    reasons = list(dict.fromkeys(row.reason for row in chosen if row.status == "predicted"))
    said = (
        "A tilde, italics and a dashed line mark what was predicted from the measured subsets and not measured; in "
        "brackets its interval. Means, ranks and the answer above count measurements only."
    )
    unit = " (%)" if facts(metric).percent else ""
    return section(
        "predicted",
        "Predicted, not measured",
        paragraph(said),
        table(["representation", *places], body, caption=f"{metric}{unit} on every subset."),
        [paragraph(reason, class_="quiet") for reason in reasons[:5]],
    )


def _cell(row: Row | None) -> Html | str:
    if row is None or row.value is None:
        return "–"
    return predicted_cell(row) if row.status == "predicted" else number(row.value, row.metric)
