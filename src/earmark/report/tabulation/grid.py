"""A grid of values, configurations by columns, as a table: chosen, sorted, marked, footnotes for what is missing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from earmark.errors import InputError, UsageError, absent
from earmark.report.metric_text import facts
from earmark.report.score_index import different_clips
from earmark.report.tabulation.choice import Choice
from earmark.report.tabulation.draws import different_draws, draws_said
from earmark.report.tabulation.sources import Configuration, TableSource, configuration
from earmark.scores import WITH_VALUE, Row
from earmark.tables import MISSING, Cell, Column, NumberFormat, Table, one_line
from earmark.tables.numbers import HYPHEN
from earmark.wording import counted, listed

MOST_NOTES = 12
REPEATED = "="
_REPEATING = re.compile(r"\brepeats \S+")
_SETTINGS = ("distance", "correction", "protocol")
_REPEATS = "repeats the value of another configuration, so it is no measurement of its own"
_COUNTED = "repeats the value of another configuration and is counted all the same"
_KINDS = {
    "repeated": _REPEATS, "failed": "failed", "not_applicable": "no value, or no mean because a subset has none",
    "incomplete": "lacks the clips that the system failed on", "ok": "with a reservation: see the score table",
}  # fmt: skip
"""What footnotes say where single reasons would be too many."""


class GridColumn(NamedTuple):
    """A column of values: rows by configuration. `over` stands above it, and above those beside it that have it too."""

    title: str
    metric: str
    rows: Mapping[Configuration, Row]
    over: str = ""
    interval: bool = False
    reserved: bool = True  # whether the reason of an ok row is a reservation that a reader needs
    mean: bool = False
    members: tuple[str, ...] = ()  # of a mean: its subsets

    @property
    def key(self) -> str:
        """How --sort names it."""
        return " ".join(filter(None, [self.title, self.over]))


@dataclass
class Notes:
    """Footnotes, each once, in the order in which they are needed."""

    kinds: bool = False
    texts: dict[str, int] = field(default_factory=dict)

    def number(self, row: Row) -> int:
        reason = _REPEATS if row.status == "repeated" else _shortened(one_line(row.reason)) or "no reason was given"
        if row.status == "ok" and is_repeat(row):
            return self.say(_COUNTED)
        return self.say(_KINDS.get(row.status, reason) if self.kinds else reason)

    def say(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts) + 1)


def is_repeat(row: Row) -> bool:
    """Whether the reason of a printed row says that it repeats another's, counted or not."""
    return row.status == "repeated" or (row.version.startswith("published") and bool(_REPEATING.search(row.reason)))


def _shortened(reason: str) -> str:
    """Of a mean that lacks nothing but repeats: how many, in place of a list of names."""
    kind, _, names = reason.partition(": ")
    listed = names.split(", ")
    if kind != "missing subsets" or not all(name.endswith(" (repeated)") for name in listed):
        return reason
    return f"no mean: {counted(len(listed), 'subset')} repeat the values of another configuration"


def number_format(metric: str, choice: Choice, source: TableSource, *, usual: int | None = None) -> NumberFormat:
    """As many decimals as were asked for, as the source has, or one in percent and three of other numbers."""
    percent = facts(metric).percent
    usual = source.digits.get(metric, 1 if percent else 3) if usual is None else usual
    return NumberFormat(usual if choice.digits is None else choice.digits, percent=percent, minus=HYPHEN)


def chosen_lines(source: TableSource, choice: Choice, metrics: Sequence[str]) -> list[Configuration]:
    """The configurations that have a row of one of the metrics and were asked for, in the order of the wishes."""
    rows = [row for row in (*source.scores.rows, *source.given.rows) if row.metric in metrics]
    rows = [row for row in rows if not row.probed] or rows  # probes have protocols of their own
    protocols = choice.protocols or _usual_protocols(rows)
    for name, wanted in (("distance", choice.distances), ("correction", choice.corrections), ("protocol", protocols)):
        present = list(dict.fromkeys(getattr(row, name) for row in rows))
        for one in wanted:
            if one not in present:
                raise UsageError(absent(one, present, name, source.name))
        rows = [row for row in rows if not wanted or getattr(row, name) in wanted]
    lines = list(dict.fromkeys(map(configuration, rows)))
    if not choice.systems or list(choice.systems) == ["all"]:
        return lines
    found: dict[Configuration, None] = {}
    for system in choice.systems:
        fitting = [line for line in lines if _fits(line, system, exactly=True)]
        fitting = fitting or [line for line in lines if _fits(line, system, exactly=False)]
        if not fitting:
            raise UsageError(absent(system, list(dict.fromkeys(line.system for line in lines)), "system", source.name))
        found |= dict.fromkeys(fitting)
    return list(found)


def _usual_protocols(rows: Sequence[Row]) -> tuple[str, ...]:
    """All pairs and across groups; else every protocol there is."""
    present = list(dict.fromkeys(row.protocol for row in rows))
    return tuple(name for name in present if name in ("all", "across_groups")) or tuple(present)


def _fits(line: Configuration, wanted: str, *, exactly: bool) -> bool:
    """Whether a wish names the system, or system/distance."""
    names = (line.system, f"{line.system}/{line.distance}")
    return any(name == wanted if exactly else fnmatchcase(name, wanted) for name in names)


# --- the table ----------------------------------------------------------------------------------------------------


def make_table(
    source: TableSource, choice: Choice, lines: Sequence[Configuration], columns: Sequence[GridColumn], title: str,
    *, notes: Sequence[str] = (),
) -> Table:  # fmt: skip
    """The table of some configurations; those without any row in the columns are left out."""
    lines = shown_lines([line for line in lines if any(line in at.rows for at in columns)], columns, choice, source)
    if not lines:
        raise InputError(f"{source.name} has no row for this table: choose other metrics, systems or protocols.")
    texts = [_texts(lines, column, choice, source) for column in columns]
    made = Notes()
    cells = _cells(lines, columns, texts, choice, source, made)
    if len(made.texts) > MOST_NOTES:
        made = Notes(kinds=True)
        cells = _cells(lines, columns, texts, choice, source, made)
    settings = [name for name in _SETTINGS if len({getattr(line, name) for line in lines}) > 1]
    constant = _constant(lines, [name for name in _SETTINGS if name not in settings])
    named = [Column("system", "left")]
    named += [Column(source.called, "left")] if any(source.about.get(line.system) for line in lines) else []
    named += [Column(name, "left") for name in settings]
    body = []
    for line, row in zip(lines, cells, strict=True):
        names = [one_line(choice.rename.get(line.system, line.system)) or "vectors"]
        names += [source.about.get(line.system, "")] if len(named) > 1 + len(settings) else []
        body.append([*names, *(one_line(getattr(line, name)) for name in settings), *row])
    plain = {facts(column.metric).percent for column in columns} == {True}
    shown = [head for column in columns for head in _heads(column, choice, source, plain)]
    sentences = [
        title, "In percent." if plain else "", constant, _alone(columns, choice, source),
        draws_said(_measured(lines, columns, source)), *notes, *_unmarked(columns, texts, choice, source),
    ]  # fmt: skip
    return Table([*named, *shown], body, " ".join(filter(None, sentences)), list(made.texts))


def shown_lines(
    lines: Sequence[Configuration], columns: Sequence[GridColumn], choice: Choice, source: TableSource
) -> list[Configuration]:
    """The lines in the order asked for, one for a system or all, as many as were asked for."""
    ordered = _ordered(lines, columns, choice, source)
    if choice.one_per_system and columns:
        first: dict[tuple[str, str], Configuration] = {}
        for line in _ranked(ordered, _leader(columns, choice, source), source):
            first.setdefault((line.system, line.protocol), line)
        ordered = [line for line in ordered if first[line.system, line.protocol] == line]
    return ordered[: choice.top] if choice.top else ordered


def _ordered(
    lines: Sequence[Configuration], columns: Sequence[GridColumn], choice: Choice, source: TableSource
) -> list[Configuration]:
    """By the column asked for, the best first; what has no value there comes last."""
    if choice.sort == "none" or (not choice.sort and choice.systems and not choice.top):
        return list(lines)
    if choice.sort == "system":
        return sorted(lines, key=lambda line: (line.system.casefold(), line))
    return _ranked(lines, _leader(columns, choice, source), source) if columns else list(lines)


def _leader(columns: Sequence[GridColumn], choice: Choice, source: TableSource) -> GridColumn:
    """The column that says what is best: the one that --sort names, else the first mean, else the first."""
    if choice.sort not in ("", "none", "system"):
        return _column(columns, choice.sort, source)
    return next((column for column in columns if column.mean), columns[0])


def _ranked(lines: Sequence[Configuration], by: GridColumn, source: TableSource) -> list[Configuration]:
    """The best first; means that lack subsets are after all that lack none, and what has no value is last."""
    turned = -1.0 if facts(by.metric).higher_is_better else 1.0

    def place(line: Configuration) -> tuple[bool, bool, bool, float]:
        row = by.rows.get(line)
        if row is None or row.status != "ok" or row.value is None:
            return line.system in source.anchors, True, True, 0.0
        return line.system in source.anchors, False, _partial(row, by), turned * row.value

    return sorted(lines, key=place)


def _alone(columns: Sequence[GridColumn], choice: Choice, source: TableSource) -> str:
    """How the one line of a system was chosen."""
    if not choice.one_per_system:
        return ""
    return f"Each system at its best distance and correction by {_leader(columns, choice, source).key}."


def _measured(lines: Sequence[Configuration], columns: Sequence[GridColumn], source: TableSource) -> list[Row]:
    """The rows of subsets that the columns show or average."""
    means = {(column.metric, name) for column in columns for name in column.members}
    own = [column.rows[line] for column in columns if not column.mean for line in lines if line in column.rows]
    of = set(lines) if means else set()
    return own + [row for row in source.scores if (row.metric, row.subset) in means and configuration(row) in of]


def _unmarked(
    columns: Sequence[GridColumn], texts: Sequence[Mapping[Configuration, str]], choice: Choice, source: TableSource
) -> list[str]:
    """A sentence about columns without a best because their systems were scored on different clips."""
    found: dict[str, list[str]] = {}
    for column, text in zip(columns, texts, strict=True):
        for lines in _protocols(text).values():
            how = _differing(column, list(lines), source) if choice.best and len(set(lines.values())) > 1 else ""
            if how and column.key not in found.setdefault(how, []):
                found[how].append(column.key)
    return [f"No best of {', '.join(names)}: scored on different clips ({how})." for how, names in found.items()]


def _protocols(texts: Mapping[Configuration, str]) -> dict[str, dict[Configuration, float]]:
    found: dict[str, dict[Configuration, float]] = {}
    for line, text in texts.items():
        found.setdefault(line.protocol, {})[line] = float(text)
    return found


def _differing(column: GridColumn, lines: Sequence[Configuration], source: TableSource) -> str:
    """How the clips of some lines of a column differ; nothing where they do not."""
    return different_clips(column.rows[line] for line in lines) or different_draws(
        row for row in _measured(lines, [column], source) if column.mean
    )


def _column(columns: Sequence[GridColumn], name: str, source: TableSource) -> GridColumn:
    for fits in (lambda column: column.key == name, lambda column: name in (column.title, column.metric)):
        for column in columns:
            if fits(column):
                return column
    raise UsageError(absent(name, [*(column.key for column in columns), "system", "none"], "column", source.name))


def _constant(lines: Sequence[Configuration], names: Sequence[str]) -> str:
    """What all rows share, for the caption; defaults go without saying."""
    said = [
        f"{name} {one_line(getattr(lines[0], name))}"
        for name in names
        if lines and getattr(lines[0], name) not in ("", "none", "all")
    ]
    return f"{', '.join(said).capitalize()}." if said else ""


def _texts(
    lines: Sequence[Configuration], column: GridColumn, choice: Choice, source: TableSource
) -> dict[Configuration, str]:
    """The values of a column as they are printed, of those that count."""
    form = number_format(column.metric, choice, source)
    rows = ((line, column.rows.get(line)) for line in lines)
    return {
        line: form.text(row.value)
        for line, row in rows
        if row is not None and row.status == "ok" and row.value is not None
        if line.system not in source.anchors and not _partial(row, column)
    }


def _partial(row: Row, column: GridColumn) -> bool:
    """Whether a mean lacks subsets: it is shown, and never the best."""
    lacking = row.reason.partition(" ")[0].isdecimal() and "missing:" in row.reason
    return column.mean and (lacking or row.reason.startswith("without "))


def _standing(column: GridColumn, texts: Mapping[Configuration, str], source: TableSource) -> dict[Configuration, int]:
    """1 for lines with the best text of their protocol and 2 for the second best; none where all are alike or were
    measured on different clips."""
    found: dict[Configuration, int] = {}
    for own in _protocols(texts).values():
        values = sorted(set(own.values()), reverse=facts(column.metric).higher_is_better)
        if len(values) > 1 and not _differing(column, list(own), source):
            places = dict(zip(values, (1, 2) if len(values) > 2 else (1,), strict=False))
            found |= {line: places[value] for line, value in own.items() if value in places}
    return found


def _cells(
    lines: Sequence[Configuration], columns: Sequence[GridColumn], texts: Sequence[Mapping[Configuration, str]],
    choice: Choice, source: TableSource, notes: Notes,
) -> list[list[Cell]]:  # fmt: skip
    standings = [_standing(column, text, source) for column, text in zip(columns, texts, strict=True)]
    return [
        [
            cell
            for column, standing in zip(columns, standings, strict=True)
            for cell in _value(line, column, standing.get(line), choice, source, notes)
        ]
        for line in lines
    ]


def _value(
    line: Configuration, column: GridColumn, place: int | None, choice: Choice, source: TableSource, notes: Notes,
) -> list[Cell]:  # fmt: skip
    """The cell of a value, and those of its interval for programs."""
    row = column.rows.get(line)
    ends = [Cell(blank=True)] * 2 if column.interval else []
    if row is None:
        return [Cell(blank=True), *ends]
    if row.status == "repeated":
        return [Cell(REPEATED, note=notes.number(row), blank=True), *ends]
    if row.value is None or row.status not in WITH_VALUE:
        text = "failed" if row.status == "failed" else MISSING
        return [Cell(text, note=notes.number(row), blank=True), *ends]
    form = number_format(row.metric, choice, source)
    note = notes.number(row) if row.reason.strip() and (column.reserved or row.status != "ok") else None
    rest = ""
    if column.interval and row.low is not None and row.high is not None:
        ends = [Cell(exact=row.low), Cell(exact=row.high)]
        margin = max(row.value - row.low, row.high - row.value)
        rest = f" {form.interval(row.low, row.high)}" if choice.interval == "ends" else f" ± {form.text(margin)}"
    cell = Cell(
        form.text(row.value), bold=choice.best and place == 1, note=note, rest=rest, exact=row.value,
        underlined=choice.second and place == 2,
    )  # fmt: skip
    return [cell, *ends]


def _heads(column: GridColumn, choice: Choice, source: TableSource, plain: bool) -> list[Column]:
    """The head of a column, and those of its interval, which only programs see."""
    known = facts(column.metric)
    rate = column.metric.endswith("kbps")
    unit = "%" if known.percent and not plain else "" if rate else known.unit
    form = number_format(column.metric, choice, source)
    said = not rate and column.metric in (column.title, column.over)
    arrow = (" ↑" if known.higher_is_better else " ↓") if said else ""
    head = Column(column.title, unit=unit, format=form, over=column.over, mark=arrow)
    if not column.interval:
        return [head]
    return [
        head,
        *(replace(head, title=f"{column.title} {end}", unit="", mark="", data=True) for end in ("low", "high")),
    ]


def sets_said(source: TableSource, names: Sequence[str], what: str = "Means") -> str:
    """`Means over 15 public and 4 blind subsets.`; of sets of one subset each, `Subsets HW (words) and BC (calls).`"""
    if all(len(source.members(name)) == 1 for name in names):
        alone = [(source.members(name)[0], name) for name in names]
        called = [subset if name in (subset, "all") else f"{subset} ({name})" for subset, name in alone if subset]
        if len(called) == len(names):
            return f"Subset{'s' if len(called) > 1 else ''} {listed(called)}."
    parts = []
    for name in names:
        members = source.members(name)
        if members:
            parts.append(counted(len(members), "subset") if name == "all" else f"{len(members)} {name}")
        else:
            parts.append(name)
    ending = "" if parts and parts[-1].endswith(("subset", "subsets")) else " subsets"
    joined = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return f"{what} over {joined}{ending}."
