"""Metrics and their values as the pages of one board write them: the host's titles, and percent where it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from earmark.definitions import Definition
from earmark.report.metric_text import facts

if TYPE_CHECKING:
    from earmark.board.web.requests import Context


def metric_words(context: Context, board: str) -> dict[str, Any]:
    """What templates call: `metric_name` and `metric_value`, as the definition of the board has them."""
    definition = context.snapshots.definition(board)

    def name(metric: str) -> Markup:
        return titled_metric(definition, metric)

    def value(number: float | None, metric: str, signed: bool = False) -> str:
        known = definition.facts(metric) if definition else facts(metric)
        if number is None:
            return "–"
        sign = "+" if signed else ""
        return f"{100 * number:{sign}.1f}" if known.percent else f"{number:{sign}.4g}"

    return {"metric_name": name, "metric_value": value}


def titled_metric(definition: Definition | None, metric: str) -> Markup:
    """The host's title with the metric's own name small beside it, or that name alone."""
    title = definition.metric_title(metric) if definition else ""
    return Markup("{} <small><code>{}</code></small>").format(title, metric) if title else escape(metric)
