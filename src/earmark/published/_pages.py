"""The lists of items and claims as Markdown, for pages of the documentation and for files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from earmark.published._claims import Claim
from earmark.published._items import Item


def items_page(items: Iterable[Item]) -> str:
    """A table for each paper: item, what it shows, command, standing."""
    heads = ("Item", "What it shows", "Command", "Standing")
    return _by_paper(heads, ((item.paper, item.item, item.shows, f"`{item.command}`", item.stands) for item in items))


def claims_page(claims: Iterable[Claim]) -> str:
    """A table for each paper: where, what is said, what the tables give, verdict, reading."""
    heads = ("Where", "What the text says", "What the tables give", "Verdict", "How it was read, and where to look")
    lines = ((one.paper, one.where, _said(one), one.computed, one.verdict, _reading(one)) for one in claims)
    return _by_paper(heads, lines)


def _said(claim: Claim) -> str:
    return f"{claim.says}: {claim.quoted}" if claim.quoted else claim.says


def _reading(claim: Claim) -> str:
    reading = f"{claim.reading[0].upper()}{claim.reading[1:]}. " if claim.reading else ""
    return f"{reading}`{claim.command}`"


def _by_paper(heads: Sequence[str], lines: Iterable[tuple[str, ...]]) -> str:
    papers: dict[str, list[str]] = {}
    for paper, *cells in lines:
        papers.setdefault(paper, []).append("| {} |".format(" | ".join(cell.replace("|", "\\|") for cell in cells)))
    top = ["| {} |".format(" | ".join(heads)), "|" + "---|" * len(heads)]
    return "\n".join("\n".join([f"## {paper}", "", *top, *rows, ""]) for paper, rows in papers.items())
