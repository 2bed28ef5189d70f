"""Live scores as arrays: for each metric a panel [lines, subsets], and means over its subsets.

A *line* is what a table has a line for: a system under a distance, a correction and a protocol. A panel holds only the
lines and subsets that have a row for its metric, so that a board of many sparse metrics stays small. A missing number
is NaN inside these arrays and never leaves them as a number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from earmark.analysis.ranks import DEVIATIONS
from earmark.definitions.derived import VALUED, Measured
from earmark.scores import COLUMNS, VOCSIM_SUBSETS, WITH_VALUE, Scores, harmonic_mean
from earmark.submissions.blind_names import BlindNames

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Codes = NDArray[np.int8]
Columns = Mapping[str, Any]
"""Live scores by column: `system` (places in the snapshot), the columns of a score, and `provenance`. In a column of
numbers None or NaN is a missing one."""

STATUSES = ("", "ok", "not_applicable", "failed", "predicted", "repeated", "incomplete")
"""What a code in `Panel.status` stands for; 0 is a cell without a row."""
ABSENT, OK, INCOMPLETE = 0, 1, 6
PROVENANCES = ("", "printed", "self-reported", "reproduced", "blind")
"""What a code in `Panel.provenance` stands for, from the least checked to the most."""

NUMBERS = ("value", "low", "high", "baseline", "lift")
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


def columns_of(scores: Scores, places: Mapping[str, int], provenance: str = "self-reported") -> Columns:
    """The columns of a score table; `places` gives the place of each system by its name."""
    columns: dict[str, Any] = {name: [getattr(row, name) for row in scores.rows] for name in COLUMNS}
    return {
        **columns,
        "system": [places[name] for name in columns["system"]],
        "provenance": [provenance] * len(scores.rows),
    }


_CLAIMED = "self-reported on a blind subset, which only the host can measure"


def without_claims(columns: Columns, blind: Collection[str], public: Collection[str] = ()) -> Columns:
    """The columns without self-reported measurements of blind subsets, or of names that read like them: not
    applicable, with the reason. `public` are names that the definition has for other subsets."""
    if not blind:
        return columns
    names = BlindNames(blind, public)
    origins = zip(columns["subset"], columns["provenance"], columns["status"], strict=True)
    claimed = [
        place
        for place, (subset, origin, status) in enumerate(origins)
        if origin == "self-reported" and names.meant(subset) and status in WITH_VALUE and status != "predicted"
    ]
    if not claimed:
        return columns
    changed: dict[str, Any] = {name: np.array(columns[name], np.float64) for name in NUMBERS}
    for numbers in changed.values():
        numbers[claimed] = np.nan
    changed |= {name: np.array(columns[name], object) for name in ("status", "reason")}
    changed["status"][claimed], changed["reason"][claimed] = "not_applicable", _CLAIMED
    return {**columns, **changed}


def measured_in(columns: Columns) -> Iterator[Measured]:
    """What the columns measure."""
    names = ("system", "subset", "protocol", "metric", "status", "value")
    for *key, status, value in zip(*(columns[name] for name in names), strict=True):
        if status in VALUED and value is not None and value == value:
            yield Measured(*key)


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
        """The values that count: ok ones; NaN elsewhere. Predictions and the like are shown and never counted."""
        return np.where(self.status == OK, self.value, np.nan)

    def shown(self) -> Floats:
        """The values that were measured, with those that lack the clips a system failed on; NaN elsewhere."""
        return np.where((self.status == OK) | (self.status == INCOMPLETE), self.value, np.nan)

    def shown_at(self, row: int, columns: Whole) -> Floats:
        """The shown values of one row at some columns."""
        status = self.status[row, columns]
        return np.where((status == OK) | (status == INCOMPLETE), self.value[row, columns], np.nan)

    @cached_property
    def column_of(self) -> Mapping[str, int]:
        """The place of each subset."""
        return {name: column for column, name in enumerate(self.subsets)}

    @cached_property
    def reasoned(self) -> NDArray[np.bool_]:
        """Which cells have a reason."""
        flags = np.zeros(self.status.shape, bool)
        if self.reasons:
            flags[tuple(np.array(list(self.reasons), np.int64).T)] = True
        return flags

    def columns(self, names: Sequence[str]) -> Whole:
        """The places of some subsets."""
        return np.array([self.column_of[name] for name in names], np.int64)

    def widened(self, names: Sequence[str]) -> Panel:
        """The panel with columns for these subsets, empty where nobody has one."""
        missing = [name for name in dict.fromkeys(names) if name not in self.column_of]
        if not missing:
            return self
        shape = (len(self.lines), len(missing))
        arrays: dict[str, Any] = {
            name: np.hstack([part, np.full(shape, _EMPTY.get(name, np.nan), part.dtype)])
            for name, part in ((name, getattr(self, name)) for name in ARRAYS)
        }
        return replace(self, subsets=(*self.subsets, *missing), **arrays)

    def take(self, rows: Whole, lines: Whole) -> Panel:
        """Some rows, under new numbers of their lines."""
        new = {int(row): place for place, row in enumerate(rows)}
        reasons = {(new[row], column): text for (row, column), text in self.reasons.items() if row in new}
        return replace(self, lines=lines, reasons=reasons, **{name: getattr(self, name)[rows] for name in ARRAYS})


ARRAYS = (*NUMBERS, "n", "status", "provenance")
_EMPTY = {"n": -1, "status": ABSENT, "provenance": 0}
_TYPES: Mapping[str, Any] = {"n": np.int64, "status": np.int8, "provenance": np.int8}


def build(columns: Columns) -> tuple[tuple[Line, ...], dict[str, Panel]]:
    """The lines of the scores, in the order in which they first occur, and a panel for each metric."""
    numbers: dict[Line, int] = {}
    keys = zip(*(columns[name] for name in Line._fields), strict=True)
    line_of = [numbers.setdefault(Line(*key), len(numbers)) for key in keys]
    floats = {name: np.asarray(columns[name], np.float64) for name in (*NUMBERS, "n")}
    by_metric: dict[str, list[int]] = {}
    for place, metric in enumerate(columns["metric"]):
        by_metric.setdefault(metric, []).append(place)
    return tuple(numbers), {
        metric: _panel(metric, places, line_of, {**columns, **floats}) for metric, places in by_metric.items()
    }


def joined(upper: Panel, lower: Panel) -> Panel:
    """Two panels of one metric with different lines, as one."""
    subsets = tuple(sorted({*upper.subsets, *lower.subsets}, key=_order))
    height = len(upper.lines)
    column = {name: place for place, name in enumerate(subsets)}
    placed = [(upper, slice(height), 0), (lower, slice(height, None), height)]
    arrays = {}
    for name in ARRAYS:
        shape = (height + len(lower.lines), len(subsets))
        arrays[name] = np.full(shape, _EMPTY.get(name, np.nan), getattr(upper, name).dtype)
        for panel, rows, _ in placed:
            arrays[name][rows, [column[subset] for subset in panel.subsets]] = getattr(panel, name)
    reasons = {
        (row + above, column[panel.subsets[place]]): text
        for panel, _, above in placed
        for (row, place), text in panel.reasons.items()
    }
    return Panel(upper.metric, np.concatenate([upper.lines, lower.lines]), subsets, **arrays, reasons=reasons)


def _panel(metric: str, places: Sequence[int], line_of: Sequence[int], columns: Columns) -> Panel:
    rows: dict[int, int] = {}
    row = np.array([rows.setdefault(line_of[place], len(rows)) for place in places], np.int64)
    present = [columns["subset"][place] for place in places]
    subsets = tuple(sorted(set(present), key=_order))
    numbered = {name: column for column, name in enumerate(subsets)}
    column = np.array([numbered[name] for name in present], np.int64)
    where = np.array(places, np.int64)
    counts = columns["n"][where]
    cells: dict[str, Any] = {name: columns[name][where] for name in NUMBERS}
    cells["n"] = np.where(np.isfinite(counts), counts, -1)
    for name, known in (("status", STATUSES), ("provenance", PROVENANCES)):
        codes = {text: code for code, text in enumerate(known)}
        cells[name] = [codes[columns[name][place]] for place in places]
    arrays: dict[str, Any] = {}
    for name in ARRAYS:
        empty = _EMPTY.get(name, np.nan)
        arrays[name] = np.full((len(rows), len(subsets)), empty, _TYPES.get(name, np.float64))
        arrays[name][row, column] = cells[name]
    texts = ((int(i), int(j), columns["reason"][place]) for i, j, place in zip(row, column, places, strict=True))
    reasons = {(i, j): text for i, j, text in texts if text}
    return Panel(metric, np.fromiter(rows, np.int64, len(rows)), subsets, **arrays, reasons=reasons)


def _order(subset: str) -> tuple[int, str]:
    """VocSim's subsets as the paper orders them, others by name."""
    return _KNOWN_ORDER.get(subset, len(_KNOWN_ORDER)), subset


class Means(NamedTuple):
    """Means over some subsets, [lines] each. NaN where a line has none of the subsets; `have` counts what it has."""

    value: Floats
    low: Floats
    high: Floats
    lift: Floats
    have: Whole
    wanted: int

    def error(self) -> Floats:
        """The standard error of each mean, from the intervals of its scores; NaN where a subset has none."""
        return (self.high - self.low) / (2 * DEVIATIONS)

    def take(self, rows: Whole) -> Means:
        """The means of some lines; for a row of -1, none."""
        gone = rows < 0
        value, low, high, lift = (
            np.where(gone, np.nan, part[rows]) for part in (self.value, self.low, self.high, self.lift)
        )
        return Means(value, low, high, lift, np.where(gone, 0, self.have[rows]), self.wanted)


def means(value: Floats, low: Floats, high: Floats, lift: Floats, *, harmonic: bool = False) -> Means:
    """Means over the subsets that a line has, from arrays [lines, subsets] with NaN where it has none.

    The interval of a mean combines those of the subsets: half-widths h on one side give sqrt(sum of h^2) / count, which
    is what `earmark.scores.aggregate` has where nothing is known of units. It needs all of them, and so does the lift.
    In a harmonic mean m each half-width counts with the weight (m / value)^2, its first derivative, and there is no
    lift. One of 0 has no interval, and a line with a negative value has no harmonic mean.
    """
    here = np.isfinite(value)
    have = here.sum(axis=1)
    count = np.maximum(have, 1)
    middle = np.where(have > 0, np.where(here, value, 0.0).sum(axis=1) / count, np.nan)
    weight: Floats | float = 1.0
    if harmonic:
        made = [harmonic_mean(line[there].tolist()) for line, there in zip(value, here, strict=True)]
        middle = np.array([np.nan if mean is None else mean for mean in made])
        lift = np.full(value.shape, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = np.where(here & (value > 0), (middle[:, None] / value) ** 2, 0.0)
        weight[middle == 0] = np.nan
    with np.errstate(invalid="ignore"):
        down = np.where(here, np.maximum(0.0, value - low), 0.0)
        up = np.where(here, np.maximum(0.0, high - value), 0.0)
    down, up = (np.sqrt(((weight * side) ** 2).sum(axis=1)) / count for side in (down, up))
    lifted = np.where(here, lift, 0.0).sum(axis=1) / count
    lifted = np.where(have > 0, lifted, np.nan)
    return Means(middle, middle - down, middle + up, lifted, have, value.shape[1])
