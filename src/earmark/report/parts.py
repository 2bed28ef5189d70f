"""Scores group by group and class by class: which speakers, birds, recordings or labels fare worst, and is it chance?

    scores.by_group()              of scores that keep every clip's values (per_point=True)
    parts_of(values, labels, …)    of any values of single clips

The lines are no rows of a score table: a group is no subset, for its clips have their neighbours among all clips.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from earmark.calibrate.parts import Part, measure_parts
from earmark.displayed import Displayed
from earmark.errors import InputError, UsageError, did_you_mean, require
from earmark.report.metric_text import facts, number_format
from earmark.report.score_index import ACROSS, PROTOCOLS
from earmark.scores import Scores
from earmark.tables import Cell, Column, Table
from earmark.wording import counted, first_of

By = Literal["group", "class"]
TESTED = "P@1"
"""The metric by which parts stand out: each clip is right or wrong, so that the test is exact."""
SHOWN = (TESTED, "GSR", "P@5")
SURE = 0.05
ALIKE = 1.5
"""How many times as common a class may be among the candidates of one group as among those of another."""
_NAMED = 5
_PLURAL = {"group": "groups", "class": "classes"}


@dataclass(frozen=True)
class PartLine:
    """A group or a class: its clips that were queries, on how many classes (or groups) they spread, and its scores."""

    name: str
    n: int
    spread: int
    scores: Mapping[str, Part]

    @property
    def tested(self) -> Part | None:
        return self.scores.get(TESTED)

    @property
    def stands_out(self) -> bool:
        return self.tested is not None and self.tested.p_value is not None and self.tested.p_value < SURE


@dataclass(frozen=True, repr=False)
class Parts(Displayed):
    """Every group or class of a subset under one representation, the lowest first."""

    by: By
    metrics: tuple[str, ...]
    lines: tuple[PartLine, ...]
    title: str = ""
    protocol: str = "all"

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def standing_out(self) -> list[PartLine]:
        """The lines that differ from the others by more than dealing out clips at random explains."""
        return [line for line in self.lines if line.stands_out]

    def table(self, most: int | None = None, *, told: bool = False) -> Table:
        """The lowest `most` lines (default: all), under what they say where `told`; CSV has the ends of intervals in
        columns of their own."""
        other = "classes" if self.by == "group" else "groups"
        spread = any(line.spread for line in self.lines)
        columns = [Column(self.by, "left"), Column("clips"), *([Column(other)] if spread else [])]
        for metric in self.metrics:
            form = number_format(metric)
            unit = "%" if facts(metric).percent else ""
            columns.append(Column(metric, unit=unit, format=form))
            if metric == TESTED:
                columns += [Column(f"{metric} {end}", format=form, data=True) for end in ("low", "high")]
        if judged := TESTED in self.metrics:
            columns += [Column("elsewhere", unit="%", format=number_format(TESTED)), Column("p")]
        rows = []
        for line in self.lines[:most]:
            cells: list[object] = [line.name, line.n, *([line.spread] if spread else [])]
            for metric in self.metrics:
                cells += _cells(metric, line.scores.get(metric), bold=line.stands_out and metric == TESTED)
            if judged:
                tested = line.tested
                cells += [tested and tested.elsewhere, _p_cell(tested and tested.p_value)]
            rows.append(cells)
        return Table(columns, rows, title=" ".join([f"{self.title}.", *self.sentences()]) if told else self.title)

    def to_pandas(self) -> Any:
        """A data frame of pandas: a line for each part, shares from 0 to 1, and the ends of intervals."""
        pandas = require("pandas", "A data frame", "notebook")
        table = self.table()
        return pandas.DataFrame(table.records(), columns=table.names)

    def sentences(self) -> list[str]:
        """What stands out, what cannot be judged, and what a part would have to reach to be noticed."""
        judged = [line for line in self.lines if line.tested is not None and line.tested.p_value is not None]
        if not judged:
            return [self._why_not()] if self.lines else []
        return [*self._verdict(judged), *self._power(judged)]

    def _verdict(self, judged: Sequence[PartLine]) -> list[str]:
        low: list[str] = []
        high: list[str] = []
        for line in self.standing_out:
            tested = line.tested
            assert tested is not None
            assert tested.elsewhere is not None
            (low if tested.value < tested.elsewhere else high).append(line.name)
        deal = "dealing out the clips of each class at random" if self.by == "group" else "dealing out clips at random"
        if not low and not high:
            if len(judged) == 1:
                return [f"The one {self.by} that can be judged does not stand out: {deal} explains it."]
            return [f"None of {counted(len(judged), self.by)} stands out: {deal} explains the differences in {TESTED}."]
        sides = [("lower", low), ("higher", high)]
        parts = [f"{side}: {first_of(names, _NAMED)}" for side, names in sides if names]
        count = len(low) + len(high)
        stand = "stands" if count == 1 else "stand"
        said = f"{count} of {counted(len(judged), self.by)} {stand} out in {TESTED} beyond what {deal} explains"
        return [f"{said} ({'; '.join(parts)})."]

    def _power(self, judged: Sequence[PartLine]) -> list[str]:
        sizes = sorted(line.n for line in judged)
        usual = sizes[len(sizes) // 2]
        noticed = [line.tested.noticed for line in judged if line.n == usual and line.tested is not None]
        known = [value for value in noticed if value is not None]
        clips = counted(usual, "clip")
        if not known:
            return [f"With {clips}, the usual number, no {self.by} could stand out as low, whatever it reaches."]
        bound = float(np.median(known))
        at = f"at {number_format(TESTED).text(bound, unit=True)} or less" if bound else "only without a single hit"
        return [f"A {self.by} of {clips}, the usual number, stands out as low {at}."]

    def _why_not(self) -> str:
        if TESTED not in self.metrics:
            return f"Which {_PLURAL[self.by]} stand out is asked of {TESTED}, which was not measured."
        if len(self.lines) == 1:
            return f"There is one {self.by} alone: it cannot stand out."
        if self.by == "group" and all(line.tested and line.tested.elsewhere is None for line in self.lines):
            if self.protocol == ACROSS and any(line.spread for line in self.lines):
                return (
                    "No class is as common elsewhere for one group as for another, so what is due to a group cannot be "
                    "told from what the others have: measure without --across-groups to compare them."
                )
            return "No class is in two groups, so what is due to a group cannot be told from what is due to its class."
        return f"Nothing tells {_PLURAL[self.by]} apart: the clips that could are all right, or all wrong."


def _p_cell(p_value: float | None) -> Cell | None:
    if p_value is None:
        return None
    return Cell("< 0.001" if p_value < 0.001 else f"{p_value:.3f}", exact=p_value)


def _cells(metric: str, part: Part | None, *, bold: bool) -> list[object]:
    ends = [part and part.low, part and part.high] if metric == TESTED else []
    if part is None:
        return [None, *ends]
    form = number_format(metric)
    rest = " " + form.interval(part.low, part.high) if metric == TESTED else ""
    return [Cell(form.text(part.value), bold=bold, rest=rest.rstrip(), exact=part.value), *ends]


def parts_of(
    values: Mapping[str, NDArray[np.float64]],
    labels: Sequence[str | None],
    groups: Sequence[str | None] | None = None,
    by: By = "group",
    title: str = "",
    *,
    protocol: str = "all",
) -> Parts:
    """The parts of a subset.

    Args:
        values: By metric, a value for each clip, NaN where it has none; metrics other than `SHOWN` are left out.
        labels: Of the clips.
        groups: Of the clips; needed by group.
        by: `group` compares groups within each class, `class` classes with each other.
        title: Stands above the table.
        protocol: Under which the values were measured; across groups, groups are compared within each class where
            they find about as much of it in the other groups.
    """
    if by not in ("group", "class"):
        raise UsageError(f"by is group or class, not {by!r}.")
    if by == "group" and (groups is None or not any(group is not None for group in groups)):
        raise InputError("The clips have no groups: give the speaker, bird or recording of each.")
    metrics = tuple(name for name in SHOWN if name in values)
    if not metrics:
        raise InputError(f"There is no value of single clips of {', '.join(SHOWN)}: measure one of them.")
    names, others = (groups, labels) if by == "group" else (labels, groups)
    assert names is not None
    strata = None if groups is None or by == "class" else _strata(labels, groups, across=protocol == ACROSS)
    made = {metric: measure_parts(values[metric], names, strata) for metric in metrics}
    asked = np.logical_or.reduce([np.isfinite(values[metric]) for metric in metrics])
    spreads: dict[str, set[str]] = {}
    for name, other, was_query in zip(names, others or [None] * len(names), asked, strict=True):
        if name is not None and other is not None and was_query:
            spreads.setdefault(name, set()).add(other)
    order = dict.fromkeys(str(name) for parts in made.values() for name in parts)
    lines = []
    for name in order:
        scores = {metric: parts[name] for metric, parts in made.items() if name in parts}
        n = max(part.n for part in scores.values())
        lines.append(PartLine(name, n, len(spreads.get(name, ())), scores))
    lead = metrics[0]
    lines.sort(key=lambda line: (line.scores[lead].value if lead in line.scores else np.inf, -line.n, line.name))
    return Parts(by, metrics, tuple(lines), title, protocol)


def _strata(labels: Sequence[str | None], groups: Sequence[str | None], *, across: bool) -> list[Hashable]:
    """What groups are compared within: each class and, across groups, as much of it among the candidates.

    A clip then finds its class in the other groups alone. Where two groups differ in how common a class is elsewhere,
    they differ in their hits, and neither is to blame.
    """
    if not across:
        return list(labels)
    pairs = [(label, group) for label, group in zip(labels, groups, strict=True) if label and group]
    cells, by_label, by_group = Counter(pairs), Counter(label for label, _ in pairs), Counter(of for _, of in pairs)
    shares: dict[str, dict[str, float]] = {}
    for (label, group), count in cells.items():
        others = len(pairs) - by_group[group]
        shares.setdefault(label, {})[group] = (by_label[label] - count) / others if others else 0.0
    numbers: dict[tuple[str, str], int] = {}
    for label, of_group in shares.items():
        number, least = 0, min(of_group.values())
        for group, share in sorted(of_group.items(), key=lambda item: item[1]):
            if share > ALIKE * least:
                number, least = number + 1, share
            numbers[label, group] = number
    return [
        (label, numbers.get((label, group))) if label and group else None
        for label, group in zip(labels, groups, strict=True)
    ]


def parts_of_scores(scores: Scores, by: By, **chosen: str) -> Parts:
    """The parts of scores that keep every clip's values; `chosen` are distance, correction and protocol, where there
    are several: the first distance and correction, and across groups, unless they say otherwise."""
    if not scores.per_point or scores.point_labels is None:
        raise InputError("These scores hold no values of single clips: evaluate with per_point=True.")
    names = ("distance", "correction", "protocol")
    keys = list(dict.fromkeys(key[:3] for key in scores.per_point))
    for place, name in enumerate(names):
        present = list(dict.fromkeys(key[place] for key in keys))
        default = ACROSS if name == "protocol" and ACROSS in present else present[0]
        wanted = chosen.get(name, default)
        if wanted not in present:
            raise UsageError(f"No {name} {wanted!r} was measured.{did_you_mean(wanted, present)}")
        keys = [key for key in keys if key[place] == wanted]
    (key,) = keys
    values = {metric: found for (*setting, metric), found in scores.per_point.items() if tuple(setting) == key}
    about = [key[0], *(name for name in key[1:2] if name != "none"), PROTOCOLS.get(key[2], key[2])]
    return parts_of(values, scores.point_labels, scores.point_groups, by, title=", ".join(about), protocol=key[2])
