"""The lines of a table as HTML, written column by column.

What a line says of its system is written once for each snapshot, whatever the table is sorted by and ranked by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from earmark.board.boards.lines import LineHead, heads_at, reasons_at, setting_words, why_unranked
from earmark.board.boards.memory import made_once
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.table import TablePage
from earmark.board.pages.cells import (
    CARD,
    bitrate_cell,
    blind_badge,
    card_fact,
    kind_badge,
    lift_place,
    lift_text,
    rank_cell,
    shown_name,
)
from earmark.board.pages.score_texts import score_parts
from earmark.definitions import BEST
from earmark.scores import Metric
from earmark.submissions import SystemCard
from earmark.tables import plain


class _HeadText(NamedTuple):
    """What is written of a line's system: the box before its rank, and its name with what stands under it."""

    box: str
    name: str
    under: str


def line_texts(
    page: TablePage, audited: Mapping[int, int], *, links: bool, tiers: bool, known: Callable[[str], Metric]
) -> list[str]:
    """Every line of a table as a `<tr>`; `tiers`: each says its tier. `audited` as for `table_html`.

    Lines of one state of a table are the same however it is sorted, searched or paged: each is written once.
    """
    shown = tuple(name for name in page.view.show if name in ("intervals", "lift", "card"))
    state = ("lines", page.field, page.columns, shown, links, tiers, tuple(audited.items()))
    texts: dict[int, str] = page.snapshot.few(state, dict)
    places = page.places.tolist()
    missing = [place for place in places if place not in texts]
    if missing:
        part = replace(page, places=np.array(missing, np.int64))
        texts |= zip(missing, _written_lines(part, audited, links, tiers, known), strict=True)
    return [texts[place] for place in places]


def _written_lines(
    page: TablePage, audited: Mapping[int, int], links: bool, tiers: bool, known: Callable[[str], Metric]
) -> list[str]:
    heads = heads_at(page.snapshot, page.field, page.places)
    reasons = reasons_at(page.snapshot, page.field, page.places)
    ranks = [part[page.places].tolist() for part in page.field.ranks[:4]]
    levels = ['<tr class="level"><td class="pick">' if tier == 1 else '<tr><td class="pick">' for tier in ranks[3]]
    ranked = [
        rank_cell(rank, low, high, "" if rank else reasons[at], tier=tier, named=tiers)
        for at, (rank, low, high, tier) in enumerate(zip(*ranks, strict=True))
    ]
    boxes, names, under = _head_parts(page.snapshot, heads, audited, links)
    for at, reason in reasons.items():
        under[at] = _with_reason(under[at], reason)
    parts = [levels, boxes, ranked, names, under]
    if page.codecs:
        parts.append([bitrate_cell(head.bitrate) for head in heads])
    parts += _scores(page, known)
    if "card" in page.view.show:
        facts = _facts(page.snapshot)
        parts.append([facts(head.system.card) for head in heads])
    parts.append(["</tr>"] * len(heads))
    return list(map("".join, zip(*parts, strict=True)))


def _scores(page: TablePage, known: Callable[[str], Metric]) -> list[list[str]]:
    """The parts of all cells of scores, with the lift over chance where it is shown."""
    intervals, parts = "intervals" in page.view.show, []
    for column, scored in zip(page.columns, page.scored, strict=True):
        parts.append(score_parts(scored, known(column.metric), intervals))
    if (place := lift_place(page)) is not None:
        metric = known(page.columns[0].metric)
        lifts = (None if lift != lift else lift for lift in page.scored[0].lift.tolist())
        parts.insert(place, [[f'<td class="n">{lift_text(lift, metric)}</td>' for lift in lifts]])
    return [texts for part in parts for texts in part]


@made_once
def _head_texts(snapshot: Snapshot) -> dict[object, _HeadText]:
    """What was written of lines of this snapshot."""
    return {}


def _head_parts(
    snapshot: Snapshot, heads: Sequence[LineHead], audited: Mapping[int, int], links: bool
) -> tuple[list[str], list[str], list[str]]:
    """Boxes, names and what stands under them, of some lines; each is written once."""
    written, texts = _head_texts(snapshot), []
    for head in heads:
        entry = audited.get(head.system.id) if audited else None
        key = (head.line, head.chosen, head.tried, head.provenance, head.kind, entry, links)
        text = written.get(key)
        if text is None:
            text = written[key] = _written_head(snapshot.board, head, entry, links)
        texts.append(text)
    return [text.box for text in texts], [text.name for text in texts], [text.under for text in texts]


def _written_head(board: str, head: LineHead, entry: int | None, links: bool) -> _HeadText:
    card = head.system.card
    name = shown_name(card.name)
    badge = blind_badge(entry) if "blind" in head.provenance else ""
    box = f'<input type="checkbox" name="s" value="{escape(head.key)}" aria-label="Compare {name}">' if links else ""
    badges = kind_badge(card, head.kind, head.isolation) + badge
    address = f"/b/{quote(board)}/s/{quote(head.system.slug)}"
    named = f'<th scope="row" class="name"><a href="{address}">{_titled(card)}{badges}'
    return _HeadText(f"{box}</td>", named, f"<small>{_under(head)}</small></th>")


def _titled(card: SystemCard) -> str:
    """The rest of a link to a system: what people call it, with its code beside."""
    if card.title in ("", card.name):
        return f"{shown_name(card.name)}</a>"
    return f"{shown_name(card.title)}</a> <code>{shown_name(card.name)}</code>"


def _under(head: LineHead) -> str:
    """What stands under a name: the setting, and where the scores come from."""
    origins = [name for name in head.provenance if name != "blind"]
    setting = head.setting.replace("+", " + ") if head.setting != BEST else ""
    words = setting_words(head.tried, head.chosen).replace("+", " + ")
    return escape(" · ".join(filter(None, [setting, words, *origins])))


def _with_reason(under: str, unranked: str) -> str:
    """The same with why there is no rank; phones have room for that only."""
    rest = under.removeprefix("<small>").removesuffix("</small></th>")
    more = f"<i>{rest} · </i>" if rest else ""
    return f'<small class="why">{more}{escape(plain(why_unranked(unranked), 90))}</small></th>'


@made_once
def _facts(snapshot: Snapshot) -> Callable[[SystemCard], str]:
    """What is written of the facts of a card, once for each."""
    texts: dict[int, str] = {}

    def written(card: SystemCard) -> str:
        text = texts.get(id(card))
        if text is None:
            text = texts[id(card)] = "".join(card_fact(read(card), kind) for _, _, kind, read in CARD)
        return text

    return written
