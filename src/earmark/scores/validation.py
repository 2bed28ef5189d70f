"""What a score row must fulfil to be believed, as one sentence for each problem."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from earmark.errors import InputError, did_you_mean
from earmark.scores.metrics import Metric, metric_facts
from earmark.scores.rows import KEY, Row
from earmark.scores.spelling import columns_of

STATUSES = ("ok", "not_applicable", "failed", "predicted", "repeated", "incomplete")
"""No mean, rank or best counts a value whose status is not ok. A predicted value was not measured: it has an interval
and a reason. A repeated value is that of another system: its reason says whose. An incomplete value rests on some of
the clips, because the system failed on others: it would win by failing."""
WITH_VALUE = ("ok", "predicted", "repeated", "incomplete")
STATUS_MARKS = {"predicted": "~", "repeated": "=", "incomplete": "*"}
"""What stands before a value in a table, where it does not count."""
PROTOCOLS = ("all", "across_groups", "reference", "unaligned", "gain_matched", "clean_enrol", "coded_enrol")
"""Beside these: `tandem:<passes>` and `loss:<percent>`, and each of all with `@<Hz>` for clips of one sampling rate.
Rows of probes say which probe and which folds."""
_COUNTED_PROTOCOL = re.compile(r"tandem:[1-9][0-9]*|loss:(?:100|[0-9]{1,2}(?:\.[0-9]+)?)")
_AT_RATE = re.compile(r"@[1-9][0-9]*$")

_ROUNDING = 1e-9
"""How far a value may lie outside its range before it is more than rounding."""


class RowProblem(NamedTuple):
    """One thing that is wrong with a table: the row's number (from 1), a code, the column, and a sentence."""

    row: int
    code: str
    field: str
    message: str


def validate(rows: Iterable[Row]) -> list[str]:
    """What is wrong with the rows: one sentence each, with the row's number (from 1) and the remedy."""
    return [problem.message for problem in table_problems(rows)]


def table_problems(rows: Iterable[Row], facts_of: Callable[[str], Metric] = metric_facts) -> Iterator[RowProblem]:
    """What is wrong with the rows, as values, row by row. `facts_of` knows the metrics, or raises InputError."""
    first_with: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(rows, start=1):
        at = f"Row {number} ({row.metric})" if row.metric else f"Row {number}"
        for code, column, message in _problems(row, facts_of):
            yield RowProblem(number, code, column, f"{at}: {message}")
        earlier = first_with.setdefault(row.key, number)
        if earlier != number:
            message = f"{at}: repeats row {earlier} ({', '.join(KEY)} are the same); keep one of them."
            yield RowProblem(number, "repeated_row", "", message)


def _problems(row: Row, facts_of: Callable[[str], Metric]) -> Iterator[tuple[str, str, str]]:
    facts: Metric | None = None
    if not row.metric:
        yield "no_metric", "metric", "metric is empty; name one."
    else:
        try:
            facts = facts_of(row.metric)
        except InputError as error:
            yield "unknown_metric", "metric", f"unknown metric: {error}"
    if row.status not in STATUSES:
        yield (
            "unknown_status",
            "status",
            f'unknown status "{row.status}"; use {", ".join(STATUSES)}.{did_you_mean(row.status, STATUSES)}',
        )
    elif row.status in WITH_VALUE and row.value is None:
        yield (
            "no_value",
            "value",
            f"status is {row.status} but there is no value; give one, or another status with a reason.",
        )
    elif row.status in ("not_applicable", "failed") and row.value is not None:
        yield (
            "unexpected_value",
            "value",
            f"status is {row.status} but there is a value; remove the value or set the status to ok.",
        )
    if row.status == "predicted" and (row.low is None or row.high is None):
        yield "no_interval", "low", "status is predicted without an interval; give low and high."
    if row.status != "ok" and not row.reason.strip():
        yield "no_reason", "reason", f"status is {row.status} without a reason; say why in one sentence."
    protocol = _AT_RATE.sub("", row.protocol)
    if protocol not in PROTOCOLS and not _COUNTED_PROTOCOL.fullmatch(protocol) and not row.probed:
        hint = did_you_mean(row.protocol, PROTOCOLS)
        yield "unknown_protocol", "protocol", f'unknown protocol "{row.protocol}"; use {", ".join(PROTOCOLS)}.{hint}'
    for column, spelled in columns_of(row.subset, row.distance, row.protocol, row.metric)._asdict().items():
        if getattr(row, column) != spelled:
            yield (
                "contradiction",
                column,
                f'{column} is "{getattr(row, column)}" and the names of the row say "{spelled}"; leave {column} empty.',
            )
    if facts is not None:
        yield from _range_problems(row, facts)
    for lower, upper in (("low", "high"), ("baseline_low", "baseline_high")):
        low, high = getattr(row, lower), getattr(row, upper)
        if (low is None) != (high is None):
            yield "half_interval", lower, f"one of {lower} and {upper} is missing; give both or neither."
        elif low is not None and low > high:
            yield "reversed_interval", lower, f"{lower} {low:g} is above {upper} {high:g}; exchange them."
    if row.p_value is not None and not 0 < row.p_value <= 1:
        yield (
            "out_of_range",
            "p_value",
            f"p_value {row.p_value:g} is outside (0, 1]; from c of m permutations it is (c+1)/(m+1).",
        )
    if row.n is not None and row.n < 0:
        yield "negative", "n", f"n {row.n} is negative; it counts points."
    if row.seconds is not None and row.seconds < 0:
        yield "negative", "seconds", f"seconds {row.seconds:g} is negative; leave it empty if it was not measured."


def _range_problems(row: Row, facts: Metric) -> Iterator[tuple[str, str, str]]:
    low, high = facts.range
    for name in ("value", "low", "high", "baseline", "baseline_low", "baseline_high"):
        number = getattr(row, name)
        if number is None or low - _ROUNDING <= number <= high + _ROUNDING:
            continue
        remedy = (
            "values are fractions, divide percent by 100" if facts.percent and 1 < number <= 100 else "measure it again"
        )
        yield "out_of_range", name, f"{name} {number:g} is outside [{low:g}, {high:g}]; {remedy}."
