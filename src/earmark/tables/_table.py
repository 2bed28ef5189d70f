"""One table and its writers: aligned text, Markdown, LaTeX, HTML, CSV and Parquet.

A cell is a text, a number, None where nothing was measured, or a `Cell`: a value that may be bold, a numbered footnote
and what follows them. Text, Markdown, LaTeX and HTML show numbers in the format of their column; CSV and Parquet hold
them with every digit, and columns that are there for programs alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from earmark.tables import html
from earmark.tables._text import aligned, one_line
from earmark.tables.files import csv_text, parquet_bytes
from earmark.tables.latex import Body, Head, Page, latex_escape, table_source
from earmark.tables.numbers import MISSING, PLAIN_NUMBER, NumberFormat


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title with its unit, the side its cells stand on, and how its numbers are written.

    `over` is a heading that neighbouring columns have in common, `mark` follows the heading (an arrow). A column of
    `data` is for programs: CSV and Parquet alone have it.
    """

    title: str
    align: Literal["left", "right"] = "right"
    unit: str = ""
    format: NumberFormat = PLAIN_NUMBER
    over: str = ""
    mark: str = ""
    data: bool = False

    @property
    def own_heading(self) -> str:
        return f"{self.title} ({self.unit}){self.mark}" if self.unit else f"{self.title}{self.mark}"

    @property
    def heading(self) -> str:
        return " ".join(filter(None, [self.over, self.own_heading]))


@dataclass(frozen=True, slots=True)
class Cell:
    """A value for reading: `text` may be bold or underlined, `note` is the number of a footnote, `rest` follows them.

    `exact` is the number that CSV and Parquet hold; without one they hold the text, or nothing where `blank` is set.
    """

    text: str = ""
    bold: bool = False
    note: int | None = None
    rest: str = ""
    underlined: bool = False
    exact: float | int | None = None
    blank: bool = False


@dataclass(frozen=True, repr=False)
class Table:
    """Columns, rows of as many cells, a title and footnotes, numbered from 1; shown as its text."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    footnotes: Sequence[str] = field(default=())

    def __repr__(self) -> str:
        return self.to_text().rstrip("\n")

    @property
    def header(self) -> list[str]:
        return [column.heading for column in self._shown]

    @property
    def _shown(self) -> list[Column]:
        return [column for column in self.columns if not column.data]

    def to_text(self, *, ruled: bool = True, indent: str = "") -> str:
        """The title, the columns with a rule under their heads, and the footnotes."""
        blocks = [self.title] if self.title else []
        left = sum(column.align == "left" for column in self._shown)
        body = [[self._text(cell, column) for cell, column in self._cells(row)] for row in self.rows]
        blocks.append("\n".join(aligned([self.header, *body], left=left, ruled=ruled, indent=indent)))
        notes = [f"{superscript(number)} {note}" for number, note in enumerate(self.footnotes, start=1)]
        return "\n\n".join([*blocks, *(["\n".join(notes)] if notes else [])]) + "\n"

    def to_markdown(self, *, rules: tuple[str, str] = (" :-- ", " --: ")) -> str:
        """A GitHub-flavoured Markdown table; `rules` are the marks under columns to the left and to the right."""
        under = [rules[column.align == "right"] for column in self._shown]
        lines = [_pipes(map(markdown_escape, self.header)), f"|{'|'.join(under)}|"]
        lines += [_pipes(self._markdown(cell, column) for cell, column in self._cells(row)) for row in self.rows]
        blocks = [markdown_escape(self.title)] if self.title else []
        blocks.append("\n".join(lines))
        notes = [f"{superscript(number)} {markdown_escape(note)}" for number, note in enumerate(self.footnotes, 1)]
        # A backslash at the end of a line is Markdown's line break.
        return "\n\n".join([*blocks, *(["\\\n".join(notes)] if notes else [])]) + "\n"

    def to_latex(self, *, label: str | None = None, page: Page | None = None) -> str:
        """A table that fits a page; text is escaped, `label` is taken as it is.

        It needs the booktabs package, and what a comment on its first line says where it is turned, long or parted.
        """
        sides = [column.align for column in self._shown]
        named = sides.index("right") if "right" in sides else 1
        heads = [
            Head(column.own_heading, column.over, column.align, place < named)
            for place, column in enumerate(self._shown)
        ]
        source = [[self._latex(cell, column) for cell, column in self._cells(row)] for row in self.rows]
        seen = [[self._text(cell, column) for cell, column in self._cells(row)] for row in self.rows]
        return table_source(heads, Body(source, seen), self.footnotes, title=self.title, label=label, page=page)

    def to_html(self, *, sortable: bool = True, filterable: bool = False) -> html.Html:
        """An element of a page: the title above a table in a frame that scrolls, the footnotes below."""
        sides = [column.align for column in self._shown]
        left = sides.index("right") if "right" in sides else len(sides)
        words = sides[::-1].index("right") if "right" in sides else 0
        body = [[self._html(cell, column) for cell, column in self._cells(row)] for row in self.rows]
        made = html.table(
            self.header, body, left=left, words=words, caption=self.title or None, sortable=sortable,
            filterable=filterable,
        )  # fmt: skip
        notes = html.tag("ol", [html.tag("li", note) for note in self.footnotes], class_="quiet")
        return html.join(made, notes if self.footnotes else None)

    def to_csv(self) -> str:
        """The titles and the rows; a `Cell` without an exact value is written as it reads."""
        rows = ([_exact(cell) for cell in row] for row in self.rows)
        return csv_text(self.names, rows)

    @property
    def names(self) -> list[str]:
        """What CSV and Parquet call the columns."""
        return [" ".join(filter(None, [column.over, column.title])) for column in self.columns]

    def records(self) -> list[dict[str, Any]]:
        """The rows by the names of the columns, as CSV holds them."""
        return [dict(zip(self.names, map(_exact, row), strict=True)) for row in self.rows]

    def to_parquet(self) -> bytes:
        """The titles and the rows, types inferred from the cells."""
        return parquet_bytes({name: [_exact(row[place]) for row in self.rows] for place, name in enumerate(self.names)})

    def _cells(self, row: Sequence[Any]) -> Iterable[tuple[Any, Column]]:
        return ((cell, column) for cell, column in zip(row, self.columns, strict=True) if not column.data)

    @staticmethod
    def _text(cell: Any, column: Column) -> str:
        if isinstance(cell, Cell):
            return cell.text + (superscript(cell.note) if cell.note else "") + cell.rest
        return _shown(cell, column)

    @staticmethod
    def _markdown(cell: Any, column: Column) -> str:
        if isinstance(cell, Cell):
            text = f"**{cell.text}**" if cell.bold else f"<ins>{cell.text}</ins>" if cell.underlined else cell.text
            return text + (superscript(cell.note) if cell.note else "") + cell.rest
        return markdown_escape(_shown(cell, column))

    @staticmethod
    def _latex(cell: Any, column: Column) -> str:
        if isinstance(cell, Cell):
            text = cell.text.replace(MISSING, "--") if cell.note else cell.text.replace("-", "$-$")
            text = text.replace("~", r"$\sim$")  # a bare tilde is a space there
            text = rf"\textbf{{{text}}}" if cell.bold else rf"\underline{{{text}}}" if cell.underlined else text
            rest = cell.rest.replace("-", "$-$").replace("±", r"$\pm$")
            return text + (rf"\textsuperscript{{{cell.note}}}" if cell.note else "") + rest
        text = latex_escape(_shown(cell, column))
        return text.replace(r"\textasciitilde{}", r"$\sim$") if column.align == "right" else text

    @staticmethod
    def _html(cell: Any, column: Column) -> html.Html | str:
        if isinstance(cell, Cell):
            note = html.tag("sup", str(cell.note)) if cell.note else None
            mark = "b" if cell.bold else "u" if cell.underlined else ""
            return html.join(html.tag(mark, cell.text) if mark else cell.text, note, cell.rest)
        return cell if isinstance(cell, html.Html) else _shown(cell, column)


def _shown(cell: Any, column: Column) -> str:
    if cell is None:
        return ""
    return column.format.text(cell) if isinstance(cell, float) else str(cell)


def _exact(cell: Any) -> Any:
    if not isinstance(cell, Cell):
        return cell
    if cell.exact is not None or cell.blank:
        return cell.exact
    return cell.text + cell.rest


def _pipes(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def superscript(number: int) -> str:
    """`12` as `¹²`."""
    return str(number).translate(_SUPERSCRIPTS)


def markdown_escape(text: str) -> str:
    """Text as it reads in Markdown."""
    escaped = re.sub(r"([\\`*|<\[\]])", r"\\\1", one_line(text))
    # An underscore inside a word is safe, and names such as mean_time read better without a backslash.
    return re.sub(r"(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])", r"\\_", escaped)


_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
