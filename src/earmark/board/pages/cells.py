"""The table of a board as HTML, put together from strings: a template engine would take longer than everything else.

Every text passes `escape`; what is not escaped here is made of numbers and of words in this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from html import escape
from itertools import groupby, pairwise
from typing import NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from earmark.board.boards.codecs import ANCHOR, RANKED
from earmark.board.boards.isolation import BADGES as ISOLATION_BADGES
from earmark.board.boards.isolation import WORDS as ISOLATION_WORDS
from earmark.board.boards.table import HEATS, Bitrate, Cell, Column, MadeLines, TablePage, TableRow, setting_words
from earmark.board.pages.summaries import metric_words, rank_interval
from earmark.codecs.ranking import TITLES, standing_of, why_apart
from earmark.definitions import BEST, BLIND
from earmark.report.metric_text import facts
from earmark.scores import STATUS_MARKS, Metric
from earmark.submissions import SystemCard
from earmark.tables import plain
from earmark.wording import counted, first_of

SWAPS = 'hx-boost="true" hx-target="#board" hx-select="#board" hx-swap="outerHTML show:none"'
"""What makes a script put the table of a link in the place of this one; without a script the link is a link."""
_DASH = "—"
_STATUS_WORDS = {"": "not measured", "not_applicable": "not applicable", "failed": "failed"}
KIND_WORDS = {**TITLES, RANKED: "Ranked: isolated, as their authors state or the host has seen, or printed in a paper"}
KIND_BADGES = {"unknown": "isolation unknown", "unisolated": "not isolated", "faulty": "faulty", ANCHOR: "anchor"}
_GROUPS = {BLIND: "Blind mean", "mean": "Means", "subset": "Subsets", "metric": "Other metrics"}
_MEANS = (BLIND, "mean")
_LONG = 12  # letters under a heading, from which on they go to a second line
_NO_TIER = "not told: its own interval is too wide to say whether it is level with systems of better means"
_RANK_WORDS = "Two systems whose intervals overlap widely are not told apart by this board."
_CARD: tuple[tuple[str, str, str, Callable[[SystemCard], object]], ...] = (
    ("family", "Family", "", lambda card: card.family),
    ("parameters", "Parameters (M)", "n", lambda card: card.parameters_m),
    ("rtf", "Real-time factor", "n", lambda card: card.real_time_factor),
    ("", "Licence", "", lambda card: card.licence),
    ("", "Training-free", "", lambda card: {True: "yes", False: "no", None: ""}[card.training_free]),
    ("year", "Year", "n", lambda card: card.year),
)


def table_html(
    page: TablePage, audited: Mapping[int, int] | None = None, *, links: bool = True,
    known: Callable[[str], Metric] = facts,
) -> Markup:  # fmt: skip
    """The whole `<table>` and what its headings open; without `links`, headings do not sort (for a frozen copy).

    `audited` is the audit entry of each system, by its id, whose blind figures were released here; `known` is what
    the board knows of its metrics.
    """
    field = page.field
    unit = ", in percent" if known(field.metric).percent else ""
    way = "higher" if known(field.metric).higher_is_better else "lower"
    over = f"{field.group.words} of {len(field.group.subsets)} subsets"
    if len(field.group.subsets) == 1:
        over = field.group.subsets[0] or "all clips"
    caption = (
        f'<caption class="vh">{escape(field.metric)}{unit}, {way} is better: {escape(over)}, with the rank of each '
        "system and its interval.</caption>"
    )
    labels, forms = _labels(page), [_form(known(column.metric)) for column in page.columns]
    made, entries, tiers = page.made or MadeLines(0), audited or {}, _tiers_mixed(page)
    written = (
        made.text(
            row, (links, entries.get(row.system.id), tiers), partial(_line, page, row, forms, entries, links, tiers)
        )
        for row in page.rows
    )
    body = "".join(labels.get(place, "") + text for place, text in enumerate(written))
    swaps = f" {SWAPS}" if links else ""
    headings = _headings(page, known)
    head = f"<thead{swaps}>{_head(page, headings, links)}</thead>"
    return Markup(f"<table>{caption}{head}<tbody>{body}</tbody></table>{_abouts(headings)}")


def _labels(page: TablePage) -> dict[int, str]:
    """Lines between the lines: above those of another kind, above each tier, and above those without a rank."""
    several = len({row.kind for row in page.rows}) > 1 or any(row.kind != RANKED for row in page.rows)
    labels: dict[int, str] = {}
    start = 0
    for kind, group in groupby(page.rows, key=lambda row: row.kind):
        rows = list(group)
        if several:
            labels[start] = _label(page, "apart", KIND_WORDS[kind])
        if kind != ANCHOR and _by_rank(page):
            for place, words in _cuts(rows, tiers=not _tiers_mixed(page)):
                labels[start + place] = labels.get(start + place, "") + _label(page, "tier", words)
        start += len(rows)
    return labels


def _by_rank(page: TablePage) -> bool:
    return page.view.sort == "rank" and not page.view.order


def _tiers_mixed(page: TablePage) -> bool:
    """Whether a line stands below one of a later tier, by its better mean: then each line says its tier, and no
    heading does, for it would hold lines of another tier."""
    if not _by_rank(page):
        return False
    ranked = [row for row in page.rows if row.rank and row.tier]
    return any(one.kind == other.kind and one.tier > other.tier for one, other in pairwise(ranked))


def _cuts(rows: Sequence[TableRow], *, tiers: bool) -> Iterator[tuple[int, str]]:
    """Where a tier begins, and where those without a rank begin, by the reason that they have."""
    before = ""
    lacking = {row.lacks_subsets for row in rows if not row.rank and not row.is_aside}
    for place, row in enumerate(rows):
        if row.rank:
            # Of whose tier nothing is told stands where its mean is, under the heading above it.
            words = _tier_words(row.tier) if tiers and row.tier else before if row.rank_low else ""
        elif row.is_aside:
            words = "Shown for comparison, not ranked"
        else:
            words = "Without a rank" + (": subsets of this mean are missing" if lacking == {True} else "")
        if words and words != before:
            yield place, words
        before = words


def _tier_words(tier: int) -> str:
    return "Not told apart from the best" if tier == 1 else f"Tier {tier}: surely behind somebody above"


def _label(page: TablePage, kind: str, words: str) -> str:
    width = 3 + page.codecs + len(page.columns) + (_lift_place(page) is not None)
    width += len(_CARD) if "card" in page.view.show else 0
    return f'<tr class="{kind}"><th scope="rowgroup" colspan="{width}"><span>{escape(words)}</span></th></tr>'


def _lift_place(page: TablePage) -> int | None:
    """Behind how many columns of scores the lift over chance stands; None where it is not shown."""
    shown = "lift" in page.view.show and page.lifted
    return sum(column.kind in _MEANS for column in page.columns) if shown else None


class _Form(NamedTuple):
    """How the values of a metric are written: times what, and with which digits."""

    scale: float
    digits: str


class _Heading(NamedTuple):
    """The head of a column: what sorts by it, the small line under it, and what a reader who asks is told of it."""

    key: str
    title: str
    kind: str  # class of its cells
    under: str = ""
    words: str = ""
    down: bool = False  # whether its plain order is from the largest value to the least


def _headings(page: TablePage, known: Callable[[str], Metric]) -> list[_Heading]:
    """The heads of all columns after that of the boxes, in their order."""
    rank = "The place by the mean, and under it the 95 % interval of that place. " + _RANK_WORDS
    heads = [_Heading("rank", "Rank", "n rank", "95 %", rank), _Heading("name", "System", "name")]
    if page.codecs:
        rate = (
            "Kilobits per second: the bits that were counted, over the seconds of sound; in italics what a card states."
        )
        heads.append(_Heading("kbps", "kbps", "n", "bitrate", rate))
    scored = [_score_heading(column, known(column.metric)) for column in page.columns]
    if (place := _lift_place(page)) is not None:
        scored.insert(place, _Heading("lift", "Lift", "n", "over chance", "The mean minus what chance reaches.", True))
    card = [_Heading(key, title, kind) for key, title, kind, _ in _CARD] if "card" in page.view.show else []
    return [*heads, *scored, *card]


def _score_heading(column: Column, known: Metric) -> _Heading:
    under = _unit(known)
    if column.kind == "mean":
        under = counted(column.averaged, "subset") if column.averaged > 1 else under
    elif column.kind == "subset":
        under = column.help or under
    words = " ".join(filter(None, [column.help.rstrip(".") + "." if column.help else "", metric_words(known)]))
    return _Heading(column.key, column.title or "all clips", "n", under, words, known.higher_is_better)


def _unit(known: Metric) -> str:
    """The unit and the direction in a few signs: "% ↑"."""
    return f"{'%' if known.percent else known.unit} {'↑' if known.higher_is_better else '↓'}".lstrip()


def _head(page: TablePage, headings: Sequence[_Heading], links: bool) -> str:
    box = '<th scope="col" class="pick"><span class="vh">Compare</span></th>' if links else '<td class="pick"></td>'
    cells = "".join(_heading_cell(page, heading, number, links) for number, heading in enumerate(headings))
    return f"{_upper(page)}<tr>{box}{cells}</tr>"


def _upper(page: TablePage) -> str:
    """The line above the headings that says what several columns are, where there are several kinds of them."""
    with_card, lift_place = "card" in page.view.show, _lift_place(page)
    groups = [(title, len(list(columns))) for title, columns in groupby(_GROUPS[each.kind] for each in page.columns)]
    if lift_place is not None:
        groups.insert(sum(title in (_GROUPS[kind] for kind in _MEANS) for title, _ in groups), ("Chance", 1))
    if len(groups) < 2 and not with_card:
        return ""
    named = escape(plain(first_of(page.field.group.subsets, 4), 80))
    blind = f"{_GROUPS[BLIND]}<i>: {named}</i>"  # phones have no room for the names: the style sheet leaves them out
    spans = "".join(
        f'<th scope="colgroup" colspan="{span}">{blind if title == _GROUPS[BLIND] else title}</th>'
        for title, span in groups
    )
    card = f'<th scope="colgroup" colspan="{len(_CARD)}">Card</th>' if with_card else ""
    rate = "<td></td>" if page.codecs else ""
    return f'<tr class="upper"><td colspan="2"></td><td class="name"></td>{rate}{spans}{card}</tr>'


def _heading_cell(page: TablePage, heading: _Heading, number: int, links: bool) -> str:
    """A heading that sorts, with a small button that tells what the column is."""
    view, state = page.view, ""
    current = bool(heading.key) and view.sort == heading.key
    if current:
        descending = heading.down != (view.order == "reversed")
        state = f' aria-sort="{"descending" if descending else "ascending"}"'
    marks = f' class="{heading.kind}"' if heading.kind else ""
    text, under = escape(plain(heading.title, 40)), escape(plain(heading.under, 40))
    if links and heading.key:
        order = "reversed" if current and view.order != "reversed" else ""
        text = f'<a href="{escape(view.address(sort=heading.key, order=order))}">{text}</a>'
    if heading.words:
        about = f'<span class="vh">: what {escape(plain(heading.title, 40))} is</span>'
        long = " long" if len(heading.under) > _LONG else ""
        under = f'<button type="button" class="what{long}" popovertarget="about-{number}">{under}{about}</button>'
    # A copy without a server sorts by a script, which has to know where the best are.
    down = " data-down" if heading.down and heading.key and not links else ""
    return f'<th scope="col"{marks}{state}{down}>{text}{under}</th>'


def _abouts(headings: Sequence[_Heading]) -> str:
    """What the buttons of the headings open."""
    return "".join(
        f'<div popover id="about-{number}" class="about"><strong>{escape(plain(heading.title, 80))}</strong> '
        f"{escape(plain(heading.words, 700))}</div>"
        for number, heading in enumerate(headings)
        if heading.words
    )


def _line(
    page: TablePage, row: TableRow, forms: Sequence[_Form], audited: Mapping[int, int], links: bool, tiers: bool
) -> str:  # fmt: skip
    view = page.view
    card = row.system.card
    name = _name(card.name)
    intervals = "intervals" in view.show
    cells = [_score(cell, form, intervals) for cell, form in zip(row.cells, forms, strict=True)]
    lift_place = _lift_place(page)
    if lift_place is not None:
        cells.insert(lift_place, f'<td class="n">{_lift(row.cells[0].lift, forms[0])}</td>')
    if page.codecs:
        cells.insert(0, bitrate_cell(row.bitrate))
    if "card" in view.show:
        cells += [_fact(read(card), kind) for _, _, kind, read in _CARD]
    badge = blind_badge(audited.get(row.system.id)) if "blind" in row.provenance else ""
    box = f'<input type="checkbox" name="s" value="{escape(row.key)}" aria-label="Compare {name}">' if links else ""
    level = ' class="level"' if row.tier == 1 else ""
    rank = rank_cell(row.rank, row.rank_low, row.rank_high, row.unranked, tier=row.tier, named=tiers)
    return (
        f'<tr{level}><td class="pick">{box}</td>{rank}'
        f'<th scope="row" class="name"><a href="/b/{quote(view.board)}/s/{quote(row.system.slug)}">{_titled(card)}'
        f"{kind_badge(card, row.kind, row.isolation)}{badge}{_small(row)}</th>{''.join(cells)}</tr>"
    )


def _titled(card: SystemCard) -> str:
    """The rest of a link to a system: what people call it, with its code beside."""
    if card.title in ("", card.name):
        return f"{_name(card.name)}</a>"
    return f"{_name(card.title)}</a> <code>{_name(card.name)}</code>"


def _small(row: TableRow) -> str:
    """What stands under a name: the setting, where the scores come from, and why there is no rank; phones have room for
    the last only."""
    origins = [name for name in row.provenance if name != "blind"]
    setting = row.setting.replace("+", " + ") if row.setting != BEST else ""
    words = setting_words(row.tried, row.chosen).replace("+", " + ")
    rest = escape(" · ".join(filter(None, [setting, words, *origins])))
    if not row.why:
        return f"<small>{rest}</small>"
    more = f"<i>{rest} · </i>" if rest else ""
    return f'<small class="why">{more}{escape(plain(row.why, 90))}</small>'


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
    return _lift(lift, _form(metric))


def _lift(lift: float | None, form: _Form) -> str:
    return _DASH if lift is None else ("+" if lift > 0 else "") + _shown(lift, form)


def _fact(value: object, kind: str) -> str:
    marks = f' class="{kind}"' if kind else ""
    if value is None or value == "":
        return f'<td{marks} title="not stated"><span class="gone">{_DASH}</span></td>'
    return f"<td{marks}>{escape(plain(f'{value:g}' if isinstance(value, float) else str(value), 40))}</td>"


@lru_cache(8192)
def _name(text: str) -> str:
    return escape(plain(text, 80))


def _form(metric: str | Metric) -> _Form:
    return _Form(100.0, "%.1f") if facts(metric).percent else _Form(1.0, "%.3f")


def _shown(value: float, form: _Form) -> str:
    text = form.digits % (form.scale * value)
    if value >= 0:
        return text
    return text[1:] if not text.strip("-0.") else "−" + text[1:]


def score_cell(cell: Cell, metric: str | Metric, intervals: bool = True) -> str:
    """A score as a `<td>`: the value, its interval in small figures, and what there is to say of it as a title."""
    return _score(cell, _form(metric), intervals)


def _score(cell: Cell, form: _Form, intervals: bool) -> str:
    if cell.status == "ok" and not cell.reason and cell.heat != HEATS and cell.value is not None:
        small = ""
        if intervals and cell.low is not None and cell.high is not None:
            small = f"<small>{_shown(cell.low, form)}–{_shown(cell.high, form)}</small>"
        marks = "n" if cell.heat is None else f"n h{cell.heat}"
        return f'<td class="{marks}">{_shown(cell.value, form)}{small}</td>'
    if cell.value is None:
        text = "failed" if cell.status == "failed" else _DASH
        words = _STATUS_WORDS.get(cell.status, cell.status)
        why = words if not cell.reason or cell.reason == words else f"{words}: {cell.reason}"
        return f'<td class="n gone" title="{escape(why)}">{text}</td>'
    text = STATUS_MARKS.get(cell.status, "") + _shown(cell.value, form)
    if cell.heat == HEATS:
        text = f'<b>{text}</b><span class="vh"> best</span>'
    marks = "n" if cell.heat is None else f"n h{cell.heat}"
    small = ""
    if intervals and cell.low is not None and cell.high is not None:
        small = f"<small>{_shown(cell.low, form)}–{_shown(cell.high, form)}</small>"
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
