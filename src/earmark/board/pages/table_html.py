"""The table of a board as HTML, put together from strings: a template engine would take longer than everything else.

Every text passes `escape`; what is not escaped here is made of numbers and of words in this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from earmark.board.boards.codecs import ANCHOR, RANKED
from earmark.board.boards.columns import Column
from earmark.board.boards.lines import is_aside, lacks_subsets, reasons_at
from earmark.board.boards.table import TablePage
from earmark.board.pages.cells import CARD, lift_place
from earmark.board.pages.summaries import metric_words
from earmark.board.pages.table_lines import line_texts
from earmark.codecs.ranking import TITLES
from earmark.definitions import BLIND
from earmark.report.metric_text import facts
from earmark.scores import Metric
from earmark.tables import plain
from earmark.wording import counted, first_of

SWAPS = 'hx-boost="true" hx-target="#board" hx-select="#board" hx-swap="outerHTML show:none"'
"""What makes a script put the table of a link in the place of this one; without a script the link is a link."""
KIND_WORDS = {**TITLES, RANKED: "Ranked: isolated, as their authors state or the host has seen, or printed in a paper"}
_GROUPS = {BLIND: "Blind mean", "mean": "Means", "subset": "Subsets", "metric": "Other metrics"}
_MEANS = (BLIND, "mean")
_LONG = 12  # letters under a heading, from which on they go to a second line
_RANK_WORDS = "Two systems whose intervals overlap widely are not told apart by this board."


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
    labels = _labels(page)
    written = line_texts(page, audited or {}, links=links, tiers=_tiers_mixed(page), known=known)
    for place, label in labels.items():
        written[place] = label + written[place]
    body = "".join(written)
    swaps = f" {SWAPS}" if links else ""
    headings = _headings(page, known)
    head = f"<thead{swaps}>{_head(page, headings, links)}</thead>"
    return Markup(f"<table>{caption}{head}<tbody>{body}</tbody></table>{_abouts(headings)}")


def _labels(page: TablePage) -> dict[int, str]:
    """Lines between the lines: above those of another kind, above each tier, and above those without a rank."""
    kinds = [page.field.kinds[place] for place in page.places.tolist()]
    several = any(kind != RANKED for kind in kinds)
    labels: dict[int, str] = {}
    start = 0
    for kind, group in groupby(kinds):
        end = start + len(list(group))
        if several:
            labels[start] = _label(page, "apart", KIND_WORDS[kind])
        if kind != ANCHOR and _by_rank(page):
            for place, words in _cuts(page, slice(start, end), tiers=not _tiers_mixed(page)):
                labels[start + place] = labels.get(start + place, "") + _label(page, "tier", words)
        start = end
    return labels


def _by_rank(page: TablePage) -> bool:
    return page.view.sort == "rank" and not page.view.order


def _tiers_mixed(page: TablePage) -> bool:
    """Whether a line stands below one of a later tier, by its better mean: then each line says its tier, and no
    heading does, for it would hold lines of another tier."""
    if not _by_rank(page):
        return False
    field, places = page.field, page.places
    ranked = places[(field.ranks.rank[places] > 0) & (field.ranks.tier[places] > 0)]
    kinds, tiers = field.kind_places[ranked], field.ranks.tier[ranked]
    return bool(((kinds[:-1] == kinds[1:]) & (tiers[:-1] > tiers[1:])).any())


def _cuts(page: TablePage, lines: slice, *, tiers: bool) -> Iterator[tuple[int, str]]:
    """Where a tier begins among some lines, and where those without a rank begin, by the reason that they have."""
    places, ranks = page.places[lines], page.field.ranks
    reasons = reasons_at(page.snapshot, page.field, places)
    missing = {lacks_subsets(reason) for reason in reasons.values() if not is_aside(reason)} == {True}
    before = ""
    parts = (part[places].tolist() for part in (ranks.rank, ranks.low, ranks.tier))
    for at, (rank, low, tier) in enumerate(zip(*parts, strict=True)):
        if rank:
            # Of whose tier nothing is told stands where its mean is, under the heading above it.
            words = _tier_words(tier) if tiers and tier else before if low else ""
        elif is_aside(reasons[at]):
            words = "Shown for comparison, not ranked"
        else:
            words = "Without a rank" + (": subsets of this mean are missing" if missing else "")
        if words and words != before:
            yield at, words
        before = words


def _tier_words(tier: int) -> str:
    return "Not told apart from the best" if tier == 1 else f"Tier {tier}: surely behind somebody above"


def _label(page: TablePage, kind: str, words: str) -> str:
    width = 3 + page.codecs + len(page.columns) + (lift_place(page) is not None)
    width += len(CARD) if "card" in page.view.show else 0
    return f'<tr class="{kind}"><th scope="rowgroup" colspan="{width}"><span>{escape(words)}</span></th></tr>'


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
    if (place := lift_place(page)) is not None:
        scored.insert(place, _Heading("lift", "Lift", "n", "over chance", "The mean minus what chance reaches.", True))
    card = [_Heading(key, title, kind) for key, title, kind, _ in CARD] if "card" in page.view.show else []
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
    with_card, lifted = "card" in page.view.show, lift_place(page)
    groups = [(title, len(list(columns))) for title, columns in groupby(_GROUPS[each.kind] for each in page.columns)]
    if lifted is not None:
        groups.insert(sum(title in (_GROUPS[kind] for kind in _MEANS) for title, _ in groups), ("Chance", 1))
    if len(groups) < 2 and not with_card:
        return ""
    named = escape(plain(first_of(page.field.group.subsets, 4), 80))
    blind = f"{_GROUPS[BLIND]}<i>: {named}</i>"  # phones have no room for the names: the style sheet leaves them out
    spans = "".join(
        f'<th scope="colgroup" colspan="{span}">{blind if title == _GROUPS[BLIND] else title}</th>'
        for title, span in groups
    )
    card = f'<th scope="colgroup" colspan="{len(CARD)}">Card</th>' if with_card else ""
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
