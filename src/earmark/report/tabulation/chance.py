"""Observed values beside shuffled labels, by sets of subsets; VocSim's Tables 9 to 11."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal, NamedTuple

from earmark import published
from earmark.errors import InputError
from earmark.report.tabulation.choice import Choice
from earmark.report.tabulation.draws import draws_said
from earmark.report.tabulation.grid import (
    GridColumn,
    Notes,
    chosen_lines,
    number_format,
    sets_said,
    shown_lines,
)
from earmark.report.tabulation.means import agrees, chosen_metrics, chosen_sets, mean_rows
from earmark.report.tabulation.sources import Configuration, TableSource, configuration
from earmark.scores import Row, Scores, aggregate
from earmark.scores.spelling import mean_over
from earmark.tables import MISSING, Cell, Column, NumberFormat, Table, one_line
from earmark.wording import listed

PRINTED_LEVEL = 0.001
"""Below which VocSim's paper counts p-values."""
SHUFFLES = {
    "clips": "over clips",
    "whole_groups": "between whole groups",
    "inside_groups": "inside groups",
    "blocks": "between whole groups where each has one label, and inside the others",
    "clips_ignoring_groups": "over clips whatever their group (p is too small where clips of a group are alike)",
}


def chance_tables(source: TableSource, choice: Choice) -> list[Table]:
    """A table for each metric: a line for each configuration and set that has a baseline."""
    metrics, names = chosen_metrics(source, choice), chosen_sets(source, choice)
    tables = [_of_metric(source, choice, metric, names) for metric in metrics]
    found = [table for table in tables if table is not None]
    if not found:
        raise InputError(
            f"{source.name} has no baseline of {listed(metrics)}: measure it with --permutations (and --shuffle clips "
            "where groups leave nothing to shuffle, as the papers do)."
        )
    return found


class _Against(NamedTuple):
    """A configuration on a set: the mean with its baseline, and the rows of the subsets (none where only means are)."""

    mean: Row
    own: Sequence[Row]


def _of_metric(source: TableSource, choice: Choice, metric: str, names: Sequence[str]) -> Table | None:
    printed = bool(source.baselines.rows) or source.printed == "vocsim-permutations"
    form = number_format(metric, choice, source, usual=2 if printed else None)
    found = {name: _against(source, choice, metric, name) for name in names}
    columns = [
        GridColumn("observed", metric, {line: one.mean for line, one in found[name].items()}, name, mean=True)
        for name in names
    ]
    lines = [line for line in chosen_lines(source, choice, [metric]) if any(line in column.rows for column in columns)]
    lines = shown_lines(lines, columns, choice, source)
    settings = [name for name in ("distance", "correction", "protocol") if len({getattr(at, name) for at in lines}) > 1]
    notes, few = Notes(), _few_shuffles(source, choice)
    body: list[list[object]] = []
    for line in lines:
        system = choice.rename.get(line.system, line.system) or "vectors"
        for name in names:
            if line in found[name]:
                cells = _cells(found[name][line], name, source, choice, form, notes, few)
                body.append([system, *(getattr(line, at) for at in settings), name, *cells])
    if not body:
        return None
    unit = "%" if form.percent else ""
    heads = [
        Column("system", "left"), *(Column(name, "left") for name in settings), Column("set", "left"),
        Column("observed", unit=unit, format=form), Column("baseline", unit=unit, format=form),
        Column("baseline 95 %"), Column("baseline low", data=True), Column("baseline high", data=True),
        Column("lift", format=form), Column(f"p < {choice.p_below:g}"), Column("subsets with small p", data=True),
        Column("subsets with p", data=True),
    ]  # fmt: skip
    shown = (found[name][line] for line in lines for name in names if line in found[name])
    shuffles = dict.fromkeys(row.shuffle for one in shown for row in one.own if row.shuffle)
    shuffled = "; ".join(SHUFFLES.get(name, name) for name in shuffles)
    said = [
        f"{metric} against shuffled labels.", sets_said(source, names),
        draws_said(row for name in names for line in lines if line in found[name] for row in found[name][line].own),
        f"Labels shuffled {shuffled}." if shuffled else "", "As the paper prints it." if printed else "",
    ]  # fmt: skip
    return Table(heads, body, " ".join(filter(None, said)), list(notes.texts))


def _against(source: TableSource, choice: Choice, metric: str, name: str) -> dict[Configuration, _Against]:
    """Every configuration that has a baseline somewhere in a set."""
    way: Literal["refuse", "skip"] = "skip" if choice.missing == "skip" else "refuse"
    means = mean_rows(source, metric, name, way)
    for row in source.baselines:
        if (row.metric, row.subset) == (metric, mean_over(name)):
            mine, reason = means.get(configuration(row)), ""
            if mine is not None and mine.value is not None and not agrees(mine, row):
                reason = f"the mean of the full table is {number_format(metric, choice, source).text(mine.value)}"
            means[configuration(row)] = replace(row, reason=reason)
    members = set(source.members(name))
    own: dict[Configuration, list[Row]] = {}
    for row in source.scores if not source.baselines.rows else ():
        if row.metric == metric and row.subset in members:
            own.setdefault(configuration(row), []).append(row)
    found = {}
    for line, mean in means.items():
        rows = own.get(line, [])
        lacking = [row.subset for row in rows if row.baseline is None]
        if mean.baseline is None and choice.missing == "skip" and 0 < len(lacking) < len(rows):
            # Observed and baseline over the same subsets.
            kept = Scores(tuple(row for row in rows if row.baseline is not None))
            mean = replace(aggregate(kept, "mean").rows[0], reason=f"without {listed(lacking)}: no baseline there")
        if mean.baseline is not None or len(lacking) < len(rows):
            found[line] = _Against(mean, rows)
    return found


def _cells(
    one: _Against, name: str, source: TableSource, choice: Choice, form: NumberFormat, notes: Notes, few: bool
) -> Iterator[object]:
    """Observed, baseline, its interval, lift and count; what is not known is a dash with the reason."""
    mean = one.mean
    reserved = mean.reason and not mean.reason.startswith("p < ")
    note = notes.say(one_line(mean.reason)) if reserved else None
    yield Cell(form.text(mean.value), exact=mean.value, note=note, blank=mean.value is None)
    if mean.baseline is None:
        lacking = [row.subset for row in one.own if row.baseline is None]
        why = notes.say(f"no baseline on {listed(lacking)}: {_why_untested(one.own) or 'it was not measured'}")
        yield from (Cell(MISSING, note=why, blank=True), Cell(blank=True), Cell(blank=True), Cell(blank=True))
        yield Cell(MISSING, note=why, blank=True)
    else:
        yield Cell(form.text(mean.baseline), exact=mean.baseline)
        yield Cell(form.interval(mean.baseline_low, mean.baseline_high), blank=True)
        yield from (Cell(exact=mean.baseline_low, blank=True), Cell(exact=mean.baseline_high, blank=True))
        yield Cell(form.text(mean.lift, sign=True), exact=mean.lift, blank=True)
    small, tested = _small(source, one, choice, name)
    yield _count(small, tested, one.own, choice, notes, few)
    yield from (Cell(exact=small, blank=True), Cell(exact=tested, blank=True))


def _small(source: TableSource, one: _Against, choice: Choice, name: str) -> tuple[int | None, int]:
    """How many subsets have a small p-value, of how many that have one; as printed where the paper's is shown."""
    if not one.own and source.printed.startswith("vocsim") and choice.p_below == PRINTED_LEVEL:
        for cell in published.read("vocsim_permutation_tests"):
            if (cell["metric"], cell["set"]) == (one.mean.metric, name):
                return int(cell["p_lt_0.001_count"]), int(cell["n_subsets"])
    tested = [row.p_value for row in one.own if row.p_value is not None]
    return sum(p < choice.p_below for p in tested) if tested else None, len(tested)


def _fewest(choice: Choice) -> int:
    """Of m shuffles the smallest p is 1 / (m + 1)."""
    return math.floor(1 / choice.p_below + 1e-9)


def _few_shuffles(source: TableSource, choice: Choice) -> bool:
    """Whether every p-value may be of too few shuffles for a small one: all are multiples of one 1 / (m + 1)."""
    shared = 1
    for p in {row.p_value for row in source.scores if row.p_value is not None}:
        near = Fraction(p).limit_denominator(_fewest(choice))
        shared = math.lcm(shared, near.denominator)
        if abs(float(near) - p) > 1e-9 or shared > _fewest(choice):
            return False
    return True


def _count(small: int | None, tested: int, own: Sequence[Row], choice: Choice, notes: Notes, few: bool) -> Cell:
    if small is None:
        return Cell(MISSING, note=notes.say(f"no p-value: {_why_untested(own) or 'none is known'}"), blank=True)
    remarks = []
    lacking = [row.subset for row in own if row.p_value is None]
    if lacking:
        remarks.append(f"no p-value on {listed(lacking)}: {_why_untested(own) or 'it was not measured'}")
    smallest = min((row.p_value for row in own if row.p_value is not None), default=0.0)
    if not small and own and smallest >= choice.p_below:
        remarks.append(f"the smallest p is {smallest:.2g}")
        if few:
            remarks.append(f"below {choice.p_below:g} it takes {_fewest(choice)} shuffles or more")
    note = notes.say("; ".join(remarks)) if remarks else None
    return Cell(f"{small}/{tested}", note=note, blank=True)


def _why_untested(rows: Sequence[Row]) -> str:
    """Why there is no p-value, of rows whose reasons may have several parts."""
    parts = [part for row in rows for part in re.split(r";\s*", row.reason) if part.startswith("no p-value: ")]
    return "; ".join(dict.fromkeys(part.removeprefix("no p-value: ") for part in parts))
