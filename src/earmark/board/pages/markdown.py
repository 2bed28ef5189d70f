"""The Markdown that hosts write policies and definitions in, as HTML: headings, paragraphs, lists, quotations, tables,
fenced and inline `code`, **bold**, *emphasis* and [links](https://example.org).

Everything in it is escaped, and HTML stays the letters that it is. A link leads to https, http or mailto, else it stays
letters too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby

from markupsafe import Markup

_HEADING = re.compile(r"(#{1,4}) +(.*)")
_FIRST_HEADING = re.compile(r"<h2>(.*?)</h2>\s*")
_CODE = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")
_EMPHASIS = re.compile(r"(?<![*\w])\*([^*\s](?:[^*]*[^*\s])?)\*(?![*\w])")
_LINK = re.compile(r"\[([^\[\]]+)\]\(((?:https?://|mailto:)[^\s()<>\"'`]+)\)")
_NUMBERED = re.compile(r"\d{1,9}[.)] +")
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_RULE = re.compile(r"\|[\s:|-]+\|")


def markdown(text: str, *, level: int = 2) -> Markup:
    """The text as HTML; its largest heading is of the level given."""
    parts: list[str] = []
    for place, part in enumerate(_FENCE.split(text.replace("\r\n", "\n"))):
        if place % 2:
            parts.append(f"<pre>{escape(part)}</pre>")
            continue
        blocks = re.split(r"\n\s*\n", part.strip())
        parts += [shaped for block in blocks if block.strip() for shaped in _block(block, level)]
    return Markup("\n".join(parts))


def titled(shown: Markup) -> tuple[Markup, Markup]:
    """The heading that a text as HTML begins with, or "", and the rest of it."""
    if first := _FIRST_HEADING.match(shown):
        return Markup(first[1]), Markup(shown[first.end() :])
    return Markup(""), shown


def _block(block: str, level: int) -> Iterator[str]:
    for kind, lines in groupby(block.splitlines(), key=_kind):
        yield _SHAPES[kind](list(lines), level)


def _kind(line: str) -> str:
    line = line.strip()
    if _HEADING.fullmatch(line):
        return "heading"
    if line.startswith(("- ", "* ")):
        return "list"
    if _NUMBERED.match(line):
        return "numbered"
    if line.startswith(">"):
        return "quotation"
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


def _numbered(lines: list[str], level: int) -> str:
    items = (_inline(_NUMBERED.sub("", line.strip(), count=1)) for line in lines)
    return f"<ol>{''.join(f'<li>{item}</li>' for item in items)}</ol>"


def _quotation(lines: list[str], level: int) -> str:
    return f"<blockquote>{_words([line.strip().removeprefix('>') for line in lines], level)}</blockquote>"


_SHAPES = {
    "heading": _headings, "list": _list, "numbered": _numbered, "quotation": _quotation, "table": _table,
    "words": _words,
}  # fmt: skip


def _inline(text: str) -> str:
    """A line with its code, links, bold and emphasised words; nothing within code is any of these."""
    parts = _CODE.split(text)
    return "".join(f"<code>{escape(part)}</code>" if place % 2 else _marked(part) for place, part in enumerate(parts))


def _marked(text: str) -> str:
    """Words with their links; an address is no text to be marked."""
    found, end = [], 0
    for link in _LINK.finditer(text):
        address = f'<a href="{escape(link[2])}" rel="nofollow noopener">{_stressed(link[1])}</a>'
        found += [_stressed(text[end : link.start()]), address]
        end = link.end()
    return "".join((*found, _stressed(text[end:])))


def _stressed(text: str) -> str:
    return _EMPHASIS.sub(r"<em>\1</em>", _BOLD.sub(r"<strong>\1</strong>", escape(text)))
