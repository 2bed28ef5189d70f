"""Score tables as Markdown, LaTeX and terminal text.

`to_markdown`, `to_latex` and `to_text` pivot: a line for each system, distance, correction and protocol (and
suite and subset, where they vary), a column for each metric. What is the same on every line moves to the
caption. A cell is

    31.8 [29.8, 33.8] (+29.8)      value, 95 % interval, lift over chance

in percent for metrics that are fractions and with three decimals for the others. A dash is not applicable,
"failed" is failed, "~31.8" was predicted and not measured, "=31.8" repeats another system's, all with a numbered
footnote; an empty cell was not measured. The best of a column is bold, among lines that can be compared: same suite,
subset and protocol. Values that print alike are equally good; what was predicted or repeated is never the best, and
nothing is bold where systems were scored on different clips.

`long_text` lists instead: a block for each setting, a line for each metric, with chance, lift, p and n.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from earmark.errors import InputError, UsageError, did_you_mean
from earmark.report.reading import same_clips
from earmark.scores import KEY, STATUS_MARKS, WITH_VALUE, Metric, Row, Scores, metric_facts
from earmark.wording import counted

__all__ = ["long_text", "to_latex", "to_markdown", "to_text"]

_INDEX = KEY[:-1]
_COMPARABLE = ("suite", "subset", "protocol")
_DASH = "\N{EN DASH}"
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def to_markdown(
    scores: Scores,
    *,
    metrics: Sequence[str] | None = None,
    caption: str | None = None,
    interval: bool = True,
    lift: bool = True,
) -> str:
    """A GitHub-flavoured Markdown table.

    `metrics` chooses the columns and their order; `caption` replaces the one made here, "" leaves it out.
    """
    pivot = _pivot(scores, metrics, interval, lift)
    header = [
        *map(_markdown, pivot.index),
        *(_heading(name, " ↑", " ↓", _markdown) for name in pivot.metrics),
    ]
    lines = [_pipes(header), _pipes([":--"] * len(pivot.index) + ["--:"] * len(pivot.metrics))]
    for names, cells in pivot.lines:
        lines.append(_pipes([*map(_markdown, names), *(_markdown_cell(cell) for cell in cells)]))
    shown = _markdown(pivot.caption if caption is None else caption)
    blocks = [shown] if shown else []
    blocks.append("\n".join(lines))
    # A backslash at the end of a line is Markdown's line break.
    notes = [f"{_superscript(number)} {_markdown(note)}" for number, note in enumerate(pivot.notes, start=1)]
    blocks += ["\\\n".join(notes)] if notes else []
    return "\n\n".join(blocks) + "\n"


def to_latex(
    scores: Scores,
    *,
    metrics: Sequence[str] | None = None,
    caption: str | None = None,
    label: str | None = None,
    interval: bool = True,
    lift: bool = True,
) -> str:
    """A LaTeX table environment that needs only the booktabs package.

    Options as for `to_markdown`. All text is escaped, the caption too; `label` is taken as it is.
    """
    pivot = _pivot(scores, metrics, interval, lift)
    header = [_latex(name) for name in pivot.index]
    header += [_heading(name, r" $\uparrow$", r" $\downarrow$", _latex) for name in pivot.metrics]
    body = [[*map(_latex, names), *(_latex_cell(cell) for cell in cells)] for names, cells in pivot.lines]
    shown = _latex(pivot.caption if caption is None else caption)
    lines = [r"\begin{table}", r"\centering"]
    lines += [rf"\caption{{{shown}}}"] if shown else []
    lines += [rf"\label{{{label}}}"] if label else []
    lines.append(rf"\begin{{tabular}}{{{'l' * len(pivot.index)}{'r' * len(pivot.metrics)}}}")
    lines += [r"\toprule", " & ".join(header) + r" \\", r"\midrule"]
    lines += [" & ".join(cells) + r" \\" for cells in body]
    lines += [r"\bottomrule", r"\end{tabular}"]
    for number, note in enumerate(pivot.notes, start=1):
        lines += ["", rf"{{\footnotesize \textsuperscript{{{number}}} {_latex(note)}}}"]
    lines.append(r"\end{table}")
    return "\n".join(lines) + "\n"


def to_text(
    scores: Scores,
    *,
    metrics: Sequence[str] | None = None,
    caption: str | None = None,
    interval: bool = True,
    lift: bool = True,
) -> str:
    """The same table in aligned columns for a terminal. Options as for `to_markdown`."""
    pivot = _pivot(scores, metrics, interval, lift)
    header = [*pivot.index, *(_heading(name, " ↑", " ↓", str) for name in pivot.metrics)]
    body = [[*names, *(_text_cell(cell) for cell in cells)] for names, cells in pivot.lines]
    shown = pivot.caption if caption is None else caption
    lines = [shown, ""] if shown else []
    lines += aligned([header, *body], left=len(pivot.index), ruled=True)
    lines += [""] if pivot.notes else []
    lines += [f"{_superscript(number)} {note}" for number, note in enumerate(pivot.notes, start=1)]
    return "\n".join(lines) + "\n"


def by_subset(scores: Scores, metric: str) -> str:
    """One metric for a terminal: a line for each representation and protocol, a column for each subset.

    A cell is the value with its lift over chance, where that was measured; – where there is no value.
    """
    rows = scores.select(metric=metric)
    _refuse_empty(rows)
    subsets = list(dict.fromkeys(row.subset for row in rows))
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        cell = "–"
        if row.value is not None:
            lift = "" if row.lift is None else f" ({_number(row.lift, _facts(metric), sign=True)})"
            cell = _mark(row) + _number(row.value, _facts(metric)) + lift
        measure = row.distance if row.correction in ("", "none") else f"{row.distance} {row.correction}"
        lines.setdefault((row.system, measure, row.protocol), {})[row.subset] = cell
    body = [[*key, *(cells.get(subset, "–") for subset in subsets)] for key, cells in lines.items()]
    heading = _heading(metric, ", higher is better", ", lower is better", str)
    header = ["system", "distance", "protocol", *(subset or "all clips" for subset in subsets)]
    return "\n".join([heading, "", *aligned([header, *body], left=3, ruled=True)]) + "\n"


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
        blocks.append("\n".join(f"Note: {_plain(note)}" for note in scores.notes))
    return "\n\n".join(blocks) + "\n"


_INTERVALS = {"bootstrap_queries": "bootstrap of queries, candidates held fixed", "bootstrap_points": "bootstrap"}
_SHUFFLES = {
    "whole_groups": "the labels of whole groups",
    "inside_groups": "labels inside each group",
    "blocks": "the labels of whole groups, and labels inside groups that have several",
}


def _rests_on(rows: Sequence[Row]) -> str:
    """What the intervals and the chance of a block rest on, where that is more than single clips left out."""
    parts = []
    for kind, unit, units in dict.fromkeys((row.interval, row.unit, row.units) for row in rows if row.interval):
        if kind != "jackknife" or unit != "clip":
            parts.append(f"intervals: {_INTERVALS.get(kind, kind)}, over {counted(units or 0, unit)}")
    for number in sorted({row.comparisons for row in rows if row.comparisons is not None and row.comparisons > 1}):
        level = 100.0 * (1.0 - 0.05 / number)
        parts.append(f"interval and p corrected for {number} comparisons: each interval is at {level:.1f} %")
    for name in dict.fromkeys(row.shuffle for row in rows if row.shuffle in _SHUFFLES):
        parts.append(f"chance: {_SHUFFLES[name]} shuffled")
    return f"({'; '.join(parts)})" if parts else ""


# --- the pivot ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Cell:
    text: str = ""
    best: bool = False
    note: int | None = None
    rest: str = ""
    """Interval and lift, which are never bold."""


@dataclass(frozen=True, slots=True)
class _Pivot:
    index: list[str]
    metrics: list[str]
    lines: list[tuple[list[str], list[_Cell]]]
    caption: str
    notes: list[str]


def _refuse_empty(scores: Scores) -> None:
    if not scores.rows:
        raise InputError("The score table is empty; there is nothing to print.")


def _pivot(scores: Scores, metrics: Sequence[str] | None, interval: bool, lift: bool) -> _Pivot:
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
    made = []
    for key, line in lines.items():
        names = [_plain(cell) for name, cell in zip(_INDEX, key, strict=True) if name in index]
        made.append((names, [_cell(line.get(name), best, notes, interval, lift) for name in chosen]))
    constant = {name: values[name][0] for name in _INDEX if name not in index}
    return _Pivot(index, chosen, made, _caption(constant, interval, lift, lines.values()), list(notes))


def _cell(row: Row | None, best: set[Row], notes: dict[str, int], interval: bool, lift: bool) -> _Cell:
    if row is None:
        return _Cell()
    if row.value is None or row.status not in WITH_VALUE:
        reason = _plain(row.reason) or "no reason was given"
        text = "failed" if row.status == "failed" else _DASH
        return _Cell(text, note=notes.setdefault(reason, len(notes) + 1))
    facts = _facts(row.metric)
    rest = ""
    if interval and row.low is not None and row.high is not None:
        rest += f" [{_number(row.low, facts)}, {_number(row.high, facts)}]"
    if lift and row.lift is not None:
        rest += f" ({_number(row.lift, facts, sign=True)})"
    # An ok row has a reason when its value comes with a reservation, such as a mean over fewer subsets.
    note = notes.setdefault(_plain(row.reason), len(notes) + 1) if row.reason.strip() else None
    return _Cell(_mark(row) + _number(row.value, facts), best=row in best, note=note, rest=rest)


def _best(rows: Iterable[Row]) -> set[Row]:
    """The rows that print the best value of their metric among comparable ones, unless all print the same."""
    columns: dict[tuple[str, ...], dict[float, list[Row]]] = {}
    for row in rows:
        if row.status == "ok" and row.value is not None:
            column = columns.setdefault((row.metric, *(getattr(row, name) for name in _COMPARABLE)), {})
            column.setdefault(float(_number(row.value, _facts(row.metric))), []).append(row)
    best: set[Row] = set()
    for (metric, *_), column in columns.items():
        if len(column) > 1 and same_clips(row for found in column.values() for row in found):
            best.update(column[max(column) if _facts(metric).higher_is_better else min(column)])
    return best


def _caption(constant: dict[str, str], interval: bool, lift: bool, lines: Iterable[dict[str, Row]]) -> str:
    rows = [row for line in lines for row in line.values()]
    parts = [f"{name} {_plain(cell)}" for name, cell in constant.items() if cell]
    shown = []
    if interval and any(row.low is not None and row.high is not None for row in rows):
        shown.append("[95 % interval]")
    if lift and any(row.lift is not None for row in rows):
        shown.append("(lift over chance)")
    sentences = [", ".join(parts), "Value " + " ".join(shown) if shown else ""]
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences if sentence)


def _facts(metric: str) -> Metric:
    try:
        return metric_facts(metric)
    except InputError:
        # A table is for looking: a metric that validation would refuse is still printed, as a plain number.
        return Metric(metric)


def _mark(row: Row) -> str:
    """What stands before a value that is no measurement of its own: predicted, or another system's."""
    return STATUS_MARKS.get(row.status, "")


def _number(value: float, facts: Metric, *, sign: bool = False, unit: str = "") -> str:
    text = f"{100 * value:{'+' if sign else ''}.1f}{unit}" if facts.percent else f"{value:{'+' if sign else ''}.3f}"
    # -0.0 is what is left of a tiny negative number; its sign says nothing.
    return text.replace("-", "+" if sign else "") if re.fullmatch(r"-0\.0+%?", text) else text


def _heading(metric: str, up: str, down: str, escape: Callable[[str], str]) -> str:
    facts = _facts(metric)
    base, _, difference = metric.partition(":")
    unit = " (points)" if facts.percent and difference else " (%)" if facts.percent else ""
    return escape(" ".join([base, difference]).strip() + unit) + (up if facts.higher_is_better else down)


# --- the listing ----------------------------------------------------------------------------------


def _setting(setting: dict[str, str], varying: set[str]) -> str:
    """What the block is about; defaults are said only where the table also has something else."""
    words = [_plain(setting[name]) for name in ("suite", "subset", "system", "distance") if setting[name]]
    if setting["correction"] not in ("", "none"):
        words.append(f"{_plain(setting['correction'])} correction")
    elif "correction" in varying:
        words.append("no correction")
    if setting["protocol"] == "across_groups":
        words.append("across groups")
    elif setting["protocol"] != "all":
        words.append(_plain(setting["protocol"]))
    elif "protocol" in varying:
        words.append("all pairs")
    return " · ".join(words) or "scores"


def _listing(rows: Sequence[Row]) -> list[str]:
    columns: list[tuple[str, Callable[[Row, Metric], str]]] = [
        ("value", _value),
        ("95% interval", lambda row, facts: _bracket(row.low, row.high, facts)),
        ("chance", _chance),
        ("lift", lambda row, facts: "" if row.lift is None else _number(row.lift, facts, sign=True)),
        ("p", lambda row, _: "" if row.p_value is None else f"{row.p_value:.2g}"),
        ("n", lambda row, _: "" if row.n is None else str(row.n)),
    ]
    table = [["metric", *(title for title, _ in columns)]]
    table += [[_plain(row.metric), *(show(row, _facts(row.metric)) for _, show in columns)] for row in rows]
    used = [place for place in range(len(table[0])) if place < 2 or any(line[place] for line in table[1:])]
    lines = aligned([[line[place] for place in used] for line in table], left=1)
    return [lines[0], *(line + _remark(row) for line, row in zip(lines[1:], rows, strict=True))]


def _value(row: Row, facts: Metric) -> str:
    if row.value is None or row.status not in WITH_VALUE:
        return _DASH
    return _mark(row) + _number(row.value, facts, unit="%")


def _chance(row: Row, facts: Metric) -> str:
    if row.baseline is None:
        return ""
    around = _bracket(row.baseline_low, row.baseline_high, facts)
    return f"{_number(row.baseline, facts, unit='%')} {around}".rstrip()


def _bracket(low: float | None, high: float | None, facts: Metric) -> str:
    return "" if low is None or high is None else f"[{_number(low, facts)}, {_number(high, facts)}]"


def _remark(row: Row) -> str:
    words = [] if row.status == "ok" else [row.status.replace("_", " ")]
    words += [_plain(row.reason)] if row.reason.strip() else []
    return "  " + ": ".join(words) if words else ""


# --- text -----------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    """One line without control characters: a name in a score file must not steer anyone's terminal."""
    return "".join(mark if mark.isprintable() else "?" for mark in " ".join(text.split()))


def _superscript(number: int) -> str:
    return str(number).translate(_SUPERSCRIPT)


def _text_cell(cell: _Cell) -> str:
    return cell.text + (_superscript(cell.note) if cell.note else "") + cell.rest


def _markdown_cell(cell: _Cell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    return text + (_superscript(cell.note) if cell.note else "") + cell.rest


def _latex_cell(cell: _Cell) -> str:
    text = cell.text.replace(_DASH, "--") if cell.note else cell.text.replace("-", "$-$")
    text = text.replace("~", r"$\sim$")  # a bare tilde is a space there
    text = rf"\textbf{{{text}}}" if cell.best else text
    note = rf"\textsuperscript{{{cell.note}}}" if cell.note else ""
    return text + note + cell.rest.replace("-", "$-$")


def _pipes(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown(text: str) -> str:
    escaped = re.sub(r"([\\`*|<\[\]])", r"\\\1", _plain(text))
    # An underscore inside a word is safe, and names such as mean_time read better without a backslash.
    return re.sub(r"(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])", r"\\_", escaped)


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    _DASH: "--",
    # After the \\ that ends a line, a bare bracket or star would be read as its argument.
    "[": "{[}",
    "*": "{*}",
    "·": r"\textperiodcentered{}",
} | {mark: "\\" + mark for mark in "&%$#_{}"}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(mark, mark) for mark in _plain(text))


def _width(text: str) -> int:
    """Columns on a terminal: combining marks take none, East Asian wide characters two."""
    return sum(
        0 if unicodedata.combining(mark) else 2 if unicodedata.east_asian_width(mark) in "WF" else 1 for mark in text
    )


def aligned(table: Sequence[Sequence[str]], *, left: int, ruled: bool = False) -> list[str]:
    """Lines of cells in columns, the first `left` to the left and the others to the right; `ruled` under the head."""
    widths = [max(_width(line[place]) for line in table) for place in range(len(table[0]))]
    lines = []
    for line in table:
        cells = []
        for place, (cell, width) in enumerate(zip(line, widths, strict=True)):
            space = " " * (width - _width(cell))
            cells.append(cell + space if place < left else space + cell)
        lines.append("  ".join(cells).rstrip())
    if ruled:
        lines.insert(1, "  ".join("─" * width for width in widths))
    return lines
