"""The reading pages as text: from a snapshot and a query to HTML and to files, without a server.

The router answers requests with them and the frozen copy writes them into a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlencode

from markupsafe import Markup

from earmark.board.boards.analyses import Analysis
from earmark.board.boards.chosen import is_chosen
from earmark.board.boards.contents import BEST, EACH
from earmark.board.boards.costs import AXES
from earmark.board.boards.isolation import isolation_words
from earmark.board.boards.panels import PROVENANCES
from earmark.board.boards.snapshot import Snapshot
from earmark.board.boards.table import TablePage, facets, table
from earmark.board.boards.view import SHOWN, SIZES, BoardView
from earmark.board.pages import files
from earmark.board.pages.assets import board_address, subset_address
from earmark.board.pages.cells import bitrate_cell, kind_badge, lift_text, rank_cell, score_cell
from earmark.board.pages.choosing import TICKED, subset_boxes
from earmark.board.pages.markdown import markdown, titled
from earmark.board.pages.metric_words import titled_metric
from earmark.board.pages.previews import Preview, picture_address, table_preview
from earmark.board.pages.summaries import (
    blind_words,
    counts,
    leader,
    metric_words,
    rank_interval,
    ranks_read,
    summary,
    told_apart,
)
from earmark.board.pages.table_html import SWAPS, table_html
from earmark.board.records import HistoryLine, Submission, System
from earmark.board.refusals import NotFound
from earmark.board.web.caching import Page, packed
from earmark.definitions import BLIND
from earmark.scores import Metric, Scores

if TYPE_CHECKING:
    from fastapi.templating import Jinja2Templates

    from earmark.board.storage import Store
    from earmark.board.storage.definitions import Version
    from earmark.board.storage.news import NewsItem

Items = Sequence[tuple[str, str]]
_MOST_MEANS = 300  # that a form offers; others can be named in the address
_HISTORY = 50

PROVENANCE_WORDS = {name: name for name in PROVENANCES} | {
    "printed": "printed in a paper",
    "reproduced": "reproduced here",
}
TYPES = {
    "csv": "text/csv; charset=utf-8", "json": "application/json", "tex": "application/x-tex; charset=utf-8",
    "bib": "application/x-bibtex; charset=utf-8",
}  # fmt: skip


class Boards(Protocol):
    """Whatever has snapshots: `Snapshots` of a store, or a few that were made from score tables."""

    def boards(self) -> tuple[str, ...]: ...

    def current(self, board: str) -> Snapshot: ...


class Source(NamedTuple):
    """What pages are made from. `history`, `rows`, `released` (the audit entry of each system that was measured
    blind), `changed` (when scores of a board were accepted last) and `changes` (of a system beside its scores) ask
    the store; a copy without one has none."""

    boards: Boards
    history: Callable[[str, str], Sequence[Submission]] = lambda board, slug: ()
    rows: Callable[[str, System], Scores] = lambda board, system: Scores()
    released: Callable[[str], Mapping[int, int]] = lambda board: {}
    changed: Callable[[str], datetime | None] = lambda board: None
    news: Callable[[str, int], Sequence[NewsItem]] = lambda board, limit: ()
    changes: Callable[[str, str], Sequence[HistoryLine]] = lambda board, slug: ()
    definitions: Callable[[str], Sequence[Version]] = lambda board: ()
    analysis: Callable[[str], Analysis | None] = lambda board: None
    analysis_current: Callable[[str], bool] = lambda board: True


def store_source(store: Store, snapshots: Boards) -> Source:
    """What the pages of a store are made from, without an analysis."""

    def rows(board: str, system: System) -> Scores:
        live = store.live_scores(board, [system.id])
        return Scores(tuple(live.rows(board, {system.id: system.card.name})))

    def history(board: str, slug: str) -> Sequence[Submission]:
        return store.submissions(board=board, system=slug, was_accepted=True, limit=_HISTORY)

    def changed(board: str) -> datetime | None:
        last = store.submissions(board=board, state="accepted", limit=1)
        return last[0].decided if last else None

    return Source(
        snapshots, history, rows, store.release_numbers, changed, store.news, store.changes_of, store.definitions
    )


class Reader:
    """Makes pages. `frozen` is the date of a copy that has no server behind it."""

    def __init__(self, source: Source, templates: Jinja2Templates, *, base_url: str = "", frozen: str = "") -> None:
        self.source = source
        self.frozen = frozen
        self.base_url = base_url
        self._templates = templates

    def based(self, base_url: str) -> Reader:
        """The same under another address of the site."""
        return Reader(self.source, self._templates, base_url=base_url, frozen=self.frozen)

    def page(self, name: str, **values: Any) -> str:
        """A template with what all reading pages pass."""
        shared = {
            "frozen": self.frozen, "provenance_words": PROVENANCE_WORDS, "base_url": self.base_url or "ADDRESS",
            "score_cell": score_cell, "rank_cell": rank_cell, "lift_text": lift_text, "subset_title": self.subset_title,
            "facts_of": self.facts_of, "metric_name": self.metric_name,
            "board_title": self.board_title, "rank_interval": rank_interval,
            "subset_address": subset_address, "bitrate_cell": bitrate_cell, "kind_badge": kind_badge,
            "isolation_of": self.isolation_of,
        }  # fmt: skip
        return self._templates.get_template(name).render(**shared, **values)

    def subset_title(self, board: str, subset: str) -> str:
        """What a subset is, in words, where its board says it."""
        return self.source.boards.current(board).definition.subset(subset).note

    def facts_of(self, board: str, metric: str) -> Metric:
        """What a board knows of a metric."""
        return self.source.boards.current(board).definition.facts(metric)

    def isolation_of(self, board: str, slug: str) -> str:
        """Whose word it is that a codec was isolated: "stated", "confirmed", or "" for what is ranked otherwise."""
        snapshot = self.source.boards.current(board)
        return isolation_words(snapshot)[snapshot.places[slug]]

    def metric_name(self, board: str, metric: str) -> Markup:
        """A metric by the host's title, its name beside it."""
        return titled_metric(self.source.boards.current(board).definition, metric)

    def board_title(self, board: str) -> str:
        """What people call a board."""
        return self.source.boards.current(board).definition.heading

    def boards(self) -> Page:
        """Every board with its leaders."""
        cards = [self._card(name) for name in self.listed()]
        told = [f"{card['title']}: {card['leader']}" for card in cards if card["leader"]]
        words = " ".join(told) or "Scores of frozen audio models and codecs, with their intervals."
        return packed(self.page("boards.html", here="boards", boards=cards, preview=self.preview("", words, "/")))

    def listed(self) -> list[str]:
        """The boards that everybody finds: neither hidden nor private."""
        named = [(name, self.source.boards.current(name).definition) for name in self.source.boards.boards()]
        return [name for name, about in named if about.state != "hidden" and not about.private]

    def host_text(self, name: str) -> Page:
        """A page that the host wrote: imprint, privacy."""
        text = self._templates.env.globals["host_texts"]().get(name)  # type: ignore[operator]
        if not text:
            raise NotFound("There is nothing at this address.")
        heading, rest = titled(text)
        return packed(self.page("host_text.html", here=name, heading=heading or name.capitalize(), text=rest))

    def words(self, name: str) -> Page:
        """A page without scores: about, rules, how-to-submit."""
        return packed(self.page(f"{name}.html", here=name))

    @property
    def site_title(self) -> str:
        return str(self._templates.env.globals["title"])

    def preview(self, title: str, description: str, path: str, board: str = "") -> Preview:
        """What other sites show of a link to a page; without a title of its own, that of the site. With the picture of
        the board that it is of."""
        address = f"{self.base_url}{path}" if self.base_url else ""
        picture = picture_address(self.source.boards.current(board), self.base_url) if board else ""
        return Preview(title or self.site_title, description, address, picture=picture)

    def _card(self, name: str) -> dict[str, Any]:
        """A board on the front page: what it is, its leaders, when it changed last, until when it takes scores."""
        snapshot = self.source.boards.current(name)
        about = snapshot.definition
        shown: dict[str, Any] = {
            "name": name, "title": about.heading, "about": about, "counts": counts(snapshot), "leaders": [],
            "leader": "", "changed": self.source.changed(name),
        }  # fmt: skip
        if snapshot.metrics:
            page = table(snapshot, BoardView.parse(snapshot, ()))
            shown |= {
                "metric": page.field.metric, "over": page.field.group.words, "told_apart": told_apart(page),
                "leader": leader(snapshot, page.field),
                "leaders": [row for row in replace(page, places=page.places[:3]).rows if row.rank],
                "columns": page.columns,
            }  # fmt: skip
        return shown

    def board(self, board: str, items: Items = (), *, part: bool = False) -> Page:
        """The table of a board; `part`: only what a script puts in its place."""
        snapshot = self.source.boards.current(board)
        ticked = next((text for name, text in items if name == "subset" and text in TICKED), "")
        view = BoardView.parse(snapshot, [item for item in items if item != ("subset", ticked)])
        about = snapshot.definition
        values: dict[str, Any] = {"board": board, "view": view, "counts": counts(snapshot), "about": about}
        values["shared_query"] = "" if self.frozen else shared_query(view)
        if view.metric:
            shown = table(snapshot, view)
            values |= self._table_values(snapshot, shown)
            values |= {"preview": table_preview(snapshot, shown, self.base_url), "text": markdown(about.text, level=3)}
            values |= {"boxes": subset_boxes(snapshot, view, ticked), "boxes_open": bool(ticked)}
        # A script replaces the address by the shortest one for this view.
        headers = {"hx-push-url": view.address()} if part else {}
        return packed(self.page("board_part.html" if part else "board.html", **values), headers=headers)

    def _table_values(self, snapshot: Snapshot, shown: TablePage) -> dict[str, Any]:
        view, address = shown.view, board_address(shown.view.board)
        known = snapshot.definition.facts
        options = self.options(snapshot, view.metric, view.over)
        return {
            "view": view, "options": options, "metric_words": metric_words(known(view.metric)),
            "host_title": snapshot.definition.metric_title(view.metric),
            "metric_title": known(view.metric).title, "metric_paper": known(view.metric).paper,
            "table": table_html(shown, self.audited(snapshot), links=not self.frozen, known=known),
            "swaps": Markup("" if self.frozen else SWAPS),
            "total": shown.total, "pages": shown.pages, "summary": summary(shown),
            "reading": ranks_read(shown, choosable=not self.frozen),
            "in_use": _in_use(view, options), "carried": parse_qsl(view.query(over=view.plain["over"])),
            "chosen_over": len(shown.field.group.subsets) if is_chosen(view.over) else 0,
            "tick_all": _with(view.address(), "subset=all"), "tick_none": _with(view.address(), "subset=none"),
            "download_address": address if not self.frozen else f"{address}/{view.metric}",
            "download_query": view.query(page=1, per=""),
            "beside": self._beside(snapshot, shown),
            "metric_pages": [(name, f"{address}?metric={name}") for name in snapshot.metrics],
        }  # fmt: skip

    def audited(self, snapshot: Snapshot) -> Mapping[int, int]:
        """The audit entry of each system that was measured blind; none in a copy, which has no such pages."""
        return {} if self.frozen else self.source.released(snapshot.board)

    def _beside(self, snapshot: Snapshot, shown: TablePage) -> dict[str, str] | None:
        """Where systems without blind figures are ranked, when this table is ranked by the blind ones; or back."""
        view, groups = shown.view, snapshot.groups(shown.view.metric)
        if self.frozen or groups[0].key != BLIND or view.over not in (BLIND, snapshot.public_group(view.metric).key):
            return None
        other = groups[0] if view.over != BLIND else snapshot.public_group(view.metric)
        if other.key == view.over:
            return None
        unranked = len(shown.field.rows) - shown.field.ranked
        if view.over == BLIND:
            words = blind_words(snapshot, groups[0].subsets, unranked)
        else:
            words = "The board ranks by its blind subsets, which only the host measures."
        return {"words": words, "link": f"Rank by the {other.words}", "address": view.address(over=other.key)}

    def options(self, snapshot: Snapshot, metric: str, over: str = "") -> dict[str, Any]:
        """What the forms of a board offer; the mean `over` subsets of a reader's choice is one of the means."""
        offered, groups = facets(snapshot), snapshot.groups(metric)[:_MOST_MEANS]
        if over and over not in {group.key for group in groups}:
            groups = (*groups, snapshot.group(metric, over))
        settings = [(name, name.replace("+", " + ") or "none") for name in snapshot.settings(metric)]
        several = [(BEST, "best of each system"), (EACH, "each on its own line")]
        words = {"all": "all pairs", "across_groups": "across groups"}
        return {
            "metrics": [(name, _metric_words(snapshot, name)) for name in snapshot.metrics],
            "over": [(group.key, group.title) for group in groups],
            "settings": [*several, *settings] if len(settings) > 1 else settings,
            "protocols": [(name, words.get(name, name)) for name in snapshot.protocols(metric)],
            "families": [(name, name) for name in offered.families],
            "licences": [(name, name) for name in offered.licences],
            "provenances": [(name, PROVENANCE_WORDS[name]) for name in offered.provenances],
            "sizes": [(key, words[0]) for key, words in SIZES.items()],
            "show": list(SHOWN.items()),
            "tiers": [("1", "not told apart from the best")],
            "axes": [(axis.key, axis.words) for axis in AXES.values()],
        }

    def board_file(self, board: str, items: Items, kind: str) -> Page:
        """The whole table of a view as a file."""
        snapshot = self.source.boards.current(board)
        view = BoardView.parse(snapshot, [*((name, text) for name, text in items if name != "per"), ("per", "all")])
        shown = table(snapshot, view, whole=True)
        about = {
            "board": board, "generation": snapshot.generation, "metric": view.metric, "over": view.over,
            "setting": view.setting, "protocol": view.protocol, "ranked": shown.field.ranked,
        }  # fmt: skip
        if kind == "tex":
            return as_file(files.table_latex(shown), kind, board)
        if kind == "csv":
            return as_file(files.table_csv(shown), kind, board)
        return records_file(files.table_records(shown), about, kind, board)


_FILTERS = {
    "family": ("Family", "families"), "size": ("Parameters", "sizes"), "training": ("Training-free", ""),
    "licence": ("Licence", "licences"), "provenance": ("Provenance", "provenances"), "tier": ("", "tiers"),
}  # fmt: skip
"""The filters of a table: what they are called, and under which name their choices are offered."""


def _in_use(view: BoardView, options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The filters of a view in words, each with the address of the view without it."""
    found = []
    for name, (title, offered) in _FILTERS.items():
        if chosen := getattr(view, name):
            words = dict(options.get(offered, ())).get(chosen, chosen)
            found.append((f"{title}: {words}".removeprefix(": "), view.address(**{name: ""})))
    return found


def shared_query(view: BoardView) -> str:
    """What other pages of the board take over from its table: metric, mean, protocol and setting."""
    plain = BoardView(view.board, view.metric, view.over, view.setting, view.protocol, plain=view.plain)
    return plain.query() if view.metric else ""


def _metric_words(snapshot: Snapshot, name: str) -> str:
    """A metric in a list to choose from: its spelling, what it is called, and its direction."""
    known = snapshot.definition.facts(name)
    title = f" {known.title}" if known.title else ""
    return f"{name}{title} {'↑' if known.higher_is_better else '↓'}"


def _with(address: str, query: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}{query}"


def as_query(items: Items) -> str:
    return urlencode([(name, text) for name, text in items if text])


def as_file(text: str, kind: str, name: str) -> Page:
    """A text to be saved under a name."""
    safe = "".join(mark if mark.isascii() and (mark.isalnum() or mark in "-_.") else "-" for mark in name)
    return packed(text, TYPES[kind], {"content-disposition": f'attachment; filename="{safe}.{kind}"'})


def records_file(records: list[dict[str, Any]], about: dict[str, Any], kind: str, name: str, metric: str = "") -> Page:
    """Records in the format of a suffix: csv, json or tex."""
    if kind == "tex":
        return as_file(files.records_latex(records, f"{name}: {metric}", metric), kind, name)
    return as_file(files.to_csv(records) if kind == "csv" else files.to_json(about, records), kind, name)
