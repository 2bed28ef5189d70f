"""The table of a board in one view: which lines, in which order, with which columns and cells.

Pages, downloads and the API all take it from here, so that they agree. Ranks belong to the whole field (every system
under the same metric, mean, protocol and setting); a filter or a search leaves lines out and changes no rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.codecs import ANCHOR, ORDER, rates_of
from earmark.board.boards.groups import Group
from earmark.board.boards.isolation import isolation_words
from earmark.board.boards.panels import INCOMPLETE, OK, PROVENANCES, STATUSES, Line, Means, Panel
from earmark.board.boards.snapshot import BEST, SHOWN_ASIDE, Field, Snapshot, made_once
from earmark.board.boards.view import PER_PAGE, SIZES, BoardView
from earmark.board.records import System
from earmark.definitions import BLIND
from earmark.errors import UsageError
from earmark.scores import WITH_VALUE
from earmark.tables import plain
from earmark.wording import first_of

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

HEATS = 8
_NO_RANK = "no rank: "
_RANKED_ONCE = "a system is ranked once, under its best setting or one that is chosen for all"
_FEW_SUBSETS = " subsets; without "
_NAMED = 100  # subsets in a help text
"""Steps between the worst and the best of a column, which has one more to itself."""

MOST_SUBSETS = 100
"""Subsets that have a column on a page; files have all."""
_BLIND_METRICS = ("P@1", "P@5", "GSR")
"""What stands side by side where a board is ranked by its blind subsets and its definition does not say."""


class Column(NamedTuple):
    """A column of scores. `key` sorts by it; `kind` is blind (the mean over blind subsets), mean, subset or metric."""

    key: str
    title: str
    kind: str
    metric: str
    help: str = ""
    subset: str = ""
    averaged: int = 1  # over how many subsets


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
    """A line of the table. A rank of 0 is none, for the reason that `unranked` gives; a tier of 0 is none. Nobody is
    surely ahead of a line in tier 1. Lines of one `kind` are ranked among each other."""

    line: int
    system: System
    setting: str
    protocol: str
    rank: int
    rank_low: int
    rank_high: int
    tier: int
    unranked: str
    provenance: tuple[str, ...]
    cells: tuple[Cell, ...]
    kind: str = ""
    bitrate: Bitrate | None = None
    tried: int = 1  # settings that the system was measured under, where the line is the best of them
    chosen: tuple[tuple[str, int], ...] = ()  # and the subsets of the mean that each was chosen for
    isolation: str = ""  # of a codec that is ranked among the isolated: "stated" by its author, or "confirmed"

    @property
    def is_aside(self) -> bool:
        """Whether it is shown for comparison: the definition ranks it nowhere."""
        return self.unranked == f"{_NO_RANK}{SHOWN_ASIDE}"

    @property
    def lacks_subsets(self) -> bool:
        """Whether it has no rank for want of subsets, and for no other reason."""
        return self.unranked.startswith(_NO_RANK) and _FEW_SUBSETS in self.unranked

    @property
    def why(self) -> str:
        """Why it has no rank, without saying that it has none."""
        return self.unranked.removeprefix(_NO_RANK)

    @property
    def key(self) -> str:
        """What names the line in addresses: the system alone where its setting was chosen."""
        return self.system.slug if self.chosen else self.system.key(self.setting)


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
    cut: int = 0  # how many of the subsets have a column, where not all of them have
    made: MadeLines | None = None  # what other pages of this state have made of its lines


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


def table(snapshot: Snapshot, view: BoardView, *, whole: bool = False) -> TablePage:
    """The lines of one page of a view; all of them with `per="all"`. `whole`: with a column for every subset, of which
    pages show the first."""
    field = snapshot.field(view.metric, view.over, view.protocol, view.setting)
    lines = field.panel.lines[field.rows]
    kept = _kept(snapshot, view, field, lines)
    order = kept[_order(snapshot, view, field, lines[kept], kept)]
    pages = max(1, math.ceil(len(order) / PER_PAGE)) if not view.per else 1
    page = min(view.page, pages)
    chosen = order if view.per else order[(page - 1) * PER_PAGE : page * PER_PAGE]
    columns = _columns(snapshot, view, None if whole else MOST_SUBSETS)
    subsets = sum(column.kind == "subset" for column in columns)
    state = (view.metric, field.group, view.protocol, view.setting, view.show, columns)
    made = snapshot.few(state, MadeLines)
    return TablePage(
        replace(view, page=page), field, columns, _lines(snapshot, field, lines, chosen, columns, made), len(order),
        pages, bool(np.isfinite(field.means.lift).any()),
        len(snapshot.lines_of) - len(np.unique(field.systems)),
        has_codecs(snapshot),
        MOST_SUBSETS if subsets == MOST_SUBSETS < len(snapshot.subsets(view.metric)) and not whole else 0,
        made,
    )  # fmt: skip


@made_once
def has_codecs(snapshot: Snapshot) -> bool:
    """Whether any system with live scores is a codec."""
    return any(snapshot.systems[place].card.kind == "codec" for place in snapshot.lines_of)


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
        panel = field.panel
        keep &= (panel.provenance[field.rows] == PROVENANCES.index(view.provenance)).any(axis=1)
    if view.tier:
        keep &= field.ranks.tier == int(view.tier)
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
    """The order of the kept lines: by the view's column, missing last, then by rank, mean and name;
    of those without a rank, first what is shown for comparison."""
    reverse = view.order == "reversed"
    ranks = np.where(field.ranks.rank[kept] > 0, field.ranks.rank[kept], np.nan).astype(float)
    mean = _turned(snapshot, field.means.value[kept], view.metric)
    kinds = field.kind_places[kept]
    public = snapshot.means(view.metric, snapshot.public_group(view.metric), field.best).take(field.rows[kept])
    beside = _missing_last(_turned(snapshot, public.value, view.metric))
    ranked = ~np.array(snapshot.unranked, bool)[field.systems[kept]]
    keys = [beside, _missing_last(mean), -field.means.have[kept].astype(float), ranked, _missing_last(ranks)]
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


def _turned(snapshot: Snapshot, values: Floats, metric: str) -> Floats:
    return -values if snapshot.definition.facts(metric).higher_is_better else values


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
        return _turned(snapshot, field.means.lift[kept], view.metric)
    if kind == "mean":
        group = snapshot.group(view.metric, name)
        return _turned(snapshot, snapshot.means(view.metric, group, field.best).value[field.rows[kept]], view.metric)
    if kind == "subset" and name in field.panel.column_of:
        column = field.panel.column_of[name]
        there = field.panel.status[field.rows[kept], column] == OK
        return _turned(snapshot, np.where(there, field.panel.value[field.rows[kept], column], np.nan), view.metric)
    if kind in ("metric", BLIND) and name in snapshot.metrics:
        over = view.over if kind == "metric" else BLIND
        return _turned(snapshot, _means_beside(snapshot, field, name, over).value[kept], name)
    raise UsageError(f'The table has no column "{view.sort}" to sort by; try rank, name, parameters or subset:NAME.')


_FACTS = {"parameters": "parameters_m", "rtf": "real_time_factor", "year": "year"}


def _means_beside(snapshot: Snapshot, field: Field, metric: str, over: str, *, shown: bool = False) -> Means:
    """The means of another metric beside a view over a group, for the lines of a field: of the same line, or where that
    is the best of a system, of its best line under that metric."""
    group = snapshot.group_beside(metric, over)
    if field.best:
        rows = snapshot.rows_of_systems(metric, field.best)[field.systems]
    else:
        rows = snapshot.rows_of_lines(metric)[field.panel.lines[field.rows]]
    every = snapshot.means_shown if shown else snapshot.means
    return every(metric, group, field.best).take(rows)


def _columns(snapshot: Snapshot, view: BoardView, most: int | None) -> tuple[Column, ...]:
    """The columns of a view, with at most so many subsets."""
    metric = view.metric
    group = snapshot.group(metric, view.over)
    groups = [group]
    if "domains" in view.show and not group.narrow:
        groups += [
            other for other in snapshot.groups(metric) if other.key != group.key and not other.single and other.column
        ]
    elif group.key == BLIND and snapshot.public_group(metric).key != BLIND:
        groups.append(snapshot.public_group(metric))
    columns = [
        Column(f"mean:{each.key}", each.short, "mean", metric, _help(each), averaged=len(each.subsets))
        for each in groups
    ]
    if group.key == BLIND:
        columns[:1] = [Column(f"mean:{BLIND}", metric, BLIND, metric, f"{metric}. {_help(group)}")]
        columns[1:1] = [
            Column(f"{BLIND}:{name}", name, BLIND, name, f"{name}. {_help(group)}")
            for name in _side_by_side(snapshot, view) or _BLIND_METRICS
            if name != metric and name in snapshot.metrics and snapshot.group_beside(name, BLIND).key == BLIND
        ]
    elif "metrics" not in view.show:
        columns += [_metric_column(snapshot, view, name) for name in _side_by_side(snapshot, view)]
    if "subsets" in view.show and len(snapshot.subsets(metric)) > 1:
        names = [] if group.single else [*group.subsets]
        if not group.narrow:
            shown = frozenset(group.subsets)
            names += [name for name in snapshot.subsets(metric) if name not in shown]
        names = names[:most]
        notes = {name: snapshot.definition.subset(name).note for name in names}
        columns += [Column(f"subset:{name}", name, "subset", metric, notes[name], name) for name in names]
    if "metrics" in view.show:
        columns += [
            _metric_column(snapshot, view, name)
            for name in snapshot.metrics
            if name not in {metric, *(column.metric for column in columns if column.kind == BLIND)}
        ]
    return tuple(columns)


def _metric_column(snapshot: Snapshot, view: BoardView, name: str) -> Column:
    title = snapshot.definition.metric_title(name) or name
    return Column(f"metric:{name}", title, "metric", name, f"{name}: {snapshot.group_beside(name, view.over).words}")


def _side_by_side(snapshot: Snapshot, view: BoardView) -> list[str]:
    """The other metrics that the definition shows beside one over a group."""
    stated = [column.metric for column in snapshot.definition.columns if column.group == view.over]
    return [name for name in dict.fromkeys(stated) if name != view.metric and name in snapshot.metrics]


def _help(group: Group) -> str:
    named = len(group.subsets) > 1 or group.key == BLIND
    return f"{group.title}: {first_of(group.subsets, _NAMED)}" if named else group.title


class MadeLines:
    """Lines of one state of a table that were made, by their place in the field, and what pages wrote of them: other
    pages of the same state take them from here. Only so many cells are kept."""

    def __init__(self, most: int = 40_000) -> None:
        self.rows: dict[int, TableRow] = {}
        self.texts: dict[object, str] = {}
        self._room = most

    def keep(self, places: Iterable[int], rows: Iterable[TableRow]) -> None:
        for place, row in zip(places, rows, strict=True):
            self._room -= len(row.cells) + 1
            if self._room > 0:
                self.rows[place] = row

    def text(self, row: TableRow, key: object, write: Callable[[], str]) -> str:
        """What was written of a line, or is now."""
        found = self.texts.get((row.line, key))
        if found is None:
            found = write()
            if self._room > 0:
                self.texts[row.line, key] = found
        return found


def _lines(
    snapshot: Snapshot, field: Field, lines: Whole, chosen: Whole, columns: Sequence[Column], made: MadeLines
) -> tuple[TableRow, ...]:
    """The chosen lines of a table: those that were made before, and the others."""
    missing = np.array([place for place in chosen.tolist() if place not in made.rows], np.int64)
    fresh = dict(zip(missing.tolist(), _rows(snapshot, field, lines, missing, columns), strict=True))
    made.keep(fresh, fresh.values())
    return tuple(fresh[place] if place in fresh else made.rows[place] for place in chosen.tolist())


def _rows(
    snapshot: Snapshot, field: Field, lines: Whole, chosen: Whole, columns: Sequence[Column]
) -> list[TableRow]:  # fmt: skip
    cells = [_cells(snapshot, field, chosen, column) for column in columns]
    by_line = zip(*cells, strict=True) if len(chosen) else ()
    origins, rates = _origins(field), bitrates(snapshot)
    rows = []
    for place, number, scored in zip(chosen.tolist(), lines[chosen].tolist(), by_line, strict=True):
        line = snapshot.lines[number]
        rank = field.rank_at(place)
        unranked = "" if rank.rank else _lacking(snapshot, field, place)
        tried, choices = settings_of(snapshot, field, place)
        rows.append(
            TableRow(
                number, snapshot.systems[line.system], setting_of(line, choices), line.protocol, *rank, unranked,
                origins[place], scored, field.kinds[place], rates.get(line.system), tried, choices,
                isolation_words(snapshot)[line.system],
            )
        )  # fmt: skip
    return rows


Choices = tuple[tuple[str, int], ...]
"""Settings with the number of subsets that each was chosen for, the most first."""


def settings_of(snapshot: Snapshot, field: Field, place: int) -> tuple[int, Choices]:
    """How many settings a best line was chosen from, and which; 1 and none where there was nothing to choose."""
    if not field.tried or field.tried[place] == 1:
        return 1, ()
    best, row = snapshot.best(field.metric, field.best), int(field.rows[place])
    columns = field.panel.columns(field.group.subsets)
    return int(best.tried[row]), best.settings(snapshot.lines, snapshot.panel(field.metric), row, columns)


def setting_of(line: Line, choices: Choices) -> str:
    """The setting of a line in one word: "best" where it is not one setting alone."""
    return line.setting if not choices else choices[0][0] if len(choices) == 1 else BEST


def setting_words(tried: int, choices: Choices) -> str:
    """How the setting of a best line was chosen: "best of 3, chosen on the other subsets: cosine on 17, ..."."""
    if not choices:
        return ""
    on = ", ".join(f"{name or 'none'} on {count}" for name, count in choices)
    return f"best of {tried}, chosen on the other subsets" + (f": {on}" if len(choices) > 1 else "")


def _origins(field: Field) -> list[tuple[str, ...]]:
    """Where the scores of each line come from."""
    panel = field.panel
    bits = np.bitwise_or.reduce(np.left_shift(1, panel.provenance[field.rows].astype(np.int64)), axis=1)
    words = {
        code: tuple(name for place, name in enumerate(PROVENANCES) if place and code >> place & 1)
        for code in np.unique(bits).tolist()
    }
    return [words[code] for code in bits.tolist()]


def _lacking(snapshot: Snapshot, field: Field, place: int) -> str:
    if field.kinds[place] == ANCHOR:
        return f"{_NO_RANK}an anchor, which loses nothing"
    panel, row = field.panel, int(field.rows[place])
    if why_not := snapshot.not_ranked(field.metric, field.group, snapshot.lines[panel.lines[row]]):
        return plain(f"{_NO_RANK}{why_not}", 300)
    if field.every_setting and snapshot.lines[panel.lines[row]].setting != (
        usual := snapshot.usual_setting(field.metric)
    ):
        return _NO_RANK + (_RANKED_ONCE if usual == BEST else f"systems are ranked under {usual}")
    status = dict(zip(field.group.subsets, panel.status[row, panel.columns(field.group.subsets)].tolist(), strict=True))
    lost = [name for name, code in status.items() if code == INCOMPLETE]
    if lost:
        why = panel.reasons.get((row, panel.column_of[lost[0]]), "it failed on clips")
        return plain(f"{_NO_RANK}incomplete on {first_of(lost, 3)}: {why}", 300)
    gone = [name for name, code in status.items() if code != OK]
    if not gone and field.group.harmonic:
        values = panel.measured()[row, panel.columns(field.group.subsets)].tolist()
        below = [(value, name) for name, value in zip(status, values, strict=True) if value < 0]
        of = first_of([f"{value:.3g} on {name or 'all clips'}".replace("-", "−", 1) for value, name in below], 3)
        return f"no rank: has no harmonic mean: {of}"
    return f"{_NO_RANK}{field.means.have[place]} of {field.means.wanted}{_FEW_SUBSETS}{first_of(gone, 6)}"


def _cells(snapshot: Snapshot, field: Field, chosen: Whole, column: Column) -> list[Cell]:
    if column.kind == "subset":
        panel, place = field.panel, field.panel.column_of[column.subset]
        counts = panel.status[field.rows, place] == OK
        heats = _heats(snapshot, field, panel.value[field.rows, place], counts, column.metric, chosen)
        rows = field.rows[chosen]
        return panel_cells(panel, rows, np.full(len(rows), place), heats)
    if column.metric == field.metric:
        group = snapshot.group(column.metric, column.key.partition(":")[2])
        every = (snapshot.means, snapshot.means_shown)
        of, shown = (make(column.metric, group, field.best).take(field.rows) for make in every)
    else:
        over = field.group.key
        of, shown = (_means_beside(snapshot, field, column.metric, over, shown=lacking) for lacking in (False, True))
    return mean_cells(
        of, chosen, _heats(snapshot, field, of.value, of.have == of.wanted, column.metric, chosen), shown=shown
    )


def mean_cells(
    of: Means, places: Whole, heats: Iterable[int | None] = repeat(None), *, shown: Means | None = None
) -> list[Cell]:
    """Some means as cells: "partial" where subsets are missing, "incomplete" where clips are that a system failed on
    and `shown` has the mean of what there is."""
    have = of.have[places]
    parts = [_plain(part[places]) for part in (of.value, of.low, of.high, of.lift)]
    marks = list(islice(heats, len(places)))
    cells = list(map(Cell, *parts, repeat("ok"), repeat(""), marks))
    more = have if shown is None else shown.have[places]
    none = np.isnan(of.value[places])
    for at in np.flatnonzero((have < of.wanted) | (more > have) | none).tolist():
        if shown is not None and more[at] > have[at]:
            words = f"without the clips that it failed on, on {more[at] - have[at]} of {of.wanted} subsets"
            value, low, high, lift = (_plain(part[places[[at]]])[0] for part in shown[:4])
            cells[at] = Cell(value, low, high, lift, "incomplete", words)
        elif not have[at]:
            cells[at] = Cell(None, reason="none of its subsets")
        elif none[at]:
            cells[at] = Cell(None, reason="no harmonic mean: a value is negative")
        else:
            words = f"mean of {have[at]} of {of.wanted} subsets"
            cells[at] = cells[at]._replace(status="partial", reason=words, heat=None)
    return cells


def panel_cells(panel: Panel, rows: Whole, columns: Whole, heats: Iterable[int | None] = repeat(None)) -> list[Cell]:
    """The cells at some rows and columns of a panel."""
    parts = [_plain(part[rows, columns]) for part in (panel.value, panel.low, panel.high, panel.lift)]
    marks = list(islice(heats, len(rows)))
    cells = list(map(Cell, *parts, repeat("ok"), repeat(""), marks))
    codes = panel.status[rows, columns]
    odd = range(len(rows)) if panel.reasons else np.flatnonzero(codes != OK).tolist()
    for at in odd:
        status = STATUSES[codes[at]]
        reason = panel.reasons.get((int(rows[at]), int(columns[at])), "")
        reason = plain(reason, 300) if reason else ""
        if status not in WITH_VALUE:
            cells[at] = Cell(None, status=status, reason=reason or ("" if status else "not measured"))
        elif status != "ok":
            cells[at] = cells[at]._replace(status=status, reason=reason, heat=None)
        elif reason:
            cells[at] = cells[at]._replace(reason=reason)
    return cells


def _plain(values: Floats) -> list[float | None]:
    """Numbers as a cell holds them: a missing one is None."""
    numbers: list[float | None] = values.tolist()
    for at in np.flatnonzero(np.isnan(values)).tolist():
        numbers[at] = None
    return numbers


def _heats(
    snapshot: Snapshot, field: Field, values: Floats, counted: NDArray[np.bool_], metric: str, chosen: Whole
) -> list[int | None]:
    """Where each chosen value lies between the worst and the best of its whole column, in `HEATS` steps; the best has
    one more. Best and worst are of the kind that is ranked first: no anchor, nothing that is ranked apart or nowhere.
    """
    here = counted & np.isfinite(values)
    kinds = np.where(np.array(snapshot.unranked, bool)[field.systems], len(ORDER), field.kind_places)
    first = here & (kinds == kinds[here].min()) if here.any() else here
    least, most = (float(values[first].min()), float(values[first].max())) if first.any() else (0.0, 0.0)
    if most <= least:
        return [None] * len(chosen)
    share = (np.where(here[chosen], values[chosen], least) - least) / (most - least)
    if not snapshot.definition.facts(metric).higher_is_better:
        share = 1 - share
    steps = np.where(first[chosen] & (share == 1), HEATS, np.clip((share * HEATS).astype(int), 0, HEATS - 1))
    return [step if counts else None for step, counts in zip(steps.tolist(), here[chosen].tolist(), strict=True)]
