"""The reading pages as text: from a snapshot and a query to HTML and to files, without a server.

The router answers requests with them and the frozen copy writes them into a folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlencode

from markupsafe import Markup

from earmark.board.boards.analyses import Analysis
from earmark.board.boards.costs import AXES
from earmark.board.boards.groups import BLIND, subset_title
from earmark.board.boards.panels import PROVENANCES
from earmark.board.boards.snapshot import BEST, EACH, Snapshot
from earmark.board.boards.table import TablePage, facets, table
from earmark.board.boards.view import SHOWN, SIZES, BoardView
from earmark.board.pages import files
from earmark.board.pages.assets import board_address, subset_address
from earmark.board.pages.cells import (
    SWAPS,
    bitrate_cell,
    kind_badge,
    lift_text,
    rank_cell,
    rank_interval,
    score_cell,
    table_html,
)
from earmark.board.records import Submission, System
from earmark.board.web.caching import Page, packed
from earmark.report.metric_text import facts, number
from earmark.scores import Scores
from earmark.wording import counted, listed

if TYPE_CHECKING:
    from fastapi.templating import Jinja2Templates

    from earmark.board.storage import Store

Items = Sequence[tuple[str, str]]
_HISTORY = 50
_MANY = 5
"""Ranked lines of which it is worth saying that their ranks say little."""

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
    """What pages are made from. `history`, `rows` and `released` (the audit entry of each system that was measured
    blind) ask the store; a copy without one has none of them."""

    boards: Boards
    history: Callable[[str, str], Sequence[Submission]] = lambda board, slug: ()
    rows: Callable[[str, System], Scores] = lambda board, system: Scores()
    released: Callable[[str], Mapping[int, int]] = lambda board: {}
    analysis: Callable[[str], Analysis | None] = lambda board: None
    analysis_current: Callable[[str], bool] = lambda board: True


def store_source(store: Store, snapshots: Boards) -> Source:
    """What the pages of a store are made from, without an analysis."""

    def rows(board: str, system: System) -> Scores:
        live = store.live_scores(board, [system.id])
        return Scores(tuple(live.rows(board, {system.id: system.card.name})))

    def history(board: str, slug: str) -> Sequence[Submission]:
        return store.submissions(board=board, system=slug, was_accepted=True, limit=_HISTORY)

    return Source(snapshots, history, rows, store.release_numbers)


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
            "score_cell": score_cell, "rank_cell": rank_cell, "lift_text": lift_text, "subset_title": subset_title,
            "subset_address": subset_address, "bitrate_cell": bitrate_cell, "kind_badge": kind_badge,
        }  # fmt: skip
        return self._templates.get_template(name).render(**shared, **values)

    def boards(self) -> Page:
        """Every board with its leaders."""
        cards = [self._card(name) for name in self.source.boards.boards()]
        return packed(self.page("boards.html", here="boards", boards=cards))

    def words(self, name: str) -> Page:
        """A page without scores: about, rules, how-to-submit."""
        return packed(self.page(f"{name}.html", here=name))

    def _card(self, name: str) -> dict[str, Any]:
        snapshot = self.source.boards.current(name)
        shown: dict[str, Any] = {"name": name, "counts": _counts(snapshot), "leaders": []}
        if snapshot.metrics:
            page = table(snapshot, BoardView.parse(snapshot, ()))
            shown |= {"metric": page.field.metric, "over": page.field.group.words}
            for row in page.rows[:3]:
                if row.rank:
                    card, rank = row.system.card, rank_interval(row.rank_low, row.rank_high)
                    leader = {"slug": row.system.slug, "name": card.name, "title": card.title}
                    leader["value"] = number(row.cells[0].value or 0.0, page.field.metric)
                    shown["leaders"].append({**leader, "rank": f"rank {rank}" if row.rank_low else ""})
        return shown

    def board(self, board: str, items: Items = (), *, part: bool = False) -> Page:
        """The table of a board; `part`: only what a script puts in its place."""
        snapshot = self.source.boards.current(board)
        view = BoardView.parse(snapshot, items)
        values = {"board": board, "view": view, "counts": _counts(snapshot), "canonical": view.address()}
        if view.metric:
            values |= self._table_values(snapshot, table(snapshot, view))
        # A script replaces the address by the shortest one for this view.
        headers = {"hx-push-url": view.address()} if part else {}
        return packed(self.page("board_part.html" if part else "board.html", **values), headers=headers)

    def _table_values(self, snapshot: Snapshot, shown: TablePage) -> dict[str, Any]:
        view, address = shown.view, board_address(shown.view.board)
        in_use = sum(map(bool, (view.family, view.size, view.training, view.licence, view.provenance)))
        return {
            "view": view, "canonical": view.address(), "options": self.options(snapshot, view.metric),
            "table": table_html(shown, self.audited(snapshot), links=not self.frozen),
            "swaps": Markup("" if self.frozen else SWAPS),
            "total": shown.total, "pages": shown.pages, "summary": _summary(shown), "undecided": _undecided(shown),
            "reading": self._reading(shown),
            "opened": bool(in_use or view.show != BoardView.show or view.per), "chosen_filters": in_use,
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
            words = _blind_words(snapshot, groups[0].subsets, unranked)
        else:
            words = "The board ranks by its blind subsets, which only the host measures."
        return {"words": words, "link": f"Rank by the {other.words}", "address": view.address(over=other.key)}

    def _reading(self, shown: TablePage) -> str:
        """How the ranks of a table are to be read."""
        group, source = shown.field.group, shown.field.ranks.source
        if not shown.field.ranked:
            names = ", ".join(group.subsets[:6]) + (", …" if len(group.subsets) > 6 else "")
            why = f"Nobody has a rank: no system has all {len(group.subsets)} subsets of this mean ({names})."
            remedy = " Choose a single subset under “Ranked by” to rank those that have it."
            return why if self.frozen else why + remedy
        if not source:
            return "Ranks have no interval here: there are too few subsets to test over, and no row tells its error."
        tests = "paired tests over the subsets" if source == "datasets" else "the intervals of the scores"
        apart = ""
        if len(set(shown.field.kinds)) > 1:
            apart = " Codecs are ranked among those whose results rest on the same: see the lines between them."
        return (
            "Under a rank stands its 95 % interval: one plus those surely ahead to all but those surely behind, by "
            f"{tests}.{apart}"
        )

    def options(self, snapshot: Snapshot, metric: str) -> dict[str, Any]:
        offered = facets(snapshot)
        settings = [(name, name.replace("+", " + ") or "none") for name in snapshot.settings(metric)]
        several = [(BEST, "best of each system"), (EACH, "each on its own line")]
        words = {"all": "all pairs", "across_groups": "across groups"}
        return {
            "metrics": [(name, f"{name} {'↑' if facts(name).higher_is_better else '↓'}") for name in snapshot.metrics],
            "over": [(group.key, group.title) for group in snapshot.groups(metric)],
            "settings": [*several, *settings] if len(settings) > 1 else settings,
            "protocols": [(name, words.get(name, name)) for name in snapshot.protocols(metric)],
            "families": [(name, name) for name in offered.families],
            "licences": [(name, name) for name in offered.licences],
            "provenances": [(name, PROVENANCE_WORDS[name]) for name in offered.provenances],
            "sizes": [(key, words[0]) for key, words in SIZES.items()],
            "show": list(SHOWN.items()),
            "axes": [(axis.key, axis.words) for axis in AXES.values()],
        }

    def board_file(self, board: str, items: Items, kind: str) -> Page:
        """The whole table of a view as a file."""
        snapshot = self.source.boards.current(board)
        view = BoardView.parse(snapshot, [*((name, text) for name, text in items if name != "per"), ("per", "all")])
        shown = table(snapshot, view)
        about = {
            "board": board, "generation": snapshot.generation, "metric": view.metric, "over": view.over,
            "setting": view.setting, "protocol": view.protocol, "ranked": shown.field.ranked,
        }  # fmt: skip
        if kind == "tex":
            return as_file(files.table_latex(shown), kind, board)
        return records_file(files.table_records(shown), about, kind, board)


def as_query(items: Items) -> str:
    return urlencode([(name, text) for name, text in items if text])


def _counts(snapshot: Snapshot) -> str:
    if not snapshot.metrics:
        return "No accepted scores."
    subsets = counted(len(snapshot.subsets(snapshot.metrics[0])), "subset")
    return f"{counted(len(snapshot.lines_of), 'system')}, {subsets}, {counted(len(snapshot.metrics), 'metric')}."


def _blind_words(snapshot: Snapshot, averaged: Sequence[str], unranked: int) -> str:
    """Who has no rank by the blind mean, for want of which subsets, and which of the blind ones nobody measures."""
    if not unranked:
        return ""
    rest = ""
    if snapshot.offered.isdisjoint(averaged):
        rest = ", which nobody measures here"
    else:
        known = {name for panel in snapshot.panels.values() for name in panel.subsets} & snapshot.blind
        if others := sorted(known - snapshot.offered):
            rest = f" ({', '.join(others)}, which nobody measures here, {_is(len(others))} not in this mean)"
    have = "has" if unranked == 1 else "have"
    lacking = f"{counted(unranked, 'system')} {have} no figures of {listed(averaged)}{rest}"
    return f"Only the host measures blind subsets; {lacking}."


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _undecided(shown: TablePage) -> str:
    """That most lines could have any rank, said once; "" where the ranks say something."""
    field = shown.field
    ranked = [place for place, rank in enumerate(field.ranks.rank.tolist()) if rank > 0]
    among = Counter(field.kinds[place] for place in ranked)
    anywhere = sum(field.rank_at(place)[1:] == (1, among[field.kinds[place]]) for place in ranked)
    if not field.ranks.source or len(ranked) < _MANY or 2 * anywhere <= len(ranked):
        return ""
    few = counted(len(field.group.subsets), "subset")
    return (
        f"{few} cannot tell most of these systems apart: {anywhere} of {len(ranked)} could have any rank, so that the "
        "order says little."
    )


def _summary(shown: TablePage) -> str:
    field, view = shown.field, shown.view
    what = "system" if view.setting != EACH else "line"
    lines = counted(len(field.rows), what)
    first = f"{shown.total} of {lines}" if view.filtered else lines
    way = "higher" if facts(view.metric).higher_is_better else "lower"
    unit = " (%)" if facts(view.metric).percent else ""
    unranked = len(field.rows) - field.ranked
    rest = f"; {unranked} without a rank" if unranked else ""
    if shown.elsewhere:
        rest += f"; {shown.elsewhere} more {'has' if shown.elsewhere == 1 else 'have'} no {view.metric} here"
    return f"{first}, {view.metric}{unit}, {way} is better, {field.group.words}{rest}"


def as_file(text: str, kind: str, name: str) -> Page:
    """A text to be saved under a name."""
    safe = "".join(mark if mark.isascii() and (mark.isalnum() or mark in "-_.") else "-" for mark in name)
    return packed(text, TYPES[kind], {"content-disposition": f'attachment; filename="{safe}.{kind}"'})


def records_file(records: list[dict[str, Any]], about: dict[str, Any], kind: str, name: str, metric: str = "") -> Page:
    """Records in the format of a suffix: csv, json or tex."""
    if kind == "tex":
        return as_file(files.records_latex(records, f"{name}: {metric}", metric), kind, name)
    return as_file(files.to_csv(records) if kind == "csv" else files.to_json(about, records), kind, name)
