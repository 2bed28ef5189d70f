"""Scores as a table shows them: with interval, lift, status, and their place between worst and best."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, repeat
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


class Cell(NamedTuple):
    """A score as a table shows it. `status` "" is a cell without a row; `heat` places it between worst and best."""

    value: float | None
    low: float | None = None
    high: float | None = None
    lift: float | None = None
    status: str = ""
    reason: str = ""
    heat: int | None = None


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


def heats_of(
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
