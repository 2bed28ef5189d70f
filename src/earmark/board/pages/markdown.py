"""The little Markdown that policies are written in, as HTML: headings, paragraphs, lists, tables, `code` and **bold**.

The text comes from a host's worker. Everything in it is escaped; links and HTML stay the letters that they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby

from markupsafe import Markup

_HEADING = re.compile(r"(#{1,4}) +(.*)")
_CODE = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")
_RULE = re.compile(r"\|[\s:|-]+\|")


def markdown(text: str, *, level: int = 2) -> Markup:
    """The text as HTML; its largest heading is of the level given."""
    blocks = re.split(r"\n\s*\n", text.replace("\r\n", "\n").strip())
    return Markup("\n".join(part for block in blocks if block.strip() for part in _block(block, level)))


def _block(block: str, level: int) -> Iterator[str]:
    for kind, lines in groupby(block.splitlines(), key=_kind):
        yield _SHAPES[kind](list(lines), level)


def _kind(line: str) -> str:
    line = line.strip()
    if _HEADING.fullmatch(line):
        return "heading"
    if line.startswith(("- ", "* ")):
        return "list"
    return "table" if line.startswith("|") and line.endswith("|") else "words"


def _headings(lines: list[str], level: int) -> str:
    found = [match for line in lines if (match := _HEADING.fullmatch(line.strip()))]
    depths = [(min(6, level + len(match[1]) - 1), match[2]) for match in found]
    return "".join(f"<h{depth}>{_inline(words)}</h{depth}>" for depth, words in depths)


def _list(lines: list[str], level: int) -> str:
    return f"<ul>{''.join(f'<li>{_inline(line.strip()[2:])}</li>' for line in lines)}</ul>"


def _table(lines: list[str], level: int) -> str:
    rows = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines if not _RULE.fullmatch(line)]
    head = "".join(f'<th scope="col">{_inline(cell)}</th>' for cell in rows[0]) if rows else ""
    body = "".join(f"<tr>{''.join(f'<td>{_inline(cell)}</td>' for cell in row)}</tr>" for row in rows[1:])
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="Table">{table}</div>'


def _words(lines: list[str], level: int) -> str:
    return f"<p>{_inline(' '.join(line.strip() for line in lines))}</p>"


_SHAPES = {"heading": _headings, "list": _list, "table": _table, "words": _words}


def _inline(text: str) -> str:
    """A line with its code and bold words; nothing within code is bold."""
    parts = _CODE.split(text)
    return "".join(
        f"<code>{escape(part)}</code>" if place % 2 else _BOLD.sub(r"<strong>\1</strong>", escape(part))
        for place, part in enumerate(parts)
    )
