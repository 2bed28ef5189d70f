"""How a report reads a score table: which rows belong together, and which metric leads.

A *representation* is a system under a distance and a correction: what a reader chooses between. A *subset* is a
set of clips that was scored by itself. Means over subsets are left out here; the report makes its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from earmark.report.metric_text import facts, goodness
from earmark.scores import LEADING, Row, Scores
from earmark.scores.spelling import SAMPLED

ALL, ACROSS = "all", "across_groups"
_DRAWN = re.compile(rf"\(sample [^()]*\)|\d+ of \d+ {SAMPLED} \(seed \d+\)")
PROTOCOLS = {ALL: "all pairs", ACROSS: "across groups"}


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


RowsByRepresentation = dict[Representation, Row]
Values = Mapping[Subset, Mapping[Representation, Row]]


def representation(row: Row) -> Representation:
    return Representation(row.system, row.distance, row.correction)


def subset(row: Row) -> Subset:
    return Subset(row.suite, row.subset)


class ScoreIndex:
    """The rows of a score table, sorted once: every look-up afterwards touches only the rows it returns.

    Attributes:
        rows: Rows of single subsets as they are labelled, without differences between systems and predictions.
        probes: Rows of probes of such subsets, which `rows` does not hold.
        ablations: Rows measured under label noise.
        subsets, representations, metrics: Those of `rows`, in the order of the table.
        every_metric: The metrics of all rows of the table.
        by_subset: `rows` by subset.
    """

    def __init__(self, scores: Scores) -> None:
        own = [row for row in scores if not row.statistic and not row.probed]
        self.rows = [row for row in own if row.status != "predicted" and row.single]
        self.probes = [row for row in scores if row.probed and row.single and not row.statistic]
        self.ablations = [row for row in own if row.label_noise > 0]
        self.by_subset: dict[Subset, list[Row]] = {}
        for row in self.rows:
            self.by_subset.setdefault(subset(row), []).append(row)
        self.subsets = list(self.by_subset)
        self.representations = list(dict.fromkeys(map(representation, self.rows)))
        self.metrics = list(dict.fromkeys(row.metric for row in self.rows))
        self.every_metric = list(dict.fromkeys(row.metric for row in scores))
        self._measured: dict[str, list[Row]] = {}
        for row in self.rows:
            if row.status == "ok" and row.value is not None:
                self._measured.setdefault(row.metric, []).append(row)
        self._values: dict[tuple[str, str | None], dict[Subset, RowsByRepresentation]] = {}

    @cached_property
    def headline(self) -> str:
        """The metric to lead with; the first of the table when none of the usual ones has a value."""
        from earmark.metrics.catalogue import HEADLINES  # which loads NumPy: tables need none

        rows = [row for row in self.rows if row.value is not None]
        measured = {row.metric for row in rows if row.protocol == ACROSS} or {row.metric for row in rows}
        known = [name for name in HEADLINES if name in measured]
        return next(iter([*known, *sorted(measured), *self.every_metric, "P@1"]))

    def chosen(self, metrics: Sequence[str] = ()) -> tuple[str, ...]:
        """The metrics that are asked for; none: those of `LEADING` that were measured, else the one that leads."""
        return tuple(metrics) or tuple(name for name in LEADING if self.values(name)) or (self.headline,)

    @cached_property
    def main_protocol(self) -> str:
        """The protocol that a report is about: across groups where that was measured, else all pairs."""
        return ACROSS if self.values(self.headline, ACROSS) else ALL

    @cached_property
    def protocols(self) -> list[str]:
        """The protocols of the table, the one that answers first."""
        return sorted(dict.fromkeys(row.protocol for row in self.rows), key=lambda name: name != self.main_protocol)

    def values(self, metric: str, protocol: str | None = None) -> Mapping[Subset, RowsByRepresentation]:
        """The ok rows of one metric, by subset and representation, in the order of the table.

        Without a protocol, those of the one that answers: across groups in every subset that was measured so.
        """
        found = self._values.get((metric, protocol))
        if found is None:
            found = self._values[metric, protocol] = {}
            rows = self._measured.get(metric, [])
            across = {subset(row) for row in rows if row.protocol == ACROSS}
            for row in rows:
                if row.protocol == (protocol or (ACROSS if subset(row) in across else ALL)):
                    found.setdefault(subset(row), {})[representation(row)] = row
        return found


def as_index(scores: Scores | ScoreIndex) -> ScoreIndex:
    return scores if isinstance(scores, ScoreIndex) else ScoreIndex(scores)


def protocol_name(found: Values) -> str:
    """Which protocol some values are of, in words: all pairs, across groups, or both where subsets differ."""
    names = {row.protocol for rows in found.values() for row in rows.values()}
    if len(names) > 1:
        return "across groups, and over all pairs where clips have no groups"
    return PROTOCOLS.get(*names, *names) if names else PROTOCOLS[ALL]


def same_clips(rows: Iterable[Row]) -> bool:
    """Whether rows of one metric, subset and protocol rest on the same clips, as far as they tell."""
    return not different_clips(rows)


def different_clips(rows: Iterable[Row]) -> str:
    """How the clips of such rows differ: in their number, or in the draw; nothing where they do not, as they tell."""
    rows = list(rows)
    counts = {row.n for row in rows if row.n is not None}
    if len(counts) > 1:
        return f"n = {min(counts)} to {max(counts)}"
    drawn = sorted({draw for row in rows if (draw := drawn_clips(row))})
    return " and ".join(drawn) if len(drawn) > 1 else ""


def drawn_clips(row: Row) -> str:
    """Which clips were drawn for a row, as its reason says: `sample 5x5, seed 0`; nothing where it does not."""
    return ", ".join(found[0].strip("()").replace(" (", ", ") for found in _DRAWN.finditer(row.reason))


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


def overlap(one: Row, other: Row) -> bool | None:
    """Whether the intervals of two rows overlap; None when one of them has none."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return None
    return one.low <= other.high and other.low <= one.high
