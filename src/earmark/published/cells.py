"""One printed cell as a row of the score table, with where it was printed and what is known against it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from earmark.scores import Row

DISTANCES = {"C": "cosine", "E": "euclidean", "S": "spearman", "": ""}
"""The papers' letters."""


def fraction(printed: str) -> float:
    """A printed percentage as the nearest fraction: "76.2" is 0.762."""
    return float(Decimal(printed) / 100)


def printed_row(source: str, printed: str, value: float | None, *, note: str = "", **columns: Any) -> Row:
    """A score row of a printed cell.

    version  where it was printed: "published, VocSim, Table 19"
    inputs   the file and row it was read from, and what is known of the reading: "vocsim_full_results:17 both_agree"
    """
    given = {"version": f"published, {printed}", "inputs": f"{source} {note}".rstrip(), **columns}
    if value is None:
        given.setdefault("status", "not_applicable")
        given.setdefault("reason", "the paper prints a dash and gives no reason")
    return Row(value=value, **given)


def failed_row(source: str, printed: str, cell: str, why: str, *, note: str = "", **columns: Any) -> Row:
    """A score row of a cell whose number is no measurement: no value, and a reason that quotes what is printed."""
    return printed_row(source, printed, None, note=note, status="failed", reason=f"printed as {cell}: {why}", **columns)
