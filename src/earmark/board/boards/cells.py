"""Scores as a table shows them: with interval, lift, status, and their place between worst and best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.board.boards.codecs import ORDER
from earmark.board.boards.field import Field
from earmark.board.boards.panels import OK, STATUSES, Means, Panel
from earmark.board.boards.snapshot import Snapshot
from earmark.scores import WITH_VALUE
from earmark.tables import plain

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

HEATS = 8
"""Steps between the worst and the best of a column, which has one more to itself."""
NO_HEAT = -1


class Cell(NamedTuple):
    """A score as a table shows it. `status` "" is a cell without a row; `heat` places it between worst and best."""

    value: float | None
    low: float | None = None
    high: float | None = None
    lift: float | None = None
    status: str = ""
    reason: str = ""
    heat: int | None = None


class CellColumn(NamedTuple):
    """The cells of one column, as arrays: NaN is a missing number, `heat` of -1 none. Cells that are more than a value
    that counts are in `odd` too, by their place."""

    value: Floats
    low: Floats
    high: Floats
    lift: Floats
    heat: Whole
    odd: Mapping[int, Cell]

    @classmethod
    def of(cls, parts: Sequence[Floats], heat: Whole | None, odd: Mapping[int, Cell]) -> CellColumn:
        """The column with these numbers, but for the odd cells, which have their own."""
        for at, cell in odd.items():
            for part, number in zip(parts, (cell.value, cell.low, cell.high, cell.lift), strict=True):
                part[at] = np.nan if number is None else number
        value, low, high, lift = parts
        return cls(value, low, high, lift, np.full(len(value), NO_HEAT) if heat is None else heat, odd)

    def cells(self) -> list[Cell]:
        """The same one by one."""
        parts = (plain_numbers(part) for part in self[:4])
        heats = (None if heat == NO_HEAT else heat for heat in self.heat.tolist())
        cells = list(map(Cell, *parts, repeat("ok"), repeat(""), heats))
        for at, cell in self.odd.items():
            cells[at] = cell
        return cells

    def cell(self, at: int) -> Cell:
        """One of them."""
        if at in self.odd:
            return self.odd[at]
        heat = int(self.heat[at])
        return Cell(*_numbers_at(self[:4], at), "ok", "", None if heat == NO_HEAT else heat)

    def statuses(self) -> list[str]:
        """The status of each cell."""
        statuses = ["ok"] * len(self.value)
        for at, cell in self.odd.items():
            statuses[at] = cell.status
        return statuses


def mean_column(of: Means, places: Whole, heat: Whole | None = None, *, shown: Means | None = None) -> CellColumn:
    """Some means as a column: "partial" where subsets are missing, "incomplete" where clips are that a system failed on
    and `shown` has the mean of what there is."""
    have = of.have[places]
    parts = [part[places] for part in (of.value, of.low, of.high, of.lift)]
    more = have if shown is None else shown.have[places]
    none = np.isnan(parts[0])
    odd: dict[int, Cell] = {}
    for at in np.flatnonzero((have < of.wanted) | (more > have) | none).tolist():
        if shown is not None and more[at] > have[at]:
            words = f"without the clips that it failed on, on {more[at] - have[at]} of {of.wanted} subsets"
            odd[at] = Cell(*_numbers_at(shown[:4], int(places[at])), "incomplete", words)
        elif not have[at]:
            odd[at] = Cell(None, reason="none of its subsets")
        elif none[at]:
            odd[at] = Cell(None, reason="no harmonic mean: a value is negative")
        else:
            words = f"mean of {have[at]} of {of.wanted} subsets"
            odd[at] = Cell(*_numbers_at(parts, at), "partial", words)
    return CellColumn.of(parts, heat, odd)


def mean_cells(of: Means, places: Whole, *, shown: Means | None = None) -> list[Cell]:
    """Some means as cells, without their heat."""
    return mean_column(of, places, shown=shown).cells()


def panel_column(panel: Panel, rows: Whole, columns: Whole, heat: Whole | None = None) -> CellColumn:
    """The cells at some rows and columns of a panel."""
    parts = [part[rows, columns] for part in (panel.value, panel.low, panel.high, panel.lift)]
    codes = panel.status[rows, columns]
    odd: dict[int, Cell] = {}
    for at in np.flatnonzero((codes != OK) | panel.reasoned[rows, columns]).tolist():
        status = STATUSES[codes[at]]
        reason = panel.reasons.get((int(rows[at]), int(columns[at])), "")
        reason = plain(reason, 300) if reason else ""
        if status not in WITH_VALUE:
            odd[at] = Cell(None, status=status, reason=reason or ("" if status else "not measured"))
            continue
        step = None if status != "ok" or heat is None or heat[at] == NO_HEAT else int(heat[at])
        odd[at] = Cell(*_numbers_at(parts, at), status, reason, step)
    return CellColumn.of(parts, heat, odd)


def panel_cells(panel: Panel, rows: Whole, columns: Whole) -> list[Cell]:
    """The cells at some rows and columns of a panel, without their heat."""
    return panel_column(panel, rows, columns).cells()


_Four = tuple[float | None, float | None, float | None, float | None]


def _numbers_at(parts: Sequence[Floats], at: int) -> _Four:
    """Value, ends and lift as a cell holds them: a missing one is None."""
    value, low, high, lift = (None if part[at] != part[at] else float(part[at]) for part in parts)
    return value, low, high, lift


def plain_numbers(values: Floats) -> list[float | None]:
    """Numbers as a cell holds them: a missing one is None."""
    numbers: list[float | None] = values.tolist()
    for at in np.flatnonzero(np.isnan(values)).tolist():
        numbers[at] = None
    return numbers


def heats_of(
    snapshot: Snapshot, field: Field, values: Floats, counted: NDArray[np.bool_], metric: str
) -> Whole:  # fmt: skip
    """Where each value of a column lies between the worst and the best, in `HEATS` steps; the best has one more;
    `NO_HEAT` where it does not count. Best and worst are of the kind that is ranked first: no anchor, nothing that is
    ranked apart or nowhere."""
    here = counted & np.isfinite(values)
    kinds = np.where(snapshot.unranked[field.systems], len(ORDER), field.kind_places)
    first = here & (kinds == kinds[here].min()) if here.any() else here
    least, most = (float(values[first].min()), float(values[first].max())) if first.any() else (0.0, 0.0)
    if most <= least:
        return np.full(len(values), NO_HEAT)
    share = (np.where(here, values, least) - least) / (most - least)
    if not snapshot.definition.facts(metric).higher_is_better:
        share = 1 - share
    steps = np.where(first & (share == 1), HEATS, np.clip((share * HEATS).astype(int), 0, HEATS - 1))
    return np.where(here, steps, NO_HEAT)
