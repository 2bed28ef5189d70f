"""One measurement: its columns, and what each cell may hold.

Columns are only ever added at the end, so files of older versions still load.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, SupportsIndex

from earmark.errors import InputError
from earmark.scores import spelling
from earmark.scores.metrics import family

VALIDATION = frozenset(family("validation"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement. NumPy scalars become Python numbers; NaN and infinity are refused.

    A value that could not be measured is None, with a status and a reason.
    """

    suite: str = ""
    subset: str = ""
    system: str = ""
    distance: str = ""
    correction: str = "none"
    protocol: str = "all"
    metric: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    lift: float | None = None
    p_value: float | None = None
    n: int | None = None
    status: str = "ok"
    reason: str = ""
    seconds: float | None = None
    version: str = ""
    inputs: str = ""
    baseline_low: float | None = None
    baseline_high: float | None = None
    interval: str = ""  # how low and high were made: jackknife, bootstrap_queries, bootstrap_points (the rest is held)
    unit: str = ""  # what was left out or drawn: clip or group
    units: int | None = None
    comparisons: int | None = None  # of a difference: how many of them its interval and p-value are corrected for
    shuffle: str = ""  # what the null shuffled: clips, whole_groups, inside_groups, blocks or clips_ignoring_groups
    baseline_error: float | None = None  # Monte-Carlo standard error of the baseline
    ablation: str = ""  # what was changed on purpose: clips drawn, label noise, re-ranking, codec passes, lost packets
    aggregate: str = ""  # of a mean over subsets: which
    statistic: str = ""  # what stands in place of the metric itself: a difference, a percentile over clips

    def __post_init__(self) -> None:
        for name, kind in _PLAIN.items():
            given: Any = getattr(self, name)
            if type(given) is kind and (kind is str or abs(given) < _LARGE[kind]):  # as nearly all cells are
                continue
            if given is None and kind is not str:
                continue
            kept = checked(name, given, f'Column "{name}" of a score row ({self.metric or "no metric"})')
            if kept is not given:
                object.__setattr__(self, name, kept)
        # A row of an older version, or one made from names alone, has its last three columns in its names.
        ablation, aggregate, statistic = spelling.columns_of(self.subset, self.distance, self.protocol, self.metric)
        if ablation != self.ablation:
            object.__setattr__(self, "ablation", spelling.joined(ablation, self.ablation))
        if aggregate and not self.aggregate:
            object.__setattr__(self, "aggregate", aggregate)
        if statistic and not self.statistic:
            object.__setattr__(self, "statistic", statistic)

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies the measurement: the values of the columns in `KEY`."""
        return (
            self.suite,
            self.subset,
            self.system,
            self.distance,
            self.correction,
            self.protocol,
            self.metric,
        )

    @property
    def label_noise(self) -> float:
        """The share of labels that were exchanged for others; 0 for labels as they are."""
        return spelling.noise_share(self.ablation)

    @property
    def probed(self) -> bool:
        """Whether the row is of a probe of vectors, whose protocol says which; not a result as a paper prints it."""
        return self.protocol not in ("all", "across_groups") and spelling.split_metric(self.metric)[0] in VALIDATION

    @property
    def sampled(self) -> bool:
        """Whether the value rests on a sample of queries; which, another seed would change."""
        return spelling.SAMPLED in self.reason

    @property
    def single(self) -> bool:
        """Whether the row is of one subset as it is labelled: no mean, no label noise."""
        return not self.aggregate and not self.label_noise

    @property
    def labelled_subset(self) -> str:
        """The subset without the mark of label noise."""
        return spelling.without_noise(self.subset) if self.ablation else self.subset

    def as_dict(self) -> dict[str, Any]:
        """The row as a dictionary in column order; missing numbers are None."""
        return {name: getattr(self, name) for name in COLUMNS}


class Measurement(NamedTuple):
    """A number, or why there is none: status `ok`, `not_applicable` or `failed`. Never a sentinel."""

    value: float | None
    status: str = "ok"
    reason: str = ""

    @classmethod
    def not_applicable(cls, reason: str) -> Measurement:
        return cls(None, "not_applicable", reason)

    @classmethod
    def failed(cls, reason: str) -> Measurement:
        return cls(None, "failed", reason)


COLUMNS: tuple[str, ...] = tuple(column.name for column in fields(Row))
KEY: tuple[str, ...] = COLUMNS[:7]
DEFAULTS: dict[str, Any] = {column.name: column.default for column in fields(Row)}
NUMBERS = frozenset(name for name in COLUMNS if DEFAULTS[name] is None)
COUNTS = frozenset({"n", "units", "comparisons"})
_LARGE = {float: math.inf, int: 2**63}  # Parquet counts in 64 bits
_PLAIN: dict[str, Any] = {
    name: float if name in NUMBERS - COUNTS else int if name in COUNTS else str for name in COLUMNS
}


def checked(name: str, given: object, where: str) -> str | float | int | None:
    """The plain Python value of one cell, or an InputError that says where it is."""
    if name not in NUMBERS:
        if not isinstance(given, str):
            raise InputError(f"{where} holds {given!r}; it must be text.")
        return given if type(given) is str else str(given)
    if given is None:
        return None
    if isinstance(given, bool | str) or not hasattr(given, "__float__"):
        raise InputError(f"{where} holds {given!r}, which is not a number.")
    try:
        number = given if type(given) is float else float(given)
    except (OverflowError, TypeError, ValueError):
        raise InputError(f"{where} holds {given!r}, which is not a finite number.") from None
    if not math.isfinite(number):
        raise InputError(f"{where} holds {number}; leave a missing number empty and give a status and a reason.")
    if name not in COUNTS:
        return number
    if number != int(number) or abs(number) >= _LARGE[int]:
        raise InputError(f"{where} holds {given!r}; a count is a whole number under 2^63.")
    return operator.index(given) if isinstance(given, SupportsIndex) else int(number)


def distinct(rows: Iterable[Row], name: str) -> list[str]:
    """The different texts in a column, in the order of their first row."""
    return list(dict.fromkeys(str(getattr(row, name)) for row in rows))
