"""The board on other people's pages: feeds of what changed, badges of systems, and tables for a frame.

All of it is for everybody, without cookies and without scripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from urllib.parse import quote

from earmark.board.boards.field import Rank
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.table import table
from earmark.board.boards.view import BoardView
from earmark.board.pages.assets import board_address, system_address
from earmark.board.pages.atom import ATOM, Entry, atom
from earmark.board.pages.boards import Items, Reader
from earmark.board.pages.summaries import rank_interval, summary
from earmark.board.pages.table_html import table_html
from earmark.board.refusals import NotFound
from earmark.board.storage.news import DEFINED, WITHDRAWN, NewsItem
from earmark.board.web.caching import Page, packed
from earmark.board.web.sharing import EMBED_POLICY, PICTURE_POLICY
from earmark.errors import UsageError
from earmark.tables import plain
from earmark.wording import counted, first_of

_MOST_NEWS = 50
_NAMED = 5
_LINES, _MOST_LINES = 10, 100
_NARROW, _WIDE = frozenset(" ijlrtfI1().,:–-"), frozenset("mwMWQO@%")
_BADGE_SECONDS = 600
_GREEN, _BLUE, _GREY = "#0b6b55", "#175b94", "#5b6874"


# --- feeds ------------------------------------------------------------------------------------------------------------


def site_feed(reader: Reader) -> Page:
    """What changed on any board that everybody finds."""
    return _feed(reader, reader.listed(), "/", reader.site_title)


def board_feed(reader: Reader, board: str) -> Page:
    """What changed on one board."""
    open_board(reader, board)
    return _feed(reader, [board], board_address(board), reader.board_title(board))


def open_board(reader: Reader, board: str) -> Snapshot:
    """A board that everybody may read: what is shown on other pages has no reader of its own."""
    snapshot = reader.source.boards.current(board)
    if snapshot.definition.private:
        raise NotFound(f'The board "{board}" is private and is not shown elsewhere.')
    return snapshot


def _feed(reader: Reader, boards: Sequence[str], page: str, title: str) -> Page:
    """The newest changes first. Each entry keeps its id for ever."""
    items = [item for board in boards for item in reader.source.news(board, _MOST_NEWS)]
    items.sort(key=lambda item: (item.at, item.id), reverse=True)
    own = f"{reader.base_url}{page.rstrip('/')}/feed.atom"
    entries = [_entry(reader, item) for item in items[:_MOST_NEWS]]
    return packed(atom(title, ("feed", page), own, reader.base_url + page, entries), ATOM)


def _entry(reader: Reader, item: NewsItem) -> Entry:
    heading = reader.board_title(item.board)
    names = first_of([name for _, name in item.systems], _NAMED)
    if item.action == DEFINED:
        title, words = f"{heading}: new definition", f"The definition of the board changed: {item.detail}."
    elif item.action == WITHDRAWN:
        title, words = f"{heading}: {names} withdrawn", f"{counted(item.rows, 'score')} of {names} no longer count."
    else:
        title = f"{heading}: {names}"
        words = f"{counted(item.rows, 'score')} of {names} accepted, {item.provenance}."
    address = board_address(item.board)
    if len(item.systems) == 1:
        address = system_address(item.board, item.systems[0][0])
    elif item.submission and item.action != WITHDRAWN:
        address = f"/submissions/{quote(item.submission)}"
    key = (item.board, str(item.id), item.action)
    return Entry(title, key, item.at, reader.base_url + address, words, item.action)


# --- badges -----------------------------------------------------------------------------------------------------------


def badge(reader: Reader, board: str, slug: str, items: Items) -> Page:
    """Where a system stands, as a small picture for its README: the rank with its interval, or the tier."""
    snapshot = open_board(reader, board)
    system = snapshot.system(slug)
    given = dict(items)
    show = given.get("show", "rank")
    if show not in ("rank", "tier"):
        raise UsageError(f'"show" is rank or tier, not "{show}".')
    view = BoardView.parse(snapshot, [(name, given[name]) for name in ("metric", "over") if name in given])
    rank = _rank(snapshot, view, slug) if view.metric else Rank()
    left = f"{snapshot.definition.heading} {view.metric}".strip()
    right = _standing(rank, show)
    colour = _GREEN if rank.tier == 1 else _BLUE if rank.rank else _GREY
    words = f"{system.card.name} on {left}: {right}"
    headers = {"cache-control": f"public, max-age={_BADGE_SECONDS}", "content-security-policy": PICTURE_POLICY}
    return packed(_badge(plain(left, 40), right, colour, words), "image/svg+xml", headers)


def _rank(snapshot: Snapshot, view: BoardView, slug: str) -> Rank:
    """The rank of a system in its best setting; none where it lacks subsets."""
    field = snapshot.field(view.metric, view.over, view.protocol)
    place = snapshot.places[slug]
    at = next((at for at, system in enumerate(field.systems.tolist()) if system == place), None)
    return Rank() if at is None else field.rank_at(at)


def _standing(rank: Rank, show: str) -> str:
    if not rank.rank:
        return "no rank"
    if show == "tier":
        return f"tier {rank.tier}" if rank.tier else "no tier"
    interval = f" ({rank_interval(rank.low, rank.high)})" if rank.low and rank.low < rank.high else ""
    return f"rank {rank.rank}{interval}"


def _badge(left: str, right: str, colour: str, words: str) -> str:
    first, second = (round(_length(text) + 12) for text in (left, right))
    whole = first + second
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" aria-label="{escape(words)}">'
        f'<title>{escape(words)}</title><rect width="{whole}" height="20" rx="3" fill="{colour}"/>'
        f'<path d="M3 0H{first}V20H3A3 3 0 0 1 0 17V3A3 3 0 0 1 3 0z" fill="#37424d"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11">'
        f'<text x="{first / 2}" y="14" textLength="{first - 12}">{escape(left)}</text>'
        f'<text x="{first + second / 2}" y="14" textLength="{second - 12}">{escape(right)}</text></g></svg>\n'
    )


def _length(text: str) -> float:
    """How long a text is in Verdana of 11 pixels, about; the browser makes it fit."""
    return sum(4.6 if mark in _NARROW else 10.0 if mark in _WIDE else 7.6 if mark.isupper() else 6.7 for mark in text)


# --- frames -----------------------------------------------------------------------------------------------------------


def embed(reader: Reader, board: str, items: Items) -> Page:
    """The first lines of a view of the table, for a frame on another page: no form, no script, no cookie."""
    snapshot = open_board(reader, board)
    lines = dict(items).get("lines", str(_LINES))
    if not (lines.isascii() and lines.isdigit() and 1 <= int(lines[:9]) <= _MOST_LINES):
        raise UsageError(f'"lines" is a number from 1 to {_MOST_LINES}, not "{lines}".')
    view = BoardView.parse(snapshot, [item for item in items if item[0] not in ("lines", "page", "per")])
    address = f"{reader.base_url}{view.address()}" if reader.base_url else view.address()
    values = {"board": board, "about": snapshot.definition, "address": address, "table": "", "summary": ""}
    if view.metric:
        shown = table(snapshot, view)
        cut = replace(shown, places=shown.places[: int(lines)])
        more = shown.total - len(cut.places)
        values |= {
            "table": table_html(cut, links=False, known=snapshot.definition.facts),
            "summary": summary(shown),
            "more": max(0, more),
        }
    headers = {"content-security-policy": EMBED_POLICY}
    return packed(reader.page("embed.html", **values), headers=headers)
