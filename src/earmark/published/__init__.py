"""The printed results of the papers, as score tables with their provenance.

scores = published.load("vocsim")          rows of the score table, 7 metrics x 124-129 configurations x 19 subsets
rows = published.read("simba_table3")      any table exactly as printed, as text
findings = published.check()               every printed average, recomputed
sentences = published.claims()             what the texts say in numbers, held against the tables
lines = published.items()                  every table and figure of the papers, with the command that makes it
"""

from __future__ import annotations

from functools import cache

from earmark.errors import UsageError, did_you_mean
from earmark.published._checks import Recomputation, check, mean_rank_limits
from earmark.published._claims import VERDICTS, Claim, claims
from earmark.published._items import STANDINGS, Item, items, paper_named
from earmark.published._pages import claims_page, items_page
from earmark.published._papers import PAPERS, Paper, PrintedTable, read, table, tables
from earmark.published._printed_rows import SETS
from earmark.published._repeats import Repeat, counted_as_measured, find_repeats, flagged
from earmark.published.families import codec_family, families, vocsim_family, vocsim_kind
from earmark.scores import Scores

__all__ = [
    "PAPERS",
    "SETS",
    "STANDINGS",
    "VERDICTS",
    "Claim",
    "Item",
    "Paper",
    "PrintedTable",
    "Recomputation",
    "Repeat",
    "check",
    "claims",
    "claims_page",
    "codec_family",
    "counted_as_measured",
    "families",
    "find_repeats",
    "items",
    "items_page",
    "load",
    "mean_rank_limits",
    "paper_named",
    "read",
    "repeats",
    "table",
    "tables",
    "vocsim_family",
    "vocsim_kind",
]


@cache
def load(name: str, *, with_repeats: bool = False) -> Scores:
    """A set of printed results as a score table.

    `version` says which table of which paper a row is from and `inputs` which line of which file; a printed dash is
    not_applicable, a printed number that is no measurement is failed, and a doubtful one has a reason beside it. One
    that repeats another system's is repeated: it keeps its value and counts nowhere.

    Args:
        name: One of `SETS`.
        with_repeats: Count what repeats another system's as measured.
    """
    if name not in SETS:
        known = ", ".join(SETS)
        raise UsageError(f'There is no published set "{name}"; there are {known}.{did_you_mean(name, SETS)}')
    if with_repeats:
        return Scores(tuple(counted_as_measured(load(name))))
    return Scores(tuple(flagged(SETS[name][1](), vocsim_kind if name.startswith("vocsim") else str)))


def repeats(name: str) -> list[Repeat]:
    """The blocks of a set that repeat others."""
    return find_repeats(load(name, with_repeats=True), vocsim_kind if name.startswith("vocsim") else str)
