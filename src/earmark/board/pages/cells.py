"""Cells of tables as HTML, one by one: a score, a rank, a bitrate, a fact of a card, and the badges of a name.

Every text passes `escape`; what is not escaped here is made of numbers and of words in this file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from html import escape
from typing import NamedTuple

from earmark.board.boards.cells import HEATS, Cell
from earmark.board.boards.codecs import ANCHOR
from earmark.board.boards.isolation import BADGES as ISOLATION_BADGES
from earmark.board.boards.isolation import WORDS as ISOLATION_WORDS
from earmark.board.boards.lines import Bitrate
from earmark.board.boards.table import TablePage
from earmark.board.pages.summaries import rank_interval
from earmark.codecs.ranking import standing_of, why_apart
from earmark.definitions import BLIND
from earmark.report.metric_text import facts
from earmark.scores import STATUS_MARKS, Metric
from earmark.submissions import SystemCard
from earmark.tables import plain

_DASH = "—"
_STATUS_WORDS = {"": "not measured", "not_applicable": "not applicable", "failed": "failed"}
KIND_BADGES = {"unknown": "isolation unknown", "unisolated": "not isolated", "faulty": "faulty", ANCHOR: "anchor"}
_MEANS = (BLIND, "mean")
_NO_TIER = "not told: its own interval is too wide to say whether it is level with systems of better means"
CARD: tuple[tuple[str, str, str, Callable[[SystemCard], object]], ...] = (
    ("family", "Family", "", lambda card: card.family),
    ("parameters", "Parameters (M)", "n", lambda card: card.parameters_m),
    ("rtf", "Real-time factor", "n", lambda card: card.real_time_factor),
    ("", "Licence", "", lambda card: card.licence),
    ("", "Training-free", "", lambda card: {True: "yes", False: "no", None: ""}[card.training_free]),
    ("year", "Year", "n", lambda card: card.year),
)


def lift_place(page: TablePage) -> int | None:
    """Behind how many columns of scores the lift over chance stands; None where it is not shown."""
    shown = "lift" in page.view.show and page.lifted
    return sum(column.kind in _MEANS for column in page.columns) if shown else None


class Form(NamedTuple):
    """How the values of a metric are written: times what, and with how many digits behind the point."""

    scale: float
    digits: int


def blind_badge(number: int | None) -> str:
    """That figures were measured by the host on recordings nobody else has, with the way to their audit entry."""
    words = 'class="badge blind" title="measured by the host on blind recordings'
    if number is None:
        return f' <span {words}">blind</span>'
    return f' <a {words}: policy and audit entry" href="/blind/audit/{number}">blind</a>'


def kind_badge(card: SystemCard, kind: str, isolation: str = "") -> str:
    """What a codec's results rest on, with the reason where that is not what it should be.

    `isolation` says whose word it is that a codec was isolated."""
    if isolation:
        words, why = ISOLATION_BADGES[isolation], ISOLATION_WORDS[isolation]
        return f' <span class="badge {isolation}" title="{why}">{words}</span>'
    words = KIND_BADGES.get(kind, "")
    if not words:
        return ""
    why = why_apart(standing_of(card.details)) if kind != ANCHOR else "it loses nothing and is not ranked"
    return f' <span class="badge {kind}" title="{escape(plain(why, 300))}">{words}</span>'


def bitrate_cell(bitrate: Bitrate | None) -> str:
    """The bitrate of a codec as a `<td>`; in italics where only its card states it."""
    if bitrate is None:
        return f'<td class="n gone" title="not stated">{_DASH}</td>'
    text = f"{bitrate.kbps:.2f}"
    return (
        f'<td class="n" title="stated by its card"><i>{text}</i></td>'
        if bitrate.stated
        else f'<td class="n">{text}</td>'
    )


def rank_cell(
    rank: int, low: int, high: int, unranked: str = "", of: int = 0, tier: int | None = None, *, named: bool = False
) -> str:
    """A rank with its interval as a `<td>`; `of` says among how many, and `tier` is shown where it is `named`, or 0."""
    if not rank:
        return f'<td class="n rank gone" title="{escape(unranked or "no rank")}">{_DASH}</td>'
    field = f" of {of}" if of else ""
    if not low:
        return f'<td class="n rank" title="no interval: the rows tell no measurement error">{rank}{field}</td>'
    level = '<span class="vh">, not told apart from the best</span>' if tier == 1 else ""
    shown = f"<small>tier {tier}</small>" if named and tier else ""
    if tier == 0:
        shown = f'<small title="{_NO_TIER}">no tier</small>'
    return f'<td class="n rank">{rank}{field}<small>{rank_interval(low, high)}</small>{shown}{level}</td>'


def lift_text(lift: float | None, metric: str | Metric) -> str:
    return _lift(lift, form_of(metric))


def _lift(lift: float | None, form: Form) -> str:
    return _DASH if lift is None else ("+" if lift > 0 else "") + shown_number(lift, form)


def card_fact(value: object, kind: str) -> str:
    marks = f' class="{kind}"' if kind else ""
    if value is None or value == "":
        return f'<td{marks} title="not stated"><span class="gone">{_DASH}</span></td>'
    return f"<td{marks}>{escape(plain(f'{value:g}' if isinstance(value, float) else str(value), 40))}</td>"


@lru_cache(8192)
def shown_name(text: str) -> str:
    return escape(plain(text, 80))


def form_of(metric: str | Metric) -> Form:
    return Form(100.0, 1) if facts(metric).percent else Form(1.0, 3)


def shown_number(value: float, form: Form) -> str:
    """A number as cells show it, with a true minus and without a minus before nothing."""
    text = f"{form.scale * value:.{form.digits}f}"
    if not text.startswith("-"):
        return text
    return text[1:] if not text.strip("-0.") else "−" + text[1:]


def score_cell(cell: Cell, metric: str | Metric, intervals: bool = True) -> str:
    """A score as a `<td>`: the value, its interval in small figures, and what there is to say of it as a title."""
    return score_html(cell, form_of(metric), intervals)


def score_html(cell: Cell, form: Form, intervals: bool) -> str:
    if cell.status == "ok" and not cell.reason and cell.heat != HEATS and cell.value is not None:
        small = ""
        if intervals and cell.low is not None and cell.high is not None:
            small = f"<small>{shown_number(cell.low, form)}–{shown_number(cell.high, form)}</small>"
        marks = "n" if cell.heat is None else f"n h{cell.heat}"
        return f'<td class="{marks}">{shown_number(cell.value, form)}{small}</td>'
    if cell.value is None:
        text = "failed" if cell.status == "failed" else _DASH
        words = _STATUS_WORDS.get(cell.status, cell.status)
        why = words if not cell.reason or cell.reason == words else f"{words}: {cell.reason}"
        return f'<td class="n gone" title="{escape(why)}">{text}</td>'
    text = STATUS_MARKS.get(cell.status, "") + shown_number(cell.value, form)
    if cell.heat == HEATS:
        text = f'<b>{text}</b><span class="vh"> best</span>'
    marks = "n" if cell.heat is None else f"n h{cell.heat}"
    small = ""
    if intervals and cell.low is not None and cell.high is not None:
        small = f"<small>{shown_number(cell.low, form)}–{shown_number(cell.high, form)}</small>"
    if cell.status in STATUS_MARKS:
        words = cell.status if cell.status == "incomplete" else f"{cell.status}, not measured"
        return (
            f'<td class="n {cell.status}" title="{words}: {escape(cell.reason)}"><i>{text}</i>'
            f"<small>{cell.status}</small>{small}</td>"
        )
    if cell.status == "partial":
        return f'<td class="{marks} partial" title="{escape(cell.reason)}">{text}<small>partial</small></td>'
    if cell.reason:
        return f'<td class="{marks} noted" title="{escape(cell.reason)}"><span>{text}</span>{small}</td>'
    return f'<td class="{marks}">{text}{small}</td>'
