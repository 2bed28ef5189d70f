"""Score tables as Markdown, LaTeX and terminal text.

`to_markdown`, `to_latex` and `to_text` pivot: a line for each system, distance, correction and protocol (and
suite and subset, where they vary), a column for each metric. What is the same on every line moves to the
caption. A cell is

    31.8 [29.8, 33.8] (+29.8)      value, 95 % interval, lift over chance

in percent for metrics that are fractions and with three decimals for the others. A dash is not applicable,
"failed" is failed, "~31.8" was predicted and not measured, "=31.8" repeats another system's, "*31.8" lacks the clips
that the system failed on, all with a numbered footnote; an empty cell was not measured. The best of a column is bold,
among lines that can be compared: same suite, subset and protocol. Values that print alike are equally good; what was
predicted, repeats another or is incomplete is never the best, and nothing is bold where systems were scored on
different clips.

`long_text` lists instead: a block for each setting, a line for each metric, with chance, lift, p and n.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict, Unpack

from earmark.errors import InputError, UsageError, did_you_mean
from earmark.report.metric_text import facts
from earmark.report.score_index import different_clips, same_clips
from earmark.scores import KEY, STATUS_MARKS, WITH_VALUE, Row, Scores
from earmark.tables import MISSING, Cell, Column, NumberFormat, Table, aligned, one_line
from earmark.tables.numbers import HYPHEN
from earmark.wording import counted, counted_units

_INDEX = KEY[:-1]
_COMPARABLE = ("suite", "subset", "protocol")
_PERCENT = NumberFormat(1, percent=True, unit="%", minus=HYPHEN)
_PLAIN = NumberFormat(3, minus=HYPHEN)


FIRST = 3
"""How many metrics are shown unasked; a table of fifteen is read by nobody."""
READ_FIRST = (
    "Read P@1 first: whether a clip's nearest neighbour is of its class. GSR says how far apart classes lie, and is "
    "compared under one distance; where the two disagree, P@1 speaks for search, GSR for thresholds and clusters."
)


def leading_metrics(scores: Iterable[Row], most: int = FIRST) -> list[str]:
    """The metrics to read first: those that lead a report, then the others in the order of the table."""
    from earmark.metrics.catalogue import HEADLINES  # which loads NumPy: tables need none

    present = list(dict.fromkeys(row.metric for row in scores))
    first = [name for lead in HEADLINES for name in present if name == lead or name.startswith(f"{lead}:")]
    return list(dict.fromkeys([*first, *present]))[:most]


class TableOptions(TypedDict, total=False):
    """What a table of scores shows: see `score_table`."""

    metrics: Sequence[str] | None
    caption: str | None
    interval: bool
    lift: bool


def to_markdown(scores: Scores, **options: Unpack[TableOptions]) -> str:
    """A GitHub-flavoured Markdown table of `score_table`."""
    return score_table(scores, **options).to_markdown()


def to_latex(scores: Scores, *, label: str | None = None, **options: Unpack[TableOptions]) -> str:
    """The same as a LaTeX table environment that needs only the booktabs package.

    All text is escaped, the caption too; `label` has letters, digits and `:-_.`.
    """
    return score_table(scores, **options).to_latex(label=label)


def to_text(scores: Scores, **options: Unpack[TableOptions]) -> str:
    """The same in aligned columns for a terminal."""
    return score_table(scores, **options).to_text()


def by_subset(scores: Scores, metric: str) -> str:
    """One metric for a terminal: a line for each representation and protocol, a column for each subset.

    A cell is the value with its lift over chance, where that was measured; – where there is no value.
    """
    rows = scores.select(metric=metric)
    _refuse_empty(rows)
    subsets = list(dict.fromkeys(row.subset for row in rows))
    form = _format(metric)
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        cell = "–"
        if row.value is not None:
            lift = "" if row.lift is None else f" ({form.text(row.lift, sign=True)})"
            cell = STATUS_MARKS.get(row.status, "") + form.text(row.value) + lift
        measure = row.distance if row.correction in ("", "none") else f"{row.distance} {row.correction}"
        lines.setdefault((row.system, measure, row.protocol), {})[row.subset] = cell
    columns = [Column(name, "left") for name in ("system", "distance", "protocol")]
    columns += [Column(subset or "all clips") for subset in subsets]
    body = [[*key, *(cells.get(subset, MISSING) for subset in subsets)] for key, cells in lines.items()]
    return Table(columns, body, title=_heading(metric, ", higher is better", ", lower is better")).to_text()


def long_text(scores: Scores) -> str:
    """Every row on a line of its own, in blocks of one setting; the table's notes at the end.

    Interval, chance, lift, p and n appear where a row of the block has them. A row without a value gives its
    status and reason.
    """
    _refuse_empty(scores)
    varying = {name for name in _INDEX if len({getattr(row, name) for row in scores}) > 1}
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in scores:
        groups.setdefault(row.key[:-1], []).append(row)
    blocks = []
    for setting, rows in groups.items():
        heading = _setting(dict(zip(_INDEX, setting, strict=True)), varying)
        lines = [*_listing(rows), *filter(None, [_rests_on(rows)])]
        blocks.append("\n".join([heading, *("  " + line for line in lines)]))
    if scores.notes:
        blocks.append("\n".join(f"Note: {one_line(note)}" for note in scores.notes))
    return "\n\n".join(blocks) + "\n"


_INTERVALS = {"bootstrap_queries": "bootstrap of queries, candidates held fixed", "bootstrap_points": "bootstrap"}
_SHUFFLES = {
    "whole_groups": "the labels of whole groups",
    "inside_groups": "labels inside each group",
    "blocks": "the labels of whole groups, and labels inside groups that have several",
    "clips_ignoring_groups": "labels of clips, whatever their group,",
}


def _rests_on(rows: Sequence[Row]) -> str:
    """What the intervals and the chance of a block rest on, where that is more than single clips left out."""
    parts = []
    for kind, unit, units in dict.fromkeys((row.interval, row.unit, row.units) for row in rows if row.interval):
        if kind != "jackknife" or unit != "clip":
            parts.append(f"intervals: {_INTERVALS.get(kind, kind)}, over {counted_units(units or 0, unit)}")
    for number in sorted({row.comparisons for row in rows if row.comparisons is not None and row.comparisons > 1}):
        level = 100.0 * (1.0 - 0.05 / number)
        parts.append(f"interval and p corrected for {counted(number, 'comparison')}: each interval is at {level:.1f} %")
    for name in dict.fromkeys(row.shuffle for row in rows if row.shuffle in _SHUFFLES):
        parts.append(f"chance: {_SHUFFLES[name]} shuffled")
    return f"({'; '.join(parts)})" if parts else ""


# --- the pivot ------------------------------------------------------------------------------------


def _refuse_empty(scores: Scores) -> None:
    if not scores.rows:
        raise InputError("The score table is empty; there is nothing to print.")


def score_table(
    scores: Scores,
    *,
    metrics: Sequence[str] | None = None,
    caption: str | None = None,
    interval: bool = True,
    lift: bool = True,
) -> Table:
    """A line for each system, distance, correction and protocol, a column for each metric.

    Args:
        scores: The rows to show.
        metrics: The columns and their order; None is every metric of the table.
        caption: Replaces the caption made here; "" leaves it out.
        interval: Show 95 % intervals.
        lift: Show the lift over chance.
    """
    _refuse_empty(scores)
    present = list(dict.fromkeys(row.metric for row in scores))
    chosen = present if metrics is None else list(metrics)
    for name in chosen:
        if name not in present:
            raise UsageError(f'The table has no metric "{name}".{did_you_mean(name, present)}')
    lines: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in scores:
        if row.metric not in chosen:
            continue
        line = lines.setdefault(row.key[:-1], {})
        if row.metric in line:
            raise InputError(f"Two rows of the table have the same key for {row.metric}; merge the table first.")
        line[row.metric] = row
    values = {name: list(dict.fromkeys(key[place] for key in lines)) for place, name in enumerate(_INDEX)}
    index = [name for name in _INDEX if len(values[name]) > 1]
    notes: dict[str, int] = {}
    best = _best(row for line in lines.values() for row in line.values())
    rows: list[list[str | Cell]] = []
    for key, line in lines.items():
        names = [one_line(cell) for name, cell in zip(_INDEX, key, strict=True) if name in index]
        rows.append([*names, *(_cell(line.get(name), best, notes, interval, lift) for name in chosen)])
    columns = [Column(name, "left") for name in index] + [Column(_heading(name, " ↑", " ↓")) for name in chosen]
    if caption is None:
        constant = {name: values[name][0] for name in _INDEX if name not in index}
        caption = _caption(constant, interval, lift, lines.values())
    return Table(columns, rows, title=caption, footnotes=list(notes))


def _cell(row: Row | None, best: set[Row], notes: dict[str, int], interval: bool, lift: bool) -> Cell:
    if row is None:
        return Cell()
    if row.value is None or row.status not in WITH_VALUE:
        reason = one_line(row.reason) or "no reason was given"
        text = "failed" if row.status == "failed" else MISSING
        return Cell(text, note=notes.setdefault(reason, len(notes) + 1))
    form = _format(row.metric)
    rest = ""
    if interval and row.low is not None and row.high is not None:
        rest += f" {form.interval(row.low, row.high)}"
    if lift and row.lift is not None:
        rest += f" ({form.text(row.lift, sign=True)})"
    # An ok row has a reason when its value comes with a reservation, such as a mean over fewer subsets.
    note = notes.setdefault(one_line(row.reason), len(notes) + 1) if row.reason.strip() else None
    return Cell(STATUS_MARKS.get(row.status, "") + form.text(row.value), bold=row in best, note=note, rest=rest)


def _columns(rows: Iterable[Row]) -> dict[tuple[str, ...], dict[float, list[Row]]]:
    """Rows that can be compared, by what they print: a key for each metric and place."""
    columns: dict[tuple[str, ...], dict[float, list[Row]]] = {}
    for row in rows:
        if row.status == "ok" and row.value is not None:
            column = columns.setdefault((row.metric, *(getattr(row, name) for name in _COMPARABLE)), {})
            column.setdefault(float(_format(row.metric).text(row.value)), []).append(row)
    return columns


def _unmarked(rows: Iterable[Row]) -> list[str]:
    """A sentence about metrics without a best because their rows are of different clips."""
    found: dict[str, dict[str, None]] = {}
    for (metric, *_), column in _columns(rows).items():
        how = different_clips(row for own in column.values() for row in own) if len(column) > 1 else ""
        if how:
            found.setdefault(how, {})[metric] = None
    return [f"no best of {', '.join(names)}: scored on different clips ({how})" for how, names in found.items()]


def _best(rows: Iterable[Row]) -> set[Row]:
    """The rows that print the best value of their metric among comparable ones, unless all print the same."""
    best: set[Row] = set()
    for (metric, *_), column in _columns(rows).items():
        if len(column) > 1 and same_clips(row for found in column.values() for row in found):
            best.update(column[max(column) if facts(metric).higher_is_better else min(column)])
    return best


def _caption(constant: dict[str, str], interval: bool, lift: bool, lines: Iterable[dict[str, Row]]) -> str:
    rows = [row for line in lines for row in line.values()]
    parts = [f"{name} {one_line(cell)}" for name, cell in constant.items() if cell]
    shown = []
    if interval and any(row.low is not None and row.high is not None for row in rows):
        shown.append("[95 % interval]")
    if lift and any(row.lift is not None for row in rows):
        shown.append("(lift over chance)")
    sentences = [", ".join(parts), "Value " + " ".join(shown) if shown else "", *_unmarked(rows)]
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences if sentence)


def _format(metric: str) -> NumberFormat:
    return _PERCENT if facts(metric).percent else _PLAIN


def _heading(metric: str, up: str, down: str) -> str:
    known = facts(metric)
    base, _, difference = metric.partition(":")
    unit = " (points)" if known.percent and difference else " (%)" if known.percent else ""
    return " ".join([base, difference]).strip() + unit + (up if known.higher_is_better else down)


# --- the listing ----------------------------------------------------------------------------------


def _setting(setting: dict[str, str], varying: set[str]) -> str:
    """What the block is about; defaults are said only where the table also has something else."""
    words = [one_line(setting[name]) for name in ("suite", "subset", "system", "distance") if setting[name]]
    if setting["correction"] not in ("", "none"):
        words.append(f"{one_line(setting['correction'])} correction")
    elif "correction" in varying:
        words.append("no correction")
    if setting["protocol"] == "across_groups":
        words.append("across groups")
    elif setting["protocol"] != "all":
        words.append(one_line(setting["protocol"]))
    elif "protocol" in varying:
        words.append("all pairs")
    return " · ".join(words) or "scores"


def _listing(rows: Sequence[Row]) -> list[str]:
    table = [["metric", "value", "95% interval", "chance", "lift", "p", "n"], *map(_listing_cells, rows)]
    used = [place for place in range(len(table[0])) if place < 2 or any(line[place] for line in table[1:])]
    lines = aligned([[line[place] for place in used] for line in table], left=1)
    for place, row in enumerate(rows, start=1):
        words = [] if row.status == "ok" else [row.status.replace("_", " ")]
        words += [one_line(row.reason)] if row.reason.strip() else []
        lines[place] += "  " + ": ".join(words) if words else ""
    return lines


def _listing_cells(row: Row) -> list[str]:
    form = _format(row.metric)
    value, chance = MISSING, ""
    if row.value is not None and row.status in WITH_VALUE:
        value = STATUS_MARKS.get(row.status, "") + form.text(row.value, unit=True)
    if row.baseline is not None:
        around = form.interval(row.baseline_low, row.baseline_high)
        chance = f"{form.text(row.baseline, unit=True)} {around}".rstrip()
    return [
        one_line(row.metric),
        value,
        form.interval(row.low, row.high),
        chance,
        "" if row.lift is None else form.text(row.lift, sign=True),
        "" if row.p_value is None else f"{row.p_value:.2g}",
        "" if row.n is None else str(row.n),
    ]
