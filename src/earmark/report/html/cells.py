"""Cells and heads that the tables of a report share."""

from __future__ import annotations

from earmark.report.reading import facts, interval, number
from earmark.scores import Row
from earmark.tables.html import Html, tag


def value_cell(
    row: Row, *more: str, lift: str = "", best: bool = False, heat: float | None = None, count: bool = True
) -> Html:
    """Value (lift), interval and whatever else belongs under it, coloured where `heat` (0 worst, 1 best) is given."""
    assert row.value is not None
    shown = number(row.value, row.metric)
    small = [interval(row), *more, f"n = {row.n}" if count and row.n is not None else ""]
    return tag(
        "td",
        tag("span", shown, class_="best") if best else shown,
        tag("span", f" ({lift})", class_="lift") if lift else None,
        [tag("small", item) for item in small if item],
        class_="n heat" if heat is not None else "n",
        style=None if heat is None else f"--good-share:{heat:.2f}",
        data_value=repr(row.value),
    )


def spelled(metric: str) -> str:
    arrow = "↑" if facts(metric).higher_is_better else "↓"
    return f"{metric} (%) {arrow}" if facts(metric).percent else f"{metric} {arrow}"
