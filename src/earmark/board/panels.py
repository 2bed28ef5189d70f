"""Live scores as arrays: for each metric a panel [lines, subsets].

A *line* is what a table has a line for: a system under a distance, a correction and a protocol. A panel holds only the
lines and subsets that have a row for its metric, so that a board of many sparse metrics stays small. A missing number
is NaN inside these arrays and never leaves them as a number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.scores import VOCSIM_SUBSETS, WITH_VALUE, Scores

__all__ = [
    "ABSENT",
    "OK",
    "PREDICTED",
    "PROVENANCES",
    "STATUSES",
    "Cells",
    "Line",
    "Panel",
    "build",
    "joined",
    "without_claims",
]

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Codes = NDArray[np.int8]
Numbers = Sequence[float | None] | Floats
"""A column of numbers in which None or NaN is a missing one."""

STATUSES = ("", "ok", "not_applicable", "failed", "predicted", "repeated")
"""What a code in `Panel.status` stands for; 0 is a cell without a row."""
ABSENT, OK, PREDICTED = 0, 1, 4
PROVENANCES = ("", "printed", "self-reported", "reproduced", "blind")
"""What a code in `Panel.provenance` stands for, from the least checked to the most."""

_NUMBERS = ("value", "low", "high", "baseline", "lift")
_KNOWN_ORDER = {subset.name: place for place, subset in enumerate(VOCSIM_SUBSETS)}


class Line(NamedTuple):
    """A line of a table: the place of its system in the snapshot, and how the system was measured."""

    system: int
    distance: str
    correction: str
    protocol: str

    @property
    def setting(self) -> str:
        """Distance and correction in one word: "cosine", "cosine+icdm", or "" where neither applies."""
        return "+".join(part for part in (self.distance, self.correction) if part and part != "none")


class Cells(NamedTuple):
    """Columns of live scores, one entry for each row. `system` is the place of the row's system in the snapshot."""

    system: Sequence[int]
    subset: Sequence[str]
    distance: Sequence[str]
    correction: Sequence[str]
    protocol: Sequence[str]
    metric: Sequence[str]
    value: Numbers
    low: Numbers
    high: Numbers
    baseline: Numbers
    lift: Numbers
    n: Numbers
    status: Sequence[str]
    reason: Sequence[str]
    provenance: Sequence[str]

    @classmethod
    def of_scores(cls, scores: Scores, places: Mapping[str, int], provenance: str = "self-reported") -> Cells:
        """The columns of a score table; `places` gives the place of each system by its name."""
        rows = scores.rows
        taken: dict[str, Any] = {
            name: [getattr(row, name) for row in rows] for name in cls._fields if name not in ("system", "provenance")
        }
        return cls(system=[places[row.system] for row in rows], provenance=[provenance] * len(rows), **taken)


_CLAIMED = "self-reported on a blind subset, which only the host can measure"


def without_claims(cells: Cells, blind: Collection[str]) -> Cells:
    """The cells without self-reported measurements of blind subsets: not applicable, with the reason."""
    claimed = [
        place
        for place, (subset, origin, status) in enumerate(zip(cells.subset, cells.provenance, cells.status, strict=True))
        if subset in blind and origin == "self-reported" and status in WITH_VALUE and status != "predicted"
    ]
    if not claimed:
        return cells
    numbers: dict[str, Any] = {}
    for name in _NUMBERS:
        numbers[name] = np.array(getattr(cells, name), np.float64)
        numbers[name][claimed] = np.nan
    status, reason = list(cells.status), list(cells.reason)
    for place in claimed:
        status[place], reason[place] = "not_applicable", _CLAIMED
    return cells._replace(status=status, reason=reason, **numbers)


@dataclass(frozen=True, eq=False)
class Panel:
    """One metric: arrays [lines, subsets]. `lines` are places in the snapshot's lines; `n` is -1 where unknown."""

    metric: str
    lines: Whole
    subsets: tuple[str, ...]
    value: Floats
    low: Floats
    high: Floats
    baseline: Floats
    lift: Floats
    n: Whole
    status: Codes
    provenance: Codes
    reasons: Mapping[tuple[int, int], str]  # (row of the panel, column): only where there is one

    def measured(self) -> Floats:
        """The values that count: ok ones; NaN elsewhere. Predictions and repeats are shown and never counted."""
        return np.where(self.status == OK, self.value, np.nan)

    def columns(self, names: Sequence[str]) -> Whole:
        """The places of some subsets."""
        place = {name: column for column, name in enumerate(self.subsets)}
        return np.array([place[name] for name in names], np.int64)

    def take(self, rows: Whole, lines: Whole) -> Panel:
        """Some rows, under new numbers of their lines."""
        new = {int(row): place for place, row in enumerate(rows)}
        reasons = {(new[row], column): text for (row, column), text in self.reasons.items() if row in new}
        return replace(self, lines=lines, reasons=reasons, **{name: getattr(self, name)[rows] for name in _ARRAYS})


_ARRAYS = (*_NUMBERS, "n", "status", "provenance")
_EMPTY = {"n": -1, "status": ABSENT, "provenance": 0}


def build(cells: Cells) -> tuple[tuple[Line, ...], dict[str, Panel]]:
    """The lines of the cells, in the order in which they first occur, and a panel for each metric."""
    numbers: dict[Line, int] = {}
    line_of = [
        numbers.setdefault(Line(*key), len(numbers))
        for key in zip(cells.system, cells.distance, cells.correction, cells.protocol, strict=True)
    ]
    numbers_of = {name: np.asarray(getattr(cells, name), np.float64) for name in (*_NUMBERS, "n")}
    by_metric: dict[str, list[int]] = {}
    for place, metric in enumerate(cells.metric):
        by_metric.setdefault(metric, []).append(place)
    return tuple(numbers), {
        metric: _panel(metric, places, line_of, cells, numbers_of) for metric, places in by_metric.items()
    }


def joined(one: Panel, other: Panel) -> Panel:
    """Two panels of one metric with different lines, as one."""
    subsets = tuple(sorted({*one.subsets, *other.subsets}, key=_order))
    height = len(one.lines) + len(other.lines)
    arrays = {}
    for name in _ARRAYS:
        like = getattr(one, name)
        whole = np.full((height, len(subsets)), _EMPTY.get(name, np.nan), like.dtype)
        whole[: len(one.lines), _places(one, subsets)] = like
        whole[len(one.lines) :, _places(other, subsets)] = getattr(other, name)
        arrays[name] = whole
    place = {name: column for column, name in enumerate(subsets)}
    reasons = {(row, place[one.subsets[column]]): text for (row, column), text in one.reasons.items()}
    reasons |= {
        (row + len(one.lines), place[other.subsets[column]]): text for (row, column), text in other.reasons.items()
    }
    return Panel(one.metric, np.concatenate([one.lines, other.lines]), subsets, **arrays, reasons=reasons)


def _places(panel: Panel, subsets: Sequence[str]) -> Whole:
    place = {name: column for column, name in enumerate(subsets)}
    return np.array([place[name] for name in panel.subsets], np.int64)


def _panel(
    metric: str, places: Sequence[int], line_of: Sequence[int], cells: Cells, numbers: Mapping[str, Floats]
) -> Panel:
    rows: dict[int, int] = {}
    row = np.array([rows.setdefault(line_of[place], len(rows)) for place in places], np.int64)
    present = [cells.subset[place] for place in places]
    subsets = tuple(sorted(set(present), key=_order))
    columns = {name: column for column, name in enumerate(subsets)}
    column = np.array([columns[name] for name in present], np.int64)
    shape = (len(rows), len(subsets))
    where = np.array(places, np.int64)
    arrays: dict[str, Any] = {}
    for name in _NUMBERS:
        arrays[name] = np.full(shape, np.nan)
        arrays[name][row, column] = numbers[name][where]
    arrays["n"] = np.full(shape, -1, np.int64)
    counts = numbers["n"][where]
    arrays["n"][row, column] = np.where(np.isfinite(counts), counts, -1)
    for name, known in (("status", STATUSES), ("provenance", PROVENANCES)):
        codes = {text: code for code, text in enumerate(known)}
        given = getattr(cells, name)
        arrays[name] = np.zeros(shape, np.int8)
        arrays[name][row, column] = [codes[given[place]] for place in places]
    reasons = {
        (int(i), int(j)): cells.reason[place]
        for i, j, place in zip(row, column, places, strict=True)
        if cells.reason[place]
    }
    return Panel(metric, np.fromiter(rows, np.int64, len(rows)), subsets, **arrays, reasons=reasons)


def _order(subset: str) -> tuple[int, str]:
    """VocSim's subsets as the paper orders them, others by name."""
    return _KNOWN_ORDER.get(subset, len(_KNOWN_ORDER)), subset
