"""How a report reads a score table: which rows belong together, which metric leads, how a number is written.

A *representation* is a system under a distance and a correction: what a reader chooses between. A *subset* is a
set of clips that was scored by itself. Means over subsets are left out here; the report makes its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from earmark.errors import InputError
from earmark.scores import Metric, Row, Scores, metric_facts
from earmark.tables import NumberFormat
from earmark.tables import plain as plain

ALL, ACROSS = "all", "across_groups"
PROTOCOLS = {ALL: "all pairs", ACROSS: "across groups"}

_PERCENT = NumberFormat(1, percent=True, unit="\N{NO-BREAK SPACE}%")
_PLAIN = NumberFormat(3)


class Representation(NamedTuple):
    """A system, the distance its vectors were compared under, and the correction of that distance."""

    system: str
    distance: str
    correction: str = "none"

    @property
    def label(self) -> str:
        return " · ".join([self.system or "vectors", *filter(None, [self.measure])])

    @property
    def measure(self) -> str:
        """Distance and correction in one word or two."""
        return self.distance if self.correction in ("", "none") else f"{self.distance} {self.correction}"


class Subset(NamedTuple):
    """Clips that were scored together."""

    suite: str
    name: str

    @property
    def label(self) -> str:
        return self.name or self.suite or "all clips"


Values = Mapping[Subset, Mapping[Representation, Row]]


def representation(row: Row) -> Representation:
    return Representation(row.system, row.distance, row.correction)


def subset(row: Row) -> Subset:
    return Subset(row.suite, row.subset)


def is_mean(row: Row) -> bool:
    return row.aggregate != ""


def is_ablation(row: Row) -> bool:
    """Measured under label noise: `BS1~noise0.05` says nothing of which representation is best."""
    return row.label_noise > 0


def single_subsets(scores: Scores) -> list[Row]:
    """The rows of single subsets as they are labelled, without differences between systems and without predictions."""
    measured = (row for row in scores if row.status != "predicted" and not row.statistic)
    return [row for row in measured if row.single]


def ablations(scores: Scores) -> list[Row]:
    """The rows measured under label noise."""
    return [row for row in scores if is_ablation(row) and not row.statistic]


def subsets(scores: Scores) -> list[Subset]:
    return list(dict.fromkeys(subset(row) for row in single_subsets(scores)))


def representations(scores: Scores) -> list[Representation]:
    return list(dict.fromkeys(representation(row) for row in single_subsets(scores)))


def protocols(scores: Scores) -> list[str]:
    """The protocols of a table, the one that answers first."""
    found = dict.fromkeys(row.protocol for row in single_subsets(scores))
    main = main_protocol(scores)
    return sorted(found, key=lambda name: name != main)


def metrics(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row.metric for row in rows))


def headline(scores: Scores) -> str:
    """The metric to lead with; the first of the table when none of `HEADLINES` has a value."""
    rows = [row for row in single_subsets(scores) if row.value is not None]
    measured = {row.metric for row in rows if row.protocol == ACROSS} or {row.metric for row in rows}
    from earmark.metrics.catalogue import HEADLINES  # which loads NumPy: tables need none

    known = [name for name in HEADLINES if name in measured]
    return next(iter([*known, *sorted(measured), *metrics(scores), "P@1"]))


def values(scores: Scores, metric: str, protocol: str | None = None) -> dict[Subset, dict[Representation, Row]]:
    """The ok rows of one metric, by subset and representation, in the order of the table.

    Without a protocol, those of the one that answers: across groups in every subset that was measured so.
    """
    rows = [row for row in single_subsets(scores) if row.metric == metric and row.status == "ok"]
    found: dict[Subset, dict[Representation, Row]] = {}
    across = {subset(row) for row in rows if row.protocol == ACROSS and row.value is not None}
    for row in rows:
        wanted = protocol or (ACROSS if subset(row) in across else ALL)
        if row.protocol == wanted and row.value is not None:
            found.setdefault(subset(row), {})[representation(row)] = row
    return found


def main_protocol(scores: Scores, metric: str | None = None) -> str:
    """The protocol that a report is about: across groups where that was measured, else all pairs."""
    rows = values(scores, metric or headline(scores), ACROSS)
    return ACROSS if rows else ALL


def protocol_name(found: Values) -> str:
    """Which protocol some values are of, in words: all pairs, across groups, or both where subsets differ."""
    names = {row.protocol for rows in found.values() for row in rows.values()}
    if len(names) > 1:
        return "across groups, and over all pairs where clips have no groups"
    return PROTOCOLS.get(*names, *names) if names else PROTOCOLS[ALL]


def goodness(row: Row) -> float:
    """The value, turned so that more is better."""
    assert row.value is not None
    return row.value if facts(row.metric).higher_is_better else -row.value


def same_clips(rows: Iterable[Row]) -> bool:
    """Whether rows of one metric, subset and protocol rest on the same number of clips, as far as they tell."""
    return len({row.n for row in rows if row.n is not None}) <= 1


def ranked(rows: Mapping[Representation, Row]) -> list[tuple[Representation, Row]]:
    """Best first; equal values keep the order of the table."""
    return sorted(rows.items(), key=lambda item: -goodness(item[1]))


def mean_over_subsets(found: Values) -> dict[Representation, float]:
    """The mean over subsets of every representation that has a value in all of them."""
    everywhere = set.intersection(*(set(rows) for rows in found.values())) if found else set()
    order = dict.fromkeys(name for rows in found.values() for name in rows if name in everywhere)
    return {name: sum(rows[name].value or 0.0 for rows in found.values()) / len(found) for name in order}


def best_on_average(found: Values, metric: str) -> Representation | None:
    """The representation with the best mean over subsets, among those that have a value in all of them."""
    means = mean_over_subsets(found)
    turned = 1 if facts(metric).higher_is_better else -1
    return max(means, key=lambda line: turned * means[line]) if means else None


# --- numbers and names ------------------------------------------------------------------------------------------


def facts(metric: str) -> Metric:
    """Facts of a metric; one that nobody knows is a plain number of which more is better."""
    try:
        return metric_facts(metric)
    except InputError:
        return Metric(metric)


def number_format(metric: str) -> NumberFormat:
    """One decimal in percent for a fraction, three decimals for another number; a true minus sign."""
    return _PERCENT if facts(metric).percent else _PLAIN


def number(value: float, metric: str, *, sign: bool = False, unit: bool = False) -> str:
    """31.8 for a fraction (31.8 % with its unit), 0.052 for another number; a true minus sign."""
    return number_format(metric).text(value, sign=sign, unit=unit)


def points(value: float, metric: str) -> str:
    """A difference of two values, in percentage points where the metric is a fraction."""
    return number(value, metric, sign=True) + (" points" if facts(metric).percent else "")


def interval(row: Row) -> str:
    """[29.6, 33.8], or nothing when the row has no interval."""
    return number_format(row.metric).interval(row.low, row.high)


def overlap(one: Row, other: Row) -> bool | None:
    """Whether the intervals of two rows overlap; None when one of them has none."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return None
    return one.low <= other.high and other.low <= one.high


def listed(names: Iterable[str]) -> str:
    """a, b and c"""
    items = list(names)
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else ""
