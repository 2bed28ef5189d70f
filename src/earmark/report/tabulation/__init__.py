"""Tables for papers, from any score table, any run folder, or the papers' printed results.

made = tabulate("run")                                    means over sets of subsets, with margins
made = tabulate("published:vocsim", "full", metrics="GSR", with_repeats=True)
print(made.to_latex(label="tab:gsr"))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from earmark.errors import UsageError, absent, did_you_mean, quoted
from earmark.report._score_tables import score_table
from earmark.report.tabulation.chance import chance_tables
from earmark.report.tabulation.choice import KINDS, Choice
from earmark.report.tabulation.grid import GridColumn, chosen_lines, shown_lines
from earmark.report.tabulation.means import chosen_metrics, codec_table, full_tables, main_table
from earmark.report.tabulation.parts import class_tables, group_tables
from earmark.report.tabulation.sources import Configuration, TableSource, configuration, open_source
from earmark.report.tabulation.subsets import subset_table
from earmark.scores import Row, Scores
from earmark.scores.metrics import named
from earmark.scores.rows import distinct
from earmark.tables import Page, Table, csv_text, parquet_bytes

__all__ = ["KINDS", "Choice", "Tabulation", "tabulate"]


@dataclass(frozen=True)
class Tabulation:
    """Tables, and what a reader should know of where they come from."""

    tables: tuple[Table, ...]
    remarks: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Table]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def to_text(self) -> str:
        return "\n\n".join(table.to_text() for table in self.tables)

    def to_markdown(self) -> str:
        return "\n\n".join(table.to_markdown() for table in self.tables)

    def to_latex(self, *, label: str | None = None, page: Page | None = None) -> str:
        """Each table fits a page; of several, labels are numbered."""
        labels = (
            [label] if len(self.tables) == 1 or not label else [f"{label}-{n + 1}" for n in range(len(self.tables))]
        )
        labels += [None] * (len(self.tables) - len(labels))
        made = (table.to_latex(label=name, page=page) for table, name in zip(self.tables, labels, strict=True))
        return "\n".join(made)

    def to_csv(self) -> str:
        """One CSV, every digit; of several tables, the first column says which."""
        header, rows = self._stacked()
        return csv_text(header, rows)

    def to_parquet(self) -> bytes:
        header, rows = self._stacked()
        return parquet_bytes({name: [row[name] for row in rows] for name in header})

    def as_dicts(self) -> list[dict[str, Any]]:
        """Each table with its title, its rows by column, and its footnotes."""
        return [
            {"title": table.title, "rows": table.records(), "footnotes": list(table.footnotes)} for table in self.tables
        ]

    def _stacked(self) -> tuple[list[str], list[dict[str, Any]]]:
        several = len(self.tables) > 1
        rows = [
            ({"table": table.title} if several else {}) | record for table in self.tables for record in table.records()
        ]
        header = list(dict.fromkeys(name for table in self.tables for name in table.names))
        header = ["table", *header] if several else header
        return header, [dict.fromkeys(header) | row for row in rows]


def tabulate(
    source: str | os.PathLike[str] | Scores,
    kind: str | Sequence[str] | None = None,
    *,
    with_repeats: bool = False,
    facts: str | os.PathLike[str] | None = None,
    **choice: Any,
) -> Tabulation:
    """Tables for a paper.

    Args:
        source: A score table, a run folder, `published:vocsim`, `published:codec-superb`, or scores.
        kind: One or several of `KINDS`; None is `codecs` for codecs and `main` for everything else.
        with_repeats: Count printed values that repeat another system's as measurements.
        facts: A file of `earmark corpus describe --out`, for the table of subsets.
        choice: What the tables show, the fields of `Choice`: metrics, systems, subsets, distances, sets, averages,
            missing, interval, sort, top, digits …

    Returns:
        The table, to be written as text, Markdown, LaTeX or CSV.

    >>> tabulate("published:vocsim", metrics="P@1", with_repeats=True).to_text()
    """
    wanted = Choice.of(**choice)
    opened = open_source(source, wanted, with_repeats=with_repeats, facts=facts)
    _check_names(opened, wanted)
    kinds = named(kind) if kind else ["codecs" if opened.codecs else "main"]
    tables: list[Table] = []
    for name in kinds:
        if name not in KINDS:
            raise UsageError(
                f"There is no kind of table {name!r}; there are {', '.join(KINDS)}.{did_you_mean(name, KINDS)}"
            )
        tables += _MAKERS[name](opened, wanted)
    return Tabulation(tuple(tables), tuple(_remarks(opened, wanted, kinds)))


def _check_names(source: TableSource, choice: Choice) -> None:
    """UsageError for a new name of a system that is not there, or that another one has."""
    present = distinct((*source.scores.rows, *source.given.rows), "system")
    for old in choice.rename:
        if old not in present:
            raise UsageError(absent(old, present, "system", source.name))
    shown: dict[str, str] = {}
    for system in present if choice.rename else ():
        new = choice.rename.get(system, system)
        if shown.setdefault(new, system) != system:
            raise UsageError(
                f"{quoted(shown[new])} and {quoted(system)} would both be called {quoted(new)}: rename one."
            )


def _score_tables(source: TableSource, choice: Choice) -> list[Table]:
    """A table for each subset, with intervals and lifts: what a run writes to its folder tables/."""
    metrics = chosen_metrics(source, choice) if choice.metrics else source.metrics
    lines = chosen_lines(source, choice, metrics)
    rows: dict[str, dict[str, dict[Configuration, Row]]] = {}
    for row in source.scores:
        if row.metric in metrics:
            rows.setdefault(row.subset, {}).setdefault(row.metric, {})[configuration(row)] = row
    tables = []
    for found in rows.values():
        columns = [GridColumn(name, name, found[name]) for name in metrics if name in found]
        here = shown_lines([line for line in lines if any(line in at.rows for at in columns)], columns, choice, source)
        own = [column.rows[line] for line in here for column in columns if line in column.rows]
        named_rows = tuple(replace(row, system=choice.rename.get(row.system, row.system)) for row in own)
        tables.append(
            score_table(
                Scores(named_rows), metrics=[column.metric for column in columns], interval=choice.interval != "none",
                lift=choice.lift,
            )
        )  # fmt: skip
    return tables


def _remarks(source: TableSource, choice: Choice, kinds: Iterable[str]) -> Iterator[str]:
    yield from source.remarks
    if not source.leading or "main" not in kinds:
        return
    if not choice.chooses_rows():
        yield "The rows are those of the paper's Table 2; --systems all shows every configuration."
    elif not choice.systems:
        yield (
            "The rows are chosen among all configurations that the paper prints, not among those of its Table 2; ± "
            "stands where Table 2 prints one."
        )


_MAKERS: dict[str, Callable[[TableSource, Choice], list[Table]]] = {
    "main": main_table,
    "chance": chance_tables,
    "full": full_tables,
    "scores": _score_tables,
    "groups": group_tables,
    "classes": class_tables,
    "subsets": subset_table,
    "codecs": codec_table,
}
