"""A table of measured and predicted scores for a terminal: a line for each subset, predicted cells marked."""

from __future__ import annotations

from earmark.report import reading
from earmark.report.reading import facts, interval, number
from earmark.scores import STATUS_MARKS, Row, Scores
from earmark.tables import plain

_PROTOCOL = {"all": "", "across_groups": " · across groups"}


def filled_text(scores: Scores) -> str:
    """For each metric, subsets by systems: `90.0` was measured, `~70.9 [54.9, 85.4]` predicted. Reasons stand below."""
    metrics = reading.metrics(row for row in scores if row.value is not None)
    blocks = [_block(scores, metric) for metric in metrics]
    reasons = list(dict.fromkeys(row.reason for row in scores if row.status == "predicted"))
    said = [f"~ {reason}" for reason in reasons]
    return "\n\n".join([*blocks, *(["\n".join(said)] if said else [])]) + "\n"


def _block(scores: Scores, metric: str) -> str:
    rows = [row for row in scores if row.metric == metric and row.value is not None]
    lines = list(dict.fromkeys(_name(row) for row in rows))
    subsets = sorted(dict.fromkeys(row.subset for row in rows), key=lambda name: name.startswith("mean"))
    cells = {(row.subset, _name(row)): _cell(row) for row in rows}
    table = [["subset", *lines]]
    table += [[subset or "all clips", *(cells.get((subset, line), "–") for line in lines)] for subset in subsets]
    widths = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
    body = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    unit = " (%)" if facts(metric).percent else ""
    better = "higher" if facts(metric).higher_is_better else "lower"
    return "\n".join([f"{metric}{unit}, {better} is better; ~ was predicted, not measured", "", *body])


def _name(row: Row) -> str:
    return plain(reading.representation(row).label) + _PROTOCOL.get(row.protocol, f" · {row.protocol}")


def _cell(row: Row) -> str:
    assert row.value is not None
    value = STATUS_MARKS.get(row.status, "") + number(row.value, row.metric)
    return f"{value} {interval(row)}".rstrip() if row.status == "predicted" else value
