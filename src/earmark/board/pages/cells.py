"""The table of a board as HTML, put together from strings: a template engine would take longer than everything else.

Every text passes `escape`; what is not escaped here is made of numbers and of words in this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from html import escape
from itertools import groupby
from urllib.parse import quote

from markupsafe import Markup

from earmark.board.boards.codecs import ANCHOR, RANKED
from earmark.board.boards.groups import BLIND
from earmark.board.boards.table import Bitrate, Cell, TablePage, TableRow
from earmark.codecs.ranking import TITLES, standing_of, why_apart
from earmark.report.metric_text import facts, number
from earmark.scores import STATUS_MARKS
from earmark.submissions import SystemCard
from earmark.tables import plain
from earmark.wording import first_of

SWAPS = 'hx-boost="true" hx-target="#board" hx-select="#board" hx-swap="outerHTML show:none"'
"""What makes a script put the table of a link in the place of this one; without a script the link is a link."""
_DASH = "—"
_STATUS_WORDS = {"": "not measured", "not_applicable": "not applicable", "failed": "failed"}
KIND_WORDS = {**TITLES, RANKED: "Ranked: isolated, or printed in a paper"}
KIND_BADGES = {"unknown": "isolation unknown", "unisolated": "not isolated", "faulty": "faulty", ANCHOR: "anchor"}
_GROUPS = {BLIND: "Blind mean", "mean": "Means", "subset": "Subsets", "metric": "Other metrics"}
_MEANS = (BLIND, "mean")
_CARD: tuple[tuple[str, str, str, Callable[[SystemCard], object]], ...] = (
    ("family", "Family", "", lambda card: card.family),
    ("parameters", "Parameters (M)", "n", lambda card: card.parameters_m),
    ("rtf", "Real-time factor", "n", lambda card: card.real_time_factor),
    ("", "Licence", "", lambda card: card.licence),
    ("", "Training-free", "", lambda card: {True: "yes", False: "no", None: ""}[card.training_free]),
    ("year", "Year", "n", lambda card: card.year),
)


def table_html(page: TablePage, audited: Mapping[int, int] | None = None, *, links: bool = True) -> Markup:
    """The whole `<table>`; without `links`, headings do not sort (for a frozen copy).

    `audited` is the audit entry of each system, by its id, whose blind figures were released here.
    """
    field = page.field
    unit = ", in percent" if facts(field.metric).percent else ""
    way = "higher" if facts(field.metric).higher_is_better else "lower"
    over = f"{field.group.words} of {len(field.group.subsets)} subsets"
    if len(field.group.subsets) == 1:
        over = field.group.subsets[0] or "all clips"
    caption = (
        f'<caption class="vh">{escape(field.metric)}{unit}, {way} is better: {escape(over)}, with the rank of each '
        "system and its interval.</caption>"
    )
    body = "".join(
        _apart(page, kind) + "".join([_line(page, row, audited or {}, links) for row in rows])
        for kind, rows in groupby(page.rows, key=lambda row: row.kind)
    )
    swaps = f" {SWAPS}" if links else ""
    return Markup(f"<table>{caption}<thead{swaps}>{_head(page, links)}</thead><tbody>{body}</tbody></table>")


def _apart(page: TablePage, kind: str) -> str:
    """A line above the lines that are ranked among themselves, and not with those before them."""
    if kind == RANKED and all(row.kind == RANKED for row in page.rows):
        return ""
    width = 3 + page.codecs + len(page.columns) + (_lift_place(page) is not None)
    width += len(_CARD) if "card" in page.view.show else 0
    return f'<tr class="apart"><th scope="rowgroup" colspan="{width}">{escape(KIND_WORDS[kind])}</th></tr>'


def _lift_place(page: TablePage) -> int | None:
    """Behind how many columns of scores the lift over chance stands; None where it is not shown."""
    shown = "lift" in page.view.show and page.lifted
    return sum(column.kind in _MEANS for column in page.columns) if shown else None


def _head(page: TablePage, links: bool) -> str:
    with_card, lift_place = "card" in page.view.show, _lift_place(page)
    groups = [(title, len(list(columns))) for title, columns in groupby(_GROUPS[each.kind] for each in page.columns)]
    if lift_place is not None:
        groups.insert(sum(title in (_GROUPS[kind] for kind in _MEANS) for title, _ in groups), ("Chance", 1))
    upper = ""
    if len(groups) > 1 or with_card:
        named, few = (f"{_GROUPS[BLIND]}: {first_of(page.field.group.subsets, most)}" for most in (100, 4))
        texts = {_GROUPS[BLIND]: f' title="{escape(plain(named, 400))}">{escape(plain(few, 80))}'}
        spans = "".join(
            f'<th scope="colgroup" colspan="{span}"{texts.get(title, f">{title}")}</th>' for title, span in groups
        )
        card = f'<th scope="colgroup" colspan="{len(_CARD)}">Card</th>' if with_card else ""
        upper = f'<tr class="upper"><td colspan="{3 + page.codecs}"></td>{spans}{card}</tr>'
    cells = [
        '<th scope="col" class="pick"><span class="vh">Compare</span></th>' if links else "<td></td>",
        _heading(page, "rank", "Rank", "Rank by the mean, with its 95 % interval", links, "n rank", down=False),
        _heading(page, "name", "System", "By name", links, "name", down=False),
    ]
    for column in page.columns:
        down = facts(column.metric).higher_is_better
        cells.append(_heading(page, column.key, column.title or "all clips", column.help, links, "n", down=down))
    if lift_place is not None:
        lift = _heading(page, "lift", "Lift", "Mean minus what chance reaches", links, "n", down=True)
        cells.insert(3 + lift_place, lift)
    if page.codecs:
        words = "Bits that were counted, over the seconds of sound; in italics what the card states"
        cells.insert(3, _heading(page, "kbps", "kbps", words, links, "n", down=False))
    for key, title, kind, _ in _CARD if with_card else ():
        sortable = _heading(page, key, title, title, links, kind, down=False)
        cells.append(sortable if key else f'<th scope="col">{escape(title)}</th>')
    return f"{upper}<tr>{''.join(cells)}</tr>"


def _heading(page: TablePage, key: str, title: str, words: str, links: bool, kind: str, *, down: bool) -> str:
    """A heading that sorts. `down`: its plain order is from the largest value to the least."""
    view = page.view
    current = view.sort == key
    state = ""
    if current:
        descending = down != (view.order == "reversed")
        state = f' aria-sort="{"descending" if descending else "ascending"}"'
    marks = f' class="{kind}"' if kind else ""
    note = f' title="{escape(plain(words, 400))}"' if words else ""
    text = escape(plain(title, 40))
    if not links:
        return f'<th scope="col"{marks}{note}>{text}</th>'
    order = "reversed" if current and view.order != "reversed" else ""
    address = escape(view.address(sort=key, order=order))
    return f'<th scope="col"{marks}{state}{note}><a href="{address}">{text}</a></th>'


def _line(page: TablePage, row: TableRow, audited: Mapping[int, int], links: bool) -> str:
    view = page.view
    card = row.system.card
    name = _name(card.name)
    intervals = "intervals" in view.show
    cells = [score_cell(cell, column.metric, intervals) for cell, column in zip(row.cells, page.columns, strict=True)]
    lift_place = _lift_place(page)
    if lift_place is not None:
        cells.insert(lift_place, f'<td class="n">{lift_text(row.cells[0].lift, view.metric)}</td>')
    if page.codecs:
        cells.insert(0, bitrate_cell(row.bitrate))
    if "card" in view.show:
        cells += [_fact(read(card), kind) for _, _, kind, read in _CARD]
    badge = blind_badge(audited.get(row.system.id)) if "blind" in row.provenance else ""
    origins = [name for name in row.provenance if name != "blind"]
    small = " · ".join([*filter(None, [row.setting.replace("+", " + ")]), *origins])
    # Phones have no room for it: the style sheet leaves it out there.
    title = (
        f'<span class="title">{escape(plain(card.title, 60))} · </span>' if card.title not in ("", card.name) else ""
    )
    box = (
        f'<input type="checkbox" name="s" value="{escape(row.system.key(row.setting))}" aria-label="Compare {name}">'
        if links
        else ""
    )
    return (
        f'<tr><td class="pick">{box}</td>{rank_cell(row.rank, row.rank_low, row.rank_high, row.unranked)}'
        f'<th scope="row" class="name"><a href="/b/{quote(view.board)}/s/{quote(row.system.slug)}">{name}</a>'
        f"{kind_badge(card, row.kind)}{badge}<small>{title}{escape(small)}</small></th>{''.join(cells)}</tr>"
    )


def blind_badge(number: int | None) -> str:
    """That figures were measured by the host on recordings nobody else has, with the way to their audit entry."""
    words = 'class="badge blind" title="measured by the host on blind recordings'
    if number is None:
        return f' <span {words}">blind</span>'
    return f' <a {words}: policy and audit entry" href="/blind/audit/{number}">blind</a>'


def kind_badge(card: SystemCard, kind: str) -> str:
    """What a codec's results rest on, where that is not what it should be, with the reason."""
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


def rank_cell(rank: int, low: int, high: int, unranked: str = "", of: int = 0) -> str:
    """A rank with its interval as a `<td>`; `of` says among how many."""
    if not rank:
        return f'<td class="n rank gone" title="{escape(unranked or "no rank")}">{_DASH}</td>'
    field = f" of {of}" if of else ""
    if not low:
        return f'<td class="n rank" title="no interval: the rows tell no measurement error">{rank}{field}</td>'
    return f'<td class="n rank">{rank}{field}<small>{rank_interval(low, high)}</small></td>'


def lift_text(lift: float | None, metric: str) -> str:
    return _DASH if lift is None else number(lift, metric, sign=True)


def rank_interval(low: int, high: int) -> str:
    return f"{low}–{high}" if low < high else f"{low}"


def _fact(value: object, kind: str) -> str:
    marks = f' class="{kind}"' if kind else ""
    if value is None or value == "":
        return f'<td{marks} title="not stated"><span class="gone">{_DASH}</span></td>'
    return f"<td{marks}>{escape(plain(f'{value:g}' if isinstance(value, float) else str(value), 40))}</td>"


@lru_cache(8192)
def _name(text: str) -> str:
    return escape(plain(text, 80))


@cache
def _form(metric: str) -> tuple[float, str]:
    return (100.0, ".1f") if facts(metric).percent else (1.0, ".3f")


def _shown(value: float, metric: str) -> str:
    scale, form = _form(metric)
    text = format(scale * value, form)
    if text[0] != "-":
        return text
    return text[1:] if not text.strip("-0.") else "−" + text[1:]


def score_cell(cell: Cell, metric: str, intervals: bool = True) -> str:
    """A score as a `<td>`: the value, its interval in small figures, and what there is to say of it as a title."""
    if cell.value is None:
        text = "failed" if cell.status == "failed" else _DASH
        words = _STATUS_WORDS.get(cell.status, cell.status)
        why = words if not cell.reason or cell.reason == words else f"{words}: {cell.reason}"
        return f'<td class="n gone" title="{escape(why)}">{text}</td>'
    text = STATUS_MARKS.get(cell.status, "") + _shown(cell.value, metric)
    marks = "n" if cell.heat is None else f"n h{cell.heat}"
    small = ""
    if intervals and cell.low is not None and cell.high is not None:
        small = f"<small>{_shown(cell.low, metric)}–{_shown(cell.high, metric)}</small>"
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
