"""A table as LaTeX that fits a page: a smaller font, then turned by a quarter, then in several parts; long ones break.

    1. one table, in the largest of four font sizes in which its columns fit the text block
    2. the same on a page turned by a quarter, where it fits there and not in 1
    3. in parts: groups of columns in tabulars of their own, the first columns repeated

With more lines than a page holds it is a longtable, which repeats its head on every page. What is needed beyond
booktabs stands in a comment on the first line. How wide a text is, is estimated from the widths of Computer Modern's
letters and rather too wide than too narrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from earmark.errors import UsageError, quoted
from earmark.tables._text import one_line
from earmark.tables.numbers import MISSING

SAFETY = 1.02  # bold digits are wider
MOST_NAME = 0.4  # of the width that a column of names may take before its text is broken into lines


class Page(NamedTuple):
    """The text block in points; that of LaTeX's article class at 10 pt."""

    width: float = 345.0
    height: float = 550.0


class Head(NamedTuple):
    """A column as LaTeX has it: its heading, what stands above it and its neighbours, its side, whether it names."""

    title: str
    over: str
    align: str
    names: bool


class Body(NamedTuple):
    """Cells as LaTeX source, and as the text that is seen."""

    source: Sequence[Sequence[str]]
    seen: Sequence[Sequence[str]]


class _Size(NamedTuple):
    command: str
    scale: float
    line: float
    gap: float  # \tabcolsep


_SIZES = (
    _Size("", 1.0, 12.0, 6.0), _Size(r"\small", 0.93, 11.0, 5.0), _Size(r"\footnotesize", 0.85, 9.5, 4.0),
    _Size(r"\scriptsize", 0.8, 8.0, 3.0),
)  # fmt: skip
"""The smaller the letters of Computer Modern are, the wider they are for their height: digits of 7 pt have 0.8 of the
width of those of 10 pt."""


class _Layout(NamedTuple):
    size: _Size
    sideways: bool
    parts: tuple[tuple[int, ...], ...]
    long: bool
    wrapped: tuple[float | None, ...]  # a width for columns of names whose text is broken


def table_source(
    heads: Sequence[Head], body: Body, notes: Sequence[str], *, title: str = "", label: str | None = None,
    page: Page | None = None,
) -> str:  # fmt: skip
    """The LaTeX of a table; `page` None is LaTeX's own, whose width no table overruns."""
    if label and not re.fullmatch(r"[A-Za-z0-9:._-]+", label):
        raise UsageError(f"The LaTeX label {quoted(label)} has to be of letters, digits and : - _ . alone.")
    layout = _layout(heads, body, notes, title, page or Page())
    lines = [*_packages(layout), *_foreign(heads, body, notes, title)]
    lines += _long(heads, body, notes, title, label, layout) if layout.long else _float(
        heads, body, notes, title, label, layout
    )  # fmt: skip
    return "\n".join(lines) + "\n"


# --- the layout ---------------------------------------------------------------------------------------------------


def _layout(heads: Sequence[Head], body: Body, notes: Sequence[str], title: str, page: Page) -> _Layout:
    widths = [
        max([text_width(head.title), *(text_width(line[place]) for line in body.seen)])
        for place, head in enumerate(heads)
    ]
    everything = (tuple(range(len(heads))),)
    for sideways, room in ((False, page.width), (True, page.height)):
        for size in _SIZES:
            if _width(widths, everything[0], size) <= room:
                high = page.width if sideways else page.height
                long = _height(1, len(body.seen), notes, title, size, room) > high
                return _Layout(size, sideways, everything, long, (None,) * len(heads))
    # As few parts as the smallest font gives, in the largest font that gives as few.
    found = []
    for size in _SIZES[:0:-1]:
        wrapped = _wrapped(heads, widths, size, page.width)
        limits = [width if most is None else most / size.scale for width, most in zip(widths, wrapped, strict=True)]
        found.append((size, wrapped, _parts(heads, limits, size, page.width)))
    fewest = min(len(parts) for _, _, parts in found)
    size, wrapped, parts = [one for one in found if len(one[2]) == fewest][-1]
    long = _height(len(parts), len(body.seen) * len(parts), notes, title, size, page.width) > page.height
    return _Layout(size, False, parts, long, wrapped)


def _wrapped(heads: Sequence[Head], widths: Sequence[float], size: _Size, room: float) -> tuple[float | None, ...]:
    """A width for columns of names that take more than their share."""
    names = sum(head.names for head in heads)
    most = MOST_NAME * room / max(1, names)
    if sum(width * size.scale for width, head in zip(widths, heads, strict=True) if head.names) <= MOST_NAME * room:
        return (None,) * len(heads)
    return tuple(
        most if head.names and width * size.scale > most else None for head, width in zip(heads, widths, strict=True)
    )


def _width(widths: Sequence[float], places: Iterable[int], size: _Size) -> float:
    return SAFETY * sum(widths[place] * size.scale + 2 * size.gap for place in places)


def _height(tables: int, lines: int, notes: Sequence[str], title: str, size: _Size, width: float) -> float:
    """Of so many tables with so many lines together, with their heads, the caption and the notes."""
    words = [(title, 1.0, 12.0), *((note, 0.85, 9.5) for note in notes)]
    text = sum(line * (1 + text_width(told) * scale // width) for told, scale, line in words)
    return lines * size.line + tables * 5 * size.line + text + 12.0


def _parts(heads: Sequence[Head], widths: Sequence[float], size: _Size, room: float) -> tuple[tuple[int, ...], ...]:
    """Which columns stand together: the names in every part, and about equal shares of the others; columns under one
    heading are not parted where they fit together."""
    names = [place for place, head in enumerate(heads) if head.names]
    left = room - _width(widths, names, size)
    others = [place for place in range(len(heads)) if place not in names]
    blocks = [list(group) for over, group in groupby(others, key=lambda place: heads[place].over or str(place))]
    pieces: list[list[int]] = []
    for block in blocks:
        pieces += [block] if _width(widths, block, size) <= left else [[place] for place in block]
    parts = _filled(pieces, widths, size, left)
    for share in range(20, 100, 5):  # the narrowest parts that are as few
        narrower = _filled(pieces, widths, size, left * share / 100)
        if len(narrower) == len(parts):
            parts = narrower
            break
    return tuple((*names, *part) for part in parts)


def _filled(pieces: Sequence[Sequence[int]], widths: Sequence[float], size: _Size, room: float) -> list[list[int]]:
    parts: list[list[int]] = [[]]
    for piece in pieces:
        if parts[-1] and _width(widths, [*parts[-1], *piece], size) > room:
            parts.append([])
        parts[-1] += piece
    return parts


# --- the source ---------------------------------------------------------------------------------------------------


def _packages(layout: _Layout) -> Iterator[str]:
    needed = ["array"] if any(layout.wrapped) else []
    if layout.long:
        needed += ["longtable", *(["pdflscape"] if layout.sideways else [])]
    elif layout.sideways:
        needed.append("rotating")
    if needed:
        yield rf"% needs \usepackage{{{','.join(['booktabs', *needed])}}}"


def _foreign(heads: Sequence[Head], body: Body, notes: Sequence[str], title: str) -> Iterator[str]:
    """A comment about letters that pdfLaTeX does not print; they stand in the table as they are."""
    texts = [title, *notes, *(head.title + head.over for head in heads), *(cell for line in body.seen for cell in line)]
    marks = sorted({mark for text in texts for mark in one_line(text) if not _known(mark)})
    if marks:
        yield f"% needs XeLaTeX or LuaLaTeX and a font that has {' '.join(marks)}"


def _known(mark: str) -> bool:
    """Whether pdfLaTeX prints a character, as it is or as `latex_escape` has it."""
    return mark < "\u0180" or mark in _LATEX or mark in "‘’“”—…"


def _float(
    heads: Sequence[Head], body: Body, notes: Sequence[str], title: str, label: str | None, layout: _Layout
) -> Iterator[str]:
    environment = "sidewaystable" if layout.sideways else "table"
    yield rf"\begin{{{environment}}}"
    yield r"\centering"
    if title:
        yield rf"\caption{{{latex_escape(title)}}}"
    if label:
        yield rf"\label{{{label}}}"
    yield from _set_size(layout.size)
    for number, part in enumerate(layout.parts):
        if number:
            yield from ("", r"\medskip")
        yield rf"\begin{{tabular}}{{{_columns(heads, part, layout)}}}"
        yield r"\toprule"
        yield from _heading(heads, part)
        yield r"\midrule"
        yield from _lines(body, part)
        yield r"\bottomrule"
        yield r"\end{tabular}"
    for note in _notes(notes):
        yield from ("", note)
    yield rf"\end{{{environment}}}"


def _long(
    heads: Sequence[Head], body: Body, notes: Sequence[str], title: str, label: str | None, layout: _Layout
) -> Iterator[str]:
    if layout.sideways:
        yield r"\begin{landscape}"
    yield r"\begingroup"
    yield from _set_size(layout.size)
    for number, part in enumerate(layout.parts):
        if number and title:
            yield r"\addtocounter{table}{-1}"
        yield rf"\begin{{longtable}}{{{_columns(heads, part, layout)}}}"
        told = latex_escape(title)
        if told and len(layout.parts) > 1:
            told = " ".join(filter(None, [told, f"(Part {number + 1} of {len(layout.parts)}.)"]))
        if told and not number:
            yield rf"\caption{{{told}}}" + (rf"\label{{{label}}}" if label else "") + r" \\"
        elif told:
            yield rf"\caption[]{{{told}}} \\"
        head = [r"\toprule", *_heading(heads, part), r"\midrule"]
        yield from (*head, r"\endfirsthead", *head, r"\endhead")
        yield from (r"\midrule", rf"\multicolumn{{{len(part)}}}{{r}}{{continued on the next page}} \\", r"\endfoot")
        yield from (r"\bottomrule", r"\endlastfoot")
        yield from _lines(body, part)
        yield r"\end{longtable}"
    for note in _notes(notes):
        yield from ("", note)
    yield from ("", r"\endgroup")
    if layout.sideways:
        yield r"\end{landscape}"


def _set_size(size: _Size) -> Iterator[str]:
    if size.command:
        yield size.command
        yield rf"\setlength{{\tabcolsep}}{{{size.gap:g}pt}}"


def _columns(heads: Sequence[Head], part: Sequence[int], layout: _Layout) -> str:
    made = ""
    for place in part:
        width = layout.wrapped[place]
        made += heads[place].align[0] if width is None else rf">{{\raggedright\arraybackslash}}p{{{width:.0f}pt}}"
    return made or "l"


def _heading(heads: Sequence[Head], part: Sequence[int]) -> Iterator[str]:
    """A line of headings; above it what several columns have in common."""
    if any(heads[place].over for place in part):
        cells, rules, at = [], "", 1
        for over, group in groupby(part, key=lambda place: heads[place].over):
            count = len(list(group))
            cells += [rf"\multicolumn{{{count}}}{{c}}{{{latex_escape(over)}}}"] if over else [""] * count
            rules += rf"\cmidrule(lr){{{at}-{at + count - 1}}}" if over else ""
            at += count
        yield " & ".join(cells) + r" \\"
        yield rules
    yield " & ".join(latex_escape(heads[place].title) for place in part) + r" \\"


def _lines(body: Body, part: Sequence[int]) -> Iterator[str]:
    for line in body.source:
        yield " & ".join(line[place] for place in part) + r" \\"


def _notes(notes: Sequence[str]) -> Iterator[str]:
    for number, note in enumerate(notes, start=1):
        yield rf"{{\footnotesize \textsuperscript{{{number}}} {latex_escape(note)}}}"


def latex_escape(text: str) -> str:
    """Text as it reads in LaTeX."""
    return "".join(_LATEX.get(mark, mark) for mark in one_line(text))


def text_width(text: str) -> float:
    """About how many points a text takes in a font of 10 pt."""
    return sum(_WIDTHS.get(mark, 7.8 if mark.isupper() or not mark.isascii() else 5.6) for mark in text)


_WIDTHS = (
    dict.fromkeys("0123456789", 5.0)
    | dict.fromkeys(".,:;'|!", 2.8)
    | dict.fromkeys("ijl[]", 2.9)
    | dict.fromkeys("frtsI()- ", 4.0)
    | dict.fromkeys("mMwW%@", 9.0)
    | dict.fromkeys("+=<>~±−\N{MINUS SIGN}", 7.8)
    | dict.fromkeys("⁰¹²³⁴⁵⁶⁷⁸⁹", 4.0)
    | dict.fromkeys("↑↓/", 5.0)
)
_LATEX = (
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
        MISSING: "--",
        "\N{MINUS SIGN}": "$-$",
        "±": r"$\pm$",
        "†": r"\textdagger{}",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        # After the \\ that ends a line, a bare bracket or star would be read as its argument.
        "[": "{[}",
        "*": "{*}",
        "·": r"\textperiodcentered{}",
        "×": r"$\times$",
        "÷": r"$\div$",
        "→": r"$\rightarrow$",
        "←": r"$\leftarrow$",
        "≥": r"$\geq$",
        "≤": r"$\leq$",
        "≠": r"$\neq$",
        "≈": r"$\approx$",
        "∞": r"$\infty$",
        "√": r"$\surd$",
        "°": r"$^\circ$",
        "µ": r"$\mu$",  # the sign of micro
        "Δ": r"$\Delta$",
        "Σ": r"$\Sigma$",
        "Ω": r"$\Omega$",
    }
    | {mark: f"$^{place}$" for place, mark in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}
    | {
        mark: rf"$\{name}$"
        for mark, name in zip(
            "αβγδεζηθικλμνξπρστυφχψω",
            "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi "
            "psi omega".split(),
            strict=True,
        )
    }
    | {mark: "\\" + mark for mark in "&%$#_{}"}
)
