"""Variants of one model beside each other as papers print ablations: before, after, and the difference.

subset    model    metric     spearman            spearman+dtw        difference             p
ES1~50x5  moonshine  P@1 (%) ↑  30.4 [24.1, 37.5]   25.6 [19.9, 32.3]   −4.8 [−11.0, 1.5]   0.14
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from earmark.report.metric_text import heading, interval, number
from earmark.report.score_index import PROTOCOLS
from earmark.scores import Row, Scores
from earmark.tables import MISSING, Cell, Column, Table, one_line


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

    def table(self) -> Table:
        """A line for each pair and metric."""
        pairs = (*self.pairs, *self.means)
        notes = _Notes(row for pair in pairs for row in (pair.before, pair.after, pair.difference))
        protocols = len({pair.after.protocol for pair in pairs}) > 1
        fixed = len({pair.levels for pair in pairs}) == 1
        heads = ["subset", self.vary if self.vary == "model" else "model"]
        heads += [] if fixed else [self.vary]
        heads += ["pairs"] if protocols else []
        rows: list[list[str | Cell]] = []
        for pair in pairs:
            line: list[str | Cell] = [one_line(pair.before.labelled_subset), one_line(pair.model)]
            line += [] if fixed else [f"{pair.levels[0]} → {pair.levels[1]}"]
            line += [PROTOCOLS.get(pair.after.protocol, pair.after.protocol)] if protocols else []
            line += [heading(pair.after.metric), _cell(pair.before, notes), _cell(pair.after, notes)]
            line += [_cell(pair.difference, notes, sign=True), _p_value(pair.difference)]
            rows.append(line)
        before, after = pairs[0].levels if fixed and pairs else ("before", "after")
        columns = [Column(head, "left") for head in (*heads, "metric")]
        columns += [Column(head) for head in (before, after, "difference", "p")]
        return Table(columns, rows, title=self._title(notes), footnotes=list(notes.numbers))

    def _title(self, notes: _Notes) -> str:
        pairs = [*self.pairs, *self.means]
        shown = ["value [95 % interval]"] if any(pair.after.low is not None for pair in pairs) else ["value"]
        counts = sorted({pair.difference.comparisons or 1 for pair in self.pairs})
        corrected = (
            f", corrected for {counts[-1]} differences of a metric and subset" if counts and counts[-1] > 1 else ""
        )
        paired = any(pair.difference.low is not None for pair in pairs)
        shown += [f"difference on the same clips, paired{corrected}"] if paired else []
        sentences = ["; ".join(shown), *notes.common]
        return " ".join(f"{sentence[:1].upper()}{sentence[1:]}." for sentence in sentences)


class _Notes:
    """Reasons of rows as numbered footnotes; what every row says is no footnote and is told once."""

    def __init__(self, rows: Iterable[Row]) -> None:
        parts = [row.reason.split("; ") for row in rows]
        self.common = [part for part in (parts[0] if parts else []) if part and all(part in own for own in parts)]
        self.numbers: dict[str, int] = {}

    def number(self, row: Row) -> int | None:
        own = "; ".join(part for part in row.reason.split("; ") if part not in self.common)
        return self.numbers.setdefault(one_line(own), len(self.numbers) + 1) if own.strip() else None


def _cell(row: Row, notes: _Notes, *, sign: bool = False) -> Cell:
    note = notes.number(row)
    if row.value is None:
        return Cell("failed" if row.status == "failed" else MISSING, note=note)
    around = interval(row)
    return Cell(number(row.value, row.metric, sign=sign), note=note, rest=f" {around}" if around else "")


def _p_value(row: Row) -> str:
    return MISSING if row.p_value is None else f"{row.p_value:.2g}"
