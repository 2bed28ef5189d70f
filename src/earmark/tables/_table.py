"""One table and its writers: aligned text, Markdown, LaTeX, HTML, CSV and Parquet.

A cell is a text, a number, None where nothing was measured, or a `Cell`: a value that may be bold, a numbered footnote
and what follows them. Text, Markdown, LaTeX and HTML show numbers in the format of their column; CSV and Parquet hold
them with every digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from earmark.tables import html
from earmark.tables._text import aligned, one_line
from earmark.tables.files import csv_text, parquet_bytes
from earmark.tables.numbers import MISSING, PLAIN_NUMBER, NumberFormat


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title with its unit, the side its cells stand on, and how its numbers are written."""

    title: str
    align: Literal["left", "right"] = "right"
    unit: str = ""
    format: NumberFormat = PLAIN_NUMBER

    @property
    def heading(self) -> str:
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True, slots=True)
class Cell:
    """A value for reading: `text` may be bold, `note` is the number of a footnote, `rest` follows them."""

    text: str = ""
    bold: bool = False
    note: int | None = None
    rest: str = ""


@dataclass(frozen=True)
class Table:
    """Columns, rows of as many cells, a title and footnotes, numbered from 1."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    footnotes: Sequence[str] = field(default=())

    @property
    def header(self) -> list[str]:
        return [column.heading for column in self.columns]

    def to_text(self, *, ruled: bool = True, indent: str = "") -> str:
        """The title, the columns with a rule under their heads, and the footnotes."""
        blocks = [self.title] if self.title else []
        left = sum(column.align == "left" for column in self.columns)
        body = [[self._text(cell, column) for cell, column in self._cells(row)] for row in self.rows]
        blocks.append("\n".join(aligned([self.header, *body], left=left, ruled=ruled, indent=indent)))
        notes = [f"{superscript(number)} {note}" for number, note in enumerate(self.footnotes, start=1)]
        return "\n\n".join([*blocks, *(["\n".join(notes)] if notes else [])]) + "\n"

    def to_markdown(self, *, rules: tuple[str, str] = (" :-- ", " --: ")) -> str:
        """A GitHub-flavoured Markdown table; `rules` are the marks under columns to the left and to the right."""
        under = [rules[column.align == "right"] for column in self.columns]
        lines = [_pipes(map(markdown_escape, self.header)), f"|{'|'.join(under)}|"]
        lines += [_pipes(self._markdown(cell, column) for cell, column in self._cells(row)) for row in self.rows]
        blocks = [markdown_escape(self.title)] if self.title else []
        blocks.append("\n".join(lines))
        notes = [f"{superscript(number)} {markdown_escape(note)}" for number, note in enumerate(self.footnotes, 1)]
        # A backslash at the end of a line is Markdown's line break.
        return "\n\n".join([*blocks, *(["\\\n".join(notes)] if notes else [])]) + "\n"

    def to_latex(self, *, label: str | None = None) -> str:
        """A table environment that needs only the booktabs package; text is escaped, `label` is taken as it is."""
        lines = [r"\begin{table}", r"\centering"]
        lines += [rf"\caption{{{latex_escape(self.title)}}}"] if self.title else []
        lines += [rf"\label{{{label}}}"] if label else []
        lines.append(rf"\begin{{tabular}}{{{''.join(column.align[0] for column in self.columns) or 'l'}}}")
        lines += [r"\toprule", " & ".join(map(latex_escape, self.header)) + r" \\", r"\midrule"]
        lines += [
            " & ".join(self._latex(cell, column) for cell, column in self._cells(row)) + r" \\" for row in self.rows
        ]
        lines += [r"\bottomrule", r"\end{tabular}"]
        for number, note in enumerate(self.footnotes, start=1):
            lines += ["", rf"{{\footnotesize \textsuperscript{{{number}}} {latex_escape(note)}}}"]
        return "\n".join([*lines, r"\end{table}"]) + "\n"

    def to_html(self, *, sortable: bool = True, filterable: bool = False) -> html.Html:
        """An element of a page: the title above a table in a frame that scrolls, the footnotes below."""
        sides = [column.align for column in self.columns]
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
        """The titles and the rows; a `Cell` is written as it reads."""
        rows = ([_exact(cell) for cell in row] for row in self.rows)
        return csv_text([column.title for column in self.columns], rows)

    def to_parquet(self) -> bytes:
        """The titles and the rows, types inferred from the cells."""
        return parquet_bytes(
            {column.title: [_exact(row[place]) for row in self.rows] for place, column in enumerate(self.columns)}
        )

    def _cells(self, row: Sequence[Any]) -> Iterable[tuple[Any, Column]]:
        return zip(row, self.columns, strict=True)

    @staticmethod
    def _text(cell: Any, column: Column) -> str:
        if isinstance(cell, Cell):
            return cell.text + (superscript(cell.note) if cell.note else "") + cell.rest
        return _shown(cell, column)

    @staticmethod
    def _markdown(cell: Any, column: Column) -> str:
        if isinstance(cell, Cell):
            text = f"**{cell.text}**" if cell.bold else cell.text
            return text + (superscript(cell.note) if cell.note else "") + cell.rest
        return markdown_escape(_shown(cell, column))

    @staticmethod
    def _latex(cell: Any, column: Column) -> str:
        if isinstance(cell, Cell):
            text = cell.text.replace(MISSING, "--") if cell.note else cell.text.replace("-", "$-$")
            text = text.replace("~", r"$\sim$")  # a bare tilde is a space there
            text = rf"\textbf{{{text}}}" if cell.bold else text
            return text + (rf"\textsuperscript{{{cell.note}}}" if cell.note else "") + cell.rest.replace("-", "$-$")
        text = latex_escape(_shown(cell, column))
        return text.replace(r"\textasciitilde{}", r"$\sim$") if column.align == "right" else text

    @staticmethod
    def _html(cell: Any, column: Column) -> html.Html | str:
        if isinstance(cell, Cell):
            note = html.tag("sup", str(cell.note)) if cell.note else None
            return html.join(html.tag("b", cell.text) if cell.bold else cell.text, note, cell.rest)
        return cell if isinstance(cell, html.Html) else _shown(cell, column)


def _shown(cell: Any, column: Column) -> str:
    if cell is None:
        return ""
    return column.format.text(cell) if isinstance(cell, float) else str(cell)


def _exact(cell: Any) -> Any:
    return cell.text + cell.rest if isinstance(cell, Cell) else cell


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


def latex_escape(text: str) -> str:
    """Text as it reads in LaTeX."""
    return "".join(_LATEX.get(mark, mark) for mark in one_line(text))


_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    MISSING: "--",
    "\N{MINUS SIGN}": "$-$",
    "†": r"\textdagger{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    # After the \\ that ends a line, a bare bracket or star would be read as its argument.
    "[": "{[}",
    "*": "{*}",
    "·": r"\textperiodcentered{}",
    "×": r"$\times$",
    "²": "$^2$",
    "δ": r"$\delta$",
    "η": r"$\eta$",
    "σ": r"$\sigma$",
} | {mark: "\\" + mark for mark in "&%$#_{}"}
