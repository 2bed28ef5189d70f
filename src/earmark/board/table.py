"""The table of a board in one view: which lines, in which order, with which columns and cells.

Pages, downloads and the API all take it from here, so that they agree. Ranks belong to the whole field (every system
under the same metric, mean, protocol and setting); a filter or a search leaves lines out and changes no rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.board.groups import subset_title
from earmark.board.means import Means
from earmark.board.panels import OK, PROVENANCES, STATUSES, Line
from earmark.board.records import System
from earmark.board.snapshot import Field, Snapshot
from earmark.board.view import PER_PAGE, SIZES, BoardView
from earmark.errors import UsageError
from earmark.report.reading import facts, plain
from earmark.scores import WITH_VALUE

__all__ = ["Cell", "Column", "Facets", "TablePage", "TableRow", "facets", "mean_cell", "table"]

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

HEATS = 8


class Column(NamedTuple):
    """A column of scores. `key` sorts by it; `kind` is mean, subset or metric."""

    key: str
    title: str
    kind: str
    metric: str
    help: str = ""
    subset: str = ""


class Cell(NamedTuple):
    """A score as a table shows it. `status` "" is a cell without a row; `heat` places it between worst and best."""

    value: float | None
    low: float | None = None
    high: float | None = None
    lift: float | None = None
    status: str = ""
    reason: str = ""
    heat: int | None = None


class TableRow(NamedTuple):
    """A line of the table. A rank of 0 is none, for the reason that `unranked` gives."""

    line: int
    system: System
    setting: str
    protocol: str
    rank: int
    rank_low: int
    rank_high: int
    unranked: str
    provenance: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def key(self) -> str:
        """What names the line in addresses: the system's slug and its setting."""
        return f"{self.system.slug}:{self.setting}" if self.setting else self.system.slug


class TablePage(NamedTuple):
    """One page of a table in one view."""

    view: BoardView
    field: Field
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    total: int  # lines that the filters leave
    pages: int
    lifted: bool  # whether any line has a lift over chance
    elsewhere: int  # systems of the board without a value of this metric, setting and protocol


class Facets(NamedTuple):
    """What the filters of a board offer."""

    families: tuple[str, ...]
    licences: tuple[str, ...]
    provenances: tuple[str, ...]


def facets(snapshot: Snapshot) -> Facets:
    """The families, licences and kinds of provenance that the board has."""

    def make() -> Facets:
        shown = {line.system for line in snapshot.lines}
        cards = [snapshot.systems[place].card for place in sorted(shown)]
        codes = {code for panel in snapshot.panels.values() for code in np.unique(panel.provenance).tolist()}
        return Facets(
            tuple(sorted({card.family for card in cards if card.family}, key=str.casefold)),
            tuple(sorted({card.licence for card in cards if card.licence}, key=str.casefold)),
            tuple(name for code, name in enumerate(PROVENANCES) if code and code in codes),
        )

    return snapshot.once("facets", make)


def table(snapshot: Snapshot, view: BoardView) -> TablePage:
    """The lines of one page of a view; all of them with `per="all"`."""
    field = snapshot.field(view.metric, view.over, view.protocol, view.setting)
    lines = snapshot.panel(view.metric).lines[field.rows]
    kept = _kept(snapshot, view, field, lines)
    order = kept[_order(snapshot, view, field, lines[kept], kept)]
    pages = max(1, math.ceil(len(order) / PER_PAGE)) if not view.per else 1
    page = min(view.page, pages)
    chosen = order if view.per else order[(page - 1) * PER_PAGE : page * PER_PAGE]
    columns = _columns(snapshot, view)
    return TablePage(
        replace(view, page=page),
        field,
        columns,
        _rows(snapshot, view, field, lines, chosen, columns),
        len(order),
        pages,
        bool(np.isfinite(field.means.lift).any()),
        snapshot.ranked_systems - len({snapshot.lines[line].system for line in lines.tolist()}),
    )


# --- which lines, in which order ----------------------------------------------------------------------------------


def _kept(snapshot: Snapshot, view: BoardView, field: Field, lines: Whole) -> Whole:
    """The places in the field that the filters leave."""
    tests: list[Callable[[System], bool]] = []
    if view.family:
        tests.append(lambda system: system.card.family == view.family)
    if view.licence:
        tests.append(lambda system: system.card.licence == view.licence)
    if view.training:
        wanted = {"yes": True, "no": False, "unknown": None}[view.training]
        tests.append(lambda system: system.card.training_free is wanted)
    if view.size:
        _, least, below = SIZES[view.size]
        tests.append(lambda system: _sized(system.card.parameters_m, view.size, least, below))
    if view.q:
        words = view.q.casefold().split()
        hay = snapshot.once("haystack", lambda: [_searched(system) for system in snapshot.systems])
        places = snapshot.places
        tests.append(lambda system: all(word in hay[places[system.slug]] for word in words))
    keep = np.ones(len(lines), bool)
    if tests:
        verdict: dict[int, bool] = {}
        for number, line in enumerate(lines.tolist()):
            place = snapshot.lines[line].system
            if place not in verdict:
                verdict[place] = all(test(snapshot.systems[place]) for test in tests)
            keep[number] = verdict[place]
    if view.provenance:
        panel = snapshot.panel(view.metric)
        keep &= (panel.provenance[field.rows] == PROVENANCES.index(view.provenance)).any(axis=1)
    return np.flatnonzero(keep)


def _sized(parameters: float | None, name: str, least: float, below: float) -> bool:
    return parameters is None if name == "unknown" else parameters is not None and least <= parameters < below


def _searched(system: System) -> str:
    card = system.card
    return "\n".join(
        [card.name, card.title, card.family, card.description, *card.authors, *card.pretraining]
    ).casefold()


def _order(snapshot: Snapshot, view: BoardView, field: Field, lines: Whole, kept: Whole) -> Whole:
    """The order of the kept lines: by the view's column, missing last, then by rank, mean and name."""
    reverse = view.order == "reversed"
    by_rank = _missing_last(np.where(field.ranks.rank[kept] > 0, field.ranks.rank[kept], np.nan).astype(float), False)
    mean = _turned(field.means.value[kept], view.metric)
    more = -field.means.have[kept].astype(float)
    if view.sort in ("name", "family"):
        of = [snapshot.systems[snapshot.lines[line].system].card for line in lines.tolist()]
        names = [(card.name if view.sort == "name" else card.family).casefold() for card in of]
        ranked = {name: float(place) for place, name in enumerate(sorted(set(names), reverse=reverse))}
        first = np.array([ranked[name] for name in names])
    elif view.sort == "rank":
        best = np.lexsort((_missing_last(mean, False), more, by_rank))
        if not reverse:
            return best
        ranks = field.ranks.rank[kept]
        first = _missing_last(np.where(ranks > 0, ranks, np.nan).astype(float), True)
    else:
        first = _missing_last(_sorted_by(snapshot, view, field, lines, kept), reverse)
    return np.lexsort((_missing_last(mean, False), more, by_rank, first))


def _turned(values: Floats, metric: str) -> Floats:
    return -values if facts(metric).higher_is_better else values


def _missing_last(values: Floats, reverse: bool) -> Floats:
    return np.where(np.isfinite(values), -values if reverse else values, np.inf)


def _sorted_by(snapshot: Snapshot, view: BoardView, field: Field, lines: Whole, kept: Whole) -> Floats:
    """What the view sorts by, smallest first."""
    kind, _, name = view.sort.partition(":")
    if view.sort in _FACTS:
        cards = [snapshot.systems[snapshot.lines[line].system].card for line in lines.tolist()]
        return np.array([getattr(card, _FACTS[view.sort]) for card in cards], np.float64)
    if view.sort == "lift":
        return _turned(field.means.lift[kept], view.metric)
    if kind == "mean":
        group = snapshot.group(view.metric, name)
        return _turned(snapshot.means(view.metric, group).value[field.rows[kept]], view.metric)
    if kind == "subset" and name in snapshot.panel(view.metric).subsets:
        panel = snapshot.panel(view.metric)
        return _turned(panel.measured()[field.rows[kept], panel.subsets.index(name)], view.metric)
    if kind == "metric" and name in snapshot.panels:
        return _turned(_means_of(snapshot, name, lines).value, name)
    raise UsageError(f'The table has no column "{view.sort}" to sort by; try rank, name, parameters or subset:NAME.')


_FACTS = {"parameters": "parameters_m", "rtf": "real_time_factor", "kbps": "kbps", "year": "year"}


def _means_of(snapshot: Snapshot, metric: str, lines: Whole) -> Means:
    """The means of another metric, over its leading group, for some lines of the snapshot."""
    return snapshot.means(metric, snapshot.group(metric)).take(snapshot.rows_of_lines(metric)[lines])


# --- columns and cells --------------------------------------------------------------------------------------------


def _columns(snapshot: Snapshot, view: BoardView) -> tuple[Column, ...]:
    metric = view.metric
    group = snapshot.group(metric, view.over)
    found = [Column(f"mean:{group.key}", group.short, "mean", metric, _help(group.title, group.subsets))]
    if "domains" in view.show and not group.narrow:
        found += [
            Column(f"mean:{other.key}", other.short, "mean", metric, _help(other.title, other.subsets))
            for other in snapshot.groups(metric)
            if other.key != group.key and not other.single
        ]
    if "subsets" in view.show and len(snapshot.subsets(metric)) > 1:
        inside = set(group.subsets)
        names = [] if group.single else [*group.subsets]
        if not group.narrow:
            names += [name for name in snapshot.subsets(metric) if name not in inside]
        found += [
            Column(f"subset:{name}", name, "subset", metric, subset_title(snapshot.board, name), name) for name in names
        ]
    if "metrics" in view.show:
        found += [
            Column(f"metric:{name}", name, "metric", name, f"{name}: {snapshot.group(name).title.lower()}")
            for name in snapshot.metrics
            if name != metric
        ]
    return tuple(found)


def _help(title: str, subsets: Sequence[str]) -> str:
    return f"{title}: {', '.join(subsets)}" if len(subsets) > 1 else title


def _rows(
    snapshot: Snapshot, view: BoardView, field: Field, lines: Whole, chosen: Whole, columns: Sequence[Column]
) -> tuple[TableRow, ...]:
    cells = [_cells(snapshot, field, lines, chosen, column) for column in columns]
    by_line = list(zip(*cells, strict=True)) if len(chosen) else []
    origins = _origins(snapshot, view.metric, field)
    made = []
    for place, scored in zip(chosen.tolist(), by_line, strict=True):
        line: Line = snapshot.lines[lines[place]]
        rank = int(field.ranks.rank[place])
        made.append(
            TableRow(
                int(lines[place]),
                snapshot.systems[line.system],
                line.setting,
                line.protocol,
                rank,
                int(field.ranks.low[place]),
                int(field.ranks.high[place]),
                "" if rank else _lacking(snapshot, field, place),
                origins[place],
                scored,
            )
        )
    return tuple(made)


def _origins(snapshot: Snapshot, metric: str, field: Field) -> list[tuple[str, ...]]:
    """Where the scores of each line come from."""
    panel = snapshot.panel(metric)
    bits = np.bitwise_or.reduce(np.left_shift(1, panel.provenance[field.rows].astype(np.int64)), axis=1)
    words = {
        code: tuple(name for place, name in enumerate(PROVENANCES) if place and code >> place & 1)
        for code in np.unique(bits).tolist()
    }
    return [words[code] for code in bits.tolist()]


def _lacking(snapshot: Snapshot, field: Field, place: int) -> str:
    panel = snapshot.panel(field.metric)
    values = panel.measured()[field.rows[place]]
    gone = [name for name in field.group.subsets if not np.isfinite(values[panel.subsets.index(name)])]
    shown = ", ".join(gone[:6]) + (f" and {len(gone) - 6} more" if len(gone) > 6 else "")
    return f"no rank: {field.means.have[place]} of {field.means.wanted} subsets; without {shown}"


def _cells(snapshot: Snapshot, field: Field, lines: Whole, chosen: Whole, column: Column) -> list[Cell]:
    if column.kind == "subset":
        return _subset_cells(snapshot, field, chosen, column)
    if column.kind == "metric":
        of = _means_of(snapshot, column.metric, lines)
    else:
        every = snapshot.means(column.metric, snapshot.group(column.metric, column.key.partition(":")[2]))
        of = every.take(field.rows)
    shades = _heats(of.value, of.complete(), column.metric, chosen)
    numbers = (part[chosen].tolist() for part in (of.value, of.low, of.high, of.lift, of.have))
    return [
        _mean(value, low, high, lift, have, heat, of.wanted)
        for (value, low, high, lift, have), heat in zip(zip(*numbers, strict=True), shades, strict=True)
    ]


def mean_cell(of: Means, place: int) -> Cell:
    """A mean as a cell: "partial" where subsets are missing."""
    value, low, high, lift = (float(part[place]) for part in (of.value, of.low, of.high, of.lift))
    return _mean(value, low, high, lift, int(of.have[place]), None, of.wanted)


def _mean(value: float, low: float, high: float, lift: float, have: int, heat: int | None, wanted: int) -> Cell:
    if not have:
        return Cell(None, reason="none of its subsets")
    partial = have < wanted
    return Cell(
        value, None if low != low else low, None if high != high else high, None if lift != lift else lift,
        "partial" if partial else "ok", f"mean of {have} of {wanted} subsets" if partial else "",
        None if partial else heat,
    )  # fmt: skip


def _subset_cells(snapshot: Snapshot, field: Field, chosen: Whole, column: Column) -> list[Cell]:
    panel = snapshot.panel(column.metric)
    place = panel.subsets.index(column.subset)
    rows = field.rows[chosen]
    heats = _heats(panel.value[field.rows, place], panel.status[field.rows, place] == OK, column.metric, chosen)
    made = []
    for row, heat, value, low, high, lift, code in zip(
        rows.tolist(), heats, panel.value[rows, place].tolist(), panel.low[rows, place].tolist(),
        panel.high[rows, place].tolist(), panel.lift[rows, place].tolist(), panel.status[rows, place].tolist(),
        strict=True,
    ):  # fmt: skip
        status = STATUSES[code]
        reason = panel.reasons.get((row, place), "")
        reason = plain(reason, 300) if reason else ""
        if status not in WITH_VALUE or value != value:
            made.append(Cell(None, status=status, reason=reason or ("" if status else "not measured")))
            continue
        made.append(
            Cell(
                value, None if low != low else low, None if high != high else high, None if lift != lift else lift,
                status, reason, heat if status == "ok" else None,
            )
        )  # fmt: skip
    return made


def _heats(values: Floats, counted: NDArray[np.bool_], metric: str, chosen: Whole) -> list[int | None]:
    """Where each chosen value lies between the worst and the best of its whole column, in `HEATS` steps."""
    here = counted & np.isfinite(values)
    ends = values[here]
    least, most = (float(ends.min()), float(ends.max())) if ends.size else (0.0, 0.0)
    if most <= least:
        return [None] * len(chosen)
    share = (np.where(here[chosen], values[chosen], least) - least) / (most - least)
    if not facts(metric).higher_is_better:
        share = 1 - share
    steps = np.minimum((share * HEATS).astype(int), HEATS - 1)
    return [step if counts else None for step, counts in zip(steps.tolist(), here[chosen].tolist(), strict=True)]
