"""Observed values beside shuffled labels, by sets of subsets; VocSim's Tables 9 to 11."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from earmark import published
from earmark.errors import InputError
from earmark.report.tabulation.choice import Choice
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
from earmark.scores import Row
from earmark.scores.spelling import mean_over
from earmark.tables import MISSING, Cell, Column, Table, one_line
from earmark.wording import listed

SHUFFLES = {
    "clips": "over clips",
    "whole_groups": "between whole groups",
    "inside_groups": "inside groups",
    "blocks": "between whole groups and inside others",
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


def _of_metric(source: TableSource, choice: Choice, metric: str, names: Sequence[str]) -> Table | None:
    printed = bool(source.baselines.rows) or source.printed == "vocsim-permutations"
    form = number_format(metric, choice, source, usual=2 if printed else None)
    notes = Notes()
    means = {name: _means(source, metric, name, choice) for name in names}
    columns = [
        GridColumn(
            "observed", metric, {line: row for line, row in means[name].items() if row.baseline is not None}, name
        )
        for name in names
    ]
    lines = [line for line in chosen_lines(source, choice, [metric]) if any(line in column.rows for column in columns)]
    lines = shown_lines(lines, columns, choice, source)
    of_line: dict[Configuration, list[Row]] = {}
    for row in source.scores:
        if row.metric == metric:
            of_line.setdefault(configuration(row), []).append(row)
    settings = [name for name in ("distance", "correction", "protocol") if len({getattr(at, name) for at in lines}) > 1]
    body: list[list[object]] = []
    shuffles: dict[str, None] = {}
    for line in lines:
        for name, column in zip(names, columns, strict=True):
            if line not in column.rows:
                continue
            row, members = column.rows[line], source.members(name)
            own = [one for one in of_line.get(line, ()) if one.subset in members]
            shuffles |= dict.fromkeys(one.shuffle for one in own if one.shuffle)
            interval = form.interval(row.baseline_low, row.baseline_high)
            small, tested = _small(source, row, own, choice, name)
            low, high = row.baseline_low, row.baseline_high
            note = notes.say(one_line(row.reason)) if row.reason and not row.reason.startswith("p < ") else None
            body.append([
                choice.rename.get(line.system, line.system) or "vectors", *(getattr(line, at) for at in settings), name,
                Cell(form.text(row.value), exact=row.value, note=note), row.baseline,
                Cell(interval, blank=True), Cell(exact=low), Cell(exact=high),
                Cell(form.text(row.lift, sign=True), exact=row.lift), _count(small, tested, own, source, choice, notes),
                Cell(exact=small), Cell(exact=tested),
            ])  # fmt: skip
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
    shuffled = "; ".join(SHUFFLES.get(name, name) for name in shuffles)
    said = [
        f"{metric} against shuffled labels.", sets_said(source, names),
        f"Labels shuffled {shuffled}." if shuffled else "", "As the paper prints it." if printed else "",
    ]  # fmt: skip
    return Table(heads, body, " ".join(filter(None, said)), list(notes.texts))


def _means(source: TableSource, metric: str, name: str, choice: Choice) -> dict[Configuration, Row]:
    """Means with their baselines; of a paper the printed baselines beside the means of its full tables."""
    found = mean_rows(source, metric, name, "skip" if choice.missing == "skip" else "refuse")
    for row in source.baselines:
        if (row.metric, row.subset) == (metric, mean_over(name)):
            mine, reason = found.get(configuration(row)), ""
            if mine is not None and mine.value is not None and not agrees(mine, row):
                reason = f"the mean of the full table is {number_format(metric, choice, source).text(mine.value)}"
            found[configuration(row)] = replace(row, reason=reason)
    return found


def _small(source: TableSource, mean: Row, own: Sequence[Row], choice: Choice, name: str) -> tuple[int | None, int]:
    """How many subsets have a small p-value, of how many that have one; as printed where the paper's is shown."""
    if source.baselines.rows or not own:
        printed = {(cell["metric"], cell["set"]): cell for cell in published.read("vocsim_permutation_tests")}
        cell = printed.get((mean.metric, name))
        counted = cell is not None and choice.p_below == 0.001 and source.printed.startswith("vocsim")
        return (int(cell["p_lt_0.001_count"]), int(cell["n_subsets"])) if counted and cell else (None, 0)
    tested = [row.p_value for row in own if row.p_value is not None]
    return sum(p < choice.p_below for p in tested) if tested else None, len(tested)


def _count(
    small: int | None, tested: int, own: Sequence[Row], source: TableSource, choice: Choice, notes: Notes
) -> Cell:
    if small is None:
        reasons = dict.fromkeys(_why_untested(row) for row in own) if not source.baselines.rows else {}
        why = "; ".join(filter(None, reasons)) or "no p-value is known"
        return Cell(MISSING, note=notes.say(f"no p-value: {why}"), blank=True)
    remarks = []
    lacking = [row.subset for row in own if row.p_value is None] if not source.baselines.rows else []
    if lacking:
        remarks.append(f"no p-value on {listed(lacking)}: groups leave too little to shuffle")
    smallest = min((row.p_value for row in own if row.p_value is not None), default=0.0)
    if not small and smallest >= choice.p_below and own and not source.baselines.rows:
        fewest = round(1 / choice.p_below)
        remarks.append(f"the smallest p is {smallest:.2g}; below {choice.p_below:g} it takes {fewest} shuffles or more")
    note = notes.say("; ".join(remarks)) if remarks else None
    return Cell(f"{small}/{tested}", note=note, blank=True)


def _why_untested(row: Row) -> str:
    """Of a reason with several parts, the one about the p-value."""
    return next((part for part in re.split(r";\s*", row.reason) if part.startswith("no p-value")), "").removeprefix(
        "no p-value: "
    )
