"""The table of a board in one view: which lines, in which order, with which columns and cells.

Pages, downloads and the API all take it from here, so that they agree. Ranks belong to the whole field (every system
under the same metric, mean, protocol and setting); a filter or a search leaves lines out and changes no rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.codecs import ANCHOR, ORDER, rates_of
from earmark.board.boards.groups import BLIND, Group, subset_title
from earmark.board.boards.panels import INCOMPLETE, OK, PROVENANCES, STATUSES, Means, Panel
from earmark.board.boards.snapshot import Field, Snapshot, made_once
from earmark.board.boards.view import PER_PAGE, SIZES, BoardView
from earmark.board.records import System
from earmark.errors import UsageError
from earmark.report.metric_text import facts
from earmark.scores import WITH_VALUE
from earmark.tables import plain
from earmark.wording import first_of

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

HEATS = 8


_BLIND_METRICS = ("P@1", "P@5", "GSR")
"""What stands side by side where a board is ranked by its blind subsets, as VocSim's paper has it."""


class Column(NamedTuple):
    """A column of scores. `key` sorts by it; `kind` is blind (the mean over blind subsets), mean, subset or metric."""

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


class Bitrate(NamedTuple):
    """The bitrate of a codec; `stated` when its card says it and no row measured it."""

    kbps: float
    stated: bool


class TableRow(NamedTuple):
    """A line of the table. A rank of 0 is none, for the reason that `unranked` gives. Lines of one `kind` are ranked
    among each other."""

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
    kind: str = ""
    bitrate: Bitrate | None = None


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
    codecs: bool  # whether there are codecs, whose bitrate is a column


class Facets(NamedTuple):
    """What the filters of a board offer."""

    families: tuple[str, ...]
    licences: tuple[str, ...]
    provenances: tuple[str, ...]


@made_once
def facets(snapshot: Snapshot) -> Facets:
    """The families, licences and kinds of provenance that the board has."""
    cards = [snapshot.systems[place].card for place in snapshot.lines_of]
    codes = {code for panel in snapshot.panels.values() for code in np.unique(panel.provenance).tolist()}
    return Facets(
        tuple(sorted({card.family for card in cards if card.family}, key=str.casefold)),
        tuple(sorted({card.licence for card in cards if card.licence}, key=str.casefold)),
        tuple(name for code, name in enumerate(PROVENANCES) if code and code in codes),
    )


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
        replace(view, page=page), field, columns, _rows(snapshot, view, field, lines, chosen, columns), len(order),
        pages, bool(np.isfinite(field.means.lift).any()),
        len(snapshot.lines_of) - len({snapshot.lines[line].system for line in lines.tolist()}),
        any(snapshot.systems[place].card.kind == "codec" for place in snapshot.lines_of),
    )  # fmt: skip


@made_once
def bitrates(snapshot: Snapshot) -> Mapping[int, Bitrate]:
    """The bitrate of each codec by the place of its system: what was measured, else what its card states."""
    measured = rates_of(snapshot.panels["kbps"], snapshot.lines) if "kbps" in snapshot.panels else {}
    stated = {place: system.card.kbps for place, system in enumerate(snapshot.systems) if system.card.kbps is not None}
    return {
        place: Bitrate(measured.get(place, stated.get(place, 0.0)), place not in measured)
        for place in {**stated, **measured}
    }


def _kept(snapshot: Snapshot, view: BoardView, field: Field, lines: Whole) -> Whole:
    """The places in the field that the filters leave."""
    keep = np.ones(len(lines), bool)
    if view.family or view.licence or view.training or view.size or view.q:
        fits = {place: _fits(snapshot, view, place) for place in {snapshot.lines[line].system for line in lines}}
        keep = np.array([fits[snapshot.lines[line].system] for line in lines], bool)
    if view.provenance:
        panel = snapshot.panel(view.metric)
        keep &= (panel.provenance[field.rows] == PROVENANCES.index(view.provenance)).any(axis=1)
    return np.flatnonzero(keep)


def _fits(snapshot: Snapshot, view: BoardView, place: int) -> bool:
    """Whether a system is one of those that the view asks for."""
    card = snapshot.systems[place].card
    if (view.family and card.family != view.family) or (view.licence and card.licence != view.licence):
        return False
    if view.training and card.training_free is not {"yes": True, "no": False, "unknown": None}[view.training]:
        return False
    if view.size:
        _, least, below = SIZES[view.size]
        size = card.parameters_m
        if not (size is None if view.size == "unknown" else size is not None and least <= size < below):
            return False
    return all(word in _searched_texts(snapshot)[place] for word in view.q.casefold().split())


@made_once
def _searched_texts(snapshot: Snapshot) -> list[str]:
    cards = [system.card for system in snapshot.systems]
    texts = ([card.name, card.title, card.family, card.description, *card.authors, *card.pretraining] for card in cards)
    return ["\n".join(some).casefold() for some in texts]


def _order(snapshot: Snapshot, view: BoardView, field: Field, lines: Whole, kept: Whole) -> Whole:
    """The order of the kept lines: by the view's column, missing last, then by rank, mean and name."""
    reverse = view.order == "reversed"
    ranks = np.where(field.ranks.rank[kept] > 0, field.ranks.rank[kept], np.nan).astype(float)
    mean = _turned(field.means.value[kept], view.metric)
    kinds = np.array([ORDER.index(field.kinds[place]) for place in kept.tolist()], np.float64)
    public = snapshot.means(view.metric, snapshot.public_group(view.metric)).take(field.rows[kept])
    beside = _missing_last(_turned(public.value, view.metric))
    keys = [beside, _missing_last(mean), -field.means.have[kept].astype(float), _missing_last(ranks)]
    if view.sort in ("name", "family"):
        cards = [snapshot.systems[snapshot.lines[line].system].card for line in lines.tolist()]
        names = [getattr(card, view.sort).casefold() for card in cards]
        place = {name: float(number) for number, name in enumerate(sorted(set(names), reverse=reverse))}
        keys.append(np.array([place[name] for name in names]))
    elif view.sort != "rank":
        keys.append(_missing_last(_sorted_by(snapshot, view, field, lines, kept), reverse))
    elif reverse:
        keys.append(_missing_last(ranks, reverse))
    return np.lexsort([*keys, kinds])  # each kind by itself, whatever it is sorted by


def _turned(values: Floats, metric: str) -> Floats:
    return -values if facts(metric).higher_is_better else values


def _missing_last(values: Floats, reverse: bool = False) -> Floats:
    return np.where(np.isfinite(values), -values if reverse else values, np.inf)


def _sorted_by(snapshot: Snapshot, view: BoardView, field: Field, lines: Whole, kept: Whole) -> Floats:
    """What the view sorts by, smallest first."""
    kind, _, name = view.sort.partition(":")
    if view.sort == "kbps":
        rates = (bitrates(snapshot).get(snapshot.lines[line].system) for line in lines.tolist())
        return np.array([None if rate is None else rate.kbps for rate in rates], np.float64)
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
    if kind in ("metric", BLIND) and name in snapshot.metrics:
        return _turned(_means_of(snapshot, name, view.over if kind == "metric" else BLIND, lines).value, name)
    raise UsageError(f'The table has no column "{view.sort}" to sort by; try rank, name, parameters or subset:NAME.')


_FACTS = {"parameters": "parameters_m", "rtf": "real_time_factor", "year": "year"}


def _means_of(snapshot: Snapshot, metric: str, over: str, lines: Whole) -> Means:
    """The means of another metric beside a view over a group, for some lines of the snapshot."""
    return snapshot.means(metric, snapshot.group_beside(metric, over)).take(snapshot.rows_of_lines(metric)[lines])


def _columns(snapshot: Snapshot, view: BoardView) -> tuple[Column, ...]:
    metric, board = view.metric, snapshot.board
    group = snapshot.group(metric, view.over)
    groups = [group]
    if "domains" in view.show and not group.narrow:
        groups += [other for other in snapshot.groups(metric) if other.key != group.key and not other.single]
    elif group.key == BLIND and snapshot.public_group(metric).key != BLIND:
        groups.append(snapshot.public_group(metric))
    columns = [Column(f"mean:{each.key}", each.short, "mean", metric, _help(each)) for each in groups]
    if group.key == BLIND:
        columns[:1] = [Column(f"mean:{BLIND}", metric, BLIND, metric, f"{metric}. {_help(group)}")]
        columns[1:1] = [
            Column(f"{BLIND}:{name}", name, BLIND, name, f"{name}. {_help(group)}")
            for name in _BLIND_METRICS
            if name != metric and name in snapshot.metrics and snapshot.group_beside(name, BLIND).key == BLIND
        ]
    if "subsets" in view.show and len(snapshot.subsets(metric)) > 1:
        names = [] if group.single else [*group.subsets]
        if not group.narrow:
            names += [name for name in snapshot.subsets(metric) if name not in group.subsets]
        columns += [Column(f"subset:{name}", name, "subset", metric, subset_title(board, name), name) for name in names]
    if "metrics" in view.show:
        columns += [
            Column(f"metric:{name}", name, "metric", name, f"{name}: {snapshot.group_beside(name, view.over).words}")
            for name in snapshot.metrics
            if name not in {metric, *(column.metric for column in columns if column.kind == BLIND)}
        ]
    return tuple(columns)


def _help(group: Group) -> str:
    named = len(group.subsets) > 1 or group.key == BLIND
    return f"{group.title}: {', '.join(group.subsets)}" if named else group.title


def _rows(
    snapshot: Snapshot, view: BoardView, field: Field, lines: Whole, chosen: Whole, columns: Sequence[Column]
) -> tuple[TableRow, ...]:
    cells = [_cells(snapshot, field, lines, chosen, column) for column in columns]
    by_line = zip(*cells, strict=True) if len(chosen) else ()
    origins = _origins(snapshot, view.metric, field)
    rows = []
    for place, scored in zip(chosen.tolist(), by_line, strict=True):
        line = snapshot.lines[lines[place]]
        rank, low, high = field.rank_at(place)
        unranked = "" if rank else _lacking(snapshot, field, place)
        system, number = snapshot.systems[line.system], int(lines[place])
        rows.append(
            TableRow(
                number, system, line.setting, line.protocol, rank, low, high, unranked, origins[place], scored,
                field.kinds[place], bitrates(snapshot).get(line.system),
            )
        )  # fmt: skip
    return tuple(rows)


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
    if field.kinds[place] == ANCHOR:
        return "no rank: an anchor, which loses nothing"
    panel = snapshot.panel(field.metric)
    row = int(field.rows[place])
    values = panel.measured()[row]
    lost = [name for name in field.group.subsets if panel.status[row, panel.subsets.index(name)] == INCOMPLETE]
    if lost:
        why = panel.reasons.get((row, panel.subsets.index(lost[0])), "it failed on clips")
        return plain(f"no rank: incomplete on {first_of(lost, 3)}: {why}", 300)
    gone = [name for name in field.group.subsets if not np.isfinite(values[panel.subsets.index(name)])]
    return f"no rank: {field.means.have[place]} of {field.means.wanted} subsets; without {first_of(gone, 6)}"


def _cells(snapshot: Snapshot, field: Field, lines: Whole, chosen: Whole, column: Column) -> list[Cell]:
    if column.kind == "subset":
        panel = snapshot.panel(column.metric)
        place = panel.subsets.index(column.subset)
        counts = panel.status[field.rows, place] == OK
        heats = _heats(panel.value[field.rows, place], counts, column.metric, chosen)
        rows = field.rows[chosen]
        return panel_cells(panel, rows, np.full(len(rows), place), heats)
    if column.metric == field.metric:
        group, rows = snapshot.group(column.metric, column.key.partition(":")[2]), field.rows
    else:
        group = snapshot.group_beside(column.metric, field.group.key)
        rows = snapshot.rows_of_lines(column.metric)[lines]
    of, shown = (every(column.metric, group).take(rows) for every in (snapshot.means, snapshot.means_shown))
    return mean_cells(of, chosen, _heats(of.value, of.have == of.wanted, column.metric, chosen), shown=shown)


def mean_cells(
    of: Means, places: Whole, heats: Iterable[int | None] = repeat(None), *, shown: Means | None = None
) -> list[Cell]:
    """Some means as cells: "partial" where subsets are missing, "incomplete" where clips are that a system failed on
    and `shown` has the mean of what there is."""
    cells = []
    parts = (part[places].tolist() for part in (of.have, of.value, of.low, of.high, of.lift))
    others = repeat(None) if shown is None else _other_means(shown, places)
    for heat, other, have, *numbers in zip(heats, others, *parts):  # noqa: B905 - the heats may go on without end
        if other is not None and other[0] > have:
            words = f"without the clips that it failed on, on {other[0] - have} of {of.wanted} subsets"
            cells.append(Cell(*_numbers(other[1:]), "incomplete", words))
        elif not have:
            cells.append(Cell(None, reason="none of its subsets"))
        elif have < of.wanted:
            cells.append(Cell(*_numbers(numbers), "partial", f"mean of {have} of {of.wanted} subsets"))
        else:
            cells.append(Cell(*_numbers(numbers), "ok", heat=heat))
    return cells


def _other_means(of: Means, places: Whole) -> list[tuple[Any, ...]]:
    parts = (part[places].tolist() for part in (of.have, of.value, of.low, of.high, of.lift))
    return list(zip(*parts, strict=True))


def panel_cells(panel: Panel, rows: Whole, columns: Whole, heats: Iterable[int | None] = repeat(None)) -> list[Cell]:
    """The cells at some rows and columns of a panel."""
    cells = []
    parts = (part[rows, columns].tolist() for part in (panel.status, panel.value, panel.low, panel.high, panel.lift))
    for heat, row, column, code, *numbers in zip(heats, rows.tolist(), columns.tolist(), *parts):  # noqa: B905
        status = STATUSES[code]
        reason = panel.reasons.get((row, column), "")
        reason = plain(reason, 300) if reason else ""
        if status in WITH_VALUE:
            cells.append(Cell(*_numbers(numbers), status, reason, heat if status == "ok" else None))
        else:
            cells.append(Cell(None, status=status, reason=reason or ("" if status else "not measured")))
    return cells


def _numbers(values: Iterable[float]) -> tuple[float | None, float | None, float | None, float | None]:
    """Value, low, high and lift as a cell holds them: a missing number is None."""
    value, low, high, lift = (None if number != number else number for number in values)
    return value, low, high, lift


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
