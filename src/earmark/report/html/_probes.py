"""The part of a report about external validation: what probes and listeners say, and whether geometry foresaw it."""

from __future__ import annotations

from typing import NamedTuple

from earmark.analysis.transfer import SAME, Relation, transfer, verdict
from earmark.errors import InputError
from earmark.report import figures
from earmark.report.content import ReportData
from earmark.report.html._results import value_cell
from earmark.report.metric_text import goodness, heading
from earmark.report.probes import relation_table, transfer_figure
from earmark.report.score_index import ScoreIndex, Subset, subset
from earmark.scores import Row
from earmark.tables import MISSING
from earmark.tables.html import Child, Html, drawing, folded, join, paragraph, section, table, tag
from earmark.wording import counted

_OPEN_COLUMNS = 5
CEILINGS = ("agreement_between", "agreement_within", "agreement_repeats", "attainable_accuracy")


def validation(data: ReportData) -> Html | None:
    """Tables of probes by subset, then what geometry predicts of them; nothing where nothing was probed."""
    index = data.index
    if not index.probes:
        return None
    parts: list[Child] = [
        paragraph(
            "Probes learn from, or are compared with, what the scores above never saw: labels of other clips, or"
            " choices of listeners. The protocol says which probe and which folds; intervals are about new clips,"
            " groups or listeners, not about new folds."
        )
    ]
    for place in dict.fromkeys(map(subset, index.probes)):
        parts += _tables(index, place)
    parts += _transferred(data)
    return section("probes", "Probes", parts)


class _Probe(NamedTuple):
    """What a column of the table is about."""

    protocol: str
    distance: str
    metric: str


def _probe_of(row: Row) -> _Probe:
    return _Probe(row.protocol, row.distance, row.metric)


def _tables(index: ScoreIndex, place: Subset) -> list[Child]:
    every = [row for row in index.probes if subset(row) == place]
    rows = [row for row in every if row.metric not in CEILINGS]
    measured = [row for row in rows if row.status == "ok" and row.value is not None]
    columns = list(dict.fromkeys(map(_probe_of, measured)))
    parts: list[Child] = []
    if columns:
        shown, rest = columns[:_OPEN_COLUMNS], columns[_OPEN_COLUMNS:]
        parts.append(_table(measured, shown, f"{place.label}: probes of each system"))
        if rest:
            more = f"{place.label}: {counted(len(rest), 'more column')}"
            parts.append(folded(more, _table(measured, rest, place.label)))
    reasons = dict.fromkeys(
        f"{row.system}, {row.protocol}, {row.metric}: {row.reason}" for row in rows if not row.value
    )
    if reasons:
        parts.append(folded(f"{place.label}: {counted(len(reasons), 'value')} not measured", *map(paragraph, reasons)))
    return parts


def _table(rows: list[Row], columns: list[_Probe], caption: str) -> Html:
    cells = {(row.system, _probe_of(row)): row for row in rows}
    honest = [row for row in rows if "leaks:" not in row.reason]
    best = {probe: max((goodness(row) for row in honest if _probe_of(row) == probe), default=None) for probe in columns}
    body = []
    for system in dict.fromkeys(row.system for row in rows):
        found = [cells.get((system, probe)) for probe in columns]
        if any(found):
            line: list[Html | str] = [system]
            line += [value_cell(row, best=goodness(row) == best[_probe_of(row)]) if row else MISSING for row in found]
            body.append(line)
    names = [(" ".join(filter(None, probe[:2])), tag("small", heading(probe.metric))) for probe in columns]
    heads: list[Child] = ["system", *(join(name, " ", small) for name, small in names)]
    return table(heads, body, caption=f"{caption}; intervals of 95 %, bold is the best of a column.")


def _transferred(data: ReportData) -> list[Child]:
    """Whether the geometry foresaw the probes, for runs of enough systems."""
    try:
        relations = [item for item in transfer(data.scores) if item.over == SAME]
    except InputError:
        return []
    if not relations:
        return []
    parts: list[Child] = [paragraph(sentence) for sentence in verdict(relations)]
    drawn = _drawn(relations)
    if drawn:
        caption = (
            "Each point is a system: a training-free measure of the same clips against the probe. A colour and a marker"
            " are one model; ρ is Spearman's rank correlation with its 95 % interval over models."
        )
        picture = figures.as_svg(transfer_figure(drawn), "transfer", "Training-free measures against probes")
        parts.append(drawing(picture, caption, wide=True))
    measured = [item for item in relations if item.rho is not None]
    if measured:
        parts.append(folded(f"All {counted(len(measured), 'relation')}", relation_table(measured).to_html()))
    return parts


def _drawn(relations: list[Relation]) -> list[Relation]:
    """The first outcome's relations under its first distance and main protocol."""
    measured = [item for item in relations if item.rho is not None]
    if not measured:
        return []
    lead = next((item for item in measured if item.protocol == "across_groups"), measured[0])
    return [
        item
        for item in measured
        if (item.target, item.distance, item.protocol) == (lead.target, lead.distance, lead.protocol)
    ][:6]
