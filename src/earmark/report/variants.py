"""Variants of one model beside each other as papers print ablations: before, after, and the difference.

subset    model      metric              spearman      spearman+dtw           difference     p
ES1~50x5  moonshine  P@1 (%) ↑  24.4 [15.7, 35.9]  12.8 [6.9, 22.6]  -11.6 [-25.0, 2.3]  0.13
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from earmark.report.metric_text import facts, heading
from earmark.report.score_index import PROTOCOLS
from earmark.scores import Row, Scores
from earmark.tables import MISSING, Cell, Column, NumberFormat, Table, one_line
from earmark.tables.numbers import HYPHEN

_PERCENT = NumberFormat(1, percent=True, minus=HYPHEN)  # as tables for papers have them
_PLAIN = NumberFormat(3, minus=HYPHEN)


@dataclass(frozen=True)
class Pair:
    """Two variants of a model on the same clips, by one metric; `difference` is the row of `after` minus `before`."""

    model: str
    levels: tuple[str, str]  # of what was varied: before and after
    before: Row
    after: Row
    difference: Row


@dataclass(frozen=True)
class Variants:
    """Pairs that differ in one choice, in the order of the table; `means` are those over subsets."""

    vary: str
    pairs: tuple[Pair, ...]
    means: tuple[Pair, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def scores(self) -> Scores:
        """Every row once: values as they are, and differences."""
        rows = [row for pair in (*self.pairs, *self.means) for row in (pair.before, pair.after, pair.difference)]
        return Scores(tuple({row.key: row for row in rows}.values()), notes=self.notes)

    def table(self, *, intervals: bool = True) -> Table:
        """A line for each pair and metric; what is the same on every line moves to the title.

        Without `intervals` differences alone have theirs, as on a narrow page.
        """
        pairs = (*self.pairs, *self.means)
        notes = _Notes(row for pair in self.pairs for row in (pair.before, pair.after, pair.difference))
        names = {
            "subset": [self._place(pair) for pair in pairs],
            "model": [one_line(pair.model) for pair in pairs],
            self.vary: [pair.levels[1] for pair in pairs],
            "pairs": [PROTOCOLS.get(pair.after.protocol, pair.after.protocol) for pair in pairs],
            "metric": [heading(pair.after.metric) for pair in pairs],
        }
        constant = {name: texts[0] for name, texts in names.items() if len(set(texts)) == 1}
        varying = [name for name in names if name not in constant]
        rows: list[list[str | Cell]] = []
        for place, pair in enumerate(pairs):
            cells = [_cell(row, notes, interval=intervals) for row in (pair.before, pair.after)]
            difference = _cell(pair.difference, notes, sign=True)
            rows.append([*(names[name][place] for name in varying), *cells, difference, _p_value(pair.difference)])
        references = {pair.levels[0] for pair in pairs}
        before = references.pop() if len(references) == 1 else "before"
        columns = [Column(name, "left") for name in varying]
        columns += [Column(head) for head in (before, constant.pop(self.vary, "after"), "difference", "p")]
        if constant.get("pairs") == PROTOCOLS["all"]:
            del constant["pairs"]
        about = ", ".join(f"{name} {text}" for name, text in constant.items())
        return Table(columns, rows, title=self._title(about, notes, intervals), footnotes=list(notes.numbers))

    def _place(self, pair: Pair) -> str:
        """The subset, or over how many of them a mean is."""
        of = pair.before
        count = len({(other.before.suite, other.before.labelled_subset) for other in self.pairs
                     if other.before.suite == of.suite})  # fmt: skip
        return f"{of.aggregate} of {count}" if of.aggregate else one_line(of.labelled_subset)

    def _title(self, about: str, notes: _Notes, intervals: bool) -> str:
        pairs = [*self.pairs, *self.means]
        around = " [95 % interval]"
        shown = [f"value{around * (intervals and any(pair.after.low is not None for pair in pairs))}"]
        if any(pair.difference.low is not None for pair in pairs):
            most = max((pair.difference.comparisons or 1 for pair in self.pairs), default=1)
            corrected = f", corrected for {most} differences of a metric and subset" if most > 1 else ""
            shown.append(f"difference{around * (not intervals)} on the same clips, paired{corrected}")
        sentences = [*filter(None, [about]), "; ".join(shown), *notes.common]
        return " ".join(f"{sentence[:1].upper()}{sentence[1:]}." for sentence in sentences)


class _Notes:
    """Reasons of rows as numbered footnotes; what every row says is no footnote and is told once."""

    def __init__(self, rows: Iterable[Row]) -> None:
        parts = [row.reason.split("; ") for row in rows]
        self.common = [part for part in (parts[0] if parts else []) if part and all(part in own for own in parts)]
        self.numbers: dict[str, int] = {}

    def number(self, row: Row) -> int | None:
        told = [*self.common, *([row.reason.split("; ")[0]] if row.aggregate else [])]  # over how many subsets
        own = "; ".join(part for part in row.reason.split("; ") if part not in told)
        return self.numbers.setdefault(one_line(own), len(self.numbers) + 1) if own.strip() else None


def _cell(row: Row, notes: _Notes, *, sign: bool = False, interval: bool = True) -> Cell:
    note = notes.number(row)
    if row.value is None:
        return Cell("failed" if row.status == "failed" else MISSING, note=note)
    form = _PERCENT if facts(row.metric).percent else _PLAIN
    around = form.interval(row.low, row.high) if interval else ""
    return Cell(form.text(row.value, sign=sign), note=note, rest=f" {around}" if around else "")


def _p_value(row: Row) -> str:
    return MISSING if row.p_value is None else f"{row.p_value:.2g}"
