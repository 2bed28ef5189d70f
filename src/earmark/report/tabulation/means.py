"""Tables of values and means: the main table, one metric by subset, and codecs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from earmark.errors import InputError
from earmark.report.metric_text import facts
from earmark.report.tabulation.choice import Choice, pick
from earmark.report.tabulation.grid import (
    GridColumn,
    chosen_lines,
    make_table,
    sets_said,
)
from earmark.report.tabulation.sources import ALL, HARMONIC, Configuration, TableSource, configuration
from earmark.scores import LEADING, Row, Rule, Scores, aggregate
from earmark.scores.metrics import family
from earmark.scores.spelling import mean_over
from earmark.tables import Table

_TASKS = (
    "wer", "dwer", "eer", "min_dcf", "speaker_similarity", "er_accuracy", "aec_map", "mean_average_precision",
    "accuracy",
)  # fmt: skip
ROUNDED = 0.001 + 1e-9
"""What rounding explains between a printed mean and that of printed values: half a unit of the last digit of each."""
AS_PRINTED = "margins as the paper prints them, from bootstrap intervals of each subset"


def chosen_metrics(source: TableSource, choice: Choice, usual: Sequence[str] = LEADING) -> list[str]:
    """The metrics asked for; else the usual ones that are there, else the first three."""
    present = source.metrics
    if choice.metrics:
        return pick(choice.metrics, present, "metric", source.name)
    if source.codecs:
        usual = ("overall",)
    return [name for name in usual if name in present] or present[:3]


def chosen_sets(source: TableSource, choice: Choice) -> list[str]:
    """The sets to average over."""
    names = list(choice.averages) or [one.name for one in source.sets]
    for name in names:
        source.members(name)  # says what is known, if it is not
    return names


def mean_rows(
    source: TableSource, metric: str, name: str, missing: Literal["refuse", "skip"]
) -> dict[Configuration, Row]:
    """The mean of a metric over a set, of every configuration: as the source brings it, or made from the subsets."""
    members = source.members(name)
    label = mean_over("mean" if name == ALL else name)
    found: dict[Configuration, Row] = {}
    if members:
        rows = Scores(tuple(row for row in source.scores if row.metric == metric and row.subset in members))
        harmonic = source.codecs and metric in HARMONIC
        rule = Rule("mean" if name == ALL else name, "", subsets=members)
        found = {configuration(row): row for row in aggregate(rows, rule, harmonic=harmonic, missing=missing)}
    given, averages, margins = (
        {configuration(row): row for row in table if (row.metric, row.subset) == (metric, label)}
        for table in (source.given, source.averages, source.margins)
    )
    for line, mine in found.items():
        if line in averages and agrees(mine, averages[line]):
            mine = replace(mine, value=averages[line].value)  # the authors averaged values that were not rounded yet
        found[line] = _with_margin(mine, margins[line]) if line in margins else mine
    return found | given


def agrees(mine: Row, printed: Row) -> bool:
    """Whether two means differ by no more than rounding explains."""
    return mine.value is not None and printed.value is not None and abs(mine.value - printed.value) <= ROUNDED


def _with_margin(mine: Row, printed: Row) -> Row:
    """A mean with the margin that the paper prints beside it, and a word where the paper prints another mean."""
    if mine.value is None or printed.value is None or printed.low is None or printed.high is None:
        return mine
    said = "" if agrees(mine, printed) else f"the paper's Table 2 prints {100 * printed.value:.1f}"
    reason = "; ".join(filter(None, [mine.reason, said]))
    low, high = mine.value + (printed.low - printed.value), mine.value + (printed.high - printed.value)
    return replace(mine, low=low, high=high, reason=reason)


def main_table(source: TableSource, choice: Choice) -> list[Table]:
    """Macro-averages over sets of subsets with margins; VocSim's Table 2."""
    metrics, names = chosen_metrics(source, choice), chosen_sets(source, choice)
    columns = [
        GridColumn(
            metric, metric, mean_rows(source, metric, name, _way(choice)), over=name if len(names) > 1 else "",
            interval=choice.interval != "none", mean=True, members=source.members(name),
        )
        for name in names
        for metric in metrics
    ]  # fmt: skip
    lines = chosen_lines(source, choice, metrics)
    if choice.interval is None:
        choice = choice.model_copy(update={"interval": "ends" if _overruns(columns, lines) else "margin"})
    notes = [_margin(columns, source, choice)] if choice.interval != "none" else []
    leading = _leading(source, choice, lines)
    if leading:
        choice, lines = choice.model_copy(update={"sort": "none"}), leading
    return [make_table(source, choice, lines, columns, sets_said(source, names), notes=notes)]


def _leading(source: TableSource, choice: Choice, lines: Sequence[Configuration]) -> list[Configuration]:
    """The rows of the paper's own main table, where nobody asked for others."""
    if not source.leading or choice.chooses_rows():
        return []
    places = {pair: place for place, pair in enumerate(source.leading)}
    own = [line for line in lines if (line.system, line.distance) in places]
    return sorted(own, key=lambda line: places[line.system, line.distance])


def _overruns(columns: Sequence[GridColumn], lines: Sequence[Configuration]) -> bool:
    """Whether a margin to both sides would leave the range of a metric: then the ends say it better."""
    for column in columns:
        low, high = facts(column.metric).range
        for line in lines:
            row = column.rows.get(line)
            if row is not None and row.value is not None and row.low is not None and row.high is not None:
                margin = max(row.value - row.low, row.high - row.value)
                if row.value + margin > high or row.value - margin < low:
                    return True
    return False


def _margin(columns: Sequence[GridColumn], source: TableSource, choice: Choice) -> str:
    """What the margins are, of means and of single subsets."""
    rows = [row for column in columns for row in column.rows.values() if row.low is not None]
    if not rows:
        return ""
    mark, what = ("[ ]", "") if choice.interval == "ends" else ("±", "margin of the ")
    if source.printed in ("vocsim", "vocsim-main"):
        return f"{mark}: {AS_PRINTED}."
    if source.printed:
        return f"{mark}: what the paper prints for each subset, combined."
    kinds = {row.interval for row in rows}
    units = sorted({row.unit for row in rows if row.unit})
    left_out = f"leaving out each {' or '.join(units)}" if kinds == {"jackknife"} and units else ""
    combined = {column.mean and len(column.members) != 1 for column in columns}
    if combined == {True}:
        how = left_out or "the interval of each subset"
        return f"{mark}: {what}95 % interval of the mean, from {how}, subsets taken as independent."
    means = "; of means, with subsets taken as independent" if True in combined else ""
    return f"{mark}: {what}95 % interval{f', from {left_out}' if left_out else ''}{means}."


def _way(choice: Choice) -> Literal["refuse", "skip"]:
    return "skip" if choice.missing == "skip" else "refuse"


# --- one metric by subset -----------------------------------------------------------------------------------------


def full_tables(source: TableSource, choice: Choice) -> list[Table]:
    """For each metric a column for each subset, and the means; VocSim's Tables 19-25, Codec-SUPERB's Tables 6-8."""
    if not source.subsets:
        raise InputError(f"{source.name} holds means alone: give the scores of the subsets.")
    metrics = chosen_metrics(source, choice)
    return [table for metric in metrics for table in _of_metric(source, choice, metric)]


def _of_metric(source: TableSource, choice: Choice, metric: str) -> Iterator[Table]:
    rows: dict[str, dict[Configuration, Row]] = {}
    for row in source.scores:
        if row.metric == metric:
            rows.setdefault(row.subset, {})[configuration(row)] = row
    shown = choice.interval in ("margin", "ends")
    lines = chosen_lines(source, choice, [metric])
    names = chosen_sets(source, choice) if choice.averages else _usual_averages(source, metric)
    together = [[name] for name in names] if source.codecs else [names]
    for few in together:
        members = [
            one for one in source.subsets if one in rows and (not source.codecs or one in source.members(few[0]))
        ]
        columns = [
            GridColumn(name or "all clips", metric, rows[name], interval=shown, reserved=bool(source.printed))
            for name in members
        ]
        if len(members) > 1:
            columns += [
                GridColumn(
                    _average(source, name), metric, mean_rows(source, metric, name, _way(choice)), interval=shown,
                    mean=True, members=source.members(name),
                )
                for name in few
            ]  # fmt: skip
        if columns:
            # The means come last and lead the order.
            as_printed = source.printed and not choice.top and not choice.one_per_system
            order = choice if choice.sort or not columns[-1].mean else choice.model_copy(
                update={"sort": "none" if as_printed else columns[len(members)].key}
            )  # fmt: skip
            title = f"{metric}, {few[0]}." if source.codecs else f"{metric} by subset."
            notes = [_margin(columns, source, choice)] if shown else []
            yield make_table(source, order, lines, columns, title, notes=notes)


def _usual_averages(source: TableSource, metric: str) -> list[str]:
    """The sets of the source; VocSim's paper averages CSR, CS, CSCF and purity over all subsets and not the public."""
    names = [one.name for one in source.sets]
    if source.printed == "vocsim" and metric not in LEADING and names == ["public", "blind"]:
        return [ALL, "blind"]
    return names


def _average(source: TableSource, name: str) -> str:
    if source.codecs:
        return "Overall"
    return "Avg" if [one.name for one in source.sets] == [name] == [ALL] else f"Avg ({name})"


# --- codecs -------------------------------------------------------------------------------------------------------


def codec_table(source: TableSource, choice: Choice) -> list[Table]:
    """Rates, overall scores by category and tasks; Codec-SUPERB's Table 3."""
    if not source.codecs:
        raise InputError(f"{source.name} has no codecs: give a run of `earmark codec run`, or published:codec-superb.")
    present = source.metrics
    usual = [name for name in ("kbps", "overall", *_TASKS) if name in present]
    metrics = pick(choice.metrics, present, "metric", source.name) if choice.metrics else usual
    columns: list[GridColumn] = []
    shown = choice.interval in ("margin", "ends")
    for metric in metrics:
        if metric in HARMONIC or metric in family("signal"):
            columns += [
                GridColumn(
                    name, metric, mean_rows(source, metric, name, _way(choice)), over=metric, interval=shown, mean=True,
                    members=source.members(name),
                )
                for name in chosen_sets(source, choice)
            ]  # fmt: skip
        else:
            columns.append(GridColumn(metric, metric, _over_all(source, metric), interval=shown))
    lines = chosen_lines(source, choice, metrics)
    kept = [column for column in columns if column.rows]
    order = choice if choice.sort else choice.model_copy(update={"sort": "none"})
    title = "Codecs: rates, overall scores by category, and tasks." if not choice.metrics else "Codecs."
    notes = [_margin(kept, source, choice)] if shown else []
    return [make_table(source, order, lines, kept, title, notes=notes)]


def _over_all(source: TableSource, metric: str) -> dict[Configuration, Row]:
    """The one value of a codec, or the mean over the datasets that have one."""
    rows: dict[Configuration, list[Row]] = {}
    for row in source.scores:
        if row.metric == metric and row.correction in ("", "none"):
            rows.setdefault(configuration(row), []).append(row)
    found: dict[Configuration, Row] = {}
    for line, own in rows.items():
        if len(own) == 1:
            found[line] = own[0]
        else:
            (found[line],) = aggregate(Scores(tuple(own)), "mean", missing="refuse")
    return found
