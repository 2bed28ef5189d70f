"""What is known of a metric, and its numbers in words: 31.8, +2.1 points, [29.6, 33.8]."""

from __future__ import annotations

from earmark.errors import InputError
from earmark.scores import Metric, Row, metric_facts
from earmark.tables import NumberFormat

_PERCENT = NumberFormat(1, percent=True, unit="\N{NO-BREAK SPACE}%")
_PLAIN = NumberFormat(3)


def facts(metric: str | Metric) -> Metric:
    """Facts of a metric; one that nobody knows is a plain number of which more is better. Whoever knows more of it,
    such as the host of a board, gives its record, here and below."""
    if isinstance(metric, Metric):
        return metric
    try:
        return metric_facts(metric)
    except InputError:
        return Metric(metric)


def title(metric: str) -> str:
    """What people call a metric, where its record says it; else its spelling."""
    return (facts(metric).title if ":" not in metric else "") or metric


def number_format(metric: str | Metric) -> NumberFormat:
    """One decimal in percent for a fraction, three decimals for another number; a true minus sign."""
    return _PERCENT if facts(metric).percent else _PLAIN


def number(value: float, metric: str | Metric, *, sign: bool = False, unit: bool = False) -> str:
    """31.8 for a fraction (31.8 % with its unit), 0.052 for another number; a true minus sign."""
    return number_format(metric).text(value, sign=sign, unit=unit)


def points(value: float, metric: str | Metric) -> str:
    """A difference of two values, in percentage points where the metric is a fraction."""
    return number(value, metric, sign=True) + (" points" if facts(metric).percent else "")


def interval(row: Row) -> str:
    """[29.6, 33.8], or nothing when the row has no interval."""
    return number_format(row.metric).interval(row.low, row.high)


def heading(metric: str) -> str:
    """The head of a column: `P@1 (%) ↑`, where the arrow says what is better."""
    known = facts(metric)
    return f"{metric}{' (%)' if known.percent else ''} {'↑' if known.higher_is_better else '↓'}"


def goodness(row: Row) -> float:
    """The value, turned so that more is better."""
    assert row.value is not None
    return row.value if facts(row.metric).higher_is_better else -row.value
