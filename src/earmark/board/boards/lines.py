"""The lines of a table: a system with its rank, or why it has none, its setting, and its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.cells import Cell, CellColumn, heats_of, mean_column, panel_column
from earmark.board.boards.codecs import ANCHOR, rates_of
from earmark.board.boards.columns import Column, means_beside
from earmark.board.boards.contents import BEST, SHOWN_ASIDE
from earmark.board.boards.field import Field, Rank
from earmark.board.boards.isolation import isolation_words
from earmark.board.boards.memory import made_once
from earmark.board.boards.panels import INCOMPLETE, OK, PROVENANCES, Line, Means
from earmark.board.boards.snapshot import Snapshot
from earmark.board.records import System
from earmark.tables import plain
from earmark.wording import first_of

Whole = NDArray[np.int64]

_NO_RANK = "no rank: "
_RANKED_ONCE = "a system is ranked once, under its best setting or one that is chosen for all"
_FEW_SUBSETS = " subsets; without "


class Bitrate(NamedTuple):
    """The bitrate of a codec; `stated` when its card says it and no row measured it."""

    kbps: float
    stated: bool


Choices = tuple[tuple[str, int], ...]
"""Settings with the number of subsets that each was chosen for, the most first."""


class LineHead(NamedTuple):
    """What a line says beside its rank and scores: whose it is, how it was measured, and by whom."""

    line: int
    system: System
    setting: str
    protocol: str
    provenance: tuple[str, ...]
    kind: str
    bitrate: Bitrate | None
    tried: int = 1  # settings that the system was measured under, where the line is the best of them
    chosen: Choices = ()  # and the subsets of the mean that each was chosen for
    isolation: str = ""  # of a codec that is ranked among the isolated: "stated" by its author, or "confirmed"

    @property
    def key(self) -> str:
        """What names the line in addresses: the system alone where its setting was chosen."""
        return self.system.slug if self.chosen else self.system.key(self.setting)


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
    tried: int = 1
    chosen: Choices = ()
    isolation: str = ""


def is_aside(unranked: str) -> bool:
    """Whether a line without a rank is shown for comparison: the definition ranks it nowhere."""
    return unranked == f"{_NO_RANK}{SHOWN_ASIDE}"


def lacks_subsets(unranked: str) -> bool:
    """Whether a line has no rank for want of subsets, and for no other reason."""
    return unranked.startswith(_NO_RANK) and _FEW_SUBSETS in unranked


def why_unranked(unranked: str) -> str:
    """Why a line has no rank, without saying that it has none."""
    return unranked.removeprefix(_NO_RANK)


@made_once
def bitrates(snapshot: Snapshot) -> Mapping[int, Bitrate]:
    """The bitrate of each codec by the place of its system: what was measured, else what its card states."""
    measured = rates_of(snapshot.panels["kbps"], snapshot.lines) if "kbps" in snapshot.panels else {}
    stated = {place: system.card.kbps for place, system in enumerate(snapshot.systems) if system.card.kbps is not None}
    return {
        place: Bitrate(measured.get(place, stated.get(place, 0.0)), place not in measured)
        for place in {**stated, **measured}
    }


def rows_at(
    snapshot: Snapshot, field: Field, places: Whole, scored: Sequence[CellColumn]
) -> tuple[TableRow, ...]:  # fmt: skip
    """The lines at some places of a field, one by one, with their cells."""
    by_line = zip(*(column.cells() for column in scored), strict=True) if len(places) else ()
    reasons = reasons_at(snapshot, field, places)
    ranks = map(Rank, *(part[places].tolist() for part in field.ranks[:4]))
    heads = heads_at(snapshot, field, places)
    return tuple(
        TableRow(
            head.line, head.system, head.setting, head.protocol, *rank, reasons.get(at, ""), head.provenance, cells,
            head.kind, head.bitrate, head.tried, head.chosen, head.isolation,
        )
        for at, (head, rank, cells) in enumerate(zip(heads, ranks, by_line, strict=True))
    )  # fmt: skip


def heads_at(snapshot: Snapshot, field: Field, places: Whole) -> list[LineHead]:
    """What the lines at some places of a field say beside their ranks and scores."""
    numbers = field.panel.lines[field.rows[places]].tolist()
    rates, settings, isolation = bitrates(snapshot), snapshot.line_settings, isolation_words(snapshot)
    heads = []
    for place, number, origins in zip(places.tolist(), numbers, _origins(field, places), strict=True):
        line = snapshot.lines[number]
        tried, choices = settings_of(snapshot, field, place) if field.tried else (1, ())
        setting = setting_of(line, choices) if choices else settings[number]
        heads.append(
            LineHead(
                number, snapshot.systems[line.system], setting, line.protocol, origins, field.kinds[place],
                rates.get(line.system), tried, choices, isolation[line.system],
            )
        )  # fmt: skip
    return heads


def cell_columns(
    snapshot: Snapshot, field: Field, places: Whole, columns: Sequence[Column]
) -> tuple[CellColumn, ...]:  # fmt: skip
    """The cells of the lines at some places of a field, column by column."""
    return tuple(_cell_column(snapshot, field, places, column) for column in columns)


def _cell_column(snapshot: Snapshot, field: Field, places: Whole, column: Column) -> CellColumn:
    heat = _heats(snapshot, field, column)[places]
    if column.kind == "subset":
        rows = field.rows[places]
        return panel_column(field.panel, rows, np.full(len(rows), field.panel.column_of[column.subset]), heat)
    of, shown = (_means_of(snapshot, field, places, column, shown=lacking) for lacking in (False, True))
    return mean_column(of, np.arange(len(places)), heat, shown=shown)


def _means_of(snapshot: Snapshot, field: Field, places: Whole, column: Column, *, shown: bool = False) -> Means:
    """The means of a column at some places of a field."""
    if column.metric != field.metric:
        return means_beside(snapshot, field, column.metric, field.group.key, shown=shown, places=places)
    group = snapshot.group(column.metric, column.key.partition(":")[2])
    every = snapshot.means_shown if shown else snapshot.means
    return every(column.metric, group, field.best).take(field.rows[places])


@made_once
def _heats(snapshot: Snapshot, field: Field, column: Column) -> Whole:
    """The heat of every line of a field in a column, whichever of them are shown."""
    everywhere = np.arange(len(field.rows))
    if column.kind == "subset":
        panel, at = field.panel, field.panel.column_of[column.subset]
        counts = panel.status[field.rows, at] == OK
        return heats_of(snapshot, field, panel.value[field.rows, at], counts, column.metric)
    of = _means_of(snapshot, field, everywhere, column)
    return heats_of(snapshot, field, of.value, of.have == of.wanted, column.metric)


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


def _origins(field: Field, places: Whole) -> list[tuple[str, ...]]:
    """Where the scores of some lines come from."""
    bits = np.bitwise_or.reduce(np.left_shift(1, field.panel.provenance[field.rows[places]].astype(np.int64)), axis=1)
    words = {
        code: tuple(name for place, name in enumerate(PROVENANCES) if place and code >> place & 1)
        for code in np.unique(bits).tolist()
    }
    return [words[code] for code in bits.tolist()]


def reasons_at(snapshot: Snapshot, field: Field, places: Whole) -> dict[int, str]:
    """Why those of the lines at some places of a field that have no rank have none, by their number among them."""
    return {
        at: _lacking(snapshot, field, int(places[at])) for at in np.flatnonzero(field.ranks.rank[places] == 0).tolist()
    }


def _lacking(snapshot: Snapshot, field: Field, place: int) -> str:
    if field.kinds[place] == ANCHOR:
        return f"{_NO_RANK}an anchor, which loses nothing"
    panel, row = field.panel, int(field.rows[place])
    if why_not := snapshot.not_ranked(field.metric, field.group, snapshot.lines[panel.lines[row]]):
        return plain(f"{_NO_RANK}{why_not}", 300)
    usual = snapshot.usual_setting(field.metric)
    if field.every_setting and snapshot.lines[panel.lines[row]].setting != usual:
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
