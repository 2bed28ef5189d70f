"""The lists of items and claims as Markdown, for pages of the documentation and for files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from earmark.published._claims import Claim
from earmark.published._items import Item

_T = TypeVar("_T", Item, Claim)


def items_page(items: Iterable[Item]) -> str:
    """A table for each paper: item, what it shows, command, standing."""
    return _by_paper(
        items,
        ("Item", "What it shows", "Command", "Standing"),
        lambda item: (item.item, item.shows, f"`{item.command}`", item.stands),
    )


def claims_page(claims: Iterable[Claim]) -> str:
    """A table for each paper: where, what is said, what the tables give, verdict, reading."""
    return _by_paper(
        claims,
        ("Where", "What the text says", "What the tables give", "Verdict", "Reading, and where to look"),
        lambda claim: (claim.where, said(claim), claim.computed, claim.verdict, _reading(claim)),
    )


def said(claim: Claim) -> str:
    """What the text says, with its numbers."""
    return f"{claim.says} ({claim.quoted})" if claim.quoted else claim.says


def _reading(claim: Claim) -> str:
    reading = f"{claim.reading[0].upper()}{claim.reading[1:]}. " if claim.reading else ""
    return f"{reading}`{claim.command}`"


def _by_paper(things: Iterable[_T], heads: Sequence[str], cells: Callable[[_T], Sequence[str]]) -> str:
    papers: dict[str, list[str]] = {}
    for thing in things:
        line = " | ".join(cell.replace("|", "\\|") for cell in cells(thing))
        papers.setdefault(thing.paper, []).append(f"| {line} |")
    top = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    return "\n\n".join("\n".join([f"## {paper}", "", *top, *lines]) for paper, lines in papers.items()) + "\n"
