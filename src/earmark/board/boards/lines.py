"""The lines of a table: a system with its rank, or why it has none, its setting, and its cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.cells import Cell, heats_of, mean_cells, panel_cells
from earmark.board.boards.codecs import ANCHOR, rates_of
from earmark.board.boards.columns import Column, means_beside
from earmark.board.boards.contents import BEST, SHOWN_ASIDE
from earmark.board.boards.field import Field
from earmark.board.boards.memory import made_once
from earmark.board.boards.panels import INCOMPLETE, OK, PROVENANCES, Line
from earmark.board.boards.snapshot import Snapshot
from earmark.board.records import System
from earmark.tables import plain
from earmark.wording import first_of

Whole = NDArray[np.int64]

_NO_RANK = "no rank: "
_FEW_SUBSETS = " subsets; without "


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


@made_once
def bitrates(snapshot: Snapshot) -> Mapping[int, Bitrate]:
    """The bitrate of each codec by the place of its system: what was measured, else what its card states."""
    measured = rates_of(snapshot.panels["kbps"], snapshot.lines) if "kbps" in snapshot.panels else {}
    stated = {place: system.card.kbps for place, system in enumerate(snapshot.systems) if system.card.kbps is not None}
    return {
        place: Bitrate(measured.get(place, stated.get(place, 0.0)), place not in measured)
        for place in {**stated, **measured}
    }


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


def rows_at(
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
            )
        )  # fmt: skip
    return rows


def _cells(snapshot: Snapshot, field: Field, chosen: Whole, column: Column) -> list[Cell]:
    if column.kind == "subset":
        panel, place = field.panel, field.panel.column_of[column.subset]
        counts = panel.status[field.rows, place] == OK
        heats = heats_of(snapshot, field, panel.value[field.rows, place], counts, column.metric, chosen)
        rows = field.rows[chosen]
        return panel_cells(panel, rows, np.full(len(rows), place), heats)
    if column.metric == field.metric:
        group = snapshot.group(column.metric, column.key.partition(":")[2])
        every = (snapshot.means, snapshot.means_shown)
        of, shown = (make(column.metric, group, field.best).take(field.rows) for make in every)
    else:
        over = field.group.key
        of, shown = (means_beside(snapshot, field, column.metric, over, shown=lacking) for lacking in (False, True))
    return mean_cells(
        of, chosen, heats_of(snapshot, field, of.value, of.have == of.wanted, column.metric, chosen), shown=shown
    )


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
